"""What an epoch runs with: the streams, the subscriptions, the limits; `files.py` has the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.sets import Domains
from anabranch.algebra.reactions.signature import Policy
from anabranch.predicate import Finite
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.spark.intake.order import Form
from anabranch.stream.admission import Admission
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import implied_root, parse_root
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from anabranch.stream.serialize import serialize


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A stream as tasks need it: how it is written, what its root and items are called."""

    stream: str
    format: Format
    root: str
    """The stream's root element as text, without the items."""
    item: str
    declared: Schema | None
    """Its schema, if it has one."""
    partitions: int = 1
    time: str | None = None
    """The path of its items' time (LAWS 1.3)."""
    slack: str = "0"
    origin: str = "0"
    strict: bool = False
    """Whether items must keep to the schema."""
    domains: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """By path, the only values that items have there."""
    updates: bool = False
    """Whether what has passed may be edited (LAWS 5.1)."""
    retain: str | None = None
    """For how many seconds what has not changed stays in the document of a stream of updates (LAWS 3.6)."""
    axes: tuple[ProgressAxis, ...] | None = None
    """By what it is told how far the stream is, for whoever hands it on; None where nobody does
    (`spark/evolution/progress.py`)."""
    evolves: bool = True
    """Whether it may have accents."""
    beats: bool = False
    """Whether it is told how far its items are by their time, for the heartbeats that are sent into it."""

    @staticmethod
    def of(source: Source, form: Form | None, axes: tuple[ProgressAxis, ...] | None = None) -> StreamPlan:
        """A stream as it was registered and, once it has bytes, as it is written."""
        beats = source.heartbeat is not None and source.time is not None
        if beats and axes is None:
            axes = (ProgressAxis(f"*/{source.time}"),)
        known = form or Form("lines", serialize(implied_root(source.implied_root)))
        return StreamPlan(
            source.name,
            known.format,
            known.root,
            source.item or "item",
            source.schema,
            len(source.partitions),
            None if source.time is None else str(source.time),
            str(source.slack),
            str(source.origin),
            source.strict,
            tuple((str(path), values) for path, values in source.domains),
            source.updates,
            None if source.retain is None else str(source.retain),
            axes,
            source.evolves,
            beats,
        )

    @property
    def schema(self) -> Schema | None:
        """The schema that items must keep to; None unless the stream is strict."""
        return self.declared if self.strict else None

    def admission(self, *, accents: bool = True) -> Admission:
        """Which elements it takes; `accents` says whether the engine follows them."""
        merged = self.time is not None or self.partitions == 1
        return Admission.of(updates=self.updates, evolves=self.evolves, merged=merged, accents=accents)

    @property
    def promises(self) -> Domains:
        """What is promised of paths, by declared domains."""
        return {Path.parse(path): Finite(frozenset(texts)) for path, texts in self.domains}

    @property
    def namespaces(self) -> Mapping[str, str]:
        """The prefixes that the root declares."""
        return declared_by(self.root)

    def evolution(self) -> Evolution:
        """The evolution of a partition at its beginning."""
        return Evolution(None if self.declared is None else self.declared.declares, self.promises)

    def evolutions(self) -> list[Evolution]:
        """Those of all partitions, at their beginnings."""
        return [self.evolution() for _ in range(self.partitions)]


@lru_cache
def declared_by(root: str) -> Mapping[str, str]:
    """The prefixes that a root declares; it is read once, and not for each subscription."""
    return parse_root(root.encode()).namespaces


@dataclass(frozen=True, slots=True)
class Registration:
    """A query as registered; a changed one is another subscription under the same name."""

    id: int
    """Its number in the checkpoint, which no other ever has."""
    name: str
    text: str
    first: int
    """The epoch it begins with."""
    kind: str = "items"
    """What kind of query it is, decided when it was registered (`kinds/`)."""
    streams: tuple[str, ...] = ()
    """Those that it reads."""
    late: tuple[str, ...] = ()
    """The streams of which an element was committed before it began (LAWS 3.6)."""
    joined: int | None = None
    """The number of an earlier subscription whose branch serves this one too; None for a branch of its own."""
    family: str = ""
    """Whom its branch can serve too (`membership.py`); empty for nobody."""
    policy: Policy = "accumulate"
    """What it does with accents that its answer cannot express (LAWS 4.7)."""
    aborted: str = ""
    """Why it has ended, where an accent ended it (LAWS 4.6); its answer stays."""
    shows: bool = False
    """Whether its answer is the update stream of a display (LAWS 5.7)."""
    edited: tuple[str, ...] = ()
    """The streams of updates that it reads beside items, where it has results that stand (LAWS 5.5)."""
    timed: bool = False
    """Whether its answer, which only grows, is told with its moments (`branch/timeline.py`)."""
    strands: int = 0
    """In how many strands it is answered, where it is answered in several (`branch/display/strands.py`)."""

    @property
    def branch(self) -> int:
        """The number of the branch that serves it, if it is one that remembers."""
        return self.id if self.joined is None else self.joined


@dataclass(frozen=True, slots=True)
class Plan:
    """What an epoch runs with."""

    streams: tuple[StreamPlan, ...]
    subscriptions: tuple[Registration, ...]
    limits: Limits
    next_id: int
    """The number that the next subscription gets."""
    shards: int = 1
    """How many tasks share the branches; another number next time changes no answer."""
    documents: tuple[tuple[str, str], ...] = ()
    """The files behind `doc()`, by name."""
    finite: bool = False
    """Whether the streams have an end."""
    sharing: bool = True
    """Whether what subscriptions have in common is done once; no answer depends on it (LAWS 3.7)."""
    accents: bool = True
    """Whether accents are followed; otherwise they are bad (LAWS 4.5)."""
