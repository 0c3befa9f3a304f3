"""Traces of epochs by OpenTelemetry, where a site asks for them: one trace for each epoch, with a span for each phase.

They go to the collector that the variables of OpenTelemetry name (`OTEL_EXPORTER_OTLP_ENDPOINT`), by OTLP over HTTP.
An epoch is told when it is committed, so its spans are made then, from the times that were taken anyway.
They wait in a queue, from which a thread sends them; where the collector is slow or away the queue is full at some
time, spans are dropped, and no epoch waits.
The log tells once a minute at most that they cannot be sent.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic

from anabranch.errors import UsageError
from anabranch.run_control import Log
from anabranch.service.watch.activity import phases_of
from anabranch.spark.plan.wanted import Epoch

_SEND_SECONDS = 5.0
"""How long the collector has for an answer, and a run that ends for what is not sent yet."""
_TOLD_SECONDS = 60.0


@contextmanager
def epoch_traces(site: str, log: Log) -> Iterator[Callable[[Epoch], None]]:
    """Gives whom to tell of the epochs of a site; at the end, what is not sent yet is sent."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import Tracer, set_span_in_context
    except ImportError:
        hint = "pip install 'anabranch[tracing]', or leave out 'traces'"
        raise UsageError("'traces' needs OpenTelemetry, which is not installed", hint=hint) from None

    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "anabranch"), "anabranch.site": site}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_SEND_SECONDS)))
    tracer: Tracer = provider.get_tracer("anabranch.epochs")

    def trace(epoch: Epoch) -> None:
        metrics = epoch.metrics
        begin = round(metrics.began * 1e9)
        whole = tracer.start_span(
            "epoch",
            start_time=begin,
            attributes={
                "anabranch.epoch": metrics.epoch,
                "anabranch.run": metrics.run,
                "anabranch.items": metrics.items,
                "anabranch.bytes": metrics.bytes,
                "anabranch.answers": metrics.matched,
                "anabranch.dead_letters": metrics.dead_letters,
                "anabranch.late_items": metrics.late_items,
                "anabranch.subscriptions": metrics.subscriptions,
                "anabranch.held": metrics.held,
                "anabranch.cpu_seconds": epoch.cpu,
                "anabranch.streams": sorted(metrics.streams),
            },
        )
        within = set_span_in_context(whole)
        for phase in phases_of(metrics):
            start = begin + phase.start_ms * 1_000_000
            tracer.start_span(phase.name, within, start_time=start).end(start + phase.ms * 1_000_000)
        whole.end(begin + metrics.total_ms * 1_000_000)

    told = _ToldErrors(log)
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(told)
    propagated, logger.propagate = logger.propagate, False
    try:
        yield trace
    finally:
        ending = Thread(target=provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(_SEND_SECONDS)
        logger.removeHandler(told)
        logger.propagate = propagated


class _ToldErrors(logging.Handler):
    """What OpenTelemetry would print, in the log of the run, and not too often."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._next = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if monotonic() >= self._next:
            self._next = monotonic() + _TOLD_SECONDS
            self._log.event("warning", message=f"traces cannot be sent: {record.getMessage()}")
