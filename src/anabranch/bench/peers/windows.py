"""Windows of event time, 80 different ones, by us and by a peer in turns.

Ours are on a trunk, and the time is that of a whole trigger with answers committed.
A peer has all photons in memory, parses them and goes through its windows; neither its start nor a file is counted.
Both go through the photons from the beginning in each round, to the end of all windows.

Before anything is timed, the values of all windows are compared one by one, to nine digits: peers add doubles up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from shutil import rmtree

from anabranch.bench.harness.epochs import Trials, of_trunk
from anabranch.bench.harness.timing import Rounds, compare
from anabranch.bench.peers.matching import MatchingBench
from anabranch.bench.peers.peer import PeerEngine, PeerFailure
from anabranch.bench.peers.process import PeerProcess
from anabranch.bench.workloads.conjunctions import PhotonLeaves
from anabranch.bench.workloads.hopping import HoppingWindow, hopping_windows, values_by_query, window_values
from anabranch.bench.workloads.photons import source, write_files

_FILES = 3


@dataclass(frozen=True, slots=True)
class WindowScale:
    """How much is measured: photons of each of some files, windows, and rounds."""

    items: int
    windows: int
    rounds: Rounds


FULL_WINDOWS = WindowScale(100_000, 80, Rounds(1, 4))
QUICK_WINDOWS = WindowScale(5_000, 8, Rounds(1, 1))


def windows_beside(bench: MatchingBench, wanted: Sequence[PeerEngine], scale: WindowScale) -> None:
    """Compare windows with the peers that have them, and note ratios, or why there are none."""
    folder, whole = bench.folder / "windows", bench.folder / "windows.xml"
    write_files([folder], _FILES, scale.items)
    lines = [line for file in sorted(folder.iterdir()) for line in file.read_text("utf-8").splitlines()]
    whole.write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")
    asked = hopping_windows(PhotonLeaves(lines), scale.windows)
    queries = {f"w{number}": each.query for number, each in enumerate(asked)}
    ours = _answers(bench, folder, queries)
    trials = Trials(bench.spark, bench.folder / "window-trials")
    for peer in wanted:
        program = bench.program(peer) if peer.windows else None
        if program is None:
            continue
        name, work = f"{peer.name}/windows/{scale.windows}", bench.folder / f"windows-{peer.name}"
        given = [each.line for each in asked], work, bench.scale.memory, bench.scale.limits
        print(f"{name}: adding", file=sys.stderr)
        try:
            with PeerProcess(program, whole, *given, streamed=peer.windows) as process:
                check_windows(asked, ours, values_by_query(process.results(len(lines)), len(asked)), peer.title)
                found = compare(
                    lambda: trials.ours([source("photons", folder)], queries),
                    lambda: process.run(len(lines)) / _FILES,
                    scale.rounds,
                    name,
                )
        except PeerFailure as failure:
            bench.miss(name, failure)
            continue
        bench.ratios[name], bench.spreads[name] = found.ratio, found.figures(scale.items)


def _answers(bench: MatchingBench, folder: Path, queries: dict[str, str]) -> list[list[float]]:
    work = bench.folder / "window-answers"
    _, outcome = of_trunk(bench.spark, [source("photons", folder)], queries, work)
    found = [window_values("".join(outcome.answers[name])) for name in queries]
    rmtree(work)
    return found


def check_windows(
    asked: Sequence[HoppingWindow], ours: Sequence[list[float]], theirs: Sequence[list[float]], title: str
) -> None:
    """Fail where a peer has other windows than we have, or other values in them."""
    for each, here, there in zip(asked, ours, theirs, strict=True):
        assert len(here) == len(there), f"{len(here):,} windows here, {len(there):,} of {title}: {each.line}"
        for value, other in zip(here, there, strict=True):
            assert isclose(value, other, rel_tol=1e-9), f"{value} here, {other} of {title}: {each.line}"
