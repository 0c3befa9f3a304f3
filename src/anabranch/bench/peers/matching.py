"""Conjunctions of ranges over photons, matched by us and by a peer in turns.

Ours is the time of a whole trigger: finding and reading the file, matching, answers on the disk and the logs.
A peer has its items in memory, and parses and matches them with two threads; then it also writes each match with its
item into files, one for each thread, which are made durable.
A slow peer is given fewer items in a round, so that it takes seconds; what is compared is the time for an item.

Before anything is timed, who matches what among the first photons is compared on both sides with what was found without
any engine (`workloads/conjunctions.py`); then each round is checked to have as many matches as there are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median

from anabranch.bench.harness.live import LiveTrunk
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare
from anabranch.bench.peers.building import JavaProgram, built
from anabranch.bench.peers.peer import PeerEngine, PeerFailure
from anabranch.bench.peers.process import THREADS, PeerProcess
from anabranch.bench.workloads.conjunctions import (
    WIRES,
    Conjunction,
    PhotonLeaves,
    Wire,
    hits,
    photon_source,
    write_photon_lines,
)
from anabranch.bench.workloads.photons import Spark
from anabranch.stream.photons import photons

_ANSWERS = {1: "one", 10: "ten"}
"""The names of numbers of answers in figures."""
_FIRST = 200
"""The items of the first round, which shows how many a peer can be given."""


@dataclass(frozen=True, slots=True)
class MatchingScale:
    """How much is measured."""

    items: int
    numbers: tuple[int, ...]
    """Numbers of conjunctions, in ascending order."""
    answers: tuple[int, ...]
    """How many answers an item has."""
    rounds: Rounds
    checked: int
    """The items of which all matches are compared one by one."""
    memory: str
    """The heap of a peer."""
    limits: tuple[float, float]
    """The seconds that a peer may take to add conjunctions, and for a round."""
    seconds: float
    """About how long a round of a peer takes."""


FULL = MatchingScale(200_000, (1, 100, 10_000, 100_000), (1, 10), Rounds(1, 3), 500, "8g", (300, 120), 2.0)
QUICK = MatchingScale(10_000, (1, 100), (1,), Rounds(1, 1), 100, "3g", (120, 60), 0.5)


@dataclass(slots=True)
class MatchingBench:
    """The figures of all peers that were measured."""

    spark: Spark
    folder: Path
    scale: MatchingScale
    ratios: dict[str, float] = field(default_factory=dict)
    """By peer, workload and number of conjunctions: how many times as fast as the peer we are."""
    spreads: dict[str, Figures] = field(default_factory=dict)
    setups: dict[str, Figures] = field(default_factory=dict)
    """The seconds and bytes of heap that conjunctions take, likewise by peer, workload and number."""
    peers: dict[str, dict[str, float | str | Figures]] = field(default_factory=dict)
    """Versions and settings."""
    missing: dict[str, str] = field(default_factory=dict)
    """By peer, or by what would be a ratio: why there is none."""
    _programs: dict[str, JavaProgram] = field(default_factory=dict)
    _held: dict[str, int] = field(default_factory=dict)
    """By peer: a number of conjunctions that it could not hold."""
    _runs: count[int] = field(default_factory=count)

    def measure(self, wanted: Sequence[PeerEngine]) -> None:
        """Compare all workloads with these peers, as far as they can be had."""
        present = [each for each in wanted if self.program(each) is not None]
        if not present:
            return
        lines = list(photons(self.scale.items, 1))
        leaves = PhotonLeaves(lines)
        for wire in WIRES:
            file, sample = self.folder / f"photons.{wire}", self.folder / f"sample.{wire}"
            write_photon_lines(file, wire, lines)
            write_photon_lines(sample, wire, lines[: self.scale.checked])
            for answers, number in self._workloads():
                asked = leaves.conjunctions(number, answers)
                with self._ours(wire, file, sample, asked, leaves) as trunk:
                    for peer in present:
                        self._beside(peer, f"{wire}-{_ANSWERS[answers]}", trunk, file, asked, leaves)

    def _workloads(self) -> Iterator[tuple[int, int]]:
        """Answers per item, and a number of conjunctions, which has to be as large."""
        for answers in self.scale.answers:
            yield from ((answers, number) for number in self.scale.numbers if number >= answers)

    def program(self, peer: PeerEngine) -> JavaProgram | None:
        """The program of a peer; None where it cannot be built, which is noted."""
        if peer.name in self.missing:
            return None
        if peer.name not in self._programs:
            print(f"fetching and building {peer.title} {peer.version}", file=sys.stderr)
            try:
                self._programs[peer.name] = built(peer, self.folder / "programs" / peer.name)
            except PeerFailure as failure:
                self.miss(peer.name, failure)
                return None
            self.peers[peer.name] = {
                "title": peer.title,
                "version": peer.version,
                "licence": peer.licence,
                "java": self._programs[peer.name].version,
            }
        return self._programs[peer.name]

    @contextmanager
    def _ours(
        self, wire: Wire, file: Path, sample: Path, asked: Sequence[Conjunction], leaves: PhotonLeaves
    ) -> Iterator[LiveTrunk]:
        """A trunk with conjunctions as subscriptions, whose answers over a sample were compared."""
        queries = {f"q{number}": each.query for number, each in enumerate(asked)}
        folder = self.folder / f"ours-{next(self._runs)}"
        with LiveTrunk(self.spark, folder, queries, file, photon_source(folder, wire)) as trunk:
            trunk.feed(sample)
            texts = trunk.texts()
            expected = leaves.answers(asked, self.scale.checked)
            assert [hits(texts[name]) for name in queries] == expected, f"{len(asked):,} conjunctions over {wire}"
            trunk.round()
            assert trunk.answers == leaves.count(asked, self.scale.items), f"{trunk.answers:,} answers"
            yield trunk

    def _beside(
        self,
        peer: PeerEngine,
        workload: str,
        trunk: LiveTrunk,
        file: Path,
        asked: Sequence[Conjunction],
        leaves: PhotonLeaves,
    ) -> None:
        """Compare a trunk with a peer, which has the same conjunctions; or note why not."""
        name, number = f"{peer.name}/{workload}/{len(asked)}", len(asked)
        if number >= self._held.get(peer.name, number + 1):
            self.missing[name] = f"it could not hold {self._held[peer.name]:,}"
            return
        print(f"{name}: adding", file=sys.stderr)
        lines = [each.line for each in asked]
        work, scale = self.folder / f"peer-{next(self._runs)}", self.scale
        process = PeerProcess(self._programs[peer.name], file, lines, work, scale.memory, scale.limits)
        try:
            with process:
                self.peers[peer.name]["settings"] = process.setup.settings
                self.setups[name] = {"seconds": process.setup.seconds, "heap_bytes": process.setup.heap_bytes}
                check_pairs(process, asked, leaves, scale.checked, peer.title)
                modes: Mapping[str, Callable[[int], float]] = {"": process.match, "-written": process.write}
                items = affordable(process.match, scale.items, scale.seconds, peer.batch * THREADS)
                expected = leaves.count(asked, items)
                for suffix, seconds in modes.items():
                    self._compare(f"{peer.name}/{workload}{suffix}/{number}", trunk, seconds, items)
                    assert process.matches == expected, f"{process.matches:,} matches of {peer.title}"
        except PeerFailure as failure:
            self.miss(name, failure)
            if name not in self.setups:
                self._held[peer.name] = number

    def _compare(self, name: str, trunk: LiveTrunk, seconds: Callable[[int], float], items: int) -> Timings:
        """Compare our seconds for all items with a peer's for some of them."""
        part = items / self.scale.items
        found = compare(trunk.round, lambda: seconds(items) / part, self.scale.rounds, name)
        self.ratios[name] = found.ratio
        self.spreads[name] = {**found.figures(self.scale.items), "items_other": items}
        print(f"{name}: {self.scale.items / median(found.second):,.0f} items/s of theirs", file=sys.stderr)
        return found

    def miss(self, name: str, failure: PeerFailure) -> None:
        """Note why a peer, or one of its ratios, is missing."""
        print(f"{name}: {failure}", file=sys.stderr)
        self.missing[name] = str(failure)


def check_pairs(
    process: PeerProcess, asked: Sequence[Conjunction], leaves: PhotonLeaves, items: int, title: str
) -> int:
    """How many pairs match among the first items; an error where a peer finds others than there are."""
    found, expected = process.pairs(items), leaves.pairs(asked, items)
    assert found == expected, f"{title} finds {len(found):,} matches, and there are {len(expected):,}"
    return len(found)


def affordable(seconds_of: Callable[[int], float], items: int, seconds: float, least: int = 1) -> int:
    """How many of some items a peer can match in about so many seconds, and at least what it takes at a time."""
    tried = min(max(_FIRST, least), items)
    while (taken := seconds_of(tried)) < seconds / 4 and tried < items:
        tried = min(items, 4 * tried)
    return min(items, max(least, int(tried * seconds / taken)))
