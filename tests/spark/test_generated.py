"""Generated queries on Spark and in this process: the answers are the law's.

So it is whatever the epochs, shards, partitions and forms of input are.

Many queries share one trunk, so what one of them does to another would show as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from pyspark.sql import SparkSession

from anabranch.errors import QueryError, Unsupported
from anabranch.language import check, parse
from anabranch.law import evaluate, stream_input
from anabranch.runtime.standing import standing
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import late_places
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.finite import run_queries
from anabranch.spark.hosts.host import Host
from anabranch.spark.hosts.local_host import LocalHost
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source, read
from anabranch.stream.serialize import serialize
from anabranch.stream.settings import Settings
from mass import sized, some
from oracle.generate import Writer, case
from partitions import read_partitions

BROKEN = ("<i><a>1</b></i>", "<i><a>&undefined;</a></i>")
PUNCTUATION = '<s:punctuation xmlns:s="urn:anabranch:stream" {}/>'


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried together; streams of several partitions have a declared time, and some slack."""

    family: Literal["items", "windows", "joins", "groups", "positions"]
    queries: int
    form: Literal["lines", "document"]
    partitions: int
    shards: int

    def __str__(self) -> str:
        return f"{self.family}-{self.form}-{self.partitions}-{self.shards}"


TRIALS = (
    Trial("items", 100, "lines", 1, 2),
    Trial("items", 40, "document", 3, 7),
    Trial("windows", 60, "document", 1, 1),
    Trial("windows", 60, "lines", 3, 2),
    Trial("joins", 40, "lines", 1, 7),
    Trial("joins", 40, "lines", 3, 2),
    Trial("groups", 40, "lines", 3, 2),
    Trial("positions", 60, "document", 1, 2),
)
LOCAL_TRIALS = (
    Trial("groups", sized(25, fast=8), "document", 3, 3),
    Trial("positions", sized(40, fast=15), "lines", 3, 2),
    Trial("groups", 25, "lines", 1, 1),
    Trial("positions", 25, "document", 1, 1),
)


def _queries(trial: Trial, streams: Sequence[str]) -> dict[str, str]:
    """Generated queries of one family over these streams; of those that only wait for the end, a few."""
    found: dict[str, str] = {}
    for number in range(2_000):
        text = case(trial.family, number).query
        try:
            kind = standing(check(parse(text), text, inputs=dict.fromkeys(streams)).query).kind
        except (Unsupported, QueryError):  # other inputs, and what is never answered
            continue
        if kind != "whole" or number % 10 == 0:
            found[f"q{number}"] = text
        if len(found) == trial.queries:
            return found
    raise AssertionError("too few generated queries can be answered")


def _contents(trial: Trial, folder: Path) -> dict[str, list[str]]:
    """The elements of the streams: for windows and joins such that rise, with punctuations among them."""
    if trial.family == "items":
        items = [item for number in range(40) for item in _items(case("items", number).inputs["s"], folder)]
        for place, broken in enumerate(BROKEN):
            items.insert(7 * (place + 1), broken)
        return {"s": items}
    names, count = ("pqr", 15) if trial.family == "joins" else ("s", 45)
    return {name: list(_punctuated(_items(_long_stream(name, count), folder))) for name in names}


def _long_stream(name: str, count: int) -> str:
    """A generated stream that has so many items, or a few more."""
    texts = (Writer(Random(f"{name} {number}")).stream(count + 5) for number in range(1_000))
    return next(text for text in texts if text.count("<i ") >= count)


def _items(text: str, folder: Path) -> list[str]:
    file = folder / "case.xml"
    file.write_text(text, encoding="utf-8")
    return [serialize(each.tree) for each in read(Source("s", file), Limits()) if isinstance(each, Item)]


def _punctuated(items: Sequence[str]) -> Iterator[str]:
    """Items, and now and then a word on what no longer follows, which may close windows early or change nothing."""
    for number, item in enumerate(items):
        yield item
        time = re.search("<t>([0-9.]+)</t>", item)
        if number % 6 == 5 and time:
            said = (f'where="t &lt; {time[1]}"', f'at="{time[1]}"', f'where="t &lt;= {time[1]} and a = 5"')
            yield PUNCTUATION.format(said[number // 6 % 3])


def _source(trial: Trial, name: str, elements: Sequence[str], folder: Path) -> Source:
    """A stream on disk, its elements dealt out to its partitions."""
    random = Random(name)
    dealt: list[list[str]] = [[] for _ in range(trial.partitions)]
    for element in elements:
        random.choice(dealt).append(f"{element}\n")
    paths = []
    for number, part in enumerate(dealt):
        text = "".join(part)
        paths.append(folder / f"{name}-{number}")
        paths[-1].write_text(text if trial.form == "lines" else f"<r>\n{text}</r>\n", encoding="utf-8")
    time, slack = (ItemPath.parse("t"), Fraction(1)) if trial.partitions > 1 else (None, Fraction(0))
    return Source(name, paths[0], trial.form, root="r", time=time, slack=slack, more=tuple(paths[1:]))


def _late(work: Path) -> set[str]:
    """All places that a run has noted as late."""
    checkpoint = Checkpoint.open(work)
    manifests = AnswerLog(checkpoint).manifests.since(0)
    return {line for manifest in manifests for line in late_places(checkpoint.segments, manifest.segments)}


@pytest.mark.spark
@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_generated_queries_on_spark(spark: SparkSession, tmp_path: Path, trial: Trial) -> None:
    """Answers, dead letters and late items of all subscriptions equal the reference's, with epochs of a random size."""
    _compare(SparkHost(spark), trial, tmp_path)


@pytest.mark.mass
@pytest.mark.parametrize("trial", some(LOCAL_TRIALS), ids=str)
def test_generated_queries_in_this_process(tmp_path: Path, trial: Trial) -> None:
    """The same where this process is the host."""
    _compare(LocalHost(), trial, tmp_path)


def _compare(host: Host, trial: Trial, tmp_path: Path) -> None:
    contents = _contents(trial, tmp_path)
    sources = [_source(trial, name, elements, tmp_path) for name, elements in contents.items()]
    queries = _queries(trial, list(contents))
    size = sum(len(element) for elements in contents.values() for element in elements)
    epoch_bytes = Random(str(trial)).randrange(size // 6, size // 3)

    outcome = run_queries(
        host, sources, queries, tmp_path / "work", Settings(epoch_bytes=epoch_bytes, shards=trial.shards)
    )

    dead, late = set(), set()
    inputs = {}
    for source in sources:
        root, partitions = read_partitions(source, Limits())
        inputs[source.name], bad = stream_input(root, partitions, time=source.time, slack=source.slack)
        dead |= set(bad)
    for name, text in queries.items():
        law = evaluate(check(parse(text), text, inputs=_unknown(inputs)).query, inputs, name=name)
        assert outcome.answers[name].text() == law.text, text
        dead |= set(law.dead)
        late |= {json.dumps(asdict(place), ensure_ascii=False) for place in law.late}
    assert outcome.progress.epochs > 2
    assert set(outcome.dead_letters()) == dead
    assert _late(tmp_path / "work") == late
    assert bool(late) == (trial.family != "items")


def _unknown(inputs: Mapping[str, object]) -> dict[str, None]:
    """Streams without a schema."""
    return dict.fromkeys(inputs)
