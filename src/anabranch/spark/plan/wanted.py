"""The workload of a trunk, and what it reports: epochs and warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from anabranch.algebra.reactions.signature import Policy
from anabranch.spark.answers.segments import AnswerCounts
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.sinks import Sink
from anabranch.storage import Where
from anabranch.stream.limits import CostCaps
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source


@dataclass(frozen=True, slots=True)
class Workload:
    """What a trunk should do from its next epoch on."""

    streams: Mapping[str, Source]
    subscriptions: Mapping[str, str]
    """Queries by name, checked and printed."""
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    """By subscription: its sink."""
    dead_letters: Where | None = None
    late_items: Where | None = None
    epoch_bytes: int | None = None
    epoch_files: int | None = None
    """The size of epochs from now on; None for the trunk's settings."""
    documents: Mapping[str, DocumentSource] = field(default_factory=dict)
    """The files behind `doc()`."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """By subscription: what it does with accents that its answer cannot express, where it is not `accumulate`."""
    caps: Mapping[str, CostCaps] = field(default_factory=dict)
    """By subscription: what it may take (LAWS 2.9), where it is not what the settings say."""
    courses: Mapping[str, tuple[ProgressAxis, ...]] = field(default_factory=dict)
    """By stream, for streams that are sent to other peers: the paths whose values show its progress."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """A committed epoch."""

    manifest: Manifest
    plan: Plan
    metrics: Metrics
    cpu: float = 0.0
    """Processor seconds of its tasks."""
    answers: AnswerCounts | None = field(default=None, compare=False)
    """How many answers each subscription got."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks on the trunk's own threads: of epochs in order, of warnings at any time."""

    epoch: Callable[[Epoch], None] = lambda epoch: None
    warning: Callable[[str], None] = lambda message: None
