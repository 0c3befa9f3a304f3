"""The run at a moment, as `/api/now` gives it: one JSON text, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import msgspec

from anabranch.service.watch.activity import NOTHING_READ, Figures, phases_of
from anabranch.service.watch.holdings import Holdings
from anabranch.service.watch.lag import UNKNOWN, Lag, StreamLag
from anabranch.service.watch.lateness import Cause
from anabranch.site_work import RunState
from anabranch.spark.epoch.metrics import Metrics

_encode = msgspec.json.Encoder().encode


def snapshot(
    state: RunState,
    epoch: int,
    subscriptions: int,
    streams: list[str],
    figures: Figures,
    lags: Mapping[str, StreamLag],
    causes: list[Cause],
    holdings: Holdings,
    sinks: Mapping[str, tuple[int, int]],
) -> bytes:
    """The run at a moment, as JSON; `sinks` are by kind their number, and by how many epochs they are behind."""
    totals = figures.totals
    found = {
        "epoch": epoch,
        "time": iso(figures.at),
        "run_state": state,
        "subscriptions": subscriptions,
        "rates": {each: round(figures.rate(each), 1) for each in ("items", "bytes", "answers")},
        "totals": {
            "items": totals.items,
            "bytes": totals.bytes,
            "answers": totals.answers,
            "dead_letters": totals.dead_letters,
            "late_items": totals.late_items,
        },
        "streams": [_stream(name, figures, lags.get(name, UNKNOWN)) for name in streams],
        "epochs": list(map(_epoch, figures.epochs)),
        "late": [_cause(each) for each in causes],
        "state": {
            "held": holdings.held,
            "bytes": holdings.bytes,
            "shards": [asdict(each) for each in holdings.shards],
        },
        "sinks": [
            {"kind": kind, "count": count, "epochs_behind": behind} for kind, (count, behind) in sorted(sinks.items())
        ],
        "events": [asdict(each) for each in figures.events],
    }
    return _encode(found)


def iso(moment: float) -> str:
    """A moment in UTC, to the millisecond."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lag_plain(lag: Lag) -> dict[str, Any]:
    """A lag for clients."""
    seconds = None if lag.seconds is None else round(lag.seconds, 1)
    return {"bytes": lag.bytes, "offsets": lag.offsets, "seconds": seconds}


def _stream(name: str, figures: Figures, lag: StreamLag) -> dict[str, Any]:
    totals, lately = figures.streams.get(name, NOTHING_READ), figures.lately(name)
    share = lately.fast_share if lately.items else totals.fast_share
    return {
        "name": name,
        "items_per_second": round(figures.rate("items", name), 1),
        "bytes_per_second": round(figures.rate("bytes", name), 1),
        "items": totals.items,
        "fast_share": None if share is None else round(share, 4),
        "lag": lag_plain(lag.whole),
        "partitions": [{"partition": key, "lag": lag_plain(each)} for key, each in lag.partitions.items()],
    }


def _epoch(metrics: Metrics) -> dict[str, Any]:
    return {
        "epoch": metrics.epoch,
        "began": round(metrics.began, 3),
        "items": metrics.items,
        "bytes": metrics.bytes,
        "answers": metrics.matched,
        "total_ms": metrics.total_ms,
        "phases": [{"name": each.name, "start_ms": each.start_ms, "ms": each.ms} for each in phases_of(metrics)],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "what": cause.what,
        "name": cause.name,
        "message": cause.message,
        "hint": cause.hint,
        "numbers": dict(cause.numbers),
    }
