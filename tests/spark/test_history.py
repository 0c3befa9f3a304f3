"""Update streams on Spark: what the law shows, moment by moment, whatever the epochs, shards and restarts (LAWS 5)."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

import anabranch
from anabranch.algebra.display.display import Remove
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.finite import run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.settings import Settings
from history.hosting import Case, Law, random_case, replayed
from history.test_joined_windows import QUERIES as JOINED
from history.test_joined_windows import edited_items

SEED = int(os.environ.get("ANABRANCH_SEED", "0"))
AROUND = '<s:mutable id="1" at="1"><b>X</b></s:mutable>'
"""A region with one result, from 1 on."""


def replace(id: int, content: str, at: str = "", own: str = "") -> str:
    when = f' at="{at}"' if at else ""
    return f'<s:replace target="{id}"{when}{own}>{content}</s:replace>'


NESTED = (
    '<s:mutable id="1"><a><s:mutable id="2" at="1"><b>X</b></s:mutable></a></s:mutable>'
    + replace(2, "<b>Y</b>", "2")
    + replace(1, "<a/>", "4")
    + '<s:punctuation at="10"/>'
)
DELETED = AROUND + replace(1, "", "3") + replace(1, "<b>Y</b>", "5")
LAWS: dict[str, tuple[str, str, str]] = {
    # case 26
    "26 ?3": (AROUND + replace(1, "<b>Y</b>", "2") + '<s:punctuation at="5"/>', "b?3", "<b>Y</b>"),
    "26 ?3.5": (AROUND + replace(1, "<b>Y</b>", "2") + '<s:punctuation at="5"/>', "b?3.5", "<b>X</b>"),
    "26 ?4.5": (AROUND + replace(1, "<b>Y</b>", "2") + '<s:punctuation at="5"/>', "b?4.5", ""),
    "26 ?[3]": (AROUND + replace(1, "<b>Y</b>", "2") + '<s:punctuation at="5"/>', "b?[3]", "<b>Y</b>"),
    "27 #1/b": (NESTED, "a#1/b", "<b>Y</b>"),
    "27 #1/b#1": (NESTED, "a#1/b#1", "<b>X</b>"),
    "27 ?8.5": (NESTED, "a#1/b?8.5", "<b>X</b>"),
    "27 ?2": (NESTED, "a#1/b?2", ""),
    "28 e#1": (DELETED, "b#1", ""),
    "28 e#[2]": (DELETED, "b#[2]", "<b>Y</b><b>X</b>"),
    "29": (
        '<s:mutable id="1"><b>x</b></s:mutable>'
        '<s:after target="1" id="2"><b>z1</b></s:after><s:after target="1" id="3"><b>z2</b></s:after>'
        '<s:before target="1" id="4"><b>w1</b></s:before><s:before target="1" id="5"><b>w2</b></s:before>'
        + replace(1, "<b>y</b>"),
        "b",
        "<b>w1</b><b>w2</b><b>y</b><b>z2</b><b>z1</b>",
    ),
    "31 b#2": (
        '<s:mutable id="3"><b>X</b></s:mutable>' + replace(3, "<b>Y</b>") + replace(3, "<b>Z</b>"),
        "b#2",
        "<b>X</b>",
    ),
    "32": (
        '<a><s:mutable id="1"><b>1</b></s:mutable><s:mutable id="2"><b>2</b></s:mutable></a>' + replace(2, "<b>3</b>"),
        "a/b#1",
        "<b>2</b>",
    ),
}


def cases() -> dict[str, Case]:
    """The laws' cases, joined windows, and random ones; some have their streams in common."""
    found = {
        f"law{number}": Case(f'stream("law{number}")/root/{path}', {f"law{number}": [stream]})
        for number, (stream, path, _) in enumerate(LAWS.values())
    }
    found["max"] = Case(
        'max(stream("max")/root/b)',
        {"max": ["".join(f'<b><s:mutable id="{n}">{n}</s:mutable></b>' for n in (9, 5, 7)) + replace(9, "1")]},
    )
    edited = {name: [edited_items(Random(f"{name} {SEED}"))] for name in ("js", "jt")}
    for number, text in enumerate(JOINED):
        query = text.replace('"s"', '"js"').replace('"t"', '"jt"')
        found[f"joined{number}"] = Case(query, {name: edited[name] for name in edited if f'"{name}"' in query})
    first = 10_000 * SEED + 1_000
    made = ((f"q{number}", random_case(number, share=5)) for number in range(first, first + 220))
    return {**found, **{name: each for name, each in made if each is not None}}


def test_update_streams(spark: SparkSession, tmp_path: Path) -> None:
    """Cases 26 to 32, joined windows and random ones: the display after every moment is that of the law."""
    mine = cases()
    sources = {name: each.sources(tmp_path) for name, each in mine.items()}
    random = Random(SEED)
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_queries(
        SparkHost(spark),
        list({each.name: each for several in sources.values() for each in several}.values()),
        {name: each.query for name, each in mine.items()},
        work,
        Settings(epoch_bytes=random.choice((12_000, 20_000)), shards=random.choice((2, 3))),
    )
    log = AnswerLog(Checkpoint.at(work))
    assert len(mine) > 200
    assert outcome.progress.epochs > 1
    for name, case in mine.items():
        law = Law.of(case, sources[name])
        assert replayed(log, name) == law.shown, case
        if law.answer is not None:
            assert outcome.answers[name].text() == law.answer, case
    for number, (_, _, expected) in enumerate(LAWS.values()):
        assert outcome.answers[f"law{number}"].text() == expected, list(LAWS)[number]
    assert [text for _, text in replayed(log, "max")] == ["9", "7"]


RISEN = """
<risen>{
  for $t in stream("s")/root/t where $t/q >= $t/q#1 * 1.1 order by $t/q descending return <r>{ $t/n, $t/q }</r>
}</risen>
"""
N = 'xmlns:s="urn:anabranch:stream"'


def ticker(name: str, quote: int, at: int) -> str:
    return f'<t {N} s:at="{at}"><n>{name}</n><s:mutable id="{name}"><q>{quote}</q></s:mutable></t>\n'


def quoted(name: str, quote: int, at: int) -> str:
    return f'<s:replace {N} target="{name}" at="{at}"><q>{quote}</q></s:replace>\n'


def test_a_ticker_through_the_engine(spark: SparkSession, tmp_path: Path) -> None:
    """Query 2 in strands, stopped and gone on with, asked again from a sink, and with one that comes late."""
    folder, told = tmp_path / "in", tmp_path / "told.xml"
    folder.mkdir()
    (folder / "1").write_text(ticker("A", 100, 1) + ticker("B", 50, 2) + quoted("A", 120, 3))
    risen = "<r><n>A</n><q>120</q></r>"
    with anabranch.Engine(
        spark, checkpoint=tmp_path / "state", once=True, epoch_bytes=200, shards=1, strands=2
    ) as engine:
        engine.stream("s", folder, updates=True, format="lines")
        sub = engine.subscribe(RISEN, name="risen", sink=told)
        assert sub.answer() == f"<risen>{risen}</risen>"
        assert 'stream "s": 1 subscription' in str(engine.explain())
        assert "2 versions" in str(engine.explain())
    (folder / "2").write_text(quoted("C", 1, 4) + quoted("B", 60, 5) + quoted("A", 121, 6))
    with anabranch.Engine(spark, checkpoint=tmp_path / "state", once=True, epoch_bytes=100, shards=4) as engine:
        engine.stream("s", folder, updates=True, format="lines")
        sub = engine.subscribe(RISEN, name="risen", sink=told)
        late = engine.subscribe('stream("s")/root/t/q#[5]', name="late")
        shown = sub.display()
        texts = [(str(each.at), shown.text) for each in shown if each.edits]
        assert texts == [
            ("1", "<risen/>"),
            ("3", f"<risen>{risen}</risen>"),
            ("5", f"<risen>{risen}<r><n>B</n><q>60</q></r></risen>"),
            ("6", "<risen><r><n>B</n><q>60</q></r></risen>"),
        ]
        assert shown.changes == (Remove(7, len(risen)),)
        assert late.answer() == "<q>121</q><q>120</q><q>60</q><q>50</q>"
        assert str(engine.explain()).count("display in 2 strands of s") == 2
        assert "B" in shown._repr_html_()
        assert sub.answer() == shown.text
        assert [each.reason for each in engine.log.dead_letters()] == ["no region is called 'C'"]
    with anabranch.Engine(spark, once=True) as engine:
        engine.stream("t", told, updates=True)
        assert engine.subscribe('stream("t")/answer/risen').answer() == "<risen><r><n>B</n><q>60</q></r></risen>"
