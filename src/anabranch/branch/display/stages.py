"""The stages of a query, one for each part: they keep the results of each entry, and put changes on display.

Between entries nothing is evaluated again.
The results of an entry are regions of the display, which stand in the order of the entries or of their keys; the share
that an entry has in an aggregate is taken out of it and put in again (history paper, sections 6 to 9).
The state that a stage has of an entry is plain data, and is saved with the entry.

To find the results of an entry and to take them in are two steps, which may be done in two places (`strands.py`).
Results with an `order by` stand in the order of their keys, those with equal keys in that of their entries
(`SortedResults`): a sorted answer cannot be adjusted from itself alone (LAWS 5.6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from anabranch.aggregates.folds import Fold, Share
from anabranch.algebra.display.display import Piece
from anabranch.algebra.display.sorting import EntryPlaces, ResultId, SortedResults
from anabranch.branch.display.compiled_loops.loops import ShownRow
from anabranch.branch.display.compiled_loops.rounds import NumberedRows
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.folds import fold
from anabranch.branch.display.parts import ComputedPart, Folded, WholePart
from anabranch.branch.document.state import read_rank, write_rank
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.evaluate import ResultRow
from anabranch.values.atomic import OrderRank
from anabranch.values.sequences import Values


class Finding(NamedTuple):
    """The results, or the share, of an entry in a part that distributes."""

    part: str
    entry: int
    value: Any


class Stage(ABC):
    """One part of the query; `id` identifies it and its place on display."""

    parts: tuple[str, ...] = ()
    """The ids of what distributes in it, in the order of evaluation."""

    def __init__(self, id: str, site: QuerySite, scope: AnswerScope) -> None:
        self.id, self.site, self.scope = id, site, scope

    def update(self, changed: Changed) -> None:
        """Evaluate changed entries again, those that are gone first."""
        for finding in self.find(changed):
            self.take(finding)
        self.settle()

    @abstractmethod
    def find(self, changed: Changed) -> Iterator[Finding]:
        """The findings of the entries that have to be evaluated again."""

    def take(self, finding: Finding) -> None:
        """Replace the earlier finding of an entry, in stages that distribute."""
        raise AssertionError("it does not distribute")

    def settle(self) -> None:  # noqa: B027  # most stages have nothing to do
        """End a moment: all its findings were taken."""

    def write(self, value: Any) -> Any:
        """The value of a finding as plain data."""
        return value

    def read(self, data: Any) -> Any:
        """The value of a finding from what `write` gave."""
        return data

    def keeps(self, stream: str, entry: int) -> bool:
        """Whether the stage keeps something of an entry, for one that is never edited."""
        return False

    def forgotten(self) -> Collection[tuple[str, int]]:
        """The entries, each with its stream, of which nothing is kept any more since the last call."""
        return ()

    def remembered(self, stream: str, entry: int) -> Any:
        """What the stage keeps of an entry, as plain data; None for nothing."""
        return None

    def recall(self, stream: str, entry: int, data: Any) -> None:  # noqa: B027  # a stage may keep nothing of entries
        """Replace what is known of an entry by what was saved of it; None for nothing.

        Entries that are gone come first, and those that are there have their places.
        """

    def renew(self) -> None:  # noqa: B027  # what distributes is evaluated again entry by entry
        """Compute anew at the next moment what depends on more than entries: a document has changed."""

    def reshow(self) -> None:
        """Show all anew at the next moment, at which all entries are evaluated again: the units have changed."""
        self.renew()

    @abstractmethod
    def recalled(self) -> None:
        """End the restoring: all entries were recalled."""


class EntrySource(Protocol):
    """A source of results, entry by entry: entries of a document that is edited, items, or windows that close."""

    @property
    def stream(self) -> str:
        """The name under which the entries are numbered: a stream, or the id of a part."""

    @property
    def is_lasting(self) -> bool:
        """Whether the results of an entry never change."""

    @property
    def may_forget(self) -> bool:
        """Whether an entry can be forgotten once none of its results can be seen again."""

    def again(self, changed: Changed) -> Collection[int]:
        """The entries to be evaluated again."""

    def rows(self, entry: int) -> Sequence[ResultRow]:
        """The results of an entry; none where it is gone, or makes the whole answer fail."""

    def shown(self, entry: int) -> Sequence[ResultRow | ShownRow] | NumberedRows:
        """The same, perhaps as they are shown, and of a large entry perhaps only what changes."""

    def tried(self, entry: int) -> Sequence[ResultRow]:
        """The results of an entry; none where it is gone, and an error where it fails."""

    def fails(self, entry: int, error: DynamicError) -> None:
        """Let the whole answer fail because of an entry."""

    def remembered(self, stream: str, entry: int) -> Any:
        """What is kept of an entry, as plain data; None for nothing."""

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Restore what was kept of an entry; None for nothing."""


class ShownResult(NamedTuple):
    """A result on display, with its ranks in the order that the query asks for."""

    ranks: tuple[OrderRank, ...]
    piece: Piece


@dataclass(frozen=True, slots=True)
class NumberedResults:
    """Results of a large entry by their numbers: all of them, or `only` those of some numbers."""

    results: dict[int, ShownResult]
    only: tuple[int, ...] | None = None


class EachStage(Stage):
    """A part that distributes: a region of the display for each row of each entry."""

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        entrywise: EntrySource,
        places: EntryPlaces,
        order: Iterable[ast.OrderKey],
    ) -> None:
        """`places` is the order of the entries, and `order` are the keys by which their results are sorted."""
        super().__init__(id, site, scope)
        self.parts = (id,)
        self._entrywise = entrywise
        self._results: dict[int, tuple[ShownResult, ...]] = {}
        self._numbered: dict[int, dict[int, ShownResult]] = {}
        """The results of large entries, by their numbers."""
        self._recalled: dict[int, tuple[ShownResult, ...] | NumberedResults] = {}
        """The results that were restored and are not on display yet."""
        self._arranged = SortedResults(places, tuple(key.descending for key in order))

    def find(self, changed: Changed) -> Iterator[Finding]:
        for entry in self._entrywise.again(changed):
            rows = self._entrywise.shown(entry)
            if isinstance(rows, NumberedRows):
                results = {
                    number: ShownResult(row.ranks, row.piece)
                    for number, row in rows.rows.items()
                    if row.piece is not None
                }
                yield Finding(self.id, entry, NumberedResults(results, rows.only))
            else:
                yield Finding(self.id, entry, tuple(self._results_of(entry, rows)))

    def _results_of(self, entry: int, rows: Iterable[ResultRow | ShownRow]) -> Iterator[ShownResult]:
        """The rows of an entry as they are shown."""
        for row in rows:
            try:
                piece = row.piece if isinstance(row, ShownRow) else self.scope.piece(row.values)
            except DynamicError as error:
                self._entrywise.fails(entry, error)
                continue
            if piece is not None:
                yield ShownResult(row.ranks, piece)

    def take(self, finding: Finding) -> None:
        if isinstance(finding.value, NumberedResults):
            self._show_numbered(finding.entry, finding.value)
        else:
            if finding.entry in self._numbered:
                self._show_numbered(finding.entry, NumberedResults({}))
            self._show(finding.entry, finding.value)

    def write(self, value: Any) -> Any:
        if isinstance(value, NumberedResults):
            numbers = sorted(value.results)
            written = self.write([value.results[number] for number in numbers])
            return {"numbers": numbers, "results": written, "only": value.only}
        return [
            [[write_rank(rank) for rank in each.ranks], each.piece.text, each.piece.begins, each.piece.ends]
            for each in value
        ]

    def read(self, data: Any) -> Any:
        if isinstance(data, dict):
            only = None if data["only"] is None else tuple(data["only"])
            return NumberedResults(dict(zip(data["numbers"], self.read(data["results"]), strict=True)), only)
        return tuple(
            ShownResult(tuple(read_rank(rank) for rank in ranks), Piece(text, begins, ends))
            for ranks, text, begins, ends in data
        )

    def _show(self, entry: int, results: tuple[ShownResult, ...]) -> None:
        """Replace the results of an entry on display."""
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

    def _show_numbered(self, entry: int, change: NumberedResults) -> None:
        """Replace results of a large entry on display, all or some."""
        if entry in self._results:
            self._show(entry, ())
        display, known = self.site.display, self._numbered.setdefault(entry, {})
        numbers = sorted(known.keys() | change.results.keys() if change.only is None else change.only)
        for number in numbers:
            thing, before, result = (entry, number), known.get(number), change.results.get(number)
            if before is not None and (result is None or result.ranks != before.ranks):
                display.delete(self._name(thing))
                self._arranged.remove(thing)
                del known[number]
            elif before is not None and result is not None:
                if result.piece != before.piece:
                    display.rewrite(self._name(thing), (result.piece,))
                known[number] = result
        for number in numbers:
            if (result := change.results.get(number)) is not None and number not in known:
                thing = entry, number
                behind = self._arranged.put(thing, result.ranks)
                display.region(
                    self._name(thing), (result.piece,), before=self.id if behind is None else self._name(behind)
                )
                known[number] = result
        if not known:
            del self._numbered[entry]

    def _name(self, thing: ResultId) -> str:
        entry, number = thing
        return f"{self.id}.{entry}.{number}"

    def keeps(self, stream: str, entry: int) -> bool:
        return stream == self._entrywise.stream and (entry in self._results or entry in self._numbered)

    def remembered(self, stream: str, entry: int) -> Any:
        known = self._entrywise.remembered(stream, entry)
        results: Any = self._results.get(entry, ()) if stream == self._entrywise.stream else ()
        if stream == self._entrywise.stream and entry in self._numbered:
            results = NumberedResults(self._numbered[entry])
        if known is None and not results:
            return None
        return [known, self.write(results)]

    def recall(self, stream: str, entry: int, data: Any) -> None:
        known, written = data or (None, ())
        self._entrywise.recall(stream, entry, known)
        shown = (self._results, self._numbered, self._recalled)
        if stream == self._entrywise.stream and (written or any(entry in each for each in shown)):
            self._recalled[entry] = self.read(written)

    def recalled(self) -> None:
        found, self._recalled = self._recalled, {}
        if self._results or self._numbered:
            for entry, several in sorted(found.items(), key=lambda each: bool(each[1])):  # removals first
                self.take(Finding(self.id, entry, several))
            return
        results: dict[ResultId, ShownResult] = {}
        for entry, several in found.items():
            if isinstance(several, NumberedResults):
                self._numbered[entry] = several.results
                results |= {(entry, number): result for number, result in several.results.items()}
            elif several:
                self._results[entry] = several
                results |= {(entry, number): result for number, result in enumerate(several)}
        for thing in self._arranged.fill({thing: result.ranks for thing, result in results.items()}):
            self.site.display.region(self._name(thing), (results[thing].piece,), before=self.id)


NONE = -1
"""The entry under which a stage without entries notes its errors."""


class Single(Stage):
    """A part that is one region of the display."""

    _piece: Piece | None = None
    _has_changed = True
    """Whether it has to be computed anew, as at the beginning."""

    @abstractmethod
    def _value(self) -> Values:
        """The value that is shown."""

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

    def renew(self) -> None:
        self._has_changed = True

    def recalled(self) -> None:
        self._write()

    def written(self) -> Any:
        """The piece on display, as plain data."""
        return None if self._piece is None else [self._piece.text, self._piece.begins, self._piece.ends]

    def stood(self, data: Any) -> None:
        """Restore the piece that was on display, without computing it anew."""
        piece = None if data is None else Piece(*data)
        self._has_changed = False
        if piece != self._piece:
            self.site.display.rewrite(self.id, () if piece is None else (piece,))
            self._piece = piece


class ComputedStage(Single):
    """A value computed from aggregates; it is computed anew when one of them has changed."""

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        part: ComputedPart,
        source: Callable[[str, Folded], tuple[EntrySource, EntryPlaces]],
    ) -> None:
        """`source` gives, for the id of an aggregate, the source of its values, and the order of the entries there."""
        super().__init__(id, site, scope)
        self._part = part
        self._folds: dict[str, tuple[EntrySource, Fold]] = {}
        for name, folded in part.names:
            entrywise, places = source(f"{id}.{name}", folded)
            self._folds[name] = entrywise, fold(folded.function, places)
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
        """Replace the share of an entry in an aggregate."""
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

    def _share(self, entrywise: EntrySource, state: Fold, entry: int) -> Share:
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

    def keeps(self, stream: str, entry: int) -> bool:
        shares = ((each.stream, self._shares[name]) for name, (each, _) in self._folds.items())
        return any(stream == source and entry in known for source, known in shares)

    def remembered(self, stream: str, entry: int) -> Any:
        found: dict[str, Any] = {}
        for name, (entrywise, _) in self._folds.items():
            known = entrywise.remembered(stream, entry)
            share = self._shares[name].get(entry) if stream == entrywise.stream else None
            if known is not None or share is not None:
                found[name] = [known, share]
        return found or None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        for name, (entrywise, _) in self._folds.items():
            known, share = (data or {}).get(name, (None, None))
            entrywise.recall(stream, entry, known)
            if stream == entrywise.stream:
                self._put(name, entry, share)


class WholeStage(Single):
    """A part that does not split; it is evaluated anew whenever one of its streams has changed."""

    def __init__(
        self, id: str, site: QuerySite, scope: AnswerScope, part: WholePart, whole: Callable[[str], Any]
    ) -> None:
        """`whole` gives a whole stream in the form that evaluations take."""
        super().__init__(id, site, scope)
        self._part, self._whole = part, whole

    def find(self, changed: Changed) -> Iterator[Finding]:
        self._has_changed |= any(changed[name] for name in self._part.streams)
        return iter(())

    def _value(self) -> Values:
        documents = {name: self._whole(name) for name in self._part.streams}
        return self.site.evaluation.value(self._part.expression, self.scope, documents, {})
