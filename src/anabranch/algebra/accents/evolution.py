"""The evolution of one partition: accents are applied one after another, and the state of every path follows.

For an item of the place reached it is known, path by path, whether the item may carry it and in which unit, as the
exact map from the unit of the path's start (`state`); all descriptions are told by the raw values of that place, and
told anew when a path that they name evolves.
A path is also what the paths above it are: `coord` dropped is `coord/cel/ra` dropped.

Validity (accents 3, LAWS 4.5), judged here alone:

* a description names neither the path that evolves nor a path that no item has;
* what is added is there for none of the items described; a path dropped and added again is a new path;
* what is altered is there for all of them, what is dropped for some;
* no unit changes under a description that compares its path as text.

Without a schema nobody has said which paths there are: each may be altered and dropped, and added once.
A refused addition changes nothing; a refused alter or drop leaves its path unknown for the items described, until it is
dropped for them.

Cost: an accent meets the layers of its path that may overlap its description, which for `s = 1`, `s = 2`, ... and for
stretches of time are its own and those that pin nothing (`index.py`); what an addition or drop covers is removed once.
What is linear in all live layers, once per accent: an accent on a path that live descriptions name, and an addition or
alter for a set that pins no constant, where all that was added or dropped for a part has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from anabranch.algebra.accents.boxes import boxes, combined, for_some, left_over, met, thinned
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.items import leaves
from anabranch.algebra.accents.layers import Layer, Layers, State
from anabranch.algebra.accents.sets import (
    UNDECLARED,
    Domains,
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
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, not_, or_, terms
from anabranch.stream.affine import Affine
from anabranch.stream.description import Description
from anabranch.stream.elements import Accent, Add, Alter, Drop
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

MOST_SHOWN = 100
"""Layers of a path that are taken apart for people."""
MOST_TOLD = 5
"""Comparisons of an example in a reason."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an accent is not valid, and for which items, told by raw values at its place, its path is now unknown."""

    accent: Accent
    reason: str
    unknown: Predicate


@dataclass(frozen=True, slots=True)
class Row:
    """For people: the items described are in this state at the path."""

    path: Path
    where: Description
    state: State


class Evolution:
    """What the accents of a partition, up to a place in it, have made of its paths."""

    def __init__(self, declares: Callable[[Path], bool] | None = None, domains: Domains = UNDECLARED) -> None:
        self._declares = declares
        self._domains = domains
        self._layers: dict[Path, Layers] = {}
        self._named: set[Path] = set()
        """All paths that descriptions have named."""
        self._number = 0

    # --- accents ----------------------------------------------------------------------------------------------

    def apply(self, accent: Accent) -> Refusal | None:
        """Take an accent in, with the consequence it has where it is not valid."""
        path = accent.evolution.path
        self._unpromised(path)
        where = items_of(accent.where, self._domains)
        try:
            parts = list(map(thinned, boxes(where)))
            reason = self._invalid(where, parts, accent.evolution) or self._retell(where, accent.evolution)
        except StreamError as error:  # what cannot be told apart is taken as all items
            where, parts, reason = EVERYTHING, [()], error.message
        if reason is None:
            self._evolve(parts, accent.evolution)
            return None
        if isinstance(accent.evolution, Add):
            return Refusal(accent, reason, NOTHING)
        if names(where, path):
            where = for_some(where, [each.path for each in terms(where) if below(each.path, path)])
            parts = boxes(where)
        self._mistrust(path, parts)
        return Refusal(accent, reason, or_(*(and_(*box) for box in parts)))

    def mistrust(self, path: Path, where: Description) -> None:
        """An accent that could not even be read spoke of these items: the path's state is unknown."""
        self._unpromised(path)
        self._mistrust(path, boxes(items_of(where, self._domains)))

    def close(self, where: Description) -> None:
        """No item described comes any more (LAWS 4.8): forget what concerns only these."""
        for box in boxes(items_of(where, self._domains)):
            for layers in self._layers.values():
                layers.clear(box)

    def _evolve(self, parts: Iterable[Box], evolution: Add | Drop | Alter) -> None:
        for box in parts:
            self._number += 1
            self._named.update(term.path for literal in box for term in terms(literal))
            match evolution:
                case Alter(path, by):
                    self._of(path).alter(self._number, box, by)
                case Add(path) | Drop(path):
                    self._reset(path, box)
                    self._of(path).reset(self._number, box, "add" if isinstance(evolution, Add) else "drop")

    def _mistrust(self, path: Path, parts: Iterable[Box]) -> None:
        for box in parts:
            self._number += 1
            self._named.update(term.path for literal in box for term in terms(literal))
            self._reset(path, box)
            self._of(path).reset(self._number, box, "unknown")

    def _reset(self, path: Path, box: Box) -> None:
        """What was said of paths below, for these items, is over."""
        for other, layers in self._layers.items():
            if other != path and below(other, path):
                layers.clear(box)

    def _of(self, path: Path) -> Layers:
        return self._layers.setdefault(path, Layers())

    # --- validity ---------------------------------------------------------------------------------------------

    def _invalid(self, where: Predicate, parts: list[Box], evolution: Add | Drop | Alter) -> str | None:
        """Why an accent may not stand here, or None."""
        path = evolution.path
        if names(where, path):
            return f"the description names '{path}', the path that evolves"
        unheard = sorted(term.path for term in terms(where) if not self._heard(term.path))
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
                bare = all(self._some(path, [box], carried=None) is None for box in parts)
                return f"'{path}' is dropped where it does not exist" if parts and bare else None

    def _heard(self, path: Path) -> bool:
        """Whether some item may have, or may have had, a path."""
        return self._declares is None or self._declares(path) or any(below(path, each) for each in self._layers)

    def _start(self, path: Path) -> bool | None:
        return None if self._declares is None else self._declares(path)

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
        above = [self._layers[each] for each in _and_above(path) if each in self._layers]
        found = [layer for layers in above for layer in layers.beginnings(box)]
        return iter(found if len(above) == 1 else sorted(found, key=lambda each: -each.number))

    # --- descriptions -----------------------------------------------------------------------------------------

    def _retell(self, where: Predicate, evolution: Add | Drop | Alter) -> str | None:
        """Tell live descriptions by the values after an accent; the reason why it cannot be had, or None."""
        path = evolution.path
        if not any(below(each, path) for each in self._named):
            return None

        def tell(items: Predicate) -> Predicate | None:
            if isinstance(evolution, Alter):
                return rewritten(items, path, where, evolution.by)
            return parted(items, path, where)

        told = []
        for layers in self._layers.values():
            found = layers.retold(path, tell)
            if found is None:
                return f"an earlier description compares '{path}' as text"
            told.append((layers, found))
        for layers, found in told:
            if found:
                layers.retell(found)
        return None

    def _unpromised(self, path: Path) -> None:
        """A path that evolves keeps no declared domain, also in what was said before."""
        if any(below(each, path) for each in self._domains):
            self._domains = lasting(self._domains, [path])
            for layers in self._layers.values():
                layers.retell(layers.retold(path, lambda items: redeclared(items, self._domains)) or [])

    # --- looking ----------------------------------------------------------------------------------------------

    def state(self, path: Path, tree: Element) -> State:
        """The state of a path for an item of this place."""
        state = State(self._start(path))
        for layer in self._concerning(path, tree):
            state = layer.over(state)
        return state

    def _concerning(self, path: Path, tree: Element) -> list[Layer]:
        """The layers that make the state of a path for an item, the oldest first."""
        found = [
            layer
            for each in _and_above(path)
            if each in self._layers
            for layer in self._layers[each].of(tree)
            if each == path or not isinstance(layer.change, Affine)
        ]
        return sorted(found, key=lambda each: each.number)

    def dropped(self, tree: Element) -> Path | None:
        """A path that an item carries although it was dropped for it: such an item is bad (LAWS 4.5)."""
        if self._layers:
            for path in leaves(tree):
                changes = [layer.change for layer in self._concerning(path, tree)]
                if next((each for each in reversed(changes) if not isinstance(each, Affine)), None) == "drop":
                    return path
        return None

    def schema(self) -> tuple[Row, ...]:
        """For people: the state of every path that has evolved, for which items; for very many, the layers as such."""
        return tuple(row for path in sorted(self._layers) for row in self._rows(path))

    def _rows(self, path: Path) -> Iterator[Row]:
        above = [self._layers[each] for each in _and_above(path) if each in self._layers]
        layers = sorted(
            (layer for each in above for layer in each if each is above[-1] or not isinstance(layer.change, Affine)),
            key=lambda each: each.number,
        )
        start = State(self._start(path))
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


def _and_above(path: Path) -> tuple[Path, ...]:
    """The paths that lead to a path, and the path itself as the last."""
    return tuple(Path(path.steps[:depth]) for depth in range(1, len(path.steps) + 1))


def _for(box: Box) -> str:
    told = str(description_of(and_(*box[:MOST_TOLD])))
    return f" for '{told}{' ...' if len(box) > MOST_TOLD else ''}'" if box else ""
