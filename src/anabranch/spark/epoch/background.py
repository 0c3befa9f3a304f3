"""Work that follows an epoch, done while the next epoch runs.

Pieces of work run one at a time and in order; `begin` waits for the piece before, so no queue builds up.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread, current_thread


class Background:
    """Runs the work behind a trunk's epochs on one thread; only the trunk's `epoch` submits work."""

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._starting = Lock()  # others may wait for the work at the moment it begins

    def begin(self, work: Callable[[], None]) -> None:
        """Run `work`, which must not raise, once the work before it is done."""
        self.finish()
        thread = Thread(target=work, name="behind an epoch")
        with self._starting:
            self._thread = thread
            thread.start()

    def finish(self) -> None:
        """Wait until all work is done; a call from within the work itself returns at once."""
        with self._starting:
            thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join()
