"""Queries over windows and tuples that another trunk made, and which queries can be answered so.

A subscription combines windows to larger ones, or answers a query.

By SELECTWINDOWS, the parts of window `k` are the existing windows `k * step + i * every` for `i < count`.
Where these are consecutive, or all windows draw on the same ones, they are panes, and each is counted once however many
windows hold it; else each window has panes of its own.

A tuple is one element (figure 15 of the sharing paper): in it one element for each of its items, with all that later
readers need of it.
It is made by the abstract query of the join, a join like any other, and read by the subscriber's own query, whose loops
run over the items inside; so the peer that makes the tuples is responsible for the order of LAWS 1.2, windows, late
items and late subscriptions, and the peer that answers for `where` and `return`.
Tuples have no times and no progress, so their reader needs no state.
That is exact where the query, and its restructuring query over tuples, answer tuple by tuple; and where the abstract
query joins as early: a join on times must not wait for the end of its streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from anabranch.algebra.window import Panes
from anabranch.branch.joins.interval import bounds_of
from anabranch.branch.panes.plan import PanePlan, pane_plan
from anabranch.branch.remote.lines import Layout
from anabranch.branch.remote.making import sent_plan
from anabranch.columnar.scan.kernels import Indices
from anabranch.errors import AnabranchError, Unsupported, UsageError
from anabranch.language import ast, check, parse
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing, standing
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.loops import over_tuples
from anabranch.sharing.match_joins import SelectWindows, select_windows
from anabranch.sharing.remote import CombineWindows, ReadWindows, named_aggregates, window_of
from anabranch.sharing.render import render_join
from anabranch.sharing.tree import PropertyTree
from anabranch.stream.path import Path


@dataclass(frozen=True)
class SentQuery:
    """A window query over sent windows: these are its panes, with given values."""

    stream: str
    layout: Layout
    """The layout of the windows that are read."""
    tiling: WindowTiling
    plan: PanePlan
    """The plan of the windows that are made of them."""
    places: tuple[int, ...]
    """By aggregated path of the plan: its index in the layout."""

    @property
    def streams(self) -> tuple[str, ...]:
        return (self.stream,)


@lru_cache(maxsize=1 << 10)
def sent_query(operator: CombineWindows | ReadWindows) -> SentQuery:
    """The query of an operator over windows, compiled once per process; UsageError where it cannot be."""
    if isinstance(operator, ReadWindows):
        return _over(operator.windows.source, _reading_plan(operator.text))
    return _over(operator.source, sent_plan(operator.tree))


def can_travel(text: str, tree: PropertyTree) -> bool:
    """Whether the windows of a query's tree can be sent, and its answer computed from them."""
    try:
        sent_plan(tree)
        sent_query(ReadWindows(CombineWindows(tree, tree), text))
    except (UsageError, Unsupported):
        return False
    return True


def reads_alike(text: str, tree: PropertyTree) -> bool:
    """Whether whoever makes the windows of a query's tree reads every path that the query reads, and hears of it."""
    making = sent_plan(tree).lineage
    return all(making.reads(0, path) for _, path in _reading_plan(text).lineage.looks)


def _reading_plan(text: str) -> PanePlan:
    plan = pane_plan(standing(check(parse(text), text).query, None, text), Fraction(0), Fraction(0))
    if plan is None or plan.keys or plan.seen.asks_bounds:
        raise UsageError("this query needs the items of its windows", hint="send the items")
    return plan


def _over(source: PropertyTree, plan: PanePlan) -> SentQuery:
    window, layout = window_of(source), Layout.of(source)
    named = named_aggregates(plan.seen, plan.query.clause.variable, window.path) or {}
    places: dict[int, int] = {}
    for call in plan.seen.calls:
        place = layout.at(named[call.variable]) if call.variable in named else None
        if place is None:
            raise UsageError("the windows that are sent lack a value that is asked for", hint="send more of them")
        places[call.path] = place
    is_same = plan.extent == window.extent
    tiling = WindowTiling(SAME if is_same else select_windows(window.extent, plan.extent))
    tiled = replace(plan, query=replace(plan.query, panes=tiling.panes), is_numbered=True)
    return SentQuery(source.stream, layout, tiling, tiled, tuple(places[each] for each in range(len(places))))


SAME = SelectWindows(1, 1, 1)
_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class WindowTiling:
    """How windows are combined from others."""

    selection: SelectWindows

    @property
    def _apart(self) -> bool:
        """Whether windows have different parts, so that each has panes of its own."""
        return self.selection.step % self.selection.every != 0

    @property
    def panes(self) -> Panes:
        """The panes that windows are made of."""
        count, every, step = self.selection.count, self.selection.every, self.selection.step
        return Panes(_ONE, count, count if self._apart else step // every)

    def placed(self, numbers: Indices) -> tuple[Indices, Indices]:
        """The places of those windows that are panes, and their panes."""
        count, every, step = self.selection.count, self.selection.every, self.selection.step
        if not self._apart:
            places = np.flatnonzero(numbers % every == 0)
            return places, numbers[places] // every
        found = [
            (place, k * count + (number - k * step) // every)
            for place, number in enumerate(numbers.tolist())
            for k in range(self.complete(number), number // step + 1)
            if (number - k * step) % every == 0
        ]
        places, panes = np.array(found, np.int64).reshape(-1, 2).T
        return places, panes

    def reached(self, number: int) -> int:
        """The number of panes that are complete when all windows before a number have come."""
        return self.complete(number) * self.selection.count if self._apart else -(-number // self.selection.every)

    def complete(self, number: int) -> int:
        """The number of windows that are complete when all parts before a number have come."""
        count, every, step = self.selection.count, self.selection.every, self.selection.step
        return max(0, (number - 1 - (count - 1) * every) // step + 1)

    def first(self, number: int) -> int:
        """The first window without a part before a number."""
        return -(-number // self.selection.step)


# --- tuples ----------------------------------------------------------------------------------------------------

_JOINS = ("step join", "interval join")


def why_not_sent(query: ast.Query, forest: PropertyForest) -> str | None:
    """Why the tuples of a checked join cannot be sent in the form of a forest; None where they can."""
    try:
        asked, made = standing(query), _abstract(forest)
        left = standing(over_tuples(query, forest, "tuples"))
    except AnabranchError as error:
        return f"its tuples cannot be written down ({error.message})"
    if asked.kind not in _JOINS:
        return "it has to wait for the end of its streams"
    if made.kind != asked.kind or left.kind != "items":
        return "its tuples cannot be written down"
    return None


def waits(query: ast.Query, forest: PropertyForest, times: Mapping[str, Path | None]) -> bool:
    """Whether a join has to wait for the end of streams with these time paths."""
    joins = (standing(query), _abstract(forest))
    return any(each.kind == "interval join" and not bounds_of(each, times, endless=True) for each in joins)


def reads_the_same(query: ast.Query, forest: PropertyForest) -> bool:
    """Whether whoever makes the tuples of a forest reads every path that a join reads, and hears of it."""
    made = lineage_of(_abstract(forest))
    return all(made.reads(input, path) for input, path in lineage_of(standing(query)).looks)


@lru_cache(maxsize=1 << 10)
def _abstract(forest: PropertyForest) -> Standing:
    text = render_join(forest)
    return standing(check(parse(text), text).query, None, text)
