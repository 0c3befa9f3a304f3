"""Evaluations that take too many steps, counted for each subscription that tasks answer item by item (LAWS 2.9).

Such a subscription ends behind the item with which it has had as many as it may, wherever ranges begin and end.
The ranges of an epoch are read in parallel, so none of them knows how many there were before it in the epoch.
Each counts its own, and evaluates nothing more for a subscription that has reached its cap there, so a costly one costs
no more than its cap in each range.
The driver puts the counts of all ranges together; where a subscription has come to its end, the job is run again, told
where that is (`spark/evolution/rerun.py`).

The counts are in the manifest.
A subscription that has one is evaluated apart from equal ones, for these may have begun later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from anabranch.columnar.items.programs import ItemQuery
from anabranch.columnar.items.stretch import Stretch
from anabranch.spark.epoch.job import Job, Report, Stop
from anabranch.spark.intake.ranges import Position, Range


@dataclass(slots=True)
class RangeOverruns:
    """The overruns of one range; queries have their numbers in the stream."""

    job: Job
    members: Sequence[ItemQuery]
    reach: Range
    silent: frozenset[int] = frozenset()
    """The queries that have ended."""
    found: dict[int, list[Stop]] = field(default_factory=dict)
    """By subscription: where its overruns are."""
    costs: dict[int, float] = field(default_factory=dict)
    """By query: the processor seconds in which the law has answered it."""

    def cost(self, query: int, seconds: float) -> None:
        """The law has worked so long for a query."""
        self.costs[query] = self.costs.get(query, 0.0) + seconds

    def note(self, query: int, offset: int) -> None:
        """An evaluation of a query, for the item at an offset, has taken too many steps."""
        plan = self.job.plan.load()
        for subscriber, _ in self.members[query].subscribers:
            places = self.found.setdefault(subscriber, [])
            places.append(self._stop(offset))
            most = plan.by_id[subscriber].most_overruns
            before = self.job.overruns.get(subscriber, 0)
            if most is not None and subscriber not in self.job.stops and before + len(places) >= most:
                self.silent |= {query}

    def _stop(self, offset: int) -> Stop:
        return Stop(int(self.reach.partition), Position(self.reach.number, offset))

    def between_stops(self, stretch: Stretch) -> Iterator[Stretch]:
        """The parts of a stretch between which queries end; each must be answered before the next is taken."""
        begin = 0
        for stop, query in self._due():
            count = len(stretch.known)
            end = next((each for each in range(begin, count) if self._is_behind(stretch, each, stop)), count)
            if end == count and not (end and self._stop(stretch.shredded.cut(end - 1).start) >= stop):
                break
            if begin < end:
                yield stretch.part(begin, end)
            begin, self.silent = end, self.silent | {query}
        if begin < len(stretch.known):
            yield stretch.part(begin, len(stretch.known)) if begin else stretch

    def _is_behind(self, stretch: Stretch, entry: int, stop: Stop) -> bool:
        return self._stop(stretch.shredded.cut(entry).start) > stop

    def _due(self) -> list[tuple[Stop, int]]:
        """The queries that end in this epoch and have not ended yet, in the order of their ends."""
        if not self.job.stops:
            return []
        asked = ((number, each.subscribers) for number, each in enumerate(self.members) if number not in self.silent)
        found = {number: self.job.stops.get(subscribers[0][0]) for number, subscribers in asked}
        return sorted((stop, number) for number, stop in found.items() if stop is not None)


class Capped(NamedTuple):
    """What the overruns of an epoch lead to."""

    stops: Mapping[int, Stop]
    """By subscription that ends in it: where."""
    counts: Mapping[int, int]
    """By subscription that goes on: how many it has had."""


def capped(job: Job, reports: Sequence[Report]) -> Capped:
    """Put the overruns of all ranges together, with those of the epochs before."""
    found: dict[int, list[Stop]] = {}
    for report in reports:
        for number, places in report.overruns.items():
            found.setdefault(number, []).extend(places)
    known = job.plan.load().by_id
    counts = {number: count for number, count in job.overruns.items() if number in known and not known[number].aborted}
    stops = dict(job.stops)
    for number, places in found.items():
        before, most = counts.get(number, 0), known[number].most_overruns
        counts[number] = before + len(places)
        if most is not None and counts[number] >= most and number not in stops:
            stops[number] = sorted(places)[most - before - 1]
    return Capped(stops, {number: count for number, count in counts.items() if number not in stops})


def why_stopped(job: Job) -> dict[int, str]:
    """By subscription that ends in an epoch because of its overruns: why."""
    known = job.plan.load().by_id
    found = {number: known[number].caps.why_overrun(known[number].most_overruns or 0) for number in job.stops}
    return {number: reason for number, reason in found.items() if reason is not None}
