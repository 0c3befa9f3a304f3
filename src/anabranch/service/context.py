"""What the routes of a service have in common: the site at work, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Annotated, TypeAlias

from fastapi import Depends
from starlette.requests import Request

from anabranch.engine.inputs import Inputs
from anabranch.engine.reports.html import Tally
from anabranch.errors import did_you_mean
from anabranch.service.access import OpenStreams
from anabranch.service.answers.aside import LettersAside
from anabranch.service.answers.asked import AskedAnswers
from anabranch.service.answers.displays import DisplayViews
from anabranch.service.answers.epochs import EpochIndex
from anabranch.service.answers.events import AnswerHub
from anabranch.service.answers.feed import AnswerFeed
from anabranch.service.evolving.courses import StreamEvolutions
from anabranch.service.queries.desk import QueryDesk
from anabranch.service.refusals import NotFound
from anabranch.service.settings import ServiceSettings
from anabranch.service.watch.prometheus import RunMetrics
from anabranch.service.watch.site_watch import SiteWatch
from anabranch.site import SiteDescription
from anabranch.site_work import NoSubscription, NotReady, SiteAtWork, SubscriptionEntry
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.wanted import Epoch
from anabranch.stream.reading.source import Source

_KNOWN_FORMS = 10_000


class ServiceContext:
    """A site at work, as the service sees it; any thread may ask."""

    def __init__(self, work: SiteAtWork, settings: ServiceSettings) -> None:
        self.work = work
        self.settings = settings
        self.started = datetime.now(UTC)
        self.log = AnswerLog(work.checkpoint)
        self.open_streams = OpenStreams(settings.event_streams)
        self.followers: list[Callable[[Epoch], None]] = []
        """Who hears of committed epochs, on the trunk's thread."""
        self.newest: Epoch | None = None
        """The newest epoch of this run, None before its first."""
        epochs = EpochIndex(self.log, self._committed)
        self.feed = AnswerFeed(self.log, epochs)
        self.displays = DisplayViews(self.log, self.feed)
        self.aside = LettersAside(self.log, epochs, work.checkpoint.segments)
        self.asked = AskedAnswers(self, self.feed)
        self.hub = AnswerHub(self, self.feed, self.asked)
        self.followers += (self.asked.committed, self.hub.committed)
        self.evolutions = StreamEvolutions(work, self.log, lambda: self.newest)
        self.queries = QueryDesk(work, lambda: self.newest, self.evolutions)
        self.watch = SiteWatch(work, self.log)
        self.followers.append(self.watch.take)
        self.metrics = RunMetrics(work, self.watch, lambda: self.open_streams.counts)
        self._tally = Tally(self.log)
        self._tallying = Lock()
        self._tallied = -2
        """The newest epoch whose answers are counted."""
        self._json: dict[str, bool] = {}
        """By printed query: whether it answers in JSON, for those that were asked for lately."""
        self._inputs: tuple[SiteDescription, Inputs] | None = None

    def epoch(self, epoch: Epoch) -> None:
        """Take note of a committed epoch."""
        self.newest = epoch
        for follower in self.followers:
            follower(epoch)

    @property
    def plan(self) -> Plan | None:
        """The plan of the newest epoch, None before the first."""
        return self.work.trunk.plan if self.work.trunk else None

    @property
    def last(self) -> int:
        """The newest epoch that is committed, -1 if there is none."""
        return self.work.trunk.last if self.work.trunk else -1

    def _committed(self) -> int:
        """The newest epoch that is committed, also while its followers are being told."""
        newest = self.newest
        return max(self.last, newest.manifest.epoch if newest else -1)

    def check_begun(self) -> None:
        """Refuse what needs the subscriptions of earlier runs, until these are known."""
        if self.work.state == "starting":
            raise NotReady("the run is starting", hint="try again in some seconds")

    def entry(self, name: str) -> SubscriptionEntry:
        """A subscription by its name."""
        self.check_begun()
        found = self.work.entries.get(name)
        if found is None:
            raise NoSubscription(f"there is no subscription '{name}'", hint=did_you_mean(name, self.work.entries))
        return found

    def registration(self, entry: SubscriptionEntry) -> Registration | None:
        """A subscription as the newest epoch has it; None where it waits for its first."""
        plan = self.plan
        found = plan.by_name.get(entry.name) if plan else None
        return found if found is not None and found.text == entry.printed else None

    def stream(self, name: str) -> Source:
        """A stream by its name."""
        streams: Mapping[str, Source] = self.work.site.streams
        if name not in streams:
            raise NotFound(f"there is no stream '{name}'", hint=did_you_mean(name, streams))
        return streams[name]

    def gives_json(self, entry: SubscriptionEntry) -> bool:
        """Whether a subscription answers in JSON (LAWS 7.3)."""
        key = entry.printed
        if key not in self._json:
            if len(self._json) > _KNOWN_FORMS:
                self._json.clear()
            inputs, declared = self._known_inputs(), entry.declared
            self._json[key] = not declared.is_plan and inputs.gives_json(
                inputs.check(declared.text, entry.name, declared.language)
            )
        return self._json[key]

    def _known_inputs(self) -> Inputs:
        """What queries may read, the same object as long as SITE.toml is: the first bytes of streams are read once."""
        site, known = self.work.site, self._inputs
        if known is None or known[0] is not site:
            known = self._inputs = (site, self.work.inputs)
        return known[1]

    def answers(self, registration: Registration | None) -> int:
        """The number of answers to a subscription."""
        with self._tallying:
            if self._tallied != self.last:
                self._tallied = self.last
                self._tally.now()
            return self._tally.of(registration)


def _context(request: Request) -> ServiceContext:
    found: ServiceContext = request.app.state.context
    return found


Context: TypeAlias = Annotated[ServiceContext, Depends(_context)]
"""The parameter of a route that needs the site."""
