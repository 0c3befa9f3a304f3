"""What a description says of values in the units of the start (LAWS 4.8): of as many items as that is certain for.

A punctuation speaks of raw values at its place.
Where a path has one unit for all items its constants are mapped back, and nothing is lost.
Where it has several, each comparison is taken for what holds in all of them: `t < 10`, when some items count twice as
much, closes `t < 5`; so what is told may close less than was said, and never more.
That takes time in the length of the description and the number of different units, however many accents have led there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

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
from anabranch.stream.path import Path

Units: TypeAlias = frozenset[Affine] | None
"""The units that items have at a path, as maps from that of its start; None where they are unknown."""
NOTHING: Description = Not(EVERYTHING)
_MOST = 100
"""More units than these are not told one by one."""
_MOST_PARTS = 2_000
"""Into more parts than these items are not divided to know them; then they are unknown."""


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


def told(description: Description, units: Callable[[Path], Units], *, certain: bool = True) -> Description:
    """A description by the values of the start: of items for which it holds, or else of all for which it may hold."""
    match description:
        case Comparison():
            return _compared(description, units(description.path), certain=certain)
        case And(parts):
            return And(tuple(told(part, units, certain=certain) for part in parts))
        case Or(parts):
            return Or(tuple(told(part, units, certain=certain) for part in parts))
        case Not(part):
            return Not(told(part, units, certain=not certain))


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
