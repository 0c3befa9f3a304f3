"""The parts of the benches on sharing, windows, joins and intake measure what they say they do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from anabranch.bench import IN_PARTS, ingest, joins, sharing, windows
from anabranch.bench import run as run_bench
from anabranch.bench.forms import values_of
from anabranch.bench.harness import epochs, s3
from anabranch.bench.harness.epochs import check_with_law
from anabranch.bench.harness.timing import Clock, Rounds, Timings
from anabranch.bench.parts import pushed, shared_readings, stored, topics
from anabranch.bench.parts.near_joins import NearJoins
from anabranch.bench.parts.past_joins import RADAR, TRAFFIC, PastJoin
from anabranch.bench.workloads.forms import MIXED, mixture
from anabranch.bench.workloads.near_pairs import near_pairs
from anabranch.bench.workloads.photons import Q2, source, write_files
from anabranch.bench.workloads.ranges import rectangles, selected
from anabranch.bench.workloads.readings import ELEMENTS, FORMATS, ReadingKind, WireFormat, readings, write_readings
from anabranch.bench.workloads.sales import write_sales
from anabranch.bench.workloads.views import write_views
from anabranch.engine.reading import read_stream
from anabranch.errors import UsageError
from anabranch.language import check, parse
from anabranch.law import evaluate
from anabranch.law.inputs import Input
from anabranch.storage import Location
from anabranch.stream.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ONCE = Rounds(0, 1)


def _input(folder: Path, wire: WireFormat, items: int, kind: ReadingKind = "plain") -> Input:
    write_readings(folder / "readings", wire, items, kind)
    return read_stream(wire.source(folder / "readings"), Limits()).input


def _values(query: str, given: Input) -> list[tuple[str, ...]]:
    answer = evaluate(check(parse(query), query).query, {"readings": given}).text
    return values_of(answer.removeprefix("<hits>").removesuffix("</hits>")) if answer != "<hits/>" else []


@pytest.mark.parametrize("name", [each for each in IN_PARTS if each != "forms"])
def test_a_part_that_there_is_not_is_refused(name: str) -> None:
    """Before anything is started, and with a hint at what there is."""
    with pytest.raises(UsageError, match="no part 'nothing of it'") as raised:
        run_bench(name, only=["nothing of it"])
    assert raised.value.hint is not None


@pytest.mark.parametrize("text", [RADAR, TRAFFIC], ids=["query 4", "query 5"])
def test_joins_of_the_past_show_the_same_anew(text: str) -> None:
    """Events meet others in about as many pairs as there are events, and both ways of answering show the same."""
    changed, anew = PastJoin(text, 8).fill(), PastJoin(text, 8, anew=True).fill()
    assert changed.round(3) > 0
    assert anew.round(3) > 0
    assert changed.shown == anew.shown
    assert 3 < changed.shown.count("<angle>" if text is RADAR else "<status>") // (2 if text is RADAR else 1) < 30


def test_a_mixture_has_as_many_of_each_form() -> None:
    """Ten thousand are ten thousand different queries, 588 or 589 of each form."""
    parts = mixture(10_000, 0.9)
    assert [each.form for each in parts] == list(MIXED)
    assert {each.count for each in parts} == {588, 589}
    queries = [text for part in parts for text in part.queries(ELEMENTS).values()]
    assert len(set(queries)) == len(queries) == 10_000


@pytest.mark.mass
def test_a_mixture_gives_the_answers_that_were_asked_for(tmp_path: Path) -> None:
    """About nine for ten readings; the summary of a form, by which it is checked, has what all of them have."""
    given = _input(tmp_path, ELEMENTS, 300, "repeated")
    codes = {str(dict(each.leaves)["code"]) for each in readings(300, "repeated")}
    answers = 0
    for part in mixture(17 * 4, 0.9):
        found = [each for query in part.queries(ELEMENTS).values() for each in _values(query, given)]
        summary = [each for query in part.summary(ELEMENTS, codes) for each in _values(query, given)]
        assert sorted(found) == sorted(summary), part.form.name
        answers += len(found)
    assert answers == pytest.approx(270, rel=0.1)


@pytest.mark.parametrize("wire", FORMATS, ids=lambda each: each.name)
@pytest.mark.mass
def test_rectangles_select_what_is_counted(wire: WireFormat, tmp_path: Path) -> None:
    """The law finds as many readings as are counted, about one for each reading in all."""
    given = _input(tmp_path, wire, 200)
    wanted = rectangles(30)
    found = [len(_values(each.query(wire), given)) for each in wanted]
    assert found == selected(wanted, readings(200))
    assert sum(found) == pytest.approx(200, rel=0.3)
    assert len(set(wanted)) == 30


def test_windows_are_measured(spark: SparkSession, tmp_path: Path) -> None:
    """Count windows are about as many as time windows, others are the same on both sides, empty epochs have nothing."""
    bench = windows.WindowsBench(spark, tmp_path, windows.WindowsScale(1_000, _ONCE, _ONCE, 4, _ONCE))
    counted, timed = bench.check_counted()
    assert counted == pytest.approx(timed, rel=0.1)
    several, one = bench.check_partitions()
    assert (len(several.partitions), len(one.partitions)) == (4, 1)
    write_sales(tmp_path / "sales", 3, 1_000, 50)
    assert windows.check_groups(spark, tmp_path / "sales", tmp_path / "groups") > 150
    write_views(tmp_path / "views", 3, 2_000, 100)
    assert windows.check_sessions(spark, tmp_path / "views", tmp_path / "sessions") > 100
    found = windows.compare_with_empty(spark, tmp_path / "empty", Rounds(1, 1), 200)
    assert (len(found.first), len(found.second)) == (2, 2)


def test_what_is_not_the_law_is_not_timed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that differs from the law's ends a bench."""
    write_files([tmp_path / "photons"], 2, 100)
    stream = source("photons", tmp_path / "photons")
    assert check_with_law(spark, [stream], Q2, tmp_path / "right").count("<avg_en>") > 3
    shorter = source("photons", tmp_path / "photons" / "photons-00000")
    monkeypatch.setattr(epochs, "read_stream", lambda _, limits: read_stream(shorter, limits))
    with pytest.raises(AssertionError, match="the law says"):
        check_with_law(spark, [stream], Q2, tmp_path / "wrong")


def test_joins_are_those_of_the_law(spark: SparkSession, tmp_path: Path) -> None:
    """A join of a stream with itself, and one of three streams."""
    assert joins.check_join(spark, joins.SELF, 1, tmp_path / "self") > 1_000
    assert joins.check_join(spark, joins.THREE, 3, tmp_path / "three") > 200


def test_joins_are_compared(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates are in photons and in answers; a join of a stream with itself has about as many pairs as q5."""
    monkeypatch.setattr(joins, "compare", _once)
    monkeypatch.setattr(joins, "check_join", lambda *_: 0)
    bench = joins.JoinsBench(spark, tmp_path, joins.JoinsScale(300, _ONCE, _ONCE, 500))
    bench.with_itself()
    found = bench.found["self_vs_q5"]
    assert isinstance(found, Mapping)
    answers, others = found["answers"], found["answers_other"]
    assert answers == pytest.approx(others, rel=0.1)
    assert bench.ratios == {"self_vs_q5": 1.5, "self_vs_q5_per_pair": 3 * answers / others}  # type: ignore[operator]


def test_interval_joins_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The same pairs of photons, and rounds of one join and of several over files whose times go on."""
    near = NearJoins(spark, tmp_path, 600)
    assert near.check(near_pairs(1)[0], 600) > 200
    assert near.many(3, Rounds(1, 1)).ratio > 0


def test_lookups_are_those_of_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders find the same products, whoever joins them, in both formats; all three ratios are there."""
    monkeypatch.setattr(joins, "compare", _once)
    assert joins.check_table(spark, "json", tmp_path / "few") > 900
    monkeypatch.setattr(joins, "check_table", lambda *_: 0)
    bench = joins.JoinsBench(spark, tmp_path, joins.JoinsScale(300, _ONCE, _ONCE, 500))
    bench.table()
    assert bench.ratios == dict.fromkeys(("table_vs_spark", "table_vs_spark_json", "thousand_tables_vs_one"), 3.0)


def _once(first: Clock, second: Clock, *_: object) -> Timings:
    """One turn of both, and as if the first were three times as fast."""
    return Timings((first(),), (second(),), (3.0,))


def test_answers_for_each_item_are_compared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With q3, which is not measured where Spark has another number of rows."""
    monkeypatch.setattr(ingest, "compare", _once)
    bench = ingest.IngestBench(spark, tmp_path, 500, _ONCE)
    assert bench.answers().ratio == 3
    monkeypatch.setattr(ingest, "_Q3", "en >= 2")
    with pytest.raises(AssertionError, match="of Spark"):
        bench.q3()


def test_photons_that_are_pushed_are_measured(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the same in a file; both are answered alike."""
    monkeypatch.setattr(pushed, "compare", _once)
    found = ingest.IngestBench(spark, tmp_path, 2_500, _ONCE).pushed()
    assert found.ratio == 3
    assert all(seconds > 0 for seconds in (*found.first, *found.second))


def test_photons_in_a_store_are_measured(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the same on a disk, with the checkpoint on a disk and in the store; both are answered alike."""
    monkeypatch.setattr(stored, "compare", _once)
    bucket = Location.of(f"file+object://{tmp_path}/store")
    bench = ingest.IngestBench(spark, tmp_path, 500, _ONCE, bucket)
    for found in (bench.stored(), bench.stored_whole()):
        assert found.ratio == 3
        assert all(seconds > 0 for seconds in (*found.first, *found.second))
    assert {name.partition("/")[0] for name in bucket.names(below=True)} == {"in"}, "checkpoints are removed"


def test_without_an_s3_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The parts that need one are left out with a note, or refused where they were asked for."""
    monkeypatch.setattr(s3, "program", lambda: None)
    assert ingest._possible(["q3", "s3", "s3-checkpoint"], ()) == ["q3"]
    assert "without s3, s3-checkpoint: an S3 server is needed" in capsys.readouterr().err
    with pytest.raises(UsageError, match="an S3 server is needed, and there is none"):
        ingest._possible(["s3"], ["s3"])
    assert ingest._possible(["q3"], ["q3"]) == ["q3"]


@pytest.mark.s3
def test_the_server_of_the_bench() -> None:
    """It has an empty bucket that this process can write to."""
    with s3.served_bucket() as bucket:
        assert not bucket.names(below=True)
        (bucket / "a" / "b").put(b"x")
        assert (bucket / "a" / "b").read() == b"x"


def test_photons_in_topics_are_measured(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of many photons against files, which are answered alike, and of one against a loop."""
    monkeypatch.setattr(topics, "compare", _once)
    bench = ingest.IngestBench(spark, tmp_path, 2_000, _ONCE)
    for found in (bench.topics(), bench.messages()):
        assert found.ratio == 3
        assert all(seconds > 0 for seconds in (*found.first, *found.second))


def test_sharing_over_readings_is_measured(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mixture over both formats, conjunctions over both, and the most of all against many."""
    scale = sharing.SharingScale(2_000, (28,), (10,), 60, (9,), seeds=1)
    monkeypatch.setattr(sharing, "compare", _once)
    monkeypatch.setattr(shared_readings, "compare", _once)
    bench = sharing.SharingBench(spark, tmp_path, scale, _ONCE, _ONCE)
    bench.mixed()
    bench.ranges()
    bench.most()
    assert set(bench.ratios.values()) == {3}
    assert bench.ratios.keys() == {
        *("n28_mixed_vs_n1", "n28_mixed_json_vs_n1"),
        *("n9_ranges_json_vs_xml", "n60_vs_n28"),
    }
    rates = bench.figures()["items_per_second"]
    assert isinstance(rates, Mapping)
    assert rates.keys() == {"mixed", "mixed_json", "ranges_json", "ranges_xml", "one_answer"}
