"""The progress of a plan's windows along the paths of their streams (LAWS 3.2, 3.6).

A window of a plan is over a path of its input; where that derives from a path of a stream, the stream's own items show
the progress, selected or not, as for the windows of query text.
The plan learns it as if by a punctuation of the stream, at the ends of windows and not between them; an item that is
late by such a path is left out, since its windows may be closed.
Through a join, the progress of one input is not enough: a pair needs both inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from anabranch.algebra.accents.sets import below
from anabranch.algebra.operators.construct import Construct, Copy
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.windowed import Window
from anabranch.algebra.plans.interpret import Apply, Plan, StreamSource
from anabranch.algebra.reactions.readings import Reading
from anabranch.algebra.reactions.signature import Paths
from anabranch.algebra.window import Extent, Panes
from anabranch.branch.evolution.changelog import WindowsReached
from anabranch.branch.ports import InputStream
from anabranch.branch.windows.selection import WindowProgress
from anabranch.law.rounds.windows import Reach
from anabranch.stream.cover import passed
from anabranch.stream.elements import Punctuation
from anabranch.stream.path import Path

Way = tuple[int, ...]
"""The way to an operator: the inputs to take from the root down."""


@dataclass(slots=True)
class _Watch:
    """A path of a stream, with the windows over it."""

    stream: InputStream
    path: Path
    origin: Fraction
    progress: WindowProgress
    windows: list[tuple[Way, Extent]] = field(default_factory=list)
    reported: Fraction = Fraction(0)
    """The last value that the plan was told."""


class Pace:
    """The progress of a plan's streams; it must see items and signals in their order."""

    def __init__(self, plan: Plan, inputs: Mapping[str, InputStream]) -> None:
        self._watches: dict[tuple[str, Path], _Watch] = {}
        for way, window in _windows(plan, ()):
            for name, path in dict.fromkeys(_leads(plan_at(plan, (*way, 0)), window.path)):
                stream = inputs[name]
                scale = stream.source.scale(path)
                fresh = _Watch(stream, path, scale.origin, WindowProgress(stream, scale.slack))
                watch = self._watches.setdefault((name, path), fresh)
                watch.windows.append((way, window.extent))

    def is_late(self, stream: str, partition: int, item: Reading) -> bool:
        """Whether an item is late, given in the units of query start."""
        late = False
        for watch in self._of(stream):
            values = (each for each in item.numbers(watch.path) if isinstance(each, Fraction))
            for value in values:
                late |= watch.progress.is_late(partition, value - watch.origin)
        return late

    def signal(self, stream: str, partition: int, punctuation: Punctuation | None) -> None:
        """Apply a punctuation in the units of query start, or the end of a partition."""
        for watch in self._of(stream):
            value: Reach | None = math.inf
            if punctuation is not None:
                value = passed(punctuation, watch.path, watch.stream.source.time)
            if value is not None:
                watch.progress.passed(partition, value - watch.origin)

    def reached(self, stream: str) -> Iterator[WindowsReached]:
        """The new progress that the plan must learn; it need not learn the end of a stream."""
        for watch in self._of(stream):
            reached = watch.progress.reached
            if isinstance(reached, Fraction):
                last = max(_end(extent, reached) for _, extent in watch.windows)
                if last > watch.reported:
                    watch.reported = last
                    yield WindowsReached(stream, watch.path, last + watch.origin)

    def first_windows(self) -> dict[Way, int]:
        """The first complete window of each operator for the subscription, where it is not the first of all."""
        found: dict[Way, int] = {}
        for watch in self._watches.values():
            for way, extent in watch.windows:
                if (first := watch.progress.first_window(extent)) > found.get(way, 0):
                    found[way] = first
        return found

    def _of(self, stream: str) -> Iterator[_Watch]:
        return (watch for (name, _), watch in self._watches.items() if name == stream)

    def save(self) -> list[Any]:
        return [[watch.progress.save(), str(watch.reported)] for watch in self._watches.values()]

    def restore(self, saved: list[Any]) -> None:
        """Restore from `save`."""
        for watch, (progress, reported) in zip(self._watches.values(), saved, strict=True):
            watch.progress.restore(progress)
            watch.reported = Fraction(reported)


def _end(extent: Extent, reached: Fraction) -> Fraction:
    """The end of the last closed window; 0 where there is none."""
    many = Panes.of(extent).ended(reached)
    return extent.end(many - 1) if many else Fraction(0)


# --- windows and their streams ------------------------------------------------------------------------------------


def with_origins(plan: Plan, inputs: Mapping[str, InputStream]) -> Plan:
    """The plan with windows at the origins of their streams; of several streams, the first's."""
    if isinstance(plan, StreamSource):
        return plan
    operator, below = plan.operator, tuple(with_origins(each, inputs) for each in plan.inputs)
    if isinstance(operator, Window):
        leads = _leads(plan.inputs[0], operator.path)
        origins = (inputs[name].source.scale(path).origin for name, path in leads)
        operator = replace(operator, origin=next(origins, Fraction(0)))
    return Apply(operator, below)


def plan_at(plan: Plan, way: Way) -> Plan:
    """The operator at the end of a way."""
    for input in way:
        assert isinstance(plan, Apply)
        plan = plan.inputs[input]
    return plan


def _windows(plan: Plan, way: Way) -> Iterator[tuple[Way, Window]]:
    if isinstance(plan, Apply):
        if isinstance(plan.operator, Window):
            yield way, plan.operator
        for number, each in enumerate(plan.inputs):
            yield from _windows(each, (*way, number))


def _leads(plan: Plan, path: Path) -> Iterator[tuple[str, Path]]:
    """The paths of streams from which a path of a plan's output may derive."""
    match plan:
        case StreamSource(name):
            yield name, path
        case Apply(Construct(_, fields), (inner,)):
            for at, value in fields:
                if isinstance(value, Copy) and below(path, at):
                    yield from _leads(inner, Path((*value.path.steps, *path.steps[len(at.steps) :])))
        case Apply(Aggregate(by=by)) if path not in Paths.of(by):
            pass
        case Apply(Project(kept)) if path not in Paths.of(kept):
            pass
        case Apply(_, inputs):
            for each in inputs:
                yield from _leads(each, path)
