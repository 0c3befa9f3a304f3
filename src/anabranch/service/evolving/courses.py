"""The evolution of the streams of a site at work: read from the logs in its checkpoint, and kept until these grow.

What subscriptions did about an accent follows from the plan, so it is found again when subscriptions come or go.
Accents are planned here, too: with the site as it is in memory, and nothing of its file read again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from anabranch.engine.reports.evolution import History, StreamCourse
from anabranch.engine.reports.planned_accents import AccentPlan, SubscribedSite, planned_accent
from anabranch.service.evolving.lanes import SchemaLane, lanes_of
from anabranch.service.evolving.learned import LearnedPath, learned_paths
from anabranch.site_work import SiteAtWork
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.evolution.log import Logged
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.wanted import Epoch
from anabranch.stream.reading.source import KnownStream, Source

_LEARNED_SECONDS = 5.0
"""What was learned of items is looked up again after so long."""


@dataclass(frozen=True, slots=True)
class StreamEvolution:
    """A stream's schema over time, and its accents."""

    lanes: tuple[SchemaLane, ...]
    history: History


class StreamEvolutions:
    """The evolution of all streams; any thread may ask."""

    def __init__(self, work: SiteAtWork, log: AnswerLog, newest: Callable[[], Epoch | None]) -> None:
        """`newest` gives the newest epoch of the run."""
        self._work = work
        self._log = log
        self._newest = newest
        self._lock = Lock()
        self._found: dict[str, tuple[Logged | None, Plan | None, Source, StreamEvolution]] = {}
        self._learned: dict[str, tuple[float, Source, tuple[LearnedPath, ...]]] = {}

    def _committed(self) -> tuple[Manifest | None, Plan | None]:
        """The newest epoch, also where it is one of an earlier run, and its plan."""
        newest = self._newest()
        if newest is not None:
            return newest.manifest, newest.plan
        trunk = self._work.trunk
        return (self._log.manifests.newest(), trunk.plan) if trunk else (None, None)

    def course(self, source: Source) -> StreamCourse:
        """The course of a stream up to the newest epoch."""
        manifest, _ = self._committed()
        return StreamCourse(source, self._work.checkpoint if manifest else None, manifest)

    def of(self, source: Source) -> StreamEvolution:
        """The evolution of a stream; the same again while neither its log nor the subscriptions change."""
        manifest, plan = self._committed()
        logged = manifest.evolution.get(source.name) if manifest else None
        with self._lock:  # one at a time: all who wait ask the same
            known = self._found.get(source.name)
            if known is not None and known[0] == logged and known[1] is plan and known[2] == source:
                return known[3]
            course = StreamCourse(source, self._work.checkpoint if manifest else None, manifest)
            lanes = known[3].lanes if known is not None and known[0] == logged and known[2] == source else None
            found = StreamEvolution(lanes or lanes_of(course), course.history(plan))
            self._found[source.name] = logged, plan, source, found
            return found

    def learned(self, source: Source) -> tuple[LearnedPath, ...]:
        """The paths of a stream's newest items, with a few values of each."""
        now = monotonic()
        known = self._learned.get(source.name)
        if known is None or now - known[0] > _LEARNED_SECONDS or known[1] != source:
            known = self._learned[source.name] = now, source, learned_paths(self.course(source))
        return known[2]

    def plan_accent(self, source: Source, text: str, partition: str | None) -> AccentPlan:
        """An accent to be published into a stream; raises where the stream cannot take it."""
        accents = self._work.site.settings.accents
        return planned_accent(self.course(source), text, partition, self._subscribed, accents=accents)

    def _subscribed(self) -> SubscribedSite:
        """The subscriptions of the site by now, also those that wait for their first epoch."""
        manifest, plan = self._committed()
        work = self._work
        going = {name: each for name, each in work.entries.items() if each.refusal is None}
        sources = dict(work.site.streams)
        for each in going.values():
            sources |= each.streams
        forms = {each.name: each.form for each in plan.streams} if plan else {}
        return SubscribedSite(
            tuple(KnownStream.of(each, forms.get(name)) for name, each in sources.items()),
            {name: each.printed for name, each in going.items()},
            {name: each.declared.policy for name, each in going.items()},
            tuple(work.functions.items()),
            work.checkpoint if manifest else None,
            manifest,
            plan,
        )
