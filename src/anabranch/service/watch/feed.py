"""Tells any number of clients of every epoch: one text is made for all of them, and each takes the newest.

A thread makes the text, at most sixty times a second, with very many clients less often, and at least every five
seconds; without clients it makes none.
A client that reads slowly misses texts and holds nothing up: what is kept for it is what its socket holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from threading import Event, Lock, Thread
from time import monotonic

from starlette.concurrency import run_in_threadpool

_LEAST_SECONDS, _MOST_SECONDS = 1 / 60, 5.0
_CLIENT_SECONDS, _MOST_PAUSE = 0.002, 4.0
"""To send a text to a client takes a fraction of that; so even a thousand of them leave the server time for others."""


class NowFeed:
    """The newest text, and who waits for the next; clients are those of one event loop."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        """`make` gives a text."""
        self._make = make
        self._making = Lock()
        self._number, self._text, self._made = 0, b"", -_MOST_SECONDS
        """The newest text, its number, and when it was made."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        """Set when there is a newer text; only the event loop's thread has it."""
        self.clients = 0
        self._wake = Event()
        self._ended = Event()
        self._thread = Thread(target=self._work, name="now", daemon=True)

    def start(self) -> None:
        """Begin to make texts."""
        self._thread.start()

    def wake(self) -> None:
        """Tell that there is an epoch; where nobody listens, no thread is woken."""
        if self.clients:
            self._wake.set()

    def close(self) -> None:
        """End all clients."""
        self._ended.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._announce()

    def newest(self) -> bytes:
        """A text that is as new as texts ever are."""
        with self._making:
            if monotonic() - self._made >= _LEAST_SECONDS:
                self._text = self._make()
                self._number += 1
                self._made = monotonic()
            return self._text

    async def texts(self) -> AsyncIterator[bytes]:
        """The texts from now on, the newest whenever one is asked for; ends with the feed."""
        self._loop = asyncio.get_running_loop()
        self.clients += 1
        try:
            yield await run_in_threadpool(self.newest)
            seen = self._number
            while not self._ended.is_set():
                if self._number == seen:
                    await self._changed.wait()
                    continue
                seen = self._number
                yield self._text
        finally:
            self.clients -= 1

    # --- the thread -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(max(0.0, self._made + _MOST_SECONDS - monotonic()) if self.clients else _MOST_SECONDS)
            self._wake.clear()
            if not self.clients or self._ended.is_set():
                continue
            pause = self._made + min(_MOST_PAUSE, max(_LEAST_SECONDS, self.clients * _CLIENT_SECONDS)) - monotonic()
            if pause > 0:
                self._ended.wait(pause)
            self.newest()
            self._announce()

    def _announce(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        """Wake all that wait, on the event loop's thread."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
