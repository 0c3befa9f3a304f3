"""A service's refusals as errors: what a service says with a status is raised as what a local call would raise.

A refused query is a `QueryError` with its place in the text that was sent, so it prints the line and underlines it.
A wrong parameter, an unknown name, a name that is taken are a `UsageError`, as they are for an engine.
What only a service can do wrong has errors of its own: `RemoteError`, and `RemoteUnavailable` where the same request
may be answered later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.errors import AnabranchError, QueryError, Refused, Span, Unsupported, UsageError

_KINDS: Mapping[str, type[QueryError]] = {"Refused": Refused, "Unsupported": Unsupported}
_LONGEST = 2_000
"""Characters of a message of the service; a longer one is cut."""


class RemoteError(AnabranchError):
    """A service refuses the caller, fails, or does not answer as a service of Anabranch does."""


class RemoteUnavailable(RemoteError):
    """A service cannot be reached, is starting or stopping, or broke off: the same request may be answered later."""


def refusal(status: int, said: Any, sent: str | Mapping[str, str] | None = None) -> AnabranchError:
    """The error for a status that is no success; `said` is the reply's JSON.

    `sent` is the text of the query that was sent, or by name those of several, of which the reply names one.
    """
    fields = said if isinstance(said, dict) else {}
    message = short(fields.get("message")) or f"the service has answered with status {status}"
    hint = short(fields.get("hint")) or None
    code = short(fields.get("code")) or None
    text = sent if isinstance(sent, str) else (sent or {}).get(short(fields.get("name")))
    match status:
        case 422 if text is not None:
            return query_error(fields, text)
        case 400 | 404 | 409 | 413 | 415 | 422:
            return UsageError(message, code=code, hint=hint)
        case 429 | 502 | 503 | 504 | 507:
            return RemoteUnavailable(message, code=code, hint=hint)
        case 401:
            return RemoteError(message, hint=hint or "give a token, or set ANABRANCH_TOKEN")
        case _:
            return RemoteError(message, code=code, hint=hint)


def query_error(said: Mapping[str, Any], text: str) -> AnabranchError:
    """The error in a query's text: `message`, `line` and `column`, and where known more.

    That is `length`, `hint`, `code`, `error` and `name`: the class of the error, and the name of the query.
    Without a place the error concerns the query as a whole.
    """
    message = short(said.get("message")) or "the query is refused"
    hint, code = short(said.get("hint")) or None, short(said.get("code")) or None
    line, column, length = (_count(said.get(each)) for each in ("line", "column", "length"))
    if line is None or column is None:
        return UsageError(message, code=code, hint=hint)
    kind = _KINDS.get(str(said.get("error")), QueryError)
    name = short(said.get("name")) or None
    return kind(message, text=text, span=_span(text, line, column, length or 1), code=code, hint=hint, name=name)


def short(said: Any) -> str:
    """A text of the service, cut; empty for what is no text."""
    text = said if isinstance(said, str) else ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _count(value: Any) -> int | None:
    """A number counted from 1, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None


def _span(text: str, line: int, column: int, length: int) -> Span:
    """A place in a text; the end of the text for one that lies behind it."""
    begin = 0
    for _ in range(line - 1):
        end = text.find("\n", begin)
        if end < 0:
            return Span(len(text), len(text) + 1)
        begin = end + 1
    start = min(begin + column - 1, len(text))
    return Span(start, start + length)
