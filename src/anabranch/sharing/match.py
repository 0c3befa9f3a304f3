"""Matching and merging property trees (sharing paper, section 4): may a query use a stream, and how must it widen?

`differences(stream, query)` compares the tree of a stream that is already there with that of a new query; where it
finds none the query *matches*: all it needs is in the stream.
`merge(stream, query)` is the tree of the stream widened so that the query matches, and all queries that used the stream
before still match.

Windows can be combined from smaller ones (4.2, 4.3) if these tile them.
The printed conditions leave two things out, which are required here:

* all parts of a larger window must be sent, so where sizes differ the stream may neither drop windows by a
  postselection nor values by a selection: a window of 20 may have an average that neither of its halves has (LAWS,
  case 7);
* a window serves an equal one even where its step does not divide its size.

An average is combined from sums and counts, never from averages (LAWS, case 8); which partial values are sent is
decided where the stream is sent (`branch/remote/`).
Count windows number the items from a subscription's start (LAWS 3.3), so the windows of two subscriptions are alike
only if these start together, or apart by a multiple of the step; trees say nothing of that.

Windows of different sizes are served by a *relaxed* window that tiles both: its step divides theirs, its size divides
theirs, and its own step divides its size, so that whole instances without gap or overlap make up one of theirs.
Of all such windows the one with the largest step is taken, since it produces the fewest values, and of those the one
with the largest size (4.3, algorithm 1).

    >>> relax(Extent(Fraction(60), Fraction(40)), Extent(Fraction(20), Fraction(10)))
    Extent(size=Fraction(20, 1), step=Fraction(10, 1))
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Literal, TypeAlias

from anabranch.algebra.window import Extent
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, equivalent, implies
from anabranch.sharing.normalize import tree_of, unwindowed
from anabranch.sharing.tree import (
    AggregateAnnotation,
    OutputAnnotation,
    PropertyTree,
    Steps,
    WindowAnnotation,
    aggregate_label,
    union,
)


def relax(first: Extent, second: Extent) -> Extent:
    """The window that serves both; sizes may be any fractions, common divisors are taken in their common unit."""
    unit = Fraction(1, math.lcm(*(each.denominator for each in (first.size, first.step, second.size, second.step))))
    size = math.gcd(int(first.size / unit), int(second.size / unit))
    step = math.gcd(int(first.step / unit), int(second.step / unit))
    # A divisor of both steps serves if some divisor of both sizes is a multiple of it; the largest is the gcd itself.
    largest = next(each for each in _divisors(step) if size % each == 0)
    return Extent(size * unit, largest * unit)


def _divisors(number: int) -> Iterator[int]:
    """All divisors, from the largest down."""
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    yield from (number // each for each in small)
    yield from (each for each in reversed(small) if each * each != number)


LackKind: TypeAlias = Literal[
    "path", "selection", "window", "postselection", "aggregate", "no window", "results", "join"
]
Lack: TypeAlias = tuple[LackKind, str]
"""One thing that a stream lacks for a query: the kind of annotation, and its path or aggregate."""


def matches(stream: PropertyTree, query: PropertyTree) -> bool:
    """Whether all that the query needs is in the stream."""
    return next(differences(stream, query), None) is None


def same(first: PropertyTree, second: PropertyTree) -> bool:
    """Whether two trees stand for the same stream, however their conditions are written."""
    return matches(first, second) and matches(second, first)


def differences(stream: PropertyTree, query: PropertyTree) -> Iterator[Lack]:
    """What the stream lacks for the query: windows first, then values, then elements in the order of the schema."""
    if stream.stream != query.stream:
        raise ValueError(f"trees of different streams: '{stream.stream}' and '{query.stream}'")
    if is_plain(stream):
        yield from missing(stream, unwindowed(query))
    elif not combine(stream, query):
        yield "no window", _label(stream)
    else:
        yield from _windows(stream, query)


def merge(stream: PropertyTree, query: PropertyTree) -> PropertyTree:
    """The stream's tree widened for the query."""
    if matches(stream, query):
        return stream
    if matches(query, stream):
        return replace(query, schema=stream.schema or query.schema)
    schema = stream.schema or query.schema
    if not is_plain(stream) and combine(stream, query):
        return _merged_windows(stream, query)
    outputs = (*unwindowed(stream).outputs, *unwindowed(query).outputs)
    return tree_of(stream.stream, outputs, None, (), schema)


def merge_all(trees: Sequence[PropertyTree]) -> PropertyTree:
    """The tree of one stream that serves all of them."""
    return reduce(merge, trees)


# --- structures and selections (4.1, 4.2) -----------------------------------------------------------------


def missing(stream: PropertyTree, query: PropertyTree) -> Iterator[Lack]:
    """QueryOutputs of the query that are missing in the stream, or sent under a narrower condition."""
    for needed in query.outputs:
        given = given_where(stream, needed)
        if given == NOTHING:
            yield "path", "/".join(needed.path) or "everything"
        elif not implies(needed.condition, given):
            yield "selection", "/".join(needed.path) or "everything"


def given_where(stream: PropertyTree, needed: OutputAnnotation) -> Predicate:
    """The condition under which an element is sent: by itself, or within one around it (the special case of 4.1)."""
    given: Predicate = NOTHING
    for each in stream.outputs:
        around = each.whole and needed.path[: len(each.path)] == each.path
        brings = not needed.whole and each.path[: len(needed.path)] == needed.path
        if around or brings:
            given = union(given, each.condition)
    if not needed.whole and stream.window and needed.path == stream.window.path:
        for value in stream.aggregates:
            given = union(given, value.selection)
    return given


# --- windows and aggregates (4.2, 4.3) --------------------------------------------------------------------


def is_plain(tree: PropertyTree) -> bool:
    """Whether a tree only selects and projects."""
    return tree.window is None and not tree.aggregates


def combine(stream: PropertyTree, query: PropertyTree) -> bool:
    """Whether both have windows of the same kind over the same items, so that only the sizes may differ."""
    match stream.window, query.window:
        case None, None:
            return bool(query.aggregates)
        case WindowAnnotation() as first, WindowAnnotation() as second:
            alike = first.path == second.path and first.reference == second.reference
            return alike and equivalent(first.pre, second.pre)
        case _:
            return False


def tiles(part: Extent, whole: Extent) -> bool:
    """Whether windows of extent `whole` can be combined from those of extent `part` (the three conditions of 4.2)."""
    divides = whole.size % part.size == 0 and part.size % part.step == 0 and whole.step % part.step == 0
    return part == whole or divides


def _windows(stream: PropertyTree, query: PropertyTree) -> Iterator[Lack]:
    unequal = False
    if stream.window and query.window:
        unequal = stream.window.extent != query.window.extent
        if not tiles(stream.window.extent, query.window.extent):
            yield "window", "/".join(stream.window.path)
        post = EVERYTHING if unequal else query.window.post
        if not implies(post, stream.window.post):
            yield "postselection", "/".join(stream.window.path)
    for needed in query.aggregates:
        given = same_aggregate(stream, needed)
        if given is None:
            yield "aggregate", aggregate_label(needed)
        elif not implies(EVERYTHING if unequal else needed.selection, given.selection):
            yield "selection", aggregate_label(needed)
    outputs = [replace(each, condition=EVERYTHING) if unequal else each for each in query.outputs]
    yield from missing(stream, replace(query, outputs=tuple(outputs)))


def same_aggregate(tree: PropertyTree, wanted: AggregateAnnotation) -> AggregateAnnotation | None:
    """The aggregate of a tree that has the same value, if any."""
    return next((each for each in tree.aggregates if each.term == wanted.term), None)


def _merged_windows(stream: PropertyTree, query: PropertyTree) -> PropertyTree:
    """The tree with windows that serve both, and the aggregates and elements of both."""
    window = stream.window
    unequal = False
    if window and query.window:
        unequal = window.extent != query.window.extent
        if unequal:
            window = replace(window, extent=relax(window.extent, query.window.extent), post=EVERYTHING)
        else:
            window = replace(window, post=union(window.post, query.window.post))
    aggregates = {each.term: each for each in stream.aggregates}
    for each in query.aggregates:
        known = aggregates.get(each.term, replace(each, selection=NOTHING))
        aggregates[each.term] = replace(known, selection=union(known.selection, each.selection))
    values = [replace(each, selection=EVERYTHING) if unequal else each for each in aggregates.values()]
    outputs = [replace(each, condition=EVERYTHING) if unequal else each for each in (*stream.outputs, *query.outputs)]
    schema = stream.schema or query.schema
    return tree_of(stream.stream, outputs, window, values, schema)


def _label(tree: PropertyTree) -> str:
    path: Steps = tree.window.path if tree.window else tree.aggregates[0].path
    return "/".join(path)
