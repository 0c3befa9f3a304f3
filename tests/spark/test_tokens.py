"""Streams of tokens on Spark, and on engines that are killed behind each step of an epoch (LAWS 5.11)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from pyspark.sql import SparkSession

from anabranch import Engine
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch import trunk as epochs
from anabranch.spark.epoch.finite import run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from anabranch.stream.tree import STREAM_NAMESPACE
from history.asking import Asked
from history.hosting import Case, Law, replayed
from history.in_tokens import TokenWriter, tokens
from history.test_tokens import SECTION_2, SECTION_3
from history.test_tokens_hosted import random_case
from history.test_tokens_json import TokenLines, in_json, query_of
from history.tokenized import Applied, events, random_stream, written
from mass import sized
from spark.trunks import Killed

QUERIES = {
    "all": '<all>{ stream("s")/root/* }</all>',
    "past": 'for $a in stream("s")//a return <r>{ $a/@k, count($a/*), $a/b#1 }</r>',
    "count": '<n>{ count(stream("s")//a), count(stream("s")//b#[1]) }</n>',
}


def cases() -> dict[str, Case]:
    """The paper's examples, streams that a list of events judges, and random ones."""
    found = {
        "two": Case('<o>{ stream("two")/root/text() }</o>', {"two": ["".join(tokens(events(SECTION_2)))]}),
        "three": Case('stream("three")/root/a/b#1', {"three": ["".join(tokens(events(SECTION_3), base="1"))]}),
    }
    for seed in range(10):
        text = "<s:open><doc/></s:open>" + "".join(tokens(random_stream(seed)))
        found[f"naive{seed}"] = Case(f'stream("naive{seed}")/root/doc/node()', {f"naive{seed}": [text]})
    made = ((f"q{number}", random_case(number)) for number in range(5_000, 5_000 + sized(60, fast=30)))
    return {**found, **{name: each for name, each in made if each is not None}}


@pytest.mark.spark
def test_streams_of_tokens(spark: SparkSession, tmp_path: Path) -> None:
    """The display after every token is that of the law, and the last that of updates applied naively."""
    mine = cases()
    sources = {name: each.sources(tmp_path) for name, each in mine.items()}
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_queries(
        SparkHost(spark),
        list({each.name: each for several in sources.values() for each in several}.values()),
        {name: each.query for name, each in mine.items()},
        work,
        Settings(epoch_bytes=15_000, shards=3),
    )
    assert outcome.progress.epochs > 1
    log = AnswerLog(Checkpoint.at(work))
    for name, case in mine.items():
        law = Law.of(case, sources[name])
        assert replayed(log, name) == law.shown, case
        if law.answer is not None:
            assert outcome.answers[name].text() == law.answer, case
    assert [text for _, text in replayed(log, "two")][1:] == ["<o>x</o>", "<o/>", "<o>y</o>", "<o>yz</o>", "<o>wyz</o>"]
    assert [text for _, text in replayed(log, "three")] == ["<b>X</b>", "<b>Y</b>", ""]
    for seed in range(10):
        naive = Applied()
        for event in random_stream(seed):
            naive.take(event)
        assert outcome.answers[f"naive{seed}"].text() == written(naive.content())


@pytest.mark.spark
def test_streams_of_tokens_in_json(spark: SparkSession, tmp_path: Path) -> None:
    """The same in lines of JSON (LAWS 7.6): what Spark shows is what the law shows of the lines, and of their XML."""
    sources, queries, texts = [], {}, {}
    for seed in range(sized(30, fast=15)):
        random, name = Random(seed), f"s{seed}"
        texts[name] = TokenLines(random).stream(40)
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in in_json(texts[name])))
        sources.append(Source(name, tmp_path / f"{name}.jsonl", "json", updates=True))
        queries[name] = query_of(random).replace('stream("s")', f'stream("{name}")')
    work = tmp_path / "work"
    work.mkdir()
    settings = Settings(epoch_bytes=15_000, shards=3)
    outcome = run_queries(SparkHost(spark), sources, queries, work, settings)
    assert outcome.progress.epochs > 1
    log = AnswerLog(Checkpoint.at(work))
    for source in sources:
        law = Law.of(Case(queries[source.name], {source.name: []}), [source])
        assert replayed(log, source.name) == law.shown, source.name
        assert law.shown == Asked(queries[source.name], **{source.name: texts[source.name]}).timeline()


def timed_tokens(kind: type[TokenWriter] = TokenWriter) -> list[str]:
    """A stream whose elements are all tokens, with a time each, so that no clock shows."""
    writer = kind(Random(8))
    found = [re.sub(r' (?:s:)?at="[^"]*"', "", writer.token()) for _ in range(60)]
    kept = [each for each in found if re.match("<s:(?!punctuation)", each)]
    return [re.sub(r"^<[\w:]+", rf'\g<0> xmlns:s="{STREAM_NAMESPACE}" at="{at}"', each) for at, each in enumerate(kept)]


def by_law(text: str) -> dict[str, str]:
    """What the law answers over a stream."""
    return {name: Asked(query, s=text).answer() for name, query in QUERIES.items()}


def killed_answers(
    folder: Path, given: list[str], run: Callable[[Path, Callable[[str, int], None]], dict[str, str]]
) -> tuple[dict[str, str], int]:
    """What is answered by engines of which each dies at another point, and how many died."""
    kills: set[tuple[str, int]] = set()

    def die(point: str, epoch: int) -> None:
        if (point, epoch) not in kills:
            kills.add((point, epoch))
            raise Killed

    (folder / "in").mkdir(parents=True)
    (folder / "in/1").write_text("".join(f"{line}\n" for line in given))
    found: dict[str, str] = {}
    while not found:
        found = run(folder, die)
    return found, len(kills)


@pytest.mark.mass
def test_no_kill_shows(tmp_path: Path) -> None:
    """An engine dies in one epoch after the other, behind each of its steps, while much is open."""
    given = timed_tokens()
    assert len(given) > 40
    found, kills = killed_answers(tmp_path, given, run)
    assert kills > 20
    assert found == by_law("".join(given))


@pytest.mark.mass
def test_no_kill_shows_in_json(tmp_path: Path) -> None:
    """The same with lines of JSON."""
    given = timed_tokens(TokenLines)
    assert len(given) > 30
    lines = [line for each in given for line in in_json(each)]
    found, kills = killed_answers(tmp_path, lines, lambda folder, point: run(folder, point, format="json"))
    assert kills > 20
    assert found == by_law("".join(given))


@pytest.mark.spark
@pytest.mark.kills
def test_no_kill_shows_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The same on Spark, in fewer epochs."""
    given = timed_tokens()
    found, kills = killed_answers(tmp_path, given, lambda folder, point: run(folder, point, spark))
    assert kills > 10
    assert found == by_law("".join(given))


def run(
    folder: Path,
    point: Callable[[str, int], None],
    spark: SparkSession | None = None,
    format: Literal["lines", "json"] = "lines",
) -> dict[str, str]:
    """What an engine answers over what is there; nothing where it is killed at a point of an epoch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epochs, "point", point)
        try:
            size, state = 300 if spark is None else 1_500, folder / "state"
            with Engine(spark, local=spark is None, checkpoint=state, once=True, epoch_bytes=size) as engine:
                engine.stream("s", folder / "in", format=format, updates=True)
                found = [engine.subscribe(text, name) for name, text in QUERIES.items()]
                engine.wait()
                return {each.name: each.answer() for each in found}
        except Killed:
            return {}
