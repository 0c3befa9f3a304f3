"""Windows over streams of updates on a trunk: the same for any epochs, shards and restarts (LAWS 1.2, 5.10)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.cli import main
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.hosting import Case, Law, replayed
from history.windowed import WindowWriter
from mass import some
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'


@pytest.mark.mass
@pytest.mark.parametrize("seed", some(range(2)))
def test_random_windows_on_a_trunk(seed: int, tmp_path: Path) -> None:
    """After every moment a trunk shows what the law shows, however it was cut into epochs, shards and strands."""
    cases: dict[str, Case] = {}
    for number in range(seed * 20, seed * 20 + 20):
        writer = WindowWriter(Random(number))
        stream = writer.stream(8)
        query = writer.query().replace('"s"', f'"s{number}"').replace("'s'", f"'s{number}'")
        cases[f"q{number}"] = Case(query, {f"s{number}": [stream]})
    sources = {name: each.sources(tmp_path) for name, each in cases.items()}
    trunk = BareTrunk(
        tmp_path / "state", [each for several in sources.values() for each in several], Random(seed), finite=True
    )
    trunk.strands = 2 * seed
    trunk.run({name: each.query for name, each in cases.items()}, [300, 1_000, 5_000], [1, 2, 3])
    for name, case in cases.items():
        law = Law.of(case, sources[name])
        assert replayed(trunk.log, name) == law.shown, case
        if law.answer is not None:
            assert trunk.answer(name) == law.answer, case


def test_windows_of_declared_times(tmp_path: Path) -> None:
    """Units and the origin of a stream are those of its windows, and bounds are times (LAWS 3.1)."""
    lines = [
        f'<s:mutable {S} id="a" at="1"><i><ts>30000</ts></i></s:mutable>',
        f'<s:mutable {S} id="b" at="2"><i><ts>90000</ts></i></s:mutable>',
        f'<s:replace {S} target="b" at="3"><i><ts>59999</ts></i></s:replace>',
    ]
    (tmp_path / "in").write_text("".join(f"{each}\n" for each in lines))
    time = ItemPath.parse("ts").counting("ms")
    source = Source("s", tmp_path / "in", "lines", time=time, updates=True, origin=Fraction(10))
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    query = 'for $w in stream("s")/root/i|ts diff PT1M| return <w from="{ window-start($w) }">{ count($w) }</w>'
    trunk.run({"q": query}, [100], [1])
    assert [text for _, text in replayed(trunk.log, "q")] == [
        '<w from="1970-01-01T00:00:10Z">1</w>',
        '<w from="1970-01-01T00:00:10Z">1</w><w from="1970-01-01T00:01:10Z">1</w>',
        '<w from="1970-01-01T00:00:10Z">2</w>',
    ]


def test_who_comes_late_sees_all_windows(tmp_path: Path) -> None:
    """A late subscription begins with the document, and no window of it is left out (LAWS 5.10)."""
    (tmp_path / "in").mkdir()
    source = Source("s", tmp_path / "in", "lines", updates=True)
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    query = 'for $w in stream("s")/root/i|t diff 10| return <w>{ sum($w/t) }</w>'
    (tmp_path / "in" / "1").write_text(
        f'<s:mutable {S} id="a" at="1"><i><t>3</t></i></s:mutable>\n<i {S} s:at="2"><t>12</t></i>\n'
    )
    trunk.run({}, [1_000], [1])
    (tmp_path / "in" / "2").write_text(f'<s:replace {S} target="a" at="3"><i><t>4</t></i></s:replace>\n')
    trunk.run({"late": query}, [1_000], [2])
    assert [text for _, text in replayed(trunk.log, "late")] == ["<w>3</w><w>12</w>", "<w>4</w><w>12</w>"]


EVOLVED = """
<i s:at="1"><t>1</t><v>10</v></i><s:mutable id="a" at="2"><i><t>12</t><v>20</v></i></s:mutable>
<s:accent at="3"><s:alter path="t" by=". * 2"/></s:accent>
<s:accent at="3"><s:alter path="v" by=". * 10 + 1"/></s:accent>
<i s:at="4"><t>6</t><v>301</v></i><s:replace target="a" at="5"><i><t>8</t><v>151</v></i></s:replace>
<i s:at="6"><t>30</t><v>41</v></i><s:replace target="a" at="7"/>
"""
CANONICAL = """
<i s:at="1"><t>1</t><v>10</v></i><s:mutable id="a" at="2"><i><t>12</t><v>20</v></i></s:mutable>
<s:punctuation at="3"/>
<i s:at="4"><t>3</t><v>30</v></i><s:replace target="a" at="5"><i><t>4</t><v>15</v></i></s:replace>
<i s:at="6"><t>15</t><v>4</v></i><s:replace target="a" at="7"/>
"""


@pytest.mark.parametrize(
    "query",
    [
        "|t diff 10| return <w from='{ window-start($w) }'>{ count($w), sum($w/v), max($w/v) }</w>",
        "|t diff 10| return <w>{ $w/v }</w>",
        "|t gap 5| return <w>{ sum($w/v), $w/t }</w>",
        "|t diff 10| for $o in $w group by $k := $o/v return <w k='{ $k }'>{ avg($o/t) }</w>",
        "|count 2| return <w>{ min($w/v), $w[v > 20]/v }</w>",
    ],
)
def test_windows_where_units_change(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The square with evolution: the windows of a stream that changes its units are those of the same, canonised.

    A display that may change its units is the same on both engines.
    """
    monkeypatch.chdir(tmp_path)
    Path("q.xq").write_text(f'for $w in stream("s")/root/i{query}')
    shown: list[str] = []
    for stream, engine, policy in (
        (EVOLVED, "local", "absorb"),
        (EVOLVED, "reference", "absorb"),
        (CANONICAL, "local", "absorb"),
        (EVOLVED, "local", "accumulate"),
        (EVOLVED, "reference", "accumulate"),
    ):
        Path("s.xml").write_text(f"<root {S}>{stream}</root>")
        asked = ["query", "q.xq", "--stream", "s=s.xml", "--timeline", "--engine", engine, "--policy", policy]
        assert main(asked) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]
    assert shown[3] == shown[4]
    assert shown[0].count("\n") > 2


@pytest.mark.spark
def test_windows_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark shows the same timeline as the reference does, to the byte."""
    monkeypatch.chdir(tmp_path)
    writer = WindowWriter(Random(5))
    stream = writer.stream(40)
    Path("s.xml").write_text(f"<root {S}>{stream}</root>")
    shown: list[list[str]] = []
    for engine in ("spark", "reference"):
        told: list[str] = []
        for number in range(4):
            Path("q.xq").write_text(WindowWriter(Random(number)).query())
            assert main(["query", "q.xq", "--stream", "s=s.xml", "--timeline", "--engine", engine]) == 0
            told.append(capsys.readouterr().out)
        shown.append(told)
    assert shown[0] == shown[1]
    assert all(each.count("\n") > 5 for each in shown[0])
