"""The streams and the queries of the simulated site, and how both come and go.

Streams are small, and of all kinds: lines of XML and of JSON, a document that never closes, items with times in two
partitions, accents, updates; with items that are bad, late or of a changed unit now and then.
What comes in a *phase* is settled beforehand, and comes in pieces that end anywhere.
Between phases all is read, and subscriptions come, go, or have their queries changed: so each of them begins at a known
place, however many epochs and runs a phase took, and its answer is that of an undisturbed run.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

from anabranch.language import check, parse, print_query
from anabranch.spark.sinks import Kafka
from anabranch.storage import Location, Where
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import NO_PATH, Source
from anabranch.stream.reading.topic import Topic

BROKERS = "simulated:9092"
_NAMESPACE = 'xmlns:s="urn:anabranch:stream"'
_LAST = f'<s:punctuation {_NAMESPACE} where="true()"{{}}/>\n'
_CLOSING = _LAST.format(' at="1000000"') + _LAST.format(' at="1000001"')
_BEAT = f'<s:punctuation {_NAMESPACE} at="1000000"/>\n'
_ALTER = f'<s:accent {_NAMESPACE}{{}}><s:alter path="v" by="{{}}"/></s:accent>\n'

QUERIES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "some": (("s",), """<r>{ for $p in stream("s")/root/i where $p/g = 1 return <o>{ $p/n, $p/v + 1 }</o> }</r>"""),
    "rest": (("s",), """<r>{ for $p in stream("s")/root/i where $p/v < 40 return $p }</r>"""),
    "threes": (("s",), """<r>{ for $w in stream("s")/root/i |count 3 step 2| return <w>{ $w/n }</w> }</r>"""),
    "levels": (
        ("s",),
        """<r>{ for $w in stream("s")/root/i |count 5| for $p in $w group by $g := $p/g
        return <level of="{ $g }">{ count($p), max($p/n) }</level> }</r>""",
    ),
    "doc": (("d",), """<doc>{ for $p in stream("d")/root/i where $p/g != 2 return $p/n }</doc>"""),
    "pairs": (("d",), """<r>{ for $w in stream("d")/root/i |count 2| return <two>{ sum($w/v), $w/n }</two> }</r>"""),
    "json": (("j",), """for $o in stream("j") where $o.g = 1 return { "n": $o.n, "v": $o.v + 1 }"""),
    "sums": (("j",), """for $w in stream("j") |count 3 step 1| return { "sum": sum($w.v), "first": $w[1].n }"""),
    "warm": (("e",), """<r>{ for $p in stream("e")/root/i where $p/v > 20 return <o>{ $p/n, $p/v }</o> }</r>"""),
    "heat": (("e",), """<r>{ for $w in stream("e")/root/i |n diff 4 step 2| return <w>{ avg($w/v) }</w> }</r>"""),
    "means": (
        ("a",),
        """<r>{ for $w in stream("a")/root/i |t diff 4 step 2| let $a := avg($w/v)
        return <mean n="{ count($w) }">{ $a }</mean> }</r>""",
    ),
    "spans": (("a",), """<r>{ for $w in stream("a")/root/i |t diff 3| return <span>{ $w[g = 1]/t }</span> }</r>"""),
    "bursts": (
        ("a",),
        """<r>{ for $w in stream("a")/root/i |t gap 2 by g|
        return <burst until="{ window-end($w) }">{ sum($w/v) }</burst> }</r>""",
    ),
    "merged": (("a",), """<r>{ for $p in stream("a")/root/i where $p/g < 2 return $p/n }</r>"""),
    "steps": (
        ("a", "b"),
        """<r>{ for $x in stream("a")/root/i |t diff 2 step 1| for $y in stream("b")/root/i |t diff 3|
        where $x/v >= $y/v return <pair>{ $x/n, $y/n }</pair> }</r>""",
    ),
    "near": (
        ("a", "b"),
        """<r>{ for $x in stream("a")/root/i for $y in stream("b")/root/i
        where $x/t >= $y/t - 1 and $x/t <= $y/t + 1 return <near>{ $x/n, $y/n }</near> }</r>""",
    ),
    "best": (
        ("b",),
        """<best>{ (for $p in stream("b")/root/i group by $g := $p/g let $n := count($p)
        order by $n descending, $g return <level of="{ $g }">{ $n }</level>)[position() <= 2] }</best>""",
    ),
    "lately": (
        ("b",),
        """<r>{ for $p in stream("b")/root/i return <n>{ count(stream("b")/root/i?[3]) }</n> }</r>""",
    ),
    "risen": (
        ("u",),
        """<risen>{ for $q in stream("u")/root/q where $q/v > $q/v#1 order by $q/v - $q/v#1 descending
        return <q>{ $q/n, $q/v }</q> }{ count(stream("u")//v) }</risen>""",
    ),
    "high": (("u",), """for $q in stream("u")/root/q where $q/v#1 > 40 return <high>{ $q/n, $q/v#1 }</high>"""),
    "bands": (
        ("u",),
        """<bands>{ for $w in stream("u")/root/q[v] |v diff 40 step 20|
        return <band from="{ window-start($w) }">{ count($w), sum($w/v) }</band> }</bands>""",
    ),
    "seen": (
        ("b", "u"),
        """<r>{ for $p in stream("b")/root/i return <seen>{ $p/t, stream("u")/root/q[n = 1]/v }</seen> }</r>""",
    ),
    "kept": (("k",), """<r>{ for $p in stream("k")/root/i where $p/g < 2 return <o>{ $p/n, $p/v }</o> }</r>"""),
    "fours": (("k",), """<r>{ for $w in stream("k")/root/i |count 4 step 3| return <w>{ $w/n }</w> }</r>"""),
    "middles": (
        ("m",),
        """<r>{ for $w in stream("m")/root/i |t diff 4 step 2|
        return <w from="{ window-start($w) }">{ count($w), max($w/v) }</w> }</r>""",
    ),
    "both": (("m",), """<r>{ for $p in stream("m")/root/i where $p/g != 1 return $p/n }</r>"""),
    "again": (("x",), """<r>{ for $p in stream("x")/r/o return <a>{ $p/n }</a> }</r>"""),
    "couples": (("x",), """<r>{ for $w in stream("x")/r/o |count 2| return <two>{ $w/n }</two> }</r>"""),
}
"""By name: the streams that a query reads, and the query; `x` is the answer of `some`."""
TOPICS = {"k": 1, "m": 2}
"""The streams that are topics, with the numbers of their partitions."""
OUTLETS = {"one": 1, "many": 3}
"""The topics that answers are written to."""
CHANGED = {
    "rest": """<r>{ for $p in stream("s")/root/i where $p/v >= 40 return $p/n }</r>""",
    "means": """<r>{ for $w in stream("a")/root/i |t diff 5| return <max>{ max($w/v) }</max> }</r>""",
    "high": """for $q in stream("u")/root/q where $q/v > 50 return <high>{ $q/n, $q/v }</high>""",
}
"""Queries that take the place of those of the same name."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that come into a file."""

    file: str
    data: bytes
    topic: str | None = None
    """The topic that it comes into, its lines as messages of one transaction; else it comes into the file."""
    is_kept: bool = True
    """Whether that transaction is committed."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What comes, and who is subscribed, until all of it is read."""

    streams: Sequence[str]
    subscriptions: Mapping[str, str]
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Script:
    """All that happens, as far as people decide it."""

    phases: Sequence[Phase]
    delivered: frozenset[str]
    """The subscriptions with sinks."""
    topics: Mapping[str, str]
    """The topics that are the sinks of some of them."""
    always: Mapping[str, str]
    """The subscriptions that are there from the beginning to the end."""

    @staticmethod
    def drawn(random: Random) -> Script:
        """A script for a few streams and subscriptions."""
        streams = random.sample("sdjeabukm", random.choice((1, 2, 2, 3)))
        possible = [name for name, (reads, _) in QUERIES.items() if {*reads} <= {*streams}]
        chosen = random.sample(possible, min(len(possible), random.randint(1, 5)))
        if "some" in chosen and random.random() < 0.6:
            streams.append("x")
            chosen += random.sample(["again", "couples"], random.randint(1, 2))
        count = random.choice((1, 2, 2, 3))
        wanted = {name: QUERIES[name][1] for name in chosen}
        fixed = {"some"} if "x" in streams else set()
        first = {name: text for name, text in wanted.items() if name in fixed or random.random() < 0.7}
        workloads = [first or dict(wanted)]
        for _ in range(count - 1):
            workloads.append(_following(random, workloads[-1], wanted, fixed))
        parts = {name: _parts(name, random, count) for name in streams if name != "x"}
        phases = [
            Phase(streams, workload, _mixed(random, [parts[name][number] for name in parts]))
            for number, workload in enumerate(workloads)
        ]
        always = {
            name: text for name, text in workloads[0].items() if all(each.get(name) == text for each in workloads)
        }
        delivered = [name for name in chosen if random.random() < 0.7]
        share = random.choice((0.0, 0.7))
        topics = {name: random.choice(list(OUTLETS)) for name in delivered if random.random() < share}
        return Script(phases, frozenset(delivered), topics, always)


def _following(random: Random, before: Mapping[str, str], wanted: Mapping[str, str], fixed: set[str]) -> dict[str, str]:
    """The subscriptions of the next phase: some gone, some new, some changed."""
    found = {name: text for name, text in before.items() if name in fixed or random.random() < 0.8}
    found |= {name: text for name, text in wanted.items() if name not in before and random.random() < 0.6}
    for name in found:
        if name in before and name in CHANGED and random.random() < 0.4:
            found[name] = CHANGED[name]
    return found or dict(before)


def _mixed(random: Random, streams: Sequence[Sequence[Piece]]) -> list[Piece]:
    """The pieces of all streams; those of one stream keep their order, since its files are begun in it."""
    held = [list(reversed(each)) for each in streams if each]
    found: list[Piece] = []
    while held:
        following = random.choice(held)
        found.append(following.pop())
        held = [each for each in held if each]
    return found


# --- streams ----------------------------------------------------------------------------------------------------------


def sources(
    names: Sequence[str], inputs: Path, objects: Location | None, answers: Where, *, in_files: bool
) -> dict[str, Source]:
    """The streams as a site declares them; `objects` is the folder in which the files of `s` are objects.

    What comes into topics is in files, too, for those who are to read it there.
    """
    files = Location.of(inputs) if objects is None else objects
    timed = {"time": ItemPath.parse("t"), "slack": Fraction(2)}
    known = {
        "s": Source("s", files / "s", "lines"),
        "d": Source("d", inputs / "d"),
        "j": Source("j", inputs / "j", "json"),
        "e": Source("e", inputs / "e", "lines"),
        "a": Source("a", inputs / "a-0", "lines", more=(inputs / "a-1",), **timed),  # type: ignore[arg-type]
        "b": Source("b", inputs / "b", "lines", **timed),  # type: ignore[arg-type]  # a path and a fraction
        "u": Source("u", inputs / "u", "lines", time=ItemPath.parse("when"), updates=True),
        "x": Source("x", answers, "document", answer="some"),
        "k": Source("k", inputs / "k-0", "lines"),
        "m": Source("m", inputs / "m-0", "lines", more=(inputs / "m-1",), **timed),  # type: ignore[arg-type]
    }
    for name, count in TOPICS.items() if not in_files else ():
        topic = Topic.of(BROKERS, name, partitions=count, timestamps=False)
        known[name] = replace(known[name], path=NO_PATH, more=(), topic=topic)
    return {name: known[name] for name in names}


def outlet(name: str, topic: str) -> Kafka:
    """The topic that is the sink of a subscription; some results have keys."""
    return Kafka(BROKERS, topic, key="n" if name in ("some", "json", "kept") else None)


def printed(text: str, streams: Mapping[str, Source]) -> str:
    """A query as a trunk is given it."""
    edited = {name for name, each in streams.items() if each.updates}
    return print_query(check(parse(text), text, inputs=dict.fromkeys(streams), edited=edited).query)


def _parts(name: str, random: Random, phases: int) -> list[list[Piece]]:
    """What comes into a stream, by phase."""
    count = random.choice((6, 15, 30))
    match name:
        case "s":
            return [_files(random, phase, list(_items(random, count))) for phase in range(phases)]
        case "d":
            lines = ["<root>", *_items(random, count * phases, _BAD[1:])]
            return _cut(random, "d", "".join(lines), phases)
        case "j":
            return _cut(random, "j", "".join(_objects(random, count * phases)), phases)
        case "e":
            return _cut(random, "e", "".join(_evolving(random, count * phases)) + _LAST.format(""), phases)
        case "k":
            return _transactions(random, "k", 0, list(_items(random, count * phases, _BAD[1:])), phases)
        case "a" | "b" | "m":
            lines = list(_timed(random, count * phases))
            if name == "b":
                return _cut(random, "b", "".join(lines) + _CLOSING, phases)
            dealt: tuple[list[str], list[str]] = [], []
            for line in lines:
                random.choice(dealt).append(line)
            if name == "m":
                ends = _CLOSING.splitlines(keepends=True)
                sent = [_transactions(random, "m", number, part + ends, phases) for number, part in enumerate(dealt)]
                return [_mixed(random, parts) for parts in zip(*sent, strict=True)]
            found = [_cut(random, f"a-{number}", "".join(part) + _CLOSING, phases) for number, part in enumerate(dealt)]
            return [_mixed(random, parts) for parts in zip(*found, strict=True)]
        case _:
            return _cut(random, "u", "".join(_updates(random, count * phases)) + _BEAT, phases)


def _cut(random: Random, file: str, text: str, phases: int) -> list[list[Piece]]:
    """The bytes of a file that grows, which are cut anywhere."""
    data = text.encode()
    borders = [0, *sorted(random.randint(0, len(data)) for _ in range(phases - 1)), len(data)]
    found = []
    for start, end in pairwise(borders):
        cuts = sorted({start, end, *(random.randint(start, end) for _ in range(random.randint(0, 4)))})
        found.append([Piece(file, data[first:last]) for first, last in pairwise(cuts)])
    return found


def _transactions(random: Random, topic: str, partition: int, lines: Sequence[str], phases: int) -> list[list[Piece]]:
    """Messages of a partition, in transactions; some of these are aborted, and come again."""
    borders = [0, *sorted(random.randint(0, len(lines)) for _ in range(phases - 1)), len(lines)]
    found: list[list[Piece]] = []
    for start, end in pairwise(borders):
        cuts = sorted({start, end, *(random.randint(start, end) for _ in range(random.randint(0, 4)))})
        pieces = []
        for first, last in pairwise(cuts):
            data = "".join(lines[first:last]).encode()
            aborted = [Piece(f"{topic}-{partition}", data, topic, is_kept=False)] if random.random() < 0.3 else []
            pieces += [*aborted, Piece(f"{topic}-{partition}", data, topic)]
        found.append(pieces)
    return found


def _files(random: Random, phase: int, lines: Sequence[str]) -> list[Piece]:
    """Files of a folder, each there at once, some packed."""
    found: list[Piece] = []
    at = 0
    while at < len(lines):
        size = random.randint(1, len(lines))
        data = "".join(lines[at : at + size]).encode()
        packed = random.random() < 0.2
        name = f"s/{phase}-{len(found):03}{'.gz' if packed else ''}"
        found.append(Piece(name, gzip.compress(data, mtime=0) if packed else data))
        at += size
    return found


_BAD = ("<i><n>1</n>\n", "<i>&bomb;</i>\n", "<i><g>1</g><v>no number</v></i>\n")
"""Items that are bad, or have bad values; the first ends with its line only."""


def _items(random: Random, count: int, bad: Sequence[str] = _BAD) -> Iterator[str]:
    for number in range(count):
        if random.random() < 0.06:
            yield random.choice(bad)
        yield f"<i><n>{number}</n><g>{random.randrange(3)}</g><v>{random.randrange(100)}.5</v></i>\n"


def _objects(random: Random, count: int) -> Iterator[str]:
    for number in range(count):
        if random.random() < 0.06:
            yield random.choice(('{"n": 1\n', "nothing\n", '{"g": 1, "v": "no number"}\n'))
        yield f'{{"n": {number}, "g": {random.randrange(3)}, "v": {random.randrange(100)}}}\n'


def _evolving(random: Random, count: int) -> Iterator[str]:
    changed = False
    for number in range(count):
        if random.random() < 0.15:
            changed = not changed
            yield _ALTER.format("", ". * 2 + 30" if changed else "(. - 30) div 2")
        yield f"<i><n>{number}</n><g>{number % 3}</g><v>{random.randrange(50)}.0</v></i>\n"


def _timed(random: Random, count: int) -> Iterator[str]:
    """Items with times, of which some are in no order, and some too late."""
    for number in range(count):
        behind = random.choice((0, 0, 0, 1, 2, 7))
        if random.random() < 0.04:
            yield "<i><t>no time</t></i>\n"
        yield (
            f"<i><t>{max(0, number - behind)}</t><n>{number}</n><g>{random.randrange(3)}</g>"
            f"<v>{random.randrange(100)}</v></i>\n"
        )


def _updates(random: Random, count: int) -> Iterator[str]:
    """Values that are replaced, some of them deleted, and updates of what is not there."""
    for number in range(count):
        at, value = f's:at="{number // 2}"', random.randrange(100)
        if number < 4:
            yield (f'<q {_NAMESPACE} {at}><n>{number}</n><s:mutable id="{number}"><v>{value}</v></s:mutable></q>\n')
            continue
        target = "unknown" if random.random() < 0.05 else str(number % 4)
        content = "" if random.random() < 0.08 else f"<v>{value}</v>"
        yield f'<s:replace {_NAMESPACE} target="{target}" at="{number // 2}">{content}</s:replace>\n'
