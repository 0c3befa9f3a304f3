"""The evaluation of parts of a query by the law's own evaluator, over one entry or over a whole stream.

A stream is a document that is edited or, where it only grows, its items (`branch/growing/`).

`Entrywise` is a part that distributes over the entries of a stream: which of them have to be evaluated again, and the
results of each.
An error inside a round of a loop sets aside what the law says; an error outside of any round makes the whole answer
fail (`failing`), and nothing is on display until it is gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import blake2b
from typing import Any, Generic, TypeAlias, TypeVar, Unpack

from anabranch.algebra.display.display import Display, Piece
from anabranch.branch.display.compiled_loops.kept_nodes import Unusual
from anabranch.branch.display.compiled_loops.loops import CompiledLoop, ShownRow, compiled
from anabranch.branch.display.compiled_loops.rounds import EntryRounds, NumberedRows
from anabranch.branch.display.joins.keys import ANY, JoinKey, Meeting
from anabranch.branch.display.joins.ranges import JoinRange, RangeMeeting, keys_by, meeting_by
from anabranch.branch.display.parts import EachPart
from anabranch.branch.document.projection import KeptDocument, seen_of
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm
from anabranch.law.env import Env
from anabranch.law.evaluate import Known, ResultRow
from anabranch.law.history.chains import Content, DocumentContents, with_moments
from anabranch.law.history.display_units import DisplayUnits
from anabranch.law.history.evaluate import Around, HistoryEvaluator
from anabranch.runtime.past.value_histories import HistoryKey, Remembering, ValueHistory
from anabranch.runtime.tables import Lookups
from anabranch.runtime.units import piece_of
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import Visibility
from anabranch.stream.elements import DeadLetter
from anabranch.values.atomic import Atomic
from anabranch.values.objects.json_text import json_lines, refuse_json
from anabranch.values.sequences import Values, atomize


@dataclass(frozen=True, slots=True)
class AnswerScope:
    """What names mean at a place in the query, and the namespaces that are declared around it in the answer."""

    env: Env
    declared: Mapping[str, str] = field(default_factory=dict)
    form: AnswerForm | None = None
    """What the answer is, where the place is in no element, and so values stand in the answer itself."""
    units: DisplayUnits = field(default_factory=DisplayUnits)
    """The units of the display."""
    steps: tuple[str, ...] | None = None
    """The way from the outermost element to the one around the place; None where there is none."""

    def piece(self, values: Values) -> Piece | None:
        """Values as they are written at that place; None for nothing at all."""
        if self.units.maps:
            values = self.units.forward(values) if self.steps is None else self.units.forward_inside(self.steps, values)
        if not values:
            return None
        if self.form == "json":
            return Piece(json_lines(values))
        if self.form == "xml":
            refuse_json(values)
        piece = piece_of(values, self.declared)
        return Piece(piece.text, piece.begins, piece.ends)


class _LookupEvaluator(Remembering, Lookups, HistoryEvaluator):
    """The law's evaluator, which looks up rows of documents by their keys, and values of the past."""

    def moment_time(self) -> Fraction:
        return self._now

    def _as_of(self, then: Fraction, moment: int | None) -> HistoryEvaluator:
        found = _LookupEvaluator(
            self.query, self._documents, then, until=then, moment=moment, lives=self._lives, **self._around
        )
        found.histories = self.histories
        return found


C = TypeVar("C")
"""The form in which an evaluation is given a stream."""


class PartEvaluator(ABC, Generic[C]):
    """Evaluates parts of one query; `now` is the time of the latest element."""

    def __init__(self, query: ast.Query, **around: Unpack[Around]) -> None:
        self.query = query
        self.around = around
        self.now = Fraction(0)
        self.evaluated = 0
        """How many evaluations there were; for tests and measurements."""
        self.aside: list[DeadLetter] = []
        """The dead letters of the latest evaluation."""
        self.histories: dict[HistoryKey, ValueHistory] = {}
        """The values of the past that evaluations look up."""

    def rows(self, expression: ast.Expression, scope: AnswerScope, documents: Mapping[str, C]) -> list[ResultRow]:
        """The results of an expression in the order of the document, with their ranks where it asks for an order."""
        evaluator = self.over(documents, {})
        if isinstance(expression, ast.Flwor) and expression.order:
            rows = evaluator.rows(expression, scope.env)
        else:
            rows = [ResultRow((), evaluator.top(expression, scope.env))]
        self.aside = list(dict.fromkeys(evaluator.dead))
        return rows

    def atoms(self, expression: ast.Expression, scope: AnswerScope, documents: Mapping[str, C]) -> list[Atomic] | None:
        """The values that an expression over nodes finds; None where something fails on the way."""
        evaluator = self.over(documents, {})
        try:
            found = atomize(evaluator.top(expression, scope.env))
        except DynamicError:
            return None
        return None if evaluator.dead else found

    def value(
        self,
        expression: ast.Expression,
        scope: AnswerScope,
        documents: Mapping[str, C],
        known: Known,
    ) -> Values:
        """The value of an expression."""
        evaluator = self.over(documents, known)
        values = evaluator.top(expression, scope.env)
        self.aside = list(dict.fromkeys(evaluator.dead))
        return values

    def over(self, documents: Mapping[str, C], known: Known) -> Remembering:
        """An evaluator for one evaluation, over what is given of the streams, with variables that are `known`."""
        self.evaluated += 1
        self.aside = []
        evaluator = self._over(documents)
        evaluator.known = known
        evaluator.histories = self.histories
        return evaluator

    @abstractmethod
    def _over(self, documents: Mapping[str, C]) -> Remembering:
        """An evaluator over what is given of the streams."""


class DocumentEvaluator(PartEvaluator[DocumentContents]):
    """Evaluates parts of a query over documents that are edited."""

    def __init__(self, query: ast.Query, **around: Unpack[Around]) -> None:
        super().__init__(query, **around)
        self._evaluates_back = needs_of(query).evaluates_back

    def _over(self, documents: Mapping[str, DocumentContents]) -> Remembering:
        if self._evaluates_back:
            documents = {name: with_moments(each) for name, each in documents.items()}
        return _LookupEvaluator(self.query, documents, self.now, **self.around)


Changed: TypeAlias = Mapping[str, Collection[int]]
"""For each stream, the entries that have to be evaluated again, first those that are gone."""


@dataclass(slots=True)
class QuerySite:
    """What all parts of a query work on."""

    evaluation: PartEvaluator[Any]
    display: Display = field(default_factory=Display)
    failing: dict[tuple[str, int], DynamicError] = field(default_factory=dict)
    """The errors that make the whole answer fail, by part and entry."""
    dead: list[DeadLetter] = field(default_factory=list)
    """Dead letters that are still to be written."""
    told: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """Digests of the dead letters that were written, by part and entry, as long as the entry fails so."""

    def tell(self, part: str, entry: int) -> None:
        """Write the dead letters of the latest evaluation, but for those that the evaluation before it has written."""
        before = self.told.pop((part, entry), [])
        if letters := self.evaluation.aside:
            marks = [blake2b(letter.to_json().encode(), digest_size=8).hexdigest() for letter in letters]
            self.told[part, entry] = marks
            self.dead += [letter for letter, mark in zip(letters, marks, strict=True) if mark not in before]


class Entrywise:
    """One part that distributes; `id` identifies it."""

    def __init__(
        self, id: str, site: QuerySite, scope: AnswerScope, part: EachPart, kept: Mapping[str, KeptDocument]
    ) -> None:
        self.part = part
        self._id, self._site, self._scope, self._kept = id, site, scope, kept
        self._meetings: dict[str, Meeting | RangeMeeting] = {name: meeting_by(key) for name, key in part.keys}
        self._rounds: dict[int, EntryRounds] = {}
        """By number: the rounds of large entries."""
        is_plain = scope.form != "json" and not scope.declared and not scope.env.namespaces.get("")
        self._compiled = (
            compiled(part.expression, site.evaluation.query, kept[part.stream].root)
            if is_plain and not part.beside
            else None
        )

    is_lasting = may_forget = False

    @property
    def stream(self) -> str:
        return self.part.stream

    def again(self, changed: Changed) -> Collection[int]:
        """The entries to be evaluated again: those that have changed, and those that meet a changed entry."""
        own = changed[self.part.stream]
        if not self.part.beside:
            return own
        kept = self._kept
        met: set[int] = set()
        for name, key in self.part.keys:
            meeting = self._meetings[name]
            for entry in own:
                meeting.own.put(entry, self._keys(key, self.part.stream, entry))
            for entry in changed[name]:
                met |= meeting.met_by_other(entry)
                meeting.other.put(entry, self._keys(key, name, entry))
                met |= meeting.met_by_other(entry)
        if any(changed[name] for name in self.part.beside if name not in self._meetings):
            met.update(kept[self.part.stream].numbers())
        kept[self.part.stream].unsaved.entries.update(dict.fromkeys(met))  # their results are saved again
        return dict.fromkeys((*own, *sorted(met))) if met else own

    def shown(self, entry: int) -> Sequence[ResultRow | ShownRow] | NumberedRows:
        """The results of an entry, as they are shown where nothing in it is unusual; of a large one what changes."""
        found = self._usual(entry)
        return self.rows(entry) if found is None else found

    def rows(self, entry: int) -> list[ResultRow]:
        """The results of an entry; none where it is gone, or makes the whole answer fail."""
        try:
            return self.tried(entry)
        except DynamicError as error:
            self.fails(entry, error)
            return []

    def _usual(self, entry: int) -> list[ShownRow] | NumberedRows | None:
        """The results of an entry, where nothing in it is unusual; else None."""
        rounds = self._rounds.pop(entry, None)
        loop, kept = self._compiled, self._kept[self.part.stream]
        known = kept.by_number.get(entry)
        if loop is None or known is None or known.content is None or self._scope.units.maps:
            return None
        evaluation = self._site.evaluation
        if loop.calls and not loop.calls.isdisjoint(evaluation.around.get("functions") or ()):
            return None
        try:
            rows = self._in_rounds(loop, entry, known.content, rounds) or loop.rows(known.content)
        except (Unusual, DynamicError):
            return None
        evaluation.evaluated += 1
        self._site.failing.pop((self._id, entry), None)
        self._site.told.pop((self._id, entry), None)
        return rows

    def _in_rounds(
        self, loop: CompiledLoop, entry: int, content: Content, rounds: EntryRounds | None
    ) -> NumberedRows | None:
        """What changes of the results of a large entry, or all of them; None for a small one."""
        if not loop.is_separable:
            return None
        regions = self._kept[self.part.stream].within.get(entry)
        rows = rounds.changed(regions) if rounds is not None and regions else None
        if rows is None:
            made = EntryRounds.of(loop, content)
            if made is None:
                return None
            rounds, rows = made
        assert rounds is not None
        self._rounds[entry] = rounds
        return rows

    def tried(self, entry: int) -> list[ResultRow]:
        """The results of an entry; none where it is gone."""
        kept = self._kept
        self._site.failing.pop((self._id, entry), None)
        if entry not in kept[self.part.stream].by_number:
            self._site.told.pop((self._id, entry), None)
            return []
        documents: dict[str, DocumentContents] = {}
        for name in self.part.beside:
            meeting = self._meetings.get(name)
            documents[name] = kept[name].whole() if meeting is None else kept[name].some(meeting.met_by_own(entry))
        documents[self.part.stream] = self._contents(entry)
        rows = self._site.evaluation.rows(self.part.expression, self._scope, documents)
        self._site.tell(self._id, entry)
        return rows

    def _contents(self, entry: int) -> DocumentContents:
        """What the query sees of an entry, and what its dead letters show; not what is kept in case that more comes."""
        found = self._kept[self.part.stream].some((entry,))
        return replace(found, entries=seen_of(found.entries, self._sight()))

    def _sight(self) -> Visibility:
        """What the query sees of the root of its stream."""
        return self._kept[self.part.stream].sight

    def fails(self, entry: int, error: DynamicError) -> None:
        """Let the whole answer fail because of an entry."""
        self._site.failing[self._id, entry] = error

    def _keys(self, key: JoinKey | JoinRange, stream: str, entry: int) -> Collection[str | None]:
        """The keys of an entry of this stream or another."""
        if entry not in self._kept[stream].by_number:
            return ()
        contents = {stream: self._kept[stream].some((entry,))}

        def atoms(expression: ast.Expression) -> list[Atomic] | None:
            return self._site.evaluation.atoms(expression, self._scope, contents)

        return keys_by(key, atoms, is_own=stream == self.part.stream)

    # --- state --------------------------------------------------------------------------------------------

    def remembered(self, stream: str, entry: int) -> Any:
        """The keys of an entry of this or another stream, and its digests, as plain data; None for nothing."""
        found: dict[str, Any] = {}
        told = self._site.told.get((self._id, entry)) if stream == self.part.stream else None
        for name, meeting in self._meetings.items():
            keyed = meeting.own if stream == self.part.stream else meeting.other
            if stream in (self.part.stream, name) and (entry in keyed.keys or isinstance(meeting, RangeMeeting)):
                found[name] = list(keyed.keys.get(entry, ()))
        return [found, told] if found or told else None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Replace what is known of an entry by what was saved of it; None for nothing."""
        if stream == self.part.stream:
            self._rounds.pop(entry, None)  # its nodes are others now
        nothing: tuple[dict[str, Any], None] = {}, None
        keys, told = data or nothing
        for name, meeting in self._meetings.items():
            if stream in (self.part.stream, name):
                # an earlier release kept no numbers of entries, so that all of them met
                is_unknown = isinstance(meeting, RangeMeeting) and entry in self._kept[stream].by_number
                unknown: tuple[None, ...] = (ANY,) if is_unknown else ()
                (meeting.own if stream == self.part.stream else meeting.other).put(entry, keys.get(name, unknown))
        if stream == self.part.stream:
            if told:
                self._site.told[self._id, entry] = told
            else:
                self._site.told.pop((self._id, entry), None)
