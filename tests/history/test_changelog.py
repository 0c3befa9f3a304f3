"""The corrections of displays as tables: the changelog gives the display, and so does the newest row of each region."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from anabranch import Engine, Parquet
from anabranch.algebra.display.replay import Replay
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.sinks.changelog import change_rows
from anabranch.spark.sinks.parquet import ParquetFolder
from anabranch.storage import Location
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.hosting import Case
from history.windowed import WindowWriter
from mass import some
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'
SUMS = '<sums>{ for $w in stream("s")/root/i|t diff 10| return <w>{ sum($w/v) }</w> }</sums>'


class Changelog:
    """Regions in their order, as the rows of a changelog give them."""

    def __init__(self) -> None:
        self._shown: list[tuple[str, str]] = []

    def take(self, row: dict[str, Any]) -> None:
        """Apply a correction."""
        at = {region: place for place, (region, _) in enumerate(self._shown)}
        match row["operation"]:
            case "insert":
                assert row["region"] not in at
                self._shown.insert(at.get(row["before"], len(at)), (row["region"], row["content"]))
            case "replace":
                self._shown[at[row["region"]]] = row["region"], row["content"]
            case "delete":
                del self._shown[at[row["region"]]]

    @property
    def text(self) -> str:
        return "".join(content for _, content in self._shown)

    @property
    def regions(self) -> dict[str, str]:
        """What regions show, without those that show nothing."""
        return {region: content for region, content in self._shown if content}


@pytest.mark.mass
@pytest.mark.parametrize("seed", some(range(3)))
def test_rows_give_the_display(seed: int, tmp_path: Path) -> None:
    """After each epoch, for random windows: who applies the changelog, or takes the newest row of each region."""
    cases: dict[str, Case] = {}
    for number in range(seed * 20, seed * 20 + 20):
        writer = WindowWriter(Random(number))
        stream, query = writer.stream(9), writer.query()
        if query.startswith("for"):
            cases[f"q{number}"] = Case(query.replace('"s"', f'"s{number}"'), {f"s{number}": [stream]})
    sources = [each for case in cases.values() for each in case.sources(tmp_path)]
    trunk = BareTrunk(tmp_path / "state", sources, Random(seed), finite=True)
    trunk.run({name: each.query for name, each in cases.items()}, [300, 800], [1, 2])
    compared = 0
    for name in cases:
        subscription = trunk.log.subscription(name)
        assert subscription is not None
        replay, changelog, newest = Replay(), Changelog(), dict[str, str | None]()
        for manifest in trunk.log.manifests.since(0):
            texts = [trunk.log.text(each) for each in trunk.log.chunks(manifest, subscription.id)]
            for each in texts:
                list(replay.feed(each))
            for row in change_rows("updates", texts):
                changelog.take(row)
            upserts = change_rows("upserts", texts)
            assert len({row["region"] for row in upserts}) == len(upserts)
            newest |= {row["region"]: row["content"] for row in upserts}
            assert changelog.text == replay.text
            assert {region: text for region, text in newest.items() if text is not None} == changelog.regions
            compared += bool(texts)
    assert compared > 20


def lines(*elements: str) -> str:
    return "".join(f"{each}\n" for each in elements)


def test_a_display_that_fails_loses_each_result(tmp_path: Path) -> None:
    """What stands in an element is told to be gone, too: a sum beside the windows fails, and is mended (LAWS 5.7)."""
    (tmp_path / "in").write_text(
        lines(
            f'<i {S} s:at="1"><t>1</t><v>1</v></i>',
            f'<s:mutable {S} id="a" at="2"><i><t>11</t><v>2</v></i></s:mutable>',
            f'<s:replace {S} target="a" at="3"><i><t>5</t><v>x</v></i></s:replace>',
            f'<s:replace {S} target="a" at="4"><i><t>21</t><v>4</v></i></s:replace>',
        )
    )
    query = SUMS.replace("</sums>", '{ sum(stream("s")/root/i/v) }</sums>')
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "in", "lines", updates=True)], Random(1), finite=True)
    trunk.run({"q": query}, [10_000], [1])
    subscription = trunk.log.subscription("q")
    assert subscription is not None
    (manifest,) = [each for each in trunk.log.manifests.since(0) if trunk.log.chunks(each, subscription.id)]
    rows = change_rows("updates", [trunk.log.text(each) for each in trunk.log.chunks(manifest, subscription.id)])
    shown: dict[float, str] = {}
    changelog = Changelog()
    for row in rows:
        changelog.take(row)
        shown[row["at"]] = changelog.text
    assert shown == {1: "<w>1</w>1", 2: "<w>1</w><w>2</w>3", 3: "", 4: "<w>1</w><w>4</w>5"}


def test_tables_of_an_engine(tmp_path: Path) -> None:
    """Both tables of one query; a second run goes on where the first has ended, and JSON is text as it is written."""
    folder = tmp_path / "in"
    folder.mkdir()
    query = 'for $w in stream("s")|t diff 10| return { "from": window-start($w), "n": count($w) }'
    mutable = '{"$mutable": {"id": "a", "at": 1, "content": [{"t": 3}]}}'
    for number, line in enumerate((mutable, '{"$at": 2, "t": 4}', '{"$replace": {"target": "a", "at": 3}}')):
        (folder / f"{number}.jsonl").write_text(f"{line}\n")
        with Engine(checkpoint=tmp_path / "state", local=True, once=True) as engine:
            engine.stream("s", folder, format="json", updates=True)
            engine.subscribe(query, name="log", sink=Parquet(tmp_path / "log"))
            engine.subscribe(query, name="now", sink=Parquet(tmp_path / "now", "upserts"))
            engine.wait()
    log = [row for file in sorted((tmp_path / "log").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    results = [row for row in log if row["region"] != "s0"]
    assert [(row["at"], row["operation"], row["content"]) for row in results] == [
        (1, "insert", '{"from": 0, "n": 1}'),
        (2, "replace", '{"from": 0, "n": 2}'),
        (3, "replace", '{"from": 0, "n": 1}'),
    ]
    now = [row for file in sorted((tmp_path / "now").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert [(row["at"], row["content"]) for row in now] == [(row["at"], row["content"]) for row in results]
    assert len({row["region"] for row in now}) == 1


def test_another_form_of_changes_is_another_table(tmp_path: Path) -> None:
    """Where `changes` is another, the folder is moved aside, and the display told again from its beginning."""
    (tmp_path / "in").write_text(lines(f'<i {S} s:at="1"><t>1</t><v>1</v></i>'))
    source = Source("s", tmp_path / "in", "lines", updates=True)
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": SUMS}, [10_000], [1])
    subscription = trunk.log.subscription("q")
    assert subscription is not None
    (manifest,) = [each for each in trunk.log.manifests.since(0) if trunk.log.chunks(each, subscription.id)]
    texts = [trunk.log.text(each) for each in trunk.log.chunks(manifest, subscription.id)]
    at, checkpoint, warnings = Location.of(tmp_path / "out"), Checkpoint.make(tmp_path / "sinks"), list[str]()
    for form in ("updates", "updates", "upserts"):
        found = ParquetFolder(at, checkpoint, warnings.append, subscription, form)
        found.take(subscription, manifest.epoch, texts)
    assert len(list(tmp_path.glob("out*/epoch-*.parquet"))) == 2
    assert len(warnings) == 1
    assert "written again" in warnings[0]
