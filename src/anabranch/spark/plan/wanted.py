"""What a trunk is told, and what it tells: streams and subscriptions, epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.algebra.reactions.signature import Policy
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.sinks import Sink
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source


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
    epoch_bytes: int | None = None
    epoch_files: int | None = None
    """How much an epoch reads from now on; None for what the settings of the trunk say."""
    documents: Mapping[str, DocumentSource] = field(default_factory=dict)
    """The files behind `doc()`."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """What subscriptions do with accents that their answers cannot express, where it is not `accumulate`."""
    courses: Mapping[str, tuple[ProgressAxis, ...]] = field(default_factory=dict)
    """By stream, for streams that are sent to other peers: the paths whose values show its progress."""


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
    """Who hears of what happens, on the trunk's own threads: of epochs one after the other, of warnings at any time."""

    epoch: Callable[[Epoch], None] = lambda epoch: None
    warning: Callable[[str], None] = lambda message: None
