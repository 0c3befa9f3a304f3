"""The benches on forms, of one subscription and of thousands, measure what they say they do."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from anabranch.bench import forms
from anabranch.bench import run as run_bench
from anabranch.bench.forms import FormsBench, FormsScale, chosen, values_of, values_of_lines
from anabranch.bench.harness.timing import Rounds
from anabranch.bench.workloads.forms import FORMS, CodeWord, QueryForm
from anabranch.bench.workloads.readings import (
    ELEMENTS,
    FORMATS,
    JSON_DOTS,
    JSON_LINES,
    JSON_SQL,
    ReadingKind,
    WireFormat,
    readings,
    write_readings,
)
from anabranch.engine.reading import read_stream
from anabranch.errors import UsageError
from anabranch.language import check, parse
from anabranch.law import evaluate
from anabranch.law.inputs import Input
from anabranch.stream.limits import Limits
from mass import Mass, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ITEMS = 150


def _input(folder: Path, wire: WireFormat, kind: ReadingKind) -> Input:
    write_readings(folder / "in" / "readings", wire, _ITEMS, kind)
    found = read_stream(wire.source(folder / "in"), Limits())
    assert not found.dead
    return found.input


def _values(query: str, given: Input) -> list[tuple[str, ...]]:
    """The values of an answer, whether it is lines of JSON or elements."""
    answer = evaluate(check(parse(query), query).query, {"readings": given}).text
    if not answer.startswith("<hits"):
        return values_of_lines(answer)
    return values_of(answer.removeprefix("<hits>").removesuffix("</hits>")) if answer != "<hits/>" else []


_SPELLED = [(each, wire) for each in FORMS for wire in (JSON_DOTS, JSON_SQL) if each.is_written_for(wire)]


@pytest.mark.parametrize(("form", "wire"), some(_SPELLED), ids=lambda each: each.name)
def test_dots_and_sql_ask_what_paths_ask(form: QueryForm, wire: WireFormat, tmp_path: Path) -> None:
    """The same values come out, in objects; forms without a spelling are few."""
    given = _input(tmp_path, wire, form.readings)
    found = _values(form.one(wire)["one"], given)
    assert sorted(found) == sorted(_values(form.one(JSON_LINES)["one"], given))
    assert 0.1 * _ITEMS < len(found) < 0.35 * _ITEMS


def test_most_forms_have_all_spellings() -> None:
    """With dots all but what is at any depth or at a place that is counted, in SQL all but that and rows in rows."""
    without = {"descendants", "last_position", "leading_positions"}
    assert {each.name for each in FORMS if not each.is_written_for(JSON_DOTS)} == without
    rows = {"quantifier", "nested_for", "first_position"}
    assert {each.name for each in FORMS if not each.is_written_for(JSON_SQL)} == without | rows


@pytest.mark.parametrize(
    "wire",
    [pytest.param(each, marks=pytest.mark.mass) if each is not ELEMENTS else each for each in FORMATS],
    ids=lambda each: each.name,
)
@pytest.mark.parametrize("form", some(FORMS), ids=lambda each: each.name)
def test_many_share_out_what_one_selects(form: QueryForm, wire: WireFormat, tmp_path: Path) -> None:
    """The one selects about a fifth; those with different constants give the same answers, each of them once."""
    given = _input(tmp_path, wire, form.readings)
    expected = _values(form.one(wire)["one"], given)
    assert 0.1 * _ITEMS < len(expected) < 0.35 * _ITEMS
    if isinstance(form.constants, CodeWord):
        codes = {str(dict(each.leaves)["code"]) for each in readings(_ITEMS)}
        queries = [query for query in form.many(wire, 1_000).values() if any(f'"{code}"' in query for code in codes)]
    else:
        queries = list(form.many(wire, 10).values())
    assert len(set(queries)) == len(queries) >= 10
    found = sorted(each for query in queries for each in _values(query, given))
    if form.name == "text_equality":  # other words, as many
        assert len(found) == len(expected)
    else:
        assert found == sorted(expected)


def test_formats_say_the_same() -> None:
    """A reading is about as long however it is written, half as long again where it is timed."""
    for kind in get_args(ReadingKind):
        for wire in FORMATS:
            lines = [wire.write(each) for each in readings(200, kind)]
            assert 130 < sum(map(len, lines)) / 200 / (1.45 if kind == "timed" else 1) < 190


def test_times_of_a_reading_are_one_moment() -> None:
    """A dateTime with milliseconds, and counts of 13, 16 and 19 digits; half of them are before `until`."""
    earlier = 0
    for each in readings(200, "timed"):
        leaves = dict(each.leaves)
        ts, until = (datetime.fromisoformat(str(leaves[name])) for name in ("ts", "until"))
        ms, us, ns = (int(leaves[unit]) for unit in ("ms", "us", "ns"))
        assert (ms, ms, us) == (round(ts.timestamp() * 1_000), us // 1_000, ns // 1_000)
        assert [len(str(count)) for count in (ms, us, ns)] == [13, 16, 19]
        earlier += ts < until
    assert 70 < earlier < 130


def test_parts_of_the_bench_are_chosen() -> None:
    """A form is all its formats; a form with a format is that alone; what there is not is refused."""
    assert len(chosen(())) == 23 * 3 + 20 + 17
    assert [(form.name, wire.name) for form, wire in chosen(["let", "plain.json"])] == [
        ("let", "elements"),
        ("let", "attributes"),
        ("plain", "json"),
        ("let", "json"),
        ("let", "json_dots"),
        ("let", "json_sql"),
    ]
    with pytest.raises(UsageError, match="no form 'plane'") as raised:
        chosen(["plane"])
    assert raised.value.hint == "did you mean 'plain'?"
    with pytest.raises(UsageError, match="has no parts"):
        run_bench("parse", only=["let"])


def test_what_is_short_of_its_goal_is_named(tmp_path: Path) -> None:
    """Each ratio has its goal; the median of all has one of its own."""
    bench = FormsBench(None, tmp_path, FormsScale(1, Rounds(0, 1), 1))
    bench.ratios.update(plain={"json": 1.4, "elements": 4.0}, let={"json": 0.9})
    bench.thousand.update(plain={"json": 0.59, "elements": 0.6})
    found = bench.figures()
    assert found["summary"] == {"ratio_least": 0.9, "ratio_median": 1.4, "thousand_least": 0.59}
    assert found["short_of_goal"] == {
        "ratios": {"plain.json": 1.4, "let.json": 0.9},
        "thousand": {"plain.json": 0.59},
        "ratio_median": {"all": 1.4},
    }


def test_forms_are_measured(spark: SparkSession, tmp_path: Path) -> None:
    """Plain Spark finds the same values, and there are ratios and rates of each form that was asked for."""
    bench = FormsBench(spark, tmp_path, FormsScale(200, Rounds(0, 1), 120, many=10))
    for form, wire in chosen(["plain.json", "nested_for.attributes"]):
        bench.compare(form, wire)
    assert bench.not_in_time == {}
    assert bench.ratios["plain"]["json"] > 0
    assert bench.thousand["nested_for"]["attributes"] > 0
    assert bench.rates["plain"]["json"].keys() == {"one", "spark", "thousand", "one_beside_thousand"}
    assert bench.answers["plain"]["json"] == pytest.approx(40, abs=20)


def test_every_form_finds_in_spark_what_it_finds_here(mass: Mass, spark: SparkSession, tmp_path: Path) -> None:
    """Both sides of each comparison select the same readings and compute the same values."""
    cells = chosen(())
    for number in mass.cases(len(cells)):
        form, wire = cells[number]
        folder = tmp_path / f"{form.name}.{wire.name}"
        given = _input(folder, wire, form.readings)
        rows = form.in_spark(wire, spark.read.text(str(folder / "in"))).collect()
        assert sorted(map(forms._comparable, rows)) == sorted(_values(form.one(wire)["one"], given)), form.name


def test_a_comparison_that_takes_too_long_is_broken_off(spark: SparkSession, tmp_path: Path) -> None:
    """What is not done in its time has no ratio, and stands among those that are not."""
    bench = FormsBench(spark, tmp_path, FormsScale(300, Rounds(0, 1), 0.0))
    bench.compare(*chosen(["plain.elements"])[0])
    assert (bench.ratios, bench.thousand) == ({}, {})
    assert bench.not_in_time == {"ratios": {"plain": {"elements": 0.0}}, "thousand": {"plain": {"elements": 0.0}}}
