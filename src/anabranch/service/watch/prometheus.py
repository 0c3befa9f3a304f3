"""Metrics for Prometheus: a collector that reads what is known anyway, whenever it is asked.

There are series by stream, source partition, shard, kind of sink, phase, kind of subscription and class of dead letter,
and never one by subscription: a hundred thousand of them add none.
`FAMILIES` is the whole list, which docs/metrics.md explains and the dashboard of Grafana is drawn from; tests keep all
three alike.
Counters begin with the run, as Prometheus expects of a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from anabranch.service.watch.activity import BUCKETS, Durations, StreamTotals
from anabranch.service.watch.answered import label_of
from anabranch.service.watch.lag import Lag
from anabranch.service.watch.lateness import What
from anabranch.service.watch.site_watch import SiteWatch
from anabranch.site_work import RunState, SiteAtWork
from anabranch.spark.plan.epoch_plan import Plan

Type: TypeAlias = Literal["counter", "gauge", "histogram"]
Samples: TypeAlias = Iterable[tuple[tuple[str, ...], float]]
"""Values by their labels."""
_STATES: tuple[RunState, ...] = ("starting", "ready", "stopping", "failed")


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name without the suffix of counters, its type, its labels and what it says."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str

    @property
    def shown(self) -> str:
        """Its name as Prometheus has it."""
        return f"{self.name}_total" if self.type == "counter" else self.name


FAMILIES = {
    each.name.removeprefix("anabranch_"): each
    for each in (
        Family("anabranch_run_state", "gauge", ("state",), "1 for the state that the run is in, 0 for others"),
        Family("anabranch_epoch", "gauge", (), "The number of the newest committed epoch, -1 before the first"),
        Family("anabranch_epochs", "counter", (), "Committed epochs"),
        Family("anabranch_epoch_began_seconds", "gauge", (), "When the newest epoch began, in seconds since 1970"),
        Family("anabranch_epoch_phase_seconds", "histogram", ("phase",), "The time that a phase of an epoch takes"),
        Family("anabranch_epoch_seconds", "histogram", (), "The time from an epoch's begin to its delivery's end"),
        Family("anabranch_task_cpu_seconds", "counter", (), "Processor time of tasks"),
        Family("anabranch_items", "counter", (), "Items that were read, of all streams"),
        Family("anabranch_read_bytes", "counter", (), "Bytes that were read, of all streams"),
        Family(
            "anabranch_stream_items",
            "counter",
            ("stream", "way"),
            "Items that were read, by template or scanner, which are the fast path, or by the parser",
        ),
        Family("anabranch_stream_read_bytes", "counter", ("stream",), "Bytes that items were read from"),
        Family(
            "anabranch_stream_unclear",
            "counter",
            ("stream",),
            "How often columns could not decide an item for a subscription, and the law did",
        ),
        Family(
            "anabranch_stream_fast_share_ratio",
            "gauge",
            ("stream",),
            "The share of items on the fast path, in the newest sixty epochs",
        ),
        Family(
            "anabranch_stream_subscriptions",
            "gauge",
            ("stream", "way"),
            "Subscriptions that look at one item at a time, answered in columns or by the law",
        ),
        Family("anabranch_source_lag_bytes", "gauge", ("stream", "partition"), "Bytes that are there and not read"),
        Family(
            "anabranch_source_lag_offsets", "gauge", ("stream", "partition"), "Messages that are there and not read"
        ),
        Family("anabranch_source_lag_seconds", "gauge", ("stream", "partition"), "How far reading is behind"),
        Family(
            "anabranch_waiting_items",
            "gauge",
            ("stream", "partition"),
            "Items of a partition that wait in branches for another input",
        ),
        Family("anabranch_subscriptions", "gauge", ("kind",), "Subscriptions at work, by kind"),
        Family("anabranch_subscriptions_ended", "gauge", (), "Subscriptions that an accent has ended"),
        Family("anabranch_answers", "counter", ("kind",), "Answers, by kind of their subscriptions"),
        Family("anabranch_dead_letters", "counter", ("reason",), "Items and windows set aside, by class of the reason"),
        Family("anabranch_late_items", "counter", (), "Items that came too late for time windows"),
        Family("anabranch_state_bytes", "gauge", ("shard",), "The bytes that branches remember"),
        Family("anabranch_state_held", "gauge", ("shard",), "The items and panes that branches remember"),
        Family("anabranch_state_branches", "gauge", ("shard",), "Branches with a state"),
        Family("anabranch_sinks", "gauge", ("kind",), "Sinks"),
        Family("anabranch_sink_epochs_behind", "gauge", ("kind",), "Committed epochs that a sink has not got"),
        Family(
            "anabranch_late_causes", "gauge", ("what",), "What makes the run late, as in the page's 'why is it late'"
        ),
        Family("anabranch_event_streams", "gauge", (), "Event streams that clients hold"),
        Family("anabranch_http_requests", "counter", ("status",), "Answered requests, by class of their status"),
        Family("anabranch_http_request_seconds", "counter", (), "The time that requests took, event streams included"),
        Family("anabranch_log_events", "counter", ("event",), "Lines of the log that are neither epochs nor requests"),
    )
}
"""By name without the prefix: all metrics."""


class RunCollector(Collector):
    """Reads the metrics of a run."""

    def __init__(self, work: SiteAtWork, watch: SiteWatch, event_streams: Callable[[], Mapping[str, int]]) -> None:
        self._work = work
        self._watch = watch
        self._event_streams = event_streams
        self._kinds: tuple[Plan | None, Counter[str], int] = None, Counter(), 0
        """Of the last plan: subscriptions by kind, and how many have ended."""

    def collect(self) -> Iterator[Metric]:
        """All metrics now."""
        for name, samples in self._counted():
            family = FAMILIES[name]
            kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
            metric = kind(family.name, family.help, labels=family.labels)
            for labels, value in samples:
                metric.add_metric(labels, value)
            yield metric
        durations = self._watch.activity.durations()
        yield _histogram("epoch_phase_seconds", {(name,): each for name, each in durations.items() if name != "total"})
        yield _histogram("epoch_seconds", {(): durations["total"]})

    def _counted(self) -> Iterator[tuple[str, Samples]]:
        figures, work = self._watch.activity.figures(), self._work
        totals, streams = figures.totals, figures.streams
        yield "run_state", [((each,), float(each == work.state)) for each in _STATES]
        yield "epoch", [((), work.trunk.last if work.trunk else -1)]
        yield "epochs", [((), totals.epochs)]
        yield "epoch_began_seconds", [((), each.began) for each in figures.epochs[-1:]]
        yield "task_cpu_seconds", [((), totals.cpu)]
        yield "items", [((), totals.items)]
        yield "read_bytes", [((), totals.bytes)]
        yield "stream_items", [(labels, value) for name, each in streams.items() for labels, value in _ways(name, each)]
        yield "stream_read_bytes", [((name,), each.bytes) for name, each in streams.items()]
        yield "stream_unclear", [((name,), each.unclear) for name, each in streams.items()]
        lately = ((name, figures.lately(name).fast_share) for name in streams)
        yield "stream_fast_share_ratio", [((name,), share) for name, share in lately if share is not None]
        both = [((name, "columns"), each.in_columns) for name, each in streams.items()]
        yield "stream_subscriptions", both + [((name, "law"), each.by_law) for name, each in streams.items()]
        yield from self._lag()
        waiting = figures.epochs[-1].waiting if figures.epochs else {}
        yield "waiting_items", [((*_key(each),), count) for each, count in waiting.items()]
        kinds, ended = self._subscriptions()
        yield "subscriptions", [((kind,), count) for kind, count in kinds.items()]
        yield "subscriptions_ended", [((), ended)]
        yield "answers", _counts(self._watch.activity.answers_by_kind())
        yield "dead_letters", _counts(self._watch.activity.letters_by_reason())
        yield "late_items", [((), totals.late_items)]
        yield from self._rest()

    def _lag(self) -> Iterator[tuple[str, Samples]]:
        found = {
            (stream, partition): lag
            for stream, each in self._watch.look.lags.items()
            for partition, lag in each.partitions.items()
        }
        parts: tuple[tuple[str, Callable[[Lag], float | None]], ...] = (
            ("bytes", lambda lag: lag.bytes),
            ("offsets", lambda lag: lag.offsets),
            ("seconds", lambda lag: lag.seconds),
        )
        for name, of in parts:
            values = ((key, of(lag)) for key, lag in found.items())
            yield f"source_lag_{name}", [(key, value) for key, value in values if value is not None]

    def _rest(self) -> Iterator[tuple[str, Samples]]:
        watch = self._watch
        shards = watch.holdings(fresh=False).shards
        yield "state_bytes", [((str(each.shard),), each.bytes) for each in shards]
        yield "state_held", [((str(each.shard),), each.held) for each in shards]
        yield "state_branches", [((str(each.shard),), each.branches) for each in shards]
        sinks = watch.sinks()
        yield "sinks", [((kind,), count) for kind, (count, _) in sinks.items()]
        yield "sink_epochs_behind", [((kind,), behind) for kind, (_, behind) in sinks.items()]
        causes = Counter(each.what for each in watch.look.causes)
        yield "late_causes", [((each,), causes[each]) for each in get_args(What)]
        yield "event_streams", [((), sum(self._event_streams().values()))]
        yield "http_requests", _counts(dict(watch.requests))
        yield "http_request_seconds", [((), watch.request_seconds)]
        yield "log_events", _counts(watch.activity.logged())

    def _subscriptions(self) -> tuple[Counter[str], int]:
        """By kind, for those at work, and how many have ended; a plan is counted once."""
        plan = self._work.trunk.plan if self._work.trunk else None
        if plan is not None and plan is not self._kinds[0]:
            kinds = Counter(label_of(each) for each in plan.subscriptions if not each.aborted)
            self._kinds = plan, kinds, len(plan.subscriptions) - kinds.total()
        return self._kinds[1:]


class RunMetrics:
    """The metrics of a run as text."""

    def __init__(self, work: SiteAtWork, watch: SiteWatch, event_streams: Callable[[], Mapping[str, int]]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(RunCollector(work, watch, event_streams))
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """All metrics now, as Prometheus reads them."""
        return generate_latest(self._registry)


def _histogram(name: str, durations: Mapping[tuple[str, ...], Durations]) -> Metric:
    family = FAMILIES[name]
    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    for labels, each in durations.items():
        sums = [sum(each.counts[: place + 1]) for place in range(len(each.counts))]
        buckets = [*map(str, BUCKETS), "+Inf"]
        metric.add_metric(labels, list(zip(buckets, map(float, sums), strict=True)), each.seconds)
    return metric


def _ways(name: str, totals: StreamTotals) -> Iterator[tuple[tuple[str, str], float]]:
    yield (name, "template"), totals.by_template
    yield (name, "scanner"), totals.by_scanner
    yield (name, "parser"), totals.by_parser


def _counts(found: Mapping[str, int]) -> Samples:
    return [((label,), count) for label, count in found.items()]


def _key(partition: str) -> tuple[str, str]:
    """The stream and the number in the key of a partition."""
    stream, _, number = partition.rpartition("/")
    return stream, number
