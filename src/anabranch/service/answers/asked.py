"""What a name stands for when its answer is asked for.

A name has one answer at a time: that of the subscription which runs under it now.
Where its query was changed, the former answer is over, and the new one begins with the epoch in which the new query
does; until then there is nothing of it.
A subscription that was cancelled while this service runs can still be read to its end, as long as retention keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeAlias

from anabranch.service.answers.feed import AnswerFeed, ResultSource
from anabranch.site_work import SubscriptionEntry
from anabranch.spark.answers.log import AnswerFrame
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds import not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.wanted import Epoch

if TYPE_CHECKING:
    from anabranch.service.context import ServiceContext

AnswerKind: TypeAlias = Literal["xml", "json", "display"]
_MOST_GONE = 10_000
_KNOWN_FRAMES = 10_000


@dataclass(frozen=True, slots=True)
class AskedAnswer:
    """The answer that a name has."""

    name: str
    registration: Registration
    """With the number -1 before its first epoch."""
    frame: AnswerFrame
    entry: SubscriptionEntry | None
    """None where it was cancelled."""
    ended: str | None
    """Why there will be no more results; None while there may be."""

    @property
    def has_begun(self) -> bool:
        """Whether it has had an epoch."""
        return self.registration.id >= 0

    @property
    def source(self) -> ResultSource:
        """Where its results are."""
        return ResultSource(self.registration.id, self.registration.first, self.frame)


class AskedAnswers:
    """Finds answers by name; any thread may ask."""

    def __init__(self, context: ServiceContext, feed: AnswerFeed) -> None:
        self._context = context
        self._feed = feed
        self._lock = Lock()
        self._plan: Plan | None = None
        self._gone: dict[str, Registration] = {}
        """By name: subscriptions that the newest plan no longer has, the newest last."""
        self._frames: dict[int, AnswerFrame] = {}

    def committed(self, epoch: Epoch) -> None:
        """Take note of who has gone with an epoch; the trunk's thread calls it."""
        before, self._plan = self._plan, epoch.plan
        if before is None or before is epoch.plan:
            return
        added = epoch.plan.next_id - before.next_id
        if len(epoch.plan.subscriptions) == len(before.subscriptions) + added:
            return  # nobody has gone
        with self._lock:
            for each in before.subscriptions:
                if each.id not in epoch.plan.by_id:
                    self._gone.pop(each.name, None)
                    self._gone[each.name] = each
            while len(self._gone) > _MOST_GONE:
                del self._gone[next(iter(self._gone))]

    def of(self, name: str) -> AskedAnswer:
        """The answer of a name; raises where there is none."""
        context = self._context
        entry = context.work.entries.get(name)
        plan = context.plan
        planned = plan.by_name.get(name) if plan else None
        with self._lock:
            former = planned or self._gone.get(name)
        if entry is None:
            if former is None:
                entry = context.entry(name)  # which says why there is none
            else:
                context.check_begun()
                return AskedAnswer(name, former, self._frame(former), None, "it was cancelled")
        context.check_begun()
        if entry.refusal is not None:
            found = former or Registration(-1, name, entry.declared.text, 0)
            frame = self._frame(found) if former else AnswerFrame("", "", "")
            return AskedAnswer(name, found, frame, entry, f"it is refused: {entry.refusal.message}")
        if planned is not None and planned.text == entry.printed:
            return AskedAnswer(name, planned, self._frame(planned), entry, self._end(planned))
        known = QueryContext.of(context.work.site.streams.values(), context.work.functions)
        nobody = not_begun(name, entry.printed, known)
        return AskedAnswer(name, nobody, AnswerFrame.of(nobody, context.work.functions), entry, None)

    def _end(self, registration: Registration) -> str | None:
        """Why an accent has ended a subscription, if one has."""
        newest = self._context.newest
        aborted: Mapping[int, str] = newest.manifest.aborted if newest else {}
        reason = registration.aborted or aborted.get(registration.id, "")
        return f"it has ended: {reason}" if reason else None

    def _frame(self, registration: Registration) -> AnswerFrame:
        found = self._frames.get(registration.id)
        if found is None:
            if len(self._frames) >= _KNOWN_FRAMES:
                self._frames.clear()
            found = self._frames[registration.id] = AnswerFrame.of(registration, self._context.work.functions)
        return found

    def kind(self, asked: AskedAnswer) -> AnswerKind:
        """What an answer is made of."""
        if asked.registration.shows:
            return "display"
        if asked.entry is not None and asked.entry.refusal is None:
            return "json" if self._context.gives_json(asked.entry) else "xml"
        return "json" if self.told(asked).json else "xml"

    def told(self, asked: AskedAnswer) -> AnswerFrame:
        """The frame of an answer, as its first result tells it, where that is open (LAWS 7.3)."""
        if not asked.frame.items or not asked.has_begun:
            return asked.frame
        for _, text in self._feed.forward(asked.source, None):
            return asked.frame.told(text)
        return asked.frame
