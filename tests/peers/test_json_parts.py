"""Streams of JSON travel in parts: lines with the needed members, in their types, of items that somebody may select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.language import print_query
from anabranch.network.description import RegisteredStream
from anabranch.network.estimates import PROGRESS, Estimates, Sample
from anabranch.network.explanation import carries
from anabranch.network.needs import need_of, sent_needs
from anabranch.network.topology import line
from anabranch.peers.links import Link
from anabranch.peers.running import RunningNetwork
from anabranch.spark.answers.log import AnswerLog, empty_answer
from anabranch.sql import read_query
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.json_items import parse_records
from anabranch.stream.reading.source import Source
from mass import Mass
from network.making import some_topology
from peers.test_evolving import ended
from peers.test_running import deadly
from peers.working import Alone, GrowingStream, Killed, bare_network, dead_letters_of, network_of

VALUES = (
    "1", "2.50", "-0", "1e2", "7", "12", '"5"', '"a"', '""', '"12"', "null", "true", "[]", '["a"]', "[3, 9]",
    '[{"b": 1}, {"b": "x", "c": 2}]', '{"b": 4.0}', '{"b": [], "c": null}', '{"b": {"c": [1, "1"]}}', "{}", '"NaN"',
    "[[1, 12], []]", '[["a", 7.0], [{"b": 7, "c": 1}]]', "[[[5]], 9]", '{"b": [[3, [4]], {"c": 1}]}', '{"member": [8]}',
)  # fmt: skip
QUERIES = (
    'for $i in stream("s") where $i/v > {} return $i/k',
    'for $i in stream("s") where $i/v > {} return {{ "k": $i.k, "v": $i.v }}',
    'for $i in stream("s")/root/i where $i/v = "a" or $i/n/b >= {} return {{ "n": $i.n, "all": array {{ $i.v[] }} }}',
    'for $i in stream("s") where $i.v >= {} return {{ "v": $i.v, "b": $i.n.b }}',
    'for $i in stream("s") where $i.v = "a" and $i/k < {} return [$i.v, $i.n.b.c]',
    'for $i in stream("s") where $i/k > {} and not($i.v = 7) return {{ "x": $i."odd key" }}',
    'for $i in stream("s") where not($i/v > {}) return {{ "e": exists($i.v), "n": count($i.v[]), "k": $i/k * 2 }}',
    'for $i in stream("s") where $i/n/b = {} return $i',
    'for $i in stream("s") where $i.v[[1]] = "a" or $i.n.b > {} return {{ "m": $i.v[[2]], "a": $i."@a" }}',
    'for $i in stream("s") for $m in $i.v[] where $i/k < {} return {{ "m": $m, "b": $m.b }}',
    'for $i in stream("s") for $m in $i/v where $m/b > {} return <m>{{ $m/b }}{{ $i/n/b/c }}</m>',
    'for $i in stream("s") where $i/k > {} let $o := $i.n return {{ "b": $o.b, "s": $i.v + 1 }}',
    'for $i in stream("s") where $i/k > {} return if ($i.v > 5) then $i.n.b else {{ "k": $i.k }}',
    'for $w in stream("s")|t diff 10 step 5| return {{ "v": array {{ $w.v }}, "n": count($w), "more": {} }}',
    'for $w in stream("s")/root/i[k > {}]|t diff 10| return {{ "s": sum($w/k), "o": count($w.n.b) }}',
    'for $w in stream("s")/root/i[k > {}]|count 3| return <w>{{ $w/v }}</w>',
    'for $w in stream("s")|count 2| for $i in $w group by $k := $i.k return [$k, count($i), {}]',
    'for $a in stream("s")/root/i[k > {}]|count 2|, $b in stream("s")|count 3| where $a.k = $b.k return [$a.v, $b.n.b]',
    'for $i in stream("s") where $i.v[[1]][[1]] > {} return {{ "b": array {{ $i.v[][].b }}, "m": $i.n.b[[1]][[2]] }}',
    'for $i in stream("s") where $i/v/member > {} return {{ "k": $i.k, "b": array {{ $i.n.b[][] }} }}',
    'for $i in stream("s") for $m in $i/v[member < 9] where $i.k < {} return <m>{{ $m/member, $i/n/b/member }}</m>',
    'for $i in stream("s") where $i.v[][] = "a" or $i.v[][] > {} return {{ "n": $i.n.b }}',
    "SELECT k, v AS w FROM s WHERE v > {}",
    "SELECT v[1][2] AS w, n.b[1] AS b FROM s WHERE v[1][1] > {}",
    "SELECT k, n.b AS b FROM s WHERE k <= {} AND v = 'a'",
    "SELECT COUNT(*) AS n, SUM(k) AS k FROM TUMBLE(s, t, 10) WHERE k > {} GROUP BY window_start",
    'for $w in stream("s")|t diff 10| return {{ "f": $w[1].n, "k": {} }}',
    '(for $i in stream("s") where $i/k > {} order by $i.t descending return $i.v)[position() <= 3]',
)
"""Questions in all spellings, each with a place for a number."""


def some_query(random: Random) -> str:
    """One of them."""
    text = random.choice(QUERIES).format(random.choice((0, 1, 2, 3, 5, 9)))
    return print_query(read_query(text)) if text.startswith("SELECT") else text


def some_items(random: Random, count: int, *, plain: bool = False) -> list[str]:
    """Items of a growing time, whose members have any type, or are missing; some are out of order, some bad."""
    found: list[str] = []
    for at in range(count):
        members = [f'"t": {at}', f'"k": {at % 4}']
        if random.random() < 0.9:
            members.append(f'"v": {random.choice(VALUES[:6] if plain else VALUES)}')
        if random.random() < 0.7:
            members.append(f'"n": {random.choice(VALUES[:6] if plain else VALUES)}')
        members += [f'"odd key": {random.choice(VALUES)}', '"@a": 1.0', '"e": []', f'"much": "{"x" * 40}"']
        random.shuffle(members)
        found.append(f"{{{', '.join(members)}}}")
    for place in range(1, count):
        if random.random() < 0.03:
            found[place - 1], found[place] = found[place], found[place - 1]
    for _ in range(random.randrange(3)):
        found.insert(random.randrange(count), random.choice(('{"t": 3, "k"', "[1]", '{"t": 2, "k": 1, "k": 2}')))
    return found


ACCENTS = (
    '{"$accent": {"where": "k = 2", "alter": {"path": "v", "by": ". * 2"}}}',
    '{"$accent": {"where": "n/b >= 2", "alter": {"path": "v", "by": ". + 1"}}}',
    '{"$accent": {"alter": {"path": "k", "by": ". * 3"}}}',
    '{"$accent": {"drop": {"path": "n/b"}}}',
    '{"$accent": {"alter": {"path": "v", "by": "?"}}}',
    '{"$punctuation": {"where": "t < 3"}}',
)


def told(letters: Sequence[DeadLetter]) -> Counter[tuple[str | None, str | None, str]]:
    """What was set aside, without its place, which is one in a flow where a flow is read."""
    return Counter((each.subscription, each.code, each.reason) for each in letters if each.subscription)


def letters_of(log: AnswerLog) -> list[DeadLetter]:
    """All that a single engine has set aside."""
    return list(log.dead_letters())


@pytest.mark.mass
def test_answers_and_dead_letters_are_those_of_one_engine(
    tmp_path: Path, mass: Mass, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever types the members have, however it is asked, and wherever the network is killed meanwhile."""
    countdown = deadly(monkeypatch)
    seen = [check(tmp_path / f"{number}", Random(number), countdown) for number in mass.cases(300)]
    assert sum(parts for parts, _ in seen) or mass.done < 10, "nothing travelled in parts"
    assert sum(died for _, died in seen) or mass.done < 10, "nobody was killed"


def check(folder: Path, random: Random, countdown: list[int]) -> tuple[int, int]:
    """Try one network; gives how many of its flows are parts of items, and how often it was killed."""
    topology = some_topology(random)
    evolves = random.random() < 0.4
    items = some_items(random, 60, plain=random.random() < 0.3)
    for _ in range(2 * evolves):
        items.insert(random.randrange(5, len(items)), random.choice(ACCENTS))
    grown = GrowingStream(folder / "s", items)
    at = random.choice(topology.peers)
    slack = Fraction(random.choice((0, 0, 2)))
    source = Source("s", folder / "s", "json", item="i", time=ItemPath.parse("t"), slack=slack)
    streams = [RegisteredStream(source, at, at, None, evolves)]
    alone = Alone(folder / "alone", [source], random)
    asked: dict[str, tuple[str, str, str]] = {}
    parts = died = 0
    for step in range(random.randrange(3, 6)):
        alone.drain()
        name, text = f"q{step}", some_query(random)
        asked[name] = (name, text, random.choice(topology.peers))
        alone.queries[name] = text
        network = network_of(topology, streams, "widening", asked.values())
        is_done = False
        while not is_done:
            countdown[0] = random.choice((0, *range(2, 60, 3)))
            try:
                with bare_network(network, folder / "network", random) as running:
                    grown.grow(random.randrange(12))
                    running.drain()
                    parts += sum(each.is_part for peer in running.peers.values() for each in peer.program.made)
                    is_done = True
            except Killed:
                died += 1
        countdown[0] = 0
        alone.drain()
    grown.grow(80)
    with bare_network(network, folder / "network", random) as running:
        running.drain()
        alone.drain()
        logs = [each.log for each in running.peers.values()]
        for name, (_, text, _) in asked.items():
            due = alone.answer(name) if alone.log.subscription(name) else empty_answer(text, alone.sources)
            assert running.answer(name) == due, asked[name]
            assert ended(logs, name) == ended([alone.log], name), asked[name]
            mine = [each for each in letters_of(alone.log) if each.subscription == name]
            assert told(dead_letters_of(running, name)) == told(mine), ("letters", asked[name])
    return parts, died


class Travelling:
    """A network along a line, and the single engine beside it, which read the same stream of JSON."""

    def __init__(self, folder: Path, *, accents: bool = False, time: str | None = "t") -> None:
        self._folder = folder
        self._grown = GrowingStream(folder / "s", ())
        source = Source("s", folder / "s", "json", item="i", time=ItemPath.parse(time) if time else None)
        self._alone = Alone(folder / "alone", [source], Random(5))
        self.described = network_of(line(3), [RegisteredStream(source, "SP0", "SP0", None, accents)])
        self.network: RunningNetwork = bare_network(self.described, folder / "network", Random(6), (1 << 20,))

    def ask(self, name: str, text: str, at: str = "SP2") -> None:
        """Register a query."""
        self.network.register(name, text, at)
        self._alone.drain()
        self._alone.queries[name] = text

    def lines(self, portion: Sequence[str]) -> list[str]:
        """Bring some items, have the answers of a single engine; gives what the first link has carried of them."""
        [flow] = (each for each in self.network.catalogue.hops if each.before == "SP0")
        link = Link.of(self._folder / "network" / "links", flow.name)
        before = link.newest()
        self._grown.bring(portion)
        self.network.drain()
        self._alone.drain()
        for name in self._alone.queries:
            assert self.network.answer(name) == self._alone.answer(name)
        return [each for _, data in link.documents(0, before[0], 100) for each in data.decode().splitlines() if each]


GOLDEN = (
    ('{"t": 1, "v": [], "w": 1, "u": 1}', '{"v": [], "w": 1}'),
    ('{"t": 2, "v": ["a"]}', '{"v": ["a"]}'),
    ('{"v": "a", "t": 3, "w": {"x": 1}}', '{"v": "a", "w": {"x": 1}}'),
    ('{"t": 4, "v": null, "w": {"x": [], "y": 2}}', '{"v": null, "w": {"x": []}}'),
    ('{"t": 5, "w": {"y": 2}}', '{"w": {}}'),
    ('{"t": 6, "v": 1.50, "w": [{"x": 1e2, "y": 1}, {}, {"y": 2}]}', '{"v": 1.50, "w": [{"x": 1e2}, {}, {}]}'),
    ('{"@a": true, "t": 7, "v": {"@b": 1, "c": "1"}, "w": "x"}', '{"v": {"@b": 1, "c": "1"}, "w": "x"}'),
    ('{"e": [], "w": null, "f": [], "v": true, "t": 8}', '{"w": null, "v": true}'),
    ('{"f": [], "t": 9}', "{}"),
)
"""Items, and what is sent of them for `v` and `w.x`."""


def test_types_on_the_way(tmp_path: Path) -> None:
    """`[]`, `["a"]`, `"a"`, null and what is missing are five things, and numbers keep their spelling (LAWS 7.1)."""
    way = Travelling(tmp_path)
    with way.network:
        way.ask("a", 'for $i in stream("s") return { "v": $i.v, "x": $i.w.x }')
        assert way.lines([item for item, _ in GOLDEN]) == [sent for _, sent in GOLDEN]


@pytest.mark.parametrize(
    "query",
    [
        'for $i in stream("s") where $i/k > 90 return {{ "v": $i.v }}',
        'for $i in stream("s") where $i.k > 90 return {{ "v": $i.v }}',
        "SELECT v FROM s WHERE k > 90",
    ],
    ids=["paths", "dots", "sql"],
)
def test_bytes_on_links(tmp_path: Path, query: str) -> None:
    """What nobody asks for stays at home: members, and items that nobody selects."""
    text = print_query(read_query(query.format()))
    items = [f'{{"t": {at}, "k": {at}, "v": "{at}.0", "much": "{"x" * 80}"}}' for at in range(100)]
    way = Travelling(tmp_path)
    with way.network:
        way.ask("a", text)
        sent = way.lines(items)
        whole = sum(map(len, items))
        assert 0 < sum(map(len, sent)) < whole / 3


@pytest.mark.parametrize(
    ("query", "carried"),
    [
        ('for $i in stream("s") where $i/k > 90 return { "v": $i.v.x }', "k, v/x where k > 90"),
        ('for $i in stream("s") where $i.k.l > 90 return { "k": $i.k, "v": $i.v }', "k, v where k/l > 90"),
        (
            'for $i in stream("s") where $i.v < 1 and not($i.k = "a") return $i."b c"',
            "v, k, b_x0020_c where v < 1",
        ),
        ("SELECT v FROM s WHERE k > 90 AND v = 'a'", "k, v where k > 90 and (v = 'a' or v is no string)"),
        ('for $i in stream("s") where $i.k > $i.v return $i.v', "k, v"),
        ('for $i in stream("s") let $o := $i.o where $o.k > 9 return $o.v', "o"),
        ('for $w in stream("s")|t diff 10| where $w.k > 9 return { "n": count($w) }', "k, t"),
        ('for $i in stream("s") where $i.k > 9 return $i."@id"', "i where k > 9"),
        ('for $w in stream("s")|count 2| for $i in $w group by $k := $i.k return [$k]', "k"),
        ('for $w in stream("s")|count 2| return [$w[1].k]', "all of s"),
        ('for $x in stream("s"), $y in stream("s") where $x.k = $y.k and $x.v > 9 return [$y.w]', "k, v, w"),
        (
            'for $x in stream("s")/root/i[k > 5] union stream("s")/root/i[v > 9] return [$x.w]',
            "k, v, w where k > 5 or v > 9",
        ),
    ],
)
def test_what_travels(tmp_path: Path, query: str, carried: str) -> None:
    """Members are told by their paths, and items by comparisons with constants; what has no rule needs all."""
    source = Source("s", tmp_path, "json", item="i", time=ItemPath.parse("t"))
    streams = {"s": RegisteredStream(source, "SP0", "SP0")}
    text = print_query(read_query(query))
    [tree] = sent_needs(need_of(text, {}), streams).inputs
    words, _, condition = carries(tree).partition(" where ")
    expected, _, due = carried.partition(" where ")
    assert (sorted(words.split(", ")), condition) == (sorted(expected.split(", ")), due)


def test_estimates_look_at_types() -> None:
    """Items for which a comparison fails are none that it selects, as far as bytes are estimated."""
    data = "".join(f'{{"t": {at}, "v": {at if at % 2 else chr(34) + "x" + chr(34)}}}\n' for at in range(100))
    items = list(parse_records(data.encode(), Limits(), "i"))
    streams = {"s": RegisteredStream(Source("s", Path("s"), "json", item="i"), "SP0", "SP0")}
    estimates = Estimates({"s": Sample("s", items)})

    def rate(condition: str) -> float:
        text = f'for $i in stream("s") where {condition} return {{ "v": $i.v }}'
        return estimates.rate(sent_needs(need_of(text, {}), streams).inputs[0]) - PROGRESS

    every = rate("exists($i.v)")
    assert rate("$i.v > 49") == pytest.approx(every / 4, rel=0.1)
    assert rate('$i.v = "x"') == pytest.approx(every / 2, rel=0.1)
