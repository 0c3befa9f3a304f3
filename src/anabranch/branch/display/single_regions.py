"""The parts of a query that are one region of the display each: computed from aggregates, or evaluated as a whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from anabranch.aggregates.folds import Fold, Share
from anabranch.algebra.history.display import Piece
from anabranch.branch.display.entrywise import Changed, Entrywise, Site
from anabranch.branch.display.evaluation import Scope
from anabranch.branch.display.folds import fold
from anabranch.branch.display.parts import Computed, Whole
from anabranch.branch.display.stages import Finding, Stage
from anabranch.errors import DynamicError
from anabranch.values.sequences import Values

NONE = -1
"""The number of no entry."""


class Single(Stage):
    """A part that is one region of the display."""

    _piece: Piece | None = None
    _has_changed = True
    """Whether it is to be written anew; so at the beginning."""

    @abstractmethod
    def _value(self) -> Values:
        """What stands there."""

    def settle(self) -> None:
        if self._has_changed:
            self._write()

    def _write(self) -> None:
        self._has_changed = False
        self.site.failing.pop((self.id, NONE), None)
        piece: Piece | None = None
        try:
            piece = self.scope.piece(self._value())
            self.site.tell(self.id, NONE)
        except DynamicError as error:
            self.site.failing[self.id, NONE] = error
        if piece != self._piece:
            self.site.display.rewrite(self.id, () if piece is None else (piece,))
            self._piece = piece

    def recalled(self) -> None:
        self._write()


class ComputedStage(Single):
    """What is computed from aggregates; written anew when one of them has changed."""

    def __init__(self, id: str, site: Site, scope: Scope, part: Computed) -> None:
        super().__init__(id, site, scope)
        self._part = part
        self._folds = {
            name: (
                Entrywise(f"{id}.{name}", site, scope, folded.over),
                fold(folded.function, site.kept[folded.over.stream].order),
            )
            for name, folded in part.names
        }
        self._shares: dict[str, dict[int, Share]] = {name: {} for name, _ in part.names}
        self._names = {f"{id}.{name}": name for name, _ in part.names}
        self.parts = tuple(self._names)

    def find(self, changed: Changed) -> Iterator[Finding]:
        for id, name in self._names.items():
            entrywise, state = self._folds[name]
            for entry in entrywise.again(changed):
                yield Finding(id, entry, self._share(entrywise, state, entry))

    def take(self, finding: Finding) -> None:
        self._put(self._names[finding.part], finding.entry, finding.value)

    def _put(self, name: str, entry: int, share: Share) -> None:
        """Put the share of an entry in the place of the one it had."""
        (_, state), shares = self._folds[name], self._shares[name]
        before = shares.get(entry)
        if share == before:
            return
        self._has_changed = True
        if before is not None:
            state.remove(entry, shares.pop(entry))
        if share is not None:
            state.put(entry, share)
            shares[entry] = share

    def _share(self, entrywise: Entrywise, state: Fold, entry: int) -> Share:
        try:
            values = [value for row in entrywise.tried(entry) for value in row.values]
            return state.share(values) if values else None
        except DynamicError as error:
            try:
                return state.failed(error)
            except DynamicError:
                entrywise.fails(entry, error)
                return None

    def _value(self) -> Values:
        known = {name: state.value for name, (_, state) in self._folds.items()}
        return self.site.evaluation.value(self._part.expression, self.scope, {}, known)

    def remembered(self, stream: str, entry: int) -> Any:
        found: dict[str, Any] = {}
        for name, (entrywise, _) in self._folds.items():
            known = entrywise.remembered(stream, entry)
            share = self._shares[name].get(entry) if stream == entrywise.part.stream else None
            if known is not None or share is not None:
                found[name] = [known, share]
        return found or None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        for name, (entrywise, _) in self._folds.items():
            known, share = (data or {}).get(name, (None, None))
            entrywise.recall(stream, entry, known)
            if stream == entrywise.part.stream:
                self._put(name, entry, share)


class WholeStage(Single):
    """What does not split; evaluated anew whenever one of its streams has changed."""

    def __init__(self, id: str, site: Site, scope: Scope, part: Whole) -> None:
        super().__init__(id, site, scope)
        self._part = part

    def find(self, changed: Changed) -> Iterator[Finding]:
        self._has_changed |= any(changed[name] for name in self._part.streams)
        return iter(())

    def take(self, finding: Finding) -> None:
        raise AssertionError("it does not distribute")

    def _value(self) -> Values:
        documents = {name: self.site.kept[name].whole() for name in self._part.streams}
        return self.site.evaluation.value(self._part.expression, self.scope, documents, {})

    def remembered(self, stream: str, entry: int) -> Any:
        return None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        pass
