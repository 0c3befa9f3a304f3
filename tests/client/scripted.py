"""A server that answers as it is told, byte for byte: for what a service never sends, and a client has to survive.

It is no model of the service; what the service does is tested against the service.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import TypeAlias

Script: TypeAlias = bytes | Callable[[socket.socket], None]
"""The bytes that answer a request, after which the connection is closed; or whatever is done with the connection."""

ABOUT: Mapping[str, object] = {"site": "SITE.toml", "version": "0.1.0", "state": "ready", "role": "administer"}


@dataclass
class Scripted:
    """What was asked; each request gets the next script."""

    url: str
    scripts: Sequence[Script]
    requests: list[str] = field(default_factory=list)
    """The heads of the requests."""
    at_work: socket.socket | None = None
    """The connection whose script runs."""

    @property
    def lines(self) -> list[str]:
        """Methods and paths."""
        return [each.split(" HTTP/")[0] for each in self.requests]


@contextmanager
def scripted(*scripts: Script, greeting: bool = True) -> Iterator[Scripted]:
    """A server with scripts; with `greeting` the first is the one that a client expects when it connects."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    found = Scripted(url, (reply(ABOUT), *scripts) if greeting else scripts)
    thread = Thread(target=_serve, args=(listening, found), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        if found.at_work is not None:
            with suppress(OSError):  # it may have ended
                found.at_work.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(listening: socket.socket, found: Scripted) -> None:
    for script in found.scripts:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection, suppress(OSError):  # the client may leave in the middle
            found.at_work = connection
            connection.settimeout(30)
            found.requests.append(_head(connection))
            if callable(script):
                script(connection)
            else:
                connection.sendall(script)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):  # what it sends behind, so that it is not reset
                    pass


def _head(connection: socket.socket) -> str:
    """The head of a request; a body that is short comes with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        data += piece
    return data.decode("latin-1")


def reply(value: object, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """A whole reply; bytes are its body as they are, all else is JSON."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    more = "".join(f"{name.replace('_', '-')}: {each}\r\n" for name, each in headers.items())
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    )
    return head.encode() + body


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
"""The head of a stream of events."""


def chunk(text: str) -> bytes:
    """A piece of it."""
    data = text.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(position: str, text: str) -> bytes:
    """An answer as an event."""
    return chunk(f"id: {position}\n" + "".join(f"data: {line}\n" for line in text.split("\n")) + "\n")


def endless(head: bytes, piece: bytes, sent: list[int]) -> Callable[[socket.socket], None]:
    """Send a piece again and again, until the client leaves; `sent` has the bytes."""

    def send(connection: socket.socket) -> None:
        connection.sendall(head)
        sent.append(0)
        while True:
            connection.sendall(piece)
            sent[0] += len(piece)

    return send
