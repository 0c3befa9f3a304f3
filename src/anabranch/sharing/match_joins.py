"""Matching and merging property forests (sharing paper, 5.3): what two joins can have in common.

`level(stream, query)` says how much of an installed join a new one can use, best first:

1. *full join result sharing*: all windows are the same, so one join makes the tuples of both, and conditions that
   differ are evaluated on the tuples; interval joins are of this kind too: the wider one has all tuples of the other;
2. *selective join result sharing*: one join over the larger windows, from whose tuples each query selects its own
   (SELECTJOINRESULT);
3. *selective window sharing*: one set of windows, from which each query builds its own and joins them (SELECTWINDOWS);
4. separate joins over inputs that are shared as far as their trees allow.

The paper prints the second for all windows that agree in their steps.
But a join fires when a window closes, and where the ends of two windows do not coincide only one of the queries fires;
so sizes must differ by a multiple of the step on every input, and q5 and q7 have to share windows.
How the two operators select is modelled in the tests (`tests/models/selecting.py`).

Items that enter a window decide when it closes at the end of the input (LAWS 3.5), and count windows number them, so
the preselections of joins that share must be the same; conditions of a `where` may differ, for they are evaluated on
tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from anabranch.algebra.window import Extent
from anabranch.predicate import Predicate, equivalent
from anabranch.sharing.forest import PropertyForest, is_bounded, labels
from anabranch.sharing.match import Lack, differences, merge, missing, relax
from anabranch.sharing.normalize import forest_of, unjoined
from anabranch.sharing.tree import OutputAnnotation, PropertyTree, WindowAnnotation

MOST_MOVEMENTS = 2
"""Windows are not shared if the shared ones would move more than this many times as often as the separate ones."""


@dataclass(frozen=True, slots=True)
class SelectWindows:
    """SELECTWINDOWS(count, every, step): combine a window from `count` shared ones, each `every` after the one before,
    and advance by `step` shared windows."""

    count: int
    every: int
    step: int


@dataclass(frozen=True, slots=True)
class FullResults:
    """One join makes the tuples of both."""


@dataclass(frozen=True, slots=True)
class SelectedResults:
    """One join over these windows; SELECTJOINRESULT selects the tuples of each query by its own window sizes."""

    windows: tuple[Extent, ...]
    stream: tuple[Fraction, ...]
    query: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class SharedWindows:
    """These windows are made once for both, and each query joins them itself."""

    windows: tuple[Extent, ...]
    stream: tuple[SelectWindows, ...]
    query: tuple[SelectWindows, ...]


@dataclass(frozen=True, slots=True)
class Separate:
    """The joins share at most their inputs."""

    reason: str


Level: TypeAlias = FullResults | SelectedResults | SharedWindows | Separate


def level(stream: PropertyForest, query: PropertyForest) -> Level:
    """How much of the join of a stream a query can use."""
    if stream.kind == "apart" or query.kind == "apart":
        return Separate("not both are joins")
    if stream.streams != query.streams:
        return Separate("they join other streams")
    if stream.kind != query.kind:
        return Separate("one is a step join, the other an interval join")
    pairs = list(zip(stream.trees, query.trees, strict=True))
    if any(first.item != second.item for first, second in pairs):
        return Separate("they join other items")
    if stream.kind == "interval":
        bounded = is_bounded(_with_outputs_of(stream, query))
        return FullResults() if bounded else Separate("nothing bounds both joins together")
    windows = [(first.window, second.window) for first, second in pairs if first.window and second.window]
    if not all(_alike(first, second) for first, second in windows):
        return Separate("their windows select other items, or by another reference")
    extents = [(first.extent, second.extent) for first, second in windows]
    if all(first == second for first, second in extents):
        return FullResults()
    # all ends of the larger windows coincide with ends of the smaller ones
    if all(one.step == two.step and (one.size - two.size) % one.step == 0 for one, two in extents):
        largest = tuple(max(pair, key=lambda each: each.size) for pair in extents)
        return SelectedResults(largest, stream.sizes, query.sizes)
    relaxed = tuple(relax(first, second) for first, second in extents)
    often = [MOST_MOVEMENTS * (1 / first.step + 1 / second.step) for first, second in extents]
    if any(1 / shared.step > most for shared, most in zip(relaxed, often, strict=True)):
        return Separate("windows that serve both would move too often")
    parts = [[select_windows(shared, each) for each in pair] for shared, pair in zip(relaxed, extents, strict=True)]
    return SharedWindows(relaxed, tuple(first for first, _ in parts), tuple(second for _, second in parts))


def select_windows(shared: Extent, wanted: Extent) -> SelectWindows:
    """How windows are combined from shared ones that tile them.

    >>> select_windows(Extent(Fraction(10), Fraction(5)), Extent(Fraction(30), Fraction(15)))
    SelectWindows(count=3, every=2, step=3)
    """
    counts = wanted.size / shared.size, shared.size / shared.step, wanted.step / shared.step
    assert all(each.denominator == 1 for each in counts)
    return SelectWindows(*map(int, counts))


def _alike(first: WindowAnnotation, second: WindowAnnotation) -> bool:
    return first.reference == second.reference and equivalent(first.pre, second.pre)


# --- matching and merging -----------------------------------------------------------------------------------


def join_matches(stream: PropertyForest, query: PropertyForest) -> bool:
    """Whether the stream has all tuples that the query needs, with all elements that it needs of them."""
    return next(join_differences(stream, query), None) is None


def same_join(first: PropertyForest, second: PropertyForest) -> bool:
    """Whether two forests stand for the same stream of tuples, however their conditions are written."""
    return first.sizes == second.sizes and join_matches(first, second) and join_matches(second, first)


def join_differences(stream: PropertyForest, query: PropertyForest) -> Iterator[Lack]:
    """What the join of a stream lacks for a query."""
    match level(stream, query):
        case FullResults():
            pass
        case SelectedResults() if query.sizes in stream.smaller:
            pass
        case SelectedResults(windows):
            for tree, extent, label in zip(stream.trees, windows, labels(stream.trees), strict=True):
                if tree.window and tree.window.extent != extent:
                    yield "window", label
            yield "results", " and ".join(dict.fromkeys(stream.streams))
        case _:
            yield "join", " and ".join(dict.fromkeys(stream.streams))
            return
    for own, other, label in zip(stream.trees, query.trees, labels(stream.trees), strict=True):
        for kind, what in missing(own, other):
            yield kind, label + what.removeprefix("/".join(own.item))


def merge_joins(stream: PropertyForest, query: PropertyForest) -> PropertyForest | None:
    """The stream's join widened for the query; None where they cannot share the tuples of one."""
    if join_matches(stream, query):
        return stream
    match level(stream, query):
        case FullResults():
            return _with_outputs_of(stream, query)
        case SelectedResults(windows, first, second):
            merged = _with_outputs_of(stream, query)
            sizes = tuple(each.size for each in windows)
            asked = dict.fromkeys((first, second, *stream.smaller, *query.smaller))
            trees = [_widened(tree, extent, merged.guard) for tree, extent in zip(merged.trees, windows, strict=True)]
            return forest_of(merged.kind, trees, tuple(each for each in asked if each != sizes))
        case _:
            return None


def merge_inputs(trees: tuple[PropertyTree, ...]) -> tuple[PropertyTree, ...]:
    """One tree for each stream, with all that any of the trees needs of it."""
    found: dict[str, PropertyTree] = {}
    for tree in trees:
        found[tree.stream] = merge(found[tree.stream], tree) if tree.stream in found else tree
    return tuple(found.values())


def merge_all_joins(forests: Sequence[PropertyForest]) -> list[tuple[tuple[int, ...], PropertyForest]]:
    """Joins that serve all forests, merged greedily in their order: each with the places of the forests it serves."""
    found: list[tuple[tuple[int, ...], PropertyForest]] = []
    for number, forest in enumerate(forests):
        for place, (served, shared) in enumerate(found):
            merged = merge_joins(shared, forest)
            if merged is not None:
                found[place] = (*served, number), merged
                break
        else:
            found.append(((number,), forest))
    return found


def _with_outputs_of(stream: PropertyForest, query: PropertyForest) -> PropertyForest:
    """The stream's join with the elements and conditions of both."""
    pairs = zip(stream.trees, query.trees, strict=True)
    trees = [
        replace(own, outputs=(*own.outputs, *other.outputs), schema=own.schema or other.schema) for own, other in pairs
    ]
    return forest_of(stream.kind, trees, tuple(dict.fromkeys((*stream.smaller, *query.smaller))))


def _widened(tree: PropertyTree, extent: Extent, guard: Predicate) -> PropertyTree:
    """A tree with a larger window, and its reference element, by which each query finds its own tuples (5.3.2)."""
    assert tree.window is not None
    reference = [OutputAnnotation(tree.window.reference, guard)] if tree.window.reference else []
    return replace(tree, window=replace(tree.window, extent=extent), outputs=(*tree.outputs, *reference))


# --- a join and a query of one stream (5.3.1) ---------------------------------------------------------------


def input_differences(stream: PropertyTree, query: PropertyForest) -> Iterator[tuple[str, list[Lack]]]:
    """For each input of a join that a stream may serve: its name, and what the stream lacks for it."""
    for named, tree in zip(query.trees, unjoined(query), strict=True):
        if tree.stream == stream.stream:
            yield named.input, list(differences(stream, tree))
