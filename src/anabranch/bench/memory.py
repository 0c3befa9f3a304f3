"""Whether a run stays as small as it is: ten million photons through q1, q2 and q5 of the sharing paper.

`anabranch run` works in a process of its own over files that were written before; once a second we look at what the
driver, its Python workers and the JVM hold in memory (resident pages, as the kernel counts them), and at what the
newest epoch left as state.
Levels are medians: of the second quarter of the run, when everything is warm, of all that comes after the first
quarter, and of the last quarter; `growth` is the last over the second, and 1 where nothing grows.

The answers of q5 are several times as large as its photons: the site keeps the newest hundred epochs only, and epochs
are small, so that there are many of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from anabranch.bench.harness.timing import Figures
from anabranch.bench.workloads.photons import Q1, Q2, Q5, write_files
from anabranch.errors import AnabranchError, UsageError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests

_STREAMS = ("photons", "photon1", "photon2")
_QUERIES = {"q1": Q1, "q2": Q2, "q5": Q5}
_FILE_ITEMS = 100_000
_FILES, _QUICK_FILES = 34, 2
"""The files of each stream: 10.2 million photons in all, or 600,000."""
_EPOCH_BYTES = 4 << 20
_BYTES_PER_ITEM = 500
"""The bytes on disk of a photon with its retained answers."""
_SECONDS = 1.0
_SHOWN_EVERY = 10
"""One in this many samples is shown."""
_PROC = Path("/proc")


def measure(quick: bool) -> Figures:
    """Run the bench."""
    files = _QUICK_FILES if quick else _FILES
    with TemporaryDirectory(prefix="anabranch-bench-") as name:
        folder = Path(name)
        items = len(_STREAMS) * files * _FILE_ITEMS
        _check_machine(folder, items)
        print(f"memory: writing {items:,} photons", file=sys.stderr)
        write_files([folder / "photons"], files, _FILE_ITEMS)
        write_files([folder / "photon1", folder / "photon2"], files, _FILE_ITEMS, seed=2)
        return watched(write_site(folder), items)


def write_site(folder: Path, epoch_bytes: int = _EPOCH_BYTES) -> Path:
    """A site with the three queries over the streams in a folder."""
    lines = ["[engine]", 'checkpoint = "state"', f"epoch_bytes = {epoch_bytes}", "keep = 100", 'log = "log"']
    for stream in _STREAMS:
        lines += [f"[streams.{stream}]", f'path = "{stream}"', 'format = "lines"', 'root = "photons"']
        lines += ['time = "det_time"']
    for name, query in _QUERIES.items():
        (folder / f"{name}.xq").write_text(query, encoding="utf-8")
        lines += [f"[subscriptions.{name}]", f'query = "{name}.xq"']
    site = folder / "site.toml"
    site.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return site


def watched(site: Path, items: int) -> Figures:
    """Run a site to the end of its files, which must have `items` items."""
    log = site.with_name("log")
    manifests = Manifests(Checkpoint.at(site.with_name("state")).manifests)
    samples: list[MemorySample] = []
    with _running(site) as process:
        begun = monotonic()
        while not _ended(process):
            epochs = _epochs(log)
            if epochs:
                states = manifests.load(epochs[-1]["epoch"]).states.values()
                state = sum(each.size for each in states) / 1e3, sum(each.held for each in states)
                samples.append(MemorySample(*resident(process.pid), *state))
                if len(samples) % _SHOWN_EVERY == 1:
                    read = sum(each["items"] for each in epochs)
                    print(f"memory: {read:,} of {items:,} photons, {samples[-1]}", file=sys.stderr)
        seconds = monotonic() - begun
    epochs = _epochs(log)
    read = sum(each["items"] for each in epochs)
    assert read == items, f"{read:,} of {items:,} photons were read"
    assert not any(each["dead_letters"] or each["late_items"] for each in epochs), "photons are good, and in order"
    return {
        "items": items,
        "items_per_second": items / seconds,
        "epochs": len(epochs),
        "answers": sum(each["matched"] for each in epochs),
        **{name: levels([getattr(each, name) for each in samples]) for name in MemorySample.__slots__},
    }


@dataclass(frozen=True, slots=True)
class MemorySample:
    """The memory of the processes, and the size of the state, at one moment."""

    driver_mb: float
    workers_mb: float
    jvm_mb: float
    state_kb: float
    held: float
    """The number of items and panes in the state."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {getattr(self, name):,.0f}" for name in self.__slots__)


def levels(values: Sequence[float]) -> Figures:
    """How high something stood in the course of a run, and by how much it grew once it was warm."""
    quarter = len(values) // 4
    assert quarter, "a run that is over in no time has no levels"
    second, last = median(values[quarter : 2 * quarter]), median(values[-quarter:])
    return {
        "second_quarter": second,
        "median": median(values[quarter:]),
        "last_quarter": last,
        "most": max(values),
        "growth": last / second,
    }


def resident(driver: int, proc: Path = _PROC) -> tuple[float, float, float]:
    """The megabytes of a driver, of the Python processes that it has started, and of its JVM."""
    processes = dict(_processes(proc))
    mine = {driver}
    # A process may have a smaller number than its parent, when numbers have run out and begin anew.
    while more := {pid for pid, (_, parent, _) in processes.items() if parent in mine} - mine:
        mine |= more
    found = {"driver": 0, "workers": 0, "jvm": 0}
    for pid in mine & processes.keys():
        name, _, pages = processes[pid]
        found["driver" if pid == driver else "jvm" if name == "java" else "workers"] += pages
    size = os.sysconf("SC_PAGE_SIZE") / 1e6
    return found["driver"] * size, found["workers"] * size, found["jvm"] * size


def _processes(proc: Path) -> Iterator[tuple[int, tuple[str, int, int]]]:
    """All processes of the machine by number: their name, the number of their parent, and how many pages they hold."""
    for stat in proc.glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it has ended
        before, _, after = text.rpartition(")")  # a name may have any character
        fields = after.split()
        yield int(stat.parent.name), (before.partition("(")[2], int(fields[1]), int(fields[21]))


def _epochs(log: Path) -> list[Mapping[str, Any]]:
    """The lines on epochs that a run has logged so far; a line counts when it is whole."""
    whole = log.read_bytes().rpartition(b"\n")[0] if log.exists() else b""
    return [each for each in map(json.loads, whole.splitlines()) if each["event"] == "epoch"]


@contextmanager
def _running(site: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = Path(sys.executable).with_name("anabranch")
    errors = site.with_name("errors")
    with errors.open("wb") as file:
        process = subprocess.Popen([command, "run", site, "--once"], stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
    if process.returncode != 0:
        raise AnabranchError(f"the run has failed: {errors.read_text(errors='replace').strip()[-2_000:]}")


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait for a second, or for the end."""
    try:
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _check_machine(folder: Path, items: int) -> None:
    if not (_PROC / "self" / "stat").exists():
        raise UsageError("this bench looks at processes as Linux shows them")
    needed = items * _BYTES_PER_ITEM
    if shutil.disk_usage(folder).free < needed:
        hint = "set TMPDIR to a folder with more room"
        raise UsageError(f"'{folder}' has not the {needed / 1e9:.1f} GB that this bench needs", hint=hint)
