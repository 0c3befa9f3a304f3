"""Whether the state of a query over updates stays bounded by its regions, however many updates come.

The ticker's query and the keeper of its stream work as branches in a trunk do, epoch after epoch, each opened with the
saved state of the one before, which is written in layers, but in this process and without Spark; the size of a state
counts all that it refers to.
Ten times on the way the bench records the largest state since the last time, the memory of the process, and the time
that the updates have taken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter

from anabranch.bench.harness.timing import Figures
from anabranch.bench.memory import resident
from anabranch.branch import Branch, BranchState, InputStream
from anabranch.branch.display.branch import BranchContext, DisplayBranch, DisplayMember, DisplayQuery
from anabranch.branch.document.keeper import Keeper
from anabranch.branch.intake.entries import FeedOrigin, pack
from anabranch.language import check, parse
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.parse import implied_root, parse_item
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import STREAM_NAMESPACE

RISEN = """
    for $q in stream("tickers")/tickers/ticker
    where $q/quote >= $q/quote#1 * 1.1
    order by ($q/quote - $q/quote#1) div $q/quote
    return <quote>{ $q/name, $q/quote }</quote>"""
"""Query 2 of the history paper, over a ticker whose quotes are replaced again and again."""
_POINTS = 10
_EPOCH = 200
"""The updates of an epoch: some of the regions, so that its layer is small."""


def ticker(number: int, quote: int) -> str:
    """A ticker whose quote can be replaced."""
    region = f'<s:mutable id="{number}"><quote>{quote}</quote></s:mutable>'
    return f'<ticker xmlns:s="{STREAM_NAMESPACE}"><name>T{number}</name>{region}</ticker>'


def replacement(number: int, quote: int, at: int) -> str:
    """A new quote."""
    content = f"<quote>{quote}</quote>"
    return f'<s:replace xmlns:s="{STREAM_NAMESPACE}" target="{number}" at="{at}">{content}</s:replace>'


def ticker_element(text: str, offset: int) -> StreamElement:
    """An element of the stream of tickers."""
    return element_of(parse_item(text.encode(), Limits()), Place("tickers", "bench", offset))


@dataclass(frozen=True, slots=True)
class Point:
    """The sizes and times at one of ten points of the run."""

    updates: int
    state_kb: float
    process_mb: float
    seconds_per_100k: float
    """The seconds per 100,000 updates since the point before."""


@dataclass(frozen=True, slots=True)
class SteadyRun:
    """All points of a run."""

    points: tuple[Point, ...]

    def growth(self, name: str) -> float:
        """The maximum of a field in the second half, over that of the first half without its first point."""
        found: list[float] = [getattr(each, name) for each in self.points]
        half = len(found) // 2
        return max(found[half:]) / max(found[1:half])

    def figures(self) -> Figures:
        """Each point, by the number of updates."""
        names = ("state_kb", "process_mb", "seconds_per_100k")
        return {name: {str(each.updates): getattr(each, name) for each in self.points} for name in names}


def steady(regions: int, updates: int, epoch: int = _EPOCH) -> SteadyRun:
    """Run `updates` updates of random regions, and record ten points on the way."""
    print(f"history: {updates:,} updates to {regions:,} tickers", file=sys.stderr)
    random, at = Random(1), 0
    long = LongRun()
    long.epoch(ticker(each, 100) for each in range(regions))
    points: list[Point] = []
    for number in range(1, _POINTS + 1):
        most, begin, before = 0, perf_counter(), at
        while at < updates * number // _POINTS:
            quotes = [(random.randrange(regions), random.randint(50, 200)) for _ in range(epoch)]
            long.epoch(replacement(*each, at + behind) for behind, each in enumerate(quotes))
            at += epoch
            most = max(most, long.size)
        seconds = (perf_counter() - begin) * 100_000 / (at - before)
        points.append(Point(at, most / 1e3, resident(os.getpid())[0], seconds))
        print(f"history: {points[-1]}", file=sys.stderr)
    return SteadyRun(tuple(points))


@dataclass(slots=True)
class _MemoryStore:
    """A store of spilled state in memory, and a sink that drops answers."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    written: int = 0

    def write(self, data: bytes) -> str:
        self.written += 1
        self.blobs[str(self.written)] = data
        return str(self.written)

    def read(self, ref: str) -> bytes:
        return self.blobs[ref]

    def piece(self, text: str) -> None:
        """Drop an answer."""

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        """Drop answers."""

    def bury(self, letter: DeadLetter) -> None:
        raise AssertionError(f"all updates are good: {letter.reason}")

    def late(self, place: Place) -> None:
        raise AssertionError("updates are not late")


class LongRun:
    """A query over tickers and the keeper of their stream, epoch by epoch."""

    def __init__(self, text: str = RISEN) -> None:
        query = check(parse(text), text, inputs={"tickers": None}, edited={"tickers"}).query
        self._store, self._limits = _MemoryStore(), Limits()
        self._member = DisplayMember("", "asked", DisplayQuery(query, text, ("tickers",)), self._store)
        root = implied_root("tickers")
        source = Source("tickers", Path("tickers"), updates=True)
        reader = partial(ElementReader, "tickers", "lines", self._limits, root)
        self._stream = InputStream(source, root, reader, endless=True)
        self._states: list[bytes | None] = [None, None]
        self._offset = 0

    @property
    def size(self) -> int:
        """The bytes of both states."""
        return sum(map(len, (*(each for each in self._states if each), *self._store.blobs.values())))

    def epoch(self, lines: Iterable[str]) -> None:
        """Run an epoch over some elements, and save the states."""
        feed = pack(FeedOrigin("tickers", 0, "0"), self._cuts(lines))
        ours, keepers = (None if each is None else BranchState.from_bytes(each) for each in self._states)
        given = BranchContext(limits=self._limits)
        branches: list[Branch] = [
            DisplayBranch([self._member], {"tickers": self._stream}, ours, given, self._store),
            Keeper(self._stream, keepers, self._limits, self._store, self._store),
        ]
        for each in branches:
            each.feed(feed)
        saved = [each.save() for each in branches]
        self._states = [None if each is None else each.to_bytes() for each in saved]
        needed = {ref for each in branches for ref in each.spilled}
        self._store.blobs = {ref: data for ref, data in self._store.blobs.items() if ref in needed}

    def _cuts(self, lines: Iterable[str]) -> list[Cut]:
        found: list[Cut] = []
        for each in lines:
            raw = each.encode()
            found.append(Cut(self._offset, self._offset + len(raw), raw))
            self._offset += len(raw) + 1
        return found
