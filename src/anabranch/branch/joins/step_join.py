"""The step join: LAWS 3.5 (sharing paper, 5.1.1), item by item.

Every `for` of the join is a *side* with a window of its own.
Items wait until their window moves to the first position that has them; items that enter by a movement meet what the
other windows hold at that moment, and only then are they held themselves.
A window moves through empty positions too and drops what it leaves behind.
Movements without entering items have no effect, so they are made in one go, however many they are.

Several queries over the same sources are one operator (sharing paper, 5.3.2).
Items are judged once, and every window refers to the same ones (SELECTWINDOWS, fused with its join, so that overlaps
are not delivered twice).
Queries whose windows are all equal are one *pairing*: entering items and their partners are found once, and each query
answers them (full join result sharing).
Windows that differ move on their own, which costs little beside the shared items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import pyarrow as pa

from anabranch.algebra.window import EARLIEST, Extent
from anabranch.branch.futures import NEVER, digest, node_since
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf, placed_tables
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.members import Asker, Everyone
from anabranch.branch.windows.selection import WindowSelection
from anabranch.language import ast
from anabranch.law.rounds.windows import Reach, extent_of


class JoinWindow:
    """One window of the join. `next` is the position that it moves to next."""

    def __init__(self, extent: Extent) -> None:
        self.extent = extent
        self.next = EARLIEST
        self.waiting: dict[int, list[HeldNode]] = {}
        """The waiting items, by the position at which they enter."""
        self.held: list[HeldNode] = []

    def wait(self, item: HeldNode) -> None:
        """Add a waiting item; one that stands between two windows is in none."""
        position = max(self.next, self.extent.first(item.value))
        if self.extent.start(position) <= item.value:
            self.waiting.setdefault(position, []).append(item)

    def movements_to(self, reached: Reach) -> Iterator[list[HeldNode]]:
        """The items that enter by each of the movements up to `reached`."""
        while self.waiting and self.extent.end(position := min(self.waiting)) <= reached:
            entering = self.waiting.pop(position)
            self._let_go(position)
            self.held += entering
            self.next = position + 1
            yield entering
        if isinstance(reached, float):  # infinity: no later position can hold anything
            self.held = []
        elif self.extent.end(self.next) <= reached:
            self.next = self.extent.behind(reached)
            self._let_go(self.next - 1)

    def closing(self) -> Fraction | None:
        """The end of the first window with a waiting item."""
        return self.extent.end(min(self.waiting)) if self.waiting else None

    def all(self) -> list[HeldNode]:
        return [*self.held, *(each for items in self.waiting.values() for each in items)]

    @property
    def count(self) -> int:
        """How many items it holds."""
        return len(self.held) + sum(map(len, self.waiting.values()))

    def placed(self) -> Iterator[tuple[HeldNode, int | None]]:
        """The items for the state, in order, each with the position where it waits to enter, if it does."""
        yield from ((each, None) for each in self.held)
        for position, items in self.waiting.items():
            yield from ((each, position) for each in items)

    def since(self, following: int, taken: int, base: Fraction) -> tuple[list[Any], list[Any]]:
        """What it holds and what waits, for a future in which it moves to the position `following` next.

        Values count from `base` on, positions from the next one.
        """
        held = [each for each in self.held if each.value >= self.extent.start(following - 1)]
        waiting = [
            [position - following, [node_since(each, taken, base) for each in items]]
            for position, items in sorted(self.waiting.items())
        ]
        return [node_since(each, taken, base) for each in held], waiting

    def restore(self, item: HeldNode, position: int | None) -> None:
        """Restore the next item from `placed`."""
        if position is None:
            self.held.append(item)
        else:
            self.waiting.setdefault(position, []).append(item)

    def _let_go(self, position: int) -> None:
        start = self.extent.start(position)
        self.held = [each for each in self.held if each.value >= start]


class Pairing:
    """The windows of a join, and the queries with exactly these windows."""

    def __init__(self, extents: Sequence[Extent], askers: Sequence[Asker]) -> None:
        self.sides = [JoinWindow(extent) for extent in extents]
        self.askers = askers
        self.name = " ".join(f"{extent.size}:{extent.step}" for extent in extents)
        """Identifies its windows."""

    def move(self, number: int, reached: Reach) -> None:
        """Move a window as far as it may; entering items meet what the others hold."""
        for entering in self.sides[number].movements_to(reached):
            contents = [entering if each == number else side.held for each, side in enumerate(self.sides)]
            for found in product(*contents):
                nodes = [each.node for each in found]
                for asker in self.askers:
                    asker.answers.give(found[0].kept, found, partial(asker.tuple, found, nodes))

    def finish(self, timed: Sequence[int]) -> None:
        """Close the windows with waiting items in order of their ends, ties to the first `for`."""
        while ends := [(end, each) for each in timed if (end := self.sides[each].closing()) is not None]:
            end, number = min(ends)
            self.move(number, end)


class StepJoin:
    """The operator for several windowed `for`s."""

    def __init__(self, askers: Sequence[Asker], shelf: Shelf) -> None:
        self._shelf = shelf
        self.everyone = Everyone(askers)
        first = askers[0].standing
        self.judges = [WindowSelection(number, first, shelf, self.everyone) for number in range(len(first.fors))]
        found: dict[tuple[Extent, ...], list[Asker]] = {}
        for asker in askers:
            found.setdefault(tuple(self._extents(asker)), []).append(asker)
        self.pairings = [Pairing(extents, those) for extents, those in found.items()]

    def _extents(self, asker: Asker) -> Iterator[Extent]:
        """The windows of a query."""
        for clause, judge in zip(asker.standing.fors, self.judges, strict=True):
            assert isinstance(clause.window, ast.CountWindow | ast.TimeWindow), "sessions are refused in joins"
            yield extent_of(clause.window, judge.scale)

    def item(self, kept: HeldItem) -> None:
        """Take the next item: it goes to each `for` over its stream, in order."""
        for number, judge in enumerate(self.judges):
            if judge.stream == kept.stream.name:
                for held in judge.item(kept):
                    if held is not None:
                        for pairing in self.pairings:
                            side = pairing.sides[number]
                            side.next = max(side.next, judge.first_window(side.extent))
                            side.wait(held)
                    self._move(number, judge.reached)

    def signal(self, signal: StreamSignal) -> None:
        """Apply a punctuation; the end of a partition moves nothing, for the others may go on."""
        for number, judge in enumerate(self.judges):
            if judge.stream == signal.stream.name and signal.punctuation is not None:
                judge.signal(signal)
                self._move(number, judge.reached)

    def finish(self) -> None:
        """The inputs have ended."""
        timed = [number for number, judge in enumerate(self.judges) if judge.timed]  # partial count windows never close
        for pairing in self.pairings:
            pairing.finish(timed)

    def _move(self, number: int, reached: Reach | None) -> None:
        if reached is not None:
            for pairing in self.pairings:
                pairing.move(number, reached)

    # --- between epochs -----------------------------------------------------------------------------------

    def future(self, asker: Asker) -> str:
        """The future of one query (`branch/futures.py`)."""
        (pairing,) = (each for each in self.pairings if any(one is asker for one in each.askers))
        found: list[Any] = []
        for side, judge in zip(pairing.sides, self.judges, strict=True):
            following = judge.following(side.extent, side.next)
            if following is None:
                return NEVER
            base, number = (Fraction(0), following) if judge.timed else (side.extent.start(following), 0)
            found.append([number, judge.future(int(base)), *side.since(following, self._shelf.taken, base)])
        return digest(*found)

    def held(self) -> list[HeldNode]:
        """All nodes that the branch holds."""
        return [each for pairing in self.pairings for side in pairing.sides for each in side.all()]

    def loads(self) -> Iterator[tuple[Sequence[Asker], int]]:
        """How many nodes queries hold."""
        return ((each.askers, sum(side.count for side in each.sides)) for each in self.pairings)

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The rest of the state."""
        meta = {
            "judges": [judge.save() for judge in self.judges],
            "next": {pairing.name: [side.next for side in pairing.sides] for pairing in self.pairings},
        }
        sides = ((pairing.name, side) for pairing in self.pairings for side in pairing.sides)
        return meta, placed_tables((name, *each) for name, side in sides for each in side.placed())

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Restore from `save`; items that only removed queries held are dropped."""
        for judge, saved in zip(self.judges, meta["judges"], strict=True):
            judge.restore(saved)
        pairings = {pairing.name: pairing for pairing in self.pairings}
        for name, pairing in pairings.items():
            for side, following in zip(pairing.sides, meta["next"].get(name, ()), strict=False):
                side.next = following
        for name, held, position in self._shelf.placed(tables):
            if name in pairings:
                pairings[name].sides[held.clause].restore(held, position)
