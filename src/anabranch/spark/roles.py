"""Who answers what: which subscriptions a task answers item by item, and which go on as branches.

A query that needs one item at a time is answered where the item is read.
A *branch* remembers: windows and joins, answers that wait for the end, and the merge of partitions that are read side
by side and have a time (LAWS 1.2).
A branch belongs to one shard, by its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from anabranch.branch.panes import PanePlan, pane_plan
from anabranch.errors import UsageError
from anabranch.language import parse
from anabranch.reference import Input, document_input
from anabranch.reference.calls import PythonFunction
from anabranch.reference.standing import Standing, standing
from anabranch.spark.plan import Plan, PlanFile, StreamPlan, Subscription
from anabranch.stream.parse import parse_document

Functions: TypeAlias = tuple[tuple[str, PythonFunction], ...]
"""What the user registered, by name."""


@dataclass(frozen=True, slots=True)
class Role:
    """A subscription with its query, taken apart."""

    subscription: Subscription
    standing: Standing
    is_branch: bool
    panes: PanePlan | None = None
    """How a branch is counted by panes, where it can be."""

    def shard(self, plan: Plan) -> int:
        """The shard that a branch belongs to."""
        return self.subscription.id % plan.shards


@lru_cache(maxsize=4)
def roles_of(file: PlanFile, functions: Functions) -> tuple[Role, ...]:
    """The roles of all subscriptions of a plan, found once per process."""
    plan = file.load()
    streams = {stream.stream: stream for stream in plan.streams}
    found = []
    for each in plan.subscriptions:
        query = standing(parse(each.text, each.name), dict(functions))
        if all(stream in streams for stream in query.streams):
            remembered = remembers(query, streams)
            panes = _panes(query, streams[query.streams[0]], functions) if remembered else None
            found.append(Role(each, query, remembered, panes))
    return tuple(found)


def _panes(query: Standing, stream: StreamPlan, functions: Functions) -> PanePlan | None:
    """Panes are merged in the order in which ranges are read, which is not that of timed partitions."""
    if stream.partitions > 1 and stream.time is not None:
        return None
    return pane_plan(query, Fraction(stream.slack), Fraction(stream.origin), dict(functions))


def remembers(query: Standing, streams: Mapping[str, StreamPlan]) -> bool:
    """Whether an answer needs more than the item at hand."""
    if query.kind != "items" or not query.separate:
        return True
    return any(streams[name].partitions > 1 and streams[name].time is not None for name in query.streams)


@lru_cache(maxsize=4)
def documents_of(given: tuple[tuple[str, str], ...]) -> dict[str, Input]:
    """The documents behind `doc()`, read once per process."""
    found: dict[str, Input] = {}
    for name, path in given:
        try:
            found[name] = document_input(parse_document(Path(path).read_bytes()))
        except OSError as error:
            raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    return found
