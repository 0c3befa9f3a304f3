"""Joins whose pairs are among those of a wider join (selective join result sharing: sharing paper, 5.3.2).

The paper takes the first units of the wider windows; under step semantics the items that enter are the last of them, so
it is the *last* D units that a narrower window holds.
Its window ends where the wider one does only if they have the same step and their sizes differ by a multiple of it.
And it must have settled: until the wider windows are first full, the narrower ones have moved when those had not, and
items that come within the slack may have entered in another order.
From then on a narrower window is the wider one with what is below its start left out, in the same order, for good;
until then, and where the streams end and windows close in the order of what still waits, each moves on its own.

Windows that nobody has asked for are not made: where neither of two joins is the wider one on both sides, a third that
is would have more pairs than it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.algebra.window import Extent
from anabranch.branch.joins.step_join import Pairing, Side, StepJoin
from anabranch.branch.windows.selection import WindowSelection

_LOOKED_AT = 16
"""How many wide pairings are looked at for each, so that thousands cost no more than thousands of times one."""


@dataclass(frozen=True, slots=True)
class Narrower:
    """A pairing that a wider one contains."""

    pairing: Pairing
    shifts: tuple[int, ...]
    """By side: how many positions its window is ahead, which starts that much later and ends at the same place."""


@dataclass(frozen=True, slots=True)
class Led:
    """A pairing that moves on its own, and those that it contains."""

    pairing: Pairing
    narrower: list[Narrower]


class Leaders:
    """Finds for each pairing the wide one that contains it; who has settled once need not be looked at again."""

    def __init__(self, operator: StepJoin) -> None:
        self._pairings = operator.pairings
        self._judges = operator.judges
        self._settled: set[tuple[str, str]] = set()
        self._grids: dict[tuple[tuple[Fraction, Fraction], ...], list[Pairing]] = {}
        """Pairings whose windows end at the same places, the wide ones first."""
        for pairing in sorted(self._pairings, key=lambda each: [-side.extent.size for side in each.sides]):
            extents = (side.extent for side in pairing.sides)
            grid = tuple((extent.step, extent.size % extent.step) for extent in extents)
            self._grids.setdefault(grid, []).append(pairing)

    def apart(self) -> list[Led]:
        """All pairings, each on its own."""
        return [Led(each, []) for each in self._pairings]

    def led(self) -> list[Led]:
        """All pairings, each behind a wide one that contains it."""
        return [each for pairings in self._grids.values() for each in self._led(pairings)]

    def _led(self, pairings: Sequence[Pairing]) -> list[Led]:
        found: list[Led] = []
        for pairing in pairings:
            for wider in found[:_LOOKED_AT]:
                shifts = self._shifts(pairing, wider.pairing)
                if shifts is not None:
                    wider.narrower.append(Narrower(pairing, shifts))
                    break
            else:
                found.append(Led(pairing, []))
        return found

    def _shifts(self, narrow: Pairing, wide: Pairing) -> tuple[int, ...] | None:
        found = shifts([side.extent for side in narrow.sides], [side.extent for side in wide.sides])
        names = narrow.name, wide.name
        if found is not None and names not in self._settled:
            sides = zip(narrow.sides, wide.sides, self._judges, found, strict=True)
            if not all(_has_settled(*each) for each in sides):
                return None
            self._settled.add(names)
        return found


def shifts(narrow: Sequence[Extent], wide: Sequence[Extent]) -> tuple[int, ...] | None:
    """By how many positions windows are ahead of wider ones that end where they do; None where those do not."""
    found: list[int] = []
    for one, other in zip(narrow, wide, strict=True):
        shift = (other.size - one.size) / one.step
        if one.step != other.step or shift < 0 or shift.denominator != 1:
            return None
        found.append(int(shift))
    return tuple(found)


def _has_settled(side: Side, other: Side, judge: WindowSelection, shift: int) -> bool:
    following = max(side.next, judge.first_window(side.extent))
    if following != max(other.next, judge.first_window(other.extent)) + shift:
        return False
    start = side.extent.start(following - 1)
    if [each.key for each in side.held] != [each.key for each in other.held if each.value >= start]:
        return False
    waiting: dict[int, list[tuple[int, int]]] = {}
    for position, items in other.waiting.items():
        start = side.extent.start(position + shift)
        if keys := [each.key for each in items if each.value >= start]:
            waiting[position + shift] = keys
    return waiting == {position: [each.key for each in items] for position, items in side.waiting.items()}
