"""Windows over a document that is edited (LAWS 5.10): those of what it holds now, found anew at each moment.

A window of a stream of items fills while items come, and closes; here all items are there, so no window waits and no
item is late.
`law/rounds/windows.py` says which windows hold which values.

Joined windows (LAWS 5.12) move over the whole document as those of items do when the input ends: all nodes wait, and
the window whose end comes first moves first (`law/rounds/joins.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.algebra.window import Extent
from anabranch.language import ast
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.env import Env
from anabranch.law.inputs import Arrival
from anabranch.law.rounds.joins import Entry, Side, step_join
from anabranch.law.rounds.rounds import Round
from anabranch.law.rounds.windows import (
    Evaluate,
    SessionKey,
    WindowContent,
    amount_on,
    count_windows,
    extent_of,
    reference_value,
    session_key,
    sessions,
    time_windows,
)
from anabranch.stream.path import TimeScale
from anabranch.values.sequences import Value, Values


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node that a windowed `for` selects, with the entry it is part of, its reference value and its session's key."""

    arrival: Arrival | None
    node: Value
    value: Fraction = Fraction(0)
    key: SessionKey = None

    @staticmethod
    def of(
        clause: ast.For, arrival: Arrival | None, node: Value, env: Env, evaluate: Evaluate, scale: TimeScale
    ) -> PlacedNode:
        """The place of a node among the windows of a clause; `DynamicError` where it has none."""
        window = clause.window
        assert window is not None
        if isinstance(window, ast.CountWindow):
            return PlacedNode(arrival, node)
        value = reference_value(window, node, env, evaluate, scale)
        if isinstance(window, ast.TimeWindow):
            return PlacedNode(arrival, node, value)
        return PlacedNode(arrival, node, value, session_key(window, node, env, evaluate))


def windows_of(clause: ast.For, nodes: Sequence[PlacedNode], scale: TimeScale, env: Env) -> Iterator[Round]:
    """One round per window over nodes in document order."""
    for window in contents_of(clause, nodes, scale):
        yield window_round(clause, window, scale, env)


def contents_of(clause: ast.For, nodes: Sequence[PlacedNode], scale: TimeScale) -> Iterator[WindowContent[PlacedNode]]:
    """The windows over nodes in document order, each with what it holds."""
    match clause.window:
        case ast.CountWindow() as window:
            return count_windows(extent_of(window, scale), nodes)
        case ast.SessionWindow(gap=gap):
            return sessions(amount_on(gap, scale), [(each.key, each.value, each) for each in nodes])
        case ast.TimeWindow() as window:
            return time_windows(extent_of(window, scale), [(each.value, each) for each in nodes])
        case None:
            raise AssertionError("it has a window")


def window_round(clause: ast.For, window: WindowContent[PlacedNode], scale: TimeScale, env: Env) -> Round:
    """The round of a window: its variable is the sequence of what the window holds (LAWS 3.4)."""
    nodes: Values = [each.node for each in window.content]
    if not isinstance(clause.window, ast.CountWindow):
        nodes = WindowValues(nodes, WindowBounds(window.start, window.end, scale, window.is_time))
    held = tuple((each.arrival, each.node) for each in window.content)
    return Round(window.content[0].arrival, env.bind(clause.variable, nodes), window.k, held=held)


@dataclass(frozen=True, slots=True)
class JoinedSide:
    """One `for` of a join, with its nodes in document order."""

    clause: ast.For
    nodes: Sequence[PlacedNode]
    scale: TimeScale

    @property
    def extent(self) -> Extent:
        assert isinstance(self.clause.window, ast.CountWindow | ast.TimeWindow), "sessions are refused in joins"
        return extent_of(self.clause.window, self.scale)

    def values(self) -> Iterator[tuple[Fraction, PlacedNode]]:
        """The nodes with their values, or with their places, of which only those of a full window ever enter one."""
        if isinstance(self.clause.window, ast.TimeWindow):
            yield from ((each.value, each) for each in self.nodes)
            return
        extent = self.extent
        for place, each in enumerate(map(Fraction, range(len(self.nodes)))):
            if extent.end(extent.first(each)) <= len(self.nodes):
                yield each, self.nodes[place]


def joined_rounds(given: Sequence[JoinedSide], env: Env) -> Iterator[Round]:
    """One round per tuple of the windows of a join."""
    sides: list[Side[PlacedNode]] = [Side("time", each.extent) for each in given]
    waiting = (Entry(number, node, value) for number, side in enumerate(given) for value, node in side.values())
    for number, found in enumerate(step_join(sides, waiting)):
        bound = env
        for side, each in zip(given, found, strict=True):
            bound = bound.bind(side.clause.variable, [each.node])
        yield Round(found[0].arrival, bound, number, held=tuple((each.arrival, each.node) for each in found))
