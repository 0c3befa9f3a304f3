"""Signals that end a command: SIGINT and SIGTERM alike, once, and never during a call of Spark.

The first signal raises `KeyboardInterrupt` with the signal's name, so that files are closed, folders removed and Spark
released on the way out; further ones are ignored, since they could only break that.
An interrupted call of Spark leaves half an answer in its connection, which the next call would take for its own; so a
signal during a call is delayed until the call has returned.
Commands with a better way to end replace these handlers for a while (`run_control.signals`).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CALLS = ("py4j", "pyspark")
_RETRY_SECONDS = 0.05


@contextmanager
def interruptible(*, for_good: bool) -> Iterator[None]:
    """Let signals interrupt this context; only the main thread receives them.

    With `for_good`, where the process ends afterwards, signals are ignored from then on.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = {each: signal.signal(each, _interrupt) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, signal.SIG_IGN if for_good else handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _in_a_call(frame):
        again = Timer(_RETRY_SECONDS, signal.pthread_kill, (main_thread().ident, number))
        again.daemon = True
        again.start()
        return
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def _in_a_call(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _CALLS:
            return True
        frame = frame.f_back
    return False
