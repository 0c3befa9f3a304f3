"""Queries before they are answered: checked, and assigned to an engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from anabranch.algebra.plans.interpret import Plan
from anabranch.algebra.plans.written import streams_of, write_plan
from anabranch.branch.family import operator_of
from anabranch.branch.growing.split import GrowingQuery, growing_query, growth_of
from anabranch.branch.joins.interval import streams_of as streams_of_joined
from anabranch.branch.past.queries import RecalledQuery, recalled_query, refuse_unfollowed
from anabranch.engine.inputs import Inputs
from anabranch.engine.reading import read_documents
from anabranch.errors import DynamicError, Span, Unsupported, UsageError, did_you_mean
from anabranch.language import Checked, ast, print_query
from anabranch.language.rewrite import parts
from anabranch.language.versions import is_closed, value_past
from anabranch.law.arrivals.mixed import refuse_past_in_predicates
from anabranch.law.arrivals.past import named
from anabranch.law.evaluate import Evaluator
from anabranch.law.history.evaluate import refuse_joined_windows, refuse_windows_of_items
from anabranch.predicate.writing import number_text
from anabranch.runtime.chains import ChainedQuery, chained_query
from anabranch.runtime.shapes import CheckedTexts
from anabranch.runtime.standing import keys_of, ordered_by_time, standing
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import beyond_entries
from anabranch.spark.sinks import Kafka, Parquet, Sink
from anabranch.spark.sinks.tables import check_table
from anabranch.spark.sinks.topics.keys import check_topic
from anabranch.sql import Language
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Contents

EngineName: TypeAlias = Literal["local", "spark", "reference"]
_LOCAL_BYTES = 64 << 20
"""Inputs up to this size do not need Spark."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked query, with its engine."""

    name: str
    label: str
    text: str
    checked: Checked
    engine: EngineName
    note: str | None
    """Why the reference answers it, where the caller left the choice open."""
    updates: bool = False
    """Whether it reads a stream of updates."""
    past: RecalledQuery | None = None
    """Its need of the past of items, where it asks for it and the need is bounded."""

    @property
    def shows(self) -> bool:
        """Whether its answer is a display."""
        return self.updates if self.past is None else self.past.standing is None

    @property
    def warnings(self) -> Iterator[str]:
        for warning in self.checked.warnings:
            line = self.text.count("\n", 0, warning.span.start) + 1
            yield f"{self.label}:{line}: {warning.message}"


def prepare(
    name: str,
    text: str,
    inputs: Inputs,
    engine: EngineName | None = None,
    *,
    label: str | None = None,
    timeline: bool = False,
    checked: Checked | None = None,
    endless: bool = False,
    language: Language | None = None,
) -> Prepared:
    """Check a query, unless it is `checked`, and choose its engine.

    By default that is a trunk, in this process for small inputs and on Spark for others, or else the reference.
    `label` is the query's name in errors, such as a file name; `timeline` asks for all its displays.
    `DynamicError` where what a query binds before its streams fails, for then it has no answer at all; over `endless`
    streams, documents may change, and it may have one later.
    """
    label = label or name
    checked = checked or inputs.check(text, label, language)
    updates = not inputs.edited.isdisjoint(named(checked.query))
    if updates:
        refuse_joined_windows(checked.query, text, label)
        refuse_windows_of_items(checked.query, inputs.edited, text, label)
        refuse_past_in_predicates(checked.query, set(named(checked.query)) - inputs.edited, text, label)
    past = recalled_query(checked.query, inputs.functions, text, inputs.edited)
    trunk: EngineName = "local" if engine == "local" or (engine is None and inputs.size <= _LOCAL_BYTES) else "spark"
    chosen = Prepared(name, label, text, checked, trunk, None, updates, past)
    if engine == "reference":
        return replace(chosen, engine="reference")
    if not endless:
        _try_documents(chosen, inputs)
    reason = _refused_by_trunk(chosen, inputs, timeline=timeline)
    if reason is not None and engine is not None:
        raise reason
    if reason is None and engine is None:
        if past is not None:
            reason = _reaches_root(chosen, inputs)
        elif not updates:  # a trunk would only buffer the input first
            reason = standing(checked.query, inputs.functions, text).reason
    if reason is None:
        return chosen
    return replace(chosen, engine="reference", note=f"{reason.message}: the reference engine answers '{name}'")


def _try_documents(prepared: Prepared, inputs: Inputs) -> None:
    """Raise the failures of a query's documents in what it binds before its streams."""
    query, paths = prepared.checked.query, inputs.documents or {}
    if prepared.checked.documents and not prepared.updates:
        found = standing(query, inputs.functions, prepared.text, past=True)
        if isinstance(found.hole, ast.Flwor):
            documents = read_documents({name: paths[name] for name in found.documents})
            Evaluator(query, documents, inputs.functions or {}).bound(found.before, found.env)


def _refused_by_trunk(prepared: Prepared, inputs: Inputs, *, timeline: bool) -> Unsupported | None:
    """Why a trunk cannot answer this; None where it can."""
    query = prepared.checked.query
    try:
        refuse_unfollowed(query, prepared.past, inputs.edited, prepared.text, prepared.label)
    except Unsupported as reason:
        return reason
    if timeline and not prepared.shows and _waits(prepared, inputs) and _at_once(prepared, inputs) is None:
        return Unsupported(
            "what has no answer before the end of a stream has no timeline on Spark",
            text=prepared.text,
            span=query.body.span,
            name=prepared.label,
            hint="'--engine reference' goes through all moments",
        )
    return None


def _waits(prepared: Prepared, inputs: Inputs) -> bool:
    """Whether an answer has to wait for the end of its streams."""
    if prepared.past is not None:
        return False
    query = standing(prepared.checked.query, inputs.functions, prepared.text)
    return operator_of(query, {}, endless=False) == "whole"


def _at_once(prepared: Prepared, inputs: Inputs) -> GrowingQuery | None:
    """A query whose answer is a display while its streams grow (LAWS 3.11); None for others."""
    if prepared.updates or prepared.past is not None or _chained(prepared, inputs) is not None:
        return None
    found = standing(prepared.checked.query, inputs.functions, prepared.text)
    return growing_query(found, inputs.functions or {})


def _chained(prepared: Prepared, inputs: Inputs) -> ChainedQuery | None:
    """A query whose windows are over what a loop gives, and that need not wait (LAWS 3.13); None for others."""
    found = chained_query(prepared.checked.query, inputs.functions or {})
    times = {each.name: each.time for each in inputs.streams}
    return None if found is None or operator_of(found.inner, times, endless=True) == "whole" else found


def _reaches_root(prepared: Prepared, inputs: Inputs) -> Unsupported | None:
    """Whether a query about the past of items reads the root around them, which a branch does not have."""
    needs = needs_of(prepared.checked.query)
    for source in inputs.streams:
        tree = needs.streams.get(source.name)
        if tree is not None and not source.updates and beyond_entries(tree, Contents(source, Limits()).root.name.local):
            return Unsupported(
                f"a look at the root of the stream '{source.name}' cannot be answered item by item",
                text=prepared.text,
                span=prepared.checked.query.body.span,
                name=prepared.label,
            )
    return None


def _growth(prepared: Prepared, inputs: Inputs) -> Iterator[str]:
    """Warnings of display state that grows with its streams."""
    for each in growth_of(prepared.checked.query, inputs.functions or {}):
        yield f"'{prepared.name}' keeps {each.what}, which grows ({_position(prepared, each.span)})"


def _kept_for_good(prepared: Prepared, inputs: Inputs) -> Iterator[str]:
    """Warnings of what is kept for values of expressions with variables: how far back they are is not known."""
    query = prepared.checked.query
    if not prepared.updates or not needs_of(query).evaluates_back:
        return
    streams = [each for each in inputs.streams if each.name in named(query) and each.updates]
    retained = min((each.retain for each in streams if each.retain is not None), default=None)
    for part in parts(query):
        past = value_past(part)
        if past is None or past.qualifier.kind != "version" or is_closed(past.expression):
            continue
        at = _position(prepared, past.qualifier.span)
        if retained is None:
            kept, bound = "all versions of what this reads, which grow", "; 'retain' of the stream bounds them"
        else:
            kept, bound = f"what this has read in the last {number_text(retained)} s, as 'retain' says", ""
        yield f"'{prepared.name}' keeps {kept} ({at}){bound}"


def _recalled_for_good(prepared: Prepared, inputs: Inputs) -> Iterator[str]:
    """Warnings of items that are kept because it is not known how far back a path with variables chooses them."""
    retained = {each.name: each.retain for each in inputs.streams}
    for each in () if prepared.past is None else prepared.past.asked:
        if not each.is_open:
            continue
        at, seconds = _position(prepared, each.path.span), retained.get(each.stream)
        if seconds is None:
            yield f"'{prepared.name}' keeps all items of '{each.stream}', which grow ({at}); 'retain' bounds them"
        else:
            kept = f"the items of '{each.stream}' of the last {number_text(seconds)} s, as 'retain' says"
            yield f"'{prepared.name}' keeps {kept} ({at})"


def _held_for_keys(prepared: Prepared, inputs: Inputs) -> Iterator[str]:
    """Warnings of items that a join by keys holds until punctuations close their keys."""
    if prepared.updates or prepared.past is not None:
        return
    chain = _chained(prepared, inputs)
    query = chain.inner if chain else standing(prepared.checked.query, inputs.functions, prepared.text)
    streams = {each.name: each for each in inputs.streams if each.name in query.streams}
    if operator_of(query, {name: each.time for name, each in streams.items()}, endless=True) == "keyed join":
        for clause, name in zip(query.fors, streams_of_joined(query), strict=True):
            if streams[name].retain is None:
                kept = f"keeps the items of '{name}' until punctuations of the other streams close their keys"
                at = _position(prepared, clause.span)
                yield f"'{prepared.name}' {kept} ({at}); 'retain' of the stream bounds them"


def _position(prepared: Prepared, span: Span) -> str:
    """A place in the text of a query, for people."""
    before = prepared.text[: span.start]
    return f"{prepared.label}:{before.count(chr(10)) + 1}:{len(before) - (before.rfind(chr(10)) + 1) + 1}"


def refuse_endless(prepared: Prepared, inputs: Inputs) -> None:
    """Refuse a query that has no answer before its streams end, for streams that have no end."""
    if prepared.updates or prepared.past is not None:
        return  # a display needs no end, and the need of the past is bounded
    if _chained(prepared, inputs) is not None:
        return
    query = standing(prepared.checked.query, inputs.functions, prepared.text)
    reason = query.reason
    times = {each.name: each.time for each in inputs.streams}
    if query.kind == "interval join" and not ordered_by_time(query, times) and not keys_of(query):
        reason = Unsupported(
            "an interval join needs streams whose declared times are what it compares",
            text=prepared.text,
            span=query.flwor.span,
            hint='declare them, as in time = "det_time", or use windows',
        )
    if reason is not None and growing_query(query, inputs.functions or {}) is None:
        reason.name = prepared.label
        raise reason


# --- subscriptions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EndlessQuery:
    """A query that can be answered over streams without an end."""

    prepared: Prepared
    growing: GrowingQuery | None
    """Set where its answer is a display while its streams grow (LAWS 3.11)."""
    growth: tuple[str, ...]
    """Warnings of state that grows with its streams."""

    @property
    def shows(self) -> bool:
        """Whether its answer is a display."""
        return self.prepared.shows or self.growing is not None


def prepare_endless(
    name: str, text: str, inputs: Inputs, *, label: str | None = None, language: Language | None = None
) -> EndlessQuery:
    """Check a query that is to be registered; raises for one that is wrong, or has to wait for the end."""
    prepared = prepare(name, text, inputs, "spark", label=label, endless=True, language=language)
    refuse_endless(prepared, inputs)
    growing = _at_once(prepared, inputs)
    warned = _growth(prepared, inputs) if growing is not None else _kept_for_good(prepared, inputs)
    kept = *_held_for_keys(prepared, inputs), *_recalled_for_good(prepared, inputs)
    return EndlessQuery(prepared, growing, (*warned, *kept))


class Checking:
    """Checks queries against some inputs; for other inputs a new one is created."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._texts: dict[Language | None, CheckedTexts] = {}
        """By the language that is given: one text may be a query in two."""
        self.growth: dict[str, tuple[str, ...]] = {}
        """By name: warnings of state of a `printed` query that grows with its streams."""

    def printed(
        self,
        name: str,
        text: str,
        *,
        label: str | None = None,
        sink: Sink | None = None,
        language: Language | None = None,
    ) -> str:
        """A query as printed. Raises for a query that is wrong, or whose answer does not fit its `sink`."""
        try:
            return self._printed(name, text, label, sink, language)
        except DynamicError as error:
            message = f"the query '{label or name}' has no answer: {error.message}"
            raise DynamicError(message, code=error.code, hint=error.hint) from error

    def _printed(self, name: str, text: str, label: str | None, sink: Sink | None, language: Language | None) -> str:
        texts = self._texts.setdefault(language, CheckedTexts(self._inputs.functions))
        if not isinstance(sink, Parquet | Kafka) and (known := texts.printed(text)) is not None:
            return known
        found = prepare_endless(name, text, self._inputs, label=label, language=language)
        prepared, shows = found.prepared, found.shows
        match sink:
            case Parquet() if shows:
                pass
            case Parquet(changes=str()):
                raise UsageError(
                    f"the answer of '{name}' only grows, so it has no 'changes'", hint="each of its results is a row"
                )
            case Parquet():
                check_table(name, prepared.checked.query)
            case Kafka():
                json = self._inputs.gives_json(prepared.checked)
                check_topic(name, sink, prepared.checked.query, shows=shows, json=json)
            case _:
                pass
        if found.growing is not None or found.growth:
            self.growth[name] = found.growth
            return print_query(prepared.checked.query)  # not cached: each has warnings of its own
        return texts.learn(text, prepared.checked.query)

    def gives_json(self, name: str, text: str, language: Language | None = None) -> bool:
        """Whether a query answers in JSON. Raises for one that is wrong."""
        return self._inputs.gives_json(self._inputs.check(text, name, language))

    def written(self, name: str, plan: Plan, *, sink: Sink | None = None) -> str:
        """A plan of the builder as text; raises where it reads an unknown stream, or does not fit its `sink`."""
        text = write_plan(plan)
        if isinstance(sink, Kafka):
            check_topic(name, sink, None, shows=False, json=False)
        known = {each.name: each for each in self._inputs.streams}
        for each in streams_of(plan):
            if each in known and known[each].updates:
                raise UsageError(f"the plan '{name}' reads '{each}', and operators cannot follow updates yet")
            if each not in known:
                hint = did_you_mean(each, known, f"there is {', '.join(sorted(known)) or 'none yet'}")
                raise UsageError(f"the plan '{name}' reads the stream '{each}', which is not registered", hint=hint)
        return text
