"""How a window query is counted by panes: what is asked of its windows, and the law for single items.

A query has such a plan where it asks for aggregates, bounds and keys of its windows only; any other needs their items.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from anabranch.aggregates.partial import Typed
from anabranch.algebra.accents.evolution import MOST_DIVIDED, Evolution
from anabranch.algebra.accents.sets import below
from anabranch.algebra.window import Extent, Panes
from anabranch.branch.panes.results import (
    KeyText,
    WindowResult,
    Written,
    can_fail,
    group_result,
    may_be_unsaid,
    window_result,
)
from anabranch.branch.remote.lines import Sending
from anabranch.columnar.panes.counted import Looked, Seen, Texts
from anabranch.columnar.panes.keys import Key, KeyPart
from anabranch.columnar.panes.query import PaneQuery
from anabranch.columnar.panes.sessions import EARLY, PLACED
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.objects import step_to
from anabranch.language.rewrite import parts
from anabranch.language.windows.aggregates import Aggregated, aggregated, is_lookup
from anabranch.language.windows.grouping import KeyKind, groups_of
from anabranch.language.windows.sessions import KEY, with_key
from anabranch.law.calls import PythonFunction
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.evolution.canonical import canonical
from anabranch.law.inputs import Input
from anabranch.law.rounds.rounds import without_predicates
from anabranch.law.rounds.windows import Reach, SessionKey, amount_on, extent_of
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Namespaces, Spelling
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing
from anabranch.runtime.units import Candidate, Units
from anabranch.stream.cover import passed
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.path import Path, TimeScale
from anabranch.stream.tree import Element
from anabranch.values.atomic import Atomic, Measured, Untyped, spell
from anabranch.values.objects.json_text import json_text
from anabranch.values.placing import Moment
from anabranch.values.sequences import Value, atomize, key_of


@dataclass(frozen=True)
class PanePlan:
    """A window query that can be counted by panes."""

    whole: Standing
    """The query as it was written."""
    standing: Standing
    """The query with variables in the place of its aggregates."""
    seen: Aggregated
    extent: Extent
    query: PaneQuery
    result: WindowResult | None
    """What is written for each window, where that needs no evaluator (`results.py`)."""
    names: Spelling
    """How the items of its stream write its names."""
    sending: Sending | None = None
    """What is sent of its windows, where they are not answered here."""
    keys: tuple[str, ...] = ()
    """The variables of the keys, where windows are grouped; then aggregates and results are those of groups."""
    kinds: tuple[KeyKind, ...] = ()
    is_numbered: bool = False
    """Whether its panes are windows that were made elsewhere, which are reached by their numbers."""

    @property
    def tells_firsts(self) -> bool:
        """Whether panes must note the first item of a window, for a dead letter that has no other item to name."""
        return self.sending is None and (self.result is None or can_fail(self.result, self.seen.calls))

    @cached_property
    def shape(self) -> str | None:
        """A text that is equal for queries that compute the same from their aggregates; None where none can be given.

        Queries that ask for bounds, groups or sessions have no shape: those are each query's own.
        """
        is_windows = not self.keys and not self.query.is_session and self.sending is None
        if self.result is None or not is_windows or self.seen.asks_bounds:
            return None
        return repr((self.result, self.seen.calls))

    @cached_property
    def lineage(self) -> Lineage:
        """The lineage of the query's results; computed only where a stream evolves."""
        return lineage_of(self.whole, roots=dict.fromkeys(self.whole.streams, self.names.written))

    @cached_property
    def followed(self) -> Lineage:
        """The lineage by which accents are followed: windows that are sent go on without a path that some reader needs.

        Such a reader ends by itself, and others go on (LAWS 4.6).
        """
        return self.lineage if self.sending is None else replace(self.lineage, needs=())

    def aggregates(self, path: Path) -> list[int]:
        """The numbers of the aggregated paths that lead to a path of the items, or to something in it."""
        source = self.query.clause.source
        found: list[int] = []
        for number, each in enumerate(self.query.paths):
            known = (path_in_item(source, bare, self.names) for bare in _bare(each))
            if any(one is not None and below(one, path) for one in known):
                found.append(number)
        return found


def pane_plan(
    standing: Standing,
    slack: Fraction,
    origin: Fraction,
    functions: Mapping[str, PythonFunction] | None = None,
    root: Namespaces | None = None,
    time: Path | None = None,
) -> PanePlan | None:
    """How to count a query by panes; None where it needs the items of its windows.

    `slack`, `origin` and `time` are those of the stream, `root` is what its root declares.
    """
    if standing.kind != "windows":
        return None
    (clause,) = standing.fors
    window = clause.window
    if window is None:
        return None
    is_session = isinstance(window, ast.SessionWindow)
    grouping = None if is_session else groups_of(standing.flwor, clause)
    flwor, clause = (standing.flwor, clause) if grouping is None else (grouping.flwor, grouping.clause)
    flwor = with_key(flwor, clause) if is_session else flwor
    seen = aggregated(flwor, clause, functions or ())
    if seen is None:
        return None
    asked = tuple(
        frozenset(call.function for call in seen.calls if call.path == path) for path in range(len(seen.paths))
    )
    names = Spelling(standing.env.namespaces, root or {})
    scale = TimeScale.of(_reference(clause.source, window, names), time, slack, origin)
    if isinstance(window, ast.SessionWindow):
        gap = amount_on(window.gap, scale)
        extent = Extent(gap, gap)
    else:
        extent = extent_of(window, scale)
    is_plain = standing.plain_hole is not None
    axis = _axis(clause.source, window) if is_plain else None
    if is_session or (seen.asks_bounds and not scale.is_time):
        asked = (*asked, frozenset())  # it depends on its items whether a window has times
    if is_session:
        asked = (*asked, PLACED)
    early = EARLY if is_session else extent.size - extent.step
    query = PaneQuery(clause, seen.paths, asked, Panes.of(extent), scale, early, is_plain, axis)
    rest = replace(standing, hole=seen.flwor)
    if isinstance(window, ast.SessionWindow):
        return _session_plan(PanePlan(standing, rest, seen, extent, query, None, names), window)
    if grouping is None:
        return PanePlan(standing, rest, seen, extent, query, _said(window_result(rest), seen), names)
    result = _said(group_result(rest, grouping.names), seen)
    if result is None or can_fail(result, seen.calls):  # without an item at fault, a letter names all items of a group
        return None
    if grouping.where is not None and not query.is_timed:  # count windows also count items that it drops
        return None
    if grouping.where is not None and query.counts_times:  # items that it drops may be times
        return None
    query = replace(query, keys=grouping.keys, where=grouping.where)
    return PanePlan(standing, rest, seen, extent, query, result, names, None, grouping.names, grouping.kinds)


def _said(result: WindowResult | None, seen: Aggregated) -> WindowResult | None:
    """What is written for each window, unless JSON may not be able to say it: then panes must note their first items.

    The evaluator answers these.
    """
    return None if result is None or may_be_unsaid(result, seen) else result


def _session_plan(plan: PanePlan, window: ast.SessionWindow) -> PanePlan | None:
    """The plan of sessions; None where the evaluator would have to compute with their key.

    The law would name the items of a session that fails because of its key.
    """
    names: Mapping[str, Written] = {} if window.by is None else {KEY: KeyText(0)}
    result = _said(window_result(plan.standing, names), plan.seen)
    if result is None and any(part == ast.Variable(KEY) for part in parts(plan.seen.flwor)):
        return None
    query = replace(plan.query, keys=() if window.by is None else (window.by,))
    return replace(plan, query=query, result=result, keys=(KEY,), kinds=("untyped",))


def _reference(source: ast.Expression, window: ast.Window, names: Spelling) -> Path | None:
    """The path from an item to the reference of a window that has one."""
    return None if isinstance(window, ast.CountWindow) else path_in_item(source, window.reference, names)


def _axis(source: ast.Expression, window: ast.Window) -> Hashable:
    """What decides the reference values of a window's items, where that is no more than two paths."""
    if isinstance(window, ast.CountWindow):
        return None
    axis = without_predicates(source), window.reference
    return None if any(isinstance(each, ast.Call | ast.Variable) for each in parts(axis)) else axis


class PaneLaw:
    """The law's reading of single items, for those that columns leave undecided."""

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

    def punctuation(self, punctuation: Punctuation, evolution: Evolution | None = None) -> Reach | None:
        """The reference value that a punctuation shows, as if it were an item that no query selects (LAWS 3.2)."""
        query = self._plan.query
        window = query.clause.window
        assert isinstance(window, ast.TimeWindow | ast.SessionWindow), "only these have an axis"
        path = _reference(query.clause.source, window, self._plan.names)
        value = passed(punctuation, path, self._time)
        if evolution is not None and punctuation.where is not None and path is not None and isinstance(value, Fraction):
            value = _at_start(value, path, evolution)
        return None if value is None else value - query.scale.origin + query.scale.slack

    def canonical(self, item: Item, evolution: Evolution) -> Item:
        """An item as it is in the units of the start."""
        return replace(item, tree=canonical(item.tree, evolution))

    def item(self, item: Item) -> Looked:
        """What the window's path leads to in an item."""
        found = self._units.candidates(0, self._root, item, self._plan.query.scale)
        nodes = (
            Seen(each.selected, each.value, each.error, self._texts(each.node, each.value), *self._key(each))
            if each.selected
            else Seen(each.selected, each.value, each.error, ())
            for each in found.nodes
        )
        return Looked(tuple(nodes), found.error)

    def _key(self, node: Candidate) -> tuple[Key | DynamicError | None, DynamicError | None]:
        """The key of a node's group, where windows are grouped (LAWS 3.8), and the error of windows that hold it."""
        query = self._plan.query
        if query.is_session:
            return _session_key(node.key) if query.keys else (), None
        env = self._plan.standing.env.bind(query.clause.variable, [node.node])
        try:
            if query.where is not None and not self._evaluator.truth(query.where, env):
                return None, None
        except DynamicError as error:
            return None, error
        try:
            found = [key_of(self._evaluator.value(each, env), "a key of 'group by'") for each in query.keys]
        except DynamicError as error:
            return error, None
        return tuple(map(_key_part, found, self._plan.kinds)), None

    def _texts(self, node: Value, value: Fraction | None) -> tuple[Texts, ...]:
        query = self._plan.query
        env = self._plan.standing.env.bind(query.clause.variable, [node])
        given = zip(query.paths, query.numeric, strict=False)
        found = tuple(self._along(path, env, is_summed=is_summed) for path, is_summed in given)
        if query.counts_times:
            found = (*found, ("",) if isinstance(value, Moment) else ())
        if query.is_session:
            found = (*found, () if value is None else (value % query.panes.width,))
        return found

    def _along(self, path: ast.Expression, env: Env, *, is_summed: bool) -> Texts:
        try:
            values = self._evaluator.aggregated_values(path, env)
            if isinstance(path, ast.Call) and not is_summed:
                return ("",) * len(values)
            return tuple(map(_given, atomize(values)))
        except DynamicError as error:
            return error


def _session_key(key: SessionKey | DynamicError) -> Key | DynamicError:
    return key if isinstance(key, DynamicError) else (None if key is None else key.encode(),)


def _key_part(value: Atomic | None, kind: KeyKind) -> KeyPart:
    """A part of a key; a condition is the text that spells it."""
    if value is None:
        return None
    if kind == "json":
        return json_text(value).encode()
    assert isinstance(value, str | bool), "windows are grouped by texts and conditions"
    return spell(value).encode()


def _bare(path: ast.Expression) -> list[ast.Path]:
    """The steps, without predicates, to the elements or attributes whose values are aggregated."""
    match path:
        case ast.Call(_, (inner,)):
            return _bare(inner)
        case ast.Call(_, (base, ast.String(key))):
            (before,) = _bare(base)
            return [ast.Path(None, (*before.steps, step_to(key)))]
        case ast.Flwor((ast.For(variable, source, None),), _, _, result):
            (before,) = _bare(source)
            read = [each for each in parts(result) if each == ast.Variable(variable) or _starts_from(each, variable)]
            read += [each for each in parts(result) if isinstance(each, ast.Call) and is_lookup(each, variable)]
            longest = [each for each in read if isinstance(each, ast.Path | ast.Call)] or read
            return [ast.Path(None, (*before.steps, *bare.steps)) for each in longest for bare in _bare(each)]
        case _:
            bare = without_predicates(path)
            steps = bare.steps if isinstance(bare, ast.Path) else ()
            return [ast.Path(None, tuple(step for step in steps if not isinstance(step.test, ast.KindTest)))]


def _starts_from(path: object, variable: str) -> bool:
    return isinstance(path, ast.Path) and path.start == ast.Variable(variable)


def _given(value: Atomic) -> str | Fraction | Typed:
    """A value as it is aggregated: a computed double is the binary fraction that it is (LAWS 2.2)."""
    if isinstance(value, Measured):
        return value.measure.number
    if isinstance(value, str | bool) and not isinstance(value, Untyped):
        return Typed(value)
    return Fraction(value) if isinstance(value, float) and math.isfinite(value) and value else spell(value)


def _at_start(value: Fraction, path: Path, evolution: Evolution) -> Fraction | None:
    """The value below which no item follows, in the unit of the start, if none follows below a raw value."""
    if path not in evolution.altered():
        return value
    states = [row.state for row in evolution.schema() if row.path == path]
    units = [each.unit for each in states if each.carried is not False]
    if len(states) > MOST_DIVIDED or not units or None in units:
        return None
    return min(unit.inverse()(value) for unit in units if unit is not None)
