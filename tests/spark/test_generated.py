"""Generated queries on Spark: whatever the epochs and the form of the input, the answers are the law's."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from anabranch.errors import QueryError, Unsupported
from anabranch.language import check, parse
from anabranch.reference import evaluate, stream_input
from anabranch.reference.per_item import per_item
from anabranch.spark.trunk import run_queries
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.serialize import serialize
from anabranch.stream.source import Source, read
from oracle.generate import case

WANTED = 150
BROKEN = ("<i><a>1</b></i>", "<i><a>&undefined;</a></i>")


def _queries() -> dict[str, str]:
    """Generated queries that answer item by item; all of them read the stream 's'."""
    found: dict[str, str] = {}
    for number in range(2_000):
        text = case("items", number).query
        try:
            per_item(check(parse(text), text, inputs={"s": None}).query)
        except (Unsupported, QueryError):  # other shapes, and other inputs
            continue
        found[f"q{number}"] = text
        if len(found) == WANTED:
            return found
    raise AssertionError("too few generated queries answer item by item")


def _items(folder: Path) -> list[str]:
    """The items of many generated streams, with broken ones among them."""
    items: list[str] = []
    for number in range(40):
        file = folder / f"{number}.xml"
        file.write_text(case("items", number).inputs["s"], encoding="utf-8")
        items += [serialize(each.tree) for each in read(Source("s", file), Limits()) if isinstance(each, Item)]
    for place, broken in enumerate(BROKEN):
        items.insert(7 * (place + 1), broken)
    return items


@pytest.mark.spark
@pytest.mark.parametrize("form", ["lines", "document"])
def test_generated_queries_on_spark(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Answers and dead letters of 150 subscriptions equal the reference's, with epochs of some random size."""
    (tmp_path / "cases").mkdir()
    items = "".join(f"{item}\n" for item in _items(tmp_path / "cases"))
    file = tmp_path / "stream"
    file.write_text(items if form == "lines" else f"<r>\n{items}</r>\n", encoding="utf-8")
    source = Source("s", file, "lines" if form == "lines" else "document", root="r")
    queries = _queries()
    epoch_bytes = Random(form).randrange(800, 3_000)

    outcome = run_queries(spark, [source], queries, tmp_path / "work", epoch_bytes=epoch_bytes)

    contents = read(source, Limits())
    stream, dead = stream_input(contents.root, [contents])
    for name, text in queries.items():
        expected = evaluate(check(parse(text), text, inputs={"s": None}).query, {"s": stream}, name=name)
        assert outcome.answers[name].text() == expected.text, text
        dead += expected.dead
    assert outcome.progress.epochs > 2
    assert set(outcome.dead_letters()) == set(dead)
    assert len({letter.place for letter in dead if letter.subscription is None}) == len(BROKEN)
