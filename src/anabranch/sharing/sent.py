"""Windows and tuples that are sent: who makes them of items, who makes others of them, and who reads an answer.

Tuples are elements, and all that is made of them is made by queries (`restructuring/tuples.py`).
What is sent of a window is its number and, for each path that is aggregated, enough to go on with: for an average a sum
and a count (LAWS 2.2 and case 8).
How that is written down is the business of whoever carries it (`branch/sent`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from anabranch.language import ast
from anabranch.language.aggregates import Aggregated
from anabranch.sharing.match_joins import SelectWindows, select_windows
from anabranch.sharing.rules.findings import Findings
from anabranch.sharing.rules.paths import StreamNodes
from anabranch.sharing.tree import AggregateAnnotation, PropertyTree, Steps, WindowAnnotation


@dataclass(frozen=True, slots=True)
class MakeWindows:
    """Windows with their values, of items."""

    tree: PropertyTree


@dataclass(frozen=True, slots=True)
class PutTogether:
    """Windows of those of a source, and which values are sent of them."""

    tree: PropertyTree
    source: PropertyTree

    @property
    def selection(self) -> SelectWindows | None:
        """How many windows make one, or None where they are the same."""
        made, given = window_of(self.tree).extent, window_of(self.source).extent
        return None if made == given else select_windows(given, made)


@dataclass(frozen=True, slots=True)
class ReadWindows:
    """An answer out of the windows of a source: put together as the query has them, and the query over their values."""

    windows: PutTogether
    text: str


@dataclass(frozen=True, slots=True)
class SendTuples:
    """The tuples of a join, of items that meet or of tuples that carry more: an abstract query over these.

    A tuple for which its condition fails is sent, too: whoever reads it asks again, and knows what has failed.
    """

    text: str


OverWindows: TypeAlias = MakeWindows | PutTogether | ReadWindows
SentOperator: TypeAlias = OverWindows | SendTuples


def window_of(tree: PropertyTree) -> WindowAnnotation:
    """The window of a tree that has one."""
    assert tree.window is not None
    return tree.window


def named_aggregates(seen: Aggregated, variable: str, path: Steps) -> dict[str, AggregateAnnotation] | None:
    """The aggregates of a window query by the variables that stand for them; None where one has no place in a tree.

    The query's own variable and path are those of its window.
    """
    findings = Findings()
    found: dict[str, AggregateAnnotation] = {}
    for call in seen.calls:
        asked = ast.Call(call.function, (seen.paths[call.path],))
        aggregate = findings.aggregate(asked, {variable: StreamNodes(path, window=True)})
        if aggregate is None:
            return None
        found[call.variable] = aggregate
    return found
