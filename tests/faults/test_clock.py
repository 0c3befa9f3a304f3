"""The clock of the machine is set back, again and again: order, times and answers go forwards.

Windows close by the times in the data, heartbeats are sent by a clock that nobody sets, and retention counts epochs;
what takes the time of day is the moment at which elements without a time arrive, and the log.
What is pushed over HTTP has such moments, too (`tests/endpoint/test_spool.py`).
"""

from __future__ import annotations

import re
import time
from decimal import Decimal
from pathlib import Path

import pytest

from anabranch import Engine
from anabranch.spark.epoch import trunk
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.intake import survey

HOUR = 3600
COUNTED = """<n>{ count(stream("s")/root/p) }</n>"""
MERGED = """<all>{ for $w in stream("s")/root/p |count 2| return <w>{ $w/n }</w> }</all>"""


def set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the clock is an hour earlier each time it is asked."""
    now = [time.time()]

    def earlier() -> float:
        now[0] -= HOUR
        return now[0]

    monkeypatch.setattr(survey, "time_ns", lambda: round(earlier() * 1e9))
    monkeypatch.setattr(trunk, "time", earlier)


@pytest.mark.mass
def test_a_clock_that_is_set_back_shows_in_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two partitions without a time, read in the order in which items came, by three runs; no time is negative."""
    set_back(monkeypatch)
    metrics: list[Metrics] = []
    for number in range(3):
        for partition in ("a", "b"):
            with (tmp_path / partition).open("a") as file:
                file.write(f"<p><n>{partition}{number}</n></p>\n")
        with Engine(local=True, checkpoint=tmp_path / "state", once=True, on_epoch=metrics.append) as engine:
            engine.stream("s", [tmp_path / "a", tmp_path / "b"], format="lines")
            merged = engine.subscribe(MERGED, "merged", sink=tmp_path / "out")
            counted = engine.subscribe(COUNTED, "counted", sink=tmp_path / "display")
            engine.wait()
            answer, shown = merged.answer(), counted.answer()
    pairs = "".join(f"<w><n>a{number}</n><n>b{number}</n></w>" for number in range(3))
    assert answer == f"<all>{pairs}</all>"
    assert (tmp_path / "out").read_text() == f"<all>{pairs}"
    assert shown == "<n>6</n>"
    moments = [Decimal(at) for at in re.findall(r' at="([0-9.]+)"', (tmp_path / "display").read_text())]
    assert len(set(moments)) >= 3, "each run is a moment of its own"
    assert moments == sorted(moments)
    assert metrics
    assert all(each.deliver_start_ms >= 0 and each.total_ms >= 0 for each in metrics)
