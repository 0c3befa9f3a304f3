"""The past at the command line: timelines, streams that are edited, what is set aside, what is refused."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import papers
from anabranch.cli import main
from anabranch.engine.reading import looked_into
from anabranch.site import read_site
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source
from test_docs import TOP, blocks, show

TICKERS = """\
<tickers xmlns:s="urn:anabranch:stream">
<ticker s:at="1"><name>A</name><s:mutable id="1"><quote>100</quote></s:mutable></ticker>
<s:replace target="9" at="2"><quote>7</quote></s:replace>
<ticker><name>B</broken></ticker>
<s:replace target="1" at="12.50"><quote>120</quote></s:replace>
</tickers>
"""
RISEN = "<quote><name>A</name><quote>120</quote></quote>"

ENGINES = [pytest.param("", marks=pytest.mark.spark), "--engine reference"]
"""Spark is the default; the law is asked for."""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in a folder with files given by name; gives the status and what it has printed."""
    monkeypatch.chdir(tmp_path)

    def command(line: str, **texts: str) -> tuple[int, str, str]:
        for name, text in texts.items():
            Path(name.replace("_", ".")).write_text(text, encoding="utf-8")
        status = main(shlex.split(line))
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return command


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_with_regions_is_a_stream_of_updates(run: Run, engine: str) -> None:
    """Query 2 over a file: the default engine answers as the reference does, and bad updates are counted."""
    line = f"query q.xq --stream tickers=t.xml --dead-letter dead.json {engine}"
    status, out, err = run(line, q_xq=papers.TICKERS, t_xml=TICKERS)
    assert (status, out) == (0, f"{RISEN}\n")
    assert "items: 1, dead letters: 2, see dead.json" in err
    unknown, broken = sorted(
        map(json.loads, Path("dead.json").read_text().splitlines()), key=lambda each: each["offset"]
    )
    assert (unknown["reason"], unknown["offset"]) == ("no region is called '9'", TICKERS.index("<s:replace"))
    assert (broken["partition"], broken["offset"]) == ("t.xml", TICKERS.index("<ticker><name>B"))


def test_timeline(run: Run) -> None:
    """One line for each element after which the answer differs, times as exact decimals."""
    line = "query q.xq --stream tickers=t.xml --timeline --engine reference"
    status, out, err = run(line, q_xq=papers.TICKERS, t_xml=TICKERS)
    assert (status, out) == (0, f'{{"at": 12.5, "answer": {json.dumps(RISEN)}}}\n')
    assert "dead letters: 2" in err


SHOWN = (
    "<o>{ stream('tickers')//quote }</o>",
    "<o n='{ count(stream('tickers')//quote) }'/>",
    "sum(stream('tickers')//quote)",
    "for $q in stream('tickers')//ticker order by $q/quote return $q/name",
    "stream('tickers')//quote?[10]",
    "(sum(stream('tickers')//quote))?11",
    "for $q in stream('tickers')//ticker return $q/quote + $q/name",
    "for $q in stream('tickers')//ticker, $m in stream('marks')//mark where $m/n = $q/name return ($q/quote, $m/n)",
    "for $q in stream('tickers')//ticker return <q>{ stream('marks')//mark[n = $q/name]/n, $q/quote#1 }</q>",
    "stream('s')//i?[2]",
    "<d>{ stream('s')//i/t#0, stream('tickers')//quote#1 }</d>",
    "<all>{ stream('s')//i[t > 1] }</all>",
    "for $w in stream('s')//i|t diff 2| return <n>{ count($w) }</n>",
    "for $i in stream('s')//i return ($i/t + 1, stream('s')//i#1/t, stream('tickers')//quote)",
    "(sum(stream('tickers')//quote))#[2]",
    "for $q in stream('tickers')//ticker return <was>{ ($q/quote * 2)#1 }</was>",
    "<d>{ (max(stream('s')//i?[2]/t))#1, (count(stream('tickers')//quote))#[1] }</d>",
    "for $i in stream('s')//i return ($i/t, (sum(stream('tickers')//quote))#1)",
    "for $i in stream('s')//i where not($i/t <= (max(stream('s')//i/t))#1) return $i/t",
    "stream('tickers')//quote#1?5",
)
MARKS = """\
<marks xmlns:s="urn:anabranch:stream"><mark s:at="3"><s:mutable id="m"><n>A</n></s:mutable></mark>
<s:replace target="m" at="20"/></marks>"""


@pytest.mark.spark
def test_spark_and_the_law_show_the_same(run: Run) -> None:
    """Displays on Spark are corrected, those of the reference found anew: the same lines and dead letters come out.

    The status says that one query adds a number and a name, and so answers nothing at all.
    """
    files = {f"q{number}_xq": text for number, text in enumerate(SHOWN)}
    files |= {"t_xml": TICKERS, "m_xml": MARKS, "s_xml": "<r><i><t>1</t></i><i><t>2</t></i><i><t>4</t></i></r>"}
    names = " ".join(name.replace("_", ".") for name in files if name.startswith("q"))
    streams = "--stream tickers=t.xml --stream marks=m.xml --stream s=s.xml --time s=t"
    for asked in ("", "--timeline"):
        found = []
        for engine in ("", "--engine reference"):
            line = f"query {names} {streams} {asked} {engine} --out out --dead-letter dead.json"
            status, _, err = run(line, **files)
            assert status == 3, err
            assert "the reference engine answers" not in err
            told = map(json.loads, Path("dead.json").read_text().splitlines())
            letters = {(each["offset"], each["reason"], each.get("subscription")) for each in told}
            found.append(({each.name: each.read_text() for each in Path("out").iterdir()}, letters))
        assert found[0] == found[1]


def test_timelines_of_several_queries(run: Run) -> None:
    """Each in a file of its own, over streams of items as well."""
    items = "<r><i><t>1</t></i><i><t>2.5</t></i></r>"
    line = "query q.xq n.xq --stream tickers=t.xml --stream s=s.xml --time s=t --timeline --out out"
    status, out, _ = run(
        f"{line} --engine reference", q_xq=papers.TICKERS, n_xq="count(stream('s')/r/i)", t_xml=TICKERS, s_xml=items
    )
    assert (status, out) == (0, "")
    assert Path("out/q.jsonl").read_text() == f'{{"at": 12.5, "answer": {json.dumps(RISEN)}}}\n'
    assert Path("out/n.jsonl").read_text() == '{"at": 1, "answer": "1"}\n{"at": 2.5, "answer": "2"}\n'


def test_the_past_of_items(run: Run) -> None:
    """Versions of a stream without regions are arrivals, for the answer as for the timeline."""
    files = {"q_xq": "stream('s')/r/i/t?[1]", "s_xml": "<r><i><t>1</t></i><i><t>2</t></i><i><t>4</t></i></r>"}
    assert run("query q.xq --stream s=s.xml --time s=t --engine reference", **files)[:2] == (0, "<t>4</t>\n")
    out = run("query q.xq --stream s=s.xml --time s=t --timeline --engine reference", **files)[1]
    assert [(each["at"], each["answer"]) for each in map(json.loads, out.splitlines())] == [
        (1, "<t>1</t>"),
        (2, "<t>2</t><t>1</t>"),
        (4, "<t>4</t>"),
    ]


def test_json_streams(run: Run) -> None:
    """JSON items with a mutable value are edited like XML."""
    lines = (
        {"name": "A", "quote": {"$mutable": {"id": "1", "content": 100}}},
        {"$replace": {"target": "1", "at": 5, "content": 120}},
    )
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    status, out, err = run(
        "query q.xq --stream s=s.json --timeline --engine reference", q_xq="stream('s')//quote", s_json=text
    )
    assert status == 0, err
    assert [json.loads(each)["at"] for each in out.splitlines()] == [0, 5]
    assert json.loads(out.splitlines()[-1])["answer"] == "<quote>120</quote>"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "for $v in stream('tickers')//ticker|count 2|, $w in stream('tickers')//ticker|@k diff 2| return $v",
            "q.xq:1:78: a count window cannot be joined with one over values in streams of updates",
        ),
        (
            "for $w in stream('s')//i|count 2| return stream('tickers')//quote",
            "q.xq:1:25: a window over a stream of items cannot be asked for beside a stream of updates",
        ),
        ("stream('s')//i[. = stream('tickers')//quote#1]", "a predicate on a stream of items cannot ask for the past"),
    ],
)
def test_what_is_refused_by_name(run: Run, query: str, message: str) -> None:
    """What cannot be answered over streams of updates says so, at its place in the query."""
    line = "query q.xq --stream tickers=t.xml --stream s=s.xml"
    status, out, err = run(line, q_xq=query, t_xml=TICKERS, s_xml="<r><i/></r>")
    assert (status, out) == (1, "")
    assert message in err


@pytest.mark.parametrize("engine", ENGINES)
def test_accents_in_a_stream_of_updates(run: Run, engine: str) -> None:
    """They are followed, in the answer and in its timeline; so are those of items where the display is corrected."""
    accent = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="v" by=". * 2"/></s:accent>'
    region = '<r xmlns:s="urn:anabranch:stream"><i><v><s:mutable id="1">5</s:mutable></v></i>'
    given = {
        "q_xq": "stream('s')/r/i/v#[1]",
        "s_xml": f'{region}{accent}<s:replace target="1" at="2">8</s:replace></r>',
    }
    status, out, err = run(f"query q.xq --stream s=s.xml {engine}", **given)
    assert (status, out) == (0, "<v>8</v>\n"), err
    status, out, _ = run(f"query q.xq --stream s=s.xml --timeline {engine}", **given)
    assert [json.loads(line)["answer"] for line in out.splitlines()] == ["<v>5</v>", "<v>10</v>", "<v>8</v>"]
    status, out, _ = run(f"query q.xq --stream s=s.xml --timeline --policy absorb {engine}", **given)
    assert [json.loads(line)["answer"] for line in out.splitlines()] == ["<v>5</v>", "<v>4</v>"]
    evolving = f"<r><i/>{accent}</r>"
    status, out, _ = run("query c.xq --stream s=s.xml --timeline", c_xq="count(stream('s')/r/i)", s_xml=evolving)
    assert (status, [json.loads(line)["answer"] for line in out.splitlines()]) == (0, ["1"])


def test_what_spark_cannot_answer_yet(run: Run) -> None:
    """Who insists on Spark is told, before anything is started; else the reference answers, and a note says why."""
    line = "query q.xq --stream tickers=t.xml --stream s=s.xml"
    query = "stream('tickers')//quote#1, stream('s')//i"
    status, _, err = run(f"{line} --engine spark", q_xq=query, t_xml=TICKERS, s_xml="<r><i/></r>")
    assert status == 1
    assert "q.xq:1:29: how much of a stream of items this needs, beside a stream of updates" in err
    status, out, err = run(line)
    assert (status, out) == (0, "<quote>100</quote><i/>\n")
    assert "is not known beforehand: the reference engine answers 'q'" in err
    of_windows = "let $w := (for $w in stream('s')/r/i|count 1| return $w) return $w/n"
    status, _, err = run("query n.xq --stream s=s.xml --timeline --engine spark", n_xq=of_windows)
    assert status == 1
    assert "n.xq:1:1: what has no answer before the end of a stream has no timeline on Spark" in err


# --- which files are edited -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "updates"),
    [
        ("<r><i>mutable target</i></r>", False),
        ('<r xmlns:s="urn:anabranch:stream"><s:accent><s:drop path="target"/></s:accent></r>', False),
        ('<r xmlns:s="urn:anabranch:stream"><i><b><s:mutable id="1"/></b></i></r>', True),
        ('<r xmlns:x="urn:anabranch:stream"><x:replace target="1"/></r>', True),
        ('{"a": {"$mutable": {"id": "1", "content": 1}}}\n', True),
        ('{"a": "$mutable"}\n', False),
        ('<r><i xmlns:s="urn:anabranch:stre&#97;m"><b><s:mutable id="1"/></b></i></r>', True),
        ('<r><i xmlns:s="urn:anabranch:stre&#x61;m"><b>mutable</b></i></r>', False),
        ('{"a": {"\\u0024mut\\u0061ble": {"id": "1", "content": 1}}}\n', True),
        ('{"\\u0024repl\\u0061ce": {"t\\u0061rget": "1"}}\n', True),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_looking_into_files(tmp_path: Path, text: str, updates: bool, packed: bool) -> None:
    """A stream is one of updates if it holds a region or an update (LAWS 5.1), however it is packed."""
    file = tmp_path / "s"
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert looked_into(Source("s", file), Limits()).updates is updates


def test_a_site_says_which_streams_are_edited(tmp_path: Path) -> None:
    """`updates = true` is part of what a stream is."""
    (tmp_path / "in").mkdir()
    site = tmp_path / "SITE.toml"
    site.write_text(
        '[engine]\ncheckpoint = "state"\n[streams.s]\npath = "in"\nupdates = true\n[streams.t]\npath = "in"\n'
    )
    assert {name: each.updates for name, each in read_site(site).streams.items()} == {"s": True, "t": False}


# --- the page ---------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_session_on_the_page(run: Run) -> None:
    """Each command that docs/history.md shows prints what stands there; its files are those of the page."""
    page = list(blocks(TOP / "docs/history.md"))
    files = {
        "tickers_xml": next(each.text for each in page if each.options.get("stream") == "tickers"),
        "movers_xq": next(each.text for each in page if each.kind == "xquery" and "#1" in each.text),
        "earlier_xq": next(each.text for each in page if each.kind == "xquery" and "quote?60 > 75" in each.text),
    }
    sessions = [each for each in page if each.kind == "console"]
    assert sessions
    for session in sessions:
        lines: list[str] = []
        for command in [each for each in session.text.split("\n") if each.startswith("$ ")]:
            status, out, _ = run(command.removeprefix("$ anabranch "), **files)
            assert status == 0
            lines += [command, *out.removesuffix("\n").split("\n")]
        show(session, "\n".join(lines))
