"""Attacks carried out, each in a process of its own, whose time and memory are bounded and measured."""

from __future__ import annotations

import json
import os
import resource
import signal
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from hostile.attacks import Attack

SECONDS = 10
"""The processor time that an attack may take."""
MEGABYTES = 600
"""The memory by which an attack may let a process grow."""
_STOPPED = SECONDS * 3
_MOST_BYTES = 4 << 30
"""Where an attack is stopped, so that it does no harm to this machine."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of an attack, the processor time it took, and the memory that it let its process grow by."""

    outcome: str
    seconds: float
    megabytes: float


def carried_out(attack: Attack) -> Measured:
    """Carry an attack out in a copy of this process."""
    reading, writing = os.pipe()
    before = _resident()
    child = os.fork()
    if child == 0:
        _carry_out(attack, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        found = told.read()
    _, status, used = os.wait4(child, 0)
    seconds, megabytes = used.ru_utime + used.ru_stime, max(0.0, used.ru_maxrss / 1024 - before)
    if not found:
        return Measured(f"ended by signal {os.WTERMSIG(status)}", seconds, megabytes)
    return Measured(json.loads(found), seconds, megabytes)


def _carry_out(attack: Attack, writing: int) -> None:
    """Carry an attack out in this process, tell what came of it, and end."""
    try:
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (_STOPPED, _STOPPED))
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
        with tempfile.TemporaryDirectory() as folder:
            outcome: str = attack.carry_out(Path(folder))
    except BaseException:
        outcome = traceback.format_exc()
    os.write(writing, json.dumps(outcome[-4_000:]).encode())
    os._exit(0)


def _resident() -> float:
    """The megabytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)
