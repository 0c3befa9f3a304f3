"""What a fuzzer needs to know of one reader of bytes: what must hold of any input, and what inputs look like."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SECONDS = 10.0
"""The processor time that one input may take, however much is counted and compared beside."""
LONGEST = 4_096
"""The longest input, in bytes."""


@dataclass(frozen=True, slots=True)
class Target:
    """A reader under test."""

    name: str
    check: Callable[[bytes], None]
    """Raises where something does not hold; whatever the project raises for bad input is expected in there."""
    seeds: Sequence[bytes]
    """Inputs that reach most of it."""
    words: Sequence[bytes] = ()
    """What its inputs are made of."""


class Hang(BaseException):
    """An input takes longer than it may; no handler of errors takes it for one of them."""


@contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    """Raise Hang where something takes more processor time than that."""

    def stop(_: int, frame: FrameType | None) -> None:
        raise Hang(f"{seconds:g} seconds of processor time were not enough")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def try_input(target: Target, data: bytes) -> None:
    """Check one input, within its time; an error says which it was."""
    try:
        with bounded():
            target.check(data[:LONGEST])
    except BaseException as error:
        error.add_note(f"target '{target.name}', input {data!r}")
        raise
