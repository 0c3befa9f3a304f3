"""Layers: what accents have made of one path, each for a box of items, the later over the earlier.

An item's state at a path is what the layers that it is in make of the state at the start, one after another: an
addition, a drop and a refusal begin anew, a unit change maps on.
Boxes may overlap as they like, so one layer per accent is always enough; disjoint pieces would be exponentially many.

What cannot show any more is not kept:

* Layers under an addition or a drop that describes all their items are removed.
* A unit change sinks below those that describe all its items (f, then g for more items, then h is f, then g h g^-1,
  then g), until it meets one for the same items; they compose, and what composes to the identity is gone.

So a stream whose parts nest (all, a region, a sensor) has one layer per description, however often units change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from anabranch.algebra.accents.boxes import boxes, inside, met, thinned
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.sets import names
from anabranch.errors import StreamError
from anabranch.predicate import Predicate, and_
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

MOST_BITS = 6_600
"""About 2,000 digits, in the numerators and denominators of a unit: a hostile stream of changes has an end."""


@dataclass(frozen=True, slots=True)
class State:
    """Whether items may carry a path (None: nobody has said so), and its unit from its start (None: unknown)."""

    carried: bool | None
    unit: Affine | None = IDENTITY


LayerChange: TypeAlias = Literal["add", "drop", "unknown"] | Affine


@dataclass(frozen=True, slots=True)
class Layer:
    """A change for a box of items; `number` says when."""

    number: int
    box: Box
    change: LayerChange
    steps: tuple[Affine, ...] = ()
    """The unit changes that `change` is made of, one after another, but for those that were undone."""
    type: str | None = None
    """The type announced with what was added."""

    def over(self, state: State) -> State:
        """The state of an item in the box, from the state it had."""
        match self.change:
            case "add":
                return State(True)
            case "drop":
                return State(False)
            case "unknown":
                return State(True, None)
            case by:
                return State(state.carried, None if state.unit is None else state.unit.then(by))


class Layers:
    """The layers of one path; changed by `Evolution` alone."""

    def __init__(self) -> None:
        self._layers: Index[Layer] = Index()
        """In order of their numbers."""
        self._beginnings: Index[Layer] = Index()
        """Those that begin anew, once more: they are asked for apart, and often few among many unit changes."""

    def __iter__(self) -> Iterator[Layer]:
        """All layers, the oldest first."""
        return (layer for _, (_, layer) in self._layers.items())

    def __len__(self) -> int:
        return len(self._layers)

    @property
    def alters(self) -> bool:
        """Whether there is a unit change."""
        return len(self._layers) > len(self._beginnings)

    def copy(self) -> Layers:
        """Others that are the same."""
        fresh = Layers()
        fresh._layers, fresh._beginnings = self._layers.copy(), self._beginnings.copy()
        return fresh

    def of(self, tree: Element) -> Iterator[Layer]:
        """The layers that an item is in, in no order."""
        return (layer for _, layer in self._layers.of(tree))

    def over(self, box: Box) -> Iterator[tuple[int, Layer]]:
        """The layers that overlap a box, the newest first, with their keys."""
        return _overlapping(box, self._layers)

    def beginnings(self, box: Box) -> Iterator[Layer]:
        """The layers that overlap a box and begin anew, the newest first."""
        return (layer for _, layer in _overlapping(box, self._beginnings))

    def boxes(self, change: Literal["add", "drop", "unknown"]) -> list[Box]:
        """The boxes of items that have begun anew like this."""
        return [box for _, (box, layer) in self._beginnings.items() if layer.change == change]

    def reset(self, number: int, box: Box, change: Literal["add", "drop", "unknown"], type: str | None = None) -> None:
        """Items of a box begin anew."""
        self.clear(box)
        self.put(Layer(number, box, change, type=type))

    def clear(self, box: Box) -> None:
        """Forget what concerns only items of a box."""
        for key, held, _ in list(self._layers.near(box)):
            if inside(held, box):
                self._take(key)

    def alter(self, number: int, box: Box, by: Affine) -> None:
        """Items of a box measure the path otherwise."""
        above = IDENTITY
        for key, layer in self.over(box):
            if not isinstance(layer.change, Affine):
                break
            if frozenset(layer.box) == frozenset(box):
                self._change(key, above.then(by).then(above.inverse()))
                return
            if not inside(box, layer.box):
                break
            above = layer.change.then(above)
        if by != IDENTITY:
            self.put(Layer(number, box, by, (by,)))

    def retold(self, path: Path, tell: Callable[[Predicate], Predicate | None]) -> list[tuple[Layer, list[Box]]] | None:
        """The layers that speak of a path, with the boxes of the same items told otherwise; None if one has none."""
        found: list[tuple[Layer, list[Box]]] = []
        for layer in self:
            items = and_(*layer.box)
            if names(items, path):
                told = tell(items)
                if told is None:
                    return None
                if told != items:
                    found.append((layer, list(map(thinned, boxes(told)))))
        return found

    def retell(self, told: list[tuple[Layer, list[Box]]]) -> None:
        """Have layers speak of the same items as `retold` said."""
        gone = {id(layer) for layer, _ in told}
        kept = [layer for layer in self if id(layer) not in gone]
        fresh = [replace(layer, box=box) for layer, parts in told for box in parts]
        self._layers, self._beginnings = Index(), Index()
        for layer in sorted((*kept, *fresh), key=lambda each: each.number):
            self.put(layer)

    def _change(self, key: int, by: Affine) -> None:
        """Let a unit change go on by another."""
        _, layer = self._layers[key]
        assert isinstance(layer.change, Affine)
        change = layer.change.then(by)
        if change == IDENTITY:
            self._take(key)
            return
        if any(part.bit_length() > MOST_BITS for each in (change.a, change.b) for part in each.as_integer_ratio()):
            raise StreamError("the unit changes of the path have too many digits together")
        undone = layer.steps and layer.steps[-1].then(by) == IDENTITY
        steps = layer.steps[:-1] if undone else (*layer.steps, by)
        self._layers.put(key, layer.box, replace(layer, change=change, steps=steps))

    def put(self, layer: Layer) -> None:
        """Lay something over all there is."""
        key = self._layers.add(layer.box, layer)
        if not isinstance(layer.change, Affine):
            self._beginnings.put(key, layer.box, layer)

    def _take(self, key: int) -> None:
        self._layers.take(key)
        if key in self._beginnings:
            self._beginnings.take(key)


def _overlapping(box: Box, layers: Index[Layer]) -> Iterator[tuple[int, Layer]]:
    """The layers that overlap a box, the newest first."""
    if box:
        near = ((key, layer) for key, _, layer in layers.near(box))
        newest_first = iter(sorted(near, key=lambda each: -each[1].number))
    else:  # usually the first that comes is the one looked for
        newest_first = ((key, layer) for key, (_, layer) in reversed(layers.items()))
    return ((key, layer) for key, layer in newest_first if met(box, layer.box) is not None)
