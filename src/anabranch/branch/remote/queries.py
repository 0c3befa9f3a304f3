"""What subscriptions make of windows that were made elsewhere: larger windows, or the answer of a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from anabranch.branch.panes.plan import PanePlan, pane_plan
from anabranch.branch.remote.layout import Layout
from anabranch.branch.remote.making import sent_plan
from anabranch.branch.remote.tiling import SAME, WindowTiling
from anabranch.errors import Unsupported, UsageError
from anabranch.language import check, parse
from anabranch.runtime.standing import standing
from anabranch.sharing.match_joins import select_windows
from anabranch.sharing.remote import PutTogether, ReadWindows, named_aggregates, window_of
from anabranch.sharing.tree import PropertyTree


@dataclass(frozen=True)
class SentQuery:
    """A window query over windows: these are its panes, and their values are given."""

    stream: str
    layout: Layout
    """What is told of the windows that are read."""
    tiling: WindowTiling
    plan: PanePlan
    """What is made of them."""
    places: tuple[int, ...]
    """By aggregated path of the plan, the path of the layout that it is."""

    @property
    def streams(self) -> tuple[str, ...]:
        return (self.stream,)


@lru_cache(maxsize=1 << 10)
def sent_query(operator: PutTogether | ReadWindows) -> SentQuery:
    """What a subscription makes of the windows that it reads, found once per process; UsageError where it cannot."""
    if isinstance(operator, ReadWindows):
        return _over(operator.windows.source, _reading_plan(operator.text))
    return _over(operator.source, sent_plan(operator.tree))


def can_travel(text: str, tree: PropertyTree) -> bool:
    """Whether the windows of a query's tree can be made on the way, and its answer be read out of them."""
    try:
        sent_plan(tree)
        sent_query(ReadWindows(PutTogether(tree, tree), text))
    except (UsageError, Unsupported):
        return False
    return True


def _reading_plan(text: str) -> PanePlan:
    plan = pane_plan(standing(check(parse(text), text).query, None, text), Fraction(0), Fraction(0))
    if plan is None:
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
    tiled = replace(plan, query=replace(plan.query, panes=tiling.panes))
    return SentQuery(source.stream, layout, tiling, tiled, tuple(places[each] for each in range(len(places))))
