"""Interval joins, by us and by a peer in turns: photons within a minute of each other, in the same column.

Ours are on a trunk that goes on, and the time is that of a whole trigger with answers committed.
A peer has as many photons in memory, and goes through them from the beginning in each round.

Before anything is timed, the first photons of all pairs are compared one by one, as far as ours have been answered.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.bench.harness.live import LiveTrunk
from anabranch.bench.harness.timing import Rounds, compare
from anabranch.bench.peers.matching import MatchingBench
from anabranch.bench.peers.peer import PeerEngine, PeerFailure
from anabranch.bench.peers.process import PeerProcess
from anabranch.bench.workloads.hopping import values_by_query
from anabranch.bench.workloads.near_pairs import long_files, near_pairs, pairs_in
from anabranch.bench.workloads.photons import source


@dataclass(frozen=True, slots=True)
class JoinScale:
    """How much is measured: photons of a round, numbers of joins, and rounds."""

    items: int
    joins: tuple[int, ...]
    rounds: Rounds


FULL_JOINS = JoinScale(100_000, (1, 10), Rounds(1, 4))
QUICK_JOINS = JoinScale(5_000, (1, 2), Rounds(1, 1))


def joins_beside(bench: MatchingBench, wanted: Sequence[PeerEngine], scale: JoinScale) -> None:
    """Compare joins with the peers that have them, and note ratios, or why there are none."""
    for number in scale.joins:
        asked, folder = near_pairs(number), bench.folder / f"joins-{number}"
        files = long_files(folder / "photons", scale.items)
        queries = {f"j{each}": pairs.query for each, pairs in enumerate(asked)}
        with LiveTrunk(bench.spark, folder / "ours", queries, folder, source("photons", folder)) as trunk:
            first = next(files)
            trunk.feed(first)
            texts = trunk.texts()
            ours = [Counter(round(1_000 * time) for _, _, time, _ in pairs_in(texts[name])) for name in queries]
            for peer in wanted:
                program = bench.program(peer) if peer.joins else None
                if program is None:
                    continue
                print(f"{peer.name}/joins/{number}: adding", file=sys.stderr)
                lines, work = [each.line for each in asked], folder / peer.name
                limits = bench.scale.memory, bench.scale.limits
                try:
                    with PeerProcess(program, first, lines, work, *limits, streamed=peer.joins) as process:
                        check_joins(ours, values_by_query(process.results(scale.items), number), peer.title)
                        _compare(bench, f"{peer.name}/joins/{number}", trunk, files, process, scale)
                except PeerFailure as failure:
                    bench.miss(f"{peer.name}/joins/{number}", failure)


def _compare(
    bench: MatchingBench, name: str, trunk: LiveTrunk, files: Iterator[Path], process: PeerProcess, scale: JoinScale
) -> None:
    found = compare(lambda: trunk.feed(next(files)), lambda: process.run(scale.items), scale.rounds, name)
    bench.ratios[name], bench.spreads[name] = found.ratio, found.figures(scale.items)


def check_joins(ours: Sequence[Counter[int]], theirs: Sequence[Sequence[float]], title: str) -> int:
    """How many pairs there are of which ours are answered; an error where a peer has others."""
    for number, (here, there) in enumerate(zip(ours, theirs, strict=True)):
        known = max(here)
        those = Counter(int(each) for each in there if each <= known)
        assert here == those, f"join {number}: {here.total():,} pairs here, {those.total():,} of {title}"
    return sum(each.total() for each in ours)
