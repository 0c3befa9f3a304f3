"""Server-sent events, read from bytes as they arrive (WHATWG HTML, 9.2).

The reader is fed with whatever a socket gives and returns the events that are complete.
An event that a connection breaks off in the middle of is never returned: its reader asks for it again by position.
A line, an event and the bytes between two events are bounded, so a server that never ends one costs no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.client.refusals import RemoteError

MOST_BYTES = 64 << 20
"""Of one event."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its kind, `message` by default, its id, if it has one, and its data."""

    kind: str
    id: str | None
    data: str


class EventReader:
    """Takes bytes in pieces of any size; only the follower of one connection has it."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        """What has come of the line that is not complete."""
        self._size = 0
        """The bytes of it, and of the event that is not complete."""
        self._after_return = False
        """Whether a line ended with a carriage return, so that a line feed belongs to it."""
        self._is_first = True
        self._kind = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """Take bytes; gives the events that end with them."""
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        if data:
            self._after_return = data.endswith(b"\r")
        # Lines end with \n, \r\n or \r, and with nothing else, which is how bytes are split.
        for line in data.splitlines(keepends=True):
            self._size += len(line)
            if self._size > self._most:
                raise RemoteError(f"the service has sent an event of more than {self._most:,} bytes")
            self._pieces.append(line)
            if line.endswith((b"\n", b"\r")):
                whole = b"".join(self._pieces).rstrip(b"\r\n")
                self._pieces.clear()
                event = self._take(whole)
                if event is not None:
                    yield event

    def _take(self, line: bytes) -> ServerEvent | None:
        """Take a line; gives the event that ends with it."""
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise RemoteError(f"the service has sent an event that is not UTF-8: {error.reason}") from None
        if self._is_first:
            self._is_first, text = False, text.removeprefix("\ufeff")
        if not text:
            return self._ended()
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "":  # a comment
                if not self._data and not self._kind and self._id is None:
                    self._size = 0
            case "data":
                self._data.append(value)
            case "event":
                self._kind = value
            case "id" if "\0" not in value:
                self._id = value
        return None

    def _ended(self) -> ServerEvent | None:
        event = ServerEvent(self._kind or "message", self._id, "\n".join(self._data)) if self._data else None
        self._kind, self._id, self._data, self._size = "", None, [], 0
        return event
