"""How a query over streams that only grow splits: as over documents that are edited, with loops over windows besides.

An item is an entry that is never edited, and a window that closes gives results that stand.
So what distributes needs no item again, and an aggregate over it little more than its value; only what does not split
keeps items, and is evaluated anew with each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from anabranch.branch.display.folds import fold
from anabranch.branch.display.split import (
    ComputedPart,
    EachPart,
    ElementPart,
    Folded,
    Part,
    SequencePart,
    Splitter,
    WholePart,
    WindowPart,
    is_closed,
)
from anabranch.errors import DynamicError, Span
from anabranch.language import ast
from anabranch.language.checks.unbounded import flows
from anabranch.language.rewrite import parts
from anabranch.law.arrivals.recall import asks
from anabranch.law.calls import PythonFunction
from anabranch.law.paths import base_of
from anabranch.runtime.standing import Standing, standing

_UNKNOWN_ROOT = ""
"""No element is called so: what the root of a stream is called may not be known yet."""


@dataclass(frozen=True, slots=True)
class GrowingQuery:
    """A checked query over streams of items that has no part that stands before they end (LAWS 3.11)."""

    query: ast.Query
    text: str
    streams: tuple[str, ...]
    """Those that it reads, in the order in which it names them, which decides ties (LAWS 1.2)."""


def growing_query(found: Standing, functions: Mapping[str, PythonFunction]) -> GrowingQuery | None:
    """A query that would have to wait for the end, as one whose answer is on display; None where it cannot be.

    It cannot where it reads no stream, asks for a past of which nobody knows how far it reaches, or makes something of
    all windows together.
    """
    if found.reason is None or not found.streams or asks(found.query):
        return None
    if any(map(_has_windows, parts_in(split_growing(found.query, functions)))):
        return None
    return GrowingQuery(found.query, found.text, found.streams)


def split_growing(
    query: ast.Query, functions: Mapping[str, PythonFunction], roots: Mapping[str, str] | None = None
) -> Part:
    """Split a checked query; `roots` are the local names of the root elements of its streams, as far as known."""
    names = {each.name for each in parts(query) if isinstance(each, ast.Source)}
    known = {**dict.fromkeys(names, _UNKNOWN_ROOT), **(roots or {})}
    return _GrowingSplitter(query, known, functions).part(query.body)


class _GrowingSplitter(Splitter):
    def __init__(self, query: ast.Query, roots: Mapping[str, str], functions: Mapping[str, PythonFunction]) -> None:
        super().__init__(query, roots)
        self._registered = functions

    def _entries(self, expression: ast.Expression, is_shown: bool = True) -> EachPart | WindowPart | None:
        each = self._each(expression, is_shown)
        if each is not None:
            return None if each.beside else each  # what meets another stream needs all of that again
        return self._windowed(expression, is_shown)

    def _windowed(self, expression: ast.Expression, is_shown: bool) -> WindowPart | None:
        """A loop over windows, or over the tuples of several, which gives the same wherever it stands."""
        if not isinstance(expression, ast.Flwor) or not is_closed(expression):
            return None
        try:
            found = standing(replace(self._query, body=replace(expression, order=())), self._registered)
        except DynamicError:
            return None  # what it fixes before its streams fails, and so does the whole
        if found.kind not in ("windows", "step join") or (is_shown and self._gives_attributes(expression)):
            return None
        return WindowPart(expression, replace(found, hole=expression))

    def _folded(self, node: ast.Call | ast.Quantified) -> Folded | None:
        found = super()._folded(node)
        return None if found is not None and isinstance(found.over, EachPart) and found.over.beside else found


def parts_in(part: Part) -> Iterator[Part]:
    """A part that reads streams, or those in it."""
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
    """Whether windows of a stream are in what does not split; windows on a part of an item are its own business."""
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
    """What grows while a query is answered that is one of these."""
    found = [each for part in parts_in(split_growing(query, functions)) for each in _growth(part)]
    return tuple(dict.fromkeys(found))


def _growth(part: Part) -> Iterator[Growth]:
    match part:
        case EachPart(stream, expression):
            yield Growth(f"one row per item of '{stream}' that adds to its answer", _span(expression))
        case WindowPart(flwor, found):
            streams = " and ".join(f"'{each}'" for each in found.streams)
            what = "window" if found.kind == "windows" else "pair"
            yield Growth(f"one row per {what} of {streams} that adds to its answer", _span(flwor))
        case ComputedPart(_, names):
            for _, folded in names:
                if not fold(folded.function, ARRIVALS).is_small:
                    yield Growth(f"all values that '{folded.function}()' is taken over", _span(_over(folded)))
        case WholePart(expression, streams):
            for each in streams:
                yield Growth(f"every item of '{each}'", _span(expression))
        case _:
            pass


def _over(folded: Folded) -> ast.Expression:
    return folded.over.flwor if isinstance(folded.over, WindowPart) else folded.over.expression


def _span(expression: ast.Expression) -> Span:
    return expression.order[0].span if isinstance(expression, ast.Flwor) and expression.order else expression.span


class ArrivalNumbers:
    """The order of entries that are numbered as they come."""

    def __init__(self) -> None:
        self.count = 0

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count))

    def precedes(self, one: int, other: int) -> bool:
        """Whether one has come before the other."""
        return one < other


ARRIVALS = ArrivalNumbers()
"""An order of nothing."""
