"""The server of a run's endpoint: uvicorn in a thread, with limits that it does not have by itself.

A connection that waits for a request, or has sent only a part of its headers, is closed after some time; there are only
so many connections at once, and headers only so long.
The socket is bound before the thread starts, so an address that is taken is an error of the caller, and the port is
known at once.
"""

from __future__ import annotations

import asyncio
import json
import socket
from threading import Event, Thread
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from anabranch.endpoint.settings import EndpointSettings
from anabranch.errors import UsageError

_STOP_SECONDS = 3


def _refusal(head: bytes, message: str, hint: str) -> bytes:
    """The answer to a connection or a request that no application sees."""
    text = json.dumps({"message": message, "hint": hint}).encode()
    fields = b"Connection: close", b"Content-Type: application/json", b"Content-Length: %d" % len(text)
    return b"\r\n".join((b"HTTP/1.1 %b" % head, *fields, b"", text))


_FULL = _refusal(
    b"503 Service Unavailable\r\nRetry-After: 1", "there are too many connections at once", "send it again later"
)
_BROKEN = _refusal(
    b"400 Bad Request", "this is no request of HTTP", "its first line or a header is broken, or they are too long"
)


class Endpoint:
    """An application that is served from `start` to `close`; its address is taken from the beginning."""

    def __init__(self, app: ASGIApp, settings: EndpointSettings) -> None:
        host, port = settings.address()
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise UsageError(f"cannot listen on '{settings.listen}': {error.strerror}") from None
        # Connections have it from here. Else an answer that is written in two pieces, as all are, waits for the client
        # to acknowledge the first, 40 ms on a kept connection: asyncio knows this socket for none of TCP's.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._socket.getsockname()[1]}"
        """Where it can be reached."""
        self._server = _Server(_Config(app, settings))
        self._thread = Thread(target=self._serve, name="endpoint", daemon=True)

    def start(self) -> None:
        """Serve; whoever has connected before has waited."""
        self._thread.start()
        self._server.begun.wait()
        if not self._server.started:
            raise UsageError(f"cannot serve at '{self.address}'")

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._server.begun.set()

    def close(self) -> None:
        """Take no further request; those that wait for their answers get them."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()


class _Server(uvicorn.Server):
    """A server that says when it has begun."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.begun = Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.begun.set()


class _Config(uvicorn.Config):
    """The settings of a server, and those of the endpoint that it does not know."""

    def __init__(self, app: ASGIApp, settings: EndpointSettings) -> None:
        super().__init__(
            app,
            http=_LimitedConnection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",  # what matters is in the log of the run
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=settings.max_headers,
            timeout_keep_alive=max(1, int(settings.header_seconds)),
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        self.limits = settings


class _LimitedConnection(H11Protocol):
    """A connection that may not wait for ever; only the server's thread has it."""

    config: _Config
    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.config.limits.connections:
            transport.write(_FULL)
            transport.close()
            return
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        begun = cast("RequestResponseCycle | None", self.cycle)
        if begun is not None and not begun.response_complete:
            self._cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, in the form of all refusals."""
        self.transport.write(_BROKEN)
        self.transport.close()

    def on_response_complete(self) -> None:
        self._await_request()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        """Give the next request some time for its headers."""
        self._cancel()
        self._overdue = self.loop.call_later(self.config.limits.header_seconds, self._give_up)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _cancel(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None
