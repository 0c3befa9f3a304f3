"""How a window query is counted by panes: what is asked of its windows, and the law for single items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from anabranch.algebra.window import Extent, Panes
from anabranch.branch.pane_results import WindowResult, window_result
from anabranch.columnar.counted import Looked, Seen, Texts
from anabranch.columnar.pane_query import PaneQuery
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.aggregates import Aggregated, aggregated
from anabranch.language.rewrite import parts
from anabranch.reference.calls import PythonFunction
from anabranch.reference.env import Env
from anabranch.reference.evaluate import Evaluator
from anabranch.reference.inputs import Input
from anabranch.reference.rounds import without_predicates
from anabranch.reference.sequences import Value, atomize
from anabranch.reference.slices import path_in_item
from anabranch.reference.standing import Standing
from anabranch.reference.units import Units
from anabranch.reference.values import spell
from anabranch.reference.windows import Reach, extent_of
from anabranch.stream.cover import passed
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class PanePlan:
    """A window query that can be counted by panes."""

    standing: Standing
    """With variables in the place of the aggregates."""
    seen: Aggregated
    extent: Extent
    query: PaneQuery
    result: WindowResult | None
    """What it makes of its windows, where that is plain to see: then a window fails only where a value in it does."""


def pane_plan(
    standing: Standing, slack: Fraction, origin: Fraction, functions: Mapping[str, PythonFunction] | None = None
) -> PanePlan | None:
    """How to count a query by panes; None where it needs the items of its windows."""
    if standing.kind != "windows":
        return None
    (clause,) = standing.fors
    assert clause.window is not None
    seen = aggregated(standing.flwor, clause, functions or ())
    if seen is None:
        return None
    asked = tuple(
        frozenset(call.function for call in seen.calls if call.path == path) for path in range(len(seen.paths))
    )
    extent = extent_of(clause.window)
    is_plain = standing.plain_hole is not None
    axis = _axis(clause.source, clause.window) if is_plain else None
    query = PaneQuery(clause, seen.paths, asked, Panes.of(extent), slack, origin, is_plain, axis)
    rest = replace(standing, hole=seen.flwor)
    return PanePlan(rest, seen, extent, query, window_result(rest))


def _axis(source: ast.Expression, window: ast.CountWindow | ast.TimeWindow) -> Hashable:
    """What decides the reference values of a window's items, where that is no more than two paths."""
    if not isinstance(window, ast.TimeWindow):
        return None
    axis = without_predicates(source), window.reference
    return None if any(isinstance(each, ast.Call | ast.Variable) for each in parts(axis)) else axis


class PaneLaw:
    """What the law sees in single items, for those that columns leave unclear."""

    def __init__(
        self,
        plan: PanePlan,
        root: Element,
        time: Path | None = None,
        functions: Mapping[str, PythonFunction] | None = None,
        documents: Mapping[str, Input] | None = None,
    ) -> None:
        self._plan = plan
        self._root = root
        self._time = time
        self._units = Units(plan.standing, functions, documents)
        self._evaluator = Evaluator(plan.standing.query, documents or {}, functions or {})

    def punctuation(self, punctuation: Punctuation) -> Reach | None:
        """What a punctuation shows, as the value of an item that nobody selects (LAWS 3.2)."""
        query = self._plan.query
        assert isinstance(query.clause.window, ast.TimeWindow)
        path = path_in_item(query.clause.source, query.clause.window.reference)
        value = passed(punctuation, path, self._time)
        return None if value is None else value - query.origin + query.slack

    def item(self, item: Item) -> Looked:
        """What the window's path leads to in an item."""
        found = self._units.candidates(0, self._root, item, self._plan.query.origin)
        nodes = (
            Seen(each.selected, each.value, each.error, self._texts(each.node) if each.selected else ())
            for each in found.nodes
        )
        return Looked(tuple(nodes), found.error)

    def _texts(self, node: Value) -> tuple[Texts, ...]:
        env = self._plan.standing.env.bind(self._plan.query.clause.variable, [node])
        return tuple(self._along(path, env) for path in self._plan.query.paths)

    def _along(self, path: ast.Expression, env: Env) -> Texts:
        try:
            return tuple(spell(each) for each in atomize(self._evaluator.value(path, env)))
        except DynamicError as error:
            return error
