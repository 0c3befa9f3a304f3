"""What the service says where it refuses something: a status, and a JSON object with `message` and `hint`.

Errors of ours become statuses by one table; a query's error has its line and column.
"""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anabranch.errors import AnabranchError, DiskFull, QueryError, StateError, UsageError
from anabranch.site_work import NameTaken, NoSubscription, NotReady, ReadOnly


class RefusalAnswer(BaseModel):
    """Why a request is refused, what to do, and where the error is in a query, if it is in one."""

    message: str
    hint: str | None
    code: str | None = None
    line: int | None = None
    column: int | None = None
    length: int | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": RefusalAnswer, "description": "The request is refused."},
    "5XX": {"model": RefusalAnswer, "description": "The run is starting, stopping or has failed."},
}
"""What every route may answer besides its own."""


class NotFound(UsageError):
    """There is nothing of this name."""


class Forbidden(UsageError):
    """The client's role does not suffice."""


class TooMany(UsageError):
    """A client asks too much at once."""


_STATUS: tuple[tuple[type[AnabranchError], int], ...] = (
    (NoSubscription, 404),
    (NotFound, 404),
    (NameTaken, 409),
    (ReadOnly, 409),
    (Forbidden, 403),
    (TooMany, 429),
    (NotReady, 503),
    (DiskFull, 507),
    (StateError, 503),
    (QueryError, 422),
)
_RETRIED = (429, 503, 507)


def refusal(status: int, message: str, hint: str | None = None, **more: Any) -> JSONResponse:
    """The answer to a request that is refused."""
    headers = {"Retry-After": "1"} if status in _RETRIED else {}
    headers |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"message": message, "hint": hint, **more}, status, headers)


def status_of(error: AnabranchError) -> int:
    """The status of an error; of those that the table does not name, the request is to blame."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def details(error: AnabranchError) -> dict[str, Any]:
    """An error as an object: message, hint and code, and its place in a query."""
    found: dict[str, Any] = {"message": error.message, "hint": error.hint, "code": error.code}
    if isinstance(error, QueryError):
        length = max(1, error.span.end - error.span.start)
        found |= {"line": error.line, "column": error.column, "length": length}
        found |= {"error": type(error).__name__, "name": error.name}  # a client raises the same, for the same query
    return found


def refused(request: Request, error: Exception) -> Response:
    """The answer to a request that raised one of our errors; files are named as they are in the site's folder."""
    assert isinstance(error, AnabranchError)
    folder = f"{request.app.state.context.work.site.file.parent}/"
    told = {key: each.replace(folder, "") if isinstance(each, str) else each for key, each in details(error).items()}
    return refusal(status_of(error), **told)


def invalid(request: Request, error: Exception) -> Response:
    """The answer to a request whose parameters or body do not fit."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(each) for each in first["loc"] if each not in ("body", "query", "path"))
    return refusal(400, f"'{place}': {first['msg']}" if place else str(first["msg"]), "see /openapi.json")


def not_found(request: Request, error: Exception) -> Response:
    """The answer to a request for what there is not, as Starlette says it."""
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing here", 405: f"{request.method} is not possible here"}
    found = refusal(error.status_code, messages.get(error.status_code, str(error.detail)), "see /openapi.json")
    found.headers.update(error.headers or {})
    return found
