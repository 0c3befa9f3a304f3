"""The parts of a query at work: what each entry gives is kept, and what has changed goes on display.

Between entries nothing is evaluated again.
The results of an entry are regions of the display, which stand in the order of the entries or of their keys; the share
that an entry has in an aggregate is taken out of it and put in again (history paper, sections 6 to 9).
What a stage remembers of an entry is plain data, and so can be put away with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from anabranch.algebra.history.display import Piece
from anabranch.branch.history.arranged import Arranged, Thing
from anabranch.branch.history.entrywise import Changed, Entrywise, Site
from anabranch.branch.history.evaluation import Scope
from anabranch.branch.history.folds import Fold, Share, fold
from anabranch.branch.history.parts import Computed, Each, Whole
from anabranch.branch.history.written import read_rank, write_rank
from anabranch.errors import DynamicError
from anabranch.reference.sequences import Values
from anabranch.reference.values import OrderRank

NONE = -1
"""The number of no entry."""


class Stage(ABC):
    """One part of the query; `id` tells it from the others, and names its place on display."""

    def __init__(self, id: str, site: Site, scope: Scope) -> None:
        self.id, self.site, self.scope = id, site, scope

    @abstractmethod
    def update(self, changed: Changed) -> None:
        """Look again at what has changed; what is gone comes first."""

    @abstractmethod
    def remembered(self, stream: str, entry: int) -> Any:
        """What the stage keeps of an entry, as plain data; None for nothing."""

    @abstractmethod
    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Take back what was kept of an entry, None for nothing, in the place of what is known of it.

        Entries that are gone come first, and those that are there have their places.
        """

    @abstractmethod
    def recalled(self) -> None:
        """All has been taken back."""


@dataclass(frozen=True, slots=True)
class _Result:
    ranks: tuple[OrderRank, ...]
    piece: Piece


class EachStage(Stage):
    """What distributes: a region of the display for each result, or for all results of an entry that stay together."""

    def __init__(self, id: str, site: Site, scope: Scope, part: Each) -> None:
        super().__init__(id, site, scope)
        self._entrywise = Entrywise(id, site, scope, part)
        self._results: dict[int, tuple[_Result, ...]] = {}
        self._recalled: dict[int, tuple[_Result, ...]] = {}
        """What is taken back."""
        order = site.kept[part.stream].order
        self._arranged = Arranged(order, tuple(key.descending for key in part.order))

    def update(self, changed: Changed) -> None:
        for entry in self._entrywise.again(changed):
            found: list[_Result] = []
            for row in self._entrywise.rows(entry):
                try:
                    piece = self.scope.piece(row.values)
                except DynamicError as error:
                    self._entrywise.fails(entry, error)
                    continue
                if piece is not None:
                    found.append(_Result(row.ranks, piece))
            self._show(entry, tuple(found))

    def _show(self, entry: int, results: tuple[_Result, ...]) -> None:
        """Put the results of an entry in the place of those it had."""
        display, before = self.site.display, self._results.pop(entry, ())
        for number, result in enumerate(before):
            thing = entry, number
            if number < len(results) and results[number].ranks == result.ranks:
                if results[number].piece != result.piece:
                    display.rewrite(self._name(thing), (results[number].piece,))
            else:
                display.delete(self._name(thing))
                self._arranged.remove(thing)
        for number, result in enumerate(results):
            if number >= len(before) or before[number].ranks != result.ranks:
                thing = entry, number
                behind = self._arranged.put(thing, result.ranks)
                anchor = self.id if behind is None else self._name(behind)
                display.region(self._name(thing), (result.piece,), before=anchor)
        if results:
            self._results[entry] = results

    def _name(self, thing: Thing) -> str:
        entry, number = thing
        return f"{self.id}.{entry}.{number}"

    def remembered(self, stream: str, entry: int) -> Any:
        known = self._entrywise.remembered(stream, entry)
        results = self._results.get(entry, ()) if stream == self._entrywise.part.stream else ()
        if known is None and not results:
            return None
        written = [
            [[write_rank(rank) for rank in each.ranks], each.piece.text, each.piece.begins, each.piece.ends]
            for each in results
        ]
        return [known, written]

    def recall(self, stream: str, entry: int, data: Any) -> None:
        known, written = data or (None, ())
        self._entrywise.recall(stream, entry, known)
        if stream == self._entrywise.part.stream and (written or entry in self._results or entry in self._recalled):
            self._recalled[entry] = tuple(
                _Result(tuple(read_rank(rank) for rank in ranks), Piece(text, begins, ends))
                for ranks, text, begins, ends in written
            )

    def recalled(self) -> None:
        found, self._recalled = self._recalled, {}
        if self._results:
            for entry, several in sorted(found.items(), key=lambda each: bool(each[1])):  # first what is gone
                self._show(entry, several)
            return
        self._results = {entry: several for entry, several in found.items() if several}
        results = {
            (entry, number): result for entry, several in self._results.items() for number, result in enumerate(several)
        }
        for thing in self._arranged.fill({thing: result.ranks for thing, result in results.items()}):
            self.site.display.region(self._name(thing), (results[thing].piece,), before=self.id)


class _Single(Stage):
    """A part that is one region of the display."""

    _piece: Piece | None = None
    _is_new = True

    @abstractmethod
    def _value(self) -> Values:
        """What stands there."""

    def _write(self) -> None:
        self._is_new = False
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


class ComputedStage(_Single):
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

    def update(self, changed: Changed) -> None:
        has_changed = self._is_new
        for name, (entrywise, state) in self._folds.items():
            shares = self._shares[name]
            for entry in entrywise.again(changed):
                has_changed |= self._put(shares, state, entry, self._share(entrywise, state, entry))
        if has_changed:
            self._write()

    def _put(self, shares: dict[int, Share], state: Fold, entry: int, share: Share) -> bool:
        """Put the share of an entry in the place of the one it had; gives whether it is another."""
        before = shares.get(entry)
        if share == before:
            return False
        if before is not None:
            state.remove(entry, shares.pop(entry))
        if share is not None:
            state.put(entry, share)
            shares[entry] = share
        return True

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
        for name, (entrywise, state) in self._folds.items():
            known, share = (data or {}).get(name, (None, None))
            entrywise.recall(stream, entry, known)
            if stream == entrywise.part.stream:
                self._put(self._shares[name], state, entry, share)


class WholeStage(_Single):
    """What does not split; evaluated anew whenever one of its streams has changed."""

    def __init__(self, id: str, site: Site, scope: Scope, part: Whole) -> None:
        super().__init__(id, site, scope)
        self._part = part

    def update(self, changed: Changed) -> None:
        if self._is_new or any(changed[name] for name in self._part.streams):
            self._write()

    def _value(self) -> Values:
        documents = {name: self.site.kept[name].whole() for name in self._part.streams}
        return self.site.evaluation.value(self._part.expression, self.scope, documents, {})

    def remembered(self, stream: str, entry: int) -> Any:
        return None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        pass
