"""What a run has done since its service began: the newest epochs, totals, rates, answers by subscription, the log.

The trunk's thread only hands an epoch over (`take`), which costs the same with any number of streams and subscriptions.
It is counted by whoever asks next: the thread that tells clients of epochs, or else the one that looks every second.
Should nobody keep up, a thousand epochs wait at most; then the trunk counts them itself, so no number is ever lost.

Memory is bounded: sixty epochs, fifty events, some numbers for each stream, and two for each subscription that runs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from threading import Lock
from time import time
from typing import Any, TypeAlias

from anabranch.errors import AnabranchError
from anabranch.service.watch.answered import AnswerTotals, Numbers
from anabranch.service.watch.rates import SlidingRates
from anabranch.service.watch.reasons import ReasonCounts
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.epoch.metrics import Metrics, StreamNumbers
from anabranch.spark.plan.wanted import Epoch
from anabranch.stream.elements import DeadLetter
from anabranch.visible import visible

MOST_EPOCHS = 60
MOST_EVENTS = 50
_MOST_PENDING = 1_000
_MOST_LETTERS = 2_000
"""The dead letters of an epoch that are read for their reasons."""
_LONGEST_MESSAGE = 1_000
_MOMENT = 1 / 60
_OWN_FIELDS = ("time", "event", "message", "hint")

Buckets: TypeAlias = tuple[float, ...]
BUCKETS: Buckets = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds, by which phases are counted."""
PHASES = ("plan", "tasks", "publish", "deliver")


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of an epoch, from its begin on."""

    name: str
    start_ms: int
    ms: int


def phases_of(metrics: Metrics) -> tuple[Phase, ...]:
    """The phases of an epoch, in order; delivery may wait for that of the epoch before."""
    tasks, publish = metrics.plan_ms, metrics.plan_ms + metrics.job_ms
    return (
        Phase("plan", 0, metrics.plan_ms),
        Phase("tasks", tasks, metrics.job_ms),
        Phase("publish", publish, metrics.publish_ms),
        Phase("deliver", metrics.deliver_start_ms, metrics.deliver_ms),
    )


@dataclass(frozen=True, slots=True)
class LoggedMessage:
    """A line of the log that is neither an epoch nor a request."""

    time: str
    event: str
    message: str


@dataclass(slots=True)
class Durations:
    """How often a phase has taken how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    """By bucket, and behind all of them."""
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[next((at for at, most in enumerate(BUCKETS) if seconds <= most), len(BUCKETS))] += 1
        self.seconds += seconds


@dataclass(frozen=True, slots=True)
class StreamTotals:
    """What was read of a stream, and how; of subscriptions, as in the newest epoch that has read it."""

    items: int = 0
    bytes: int = 0
    by_template: int = 0
    by_scanner: int = 0
    by_parser: int = 0
    unclear: int = 0
    in_columns: int = 0
    by_law: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    def plus(self, numbers: StreamNumbers) -> StreamTotals:
        """With those of an epoch."""
        return StreamTotals(
            self.items + numbers.items,
            self.bytes + numbers.bytes,
            self.by_template + numbers.by_template,
            self.by_scanner + numbers.by_scanner,
            self.by_parser + numbers.by_parser,
            self.unclear + numbers.unclear,
            numbers.in_columns,
            numbers.by_law,
            numbers.reasons,
        )

    @property
    def fast_share(self) -> float | None:
        """The share of items that were read in columns; None before the first."""
        return (self.by_template + self.by_scanner) / self.items if self.items else None


NOTHING_READ = StreamTotals()


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums since the service began."""

    epochs: int = 0
    items: int = 0
    bytes: int = 0
    answers: int = 0
    dead_letters: int = 0
    late_items: int = 0
    cpu: float = 0.0
    """Processor seconds of tasks."""

    def plus(self, epoch: Epoch) -> Totals:
        """With those of an epoch."""
        found = epoch.metrics
        return Totals(
            self.epochs + 1,
            self.items + found.items,
            self.bytes + found.bytes,
            self.answers + found.matched,
            self.dead_letters + found.dead_letters,
            self.late_items + found.late_items,
            self.cpu + epoch.cpu,
        )


@dataclass(frozen=True)
class Figures:
    """The activity at a moment; nothing in it changes any more."""

    at: float
    epochs: tuple[Metrics, ...]
    """The newest, oldest first."""
    totals: Totals
    streams: Mapping[str, StreamTotals]
    rates: Mapping[str, float]
    """By key of `rate_key`, for those that are not zero."""
    events: tuple[LoggedMessage, ...]
    """The newest lines of the log, oldest first."""

    def rate(self, what: str, stream: str | None = None) -> float:
        """The items, bytes or answers per second, of all streams or of one."""
        return self.rates.get(rate_key(what, stream), 0.0)

    def items(self, stream: str) -> int:
        """The items of a stream that were read."""
        return self.streams[stream].items if stream in self.streams else 0

    def lately(self, stream: str) -> StreamTotals:
        """What the newest epochs have read of a stream."""
        return self._lately.get(stream, NOTHING_READ)

    @cached_property
    def _lately(self) -> Mapping[str, StreamTotals]:
        found: dict[str, StreamTotals] = {}
        for each in self.epochs:
            for stream, numbers in each.streams.items():
                found[stream] = found.get(stream, NOTHING_READ).plus(numbers)
        return found


def rate_key(what: str, stream: str | None = None) -> str:
    """The key of a rate."""
    return what if stream is None else f"{what} {stream}"


class Activity:
    """The numbers of a run; any thread may call it."""

    def __init__(self, log: AnswerLog, clock: Callable[[], float] = time) -> None:
        self._log = log
        self._clock = clock
        self._pending: deque[tuple[Epoch, float]] = deque()
        """Epochs that are not counted yet, with the moment of their commit."""
        self._counting = Lock()
        """Held by whoever counts, or looks at what follows."""
        self._newest: Epoch | None = None
        self._epochs: deque[Metrics] = deque(maxlen=MOST_EPOCHS)
        self._totals = Totals()
        self._streams: dict[str, StreamTotals] = {}
        self._rates = SlidingRates(clock())
        self._durations = {name: Durations() for name in (*PHASES, "total")}
        self._reasons = ReasonCounts()
        self._answers = AnswerTotals()
        self._events: deque[LoggedMessage] = deque(maxlen=MOST_EVENTS)
        self._kinds: Counter[str] = Counter()
        self._shown: Figures | None = None
        """What was told last."""

    # --- what comes -----------------------------------------------------------------------------------------

    def take(self, epoch: Epoch) -> None:
        """Take a committed epoch, on the trunk's thread."""
        self._pending.append((epoch, self._clock()))
        if len(self._pending) > _MOST_PENDING:
            self._catch_up()

    def event(self, fields: Mapping[str, Any]) -> None:
        """Take a line of the log, on any thread."""
        kind = str(fields["event"])
        others = {key: value for key, value in fields.items() if key not in _OWN_FIELDS and value}
        rest = ", ".join(f"{key} {value}" for key, value in others.items())
        said = ": ".join(str(fields[key]) for key in ("message", "hint") if fields.get(key))
        message = f"{said} ({rest})" if said and rest else said or rest
        cut = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
        told = LoggedMessage(str(fields["time"]), kind, visible(cut))
        with self._counting:
            self._events.append(told)
            self._kinds[kind] += 1

    def _catch_up(self) -> None:
        with self._counting:
            self._count_all()

    def _count_all(self) -> None:
        while self._pending:
            self._count(*self._pending.popleft())

    def _count(self, epoch: Epoch, at: float) -> None:
        metrics = epoch.metrics
        self._newest = epoch
        self._epochs.append(metrics)
        self._totals = self._totals.plus(epoch)
        amounts = {"items": float(metrics.items), "bytes": float(metrics.bytes), "answers": float(metrics.matched)}
        for name, numbers in metrics.streams.items():
            self._streams[name] = self._streams.get(name, NOTHING_READ).plus(numbers)
            amounts[rate_key("items", name)] = numbers.items
            amounts[rate_key("bytes", name)] = numbers.bytes
        if len(self._streams) > len(epoch.plan.streams):
            there = {each.name for each in epoch.plan.streams}
            self._streams = {name: each for name, each in self._streams.items() if name in there}
        self._rates.add(metrics.began, at, amounts)
        for phase in phases_of(metrics):
            self._durations[phase.name].add(phase.ms / 1_000)
        self._durations["total"].add(metrics.total_ms / 1_000)
        self._reasons.add(self._letters(epoch), metrics.dead_letters)
        self._answers.add(epoch.plan, epoch.answers, at)

    def _letters(self, epoch: Epoch) -> Iterator[DeadLetter]:
        """Some of the dead letters of an epoch; they may be gone where many epochs have waited."""
        if epoch.metrics.dead_letters:
            try:
                yield from islice(self._log.buried(epoch.manifest), _MOST_LETTERS)
            except AnabranchError:
                return

    # --- what is known --------------------------------------------------------------------------------------

    def newest(self) -> Epoch | None:
        """The newest epoch of this run, None before its first."""
        with self._counting:
            self._count_all()
            return self._newest

    def figures(self) -> Figures:
        """All of it now, or a moment ago where no epoch has come since."""
        with self._counting:
            now, is_new = self._clock(), bool(self._pending)
            self._count_all()
            if self._shown is not None and not is_new and 0 <= now - self._shown.at < _MOMENT:
                return self._shown
            self._shown = Figures(
                now,
                tuple(self._epochs),
                self._totals,
                dict(self._streams),
                self._rates.now(now),
                tuple(self._events),
            )
            return self._shown

    def durations(self) -> Mapping[str, Durations]:
        """By phase, and `total` for whole epochs: how long they took."""
        with self._counting:
            self._count_all()
            return {name: replace(each, counts=list(each.counts)) for name, each in self._durations.items()}

    def letters_by_reason(self) -> Mapping[str, int]:
        """The number of dead letters by class of their reason."""
        with self._counting:
            self._count_all()
            return dict(self._reasons.counts)

    def answers_by_kind(self) -> Mapping[str, int]:
        """The number of answers by kind of subscription."""
        with self._counting:
            self._count_all()
            return dict(self._answers.by_kind)

    def answers_per_second(self, numbers: Numbers, codes: Numbers, count: int) -> list[float]:
        """The answers per second of so many groups, given by a code for each of some subscriptions' numbers."""
        with self._counting:
            self._count_all()
            found: list[float] = self._answers.per_second(numbers, codes, count, self._clock()).tolist()
            return found

    def logged(self) -> Mapping[str, int]:
        """By event: how often it was logged."""
        with self._counting:
            return dict(self._kinds)
