"""What the endpoint answers: a POST takes items into a stream, a GET says how far the stream is.

    POST /streams/NAME    200 when the items are durable: {"stream", "start", "end", "repeated"}
    GET  /streams/NAME    {"stream", "accepted", "read", "behind"}, all in bytes

Whatever is refused has a status and a JSON object with `message` and `hint`; a body that cannot be read, also `byte`,
`line` and `column`.
`push_routes` can be mounted into any application; `guarded` puts the rules around it that hold for every request:

* A token, where there is one, compared in constant time.
* On the loopback interface the request must be addressed to it by name: a web page that has made its own name point
  there (DNS rebinding) is refused, and so is every request that a browser sends for a page of another origin.
  There are no CORS headers, so no page can read an answer either.

A name in an address is looked up among the streams and never becomes a path.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from anabranch.endpoint.bodies import BadBody, TooLarge, UnknownType, body_of, check_type, unpacked
from anabranch.endpoint.settings import EndpointSettings
from anabranch.errors import AnabranchError, DiskFull, StateError
from anabranch.spark.spool.spool import Acceptance, KeyReused, PushedBody, Spool, SpoolClosed, TrunkBehind
from anabranch.stream.reading.source import Source

LONGEST_KEY = 200
_SMALL = 1 << 16
"""A body up to this size is checked at once, a larger one in another thread."""
_DRAINED = 1 << 20
_DRAIN_SECONDS = 1.0
"""So much of a body is read for so long when its request is refused, so that the client gets to read the answer."""
_RETRY_SECONDS = 1
_HELD_BODIES = 4
"""How many of the largest bodies may be in memory at a time."""
_UNPACKED_AT_ONCE = 2

FindSpool: TypeAlias = Callable[[str], Spool | None]
"""Finds the spool of a stream by its name."""


class BadRequest(AnabranchError):
    """A request that is wrong in something else than its body."""


class TooSlow(AnabranchError):
    """A body that takes too long."""


class TooBusy(AnabranchError):
    """More large bodies at once than there is memory for."""


_STATUS: tuple[tuple[type[AnabranchError], int], ...] = (
    (BadBody, 400),
    (BadRequest, 400),
    (TooSlow, 408),
    (TooLarge, 413),
    (UnknownType, 415),
    (KeyReused, 422),
    (TrunkBehind, 429),
    (DiskFull, 507),
    (StateError, 503),
    (SpoolClosed, 503),
    (TooBusy, 503),
)
_RETRIED = (429, 503, 507)


def application(find: FindSpool, settings: EndpointSettings, warn: Callable[[str], None]) -> ASGIApp:
    """The whole endpoint of a run; unexpected errors go to `warn`."""

    def failed(request: Request, error: Exception) -> Response:
        warn(f"the endpoint failed: {type(error).__name__}: {error}")
        return _refusal(500, "something has gone wrong here", "the log of the run says what")

    handlers: Any = {HTTPException: _not_found, Exception: failed}  # starlette wants one type for all of them
    inner = Starlette(routes=push_routes(find, settings), exception_handlers=handlers)
    inner.router.redirect_slashes = False
    return Guarded(inner, settings)


def push_routes(find: FindSpool, settings: EndpointSettings) -> list[Route]:
    """The routes by which streams are pushed."""
    return [Route("/streams/{name:path}", PushAnswers(find, settings).answer, methods=["GET", "POST"])]


class PushAnswers:
    """Answers requests about streams; it runs in the thread of the endpoint."""

    def __init__(self, find: FindSpool, settings: EndpointSettings) -> None:
        self._find = find
        self._settings = settings
        self._held = 0
        """The bytes of bodies that are in memory."""
        self._unpacking = asyncio.Semaphore(_UNPACKED_AT_ONCE)

    async def answer(self, request: Request) -> Response:
        """Answer a request."""
        name = request.path_params["name"]
        spool = self._find(name)
        incoming = _Incoming(request)
        if spool is None:
            hint = 'streams with source = "http" can be pushed'
            return _refusal(404, f"there is no stream '{name}' here", hint, close=not await incoming.drained())
        if request.method != "POST":
            state = spool.state
            fields = {"accepted": state.accepted, "read": state.read, "behind": state.behind}
            return JSONResponse({"stream": name, **fields})
        try:
            found = await self._accept(spool, request.headers, incoming)
        except AnabranchError as error:
            status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
            close = isinstance(error, TooSlow) or not await incoming.drained()
            return _refusal(status, error.message, error.hint, error, close=close)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        return JSONResponse({"stream": name, "start": found.start, "end": found.end, "repeated": found.repeated})

    async def _accept(self, spool: Spool, headers: Headers, incoming: _Incoming) -> Acceptance:
        kind, encoding = headers.get("content-type", ""), headers.get("content-encoding", "")
        check_type(spool.source, kind, encoding)
        key = _key(headers)
        if key is None:  # else it may be one that was accepted before
            spool.check_room()
        hold = _Hold(self)
        try:
            raw = await self._read(incoming, headers, hold)
            if encoding.strip().lower() == "gzip":
                async with self._unpacking:
                    raw = await asyncio.to_thread(unpacked, raw, self._settings.max_body)
                hold.take(len(raw))
            body = await _checked(spool.source, kind, raw)
            return await asyncio.wrap_future(spool.accept(body, key))
        finally:
            hold.release()

    async def _read(self, incoming: _Incoming, headers: Headers, hold: _Hold) -> bytes:
        """A body, if it is neither too large nor too slow."""
        most, seconds = self._settings.max_body, self._settings.body_seconds
        chunks: list[bytes] = []
        size = int(headers.get("content-length", 0))
        try:
            async with asyncio.timeout(seconds):
                while size <= most and not incoming.ended:
                    chunks.append(await incoming.chunk())
                    hold.take(len(chunks[-1]))
                    size = max(size, incoming.size)
        except TimeoutError:
            raise TooSlow(f"the body was not here after {seconds:g} seconds", hint="send fewer items at once") from None
        if size > most:
            raise TooLarge(f"the body has more than {most:,} bytes", hint="send fewer items at once")
        return b"".join(chunks)

    def hold(self, size: int) -> None:
        """Count bytes that are in memory, unless there are too many."""
        if size > 0 and self._held + size > _HELD_BODIES * self._settings.max_body:
            raise TooBusy("there are too many large bodies at once", hint="send it again later")
        self._held += size


class _Hold:
    """The bytes that one request holds in memory."""

    def __init__(self, answers: PushAnswers) -> None:
        self._answers = answers
        self._size = 0

    def take(self, size: int) -> None:
        self._answers.hold(size)
        self._size += size

    def release(self) -> None:
        self._answers.hold(-self._size)


class _Incoming:
    """The body of a request, as it comes in."""

    def __init__(self, request: Request) -> None:
        self._receive = request.receive
        self._asks = "expect" in request.headers
        """Whether the client waits for a sign before it sends the body."""
        self._declared = int(request.headers.get("content-length", 0))
        self.size = 0
        self.ended = False

    async def chunk(self) -> bytes:
        """The next bytes."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.ended = True
            raise ClientDisconnect
        found: bytes = message.get("body", b"")
        self.size += len(found)
        self.ended = not message.get("more_body", False)
        return found

    async def drained(self) -> bool:
        """Read a small rest of the body, and forget it; whether all of it was read."""
        if not self.ended and (self._asks or self._declared > self.size + _DRAINED):
            return False
        most = self.size + _DRAINED
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self.ended and self.size <= most:
                    await self.chunk()
        except (TimeoutError, ClientDisconnect):
            return False
        return self.ended


async def _checked(source: Source, kind: str, raw: bytes) -> PushedBody:
    if len(raw) <= _SMALL:
        return body_of(source, kind, raw)
    return await asyncio.to_thread(body_of, source, kind, raw)


def _key(headers: Headers) -> str | None:
    """The idempotency key of a request, if it has one."""
    found = headers.getlist("idempotency-key")
    if not found:
        return None
    if len(found) > 1 or not 0 < len(found[0]) <= LONGEST_KEY or not (found[0].isascii() and found[0].isprintable()):
        raise BadRequest(
            "the header 'Idempotency-Key' cannot be used", hint=f"it has one to {LONGEST_KEY} plain characters"
        )
    return found[0]


def _refusal(
    status: int, message: str, hint: str | None, error: Exception | None = None, *, close: bool = False
) -> JSONResponse:
    """The answer to a request that is refused; with `close` the connection ends behind it."""
    content: dict[str, Any] = {"message": message, "hint": hint}
    if isinstance(error, BadBody) and error.byte is not None:
        content |= {"byte": error.byte, "line": error.line, "column": error.column}
    headers = {"Retry-After": str(_RETRY_SECONDS)} if status in _RETRIED else {}
    headers |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(content, status, headers | ({"Connection": "close"} if close else {}))


def _not_found(request: Request, error: HTTPException) -> Response:
    """What cannot be found or done, as Starlette says it."""
    if error.status_code == 405:
        found = _refusal(405, f"{request.method} is not possible here", "use POST or GET", close=True)
        found.headers["Allow"] = "GET, POST"
        return found
    return _refusal(error.status_code, "there is nothing here", "streams are at /streams/NAME", close=True)


# --- the rules for every request --------------------------------------------------------------------------


class Guarded:
    """An application to which only those requests come that are allowed to."""

    def __init__(self, inner: ASGIApp, settings: EndpointSettings) -> None:
        self._inner = inner
        self._token = settings.token()
        self._loopback = settings.is_loopback
        self._hosts = {"localhost", "127.0.0.1", "::1", settings.address()[0]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._inner(scope, receive, send)
        refused = self._refused(Headers(scope=scope))
        await (refused or self._inner)(scope, receive, send)

    def _refused(self, headers: Headers) -> Response | None:
        """The refusal of a request, if it is not allowed."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._loopback and _hostname(host) not in self._hosts:
            hint = "address it as 127.0.0.1 or localhost"
            return _refusal(421, f"'{host}' is not the name of this machine's own interface", hint, close=True)
        if self._loopback and origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return _refusal(403, "pages of another origin may not send anything here", None, close=True)
        if self._token is not None:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(given.strip().encode(), self._token.encode())
            if scheme.lower() != "bearer" or not right:
                hint = "send the header 'Authorization: Bearer TOKEN'"
                return _refusal(401, "the token is missing or wrong", hint, close=True)
        return None


def _hostname(host: str) -> str | None:
    """The name in a header 'Host', without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
