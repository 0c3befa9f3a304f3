"""The plan of an epoch: the streams, the subscriptions, the limits; `files.py` writes it to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from anabranch.algebra.reactions.signature import Policy
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.stream.limits import CostCaps, Limits
from anabranch.stream.path import per_second
from anabranch.stream.reading.source import KnownStream, Source

MOST_STRANDS = 1 << 10
"""The most strands of a query."""
_STRANDS = 1 << 60
"""A number above those of all subscriptions."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A query as registered; a changed one is another subscription under the same name."""

    id: int
    """Its number in the checkpoint, which is never reused."""
    name: str
    text: str
    first: int
    """The epoch it begins with."""
    kind: str = "items"
    """The kind of its query, decided when it was registered (`kinds/`)."""
    streams: tuple[str, ...] = ()
    """The streams that it reads."""
    late: tuple[str, ...] = ()
    """The streams of which an element was committed before it began (LAWS 3.6)."""
    joined: int | None = None
    """The number of an earlier subscription whose branch serves this one too; None for a branch of its own."""
    family: str = ""
    """The family that its branch can serve (`membership.py`); empty for none."""
    policy: Policy = "accumulate"
    """What it does with accents that its answer cannot express (LAWS 4.7)."""
    aborted: str = ""
    """Why it has ended, by an accent (LAWS 4.6) or because it took too much (LAWS 2.9); its answer stays."""
    shows: bool = False
    """Whether its answer is the update stream of a display (LAWS 5.7)."""
    edited: tuple[str, ...] = ()
    """The streams of updates that it reads beside items, where it has results that stand (LAWS 5.5)."""
    timed: bool = False
    """Whether its answer, which only grows, is recorded with its moments (`branch/timeline.py`)."""
    strands: int = 0
    """The number of its strands, where it has several (`branch/display/strands.py`)."""
    most_held: int | None = None
    most_overruns: int | None = None
    """What it may take (LAWS 2.9)."""

    @property
    def caps(self) -> CostCaps:
        """What it may take."""
        return CostCaps(self.most_held, self.most_overruns)

    begins: int | None = None
    """The epoch with which its branch began, where it joined one that was there before it (`joining.py`)."""
    begins_late: tuple[str, ...] = ()
    """The streams that had begun before that branch did."""

    @property
    def opened(self) -> int:
        """The epoch with which its branch began."""
        return self.first if self.begins is None else self.begins

    @property
    def missed(self) -> tuple[str, ...]:
        """The streams of which its branch did not see the beginning."""
        return self.late if self.begins is None else self.begins_late

    @property
    def branch(self) -> int:
        """The number of its branch, if it has one."""
        return self.id if self.joined is None else self.joined

    @property
    def branches(self) -> tuple[int, ...]:
        """The numbers of its branch and strands."""
        number = self.branch
        return (number, *(_STRANDS + number * MOST_STRANDS + strand for strand in range(self.strands)))


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """A document behind `doc()` as an epoch sees it, by the digest of its bytes (`documents.py` has the copies)."""

    name: str
    digest: str
    root: str = "root"
    item: str = "item"
    """The names of the root and the records where it is JSON."""


@dataclass(frozen=True)
class Plan:
    """The plan of an epoch; it stays the same for many epochs, and so do values cached on it."""

    streams: tuple[KnownStream, ...]
    subscriptions: tuple[Registration, ...]
    limits: Limits
    next_id: int
    """The number of the next subscription."""
    shards: int = 1
    """The number of tasks that share the branches; another number next time changes no answer."""
    documents: tuple[PlannedDocument, ...] = ()
    """The documents behind `doc()`."""
    finite: bool = False
    """Whether the streams have an end."""
    sharing: bool = True
    """Whether common work of subscriptions is done once; no answer depends on it (LAWS 3.7)."""
    accents: bool = True
    """Whether accents are followed; otherwise they are bad (LAWS 4.5)."""
    courses: tuple[tuple[str, tuple[ProgressAxis, ...]], ...] = ()
    """By stream, for streams that are sent to other peers: the paths whose values show its progress."""

    @cached_property
    def by_name(self) -> Mapping[str, Registration]:
        """The subscriptions."""
        return {each.name: each for each in self.subscriptions}

    @cached_property
    def by_id(self) -> Mapping[int, Registration]:
        """The subscriptions."""
        return {each.id: each for each in self.subscriptions}

    @cached_property
    def ended(self) -> Mapping[int, str]:
        """By number of a subscription that has ended: why."""
        return {each.id: each.aborted for each in self.subscriptions if each.aborted}

    @cached_property
    def served(self) -> Mapping[int, tuple[int, ...]]:
        """By number of a branch or a strand: the subscriptions it serves."""
        found: dict[int, tuple[int, ...]] = {}
        for each in self.subscriptions:
            for number in each.branches:
                found[number] = (*found.get(number, ()), each.id)
        return found

    def stream(self, name: str) -> KnownStream:
        """A stream by name."""
        return next(each for each in self.streams if each.name == name)

    def axes(self, source: Source) -> tuple[ProgressAxis, ...] | None:
        """The paths whose values show the progress of a stream (`spark/evolution/progress.py`); None if not needed.

        Heartbeats that follow the times of items need these times.
        """
        found = dict(self.courses).get(source.name)
        if found is None and source.beats_by_time and source.time is not None:
            return (ProgressAxis(f"*/{source.time}", per_second=per_second(source.time)),)
        return found
