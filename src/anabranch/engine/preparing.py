"""Queries on their way to an engine: checked, and given to the one that will answer them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from anabranch.algebra.plans.interpret import Plan
from anabranch.algebra.plans.written import streams_of, write_plan
from anabranch.branch.family import operator_of
from anabranch.branch.past.queries import RecalledQuery, recalled_query, refuse_mixture
from anabranch.engine.inputs import Inputs
from anabranch.engine.reading import read_documents
from anabranch.errors import AnabranchError, DynamicError, Unsupported, UsageError, did_you_mean
from anabranch.language import Checked, ast
from anabranch.law.arrivals.mixed import refuse_asking_items
from anabranch.law.arrivals.past import named
from anabranch.law.evaluate import Evaluator
from anabranch.law.history.evaluate import refuse_windows
from anabranch.runtime.shapes import CheckedTexts
from anabranch.runtime.standing import ordered_by_time, standing
from anabranch.sharing.looking import needs_of
from anabranch.sharing.retention import beyond_entries
from anabranch.spark.sinks.tables import check_table
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Contents

EngineName: TypeAlias = Literal["local", "spark", "reference"]
_SMALL = 64 << 20
"""Inputs of up to so many bytes are not worth starting Spark for."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that was checked, with the engine that will answer it."""

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
    """What it needs of the past of items, where it asks for it and that is known beforehand."""

    @property
    def shows(self) -> bool:
        """Whether its answer is a display, which is corrected."""
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
) -> Prepared:
    """Check a query, unless it is `checked`, and choose its engine.

    Where none is named it is a trunk, in this process for small inputs and on Spark for others, or else the reference.
    `label` is what errors call the query, a file's name say; `timeline` asks for all that it shows on the way.
    `DynamicError` where what a query fixes before its streams fails, for then it has no answer at all.
    """
    label = label or name
    checked = checked or inputs.check(text, label)
    updates = not inputs.edited.isdisjoint(named(checked.query))
    if updates:
        refuse_windows(checked.query, text, label)
        refuse_asking_items(checked.query, set(named(checked.query)) - inputs.edited, text, label)
    past = recalled_query(checked.query, inputs.functions, text, inputs.edited)
    trunk: EngineName = "local" if engine == "local" or (engine is None and inputs.size <= _SMALL) else "spark"
    chosen = Prepared(name, label, text, checked, trunk, None, updates, past)
    if engine == "reference":
        return replace(chosen, engine="reference")
    _try_documents(chosen, inputs)
    reason = _refused_by_trunk(chosen, inputs, timeline=timeline)
    if reason is not None and engine is not None:
        raise reason
    if reason is None and engine is None:
        if past is not None:
            reason = _reaches_root(chosen, inputs)
        elif not updates:  # a trunk would only gather the input first
            reason = standing(checked.query, inputs.functions, text).reason
    if reason is None:
        return chosen
    return replace(chosen, engine="reference", note=f"{reason.message}: the reference engine answers '{name}'")


def _try_documents(prepared: Prepared, inputs: Inputs) -> None:
    """Raise what a query's documents make fail that it fixes before its streams."""
    query, paths = prepared.checked.query, inputs.documents or {}
    if prepared.checked.documents and not prepared.updates:
        found = standing(query, inputs.functions, prepared.text, past=True)
        if isinstance(found.hole, ast.Flwor):
            documents = read_documents({name: paths[name] for name in found.documents})
            Evaluator(query, documents, inputs.functions or {}).bound(found.before, found.env)


def _refused_by_trunk(prepared: Prepared, inputs: Inputs, *, timeline: bool) -> Unsupported | None:
    """Why a trunk cannot do what is asked for; None where it can."""
    query = prepared.checked.query
    try:
        refuse_mixture(query, prepared.past, inputs.edited, prepared.text, prepared.label)
    except Unsupported as reason:
        return reason
    if timeline and not prepared.shows and _waits(prepared, inputs):
        return Unsupported(
            "what waits for the end of a stream has no timeline on Spark",
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


def _reaches_root(prepared: Prepared, inputs: Inputs) -> Unsupported | None:
    """Whether a query about the past of items looks at the root around them, which a branch does not have."""
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


def refuse_endless(prepared: Prepared, inputs: Inputs) -> None:
    """Refuse a query that has no answer before its streams end, for streams that have no end."""
    if prepared.updates or prepared.past is not None:
        return  # a display is never at its end, and what is needed of the past is known
    query = standing(prepared.checked.query, inputs.functions, prepared.text)
    reason = query.reason
    if query.kind == "interval join" and not ordered_by_time(query, {each.name: each.time for each in inputs.streams}):
        reason = Unsupported(
            "an interval join needs streams whose declared times are what it compares",
            text=prepared.text,
            span=query.flwor.span,
            hint='declare them, as in time = "det_time", or use windows',
        )
    if reason is not None:
        reason.name = prepared.label
        if _answered_over_updates(prepared, inputs):
            streams = " and ".join(f"'{each}'" for each in named(prepared.checked.query))
            reason.hint = f"with 'updates = true' for {streams} its answer is corrected as it goes, or {reason.hint}"
        raise reason


def _answered_over_updates(prepared: Prepared, inputs: Inputs) -> bool:
    """Whether a query would be answered if its streams were streams of updates, which need no end."""
    read = named(prepared.checked.query)
    edited = [replace(each, updates=True) if each.name in read else each for each in inputs.streams]
    try:
        return prepare(prepared.name, prepared.text, replace(inputs, streams=edited), "spark").updates
    except AnabranchError:
        return False


# --- subscriptions ----------------------------------------------------------------------------------------------------


class Checking:
    """Checks queries over some inputs; with other inputs it begins anew."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._texts = CheckedTexts(inputs.functions)

    def printed(self, name: str, text: str, *, label: str | None = None, table: bool = False) -> str:
        """A query as it is understood; `table` asks that its answers make one. Raises for a query that is wrong."""
        try:
            return self._printed(name, text, label, table)
        except DynamicError as error:
            message = f"the query '{label or name}' has no answer: {error.message}"
            raise DynamicError(message, code=error.code, hint=error.hint) from error

    def _printed(self, name: str, text: str, label: str | None, table: bool) -> str:
        if not table and (known := self._texts.printed(text)) is not None:
            return known
        prepared = prepare(name, text, self._inputs, "spark", label=label)
        refuse_endless(prepared, self._inputs)
        if table and prepared.shows:
            raise UsageError(f"the answer of '{name}' is corrected as it goes, so it makes no table")
        if table:
            check_table(name, prepared.checked.query)
        return self._texts.learn(text, prepared.checked.query)

    def written(self, name: str, plan: Plan) -> str:
        """A plan of the builder as it is written down; raises where it reads what is not there."""
        text = write_plan(plan)
        known = {each.name: each for each in self._inputs.streams}
        for each in streams_of(plan):
            if each in known and known[each].updates:
                raise UsageError(f"the plan '{name}' reads '{each}', and operators cannot follow updates yet")
            if each not in known:
                hint = did_you_mean(each, known, f"there is {', '.join(sorted(known)) or 'none yet'}")
                raise UsageError(f"the plan '{name}' reads the stream '{each}', which is not registered", hint=hint)
        return text
