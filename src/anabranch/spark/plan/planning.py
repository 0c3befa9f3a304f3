"""Chooses the plan of an epoch: one that was written for it already, the last one again, or a new one.

A plan is durable before its epoch does anything else, so an epoch that is run again does the same.
There is one exception: a plan with a stream or subscription that was removed is made anew, without it.
Nothing of an epoch counts before its manifest is published; so a stream that cannot be read, because its files were
removed, say, blocks nothing once it is taken out of the site.
As long as nothing has changed, epochs share a plan, which costs a few comparisons, and a check of the files behind
`doc()`, whose content is part of the plan (`documents.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from anabranch.law.calls import PythonFunction
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.plan.documents import DocumentCopies
from anabranch.spark.plan.epoch_plan import Plan, PlannedDocument
from anabranch.spark.plan.files import PlanFile, Plans
from anabranch.spark.plan.membership import strands_for, subscriptions_of
from anabranch.spark.plan.wanted import Workload
from anabranch.stream.reading.source import KnownStream, StreamForm
from anabranch.stream.settings import Settings

_Followed: TypeAlias = tuple[tuple[KnownStream, ...], frozenset[str], tuple[PlannedDocument, ...]]
"""The streams, those whose root elements are known, and the documents."""


class Planning:
    """Gives the epochs of a trunk their plans; only the epoch at work changes it."""

    def __init__(
        self,
        plans: Plans,
        settings: Settings,
        functions: Mapping[str, PythonFunction],
        default_shards: int,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._plans = plans
        self._settings = settings
        self._functions = tuple(functions.items())
        self._shards = settings.shards or default_shards
        self.newest = plans.newest()
        """The plan of the newest epoch."""
        self._made: tuple[Workload, _Followed, PlanFile] | None = None
        """The plan of the last epoch, and the workload, streams and documents it was made for."""
        self._rooted: frozenset[str] = frozenset()
        """The streams whose root elements were known when it was made."""
        self.documents = DocumentCopies(plans.folder, self.newest, warn)

    def begin(
        self,
        epoch: int,
        wanted: Workload,
        forms: Mapping[str, StreamForm | None],
        last: Manifest | None,
        counts: Mapping[str, int] | None = None,
    ) -> PlanFile:
        """The plan of an epoch, which is durable from then on; `counts` are the partitions of streams in topics."""
        file = self._begun(epoch, wanted, forms, last, counts or {})
        self.newest = file.load()
        return file

    def renew(self) -> None:
        """Make a new plan for the next epoch: the workload is the same, but not what follows from it."""
        self._made = None

    def _begun(
        self,
        epoch: int,
        wanted: Workload,
        forms: Mapping[str, StreamForm | None],
        last: Manifest | None,
        counts: Mapping[str, int],
    ) -> PlanFile:
        written = self._plans.of(epoch)
        if written is not None and _is_wanted(written.load(), wanted):
            self._made = None
            return written
        streams = tuple(
            KnownStream.of(source.counting(counts.get(name, 0)), forms[name]) for name, source in wanted.streams.items()
        )
        rooted = frozenset(name for name in wanted.streams if forms[name] is not None)
        documents = self.documents.look(wanted.documents)
        followed = streams, rooted, documents
        if self._made is not None and self._made[0] is wanted and self._made[1] == followed:
            self._plans.again(epoch, self._made[2])
            return self._made[2]
        file = self._plans.begin(epoch, self._next(epoch, wanted, streams, last, rooted, documents))
        self._made, self._rooted = (wanted, followed, file), rooted
        return file

    def _next(
        self,
        epoch: int,
        wanted: Workload,
        streams: tuple[KnownStream, ...],
        last: Manifest | None,
        rooted: frozenset[str],
        documents: tuple[PlannedDocument, ...],
    ) -> Plan:
        settings = self._settings
        subscriptions, following = subscriptions_of(
            self.newest,
            wanted.subscriptions,
            epoch,
            last.begun if last else (),
            streams,
            self._functions,
            endless=not settings.finite,
            sharing=settings.sharing,
            aborted=last.aborted if last else {},
            policies=wanted.policies,
            timed=settings.timed,
            strands=partial(strands_for, settings.strands, self._shards),
            rooted=rooted,
            checked=self._rooted,
        )
        courses = tuple(wanted.courses.items())
        rest = documents, settings.finite, settings.sharing, settings.accents, courses
        return Plan(streams, subscriptions, settings.limits, following, self._shards, *rest)


def _is_wanted(plan: Plan, wanted: Workload) -> bool:
    """Whether everything in a plan is still in the workload."""
    return all(each.name in wanted.streams for each in plan.streams) and all(
        wanted.subscriptions.get(each.name) == each.text for each in plan.subscriptions
    )
