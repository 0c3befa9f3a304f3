"""Accents in a trunk on Spark: logged, known to every range, and never lost or doubled by a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch.spark.epoch import trunk as epochs
from spark.trunks import Killed, Site

CONTROL = 'xmlns:s="urn:anabranch:stream"'
DROP = f'<s:accent {CONTROL} where="k = 2"><s:drop path="t"/></s:accent>\n'
ADD = f'<s:accent {CONTROL} where="k = 2"><s:add path="t"/></s:accent>\n'
POINTS = ("job-done", "changes-logged", "manifest-published")
IDS = '<ids>{ for $p in stream("s")/root/p return <o id="{$p/@id}"/> }</ids>'


def item(number: int, k: int) -> str:
    return f'<p id="{number}"><k>{k}</k><t>{number}</t></p>\n'


def test_no_moment_is_bad_for_an_accent(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before and behind the log is written, and behind the manifest: items, dead letters and log are right."""
    site = Site(spark, tmp_path)
    site.stream("s", "in")
    site.subscribe(ids=IDS)
    due: list[int] = []
    bad: list[int] = []
    for turn in range(len(POINTS) + 1):
        for part, text in enumerate((item(turn, 1), DROP if turn % 2 == 0 else ADD, item(100 + turn, 2))):
            site.write(f"in/{turn}-{part}", text)
        due.append(turn)
        (bad if turn % 2 == 0 else due).append(100 + turn)
    for turn, name in enumerate(POINTS):

        def die(found: str, epoch: int, name: str = name, turn: int = turn) -> None:
            if (found, epoch) == (name, turn):
                raise Killed(name)

        monkeypatch.setattr(epochs, "point", die)
        with pytest.raises(Killed, match=name):
            site.run(epoch_files=3)
    monkeypatch.undo()
    site.run(epoch_files=3)
    found = "".join(f'<o id="{each}"/>' for each in due)
    assert site.answer("ids") == f"<ids>{found}</ids>"
    assert [each.raw for each in site.log.dead_letters()] == [item(number, 2).strip() for number in bad]
    (logged,) = site.seen[-1].manifest.evolution.values()
    kept = {path.name for path in (tmp_path / "state" / "evolution").rglob("*") if path.is_file()}
    assert kept == {part.file for part in logged.parts}, "what killed runs wrote is gone"


def test_a_stream_tells_how_it_evolved(spark: SparkSession, tmp_path: Path) -> None:
    """The Python API: the schema now and at a place, and the history; a domain makes parts cover the whole."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a").write_text(item(1, 1) + DROP + DROP.replace("k = 2", "k = 1"))
    with anabranch.Engine(spark, once=True) as engine:
        stream = engine.stream("s", folder, format="lines", domains={"k": [1, 2]})
        assert stream.schema().rows == ()
        engine.subscribe(IDS).answer()
        assert [(each.path, each.items, each.state) for each in stream.schema()] == [("t", "all items", "dropped")]
        place = ("a", len(item(1, 1) + DROP))
        assert [(each.items, each.state) for each in stream.schema(at=place)] == [
            ("k = 2", "dropped"),
            ("not(k = 2)", "may be there"),
        ]
        assert [(each.change, each.items, each.offset) for each in stream.history()] == [
            ("drop t", "k = 2", len(item(1, 1))),
            ("drop t", "k = 1", len(item(1, 1) + DROP)),
        ]
        assert "k = 1" in stream._repr_html_() + stream.history()._repr_html_()
