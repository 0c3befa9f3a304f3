"""A whole trunk on Spark with its checkpoint, stream and sink in an object store, which its workers reach alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch import Engine
from anabranch.storage import Location

WINDOWS = '<r>{ for $w in stream("s")/root/p |n diff 10| return <w>{ sum($w/n), $w[n mod 5 = 0]/n }</w> }</r>'
EACH = '<r>{ for $p in stream("s")/root/p where $p/n > 3 return $p/n }</r>'


def due(end: int) -> tuple[str, str]:
    """Both answers over the numbers up to `end`, by hand; the last window is still open."""
    windows = (range(at, at + 10) for at in range(0, end - 10, 10))
    told = (f"<w>{sum(each)}<n>{each[0]}</n><n>{each[5]}</n></w>" for each in windows)
    return f"<r>{''.join(told)}</r>", f"<r>{''.join(f'<n>{n}</n>' for n in range(4, end))}</r>"


def lines(start: int, end: int) -> bytes:
    return "".join(f"<p><n>{number}</n></p>\n" for number in range(start, end)).encode()


def test_runs_on_spark_and_without_it_take_turns(spark: SparkSession, tmp_path: Path) -> None:
    """Spark, this process, Spark again, each with nothing but what the one before has left in the store."""
    store = Location.of(f"file+object://{tmp_path}/store")
    for turn, session in enumerate((spark, None, spark)):
        (store / "in" / str(turn)).put(lines(turn * 100, turn * 100 + 100))
        with Engine(
            session, local=session is None, checkpoint=store / "state", once=True, epoch_bytes=700, shards=1 + turn
        ) as engine:
            engine.stream("s", store / "in", format="lines", time="n")
            windows = engine.subscribe(WINDOWS, "windows", sink=store / "out" / "windows.xml")
            each = engine.subscribe(EACH, "each")
            assert (windows.answer(), each.answer()) == due(turn * 100 + 100)
        parts = store / "out" / "windows.xml"
        delivered = "".join((parts / name).read().decode() for name in parts.names(below=True))
        assert delivered == due(turn * 100 + 100)[0].removesuffix("</r>")


@pytest.mark.spark
def test_the_workers_need_no_disk_of_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    """A run leaves nothing on the driver's disk but what it wrote into the store."""
    store = Location.of(f"file+object://{tmp_path}/store")
    (store / "in" / "0").put(lines(0, 50))
    with Engine(spark, checkpoint=store / "state", once=True) as engine:
        engine.stream("s", store / "in", format="lines")
        scratch = engine.trunk.checkpoint.scratch
        assert engine.subscribe(EACH, "each").answer() == due(50)[1]
        assert (scratch / "spark" / "commits").is_dir()
    assert not scratch.exists()
    assert [each.name for each in tmp_path.iterdir()] == ["store"]
