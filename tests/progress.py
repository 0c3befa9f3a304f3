"""What a long trial tells on its way: what happens, one line for each check, and how many have passed and failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic


class Progress:
    """Prints what happens and counts what has passed and failed."""

    def __init__(self) -> None:
        self._begun = monotonic()
        self.passed = self.failed = 0

    def say(self, text: str) -> None:
        print(f"{monotonic() - self._begun:5.0f} s  {text}", flush=True)

    @contextmanager
    def check(self, what: str) -> Iterator[None]:
        """One check; an assertion that fails is printed, and the next check goes on."""
        try:
            yield
        except AssertionError as error:
            self.failed += 1
            self.say(f"FAILED {what}: {str(error)[:4000]}")
        else:
            self.passed += 1
            self.say(f"passed {what}")
