"""Traces of epochs: what a collector of OpenTelemetry receives, and that nobody waits for one that does not answer."""

from __future__ import annotations

import gzip
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from anabranch.errors import UsageError
from anabranch.running import run
from service.sites import ENGINE, LINES, ServedSite, served_site, wait_until

QUERY = {"all": 'for $p in stream("s")/root/p return $p/v'}
TRACED = ENGINE + "traces = true\n" + LINES


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector on this machine: its address, and what it has received."""
    received: list[ExportTraceServiceRequest] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            assert self.path == "/v1/traces"
            received.append(ExportTraceServiceRequest.FromString(data))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = Thread(target=server.serve_forever, name="collector")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def feed(site: ServedSite, epochs: int) -> None:
    """Let an epoch after the other come."""
    for count in range(epochs):
        site.add(f"<p><v>{count}</v></p>\n")
        read(site, count + 1)


def read(site: ServedSite, count: int) -> None:
    """Wait until so many items were read."""
    wait_until(lambda: site.get("/api/now")["totals"]["items"] >= count)


def logged(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [each for each in lines if each["event"] == event]


def test_each_epoch_is_a_trace_with_its_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans have the times and numbers that the log tells of the epoch, and all were sent when the run has ended."""
    with collector() as (address, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with served_site(tmp_path, TRACED, QUERY) as site:
            feed(site, 3)
    told = logged(tmp_path, "epoch")
    assert len(told) == 3
    spans = [
        ({each.key: each.value.string_value for each in sent.resource.attributes}, span)
        for request in received
        for sent in request.resource_spans
        for scope in sent.scope_spans
        for span in scope.spans
    ]
    assert {resource["service.name"] for resource, _ in spans} == {"anabranch"}
    assert {resource["anabranch.site"] for resource, _ in spans} == {"SITE.toml"}
    traces: dict[bytes, list[Any]] = {}
    for _, span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    assert len(traces) == 3
    for line, found in zip(told, sorted(traces.values(), key=lambda each: each[0].start_time_unix_nano), strict=True):
        (whole,) = (each for each in found if not each.parent_span_id)
        phases = {each.name: each for each in found if each.parent_span_id == whole.span_id}
        assert phases.keys() == {"plan", "tasks", "publish", "deliver"}
        given = {each.key: each.value.int_value for each in whole.attributes}
        assert (given["anabranch.epoch"], given["anabranch.items"]) == (line["epoch"], line["items"])
        assert (given["anabranch.bytes"], given["anabranch.answers"]) == (line["bytes"], line["matched"])
        assert abs(whole.start_time_unix_nano / 1e9 - line["began"]) < 0.001
        for name, key in (
            ("plan", "plan_ms"),
            ("tasks", "job_ms"),
            ("publish", "publish_ms"),
            ("deliver", "deliver_ms"),
        ):
            span = phases[name]
            assert span.end_time_unix_nano - span.start_time_unix_nano == line[key] * 1_000_000
            assert whole.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= whole.end_time_unix_nano


@pytest.mark.mass
def test_a_collector_that_does_not_answer_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and says nothing: epochs go on, and the run ends within seconds."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with served_site(tmp_path, TRACED, QUERY) as site:
            feed(site, 5)
            begun = monotonic()
        assert monotonic() - begun < 15
    assert len(logged(tmp_path, "epoch")) == 5
    assert len(logged(tmp_path, "stopped")) == 1


@pytest.mark.mass
def test_a_collector_that_is_away_is_told_of_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has a warning, not one for each epoch, and nothing is printed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        away = taken.getsockname()[1]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{away}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    with served_site(tmp_path, TRACED, QUERY) as site:
        feed(site, 3)
        wait_until(lambda: logged(tmp_path, "warning"))
    (warning,) = logged(tmp_path, "warning")
    assert warning["message"].startswith("traces cannot be sent")


def test_without_the_packages_the_site_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install; nothing has begun then."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    (tmp_path / "in").mkdir()
    (tmp_path / "SITE.toml").write_text(TRACED)
    with pytest.raises(UsageError, match="needs OpenTelemetry") as refused:
        run(tmp_path / "SITE.toml", once=True, local=True)
    assert "anabranch[tracing]" in (refused.value.hint or "")
    assert not logged(tmp_path, "started")
