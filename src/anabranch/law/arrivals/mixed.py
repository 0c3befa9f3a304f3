"""Queries about the past that read streams of updates and streams of items together.

They are evaluated over documents (`law/history/`); a stream of items is a document that nobody edits, with two
differences (LAWS 5.5):

* versions of a path over them are arrivals, as in `recall.py`;
* a round of an unqualified `for` over one is run at the moment of its item's arrival, and its results stand; so every
  moment has to be gone through, and what stands is kept.

The results of a `for` over updates are corrected, and so are those of every expression inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Self, TypeAlias, Unpack

from anabranch.errors import DynamicError, Unsupported
from anabranch.language import ast
from anabranch.language.json_results import with_json_results
from anabranch.language.rewrite import parts
from anabranch.language.versions import is_path, uses_variables
from anabranch.law.answer import ShownAnswer
from anabranch.law.arrivals.qualified import Qualified, Wanted, qualified
from anabranch.law.arrivals.recall import asks
from anabranch.law.construct import answer_text
from anabranch.law.env import Env
from anabranch.law.evaluate import ResultRow
from anabranch.law.history.chains import DocumentContents, DocumentMoment
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.evaluate import Around, Clauses, HistoryEvaluator, RoundResults, Unit, form_around
from anabranch.law.history.timeline import Arriving
from anabranch.law.history.view import DocumentView, Lives
from anabranch.law.paths import base_of
from anabranch.law.slices import Slice, WholeNeeded
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.tree import Child
from anabranch.values.sequences import Value, Values

_Found: TypeAlias = list[tuple[Child | None, Value]]
_Predicates: TypeAlias = tuple[ast.Predicate, ...]


@dataclass(slots=True)
class StandingResults:
    """The results of rounds that were run, by clause and item."""

    items: frozenset[str]
    """The streams of items."""
    rows: dict[tuple[int, Place], list[ResultRow]] = field(default_factory=dict)


class MixedEvaluator(HistoryEvaluator):
    """Evaluates at a moment; a round whose results stand already is not run again."""

    def __init__(
        self,
        query: ast.Query,
        documents: Mapping[str, DocumentContents],
        now: Fraction,
        stood: StandingResults,
        *,
        until: Fraction | None = None,
        moment: int | None = None,
        lives: Lives | None = None,
        **around: Unpack[Around],
    ) -> None:
        super().__init__(query, documents, now, until=until, moment=moment, lives=lives, **around)
        self._stood = stood
        self._replayed = StandingResults(stood.items)
        """The results that stood at the moments before, for values of these."""

    def _at_moment(self, moment: DocumentMoment) -> Self:
        found = super()._at_moment(moment)
        found._stood = self._replayed
        return found

    def _as_of(self, then: Fraction, moment: int | None) -> HistoryEvaluator:
        stood = StandingResults(self._stood.items)
        return MixedEvaluator(
            self.query, self._documents, then, stood, until=then, moment=moment, lives=self._lives, **self._around
        )

    # --- rounds that stand --------------------------------------------------------------------------------

    def _rounds(self, flwor: ast.Flwor, clauses: Clauses, env: Env, unit: Unit, rounds: RoundResults) -> None:
        first = clauses[0] if clauses else None
        if unit or not isinstance(first, ast.For) or not self._stands(first.source):
            super()._rounds(flwor, clauses, env, unit, rounds)
            return
        for entry, group in groupby(self._by_entry(first.source, env), key=lambda each: each[0]):
            assert entry is not None
            key = id(first), self._place(entry)
            if key not in self._stood.rows:
                bound = [env.bind(first.variable, [value]) for _, value in group]
                self._stood.rows[key] = self._run(flwor, clauses[1:], bound, entry)
            rounds.found += [((entry,), row) for row in self._stood.rows[key]]

    def _run(self, flwor: ast.Flwor, clauses: Clauses, environments: Sequence[Env], entry: Child) -> list[ResultRow]:
        """The results of one item's round; what fails is set aside."""
        rounds = RoundResults()
        self.apart(partial(self._entry_rounds, flwor, clauses, environments, (entry,), rounds))
        return self._surviving(rounds)

    def _stands(self, source: ast.Expression) -> bool:
        view = self._stream(source)
        return view is not None and self._of_items(view) and qualified(source) is None

    # --- versions that are arrivals -----------------------------------------------------------------------

    def _by_entry(self, expression: ast.Expression, env: Env) -> _Found:
        asked, view = qualified(expression), self._stream(expression)
        if asked is None or view is None or not self._of_items(view):
            return super()._by_entry(expression, env)
        if qualified(asked.base) is not None:
            found = self._chosen(self._by_entry(asked.base, env), asked.qualifier)
        else:
            found = self._looked_back(asked, view, env)
        taken: _Found = []
        for entry, group in groupby(found, key=lambda each: each[0]):
            values = [value for _, value in group]
            for each in asked.behind:
                if isinstance(each, ast.Step):
                    values = self._step(values, each, env, None)
                else:
                    values = self._filter(values, (each,), env, None)
            taken += [(entry, value) for value in values]
        return taken

    def _looked_back(self, asked: Qualified, view: DocumentView, env: Env) -> _Found:
        wanted = Wanted.by(asked.qualifier, self._now)
        of_items = not uses_variables(asked.base)
        if not of_items:
            source = base_of(asked.base)
            assert isinstance(source, ast.Source)
            wanted = wanted.retained((self._around.get("retained") or {}).get(source.name), self._now)
        versions: list[_Found] = []
        mark = len(self.dead)
        try:
            for entry in reversed(view.places):
                if len(versions) == wanted.end:
                    break
                if wanted.reaches(self._lives.standing[entry].start):
                    body = partial(self._reached_in, asked.base, env, self._slice(view, entry))
                    values = self._set_aside_alone(entry, body) if of_items else body()
                    versions += [[(entry, value) for value in values]] if values else []
        except WholeNeeded:
            del self.dead[mark:]
            whole = self.walk(asked.base, env)
            return self._chosen([(self._entry(value), value) for value in whole], asked.qualifier)
        self.grant_items(asked.qualifier, len(versions[wanted.first :]))
        return [each for version in versions[wanted.first :] for each in version]

    def _reached_in(self, path: ast.Expression, env: Env, part: Slice) -> Values:
        reached = self.apart(lambda: self.walk(path, env, part))
        part.look_at_result(reached)
        return reached

    def _set_aside_alone(self, entry: Child, body: Callable[[], Values]) -> Values:
        """Run a body; an error sets it aside, also inside of a round."""
        try:
            return body()
        except DynamicError as error:
            before, self._in_unit = self._in_unit, False
            self._bury(entry, error)
            self._in_unit = before
            return []

    def _step(self, values: Values, taken: ast.Step, env: Env, part: Slice | None) -> Values:
        place = next((at for at, each in enumerate(taken.tail) if isinstance(each, ast.Qualifier)), None)
        if place is None or not self._from_items(values):
            return super()._step(values, taken, env, part)
        qualifier = taken.tail[place]
        assert isinstance(qualifier, ast.Qualifier)
        reached = super()._step(values, replace(taken, tail=taken.tail[:place]), env, part)
        return self._filter(self._versions(reached, qualifier), taken.tail[place + 1 :], env, part)

    def _qualified(
        self,
        base: ast.Expression,
        before: _Predicates,
        qualifier: ast.Qualifier,
        env: Env,
        part: Slice | None,
    ) -> Values:
        if is_path(base) and self._from_items(values := self.walk(base, env, part)):
            return self._versions(self._filter(values, before, env, part), qualifier)
        return super()._qualified(base, before, qualifier, env, part)

    def _versions(self, values: Values, qualifier: ast.Qualifier) -> Values:
        found = self._chosen([(self._entry(value), value) for value in values], qualifier)
        return [value for _, value in found]

    def _chosen(self, found: _Found, qualifier: ast.Qualifier) -> _Found:
        """The versions asked for among values of streams of items: stream by stream, and the newest first."""
        wanted = Wanted.by(qualifier, self._now)
        chosen = [each for each in found if each[0] is None and not wanted.first]
        for view in self._views.values():
            mine = {entry for entry, _ in found if entry is not None and entry in view.places}
            back = [each for each in reversed(view.places) if each in mine]
            reached = [each for each in back if wanted.reaches(self._lives.standing[each].start)]
            for entry in reached[wanted.first : wanted.end]:
                chosen += [each for each in found if each[0] is entry]
        return chosen

    def _from_items(self, values: Values) -> bool:
        """Whether there are values, and all are parts of items."""
        entries = [self._entry(value) for value in values]
        views = [view for view in self._views.values() if self._of_items(view)]
        return bool(values) and all(each is not None and any(each in view.places for view in views) for each in entries)

    def _of_items(self, view: DocumentView) -> bool:
        return any(self._views.get(name) is view for name in self._stood.items)

    def _place(self, entry: Child) -> Place:
        return next(view.places[entry] for view in self._views.values() if entry in view.places)


def mixed_displays(
    query: ast.Query,
    documents: Mapping[str, EditedDocument],
    items: frozenset[str],
    arriving: Iterable[Arriving],
    dead: list[DeadLetter],
    **around: Unpack[Around],
) -> Iterator[ShownAnswer]:
    """What is on display after every moment, also where that is the same; as `history.timeline.displays` otherwise."""
    refuse_past_in_predicates(query, items, around.get("text"))
    stood = StandingResults(items)
    form = form_around(query, around)
    query, json = with_json_results(query, form, edited=True), form == "json"
    failing = ""
    for each in arriving:
        for _ in documents[each.stream].take(each.element, each.at, each.partition):
            now = max(document.now for document in documents.values())
            contents = {name: document.contents for name, document in documents.items()}
            evaluator = MixedEvaluator(query, contents, now, stood, **around)
            try:
                shown = ShownAnswer(now, answer_text(evaluator.top(query.body, Env.of(query)), json=json))
            except DynamicError as error:
                shown = ShownAnswer(now, "", error)
                if error.message != failing:
                    letter = DeadLetter(each.element.place, error.message, "", error.code, around.get("name"))
                    evaluator.dead.append(letter)
            failing = "" if shown.error is None else shown.error.message
            dead += [letter for letter in dict.fromkeys(evaluator.dead) if letter not in dead]
            yield shown


def mixes(query: ast.Query, items: Collection[str]) -> bool:
    """Whether a query has results that stand, given the streams of items that it reads beside those of updates.

    A round over items that reads nothing else gives the same results at any moment.
    """
    loops = [part for part in parts(query) if isinstance(part, ast.Flwor) and not _looped(part).isdisjoint(items)]
    return bool(items) and (asks(query) or any(len(_stream_names(each)) > 1 for each in loops))


def _stream_names(part: object) -> set[str]:
    return {each.name for each in parts(part) if isinstance(each, ast.Source) and each.kind == "stream"}


def _looped(flwor: ast.Flwor) -> set[str]:
    """The streams that `for`s run over."""
    sources = (base_of(clause.source) for clause in flwor.clauses if isinstance(clause, ast.For))
    return {each.name for each in sources if isinstance(each, ast.Source) and each.kind == "stream"}


def refuse_past_in_predicates(
    query: ast.Query, items: Collection[str], text: str | None, name: str | None = None
) -> None:
    """Refuse an unqualified path over items whose predicates read the past or another stream.

    Only a `for` says at which moment such a condition is evaluated.
    """
    for part in parts(query):
        if isinstance(part, ast.Path | ast.Filter) and qualified(part) is None:
            source = base_of(part)
            if not isinstance(source, ast.Source) or source.name not in items:
                continue
            if asks(part) or _stream_names(part) > {source.name}:
                raise Unsupported(
                    "a predicate on a stream of items cannot ask for the past, or a stream of updates, yet",
                    text=text or "",
                    span=part.span,
                    name=name,
                    hint="write 'for $x in ... where ...'",
                )
