"""Who may ask what: the rules for every request, before any route sees it.

* On the loopback interface the request must be addressed to it by name: a web page that has made its own name point
  there (DNS rebinding) is refused.
* A request that a browser sends for a page of another origin is refused, and there are no CORS headers, so no such page
  can read an answer either.
* A body is JSON and not too large; a form of a web page cannot send one.
* The client is known by its token, compared in constant time; where there are no tokens, by its address, and it
  administers.
* A client that asks too often is refused for a moment.
* Whatever is answered says that its type is the one to go by, so no browser takes data for a page or a program.

Every request is one line in the log, and never has a token in it.
Routes say which role they take (`needs`).
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from time import monotonic, perf_counter
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

from fastapi import Depends
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anabranch.run_control import Log
from anabranch.service.names import with_names
from anabranch.service.refusals import Forbidden, TooMany, refusal
from anabranch.service.settings import Client, Role, ServiceSettings

_BURST_SECONDS = 2.0
"""A client may ask as often as in so many seconds at once."""
_KNOWN_CLIENTS = 10_000
_HELD_BODIES = 8
"""How many of the largest bodies may be in memory at a time."""
OPEN = ("/healthz", "/readyz", "/", "/favicon.ico")
"""What needs no token, besides the files of the page."""

bearer = HTTPBearer(auto_error=False, description="a token of the file that the service was given")
"""Documents the header; `Guard` reads it."""


def client_of(request: Request) -> Client:
    """Who asks."""
    found: Client = request.scope["client_of_service"]
    return found


def needs(role: Role) -> Any:
    """The dependency of a route that takes a role; gives the client."""

    def allowed(request: Request) -> Client:
        client = client_of(request)
        if not client.may(role):
            raise Forbidden(f"this takes the role '{role}'", hint=f"the token of '{client.name}' has '{client.role}'")
        return client

    allowed.role = role  # type: ignore[attr-defined]  # the table of roles and routes is read from here
    return Depends(allowed)


Reader: TypeAlias = Annotated[Client, needs("read")]
Subscriber: TypeAlias = Annotated[Client, needs("subscribe")]
Administrator: TypeAlias = Annotated[Client, needs("administer")]
"""The parameters of routes that take a role."""


class Guard:
    """An application to which only those requests come that are allowed to."""

    def __init__(
        self,
        inner: ASGIApp,
        settings: ServiceSettings,
        log: Log,
        answered: Callable[[int, float], None] = lambda status, seconds: None,
    ) -> None:
        """`answered` hears of each request: its status, and how long it took."""
        self._inner = inner
        self._answered = answered
        self._settings = settings
        self._log = log
        self._tokens = settings.tokens()
        server = settings.server
        self._loopback = server.is_loopback
        self._hosts = {"localhost", "127.0.0.1", "::1", server.address()[0]}
        self._allowances = Allowances(settings.requests_per_second)
        self._bodies = Bodies(settings.max_body, settings.body_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._inner(scope, receive, send)
        begun, headers = perf_counter(), Headers(scope=scope)
        client = self._client(scope, headers)
        status = 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            answer = self._refused(scope, headers, client)
            if answer is None:
                scope["client_of_service"] = client
                async with self._bodies.limited(receive) as body:
                    await self._inner(with_names(scope), body, sent)
            else:
                await answer(scope, receive, sent)
        finally:
            self._answered(status, perf_counter() - begun)
            self._log.request(
                client=client.name if client else None,
                role=client.role if client else None,
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round((perf_counter() - begun) * 1000),
            )

    def _client(self, scope: Scope, headers: Headers) -> Client | None:
        """Who asks; None for an unknown token."""
        if self._tokens is None:
            return Client((scope.get("client") or ("unknown", 0))[0], "administer")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        found: Client | None = None
        for token, client in self._tokens.items():  # all of them, whichever it is
            if hmac.compare_digest(given.strip().encode(), token.encode()) and scheme.lower() == "bearer":
                found = client
        return found

    def _refused(self, scope: Scope, headers: Headers, client: Client | None) -> Response | None:
        """The refusal of a request, if it is not allowed."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._loopback and _hostname(host) not in self._hosts:
            hint = "address it as 127.0.0.1 or localhost"
            return refusal(421, f"'{host}' is not the name of this machine's own interface", hint)
        if origin is not None and _authority(origin) != host.lower():
            return refusal(403, "pages of another origin may not ask here")
        path: str = scope["path"]
        is_open = path in OPEN or path.startswith("/page/")
        if not is_open and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return refusal(403, "pages of another origin may not ask here")
        if client is None and not is_open:
            hint = "send the header 'Authorization: Bearer TOKEN'"
            return refusal(401, "the token is missing or wrong", hint)
        if not self._allowances.take(client.name if client else (scope.get("client") or ("unknown", 0))[0]):
            return refusal(429, "too many requests", f"{self._settings.requests_per_second:g} a second are allowed")
        return self._refused_body(scope, headers)

    def _refused_body(self, scope: Scope, headers: Headers) -> Response | None:
        length = headers.get("content-length")
        if length is not None and (not length.isdecimal() or int(length) > self._settings.max_body):
            return refusal(413, f"the body has more than {self._settings.max_body:,} bytes")
        has_body = length not in (None, "0") or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] in ("POST", "PUT", "PATCH") and kind != "application/json":
            return refusal(415, "bodies are JSON here", "send the header 'Content-Type: application/json'")
        if has_body and kind and kind != "application/json":
            return refusal(415, "bodies are JSON here", "send the header 'Content-Type: application/json'")
        return None


class Allowances:
    """How often each client may ask: a rate over some seconds; only the server's thread calls it."""

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        """By client: what is left of its requests, and when that was reckoned."""

    def take(self, client: str) -> bool:
        """Count a request; False where there are too many."""
        now, most = self._clock(), self._rate * _BURST_SECONDS
        left, then = self._left.get(client, (most, now))
        left = min(most, left + (now - then) * self._rate)
        if len(self._left) >= _KNOWN_CLIENTS and client not in self._left:
            self._left.clear()
        self._left[client] = max(0.0, left - 1), now
        return left >= 1


class OpenStreams:
    """The event streams that clients hold; only the server's thread calls it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @property
    def counts(self) -> Mapping[str, int]:
        """By client."""
        return self._open

    @contextmanager
    def one(self, client: Client) -> Iterator[None]:
        """One more, unless the client has too many."""
        if self._open[client.name] >= self._most:
            raise TooMany(f"'{client.name}' holds {self._most:,} event streams already", hint="close some of them")
        self._open[client.name] += 1
        try:
            yield
        finally:
            self._open[client.name] -= 1
            if not self._open[client.name]:
                del self._open[client.name]


class RefusedBody(HTTPException):
    """A body that is too large, or takes too long; what reads it must not take it for one that cannot be parsed."""


class Bodies:
    """The bodies of requests: how large each may be and how long it may take, and how much of all is in memory.

    Only the server's thread calls it.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._held = 0
        """The bytes of bodies whose requests are not answered yet."""

    @asynccontextmanager
    async def limited(self, receive: Receive) -> AsyncIterator[Receive]:
        """The same body, which ends with an error where it is too large or too slow, or others fill the memory."""
        size, is_whole, until = 0, False, monotonic() + self._seconds

        async def received() -> Message:
            nonlocal size, is_whole
            if is_whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), until - monotonic())
            except TimeoutError:
                raise RefusedBody(408, f"the body was not here after {self._seconds:g} seconds") from None
            is_whole = not message.get("more_body", False)
            come = len(message.get("body", b""))
            size += come
            self._held += come
            if size > self._most:
                raise RefusedBody(413, f"the body has more than {self._most:,} bytes")
            if self._held > _HELD_BODIES * self._most:
                raise RefusedBody(503, "there are too many large bodies at once", {"Retry-After": "1"})
            return message

        try:
            yield received
        finally:
            self._held -= size


def _hostname(host: str) -> str | None:
    """The name in a header 'Host', without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _authority(origin: str) -> str | None:
    """The host and port in a header 'Origin'; None where there is none."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
