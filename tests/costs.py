"""What one test may cost in a fast run (`make test-fast`), so that thousands of them stay a matter of two minutes.

A test that takes more than LIMIT fails there.
Its cost is processor time of this process, of all its threads: it does not depend on what else the machine does.
Not counted are processes that the test starts, its fixtures, which others may share, and the compiling of kernels,
which falls to whichever test comes first where they are not cached yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import process_time

import pytest
from numba.core import event

from mass import is_fast

LIMIT = 3.0
"""Seconds; most tests take a thousandth of them."""


class Compiling(event.Listener):
    """The processor time since the start of this process in which Numba has compiled."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0
        self._depth = 0  # kernels that call others compile these on the way
        self._lock = Lock()

    def on_start(self, event: event.Event) -> None:
        """A kernel is compiled from now on."""
        with self._lock:
            if self._depth == 0:
                self._began = process_time()
            self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """... and until now."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += process_time() - self._began


compiling = Compiling()
event.register("numba:compile", compiling)  # type: ignore[no-untyped-call]


@contextmanager
def bounded(item: pytest.Item) -> Iterator[None]:
    """Fail a test that costs more than one may in a fast run; those marked `mass` or `spark` may."""
    began = process_time() - compiling.seconds
    yield
    cost = process_time() - compiling.seconds - began
    marked = any(item.get_closest_marker(name) for name in ("mass", "spark"))
    if is_fast() and not marked and cost > LIMIT:
        pytest.fail(
            f"took {cost:.1f} seconds of processor time, where a fast test may take {LIMIT:g}: "
            "let it run some() of its cases, make it cheaper, or mark it 'mass'",
            pytrace=False,
        )
