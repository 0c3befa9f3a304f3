"""A proxy between clients and a real broker that loses what it is told to: one request, one answer, or the line.

It reads Kafka's frames, so it knows which request is on its way (`REQUESTS`), and an answer by its correlation id.
The broker has to advertise the proxy's address, so that all clients come this way.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Literal

from kafka.mocking import REQUESTS

Loss = Literal["request", "answer", "silence"]
"""A request that does not arrive and an answer that does not, both with the end of the connection; and an answer that
does not arrive while the connection stays."""


@dataclass
class Proxy:
    """Listens on a port of its own from the start; `connect` tells it where the broker is."""

    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    broker: tuple[str, int] | None = None
    lost: int = 0
    """The number of things that were lost."""
    _losses: list[tuple[int, Loss]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def connect(self, address: str) -> None:
        host, _, port = address.partition(":")
        self.broker = host, int(port)

    def lose(self, request: str, loss: Loss, times: int = 1) -> None:
        """Lose the next requests of a kind, or their answers."""
        with self._lock:
            self._losses += [(REQUESTS[request], loss)] * times

    def close(self) -> None:
        self.listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                assert self.broker is not None, "the broker comes before its clients"
                Thread(target=_Line(self, client, socket.create_connection(self.broker)).requests, daemon=True).start()

    def taken(self, request: int, *losses: Loss) -> Loss | None:
        """What is to be lost of a request; each loss happens once."""
        with self._lock:
            for each in self._losses:
                if each[0] == request and each[1] in losses:
                    self._losses.remove(each)
                    self.lost += 1
                    return each[1]
        return None


class _Line:
    """One connection, and its other half to the broker."""

    def __init__(self, proxy: Proxy, client: socket.socket, broker: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._awaited: dict[int, Loss] = {}
        """The answers to be lost, by correlation id."""

    def requests(self) -> None:
        """Pass requests on."""
        Thread(target=self._answers, daemon=True).start()
        with suppress(OSError):
            while frame := _frame(self._client):
                request, correlation = int.from_bytes(frame[4:6]), int.from_bytes(frame[8:12])
                match self._proxy.taken(request, "request", "answer", "silence"):
                    case "request":
                        break
                    case "answer" | "silence" as loss:
                        self._awaited[correlation] = loss
                    case None:
                        pass
                self._broker.sendall(frame)
        self._close()

    def _answers(self) -> None:
        with suppress(OSError):
            while frame := _frame(self._broker):
                match self._awaited.pop(int.from_bytes(frame[4:8]), None):
                    case "answer":
                        break
                    case "silence":
                        continue
                    case _:
                        self._client.sendall(frame)
        self._close()

    def _close(self) -> None:
        for each in (self._client, self._broker):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
                each.close()


def _frame(line: socket.socket) -> bytes:
    """A request or an answer with its length; nothing at the end."""
    head = _exactly(line, 4)
    return head and head + _exactly(line, int.from_bytes(head))


def _exactly(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            return b""
        data += more
    return data
