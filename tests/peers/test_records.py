"""Plans of a network on the disk."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from anabranch.errors import StateError
from anabranch.network.catalogue import Catalogue
from anabranch.network.description import RegisteredStream
from anabranch.peers.records import SavedPlan, streams_of, written_streams
from anabranch.spark.checkpoint import durable
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source, domains_of
from anabranch.stream.schema import Schema

SCHEMA = Schema.from_dtd("<!ELEMENT r (i*)> <!ELEMENT i (t, s?)> <!ELEMENT t (#PCDATA)> <!ELEMENT s (#PCDATA)>")


def stream(folder: Path) -> RegisteredStream:
    source = Source(
        "s",
        folder / "in" / "0",
        "lines",
        SCHEMA,
        time=ItemPath.parse("t"),
        slack=Fraction(1, 3),
        more=(folder / "in" / "1",),
        domains=domains_of({"s": [1, 2]}),
        heartbeat=Decimal("0.5"),
    )
    return RegisteredStream(source, "SP0", "P0", 2.5, accents=False)


def test_streams_move_together_with_their_network(tmp_path: Path) -> None:
    """All that was declared of a stream is read back, and its files are where the folder lies now."""
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "state").mkdir(parents=True)
    SavedPlan(1, 0, Catalogue({}, {}), streams={"s": stream(before)}).save(before / "state" / "plan.json")
    before.rename(after)
    assert streams_of(after / "state" / "plan.json") == {"s": stream(after)}


def test_a_plan_of_another_version_is_refused(tmp_path: Path) -> None:
    """One that described streams in another way is refused by name."""
    path = tmp_path / "plan.json"
    durable.replace(path, durable.sealed({"plan": 1, "flows": 0, "now": {}, "before": None, "streams": []}))
    with pytest.raises(StateError, match="is of version 1, and this release reads version 2"):
        streams_of(path)


def test_a_plan_that_another_part_has_published_is_refused_by_its_version(tmp_path: Path) -> None:
    """A part that runs another release says so, and reads nothing of it."""
    written = SavedPlan(1, 0, Catalogue({}, {}), streams={"s": stream(tmp_path)}).written(tmp_path)
    assert written_streams(written, tmp_path) == {"s": stream(tmp_path)}
    with pytest.raises(StateError, match="the plan of the network is of version 3, and this release reads version 2"):
        written_streams({**written, "version": 3, "streams": "unknown"}, tmp_path)
