"""What is computed where windows or tuples are sent from one place to another, and not only items.

Windows are made from items, combined into larger windows, or read to make an answer; tuples are made by a join.
Tuples are elements, so what is computed from them is a query (`loops.over_tuples`).
A window is sent as its number and, for each aggregated path, a partial state that can be combined further: for an
average a sum and a count (LAWS 2.2 and case 8).
`branch/remote/lines.py` has the format in which they are sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from anabranch.language import ast
from anabranch.language.windows.aggregates import Aggregated
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.match_joins import SelectWindows, select_windows
from anabranch.sharing.rules.conditions import StreamNodes
from anabranch.sharing.rules.findings import Findings
from anabranch.sharing.tree import AggregateAnnotation, PropertyTree, Steps, WindowAnnotation


@dataclass(frozen=True, slots=True)
class MakeWindows:
    """Make windows with their values from items."""

    tree: PropertyTree


@dataclass(frozen=True, slots=True)
class CombineWindows:
    """Combine the windows of a source into those of a tree, and send the values that the tree has."""

    tree: PropertyTree
    source: PropertyTree

    @property
    def selection(self) -> SelectWindows | None:
        """How windows of the source are combined; None where they are the same windows."""
        made, given = window_of(self.tree).extent, window_of(self.source).extent
        return None if made == given else select_windows(given, made)


@dataclass(frozen=True, slots=True)
class ReadWindows:
    """Make an answer: combine the windows of a source into those of a query, and run the query over their values."""

    windows: CombineWindows
    text: str


@dataclass(frozen=True, slots=True)
class SendTuples:
    """Make the tuples of a join, by an abstract query over items, or over tuples that carry more.

    A tuple for which the condition raises an error is sent too: its readers evaluate the condition again, and report
    the error.
    """

    text: str
    evolving: bool = False
    """Whether its streams may have accents, which it passes on between the tuples."""


@dataclass(frozen=True, slots=True)
class ReadTuples:
    """Make an answer from the tuples of a join whose streams may have accents, or the tuples of a narrower flow."""

    text: str
    """The subscriber's own query over the streams, or the abstract query of the narrower flow."""
    tuples: PropertyForest
    """What is read."""
    stream: str
    """The name under which it is read."""
    sends: bool = False
    """Whether the results are tuples of a narrower flow."""


OverWindows: TypeAlias = MakeWindows | CombineWindows | ReadWindows
SentOperator: TypeAlias = OverWindows | SendTuples | ReadTuples


def window_of(tree: PropertyTree) -> WindowAnnotation:
    """The window of a tree that has one."""
    assert tree.window is not None
    return tree.window


def named_aggregates(seen: Aggregated, variable: str, path: Steps) -> dict[str, AggregateAnnotation] | None:
    """The aggregates of a window query by the variables that stand for them; None where one has no place in a tree.

    `variable` and `path` are those of the query's window.
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
