"""The evolution of one partition: accents are applied one after another, and the state of every path follows.

For an item at the present place it gives, path by path, whether the item may carry the path and in which unit, as the
exact map from the unit of the path's start (`state`).
A path also shares the state of the paths above it: `coord` dropped is `coord/cel/ra` dropped.
An item that carries a dropped path, or that a punctuation has closed, is bad (LAWS 4.5).
All descriptions name the raw values of the place, and are rewritten when a path that they name evolves.

Validity (accents 3, LAWS 4.5), decided only here:

* a description names neither the path that evolves nor a path that no item has;
* an added path is there for none of the items described; a path dropped and added again is a new path;
* an altered path is there for all of them, a dropped one for some;
* no unit changes under a description that compares its path as text, of an accent or of a punctuation;
* unit changes for the same items have no more than about 2,000 digits together.

Without a schema the paths of items are unknown: each may be altered and dropped, and added once.
A refused addition changes nothing; a refused alter or drop leaves its path unknown for the items described, until it is
dropped for them.

Cost: an item meets the layers whose boxes it may be in, and an accent those of its path that may overlap its
description, which for `s = 1`, `s = 2`, ... and for ranges of time are its own and those that pin nothing (`index.py`).
Linear in all live layers is an accent on a path that live descriptions name, and an add or alter for a set that pins no
constant, which is compared with all adds and drops for parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from anabranch.algebra.accents.boxes import boxes, combined, for_some, left_over, met, thinned
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.items import leaves, nodes, values
from anabranch.algebra.accents.layers import Layer, Layers, State
from anabranch.algebra.accents.sets import (
    UNDECLARED,
    Domains,
    and_above,
    below,
    description_of,
    items_of,
    lasting,
    names,
    parted,
    redeclared,
    rewritten,
)
from anabranch.errors import StreamError
from anabranch.predicate import EVERYTHING, NOTHING, Finite, Predicate, and_, not_, or_, terms
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.description import Description
from anabranch.stream.elements import Accent, Add, Alter, Drop
from anabranch.stream.path import Path
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import Element

MOST_DIVIDED = 60
"""The most layers of a path that are divided into disjoint rows; of more, each is a row, and they overlap."""


@dataclass(frozen=True, slots=True)
class Row:
    """The state of the items described at a path."""

    path: Path
    where: Description
    state: State


def rows(path: Path, start: State, layers: Sequence[Layer]) -> Iterator[Row]:
    """The states of a path that had one state at the start; layers are given oldest first."""
    if len(layers) > MOST_DIVIDED:
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


MOST_CHANGES = 64
"""Of more changes in force for parts of the items, `altered` gives None."""
MOST_COMPARISONS = 5
"""The most comparisons of an example in a reason."""


@dataclass(frozen=True, slots=True)
class RefusedAccent:
    """Why an accent is not valid, and the items, by raw values at its place, for which its path is now unknown."""

    accent: Accent
    reason: str
    unknown: Predicate


class Evolution:
    """The states of a partition's paths after its accents so far; each accent updates it."""

    def __init__(self, declares: Callable[[Path], bool] | None = None, domains: Domains = UNDECLARED) -> None:
        self.declares = declares
        self.domains = domains
        self._layers: dict[Path, Layers] = {}
        self._closed = Layers()
        """The items that were closed (LAWS 4.8)."""
        self._named: set[Path] = set()
        """All paths named by descriptions."""
        self._number = 0

    # --- the state of an item ---------------------------------------------------------------------------------

    @staticmethod
    def of(source: Source) -> Evolution:
        """The evolution of a partition of a stream at its beginning."""
        domains = {path: Finite(frozenset(texts)) for path, texts in source.domains}
        return Evolution(None if source.schema is None else source.schema.declares, domains)

    def state(self, path: Path, tree: Element) -> State:
        """The state of a path for an item of this place."""
        state = State(self._start(path))
        for layer in self._concerning(path, tree):
            state = layer.over(state)
        return state

    def units(self, tree: Element) -> dict[Path, Affine]:
        """The changed units of an item's paths, as maps from the unit of the path's start."""
        found: dict[Path, Affine] = {}
        for path, layers in self._layers.items():
            if layers.alters and next(nodes(tree, path), None) is not None:
                unit = self.state(path, tree).unit
                if unit is not None and unit != IDENTITY:
                    found[path] = unit
        return found

    def dropped(self, tree: Element) -> Path | None:
        """A path that an item carries although it was dropped for it: such an item is bad (LAWS 4.5).

        An empty element carries nothing: it is what a query's constructor leaves of a path, and JSON's null.
        """
        if self._layers:
            for path in (Path(()), *leaves(tree)):
                if self.is_dropped(path, tree) and any(values(tree, path)):
                    return path
        return None

    def is_dropped(self, path: Path, tree: Element) -> bool:
        """Whether a path, or one above it, was dropped for an item, and not added again."""
        changes = [layer.change for layer in self._concerning(path, tree)]
        return next((each for each in reversed(changes) if not isinstance(each, Affine)), None) == "drop"

    @property
    def is_changed(self) -> bool:
        """Whether any path has evolved."""
        return bool(self._layers)

    def named_for(self, path: Path) -> Iterator[Path]:
        """The paths by which the changes of a path, and of those above it, have described their items."""
        return (name for each in and_above(path) if each in self._layers for name in self._layers[each].named)

    def bad(self, tree: Element) -> str | None:
        """Why an item is bad here (LAWS 4.5), or None."""
        for layer in self._closed.of(tree):
            told = description_of(and_(*layer.box))
            return f"a punctuation said that no item where '{told}' follows"
        path = self.dropped(tree)
        return None if path is None else f"it carries '{path}', which was dropped"

    def _concerning(self, path: Path, tree: Element) -> list[Layer]:
        """The layers that determine the state of a path for an item, oldest first."""
        found = [
            layer
            for each in and_above(path)
            if each in self._layers
            for layer in self._layers[each].of(tree)
            if each == path or not isinstance(layer.change, Affine)
        ]
        return sorted(found, key=lambda each: each.number)

    # --- the state of a set of items --------------------------------------------------------------------------

    def may_carry(self, path: Path, box: Box) -> bool:
        """Whether some items of a box carry a path, or might."""
        return self._some(path, [box], carried=None) is not None

    def _some(self, path: Path, parts: Iterable[Box], carried: bool | None) -> Box | None:
        """Some of these items that carry a path, or that do not; for None, that carry it or might."""
        wanted = (True, None) if carried is None else (carried,)
        for box in parts:
            newer: Index[None] = Index()
            for layer in self._resets(path, box):
                if layer.over(State(None)).carried in wanted:
                    common = met(box, layer.box)
                    assert common is not None
                    found = left_over(common, [each for _, each, _ in newer.near(common)])
                    if found is not None:
                        return found
                newer.add(layer.box, None)
            if self._start(path) in wanted:
                found = left_over(box, [each for _, (each, _) in newer.items()])
                if found is not None:
                    return found
        return None

    def _resets(self, path: Path, box: Box) -> Iterator[Layer]:
        """The adds, drops and refusals of a path, or of one above it, for items of a box, newest first."""
        above = [self._layers[each] for each in and_above(path) if each in self._layers]
        found = [layer for layers in above for layer in layers.beginnings(box)]
        return iter(found if len(above) == 1 else sorted(found, key=lambda each: -each.number))

    def _may_exist(self, path: Path) -> bool:
        """Whether some item may have, or may have had, a path."""
        return self.declares is None or self.declares(path) or any(below(path, each) for each in self._layers)

    def _start(self, path: Path) -> bool | None:
        return None if self.declares is None else self.declares(path)

    def forbidden(self) -> Iterator[tuple[Path | None, list[Box]]]:
        """Boxes outside which no item is bad: with a path, only items that carry it, or a path below, are."""
        for path, layers in ((None, self._closed), *self._layers.items()):
            if found := layers.boxes("drop"):
                yield path, found

    # --- the state of all items -------------------------------------------------------------------------------

    def altered(self) -> dict[Path, tuple[tuple[Box, Affine], ...] | None]:
        """The paths that have changed their unit for some items, with the changes, oldest first.

        None where there were other changes of a path, too, or very many.
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
        """All layers in force, oldest first."""
        found = [(path, layer) for path, layers in self._layers.items() for layer in layers]
        return sorted(found, key=lambda each: each[1].number)

    def schema(self) -> tuple[Row, ...]:
        """For people: the states of all evolved paths, by items; for very many, the single layers."""
        return tuple(row for path in sorted(self._layers) for row in self._rows(path))

    def _rows(self, path: Path) -> Iterator[Row]:
        layers = sorted((*self._above(path), *self._layers[path]), key=lambda each: each.number)
        return rows(path, State(self._start(path)), layers)

    def _above(self, path: Path) -> Iterator[Layer]:
        """The adds, drops and refusals of the paths above a path; their units are not its unit."""
        layers = (layer for each in and_above(path)[:-1] for layer in self._layers.get(each, ()))
        return (layer for layer in layers if not isinstance(layer.change, Affine))

    def copy(self) -> Evolution:
        """Another one in the same state."""
        fresh = Evolution(self.declares, self.domains)
        fresh._layers = {path: layers.copy() for path, layers in self._layers.items()}
        fresh._closed, fresh._named, fresh._number = self._closed.copy(), set(self._named), self._number
        return fresh

    # --- accents ----------------------------------------------------------------------------------------------

    def apply(self, accent: Accent) -> RefusedAccent | None:
        """Apply an accent, or the consequence of an invalid one."""
        path = accent.evolution.path
        self._drop_domain(path)
        where = items_of(accent.where, self.domains)
        try:
            parts = list(map(thinned, boxes(where)))
            reason = self._invalid(where, parts, accent.evolution) or self._rewrite(where, accent.evolution)
            if reason is None:
                self._evolve(parts, accent.evolution)
                return None
        except StreamError as error:  # a description that is too complex counts as all items
            where, parts, reason = EVERYTHING, [()], error.message
        if isinstance(accent.evolution, Add):
            return RefusedAccent(accent, reason, NOTHING)
        return RefusedAccent(accent, reason, self._mistrust(path, where, parts))

    def mistrust(self, path: Path, where: Description) -> None:
        """The state of a path becomes unknown for these items: an accent on them could not be read."""
        self._drop_domain(path)
        items = items_of(where, self.domains)
        try:
            self._mistrust(path, items, boxes(items))
        except StreamError:
            self._mistrust(path, EVERYTHING, [()])

    def close(self, where: Description) -> None:
        """No item described comes any more (LAWS 4.8): drop what concerns only these."""
        try:
            parts = list(map(thinned, boxes(items_of(where, self.domains))))
        except StreamError:  # too complex; using it is optional
            return
        for box in parts:
            self._note(box)
            self._closed.reset(self._number, box, "drop")
            for layers in self._layers.values():
                layers.clear(box)

    def lay(self, path: Path, layer: Layer) -> None:
        """Put a layer from `live` over all others."""
        self._note(layer.box)
        self._of(path).put(replace(layer, number=self._number))

    def _evolve(self, parts: Iterable[Box], evolution: Add | Drop | Alter) -> None:
        for box in parts:
            self._note(box)
            match evolution:
                case Alter(path, by):
                    self._of(path).alter(self._number, box, by)
                case Add(path, type):
                    self._reset(path, box)
                    self._of(path).reset(self._number, box, "add", type)
                case Drop(path):
                    self._reset(path, box)
                    self._of(path).reset(self._number, box, "drop")

    def _mistrust(self, path: Path, items: Predicate, parts: Sequence[Box]) -> Predicate:
        """A path becomes unknown for some items, given as a set and as its boxes; gives the items affected."""
        if names(items, path):
            parts = boxes(for_some(items, [each.path for each in terms(items) if below(each.path, path)]))
        for box in parts:
            self._note(box)
            self._reset(path, box)
            self._of(path).reset(self._number, box, "unknown")
        return or_(*(and_(*box) for box in parts))

    def _note(self, box: Box) -> None:
        """Note that the items of a box are described."""
        self._number += 1
        self._named.update(term.path for literal in box for term in terms(literal))

    def _reset(self, path: Path, box: Box) -> None:
        """End the layers of paths below, for these items."""
        for other, layers in self._layers.items():
            if other != path and below(other, path):
                layers.clear(box)

    def _of(self, path: Path) -> Layers:
        return self._layers.setdefault(path, Layers())

    # --- validity ---------------------------------------------------------------------------------------------

    def _invalid(self, where: Predicate, parts: list[Box], evolution: Add | Drop | Alter) -> str | None:
        """Why an accent is not valid here, or None."""
        path = evolution.path
        if names(where, path):
            return f"the description names '{path}', the path that evolves"
        unheard = sorted(term.path for term in terms(where) if not self._may_exist(term.path))
        if unheard:
            return f"the description names '{unheard[0]}', which no item has"
        match evolution:
            case Add():
                clash = self._some(path, parts, carried=True)
                return f"'{path}' is added where it exists{_for(clash)}" if clash is not None else None
            case Alter():
                lack = self._some(path, parts, carried=False)
                return f"'{path}' is altered where it does not exist{_for(lack)}" if lack is not None else None
            case Drop():
                bare = not any(self.may_carry(path, box) for box in parts)
                return f"'{path}' is dropped where it does not exist" if parts and bare else None

    # --- descriptions -----------------------------------------------------------------------------------------

    def _rewrite(self, where: Predicate, evolution: Add | Drop | Alter) -> str | None:
        """Rewrite live descriptions for the values after an accent; the reason why that is impossible, or None."""
        path = evolution.path
        if not any(below(each, path) for each in self._named):
            return None

        def tell(items: Predicate) -> Predicate | None:
            if isinstance(evolution, Alter):
                return rewritten(items, path, where, evolution.by)
            return parted(items, path, where)

        told = []
        for layers in (*self._layers.values(), self._closed):
            found = layers.retold(path, tell)
            if found is None:
                return f"an earlier description compares '{path}' as text"
            told.append((layers, found))
        for layers, found in told:
            if found:
                layers.retell(found)
        return None

    def _drop_domain(self, path: Path) -> None:
        """A path that evolves loses its declared domain, also in earlier descriptions."""
        if any(below(each, path) for each in self.domains):
            self.domains = lasting(self.domains, [path])
            for layers in (*self._layers.values(), self._closed):
                layers.retell(layers.retold(path, lambda items: redeclared(items, self.domains)) or [])


def _for(box: Box) -> str:
    told = str(description_of(and_(*box[:MOST_COMPARISONS])))
    return f" for '{told}{' ...' if len(box) > MOST_COMPARISONS else ''}'" if box else ""
