"""The units in which the display of a query over edited streams is shown (LAWS 4.9 e).

A query is evaluated in the units of its start, as ever.
Its display has one unit at each of its paths; the outermost elements are its items, so that a path begins below them.
An alter that comes out changes the unit of a path for all that is on display, at one moment, and is told there; what
would be shown in the units of the start is brought forward by all alters that were told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch.law.construct import append_values
from anabranch.law.evolution.canonical import remeasured
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.elements import Accent, Alter, Doubt
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, Name, string_value
from anabranch.values.atomic import Untyped
from anabranch.values.numbers import read_fraction, write_fraction
from anabranch.values.sequences import NODES, Value, Values


def alters_in(accents: Iterable[Accent | Doubt]) -> tuple[Alter, ...]:
    """The alters among the accents of an answer: a display tells no others, for it shows what was there before."""
    return tuple(each.evolution for each in accents if isinstance(each, Accent) and isinstance(each.evolution, Alter))


@dataclass(slots=True)
class DisplayUnits:
    """The units of a display that differ from those of the query's start; `alter` changes them."""

    maps: dict[Path, Affine] = field(default_factory=dict)
    """By path, as maps from the unit of the start."""

    def alter(self, alters: Iterable[Alter]) -> None:
        """Change the units of some paths."""
        for each in alters:
            unit = self.maps.pop(each.path, IDENTITY).then(each.by)
            if unit != IDENTITY:
                self.maps[each.path] = unit

    def save(self) -> list[Any]:
        """The units as plain data."""
        return [[list(path.steps), write_fraction(by.a), write_fraction(by.b)] for path, by in self.maps.items()]

    def restore(self, data: Iterable[Any]) -> bool:
        """Take the units that `save` gave; whether these are others."""
        before, self.maps = (
            self.maps,
            {Path(tuple(steps)): Affine(read_fraction(a), read_fraction(b)) for steps, a, b in data},
        )
        return self.maps != before

    def forward(self, values: Values) -> Values:
        """All that is on display, given in the units of the start."""
        return [_remeasured(each, self.maps) for each in values] if self.maps else values

    def forward_inside(self, steps: tuple[str, ...], values: Values) -> Values:
        """The same for a part of the display: what stands at one place in an element.

        `steps` lead from the outermost element to this one.
        """
        found: Values = []
        for each in values:
            below = (*steps, str(each.name)) if isinstance(each, Element) else steps
            maps = {
                Path(path.steps[len(below) :]): by
                for path, by in self.maps.items()
                if path.steps[: len(below)] == below and isinstance(each, Element)
            }
            found.append(_remeasured(each, maps))
        own = self.maps.get(Path(steps))
        return found if own is None or any(isinstance(each, NODES) for each in values) else _text(values, own)


def _remeasured(value: Value, maps: Mapping[Path, Affine]) -> Value:
    return remeasured(value, maps) if maps and isinstance(value, Element) else value


def _text(values: Values, by: Affine) -> Values:
    """Values that are the text of an element, in another unit."""
    around = Element(Name("carrier"))
    append_values(around, values)
    text = string_value(remeasured(around, {Path(()): by}))
    return [Untyped(text)] if text else []
