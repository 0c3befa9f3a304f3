"""What processes hold, as Linux shows it: memory, open files, threads and processor time; and what lies on a disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Holding:
    """What a program holds, with all processes that it has started."""

    driver_mb: float
    workers_mb: float
    jvm_mb: float
    """Resident memory; pages that Python workers share count for each of them."""
    files: int
    threads: int
    processor: float
    """Seconds of processor time so far, also of those that have ended."""


@dataclass(frozen=True, slots=True)
class _Process:
    name: str
    parent: int
    ticks: int
    threads: int
    pages: int


def holding(driver: int) -> Holding:
    """What a driver holds, with its JVM and its Python workers."""
    processes = dict(_processes())
    mine = {driver}
    # A process may have a smaller number than its parent, when numbers have run out and begin anew.
    while more := {pid for pid, each in processes.items() if each.parent in mine} - mine:
        mine |= more
    memory = {"driver": 0.0, "workers": 0.0, "jvm": 0.0}
    files = threads = ticks = 0
    for pid in mine & processes.keys():
        each = processes[pid]
        part = "driver" if pid == driver else "jvm" if each.name == "java" else "workers"
        memory[part] += each.pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        threads += each.threads
        ticks += each.ticks
        with suppress(OSError):  # it has just ended
            files += len(os.listdir(_PROC / str(pid) / "fd"))
    return Holding(memory["driver"], memory["workers"], memory["jvm"], files, threads, ticks / _TICKS)


def machine_seconds() -> float:
    """The processor time that the whole machine has spent, for whatever process."""
    user, nice, system, _, _, *interrupts = map(int, (_PROC / "stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + sum(interrupts[:2])) / _TICKS


def bytes_below(folder: Path) -> int:
    """The bytes of all files in a folder; those that go meanwhile do not count."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total


def _processes() -> Iterator[tuple[int, _Process]]:
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it has ended
        before, _, after = text.rpartition(")")  # a name may have any character
        fields = after.split()
        ticks = sum(map(int, fields[11:15]))
        name = before.partition("(")[2]
        yield int(stat.parent.name), _Process(name, int(fields[1]), ticks, int(fields[17]), int(fields[21]))
