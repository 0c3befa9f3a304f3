"""Streams in topics: what they answer is what the same streams in files answer, to the byte.

The judge is the reference over files; trunks read topics of a real broker, in epochs, tasks and shards of chance.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

from anabranch.errors import QueryError, Unsupported
from anabranch.language import check, parse
from anabranch.runtime.standing import standing
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import NO_PATH, Source
from anabranch.stream.reading.topic import Topic, message_format
from branch.feeding import spiced
from brokers import Broker
from kafka.producing import KEPT, write_in_transactions
from mass import Mass
from oracle.generate import case
from spark.bare import BareTrunk
from spark.law import elements_of, law_of

FAMILIES = ("items", "windows", "joins")


def of_topic(files: Source, topic: Topic, form: str) -> Source:
    """A stream in files as one in a topic."""
    known, kind = message_format(topic, form)
    return replace(files, path=NO_PATH, more=(), topic=known, format=kind)


def test_answers_are_those_of_files(tmp_path: Path, broker: Broker, mass: Mass) -> None:
    """Generated queries over streams with a time: the same partitions as files and as topics, with a message for each
    element or for several lines, written in transactions of which some are aborted.
    """
    for number in mass.cases(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        check_case(folder, broker, FAMILIES[number % len(FAMILIES)], number)


def check_case(folder: Path, broker: Broker, family: str, number: int) -> None:
    """One query over its streams."""
    random = Random(f"kafka {family} {number}")
    generated = case(family, number)
    streams = {name: spiced(random, text) for name, text in generated.inputs.items() if name != "d"}
    try:
        query = check(parse(generated.query), generated.query, inputs=dict.fromkeys(streams)).query
        standing(query)
    except (Unsupported, QueryError):  # it reads a document, or is never answered
        return
    files: list[Source] = []
    topics: list[Source] = []
    for name, text in streams.items():
        found = lay(folder, broker, name, elements_of(text), random)
        files.append(found[0])
        topics.append(found[1])
    trunk = BareTrunk(folder / "state", topics, random, finite=True)
    trunk.run({"q": generated.query}, (1, 40_000, 1 << 20), (1, 2, 7))

    law = law_of(query, files, endless=False)
    label = f"{family} {number}: {generated.query}"
    if trunk.epochs:
        assert trunk.answer("q") == law.text, label
    told = Counter((each.reason, each.code, each.raw) for each in trunk.log.dead_letters())
    assert told == Counter((each.reason, each.code, each.raw) for each in law.dead.elements()), label
    assert len(trunk.late()) == len(law.late), label


def lay(folder: Path, broker: Broker, name: str, elements: Sequence[bytes], random: Random) -> tuple[Source, Source]:
    """A stream with some partitions, in files of lines and in a topic."""
    slack, origin = Fraction(random.choice((0, 0, 3))), Fraction(random.choice((0, 0, 2)))
    dealt: list[list[bytes]] = [[] for _ in range(random.choice((1, 2, 3)))]
    for element in elements:
        random.choice(dealt).append(element)
    paths = [folder / f"{name}-{number}" for number in range(len(dealt))]
    for path, part in zip(paths, dealt, strict=True):
        path.write_bytes(b"".join(each + b"\n" for each in part))
    files = Source(
        name,
        paths[0],
        "lines",
        root="r",
        time=ItemPath.parse("t"),
        slack=slack,
        origin=origin,
        more=tuple(paths[1:]),
    )
    form = random.choice(("xml", "lines", "auto"))
    topic = broker.topic(name, len(dealt))
    parts = [grouped(part, random) for part in dealt] if form == "lines" else dealt
    write_in_transactions(broker, topic, parts, random)
    promised = len(dealt) if random.random() < 0.3 else None
    return files, of_topic(files, Topic.of(broker.address, topic, partitions=promised), form)


TIMED = re.compile(rb"^<[^>]*[ :]at=.([0-9.]+)")
NAME = re.compile(rb"^<[^ />]+")


def test_timestamps_are_times(tmp_path: Path, broker: Broker, mass: Mass) -> None:
    """Generated queries over topics without a time, whose timestamps run backwards now and then: as if each element had
    its timestamp as `at`, or the time of the element before it.
    """
    for number in mass.cases(30):
        folder = tmp_path / str(number)
        folder.mkdir()
        check_stamped_case(folder, broker, FAMILIES[number % len(FAMILIES)], number)


def check_stamped_case(folder: Path, broker: Broker, family: str, number: int) -> None:
    """One query over its streams."""
    random = Random(f"stamped {family} {number}")
    generated = case(family, number)
    streams = {name: text for name, text in generated.inputs.items() if name != "d"}
    try:
        query = check(parse(generated.query), generated.query, inputs=dict.fromkeys(streams)).query
        standing(query)
    except (Unsupported, QueryError):
        return
    files: list[Source] = []
    topics: list[Source] = []
    for name, text in streams.items():
        dealt: list[list[tuple[bytes, int]]] = [[] for _ in range(random.choice((1, 2, 3)))]
        for element in elements_of(text):
            random.choice(dealt).append((element, random.randint(1, 90_000)))
        paths = [folder / f"{name}-{part}" for part in range(len(dealt))]
        for path, part in zip(paths, dealt, strict=True):
            path.write_bytes(b"".join(each + b"\n" for each in with_times(part)))
        nowhere = ItemPath.parse("nowhere")  # so that partitions are merged; all elements have an `at`
        files.append(Source(name, paths[0], "lines", root="r", time=nowhere, more=tuple(paths[1:])))
        topic = broker.topic(name, len(dealt), **KEPT)
        write_in_transactions(broker, topic, dealt, random)
        topics.append(replace(of_topic(files[-1], Topic.of(broker.address, topic), "xml"), time=None))
    trunk = BareTrunk(folder / "state", topics, random, finite=True)
    trunk.run({"q": generated.query}, (1, 40_000, 1 << 20), (1, 2, 7))
    label = f"{family} {number}: {generated.query}"
    if trunk.epochs:
        assert trunk.answer("q") == law_of(query, files, endless=False).text, label


def with_times(part: Sequence[tuple[bytes, int]]) -> Iterator[bytes]:
    """The elements of a partition with their times as `at`."""
    now = Fraction(0)
    for element, stamp in part:
        own = TIMED.match(element)
        now = Fraction(own[1].decode()) if own else max(now, Fraction(stamp, 1_000))
        name = NAME.match(element)
        assert name is not None
        at = b' xmlns:s="urn:anabranch:stream" s:at="%s"' % str(Decimal(now.numerator) / now.denominator).encode()
        yield element if own else name[0] + at + element[name.end() :]


def grouped(elements: Sequence[bytes], random: Random) -> list[bytes]:
    """Elements as lines of messages, several in each, with and without a last newline."""
    found: list[bytes] = []
    left = list(elements)
    while left:
        count = random.randint(0, 9)
        lines, left = left[:count], left[count:]
        found.append(b"\n".join(lines) + random.choice((b"", b"\n", b"\r\n", b"\n\n")))
    return found
