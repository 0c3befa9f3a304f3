"""Tuples of a join that are sent behind an accent: they tell where their items stand among the accents.

A tuple holds items from before and behind an accent at once (LAWS 4).
So its element tells of each item the maps that lead from its values, as they came, to those in the units of the start;
and where the join had taken the item before the latest event, its number among all that the join took:

    <i_i items="12;v=5/9,-160/9"><s><v>25</v></s><u><v>212</v></u></i_i>

A reader brings the values into the units of the start by these, exactly, as the join itself does, and knows by the
numbers which items had been taken when a path was dropped.
A tuple that tells nothing is like the one before it, so behind an accent that all items have followed hardly any does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.branch.held_items import HeldItem
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path
from anabranch.stream.serialize import escape_attribute
from anabranch.stream.tree import Element

_ITEMS = "items"
_OPENING = re.compile(r"<[^\s/>]+")


@dataclass(frozen=True, slots=True)
class MarkedItem:
    """Where an item of a tuple stands: its number among those that the join took, and its maps to the start's units."""

    number: int
    """Larger than any other for an item behind all events."""
    units: Mapping[Path, Affine]


@dataclass(slots=True)
class TupleMarks:
    """Marks the tuples of one epoch."""

    _last: str | None = None

    def of(self, items: Sequence[HeldItem], latest: int) -> str:
        """What a tuple tells of its items; at the latest event `latest` items had been taken."""
        return ";".join(_written(each, latest) for each in items)

    def on(self, text: str, mark: str) -> str:
        """A tuple as text, with what it tells of its items, unless that is the same as of the one before."""
        if mark == self._last:
            return text
        self._last = mark
        opening = _OPENING.match(text)
        assert opening is not None, "a tuple is an element"
        return f'{opening[0]} {_ITEMS}="{escape_attribute(mark)}"{text[opening.end() :]}'


def _written(item: HeldItem, latest: int) -> str:
    number = [str(item.number)] if item.number < latest else []
    return " ".join((*number, *(f"{path}={by.a},{by.b}" for path, by in item.units.items())))


def mark_of(element: Element) -> str | None:
    """What a tuple tells of its items."""
    return element.get(_ITEMS)


def marked_items(mark: str) -> list[MarkedItem]:
    """The items of a tuple that tells of them; ValueError where it is damaged."""
    return [_read(each.split()) for each in mark.split(";")]


def _read(words: Sequence[str]) -> MarkedItem:
    numbers = [int(each) for each in words if "=" not in each]
    maps = (each.partition("=") for each in words if "=" in each)
    units = {Path.parse(path, itself=True): _map(by) for path, _, by in maps}
    return MarkedItem(numbers[0] if numbers else sys.maxsize, units)


def _map(text: str) -> Affine:
    a, _, b = text.partition(",")
    return Affine(Fraction(a), Fraction(b))
