"""How a query over streams that only grow splits: as over documents that are edited, with loops over windows besides.

An item is an entry that is never edited, and a window that closes gives results that stay.
So a part that distributes over items needs no item again, and an aggregate over such a part keeps little more than its
value; only a part that does not split keeps items, and is evaluated anew with each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.branch.display.folds import ALL, ATOMS, fold
from anabranch.branch.display.parts import (
    ComputedPart,
    DistinctPart,
    EachPart,
    ElementPart,
    EntriesPart,
    Folded,
    GroupPart,
    Part,
    PlaceInterval,
    SequencePart,
    SlicePart,
    WholePart,
    WindowPart,
)
from anabranch.branch.display.split import Splitter, remembers
from anabranch.branch.growing.arrivals import ARRIVALS
from anabranch.errors import DynamicError, Span
from anabranch.language import ast
from anabranch.language.checks.unbounded import flows
from anabranch.language.rewrite import parts
from anabranch.language.versions import asks_otherwise, is_closed
from anabranch.law.calls import PythonFunction
from anabranch.law.paths import base_of
from anabranch.law.steps import made_here
from anabranch.runtime.past.value_histories import histories_of
from anabranch.runtime.standing import Standing, results_of, standing
from anabranch.sharing.needs import needs_of

_UNKNOWN_ROOT = ""
"""No element has this name; it stands for the root of a stream whose name is not known yet."""


@dataclass(frozen=True, slots=True)
class GrowingQuery:
    """A checked query over streams of items that has no part that stands before they end (LAWS 3.11)."""

    query: ast.Query
    text: str
    streams: tuple[str, ...]
    """The streams that it reads, in the order in which it names them, which decides ties (LAWS 1.2)."""


def growing_query(found: Standing, functions: Mapping[str, PythonFunction]) -> GrowingQuery | None:
    """A query that would have to wait for the end, as one whose answer is on display; None where it cannot be.

    It cannot be where it reads no stream, asks for a past without a bound or in the rounds of items, or computes
    something from all windows together.
    """
    if found.reason is None or not found.streams or asks_otherwise(found.query) or needs_of(found.query).evaluates_back:
        return None
    if _looks_back(found.query):
        return None
    splitter = GrowingSplitter(found.query, functions)
    values = [splitter.value_part(expression) for expression, _ in histories_of(found.query)]
    if any(map(_has_windows, (*parts_in(splitter.part(found.query.body)), *values))):
        return None
    return GrowingQuery(found.query, found.text, found.streams)


class GrowingSplitter(Splitter):
    """Splits the expressions of one checked query over streams that only grow."""

    def __init__(
        self, query: ast.Query, functions: Mapping[str, PythonFunction], roots: Mapping[str, str] | None = None
    ) -> None:
        names = {each.name for each in parts(query) if isinstance(each, ast.Source)}
        super().__init__(query, {**dict.fromkeys(names, _UNKNOWN_ROOT), **(roots or {})}, functions)
        self._registered = functions

    def _entries(self, expression: ast.Expression, is_shown: bool = True) -> EntriesPart | None:
        if remembers(expression):
            return None
        if remembers(expression):
            return None
        if isinstance(expression, ast.Flwor) and self._each(expression, is_shown) is None:
            return self._windowed(expression, is_shown)
        found = super()._entries(expression, is_shown)
        # what is joined with another stream needs all items of that again
        return None if isinstance(found, EachPart) and found.beside else found

    def _edited_windows(self, flwor: ast.Flwor) -> None:
        """Windows of streams that only grow are those of `_entries`."""
        return

    def _is_inlined(self, value: ast.Expression) -> bool:
        """A window that fails is set aside wherever its results are used, so the loop may be inlined anywhere."""
        if super()._is_inlined(value):
            return True
        return isinstance(value, ast.Flwor) and isinstance(self._entries(value, is_shown=False), WindowPart)

    def _windowed(self, expression: ast.Flwor, is_shown: bool) -> WindowPart | None:
        """A loop over windows, or over the tuples of several, which depends on nothing around it."""
        if not is_closed(expression):
            return None
        try:
            found = standing(replace(self._query, body=replace(expression, order=())), self._registered)
        except DynamicError:
            return None  # what it computes before its streams fails, and so the whole query does
        if found.kind not in ("windows", "step join") or (is_shown and self._gives_attributes(expression)):
            return None
        return WindowPart(expression, replace(found, hole=expression))

    def _keeps_up(self, groups: GroupPart) -> bool:
        """Items stay, so a group may hold them, or be numbered."""
        return True

    def _folded(self, node: ast.Call | ast.Quantified) -> Folded | None:
        found = super()._folded(node)
        return None if found is not None and isinstance(found.over, EachPart) and found.over.beside else found

    def _all(self, node: Any) -> Folded | None:
        """All results of windows, of groups or of an interval of places, where none of them is a node of an item."""
        if not isinstance(node, ast.Flwor | ast.Pipeline | ast.Filter | ast.Call) or not self._reads(node):
            return None
        if not is_closed(node):
            return None
        match self._entries(node, is_shown=False):
            case None | EachPart():
                return None
            case SlicePart() as part if self._is_made(part.over):
                return Folded(ALL, part)
            case (WindowPart() | GroupPart() | DistinctPart()) as over if self._is_made(over):
                return Folded(ALL, SlicePart(over, PlaceInterval(0, None)))
            case _:
                return None

    def _is_made(self, part: EntriesPart) -> bool:
        """Whether all that a part gives are values, or nodes that it makes itself."""
        match part:
            case DistinctPart():
                return True
            case EachPart(_, ast.Flwor() as loop) | WindowPart(loop):
                made: ast.Flwor | ast.Pipeline = loop
            case GroupPart(pipeline=pipeline):
                made = pipeline
            case _:
                return False
        results = made.result.items if isinstance(made.result, ast.Sequence) else (made.result,)
        return all(
            made_here(each) or results_of(replace(made, result=each), self._functions) <= {"value"} for each in results
        )


def _looks_back(query: ast.Query) -> bool:
    """Whether items are looked at as of the moments of their arrival: such rounds stand, and are not run anew.

    What windows were at earlier moments, the law alone finds.
    """
    found = list(parts(query))
    if any(isinstance(each, ast.For) and each.window is not None for each in found) and histories_of(query):
        return True
    lets = frozenset(each.variable for each in found if isinstance(each, ast.Let) and flows(each.value))
    functions = {each.name: each for each in query.functions}
    if any(remembers(each.body) for each in query.functions):
        return any(isinstance(each, ast.For) and flows(each.source, lets, functions) for each in found)
    return any(
        (isinstance(each, ast.Flwor | ast.Path | ast.Filter) and flows(each, lets, functions) and remembers(each))
        or (isinstance(each, ast.Pipeline) and _reads_in_rounds(each, lets, functions) and remembers(each))
        for each in found
    )


def _reads_in_rounds(pipeline: ast.Pipeline, lets: frozenset[str], functions: Mapping[str, ast.Function]) -> bool:
    return any(isinstance(each, ast.For) and flows(each.source, lets, functions) for each in pipeline.clauses)


def parts_in(part: Part) -> Iterator[Part]:
    """The parts within a part that are not put together from others."""
    match part:
        case SequencePart(inner):
            for each in inner:
                yield from parts_in(each)
        case ElementPart(_, content):
            for found in content:
                if not isinstance(found, ast.Characters | ast.CommentConstructor):
                    yield from parts_in(found)
        case _:
            yield part


def _has_windows(part: Part) -> bool:
    """Whether a part that does not split has windows over a stream; windows over a part of an item do not count."""
    if not isinstance(part, WholePart):
        return False
    found = list(parts(part.expression))
    lets = {each.variable for each in found if isinstance(each, ast.Let) and flows(each.value)}
    for each in found:
        if isinstance(each, ast.For) and each.window is not None:
            match base_of(each.source):
                case ast.Source("stream") | ast.Call() | ast.Flwor():
                    return True
                case ast.Variable(name) if name in lets:
                    return True
    return False


@dataclass(frozen=True, slots=True)
class Growth:
    """What a display keeps that grows with a stream, and the part of the query that needs it."""

    what: str
    span: Span


def growth_of(query: ast.Query, functions: Mapping[str, PythonFunction]) -> tuple[Growth, ...]:
    """What grows with the streams while such a query is answered."""
    splitter = GrowingSplitter(query, functions)
    values = (splitter.value_part(expression) for expression, _ in histories_of(query))
    found = [each for part in (*parts_in(splitter.part(query.body)), *values) for each in _growth(part)]
    return tuple(dict.fromkeys(found))


def _growth(part: Part) -> Iterator[Growth]:
    match part:
        case SlicePart(over) if part.is_bounded:
            if isinstance(over, DistinctPart):
                yield from _growth(over)
        case SlicePart(over):
            yield from _growth(over)
        case DistinctPart(over):
            yield Growth("one row per different value", _span(_expression(over)))
        case GroupPart(stream, held=held):
            yield Growth(f"one row per group of '{stream}'", _span(part.pipeline))
            if held:
                yield Growth(f"every item of '{stream}'", _span(part.pipeline))
            for seen in part.folds:
                if seen.function == ATOMS or not fold(seen.function, ARRIVALS).is_small:
                    what = "all different values" if seen.function == ATOMS else "all values"
                    yield Growth(f"{what} that are asked for of a group", seen.argument.span)
        case EachPart(stream, expression):
            yield Growth(f"one row per item of '{stream}' that adds to its answer", _span(expression))
        case WindowPart(flwor, found):
            streams = " and ".join(f"'{each}'" for each in found.streams)
            what = "window" if found.kind == "windows" else "pair"
            yield Growth(f"one row per {what} of {streams} that adds to its answer", _span(flwor))
        case ComputedPart(_, names):
            for _, folded in names:
                match folded.over:
                    case EachPart() | WindowPart() if not fold(folded.function, ARRIVALS).is_small:
                        what = f"all values that '{folded.function}()' is taken over"
                        yield Growth(what, _span(_expression(folded.over)))
                    case GroupPart() | DistinctPart() | SlicePart():
                        yield from _growth(folded.over)
        case WholePart(expression, streams):
            for each in streams:
                yield Growth(f"every item of '{each}'", _span(expression))
        case _:
            pass


def _expression(part: EntriesPart) -> ast.Expression:
    """A part as it is written."""
    match part:
        case EachPart(_, expression):
            return expression
        case WindowPart(flwor):
            return flwor
        case GroupPart(pipeline=pipeline):
            return pipeline
        case DistinctPart(over) | SlicePart(over):
            return _expression(over)


def _span(expression: ast.Expression) -> Span:
    if isinstance(expression, ast.Pipeline):
        return next(each.span for each in expression.clauses if isinstance(each, ast.GroupBy))
    return expression.order[0].span if isinstance(expression, ast.Flwor) and expression.order else expression.span
