"""Heartbeats that a run sends into idle streams: when, with which time, and what comes of them."""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from anabranch.errors import UsageError
from anabranch.network.description import read_network
from anabranch.spark.intake.heartbeats import Pulse
from anabranch.spark.intake.survey import Survey
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import some
from spark.bare import BareTrunk

TENS = """<tens>{ for $w in stream("s")/*/p |t diff 10| return <w n="{ count($w) }"/> }</tens>"""
PAIRS = """<pairs>{ for $x in stream("s")/*/p |t diff 10| for $y in stream("u")/*/p |t diff 10|
    return <o>{ $x/t, $y/t }</o> }</pairs>"""
ALL = """<all>{ for $p in stream("s")/*/p return $p/t }</all>"""
MERGED = """<merged>{ for $w in stream("s")/*/p |count 2| return <w>{ $w/t }</w> }</merged>"""
AVERAGES = (
    """<averages>{ for $w in stream("s")/*/p |t diff 5 step 2| return <w>{ avg($w/t) }{ $w/e }</w> }</averages>"""
)
ACCENT = '<s:accent xmlns:s="urn:anabranch:stream" at="{}"><s:alter path="e" by=". * {}"/></s:accent>\n'
LAW = {"tens": TENS, "averages": AVERAGES}
QUERIES = {"tens": TENS, "all": ALL, "merged": MERGED}
TIME = ItemPath.parse("t")


class Brook:
    """Streams whose run has a clock that a test turns; each epoch may have another survey, and may be run twice."""

    def __init__(self, top: Path, *sources: Source, seed: int = 1) -> None:
        self.now = 1000.0
        self._top = top
        self._sources = sources
        self._random = Random(seed)
        self._queries: dict[str, str] = {}
        self._asked = 0
        self.open()

    def open(self) -> None:
        """Begin, or go on after a kill: what was only in memory is lost."""
        self._trunk = BareTrunk(self._top / "state", self._sources, self._random, finite=False)
        self._trunk.pulse = Pulse(lambda: self.now)
        self._trunk.resume()

    def run(self, queries: dict[str, str]) -> None:
        self._queries = queries
        self._trunk.run(queries, [64, 1 << 20], [1, 2])

    def idle(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.run(self._queries)

    def beats(self) -> list[tuple[int, Decimal]]:
        """The heartbeats that were sent since this was last asked, by partition."""
        survey, found = Survey(self._trunk.checkpoint), list[tuple[int, Decimal]]()
        for epoch in range(self._asked, self.epochs):
            for each in survey.ranges(self._trunk.offset(epoch - 1), self._trunk.offset(epoch)):
                if each.beat is not None:
                    found.append((int(each.partition), Decimal(each.beat) / 1_000_000))
        self._asked = self.epochs
        return found

    def answer(self, name: str) -> str:
        return self._trunk.answer(name)

    def late(self) -> set[str]:
        return self._trunk.late()

    @property
    def epochs(self) -> int:
        return self._trunk.epochs


def items(*times: object) -> str:
    return "".join(f"<p><t>{each}</t><e>{each}</e></p>\n" for each in times)


def source(path: Path, form: Literal["lines", "document", "json"] = "lines", **more: object) -> Source:
    path.mkdir(exist_ok=True)
    return Source("s", path, form, time=TIME, heartbeat=Decimal(5), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("lines", items(1, 7)),
        ("document", "<root>" + items(1, 7) + "<p><t>"),
        ("json", '{"t": 1}\n{"t": 7}\n'),
    ],
)
def test_a_window_closes_in_an_idle_stream(
    tmp_path: Path, form: Literal["lines", "document", "json"], text: str
) -> None:
    """The time of the stream goes on by the seconds that it has been idle: from 7 on, 10 is reached behind 3 of them.

    It is sent when nothing new has come for 5 seconds, and not before; an item that is not finished is not new.
    """
    brook = Brook(tmp_path, source(tmp_path / "in", form, item="p"))
    (tmp_path / "in" / "a").write_text(text)
    brook.run({"tens": TENS})
    before = brook.epochs
    brook.idle(4.9)
    assert (brook.answer("tens"), brook.epochs) == ("<tens/>", before)
    brook.idle(0.2)
    assert brook.answer("tens") == '<tens><w n="2"/></tens>'
    assert brook.epochs == before + 1


@pytest.mark.parametrize("times", [("1000", "7000"), ("1970-01-01T00:00:01Z", "1970-01-01T00:00:07Z")])
def test_the_clock_of_a_stream_goes_on_in_seconds(tmp_path: Path, times: tuple[str, str]) -> None:
    """Whatever unit its numbers count in, and where they are dateTimes: from 7 seconds on, 10 are reached behind 3."""
    brook = Brook(tmp_path, replace(source(tmp_path / "in"), time=TIME.counting("ms")))
    (tmp_path / "in" / "a").write_text(items(*times))
    tens = TENS.replace("diff 10", "diff PT10S")
    brook.run({"tens": tens, "idle": tens.replace("diff PT10S", "gap PT4S")})
    brook.idle(2)
    assert brook.answer("tens") == "<tens/>"
    brook.idle(4)
    assert brook.answer("tens") == '<tens><w n="2"/></tens>'
    assert brook.answer("idle") == '<tens><w n="1"/><w n="1"/></tens>'
    assert brook.beats() == [(0, Decimal(13))]


def test_an_unfinished_item_is_not_lost(tmp_path: Path) -> None:
    """A heartbeat comes while a document is open within an item, which is finished later."""
    brook = Brook(tmp_path, source(tmp_path / "in", "document"))
    (tmp_path / "in" / "a").write_text("<root>" + items(1, 7) + "<p><t>2")
    brook.run(QUERIES)
    brook.idle(6)
    with (tmp_path / "in" / "a").open("a") as file:
        file.write("1</t></p>" + items(35))
    brook.run(QUERIES)
    assert brook.answer("all") == "<all><t>1</t><t>7</t><t>21</t><t>35</t></all>"
    assert brook.answer("tens") == '<tens><w n="2"/><w n="1"/></tens>'


def test_heartbeats_go_on_and_outlast_kills(tmp_path: Path) -> None:
    """One each 5 seconds; after a restart the time goes on from the latest heartbeat, and no answer is another."""
    brook = Brook(tmp_path, source(tmp_path / "in"))
    (tmp_path / "in" / "a").write_text(items(1, 7))
    brook.run(QUERIES)
    for _ in range(3):
        brook.idle(5)
        brook.open()
        brook.idle(0)  # the clock of a new run begins
    assert brook.answer("tens") == '<tens><w n="2"/></tens>'
    with (tmp_path / "in" / "a").open("a") as file:
        file.write(items(21, 23))  # heartbeats came up to 22
    brook.run(QUERIES)
    assert len(brook.late()) == 1
    assert brook.answer("all") == "<all><t>1</t><t>7</t><t>21</t><t>23</t></all>"
    brook.idle(10)
    assert brook.answer("tens") == '<tens><w n="2"/><w n="1"/></tens>'


def test_an_idle_partition_follows_the_others(tmp_path: Path) -> None:
    """It is sent the latest time of its stream, so items of the others wait for it no longer than that."""
    (tmp_path / "more").mkdir()
    brook = Brook(tmp_path, source(tmp_path / "in", more=(tmp_path / "more",)))
    (tmp_path / "in" / "a").write_text(items(1))
    (tmp_path / "more" / "a").write_text(items(2))
    brook.run(QUERIES)
    assert brook.answer("merged") == "<merged/>"
    for number in (12, 25, 38):
        with (tmp_path / "in" / "a").open("a") as file:
            file.write(items(number))
        brook.idle(3)
    assert brook.answer("merged") == "<merged><w><t>1</t><t>2</t></w></merged>"
    assert brook.answer("tens") == '<tens><w n="2"/></tens>', "it was sent 12, in the second round"
    brook.idle(3)
    assert brook.answer("merged") == "<merged><w><t>1</t><t>2</t></w><w><t>12</t><t>25</t></w></merged>"
    brook.idle(3)
    assert brook.answer("tens") == '<tens><w n="2"/><w n="1"/><w n="1"/></tens>', "41, when the other had 44"


def test_a_join_goes_on(tmp_path: Path) -> None:
    """One stream has heartbeats and is idle; the other goes on."""
    (tmp_path / "other").mkdir()
    other = Source("u", tmp_path / "other", "lines", time=TIME)
    brook = Brook(tmp_path, source(tmp_path / "in"), other)
    (tmp_path / "in" / "a").write_text(items(1))
    (tmp_path / "other" / "a").write_text(items(2, 11, 13, 20))
    brook.run({"pairs": PAIRS})
    assert brook.answer("pairs") == "<pairs/>"
    brook.idle(15)
    assert brook.answer("pairs") == "<pairs><o><t>1</t><t>2</t></o></pairs>"


def test_nothing_is_sent_where_nothing_is_known(tmp_path: Path) -> None:
    """A stream without a byte, or without an item that has a time, has no time that could go on."""
    brook = Brook(tmp_path, source(tmp_path / "in"))
    brook.run(QUERIES)
    brook.idle(60)
    assert brook.epochs == 0
    (tmp_path / "in" / "a").write_text("<p/>\n")
    brook.run(QUERIES)
    brook.idle(60)
    assert brook.epochs == 1


def test_a_stream_by_arrival_is_sent_the_moment(tmp_path: Path) -> None:
    """Its heartbeats have the time at which they are sent, as all that comes then, and the next has a later one."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text(items(1))
    brook = Brook(tmp_path, Source("s", tmp_path / "in", "lines", heartbeat=Decimal(5)))
    moment = time.time()
    brook.run({"all": ALL, "merged": MERGED})
    before = brook.epochs
    brook.idle(5)
    brook.idle(5)
    assert brook.epochs == before + 2
    (_, first), (_, second) = brook.beats()
    assert moment < first < second < time.time()
    with (tmp_path / "in" / "a").open("a") as file:
        file.write(items(2))
    brook.run({"all": ALL, "merged": MERGED})
    assert brook.answer("merged") == "<merged><w><t>1</t><t>2</t></w></merged>"


@pytest.mark.parametrize("seed", some(range(12)))
@pytest.mark.mass
def test_a_heartbeat_that_was_sent_is_an_element_like_others(tmp_path: Path, seed: int) -> None:
    """The answers are those over files in which the heartbeats stand as lines, with accents between, in many files."""
    random = Random(seed)
    partitions = random.choice([1, 2])
    folders = [tmp_path / side / str(number) for side in ("sent", "written") for number in range(partitions)]
    for folder in folders:
        folder.mkdir(parents=True)
    sent, written = folders[:partitions], folders[partitions:]
    brook = Brook(tmp_path, source(sent[0], more=tuple(sent[1:])), seed=seed)
    now, files = 0, 0
    for _ in range(6):
        number = random.randrange(partitions)
        now += random.randrange(8)
        text = items(*(now + random.randrange(12) for _ in range(random.randrange(1, 4))))
        text += random.choice(["", ACCENT.format(now, random.choice([2, 3, 10]))])
        files += random.randrange(2)
        for folder in (sent[number], written[number]):
            with (folder / f"{number}-{files:03}").open("a") as file:
                file.write(text)
        brook.run(LAW)
        for seconds in (0, *random.choices([2, 5, 9], k=random.randrange(3))):
            brook.idle(seconds)
            for each, beat in brook.beats():
                last = max(written[each].iterdir(), default=written[each] / f"{each}-000")
                with last.open("a") as file:
                    file.write(f'<s:punctuation xmlns:s="urn:anabranch:stream" at="{beat}"/>\n')
    plain = source(written[0], more=tuple(written[1:]))
    judge = BareTrunk(tmp_path / "judge", [replace(plain, heartbeat=None)], random, finite=False)
    judge.run(LAW, [64, 1 << 20], [1, 2])
    assert {name: brook.answer(name) for name in LAW} == {name: judge.answer(name) for name in LAW}
    assert len(brook.late()) == len(judge.late())


def test_where_a_heartbeat_cannot_be_sent_it_is_refused(tmp_path: Path) -> None:
    """By name: streams of updates, several partitions without a time, streams of a network, what is no time."""
    with pytest.raises(UsageError, match="a stream of updates can be sent no 'heartbeat' yet"):
        Source("s", tmp_path, updates=True, heartbeat=Decimal(1))
    with pytest.raises(UsageError, match="several partitions is sent a 'heartbeat' only if it declares a 'time'"):
        Source("s", tmp_path, more=(tmp_path,), heartbeat=Decimal(1))
    (tmp_path / "NETWORK.toml").write_text(
        '[[links]]\nbetween = ["A", "B"]\n[streams.s]\nat = "A"\npath = "."\nheartbeat = "5 s"\n'
    )
    with pytest.raises(UsageError, match="the streams of a network are sent no 'heartbeat' yet"):
        read_network(tmp_path / "NETWORK.toml")
    (tmp_path / "NETWORK.toml").write_text(
        '[[links]]\nbetween = ["A", "B"]\n[streams.s]\nat = "A"\npath = "."\nheartbeat = "soon"\n'
    )
    with pytest.raises(UsageError, match="'heartbeat' takes a number of seconds, or a time, not 'soon'"):
        read_network(tmp_path / "NETWORK.toml")
