"""The verdict on a query before it is registered: the one that registering would give, and what is known of it then.

Only the text and the streams matter, never the other subscriptions: a check costs the same beside any number of them.
The parsers bound how long and how deep a text may be; what is compiled for an explanation is bounded here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, TypeAlias

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EndlessQuery, prepare_endless
from anabranch.engine.reports.columns import SupposedLook
from anabranch.engine.reports.explanation import explained_alone, explained_query
from anabranch.errors import AnabranchError, DynamicError
from anabranch.language import print_query
from anabranch.runtime.units import looks_outside
from anabranch.service.refusals import details
from anabranch.sharing.explain.text import Explained, explain_text
from anabranch.site import SiteDescription
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds import alone_as, decide
from anabranch.spark.plan.kinds.kind import QueryContext, QueryKind
from anabranch.sql import Language
from anabranch.sql.reading import is_sql
from anabranch.stream.reading.source import KnownStream

AnswerKind: TypeAlias = Literal["xml", "json", "display"]

LABEL = "query"
"""How a query without a name is called in explanations."""
_LONGEST_EXPLAINED = 20_000
"""Characters of a query that is compiled and drawn; longer ones can be registered all the same."""
_KEPT = 512
"""Queries of which the explanation is kept."""


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that could be registered."""

    text: str
    language: Language
    endless: EndlessQuery
    printed: str
    query: QueryKind
    registration: Registration
    """As it would be registered, without a number."""
    answer: AnswerKind
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """What `anabranch explain` prints of a query, and of this how much is answered in columns."""

    text: str
    columns: str
    is_columnar: bool
    keeps: tuple[str, ...]
    """What a query that is answered by itself has to keep."""


class QueryInputs:
    """What queries may read in one version of a site, and what is known of it; any thread may ask."""

    def __init__(self, site: SiteDescription, inputs: Inputs) -> None:
        self.site = site
        self.inputs = inputs
        self._looks: dict[str, SupposedLook] = {}
        """By stream, once it is known."""
        self._explained: OrderedDict[tuple[str, str, Language], QueryExplanation] = OrderedDict()
        self._lock = Lock()

    def check(self, text: str, language: Language | None, plan: Plan | None, *, name: str = LABEL) -> CheckedQuery:
        """Check a query as if it were registered now; raises what registering would raise."""
        spelled: Language = "sql" if is_sql(text, language) else "xquery"
        try:
            found = prepare_endless(name, text, self.inputs, language=language)
        except DynamicError as error:
            message = f"the query '{name}' has no answer: {error.message}"
            raise DynamicError(message, code=error.code, hint=error.hint) from error
        printed = print_query(found.prepared.checked.query)
        known = self.known(plan)
        registration, query = decide(Registration(-1, name, printed, 0), known)
        answer: AnswerKind = "json" if self.inputs.gives_json(found.prepared.checked) else "xml"
        warnings = (*self._warnings(found), *found.growth, *_outside(query, plan))
        return CheckedQuery(
            text, spelled, found, printed, query, registration, "display" if found.shows else answer, warnings
        )

    @staticmethod
    def _warnings(found: EndlessQuery) -> Iterator[str]:
        """What the check noticed, by line."""
        for each in found.prepared.checked.warnings:
            line = found.prepared.text.count("\n", 0, each.span.start) + 1
            yield f"line {line}: {each.message}"

    def known(self, plan: Plan | None) -> QueryContext:
        """The streams of the site, with the forms that an epoch has found."""
        forms = {each.name: each.form for each in plan.streams} if plan else {}
        streams = {name: KnownStream.of(each, forms.get(name)) for name, each in self.site.streams.items()}
        return QueryContext(streams, tuple((self.inputs.functions or {}).items()))

    # --- explanations -------------------------------------------------------------------------------------------

    def explain(self, name: str, checked: CheckedQuery, plan: Plan | None) -> QueryExplanation:
        """The explanation of a query; of one that was asked for lately, the same again."""
        key = name, checked.text, checked.language
        with self._lock:
            if key in self._explained:
                self._explained.move_to_end(key)
                return self._explained[key]
        found = self._explain(name, checked, plan)
        with self._lock:
            self._explained[key] = found
            if len(self._explained) > _KEPT:
                self._explained.popitem(last=False)
        return found

    def _explain(self, name: str, checked: CheckedQuery, plan: Plan | None) -> QueryExplanation:
        if len(checked.text) > _LONGEST_EXPLAINED:
            words = f"a query of more than {_LONGEST_EXPLAINED:,} characters is not explained"
            return QueryExplanation(f"{name}: {words}", words, False, ())
        known = self.known(plan)
        try:
            found = self._explained_as(name, checked, known)
            text = "\n".join(explain_text([found]))
        except RecursionError:
            words = "a query with paths so deep is not explained"
            return QueryExplanation(f"{name}: {words}", words, False, ())
        return QueryExplanation(text, *_columns(found, checked.query), found.keeps)

    def _explained_as(self, name: str, checked: CheckedQuery, known: QueryContext) -> Explained:
        alone = alone_as(name, checked.printed, known)
        if alone is not None:
            return explained_alone([name], alone, known)
        schemas = {each: source.schema for each, source in self.site.streams.items() if source.schema}
        looks = self.looks(checked.query.streams)
        tree = checked.endless.prepared.checked.query
        return explained_query(name, tree, checked.text, schemas, looks, dict(self.inputs.functions or {}))

    def looks(self, streams: Collection[str]) -> Mapping[str, SupposedLook]:
        """The looks of some streams' items, as far as they are known by now."""
        for each in streams:
            source = self.site.streams.get(each)
            if source is not None and each not in self._looks:
                found = SupposedLook.of(source, source.schema)
                if found is not None:
                    self._looks[each] = found
        return {each: self._looks[each] for each in streams if each in self._looks}


def _outside(query: QueryKind, plan: Plan | None) -> Iterator[str]:
    """Why a query would end as soon as it begins: it reads the root of a stream, which has no end."""
    roots = {each.name: each.root() for each in plan.streams} if plan else {}
    if query.standing is not None and set(query.streams) <= roots.keys():
        reason = looks_outside(query.standing, roots)
        if reason:
            yield f"it would end at once: {reason}"


def _columns(found: Explained, query: QueryKind) -> tuple[str, bool]:
    """How much of a query runs in columns, in words, and whether all of it does."""
    if found.columns is None:
        by_itself = "what it shows is kept up to date, item by item" if query.shows else "it is answered by itself"
        return f"not in columns: {by_itself}", False
    return "\n".join(each.strip() for each in found.columns.lines()), found.columns.construct is None


def error_of(error: AnabranchError) -> dict[str, Any]:
    """An error in a query as an object; its place is None where it concerns the query as a whole."""
    return {"line": None, "column": None, "length": None, **details(error)}
