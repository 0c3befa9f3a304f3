"""Signals that end a command: SIGINT and SIGTERM alike, once, and never in the midst of a call of Spark.

The first signal raises `KeyboardInterrupt` with the signal's name, so that files are closed, folders removed and Spark
let go on the way out; further ones change nothing, since they could only break that.
A call of Spark that is broken off leaves half an answer in its connection, which the next call would take for its own;
so a signal that comes during one is put off until the call has returned.
Commands with a better way to end put their own handlers in place of these for a while (`run_control.signals`).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CALLS = ("py4j", "pyspark")
_PUT_OFF = 0.05


@contextmanager
def interruptible(*, for_good: bool) -> Iterator[None]:
    """Let signals interrupt what is done in this context; only the main thread can listen to them.

    Where the process ends behind it, `for_good`, signals are ignored from there on.
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
        again = Timer(_PUT_OFF, signal.pthread_kill, (main_thread().ident, number))
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
