"""Queries through one streaming query on Spark: the answers are those of the reference."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch.errors import QueryError
from anabranch.language import check, parse
from anabranch.law import Input, evaluate, stream_input
from anabranch.law.calls import PythonFunction
from anabranch.spark.epoch.finite import Outcome, RunProgress, run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source, read
from anabranch.stream.settings import Settings
from papers import Q3, Q4

KIN = {
    "rxj": Q3,
    "vela": Q4,
    "soft": """<r>{ for $p in stream("photons")/photons/photon
        return if ($p/en < 0.5) then <soft n="{$p/phc}">{ $p/coord/cel }</soft> else () }</r>""",
    "nested": """<a><b>{ for $p in stream("photons")/photons/photon[en > 2]
        let $c := $p/coord
        return <hit><at>{ $c/cel/ra, $c/cel/dec }</at><on>{ $c/det/dx/text() }</on></hit> }</b></a>""",
    "bare": """stream("photons")/photons/photon[phc = 17]/en""",
    "none": """<none>{ for $p in stream("photons")/photons/photon where $p/en > 1000 return $p }</none>""",
}


def agree(
    outcome: Outcome,
    sources: list[Source],
    queries: Mapping[str, str],
    functions: Mapping[str, PythonFunction] | None = None,
) -> None:
    """The answers are the reference's, and so is what was set aside, of the input and in the evaluation."""
    inputs: dict[str, Input] = {}
    dead: list[DeadLetter] = []
    for source in sources:
        contents = read(source, Limits())
        inputs[source.name], bad = stream_input(contents.root, [contents])
        dead += bad
    for name, text in queries.items():
        known = {source.name: None for source in sources}
        query = check(parse(text), text, inputs=known, functions=tuple(functions or ())).query
        expected = evaluate(query, inputs, functions=functions, name=name)
        dead += expected.dead
        assert outcome.answers[name].text() == expected.text, name
    assert sorted(map(essence, outcome.dead_letters())) == sorted(map(essence, dead))


def essence(letter: DeadLetter) -> tuple[str, str, int, str]:
    return (letter.subscription or "", letter.place.stream, letter.place.offset, f"{letter.reason} {letter.code}")


def test_lines_are_answered_in_order_by_several_tasks_and_epochs(spark: SparkSession, tmp_path: Path) -> None:
    """Six queries from one parse of 1,500 photons, two ranges at a time, with broken lines on the way."""
    path = tmp_path / "photons"
    lines = [photon.strip() + " " * 700 for photon in photons(1_500, seed=7)]  # few items that fill several ranges
    lines[100] = "<photon><en>1.5</photon>"
    lines[1_300] = "rubbish"
    lines[1_499] = "<photon>&bomb;</photon>"
    path.write_text("\n".join(lines))
    seen: list[RunProgress] = []
    source = Source("photons", path, root="photons")
    outcome = run_queries(
        SparkHost(spark), [source], KIN, tmp_path / "work", Settings(epoch_bytes=1_200_000), on_progress=seen.append
    )

    agree(outcome, [source], KIN)
    assert outcome.answers["none"].text() == "<none/>"
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    assert [letter.place.offset for letter in outcome.dead_letters()] == [starts[100], starts[1_300], starts[1_499]]

    assert [progress.epochs for progress in seen] == [1, 2]
    assert 0 < seen[0].items < seen[1].items == 1_500 - 3
    assert seen[1].bytes_read == seen[1].bytes_total == path.stat().st_size
    assert seen[1].dead_letters == 3
    assert seen[1].answers == {name: answer.entries for name, answer in outcome.answers.items()}
    assert seen[1].samples["vela"].startswith("<vela><ra>")
    assert outcome.progress == seen[1]


def test_a_document_goes_on_where_the_epoch_before_ended(spark: SparkSession, tmp_path: Path) -> None:
    """Epochs that end within items, a namespace from the root, broken markup, and a root that never closes."""
    path = tmp_path / "photons.xml"
    items = [photon.strip() for photon in photons(60, seed=1)]
    items[20] = "<photon><en>2.2</en>"  # never closed: this one is lost, the next is not
    items[40] = "<n:photon><en>2.3</en></n:photon>"
    path.write_text('<?xml version="1.0"?>\n<photons xmlns:n="urn:n">' + "\n".join(items))
    queries = {
        "vela": Q4,
        "all": """<all>{ for $p in stream("photons")/photons/* return <p>{ $p/en }</p> }</all>""",
        "other": """declare namespace m = "urn:n"; <o>{ stream("photons")/photons/m:photon }</o>""",
    }
    source = Source("photons", path)
    outcome = run_queries(SparkHost(spark), [source], queries, tmp_path / "work", Settings(epoch_bytes=2_500))
    agree(outcome, [source], queries)
    assert outcome.progress.epochs > 3
    assert outcome.progress.items == 59
    assert [letter.reason for letter in outcome.dead_letters()] == ["'photon' is not closed before the next one starts"]


def test_two_streams_in_files_packed_and_plain_are_one_trunk(spark: SparkSession, tmp_path: Path) -> None:
    """A directory of plain and packed files beside a stream of JSON: each query sees its own stream, whole."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        data = "".join(f"<p><n>{number * 10 + n}</n></p>\n" for n in range(10)).encode()
        (folder / f"{number}").write_bytes(gzip.compress(data) if number == 1 else data)
    records = tmp_path / "records"
    records.write_text('{"n": 1.30}\n{"n": [2, 3]}\n{"n": {"n": 4}}\n')
    queries = {
        "xml": """<r>{ for $p in stream("a")/root/p return $p/n }</r>""",
        "json": """<r>{ for $p in stream("b")/root/item where $p/n > 1.2 return $p/n }</r>""",
        "deep": """<r>{ stream("b")//n[. < 4] }</r>""",
    }
    sources = [Source("a", folder), Source("b", records), Source("unread", tmp_path / "not there")]
    outcome = run_queries(SparkHost(spark), sources, queries, tmp_path / "work")
    agree(outcome, sources[:2], queries)
    assert outcome.answers["xml"].text() == "<r>" + "".join(f"<n>{n}</n>" for n in range(30)) + "</r>"
    assert outcome.progress.items == 33


@pytest.mark.parametrize("count", [2, 5])
def test_finite_partitions_come_one_after_the_other(spark: SparkSession, tmp_path: Path, count: int) -> None:
    """Without a time all elements have time 0 (LAWS 1.3), so the first partition comes before the second."""
    paths = [tmp_path / f"part{number}" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text("".join(f"<p><n>{number * 10 + n}</n></p>\n" for n in range(10)))
    source = Source("s", paths[0], format="lines", more=tuple(paths[1:]))
    queries = {"q": """<r>{ for $p in stream("s")/root/p where $p/n mod 3 = 0 return $p/n }</r>"""}
    outcome = run_queries(SparkHost(spark), [source], queries, tmp_path / "work", Settings(epoch_bytes=70))
    agree(outcome, [source], queries)
    assert outcome.progress.items == 10 * count
    assert outcome.progress.epochs > count


def test_a_dynamic_error_concerns_one_subscription_and_one_item(spark: SparkSession, tmp_path: Path) -> None:
    """LAWS 2.4: the failing item gives nothing there and a dead letter with the W3C code; others do not notice.

    One of the others calls a registered Python function, which reaches the tasks.
    """
    path = tmp_path / "in"
    path.write_text("<p><en>1</en></p>\n<p><en>no number</en></p>\n<p><en>3</en></p>\n")
    queries = {
        "sums": """<r>{ for $p in stream("s")/root/p return <e>{ $p/en + 1 }</e> }</r>""",
        "copies": """<r>{ for $p in stream("s")/root/p return $p/en }</r>""",
        "calls": """<r>{ for $p in stream("s")/root/p where twice($p/en) > 2 return $p }</r>""",
    }
    functions: dict[str, PythonFunction] = {"twice": lambda value: value * 2 if isinstance(value, float) else None}
    source = Source("s", path)
    outcome = run_queries(SparkHost(spark), [source], queries, tmp_path / "work", functions=functions)
    agree(outcome, [source], queries, functions)
    assert outcome.answers["calls"].text() == "<r><p><en>3</en></p></r>"
    assert outcome.answers["sums"].text() == "<r><e>2</e><e>4</e></r>"
    (letter,) = outcome.dead_letters()
    assert (letter.subscription, letter.code, letter.place.offset) == ("sums", "FORG0001", 18)
    assert letter.raw == "<p><en>no number</en></p>"


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        ('<s:replace xmlns:s="urn:anabranch:stream" target="1"/>', "an update"),
        ('<p><s:mutable xmlns:s="urn:anabranch:stream" id="1"><en>2</en></s:mutable></p>', "a region inside an item"),
    ],
)
def test_what_a_stream_does_not_take_is_set_aside(spark: SparkSession, tmp_path: Path, element: str, kind: str) -> None:
    """LAWS 2.5: an update, or a region inside an item, in a stream of items; the others are answered."""
    path = tmp_path / "in"
    path.write_text(f"<p><en>1</en></p>\n{element}\n<p><en>3</en></p>\n")
    query = """<r>{ for $p in stream("s")/root/p return $p/en }</r>"""
    outcome = run_queries(SparkHost(spark), [Source("s", path)], {"q": query}, tmp_path / "work")
    assert outcome.answers["q"].text() == "<r><en>1</en><en>3</en></r>"
    (letter,) = outcome.dead_letters()
    reason = f"{kind} stands in a stream of items: one that is edited needs 'updates = true'"
    assert (letter.place.offset, letter.reason, letter.raw) == (18, reason, element)


def test_an_empty_stream_has_an_empty_answer(spark: SparkSession, tmp_path: Path) -> None:
    """No bytes, no items, and an answer all the same."""
    path = tmp_path / "in"
    path.touch()
    outcome = run_queries(SparkHost(spark), [Source("photons", path)], {"vela": Q4}, tmp_path / "work")
    assert outcome.answers["vela"].text() == "<photons/>"
    assert outcome.progress.items == 0


def test_a_failing_epoch_ends_the_run_with_its_own_error(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever is raised in an epoch comes back as itself, and Spark takes the epoch as not done."""
    path = tmp_path / "in"
    path.write_text("<p/>\n")

    def fail(progress: RunProgress) -> None:
        raise KeyError("the display broke")

    with pytest.raises(KeyError, match="the display broke"):
        run_queries(
            SparkHost(spark), [Source("s", path)], {"q": 'stream("s")/root/p'}, tmp_path / "work", on_progress=fail
        )
    assert not list((tmp_path / "work" / "scratch" / "spark" / "commits").glob("[0-9]*"))


def test_a_query_that_spark_cannot_answer_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    """An unknown stream is an error in the text."""
    path = tmp_path / "in"
    path.write_text("<p/>\n")
    with pytest.raises(QueryError, match="no input is called 'photons'"):
        run_queries(SparkHost(spark), [Source("p", path)], {"q": Q4}, tmp_path / "work")
    assert not (tmp_path / "work").exists()
