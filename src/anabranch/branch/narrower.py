"""Joins whose pairs are among those of a wider join (selective join result sharing: sharing paper, 5.3.2).

The paper takes the first units of the wider windows; under step semantics the items that enter are the last of them, so
it is the *last* D units that a narrower window holds.
Its window ends where the wider one does only if they have the same step and their sizes differ by a multiple of it.
And it must have settled: until the wider windows are first full, the narrower ones have moved when those had not, and
items that come within the slack may have entered in another order.
From then on a narrower window is the wider one with what is below its start left out, in the same order, for good;
until then, and where the streams end and windows close in the order of what still waits, each moves on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.branch.joins import Pairing, Side
from anabranch.branch.judging import Judge


@dataclass(frozen=True, slots=True)
class Narrower:
    """A pairing that a wider one contains."""

    pairing: Pairing
    shifts: tuple[int, ...]
    """By side: how many positions its window is ahead, which starts that much later and ends at the same place."""

    def follow(self, wider: Pairing) -> None:
        """Become what the wider one, which has moved, says."""
        for side, other, shift in zip(self.pairing.sides, wider.sides, self.shifts, strict=True):
            side.next = other.next + shift
            start = side.extent.start(side.next - 1)
            side.held = [each for each in other.held if each.value >= start]
            side.waiting = {}
            for items in other.waiting.values():
                for each in items:
                    side.wait(each)


@dataclass(frozen=True, slots=True)
class Led:
    """A pairing that moves on its own, and those that it contains."""

    pairing: Pairing
    narrower: list[Narrower]


def led(pairings: Sequence[Pairing], judges: Sequence[Judge]) -> list[Led]:
    """All pairings, each behind the first wide one that contains it."""
    found: list[Led] = []
    for pairing in sorted(pairings, key=lambda each: [-side.extent.size for side in each.sides]):
        for wider in found:
            shifts = _shifts(pairing, wider.pairing, judges)
            if shifts is not None:
                wider.narrower.append(Narrower(pairing, shifts))
                break
        else:
            found.append(Led(pairing, []))
    return found


def _shifts(narrow: Pairing, wide: Pairing, judges: Sequence[Judge]) -> tuple[int, ...] | None:
    found: list[int] = []
    for side, other, judge in zip(narrow.sides, wide.sides, judges, strict=True):
        shift = (other.extent.size - side.extent.size) / side.extent.step
        if side.extent.step != other.extent.step or shift < 0 or shift.denominator != 1:
            return None
        if not _has_settled(side, other, judge, int(shift)):
            return None
        found.append(int(shift))
    return tuple(found)


def _has_settled(side: Side, other: Side, judge: Judge, shift: int) -> bool:
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
