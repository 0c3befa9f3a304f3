"""What a trunk is told, and what it tells: settings, streams and subscriptions, epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.algebra.reactions.signature import Policy
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.checkpoint.retention import Keep
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.sinks import Sink
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source

EPOCH_BYTES = 16 << 20
"""How much an epoch reads unless told otherwise: a few seconds of work, so that a run shows how it gets on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a trunk works; none of it shows in an answer."""

    trigger_ms: int = 200
    keep: Keep = field(default_factory=Keep)
    limits: Limits = field(default_factory=Limits)
    finite: bool = False
    """The inputs are complete, to the last byte; otherwise a last line without a newline waits for it."""
    shards: int | None = None
    """How many tasks share the branches; None for as many as there are cores."""
    sharing: bool = True
    """Whether what subscriptions have in common is done once."""
    accents: bool = True
    """Whether accents are followed; otherwise they are bad (LAWS 4.5)."""
    timed: bool = False
    """Whether answers that only grow are told with their moments, for who asks when they grew."""
    strands: int | None = None
    """In how many strands a new query over updates is answered, if it can be; None for what suits the shards."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a trunk should do from its next epoch on."""

    streams: Mapping[str, Source]
    subscriptions: Mapping[str, str]
    """Queries by name, checked and printed."""
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    """Where answers go, by subscription."""
    dead_letters: Path | None = None
    late_items: Path | None = None
    epoch_bytes: int = EPOCH_BYTES
    epoch_files: int | None = None
    documents: Mapping[str, Path] = field(default_factory=dict)
    """The files behind `doc()`."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """What subscriptions do with accents that their answers cannot express, where it is not `accumulate`."""
    courses: Mapping[str, tuple[ProgressAxis, ...]] = field(default_factory=dict)
    """By stream, for those that are handed on: by what it is told how far they are (`spark/evolution/progress.py`)."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch that was committed."""

    manifest: Manifest
    plan: Plan
    metrics: Metrics
    cpu: float = 0.0
    """Seconds that the processes of its tasks have worked."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears of what happens; called on the trunk's own thread."""

    epoch: Callable[[Epoch], None] = lambda epoch: None
    warning: Callable[[str], None] = lambda message: None
