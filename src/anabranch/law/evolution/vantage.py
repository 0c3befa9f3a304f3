"""Vantages: what the values of one partition mean to a query, at the place that it has reached.

The view of a query's start (`runtime/evolution/views.py`) goes on behind the start as accents come.
An item of the place is read in the units of the start, and so is what a punctuation says of items to come (LAWS 4.8).
Which elements are bad is judged once, by the partition's own evolution, and not here.

A punctuation describes raw values at its place.
Where a path has one unit for all items its constants are mapped back, and nothing is lost.
Where it has several, each comparison is taken for what holds in all of them: `t < 10`, when some items count twice as
much, closes `t < 5`; so it may close less than was said, and never more.
That takes time in the length of the description and the number of different units, however many accents there were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.layers import State
from anabranch.algebra.accents.sets import and_above
from anabranch.algebra.reactions.tiling import Tiling
from anabranch.errors import StreamError
from anabranch.logic import EVERYTHING, And, Not, Or
from anabranch.predicate import and_
from anabranch.predicate.writing import number_text
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.description import Comparison, Description
from anabranch.stream.elements import Accent, DeadLetter, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

Units: TypeAlias = frozenset[Affine] | None
"""The units that items have at a path, as maps from that of its start; None where they are unknown."""
NOTHING: Description = Not(EVERYTHING)
_MOST = 100
"""A comparison for a path with more units than this is not written out unit by unit."""
_MOST_PARTS = 2_000
"""Where accents divide the items of a path into more parts than this, its units count as unknown."""


def units_at(path: Path, evolution: Evolution) -> Units:
    """The units that a path has at the place which an evolution has reached, for whichever items carry it."""
    above = and_above(path)
    states: Tiling[State] = Tiling(State(None))
    try:
        for at, layer in evolution.live():
            if at == path or (at in above and not isinstance(layer.change, Affine)):
                states.change(and_(*layer.box), layer.over)
                if len(states) > _MOST_PARTS:
                    return None
    except StreamError:
        return None
    found = {state.unit for state in states.says() if state.carried is not False}
    known = frozenset(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def in_start_units(description: Description, units: Callable[[Path], Units], *, certain: bool = True) -> Description:
    """A description in the units of the start: of the items for which it is `certain` to hold, or else may hold."""
    match description:
        case Comparison():
            return _compared(description, units(description.path), certain=certain)
        case And(parts):
            return And(tuple(in_start_units(part, units, certain=certain) for part in parts))
        case Or(parts):
            return Or(tuple(in_start_units(part, units, certain=certain) for part in parts))
        case Not(part):
            return Not(in_start_units(part, units, certain=not certain))


def _compared(comparison: Comparison, units: Units, *, certain: bool) -> Description:
    if units is not None and units <= {IDENTITY}:
        return comparison
    unclear: Description = NOTHING if certain else EVERYTHING
    constant = comparison.constant
    if units is None or isinstance(constant, str):
        return unclear
    values = {unit.inverse()(Fraction(constant)) for unit in units}
    match comparison.op:
        case "<" | "<=":
            return _with(comparison, min(values) if certain else max(values))
        case ">" | ">=":
            return _with(comparison, max(values) if certain else min(values))
        case op if len(values) == 1 or ((op == "!=") == certain and len(values) <= _MOST):
            every = tuple(_with(comparison, value) for value in sorted(values))
            return every[0] if len(every) == 1 else And(every) if certain else Or(every)
        case _:
            return unclear


def _with(comparison: Comparison, value: Fraction) -> Comparison:
    """A comparison with another constant, which is a decimal where it can be."""
    written = number_text(value)
    return replace(comparison, constant=value if " div " in written else Decimal(written))


Change: TypeAlias = Accent | DeadLetter
"""What changes the state of paths: a valid accent, or one that was set aside and leaves paths in doubt (LAWS 4.5)."""


class Vantage:
    """One partition as a query sees it.

    A change goes through `take`; a caller that applies one to the evolution itself calls `forget_units`.
    """

    def __init__(self, evolution: Evolution) -> None:
        self.evolution = evolution
        self._known: dict[Path, Units] = {}
        self._has_changed = bool(evolution.live())

    def take(self, event: Change | Punctuation) -> None:
        """Apply a change, or a punctuation, which matters only behind changes."""
        if self._has_changed or not isinstance(event, Punctuation):
            judged(event, self.evolution)
            self._has_changed = True
            self.forget_units()

    def forget_units(self) -> None:
        """Drop the cached units of paths, because the evolution has changed."""
        self._known.clear()

    def units(self, tree: Element) -> Mapping[Path, Affine]:
        """The maps that lead from an item's values to those in the units of the start, where these are others."""
        units = self.evolution.units(tree)
        return {path: unit.inverse() for path, unit in units.items()} if units else units

    def told(self, punctuation: Punctuation) -> Punctuation:
        """A punctuation that was taken, with its description in the units of the start."""
        if punctuation.where is None:
            return punctuation
        return replace(punctuation, where=in_start_units(punctuation.where, self._units))

    def _units(self, path: Path) -> Units:
        if path not in self._known:
            self._known[path] = units_at(path, self.evolution)
        return self._known[path]
