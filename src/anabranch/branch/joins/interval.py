"""The interval join of endless streams: pairs are answered as soon as no earlier pair can come.

It uses declared times, compared by the condition (figure 11 of the sharing paper), to know what may still come.
Tuples come in the order of nested loops, so the items of the first `for` wait in their order, each until all other
streams are beyond its interval; an item of another stream is dropped when no item of the first can meet it any more.
Tuples that lie further apart are not evaluated: their condition is false.

Items whose time is no number, and late items, are in no tuple (LAWS 3.2): their partners may have been dropped.

Several queries over the same sources are one operator: an item is held once, as long as the query with the widest
interval needs it, and each query answers for itself, as early as it would alone.

Bounds hold in exact numbers, and conditions compute in doubles, so an interval is widened by far more than the sum of
its roundings, which the size of the numbers limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby, product
from typing import Any

import pyarrow as pa

from anabranch.branch.futures import NEVER, digest, node_since
from anabranch.branch.held_items import HELD, HeldItem, HeldNode, Shelf
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.members import Asker, Everyone
from anabranch.branch.windows.selection import WindowProgress
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.intervals import Bound
from anabranch.language.rewrite import parts
from anabranch.law.paths import base_of
from anabranch.law.rounds.joins import declared_time
from anabranch.law.rounds.windows import Reach
from anabranch.runtime.standing import Standing, declared_bounds
from anabranch.stream.cover import passed
from anabranch.stream.path import Path
from anabranch.values.numbers import read_digits

ROUNDING_BITS = 40  # a double is exact to one part in 2**53


def bounds_of(standing: Standing, times: Mapping[str, Path | None], *, endless: bool) -> tuple[Bound, ...]:
    """The bounds that let a join be answered before its streams end; none where it has to wait.

    `times` are the time paths of its streams; for finite streams it waits.
    """
    return declared_bounds(standing, times) if endless else ()


def streams_of(standing: Standing) -> list[str]:
    """The streams of a query's `for`s, one each."""
    sources = (base_of(clause.source) for clause in standing.fors)
    return [source.name for source in sources if isinstance(source, ast.Source)]


class IntervalQuery:
    """One query of the join: its intervals, and its progress."""

    def __init__(self, asker: Asker, times: Mapping[str, Path | None]) -> None:
        self.asker = asker
        self.reach = _reach(asker.standing, bounds_of(asker.standing, times, endless=True))
        self.done = 0
        """The number of waiting items of the first `for` that are answered."""
        written = (each for each in parts(asker.standing.flwor.where) if isinstance(each, ast.Number))
        numbers = (read_digits(each.text) for each in written)  # an exponent beyond all limits bounds nothing
        self.size = sum((abs(Fraction(each)) for each in numbers if each.is_finite()), Fraction(0))
        """The sum of the numbers that its condition computes with."""

    def advance(self, sides: Sequence[Sequence[HeldNode]], reached: Sequence[Reach | None]) -> None:
        """Answer for the items of the first `for` that can meet nothing new."""
        for first in sides[0][self.done :]:
            borders = [first.value + above + self._margin(first) for _, above in self.reach]
            if any(each is None or each <= border for each, border in zip(reached[1:], borders, strict=True)):
                break
            self._meet(first, sides[1:])
            self.done += 1

    def _meet(self, first: HeldNode, others: Sequence[Sequence[HeldNode]]) -> None:
        """Answer all tuples of one item of the first `for`."""
        margin = self._margin(first)
        near = [
            [each for each in side if first.value - below - margin <= each.value <= first.value + above + margin]
            for side, (below, above) in zip(others, self.reach, strict=True)
        ]
        # the tuples of one item are answered all or none
        for _, unit in groupby(product([first], *near), key=lambda found: (found[:-1], found[-1].kept)):
            found = list(unit)
            makes = [partial(self.asker.tuple, each, [held.node for held in each]) for each in found]
            self.asker.answers.give(found[0][-1].kept, [held for each in found for held in each], *makes)

    def least(self, outer: Sequence[HeldNode], reached: Reach) -> Reach:
        """The least value of an item of the first `for` that is not yet answered."""
        return min((reached, *(each.value for each in outer[self.done :])))

    def needs(self, number: int, held: HeldNode, least: Reach) -> bool:
        """Whether an item of the `for` with this number may still be met."""
        below, _ = self.reach[number - 1]
        return held.value + below + self._margin(held) >= least

    def _margin(self, held: HeldNode) -> Fraction:
        return (len(self.reach) + 1) * (abs(held.value) + self.size) / (1 << ROUNDING_BITS)


class IntervalJoin:
    """The operator for several `for`s without windows."""

    def __init__(self, askers: Sequence[Asker], shelf: Shelf) -> None:
        self._shelf = shelf
        self.everyone = Everyone(askers)
        self.streams = [shelf.inputs[name] for name in streams_of(askers[0].standing)]
        slacks = (each.source.scale(each.source.time).slack for each in self.streams)
        self.progress = [WindowProgress(*each) for each in zip(self.streams, slacks, strict=True)]
        self.sides: list[list[HeldNode]] = [[] for _ in self.streams]
        self._forget_at = 64  # the size at which to look for droppable items
        times = {stream.name: stream.source.time for stream in self.streams}
        self.asked = [IntervalQuery(asker, times) for asker in askers]

    def item(self, kept: HeldItem) -> None:
        """Take the next item: it goes to each `for` over its stream, in order."""
        for number, stream in enumerate(self.streams):
            if stream.name == kept.entry.origin.stream:
                self.sides[number] += self._judged(number, kept)
        self._advance()

    def _judged(self, number: int, kept: HeldItem) -> Iterator[HeldNode]:
        """The nodes that one `for` selects of an item that is not late."""
        found = kept.candidates(number)
        if found.error is not None:
            self.everyone.bury(kept, found.error)
        selected = [index for index, each in enumerate(found.nodes) if each.selected]
        path = self.streams[number].source.time
        assert path is not None
        try:
            time = declared_time(kept.item.tree, path)
        except DynamicError as error:
            if selected:
                self.everyone.bury(kept, error)
            return
        if self.progress[number].is_late(kept.entry.origin.partition, time):
            self.everyone.late(kept)
        else:
            yield from (HeldNode(time, kept, number, index) for index in selected)

    def signal(self, signal: StreamSignal) -> None:
        """Apply a punctuation or the end of a partition."""
        for progress, stream in zip(self.progress, self.streams, strict=True):
            if stream.name == signal.stream.name:
                value: Reach | None = math.inf
                if signal.punctuation is not None:
                    value = passed(signal.punctuation, stream.source.time, stream.source.time)
                if value is not None:
                    progress.passed(signal.partition, value)
        self._advance()

    def finish(self) -> None:
        """The inputs have ended, and the signals of their ends were applied."""

    def _advance(self) -> None:
        """Answer what can be answered, and drop what all queries are done with."""
        reached = [progress.reached for progress in self.progress]
        for each in self.asked:
            each.advance(self.sides, reached)
        self.sides[0] = self.sides[0][self.all_done() :]
        if sum(map(len, self.sides)) > self._forget_at:
            self._forget()
            self._forget_at = 2 * sum(map(len, self.sides)) + 64

    def all_done(self) -> int:
        """How many items of the first `for` all queries are done with, which the caller drops."""
        done = min(each.done for each in self.asked)
        for each in self.asked:
            each.done -= done
        return done

    def _forget(self) -> None:
        """Drop the items that no item of the first `for` can meet any more, in the widest interval."""
        reached = self.progress[0].reached
        if reached is None:
            return
        asked = [(each, each.least(self.sides[0], reached)) for each in self.asked]
        for number, side in enumerate(self.sides[1:], 1):
            self.sides[number] = [
                held for held in side if any(each.needs(number, held, least) for each, least in asked)
            ]

    # --- between epochs -----------------------------------------------------------------------------------

    def future(self, asker: Asker) -> str:
        """The future of one query (`branch/futures.py`): what it alone would hold."""
        now, reached = [each.now for each in self.progress], self.progress[0].reached
        if any(each is None for each in now) or reached is None:
            return NEVER
        (asked,) = (each for each in self.asked if each.asker is asker)
        least = asked.least(self.sides[0], reached)
        outer, *others = self.sides
        needed = [[each for each in side if asked.needs(at, each, least)] for at, side in enumerate(others, 1)]
        taken = self._shelf.taken
        return digest(now, [[node_since(each, taken) for each in side] for side in (outer[asked.done :], *needed)])

    def held(self) -> list[HeldNode]:
        """All nodes that the branch holds."""
        return [each for side in self.sides for each in side]

    def loads(self) -> Iterator[tuple[Sequence[Asker], int]]:
        """How many nodes queries hold: those that they may still meet, where that has to be known exactly."""
        most, reached = sum(map(len, self.sides)), self.progress[0].reached
        if reached is None or most <= self.asked[0].asker.answers.room:
            yield [each.asker for each in self.asked], most
            return
        for each in self.asked:
            least = each.least(self.sides[0], reached)
            others = ((number, held) for number, side in enumerate(self.sides[1:], 1) for held in side)
            needed = sum(each.needs(number, held, least) for number, held in others)
            yield [each.asker], len(self.sides[0]) - each.done + needed

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The rest of the state."""
        self._forget()
        table = pa.Table.from_pylist([each.row() for each in self.held()], schema=HELD)
        done = {each.asker.key: each.done for each in self.asked}
        return {"sides": [progress.save() for progress in self.progress], "done": done}, {"held": table}

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Restore from `save`."""
        for progress, saved in zip(self.progress, meta["sides"], strict=True):
            progress.restore(saved)
        for each in self.asked:
            each.done = meta["done"].get(each.asker.key, 0)
        for row in tables["held"].to_pylist():
            self.sides[row["clause"]].append(self._shelf.held(row))


def _reach(standing: Standing, bounds: Sequence[Bound]) -> list[tuple[Fraction, Fraction]]:
    """For each `for` after the first: how far below and above an item of the first its items may lie."""
    names = [clause.variable for clause in standing.fors]
    most: dict[tuple[str, str], Fraction] = {}
    for bound in bounds:
        pair = bound.left.variable, bound.right.variable
        most[pair] = min(bound.most, most.get(pair, bound.most))
    for middle, left, right in product(names, repeat=3):  # bounds add up along a path of comparisons
        if (left, middle) in most and (middle, right) in most:
            way = most[left, middle] + most[middle, right]
            most[left, right] = min(way, most.get((left, right), way))
    return [(most[names[0], other], most[other, names[0]]) for other in names[1:]]
