"""Queries on their way to an engine: checked, and given to the one that will answer them.

Over finite streams of updates the law answers in this process (`updating.py`) unless Spark is asked for: it needs no
more than what is there at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from anabranch.branch.past.queries import recalled_query
from anabranch.errors import Unsupported
from anabranch.language import Checked, ast, check, parse
from anabranch.language.rewrite import parts
from anabranch.reference.arrivals.recall import asks
from anabranch.reference.calls import PythonFunction
from anabranch.reference.history.evaluate import refuse_windows
from anabranch.reference.standing import ordered_by_time, standing
from anabranch.stream.schema import Schema
from anabranch.stream.source import Source

EngineName: TypeAlias = Literal["spark", "reference"]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What queries may read: streams, and documents by name."""

    streams: Sequence[Source] = ()
    documents: Mapping[str, Path] | None = None
    functions: Mapping[str, PythonFunction] | None = None

    def schemas(self) -> dict[str, Schema | None]:
        """The known inputs; a document has no schema."""
        documents: dict[str, Schema | None] = dict.fromkeys(self.documents or {})
        return {source.name: source.schema for source in self.streams} | documents


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that was checked, with the engine that will answer it."""

    name: str
    label: str
    text: str
    checked: Checked
    engine: EngineName
    note: str | None
    """Why it is not answered on Spark, where the caller left the choice open."""
    updates: bool = False
    """Whether it reads a stream of updates."""
    by_law: bool = False
    """Whether the caller insists on the reference."""

    @property
    def warnings(self) -> Iterator[str]:
        for warning in self.checked.warnings:
            line = self.text.count("\n", 0, warning.span.start) + 1
            yield f"{self.label}:{line}: {warning.message}"


def prepare(
    name: str, text: str, inputs: Inputs, engine: EngineName | None = None, *, label: str | None = None
) -> Prepared:
    """Parse and check a query and choose its engine; `engine` of None means Spark where it can.

    `label` is what errors call the query, a file's name say.
    """
    label = label or name
    checked = check(
        parse(text, label),
        text,
        inputs=inputs.schemas(),
        functions=tuple(inputs.functions or ()),
        name=label,
    )
    if _edited(checked.query, inputs):
        refuse_windows(checked.query, text, label)
        if engine == "spark" and (items := _items_beside(checked.query, inputs)):
            raise Unsupported(
                "a query about the past cannot read streams of items and of updates together on Spark yet",
                text=text,
                span=items.span,
                name=label,
                hint="'anabranch query' answers it over finite inputs",
            )
        by_law = engine == "reference"
        return Prepared(name, label, text, checked, engine or "reference", None, updates=True, by_law=by_law)
    if engine == "reference":
        return Prepared(name, label, text, checked, "reference", None)
    reason = standing(checked.query, inputs.functions, text).reason
    if reason is not None and engine is None:
        # Spark would only gather the input first, and starting it takes its time.
        return Prepared(
            name, label, text, checked, "reference", f"{reason.message}: the reference engine answers '{name}'"
        )
    return Prepared(name, label, text, checked, "spark", None)


def _edited(query: ast.Query, inputs: Inputs) -> ast.Source | None:
    """The first stream of updates that a query reads."""
    edited = {each.name for each in inputs.streams if each.updates}
    sources = (part for part in parts(query) if isinstance(part, ast.Source))
    return next((each for each in sources if each.name in edited), None)


def _items_beside(query: ast.Query, inputs: Inputs) -> ast.Source | None:
    """The first stream of items that a query reads which asks for the past: there rounds stand (LAWS 5.5)."""
    items = {each.name for each in inputs.streams if not each.updates}
    sources = (part for part in parts(query) if isinstance(part, ast.Source))
    return next((each for each in sources if each.name in items), None) if asks(query) else None


def refuse_endless(prepared: Prepared, inputs: Inputs) -> None:
    """Refuse a query that has no answer before its streams end, for streams that have no end."""
    if prepared.updates or recalled_query(prepared.checked.query, inputs.functions):
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
        raise reason
