"""Streams of several partitions travel in parts of items, each in its partition, and nothing shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.needs import whole
from anabranch.network.planner import Planner
from anabranch.network.topology import line
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from peers.test_evolving import DOUBLED, SELECT, items
from peers.test_kinds_in_parts import check, some_query
from peers.working import Alone, GrowingStream, bare_network, network_of

SUMS = 'for $w in stream("s")/root/i[v >= 60]|t diff 10| return <o>{ sum($w/v) }</o>'
FOURS = 'for $w in stream("s")/root/i[v >= 60]|count 4| return <o>{ $w/v }</o>'


def divided(folder: Path, count: int, *, timed: bool = True) -> RegisteredStream:
    """A stream of so many partitions that comes in at SP0."""
    first, *more = (folder / "s" / f"{each}" for each in range(count))
    time = ItemPath.parse("t") if timed else None
    return RegisteredStream(Source("s", first, "lines", time=time, more=tuple(more), evolves=True), "SP0", "SP0")


def dealt(begin: int, count: int, partitions: int) -> list[list[str]]:
    """Items of a growing time, one to each partition in turn."""
    found = items(begin, count)
    return [found[number::partitions] for number in range(partitions)]


@pytest.mark.mass
def test_parts_of_items(tmp_path: Path) -> None:
    """What nobody selects stays behind, but for what shows how far each partition is; also behind an accent in one.

    Windows over time have the times of all items, since each may let one close.
    """
    stream = divided(tmp_path, 3)
    grown = [GrowingStream(Path(str(each)), ()) for each in stream.source.partitions]
    alone = Alone(tmp_path / "alone", [stream.source], Random(1))
    sent, all_of_it = [0], 0
    with bare_network(network_of(line(3), [stream]), tmp_path / "network", Random(1), (1 << 20,)) as running:
        for name, text in {"a": SELECT.format(80), "c": FOURS}.items():
            running.register(name, text, "SP2")
            alone.queries[name] = text
        for begin in (0, 90, 180, 270):
            portions = dealt(begin, 90, 3)
            portions[1].insert(5, DOUBLED) if begin == 90 else None
            for each, portion in zip(grown, portions, strict=True):
                each.bring(portion)
            running.drain()
            alone.drain()
            for name in alone.queries:
                assert running.answer(name) == alone.answer(name)
            sent.append(sum(each.bytes for each in running.measured().flows.values()))
            all_of_it = 2 * sum(len(each) for portion in portions for each in portion)
        usual, odd, *behind = [later - earlier for earlier, later in pairwise(sent)]
        assert usual < 0.35 * all_of_it
        assert odd > usual + 0.2 * all_of_it, "the epoch of an accent travels whole in its partition"
        assert all(each < 0.35 * all_of_it for each in behind)
        running.register("b", SUMS, "SP1")
        alone.queries["b"] = SUMS
        for begin in (360, 450):
            for each, portion in zip(grown, dealt(begin, 90, 3), strict=True):
                each.bring(portion)
            running.drain()
            alone.drain()
            assert running.answer("b") == alone.answer("b")
        assert running.answer("b").count("<o>") > 10
        now = sum(each.bytes for each in running.measured().flows.values())
        assert now - sent[-1] < 2 * 0.6 * all_of_it
        links = tmp_path / "network/links"
        assert all("much" not in max(each.glob("*.xml")).read_text() for each in links.glob("*/*") if each.is_dir())
        assert running.answer("c").count("<o>") > 20


def test_without_times_all_travels(tmp_path: Path) -> None:
    """The order between the partitions of a stream without times is that in which they come, so nothing is left out."""
    for timed in (True, False):
        stream = divided(tmp_path / f"{timed}", 2, timed=timed)
        grown = GrowingStream(Path(str(stream.source.partitions[0])), items(0, 20))
        grown.grow(20)
        planner = Planner.over(network_of(line(2), [stream]))
        decision = planner.register("a", SELECT.format(80), "SP1")
        assert decision.chosen is not None
        assert [each.form == whole("s") for each in planner.catalogue.hops] == [not timed]


def test_why_windows_are_made_where_they_are_asked_for(tmp_path: Path) -> None:
    """What is late is late in its own partition (LAWS 3.2), which windows that travel could not tell."""
    stream = divided(tmp_path, 2)
    planner = Planner.over(network_of(line(2), [replace(stream, accents=False)]))
    chosen = planner.register("a", SUMS, "SP1").chosen
    assert chosen is not None
    assert chosen.words.startswith("windows made at SP1, for stream 's' has several partitions")


def some_of_all(random: Random, names: Sequence[str]) -> str:
    """A query of any kind."""
    first, second = (f'stream("{random.choice(names)}")/root/i' + random.choice(("", '[k = "1"]')) for _ in range(2))
    match random.randrange(8):
        case 0:
            return f"for $x in {first} where $x/w >= 2 return <o>{{ $x/v, $x/t }}</o>"
        case 1:
            return f"for $w in {first}|t diff 10 step 5| return <o>{{ $w/v, count($w) }}</o>"
        case 2:
            return f"for $w in {first}|count 3| return <o>{{ $w/v, $w/t }}</o>"
        case 3:
            near = "$x/t >= $y/t - 2 and $x/t <= $y/t + 1 and $x/v >= $y/v"
            return f"for $x in {first}, $y in {second} where {near} return <p>{{ $x/v, $y/t }}</p>"
        case _:
            return some_query(random, names)


@pytest.mark.mass
def test_answers_and_dead_letters_are_those_of_one_engine(tmp_path: Path, mass: Mass) -> None:
    """Whatever fails, is late, has no time, evolves, is closed or forgotten in one of the partitions."""
    seen = [check(tmp_path / f"{number}", Random(number), some_of_all, 3) for number in mass.cases(300)]
    assert sum(seen), "nothing travelled in parts"
