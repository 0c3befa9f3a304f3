"""Chooses the plan of an epoch: the last one again, or a new one.

A plan is durable before its epoch does anything else.
Nothing of an epoch counts before its manifest is published: one that was begun and not committed is planned anew, with
what is wanted then; so a stream that cannot be read, because its files were removed, say, blocks nothing once it is
taken out of the site.
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
from anabranch.spark.plan.files import PlanFile
from anabranch.spark.plan.joining import joined
from anabranch.spark.plan.membership import strands_for, subscriptions_of
from anabranch.spark.plan.wanted import Workload
from anabranch.storage import Location
from anabranch.stream.reading.source import KnownStream, StreamForm
from anabranch.stream.settings import Settings

_Followed: TypeAlias = tuple[tuple[KnownStream, ...], frozenset[str], tuple[PlannedDocument, ...]]
"""The streams, those whose root elements are known, and the documents."""


class Planning:
    """Gives the epochs of a trunk their plans; only the epoch at work changes it."""

    def __init__(
        self,
        folder: Location,
        evolution: Location,
        newest: PlanFile | None,
        settings: Settings,
        functions: Mapping[str, PythonFunction],
        default_shards: int,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Plans are saved in a folder, `evolution` has the logs of streams, `newest` is that of the newest epoch."""
        self._folder = folder
        self._evolution = evolution
        self._settings = settings
        self._functions = tuple(functions.items())
        self._shards = settings.shards or default_shards
        self.newest = newest.load() if newest else None
        """The plan of the newest epoch."""
        self._made: tuple[Workload, _Followed, PlanFile] | None = None
        """The plan of the last epoch, and the workload, streams and documents it was made for."""
        self._rooted: frozenset[str] = frozenset()
        """The streams whose root elements were known when it was made."""
        self.documents = DocumentCopies(folder, newest, warn)

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
        streams = tuple(
            KnownStream.of(source.counting(counts.get(name, 0)), forms[name]) for name, source in wanted.streams.items()
        )
        rooted = frozenset(name for name in wanted.streams if forms[name] is not None)
        documents = self.documents.look(wanted.documents)
        followed = streams, rooted, documents
        if self.newest is not None and last is not None:
            before = self.newest
            self.newest = joined(before, last, self._evolution, self._functions)
            if self.newest is not before:
                self.renew()
        if self._made is not None and self._made[0] is wanted and self._made[1] == followed:
            return self._made[2]
        file = PlanFile.save(self._next(epoch, wanted, streams, last, rooted, documents), self._folder)
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
            caps=lambda name: wanted.caps.get(name, settings.caps),
            timed=settings.timed,
            strands=partial(strands_for, settings.strands, self._shards),
            rooted=rooted,
            checked=self._rooted,
        )
        courses = tuple(wanted.courses.items())
        rest = documents, settings.finite, settings.sharing, settings.accents, courses
        return Plan(streams, subscriptions, settings.limits, following, self._shards, *rest)
