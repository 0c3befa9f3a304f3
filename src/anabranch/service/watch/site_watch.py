"""A site at work under watch: its activity, and what looks at its sources and states tell.

One thread tells clients of epochs (`feed.py`), another looks at sources once a second (`lag.py`), or less often where a
look takes long, so that looking takes a tenth of its time at most.
Requests get what was found last, and wait for neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event, Lock, Thread
from time import monotonic

from anabranch.errors import AnabranchError
from anabranch.service.watch.activity import Activity
from anabranch.service.watch.feed import NowFeed
from anabranch.service.watch.holdings import Holdings
from anabranch.service.watch.lag import LagLookout, StreamLag
from anabranch.service.watch.lateness import Cause, Situation, lateness
from anabranch.service.watch.sharing import PlanGrouping
from anabranch.service.watch.snapshot import snapshot
from anabranch.site_work import SiteAtWork, SubscriptionEntry
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.epoch.waits import Wait
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.wanted import Epoch
from anabranch.spark.sinks import kind_of_sink

_LOOK_SECONDS, _START_SECONDS = 1.0, 0.1
"""The least pause between two looks, and that before the trunk has begun."""
_LOOK_SHARE = 10
"""A look is followed by a pause of so many times its length."""
_LASTING_SECONDS = 2.0
"""A source waits for something if it has for so long: a writer may be within a line at any time."""


@dataclass(frozen=True, slots=True)
class LastLook:
    """What the last look has found."""

    lags: Mapping[str, StreamLag]
    causes: tuple[Cause, ...]


class SiteWatch:
    """Watches a site; any thread may ask."""

    def __init__(self, work: SiteAtWork, log: AnswerLog) -> None:
        self._work = work
        self.activity = Activity(log)
        self.feed = NowFeed(self._snapshot)
        self.groups = PlanGrouping(work.functions)
        self.look = LastLook({}, ())
        self.requests: Counter[str] = Counter()
        """Answered requests by class of their status, `2xx`; only the server's thread counts."""
        self.request_seconds = 0.0
        self._lookout: LagLookout | None = None
        self._since: dict[Wait, float] = {}
        self._restored: Manifest | None = None
        """The newest manifest of earlier runs."""
        self._holding = Lock()
        self._held: tuple[Manifest | None, Holdings, float, float] = (None, Holdings(), 0.0, 0.0)
        """States as they were last looked up: of which manifest, when, and how long that took."""
        self._counted: tuple[Mapping[str, SubscriptionEntry], Mapping[str, int]] = {}, {}
        self._read: tuple[Plan | None, Counter[str]] = None, Counter()
        """The newest plan whose readers were counted, and these."""
        self._end = Event()
        self._thread = Thread(target=self._work_on, name="lag", daemon=True)
        work.log.followers.append(self.activity.event)

    def take(self, epoch: Epoch) -> None:
        """Take a committed epoch, on the trunk's thread."""
        self.activity.take(epoch)
        self.feed.wake()

    def answered(self, status: int, seconds: float) -> None:
        """Count a request, on the server's thread."""
        self.requests[f"{status // 100}xx"] += 1
        self.request_seconds += seconds

    def start(self) -> None:
        """Begin to look."""
        self.feed.start()
        self._thread.start()

    def close(self) -> None:
        """End, with all who follow the feed."""
        self._end.set()
        self.feed.close()
        if self._thread.ident is not None:
            self._thread.join()

    # --- what is known --------------------------------------------------------------------------------------

    def newest(self) -> tuple[Manifest, Plan] | None:
        """The newest manifest with its plan, of this run or an earlier one; None before the first epoch."""
        epoch = self.activity.newest()
        if epoch is not None:
            return epoch.manifest, epoch.plan
        trunk = self._work.trunk
        if trunk is None or trunk.plan is None:
            return None
        if self._restored is None:
            self._restored = Manifests(trunk.checkpoint.manifests).newest()
        return None if self._restored is None else (self._restored, trunk.plan)

    def holdings(self, *, fresh: bool = True) -> Holdings:
        """The states of branches; unless they must be `fresh`, as they were at most a second ago, or a little more."""
        with self._holding:
            found, (manifest, held, at, took) = self.newest(), self._held
            recently = monotonic() - at < max(1.0, _LOOK_SHARE * took)
            if found is None or found[0] is manifest or (recently and not fresh):
                return held
            begun = monotonic()
            held = Holdings.of(*found)
            self._held = found[0], held, monotonic(), monotonic() - begun
            return held

    def readers(self) -> Counter[str]:
        """By stream: how many subscriptions of the newest plan read it."""
        plan = self._work.trunk.plan if self._work.trunk else None
        if plan is not None and plan is not self._read[0]:
            self._read = plan, Counter(stream for each in plan.subscriptions for stream in each.streams)
        return self._read[1]

    def sinks(self) -> dict[str, tuple[int, int]]:
        """By kind of sink: how many there are, and by how many epochs they are behind."""
        entries, counts = self._work.entries, self._counted[1]
        if self._counted[0] is not entries:
            given = (each.declared.sink for each in entries.values())
            counts = Counter(kind_of_sink(each) for each in given if each is not None)
            self._counted = entries, counts
        behind = self._work.trunk.epochs_behind if self._work.trunk else {}
        return {kind: (count, behind.get(kind, 0)) for kind, count in counts.items()}

    def _snapshot(self) -> bytes:
        work, look = self._work, self.look
        return snapshot(
            work.state,
            work.trunk.last if work.trunk else -1,
            len(work.entries),
            list(work.site.streams),
            self.activity.figures(),
            look.lags,
            list(look.causes),
            self.holdings(fresh=False),
            self.sinks(),
        )

    # --- looks ----------------------------------------------------------------------------------------------

    def _work_on(self) -> None:
        pause = 0.0
        while not self._end.wait(pause):
            begun = monotonic()
            try:
                self.look_now()
            except AnabranchError as error:
                self._work.log.event("warning", message=f"lag cannot be told: {error.message}")
                pause = 60.0
                continue
            least = _LOOK_SECONDS if self._work.trunk else _START_SECONDS
            pause = max(least, _LOOK_SHARE * (monotonic() - begun))

    def look_now(self) -> None:
        """Look at sources and states, on the thread that looks."""
        work, trunk = self._work, self._work.trunk
        lags: Mapping[str, StreamLag] = {}
        waits: list[Wait] = []
        found = self.newest()
        if trunk is not None:
            self._lookout = self._lookout or LagLookout(trunk.checkpoint)
            lags = self._lookout.look(work.site.streams.values(), found[0] if found else None)
            now = monotonic()
            self._since = {each: self._since.get(each, now) for each in self._lookout.waits}
            waits = [each for each, since in self._since.items() if now - since >= _LASTING_SECONDS]
        situation = Situation(
            work.state,
            self.activity.figures(),
            lags,
            waits,
            self.holdings(fresh=False),
            trunk.plan if trunk else None,
            trunk.epochs_behind if trunk else {},
        )
        self.look = LastLook(lags, tuple(lateness(situation)))
        if trunk is not None and trunk.plan is not None:
            self.groups.prepare(trunk.plan)
