"""The schema of a stream over time: a lane for each path of a partition, with a stretch for each state that it had.

A state holds for some items, so several stretches of one lane may lie side by side.
A stretch begins with the epoch in which an accent was read, and one that still holds has no end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from anabranch.algebra.accents.events import judged
from anabranch.engine.reports.evolution import EVERYTHING, PathState, StreamCourse
from anabranch.stream.elements import Accent, Add

MOST_LANES = 2_000


@dataclass(frozen=True, slots=True)
class LaneStretch:
    """A state of a path, for some items, from one epoch to another."""

    from_epoch: int
    to_epoch: int | None
    items: str
    state: str
    unit: str


@dataclass(frozen=True, slots=True)
class SchemaLane:
    """A path of a partition over time."""

    path: str
    partition: int
    stretches: tuple[LaneStretch, ...]


def lanes_of(course: StreamCourse) -> tuple[SchemaLane, ...]:
    """The lanes of a stream, partition by partition; paths that come to be known later come later."""
    found: list[SchemaLane] = []
    for partition in range(len(course.source.partitions)):
        found += _lanes(course, partition)
        if len(found) >= MOST_LANES:
            return tuple(found[:MOST_LANES])
    return tuple(found)


def _lanes(course: StreamCourse, partition: int) -> Iterator[SchemaLane]:
    evolution = course.begun(partition)
    open_: dict[PathState, int] = dict.fromkeys(course.rows(partition, evolution), 0)
    stretches: dict[str, list[LaneStretch]] = {each.path: [] for each in open_}
    events = (each for each in course.changes if each.partition == partition)
    for epoch, several in groupby(events, lambda each: each.epoch):
        for each in several:
            event = judged(each.announced.event, evolution)
            if isinstance(event, Accent) and not isinstance(event.evolution, Add) and epoch:
                path = str(event.evolution.path)  # whoever alters or drops it had it before
                stretches.setdefault(path, [LaneStretch(0, epoch, EVERYTHING, "may be there", "")])
        now = dict.fromkeys(course.rows(partition, evolution), epoch)
        for state in [each for each in open_ if each not in now]:
            stretches[state.path].append(_stretch(state, open_.pop(state), epoch))
        for state in now:
            if state not in open_:
                open_[state] = epoch
                stretches.setdefault(state.path, [])
    for state, begin in open_.items():
        stretches[state.path].append(_stretch(state, begin, None))
    for path, those in stretches.items():
        yield SchemaLane(path, partition, tuple(sorted(those, key=lambda each: each.from_epoch)))


def _stretch(state: PathState, begin: int, end: int | None) -> LaneStretch:
    return LaneStretch(begin, end, state.items, state.state, state.unit)
