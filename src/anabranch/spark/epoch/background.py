"""What follows an epoch, done while the next one is under way.

One thing at a time, in the order in which they come; whoever brings the next waits for the one before it, so nothing
piles up.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, current_thread


class Background:
    """One thread's worth of work behind the epochs of a trunk; only the epoch at work brings some."""

    def __init__(self) -> None:
        self._thread: Thread | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Do some work, which raises nothing, when the work before it is done."""
        self.finish()
        self._thread = Thread(target=work, name="behind an epoch")
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is done; whoever is called by the work itself does not wait."""
        thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join()
