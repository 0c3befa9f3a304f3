"""Rows for people: the states of a path, each with the items that are in it, from the layers that make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anabranch.algebra.accents.boxes import combined
from anabranch.algebra.accents.layers import Layer, State
from anabranch.algebra.accents.sets import description_of
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, not_, or_
from anabranch.stream.description import Description
from anabranch.stream.path import Path

MOST_SHOWN = 60
"""Layers of a path that are taken apart; of more each is a row, and they overlap."""


@dataclass(frozen=True, slots=True)
class Row:
    """The items described are in this state at the path."""

    path: Path
    where: Description
    state: State


def rows(path: Path, start: State, layers: Sequence[Layer]) -> Iterator[Row]:
    """The states of a path that was in one state at the start; the layers come the oldest first."""
    if len(layers) > MOST_SHOWN:
        for layer in layers:
            yield Row(path, description_of(and_(*layer.box)), layer.over(start))
        return
    pieces: dict[State, Predicate] = {start: EVERYTHING}
    for layer in layers:
        box = and_(*layer.box)
        parts: dict[State, Predicate] = {}
        for state, items in pieces.items():
            for now, part in ((layer.over(state), and_(items, box)), (state, and_(items, not_(box)))):
                parts[now] = or_(parts[now], part) if now in parts else part
        pieces = {state: kept for state, items in parts.items() if (kept := combined(items)) != NOTHING}
    for state, items in pieces.items():
        yield Row(path, description_of(items), state)
