"""The states of all paths of a partition at a place in it: what can be asked of one that has evolved.

For an item of the place it is known, path by path, whether the item may carry it and in which unit, as the exact map
from the unit of the path's start (`state`); all descriptions are told by the raw values of the place.
A path is also what the paths above it are: `coord` dropped is `coord/cel/ra` dropped.
An item that carries a dropped path, or that a punctuation said would not come any more, is bad (LAWS 4.5).

Without a schema nobody has said which paths there are: each may be there, until an accent says that it is, or is not.

Cost: an item meets the layers whose boxes it may be in, and a box those that it may overlap (`index.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from anabranch.algebra.accents.boxes import left_over, met
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.items import leaves, nodes, values
from anabranch.algebra.accents.layers import Layer, Layers, State
from anabranch.algebra.accents.rows import Row, rows
from anabranch.algebra.accents.sets import UNDECLARED, Domains, and_above, below, description_of
from anabranch.predicate import and_
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

MOST_CHANGES = 64
"""Of more that are in force for parts of the items it is not said which they are."""


class States:
    """What the accents of a partition have made of its paths; `Evolution` alone makes more of it."""

    def __init__(self, declares: Callable[[Path], bool] | None = None, domains: Domains = UNDECLARED) -> None:
        self.declares = declares
        self.domains = domains
        self._layers: dict[Path, Layers] = {}
        self._closed = Layers()
        """The items that do not come any more (LAWS 4.8)."""

    # --- of an item -------------------------------------------------------------------------------------------

    def state(self, path: Path, tree: Element) -> State:
        """The state of a path for an item of this place."""
        state = State(self._start(path))
        for layer in self._concerning(path, tree):
            state = layer.over(state)
        return state

    def units(self, tree: Element) -> dict[Path, Affine]:
        """The unit of each path of an item that has changed it, as the map from that of the path's start."""
        found: dict[Path, Affine] = {}
        for path, layers in self._layers.items():
            if layers.alters and next(nodes(tree, path), None) is not None:
                unit = self.state(path, tree).unit
                if unit is not None and unit != IDENTITY:
                    found[path] = unit
        return found

    def unknown(self, tree: Element) -> tuple[Path, ...]:
        """The paths of an item whose unit is unknown (LAWS 4.5)."""
        paths = (Path(()), *leaves(tree)) if self._layers else ()
        return tuple(path for path in paths if self.state(path, tree).unit is None)

    def dropped(self, tree: Element) -> Path | None:
        """A path that an item carries although it was dropped for it: such an item is bad (LAWS 4.5).

        An empty element carries nothing: it is what a query's constructor leaves of a path, and JSON's null.
        """
        if self._layers:
            for path in (Path(()), *leaves(tree)):
                changes = [layer.change for layer in self._concerning(path, tree)]
                latest = next((each for each in reversed(changes) if not isinstance(each, Affine)), None)
                if latest == "drop" and any(values(tree, path)):
                    return path
        return None

    def bad(self, tree: Element) -> str | None:
        """Why an item may not stand here (LAWS 4.5), or None."""
        for layer in self._closed.of(tree):
            told = description_of(and_(*layer.box))
            return f"a punctuation said that no item where '{told}' follows"
        path = self.dropped(tree)
        return None if path is None else f"it carries '{path}', which was dropped"

    def _concerning(self, path: Path, tree: Element) -> list[Layer]:
        """The layers that make the state of a path for an item, the oldest first."""
        found = [
            layer
            for each in and_above(path)
            if each in self._layers
            for layer in self._layers[each].of(tree)
            if each == path or not isinstance(layer.change, Affine)
        ]
        return sorted(found, key=lambda each: each.number)

    # --- of a set of items ------------------------------------------------------------------------------------

    def may_carry(self, path: Path, box: Box) -> bool:
        """Whether some items of a box carry a path, or might."""
        return self._some(path, [box], carried=None) is not None

    def _some(self, path: Path, parts: Iterable[Box], carried: bool | None) -> Box | None:
        """Some of these items that carry a path, or that do not; for None, that carry it or might."""
        wanted = (True, None) if carried is None else (carried,)
        for box in parts:
            newer: Index[None] = Index()
            covered: list[Box] = []
            for layer in self._resets(path, box):
                if layer.over(State(None)).carried in wanted:
                    common = met(box, layer.box)
                    assert common is not None
                    found = left_over(common, [each for _, each, _ in newer.near(common)])
                    if found is not None:
                        return found
                newer.put(len(covered), layer.box, None)
                covered.append(layer.box)
            if self._start(path) in wanted:
                found = left_over(box, covered)
                if found is not None:
                    return found
        return None

    def _resets(self, path: Path, box: Box) -> Iterator[Layer]:
        """What was added, dropped or refused of a path or of one above it, for items of a box, the newest first."""
        above = [self._layers[each] for each in and_above(path) if each in self._layers]
        found = [layer for layers in above for layer in layers.beginnings(box)]
        return iter(found if len(above) == 1 else sorted(found, key=lambda each: -each.number))

    def _heard(self, path: Path) -> bool:
        """Whether some item may have, or may have had, a path."""
        return self.declares is None or self.declares(path) or any(below(path, each) for each in self._layers)

    def _start(self, path: Path) -> bool | None:
        return None if self.declares is None else self.declares(path)

    def forbidden(self) -> Iterator[tuple[Path | None, list[Box]]]:
        """Boxes outside which no item is bad: with a path, only the items that carry it, or something below, are."""
        for path, layers in ((None, self._closed), *self._layers.items()):
            if found := layers.boxes("drop"):
                yield path, found

    # --- of all items -----------------------------------------------------------------------------------------

    def altered(self) -> dict[Path, tuple[tuple[Box, Affine], ...] | None]:
        """The paths that have changed their unit for some items, and how, the oldest first.

        None where something else has happened to a path, too, or very much.
        """
        found: dict[Path, tuple[tuple[Box, Affine], ...] | None] = {}
        for path, layers in self._layers.items():
            if layers.alters and len(layers) > MOST_CHANGES:
                found[path] = None
            elif layers.alters:
                above = (each for each in self._above(path) if each.box)
                every = sorted((*layers, *above), key=lambda each: each.number)
                changes = tuple((each.box, each.change) for each in every if isinstance(each.change, Affine))
                found[path] = changes if len(changes) == len(every) else None
        return found

    def live(self) -> list[tuple[Path, Layer]]:
        """All that is in force, the oldest first."""
        found = [(path, layer) for path, layers in self._layers.items() for layer in layers]
        return sorted(found, key=lambda each: each[1].number)

    def schema(self) -> tuple[Row, ...]:
        """For people: the state of every path that has evolved, for which items; for very many, the layers as such."""
        return tuple(row for path in sorted(self._layers) for row in self._rows(path))

    def _rows(self, path: Path) -> Iterator[Row]:
        layers = sorted((*self._above(path), *self._layers[path]), key=lambda each: each.number)
        return rows(path, State(self._start(path)), layers)

    def _above(self, path: Path) -> Iterator[Layer]:
        """What was added, dropped or refused of the paths above a path; their units are not its unit."""
        layers = (layer for each in and_above(path)[:-1] for layer in self._layers.get(each, ()))
        return (layer for layer in layers if not isinstance(layer.change, Affine))
