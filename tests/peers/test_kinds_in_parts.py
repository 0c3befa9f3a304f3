"""Joins by keys, sets of streams, windows over loops, groups and sessions travel in parts, and nothing shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.topology import line
from anabranch.spark.answers.log import empty_answer
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from network.making import some_topology
from peers.test_evolving import accent, ended
from peers.test_json_parts import letters_of, told
from peers.working import Alone, GrowingStream, bare_network, dead_letters_of, network_of

S, U = 'stream("s")/root/i', 'stream("u")/root/i'
SAID = (
    accent('<s:alter path="v" by=". * 2"/>'),
    accent('<s:alter path="v" by=". + 1"/>', "k = 1"),
    accent('<s:alter path="k" by=". * 2"/>'),
    accent('<s:drop path="w"/>'),
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="k = 2"/>',
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="t &lt; 3"/>',
)


def some_path(random: Random, names: Sequence[str]) -> str:
    """A path over one of some streams, with conditions that may fail, or without any."""
    chosen = random.choice(
        ("", "", "[v >= 3]", "[w >= 2]", "[v >= 2][w >= 1]", "[10 div v >= 3]", "[not(v < 4)]", '[k = "1"]')
    )
    return f'stream("{random.choice(names)}")/root/i{chosen}'


def some_join(random: Random, names: Sequence[str], result: str) -> str:
    """A join by keys, which may raise."""
    key = random.choice(("$x/k = $y/k", "$x/k = $y/k", "$x/k[. * 1 >= 1] = $y/k", "$x/v = $y/w and $x/k = $y/k"))
    more = ("$x/v >= 3", "$y/w <= 4", "($x/v >= 2 or $y/v >= 2)", "not($y/v = 3)", "$x/w + 1 >= $y/w", "$x/v * 2 > 5")
    conditions = [key, *random.sample(more, random.choice((0, 1, 2)))]
    random.shuffle(conditions)
    loops = f"for $x in {some_path(random, names)}, $y in {some_path(random, names)}"
    return f"{loops} where {' and '.join(conditions)} return {result}"


def some_query(random: Random, names: Sequence[str]) -> str:
    """A query of a kind that has no tree with windows, nor a forest of a join."""
    match random.randrange(6):
        case 0:
            return some_join(
                random, names, random.choice(("<o>{ $x/v, $y/t }</o>", "<o/>", "$x/w", "<o>{ $y/v + 1 }</o>"))
            )
        case 1:
            operators = [random.choice((" union ", " intersect ", " except ")) for _ in range(2)]
            some = [some_path(random, names) for _ in range(3)]
            paths = f"{some[0]}{operators[0]}{some[1]}"
            paths = f"({paths}){operators[1]}{some[2]}" if random.random() < 0.4 else paths
            where = random.choice(("", "where $x/v >= 2 ", "where $x/w * 1 >= 2 "))
            return (
                f"for $x in {paths} {where}return {random.choice(('$x/v', '<o>{ 6 div $x/v }</o>', '<o>{ $x/t }</o>'))}"
            )
        case 2:
            made = "<m>{ $x/t, $x/v }</m>"
            loop = f"for $x in {some_path(random, names)} where $x/v >= 1 return {made}"
            if random.random() < 0.6:
                loop = some_join(random, names, made)
            window = random.choice(("|t diff 10|", "|count 3|", "|t diff 10 step 5|"))
            return f"for $w in ({loop}){window} return <w>{{ sum($w/v), count($w) }}</w>"
        case 3:
            window = random.choice(("|t diff 10|", "|t diff 10 step 5|", "|count 4|"))
            result = random.choice(('<g k="{ $k }">{ sum($i/v) }</g>', '<g k="{ $k }">{ count($i), max($i/w) }</g>'))
            inside = f"for $i in $w group by $k := {random.choice(('$i/k', 'floor($i/v)'))} return {result}"
            return f"for $w in {some_path(random, names)}{window} return <w>{{ {inside} }}</w>"
        case 4:
            by = random.choice(("", " by k"))
            return (
                f"for $w in {some_path(random, names)}|t gap {random.choice((1, 3))}{by}| return <s>{{ sum($w/v) }}</s>"
            )
        case _:
            sizes = random.choice(("PT5S", "PT10S step PT5S"))
            joined = f"|t diff {sizes}|"
            return (
                f"for $x in {some_path(random, names)}{joined} for $y in {some_path(random, names)}{joined} "
                f"where $x/v >= $y/v and $y/w >= 2 return <p>{{ $x/t, $y/t }}</p>"
            )


def some_items(random: Random, count: int) -> list[str]:
    """Items of a time that mostly grows; values are small numbers, or no numbers, or there are none, or two."""

    def of(name: str) -> str:
        texts = random.choice((("1",), ("2",), ("3",), ("4",), ("5",), ("2.5",), ("0",), ("x",), (), ("1", "4")))
        return "".join(f"<{name}>{each}</{name}>" for each in texts)

    time, found = 0, []
    for _ in range(count):
        time += random.choice((0, 1, 1, 2, 4))
        at = time - random.choice((0,) * 12 + (3,))
        said = f"<t>{at}</t>" if random.random() < 0.97 else ""
        found.append(f"<i>{said}{of('k')}{of('v')}{of('w')}<much>{'x' * 40}</much></i>")
    return found


@pytest.mark.mass
def test_answers_and_dead_letters_are_those_of_one_engine(tmp_path: Path, mass: Mass) -> None:
    """Whatever fails, is late, has no time, is closed by punctuations or forgotten meanwhile."""
    seen = [check(tmp_path / f"{number}", Random(number)) for number in mass.cases(300)]
    assert sum(seen) or mass.done < 10, "nothing travelled in parts"


def check(
    folder: Path, random: Random, query: Callable[[Random, Sequence[str]], str] = some_query, partitions: int = 1
) -> int:
    """Try one network, whose streams have so many partitions at most; gives how many flows are parts of items."""
    topology, evolves = some_topology(random), random.random() < 0.4
    retain = random.choice((None, Fraction(10)))
    slack = Fraction(random.choice((0, 0, 2)))
    grown, streams = [], []
    for name in "su":
        first, *more = paths = [folder / name / f"{each}" for each in range(random.randrange(partitions) + 1)]
        for path in paths:
            items = some_items(random, 30 // len(paths))
            for _ in range(2 * evolves):
                items.insert(random.randrange(5, len(items)), random.choice(SAID))
            grown.append(GrowingStream(path, items))
        at, time = random.choice(topology.peers), ItemPath.parse("t")
        source = Source(name, first, "lines", item="i", time=time, slack=slack, retain=retain, more=tuple(more))
        streams.append(RegisteredStream(source, at, at, None, evolves))
    alone = Alone(folder / "alone", [each.source for each in streams], random)
    parts = 0
    with bare_network(network_of(topology, streams), folder / "network", random) as running:
        for number in range(random.randrange(2, 5)):
            text = query(random, random.choice(("s", "su", "su")))
            running.register(f"q{number}", text, random.choice(topology.peers))
            alone.drain()
            alone.queries[f"q{number}"] = text
            for each in grown:
                each.grow(random.randrange(8))
            if random.random() < 0.8:
                running.drain()
                alone.drain()
            parts += sum(each.is_part for peer in running.peers.values() for each in peer.program.made)
        for each in grown:
            each.grow(40)
        running.drain()
        alone.drain()
        logs = [each.log for each in running.peers.values()]
        for name, text in alone.queries.items():
            due = alone.answer(name) if alone.log.subscription(name) else empty_answer(text, alone.sources)
            assert running.answer(name) == due, text
            assert ended(logs, name) == ended([alone.log], name), text
            mine = [each for each in letters_of(alone.log) if each.subscription == name]
            assert told(dead_letters_of(running, name)) == told(mine), ("letters", text)
    return parts


def test_an_item_that_does_not_say_its_time(tmp_path: Path) -> None:
    """It has the time of the item before it, also where that one is sent to nobody (LAWS 1.3)."""
    brought = {"s": ((1, 5), (5, 0), (None, 6), (9, 0)), "u": ((3, 7), (9, 0))}
    streams, grown = [], []
    for name, items in brought.items():
        said = [f"<i>{'' if t is None else f'<t>{t}</t>'}<v>{v}</v></i>" for t, v in items]
        grown.append(GrowingStream(tmp_path / name, said))
        source = Source(name, tmp_path / name, "lines", item="i", time=ItemPath.parse("t"))
        streams.append(RegisteredStream(source, "SP0", "SP0", None, accents=False))
    with bare_network(network_of(line(2), streams), tmp_path / "network", Random(1), (1 << 20,)) as running:
        running.register("a", f"for $x in {S} union {U} where $x/v >= 3 return $x/v", "SP1")
        for each in grown:
            each.grow(9)
        running.drain()
        assert running.answer("a") == "<v>5</v><v>7</v><v>6</v>"


def test_windows_over_a_loop_that_have_not_begun(tmp_path: Path) -> None:
    """What stands around an answer is there before anything has reached the peer that answers."""
    (tmp_path / "s").mkdir()
    source = Source("s", tmp_path / "s", "lines", item="i", time=ItemPath.parse("t"))
    loop = f"for $x in {S} return <m>{{ $x/t }}</m>"
    with bare_network(
        network_of(line(2), [RegisteredStream(source, "SP0", "SP0")]), tmp_path / "network", Random(1)
    ) as running:
        running.register("a", f"<c>{{ for $w in ({loop})|t diff 5| return <o>{{ sum($w/t) }}</o> }}</c>", "SP1")
        assert running.answer("a") == "<c/>"
