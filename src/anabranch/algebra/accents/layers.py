"""Layers: the changes of one path by accents, each for a box of items, later ones over earlier ones.

An item's state at a path is the state at the start, changed by the layers of its boxes in turn: an add, a drop and a
refusal begin anew, a unit change maps on.
Boxes may overlap, so one layer per accent is always enough; disjoint pieces could be exponentially many.

Layers without effect are removed:

* Layers under an add or a drop for all their items are removed.
* A unit change sinks below those for all its items (f, then g for more items, then h is f, then g h g^-1, then g),
until it meets one for the same items; they compose, and an identity is removed.

So a stream of nested parts (all, a region, a sensor) has one layer per description, however often units change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from anabranch.algebra.accents.boxes import boxes, inside, met, thinned
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.sets import names
from anabranch.errors import StreamError
from anabranch.predicate import Predicate, and_, terms
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

MOST_BITS = 6_600
"""About 2,000 digits, in the numerators and denominators of a unit: a hostile stream of changes has an end."""


@dataclass(frozen=True, slots=True)
class State:
    """Whether items may carry a path (None: undeclared), and its unit relative to its start (None: unknown)."""

    carried: bool | None
    unit: Affine | None = IDENTITY


LayerChange: TypeAlias = Literal["add", "drop", "unknown"] | Affine


@dataclass(frozen=True, slots=True)
class Layer:
    """A change for a box of items; numbers are in the order of accents."""

    number: int
    box: Box
    change: LayerChange
    steps: tuple[Affine, ...] = ()
    """The unit changes that compose `change`, in order, without those that were undone."""
    type: str | None = None
    """The type announced with an add."""

    def over(self, state: State) -> State:
        """The state of an item in the box, from its state before."""
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
        """By ascending number."""
        self._beginnings: Index[Layer] = Index()
        """The layers that begin anew, indexed separately: they are often few among many unit changes."""
        self.named: set[Path] = set()
        """All paths that boxes of layers have named."""

    def __iter__(self) -> Iterator[Layer]:
        """All layers, oldest first."""
        return (layer for _, (_, layer) in self._layers.items())

    def __len__(self) -> int:
        return len(self._layers)

    @property
    def alters(self) -> bool:
        """Whether there is a unit change."""
        return len(self._layers) > len(self._beginnings)

    def copy(self) -> Layers:
        """A copy."""
        fresh = Layers()
        fresh._layers, fresh._beginnings = self._layers.copy(), self._beginnings.copy()
        fresh.named = set(self.named)
        return fresh

    def of(self, tree: Element) -> Iterator[Layer]:
        """The layers of an item, unordered."""
        return (layer for _, layer in self._layers.of(tree))

    def over(self, box: Box) -> Iterator[tuple[int, Layer]]:
        """The layers that overlap a box, newest first, with their keys."""
        return _overlapping(box, self._layers)

    def beginnings(self, box: Box) -> Iterator[Layer]:
        """The layers that overlap a box and begin anew, newest first."""
        return (layer for _, layer in _overlapping(box, self._beginnings))

    def boxes(self, change: Literal["add", "drop", "unknown"]) -> list[Box]:
        """The boxes of layers with this beginning."""
        return [box for _, (box, layer) in self._beginnings.items() if layer.change == change]

    def reset(self, number: int, box: Box, change: Literal["add", "drop", "unknown"], type: str | None = None) -> None:
        """Add a layer that begins anew."""
        self.clear(box)
        self.put(Layer(number, box, change, type=type))

    def clear(self, box: Box) -> None:
        """Remove layers that concern only items of a box."""
        for key, held, _ in list(self._layers.near(box)):
            if inside(held, box):
                self._take(key)

    def alter(self, number: int, box: Box, by: Affine) -> None:
        """Add a unit change for a box."""
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
        """The layers whose boxes name a path, with their rewritten boxes; None if one cannot be rewritten."""
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
        """Apply the boxes from `retold`."""
        gone = {id(layer) for layer, _ in told}
        kept = [layer for layer in self if id(layer) not in gone]
        fresh = [replace(layer, box=box) for layer, parts in told for box in parts]
        self._layers, self._beginnings = Index(), Index()
        for layer in sorted((*kept, *fresh), key=lambda each: each.number):
            self.put(layer)

    def _change(self, key: int, by: Affine) -> None:
        """Compose a unit change with a later one."""
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
        """Put a layer over all others."""
        self.named.update(term.path for literal in layer.box for term in terms(literal))
        key = self._layers.add(layer.box, layer)
        if not isinstance(layer.change, Affine):
            self._beginnings.put(key, layer.box, layer)

    def _take(self, key: int) -> None:
        self._layers.take(key)
        if key in self._beginnings:
            self._beginnings.take(key)


def _overlapping(box: Box, layers: Index[Layer]) -> Iterator[tuple[int, Layer]]:
    """The layers that overlap a box, newest first."""
    if box:
        near = ((key, layer) for key, _, layer in layers.near(box))
        newest_first = iter(sorted(near, key=lambda each: -each[1].number))
    else:  # usually the first is the one wanted
        newest_first = ((key, layer) for key, (_, layer) in reversed(layers.items()))
    return ((key, layer) for key, layer in newest_first if met(box, layer.box) is not None)
