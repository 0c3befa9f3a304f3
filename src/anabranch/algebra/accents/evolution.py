"""The evolution of one partition: accents are applied one after another, and the state of every path follows.

What can be asked of the place that has been reached is in `states.py`; here is what makes it so.
All descriptions are told by the raw values of the place, and told anew when a path that they name evolves.

Validity (accents 3, LAWS 4.5), judged here alone:

* a description names neither the path that evolves nor a path that no item has;
* what is added is there for none of the items described; a path dropped and added again is a new path;
* what is altered is there for all of them, what is dropped for some;
* no unit changes under a description that compares its path as text, be it that of an accent or of a punctuation;
* unit changes for the same items have no more than about 2,000 digits together.

Without a schema nobody has said which paths there are: each may be altered and dropped, and added once.
A refused addition changes nothing; a refused alter or drop leaves its path unknown for the items described, until it is
dropped for them.

Cost: an accent meets the layers of its path that may overlap its description, which for `s = 1`, `s = 2`, ... and for
stretches of time are its own and those that pin nothing (`index.py`); what an addition or drop covers is removed once.
What is linear in all live layers, once per accent: an accent on a path that live descriptions name, and an addition or
alter for a set that pins no constant, where all that was added or dropped for a part has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from anabranch.algebra.accents.boxes import boxes, for_some, thinned
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.layers import Layer, Layers
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
from anabranch.algebra.accents.states import States
from anabranch.errors import StreamError
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, or_, terms
from anabranch.stream.description import Description
from anabranch.stream.elements import Accent, Add, Alter, Drop
from anabranch.stream.path import Path

MOST_TOLD = 5
"""Comparisons of an example in a reason."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an accent is not valid, and for which items, told by raw values at its place, its path is now unknown."""

    accent: Accent
    reason: str
    unknown: Predicate


class Evolution(States):
    """What the accents of a partition, up to a place in it, have made of its paths; it goes on with each of them."""

    def __init__(self, declares: Callable[[Path], bool] | None = None, domains: Domains = UNDECLARED) -> None:
        super().__init__(declares, domains)
        self._named: set[Path] = set()
        """All paths that descriptions have named."""
        self._number = 0

    def copy(self) -> Evolution:
        """Another one in the same state."""
        fresh = Evolution(self.declares, self.domains)
        fresh._layers = {path: layers.copy() for path, layers in self._layers.items()}
        fresh._closed, fresh._named, fresh._number = self._closed.copy(), set(self._named), self._number
        return fresh

    # --- accents ----------------------------------------------------------------------------------------------

    def apply(self, accent: Accent) -> Refusal | None:
        """Take an accent in, with the consequence it has where it is not valid."""
        path = accent.evolution.path
        self._unpromised(path)
        where = items_of(accent.where, self.domains)
        try:
            parts = list(map(thinned, boxes(where)))
            reason = self._invalid(where, parts, accent.evolution) or self._retell(where, accent.evolution)
            if reason is None:
                self._evolve(parts, accent.evolution)
                return None
        except StreamError as error:  # what cannot be told apart is taken as all items
            where, parts, reason = EVERYTHING, [()], error.message
        if isinstance(accent.evolution, Add):
            return Refusal(accent, reason, NOTHING)
        return Refusal(accent, reason, self._mistrust(path, where, parts))

    def mistrust(self, path: Path, where: Description) -> None:
        """An accent that could not even be read spoke of these items: the path's state is unknown."""
        self._unpromised(path)
        items = items_of(where, self.domains)
        try:
            self._mistrust(path, items, boxes(items))
        except StreamError:
            self._mistrust(path, EVERYTHING, [()])

    def close(self, where: Description) -> None:
        """No item described comes any more (LAWS 4.8): forget what concerns only these."""
        try:
            parts = list(map(thinned, boxes(items_of(where, self.domains))))
        except StreamError:  # it says more than can be told apart, and nobody has to make use of it
            return
        for box in parts:
            self._note(box)
            self._closed.reset(self._number, box, "drop")
            for layers in self._layers.values():
                layers.clear(box)

    def lay(self, path: Path, layer: Layer) -> None:
        """Have something in force over all there is, as `live` gave it."""
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
        """A path is unknown for some items, given as a set and as its boxes; gives them as they can be told."""
        if names(items, path):
            parts = boxes(for_some(items, [each.path for each in terms(items) if below(each.path, path)]))
        for box in parts:
            self._note(box)
            self._reset(path, box)
            self._of(path).reset(self._number, box, "unknown")
        return or_(*(and_(*box) for box in parts))

    def _note(self, box: Box) -> None:
        """Something new is said of the items of a box."""
        self._number += 1
        self._named.update(term.path for literal in box for term in terms(literal))

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
                bare = not any(self.may_carry(path, box) for box in parts)
                return f"'{path}' is dropped where it does not exist" if parts and bare else None

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
        for layers in (*self._layers.values(), self._closed):
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
        if any(below(each, path) for each in self.domains):
            self.domains = lasting(self.domains, [path])
            for layers in (*self._layers.values(), self._closed):
                layers.retell(layers.retold(path, lambda items: redeclared(items, self.domains)) or [])


def _for(box: Box) -> str:
    told = str(description_of(and_(*box[:MOST_TOLD])))
    return f" for '{told}{' ...' if len(box) > MOST_TOLD else ''}'" if box else ""
