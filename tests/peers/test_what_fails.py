"""What fails for an item is a dead letter of those it fails for, once, wherever their queries are made (LAWS 2.4, 3.7).

Conditions stand in predicates, in `where` and in what is returned; values are text, none or two where a number is asked
for, INF, or beyond every double; items are late, bad, or do not say their time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.needs import QueryNeeds
from anabranch.network.options import Option, Options
from anabranch.network.topology import built, line
from anabranch.peers.dead_letters import LetterFile
from anabranch.peers.running import RunningNetwork
from anabranch.spark.answers.log import empty_answer
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from peers import test_kinds_in_parts as kinds
from peers.test_evolving import ended
from peers.test_json_parts import letters_of
from peers.working import Alone, GrowingStream, bare_network, dead_letters_of, network_of

VALUES = (*"12345670", "2.5", "-1", "x", "INF", "-INF", "NaN", "1e400", "", None, "1 4", "x 3")
"""Texts of an element; None where there is none, and two elements for two words."""
BAD = ("<i><t>3</t><k>", "<i><t>much</t><k>1</k><v>3</v></i>", "<i><k>2</k><v>4</v><w>1</w></i>")
PREDICATES = (
    "", "", "[v > 1]", "[v > 1]", "[w <= 3]", "[v > 1 and w > 0]", "[not(v > 3)]", "[v > 1][w > 0]", "[v = 2 or w < 3]",
    "[v > w]", "[v + 1 > w]", "[v - w < 2]", '[k = "1"]', "[10 div v > 2]", "[v * 2 > 3]", "[c/x > 1]",
    "[c[x > 1]/y = 2]", "[xs:integer(v) > 1]", "[number(v) > 1]", "[exists(w)]", "[some $z in w satisfies $z > 2]",
)  # fmt: skip
CONDITIONS = (
    "{0}/v > 1", "{0}/w <= 4", "{0}/k >= 1", "not({0}/v = 3)", "({0}/v >= 2 or {0}/w >= 2)", "{0}/v * 2 > 3",
    "xs:integer({0}/w) >= 1", "{0}/c/x > 1", "{0}[v > 2]/w = 1", "{0}/v eq {0}/w", "{0}/v > {0}/w", "{0}/v + 1 > {0}/k",
    "abs({0}/v) < 4",
)  # fmt: skip
RESULTS = (
    "<o>{{ {0}/v }}</o>", "<o/>", "{0}/w", "<o>{{ {0}/v + 1 }}</o>", "<o>{{ {0}/t, 6 div {0}/w }}</o>", "{0}",
    "if ({0}/v > 2) then {0}/w else {0}/k", "<o a='{{ {0}/v * 2 }}'/>", "<o>{{ {0}/c[x > 1] }}</o>",
)  # fmt: skip
AGGREGATES = ("sum($w/v)", "avg($w/v)", "min($w/v)", "max($w/w)", "count($w)", "sum($w/c[x > 1]/y)", "count($w[v > 2])",
              "median($w/v)", "$w/v", "sum($w/v) + 1 div sum($w/w)")  # fmt: skip


def some_path(random: Random, stream: str) -> str:
    """A path over a stream, with a predicate or without one."""
    return f'stream("{stream}")/root/i{random.choice(PREDICATES)}'


def some_where(random: Random, *given: str, variables: Sequence[str]) -> str:
    """A `where` of given conditions, and others on the variables, in any order."""
    more = [random.choice(CONDITIONS).format(random.choice(variables)) for _ in range(random.choice((0, 0, 1, 1, 2)))]
    conditions = [*given, *more]
    random.shuffle(conditions)
    return f" where {' and '.join(conditions)}" if conditions else ""


def some_result(random: Random, variables: Sequence[str]) -> str:
    """What is returned of the variables."""
    if len(variables) > 1 and random.random() < 0.3:
        return random.choice(("<o>{ $x/v }{ $y/w }</o>", "<o>{ $x/v + $y/v }</o>", "<o>{ $x/t, $y/t }</o>"))
    return random.choice(RESULTS).format(random.choice(variables))


def some_query(random: Random, names: Sequence[str]) -> str:
    """A selection, windows, a join by an interval or by windows, or one of those that travel in parts."""
    one, other = random.choice(names), random.choice(names)
    match random.randrange(8):
        case 0 | 1:
            where = some_where(random, variables=["$x"])
            inner = random.choice(("", "", " for $c in $x/c[x > 1]"))
            return f"for $x in {some_path(random, one)}{inner}{where} return {some_result(random, ['$x'])}"
        case 2 | 3:
            window = random.choice(("|t diff 10|", "|t diff 10 step 5|", "|t diff 20|", "|count 3|"))
            values = ", ".join(random.sample(AGGREGATES, random.choice((1, 2))))
            where = random.choice(("", "", " where sum($w/v) > 2", " where $w/v > 2", " where count($w) > 1"))
            return f"for $w in {some_path(random, one)}{window}{where} return <w>{{ {values} }}</w>"
        case 4 | 5:
            near = ("$x/t >= $y/t - 2", "$x/t <= $y/t + 2")
            where = some_where(random, *near, variables=["$x", "$y"])
            loops = f"for $x in {some_path(random, one)}, $y in {some_path(random, other)}"
            return f"{loops}{where} return {some_result(random, ['$x', '$y'])}"
        case 6:
            windows = random.choice((("|t diff 10|", "|t diff 10|"), ("|count 3|", "|count 2 step 1|")))
            where = some_where(random, "$x/k = $y/k", variables=["$x", "$y"])
            loops = f"for $x in {some_path(random, one)}{windows[0]}, $y in {some_path(random, other)}{windows[1]}"
            return f"{loops}{where} return {some_result(random, ['$x', '$y'])}"
        case _:
            return kinds.some_query(random, names)


def some_items(random: Random, count: int) -> list[str]:
    """Items of a time that mostly grows."""

    def of(name: str, value: str | None) -> str:
        return "" if value is None else "".join(f"<{name}>{each}</{name}>" for each in value.split(" "))

    time, found = 0, []
    for _ in range(count):
        time += random.choice((0, 1, 1, 2, 4))
        at = time - random.choice((0,) * 12 + (3,))
        inner = "".join(f"<c>{of('x', random.choice(VALUES))}<y>2</y></c>" for _ in range(random.choice((0, 1, 1, 2))))
        values = of("k", random.choice(VALUES[:4])) + of("v", random.choice(VALUES)) + of("w", random.choice(VALUES))
        found.append(f"<i><t>{at}</t>{values}{inner}<much>{'x' * 40}</much></i>")
    return found


def told_by(letters: Iterable[dict[str, object]]) -> Counter[tuple[object, ...]]:
    """What was set aside: of a stream with its place, for a subscription without it, which may be one in a flow."""
    return Counter(
        (each["subscription"], each.get("code"), each["reason"])
        if each.get("subscription")
        else (each["stream"], each["partition"], each["offset"], each["reason"])
        for each in letters
    )


NEAR = (
    'for $x in stream("s")/root/i[v > 1], $y in stream("u")/root/i where $x/t >= $y/t - 2 and $x/t <= $y/t + 2 '
    "and $x/k >= 3 return <o>{ $x/t, $y/t }</o>"
)


def test_what_fails_before_items_meet(tmp_path: Path) -> None:
    """An item that fails in a predicate of an interval join is one dead letter: if it would meet several, or none."""
    brought = {
        "s": ((1, "5", 3), (2, "x", 3), (3, "x", 1), (9, "4", 4)),
        "u": ((1, "0", 0), (2, "0", 0), (10, "0", 0), (11, "0", 0)),
    }
    streams = []
    for name, items in brought.items():
        said = [f"<i><t>{t}</t><v>{v}</v><k>{k}</k></i>" for t, v, k in items]
        GrowingStream(tmp_path / name, said).grow(9)
        source = Source(name, tmp_path / name, "lines", item="i", time=ItemPath.parse("t"))
        streams.append(RegisteredStream(source, "SP0", "SP0", None, accents=False))
    network = network_of(line(2), streams, "widening", [("a", NEAR, "SP1")])
    with bare_network(network, tmp_path / "network", Random(1)) as running:
        running.drain()
        for name in brought:
            running.end_stream(name)
        assert re.findall("[0-9]+", running.answer("a")) == ["1", "1", "1", "2", "9", "10", "9", "11"]
        LetterFile.of(tmp_path / "dead", tmp_path / "network").take(running)
        letters = [json.loads(each) for each in (tmp_path / "dead").read_text().splitlines()]
        assert [(each["code"], each["raw"][:11], each["subscription"]) for each in letters] == [
            ("FORG0001", "<i><t>2</t>", "a"),
            ("FORG0001", "<i><t>3</t>", "a"),
        ]


@pytest.mark.parametrize(
    "text",
    [
        'for $w in stream("s")/root/i[v > 1][w > 0]|t diff 10| return <o>{ count($w) }</o>',
        'for $w in stream("s")/root/i|t diff 10| return <o>{ sum($w/c[v > 1][w > 0]/w) }</o>',
        'for $x in stream("s")/root/i[v > 1][w > 0]|count 1|, $y in stream("s")/root/i|count 1| where $x/t = $y/t '
        "return <o>{ $x/t }</o>",
        'for $x in stream("s")/root/i[v > 1][w > 0] return <o>{ $x/t }</o>',
    ],
    ids=["windows", "values of windows", "join", "items"],
)
def test_what_fails_before_the_next_is_asked(tmp_path: Path, text: str) -> None:
    """Where the first of two predicates raises, it does so also if the second would be false: it is not asked."""
    source = Source("s", tmp_path / "s", "lines", item="i", time=ItemPath.parse("t"))
    inner = ("<v>5</v><w>1</w>", "<v>x</v>", "<v>5</v><w>1</w>")
    said = [f"<i><t>{t}</t>{each}<c>{each}</c></i>" for t, each in enumerate(inner)]
    GrowingStream(tmp_path / "s", [*said, "<i><t>20</t></i>"]).grow(9)
    stream = RegisteredStream(source, "SP0", "SP0", None, accents=False)
    network = network_of(line(2), [stream], "widening", [("a", text, "SP1")])
    with bare_network(network, tmp_path / "network", Random(1), (1 << 20,)) as running:
        running.drain()
        LetterFile.of(tmp_path / "dead", tmp_path / "network").take(running)
        letters = [json.loads(each) for each in (tmp_path / "dead").read_text().splitlines()]
        assert [(each["code"], each["reason"]) for each in letters] == [("FORG0001", "'x' is no number")]


ITSELF = (
    'for $x in stream("s")/root/i[v > 1], $y in stream("s")/root/i[v > 1] where $x/t >= $y/t - 2 and $x/t <= $y/t + 2 '
    "and $x/w > 1 and $y/w > 1 return <o>{ $x/t/text(), $y/t/text() }</o>"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ITSELF, "<o>11</o><o>12</o><o>21</o><o>22</o>"),
        (f"for $w in ({ITSELF})|count 2| return <n>{{ count($w) }}</n>", "<n>2</n><n>2</n>"),
    ],
    ids=["join", "windows over it"],
)
def test_a_stream_that_meets_itself(tmp_path: Path, text: str, expected: str) -> None:
    """An interval join is answered when an item comes that is far enough, also one that is in no pair; and no item
    fails that says its time."""
    source = Source("s", tmp_path / "s", "lines", item="i", time=ItemPath.parse("t"))
    said = [f"<i><t>{t}</t><v>{v}</v><w>{w}</w></i>" for t, v, w in ((1, 5, 5), (2, 5, 5), (7, 5, 0), (9, 0, 0))]
    GrowingStream(tmp_path / "s", said).grow(9)
    stream = RegisteredStream(source, "SP0", "SP0", None, accents=False)
    network = network_of(line(2), [stream], "widening", [("a", text, "SP1")])
    with bare_network(network, tmp_path / "network", Random(1), (1 << 20,)) as running:
        running.drain()
        assert running.answer("a") == expected
        assert not dead_letters_of(running, "a")


@pytest.mark.mass
def test_dead_letters_are_those_of_one_engine(tmp_path: Path, mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever conditions fail, and whatever of a query is made on the way, all that one engine sets aside is told."""
    seen = [check(tmp_path / f"{number}", Random(number), monkeypatch) for number in mass.cases(500)]
    assert sum(seen), "nothing failed"


def check(folder: Path, random: Random, monkeypatch: pytest.MonkeyPatch) -> int:
    """Try one network, in which plans are taken at random; gives how many dead letters there are."""
    topology = built(random.choice(("line", "star", "random")), random.randrange(2, 5), random.randrange(99))
    evolves = random.random() < 0.3
    slack = Fraction(random.choice((0, 0, 2)))
    grown, streams = [], []
    for name in "su":
        items = some_items(random, 30)
        for _ in range(random.choice((0, 0, 2))):
            items.insert(random.randrange(5, len(items)), random.choice(BAD))
        for _ in range(2 * evolves):
            items.insert(random.randrange(5, len(items)), random.choice(kinds.SAID))
        grown.append(GrowingStream(folder / name, items))
        at, time = random.choice(topology.peers), ItemPath.parse("t")
        source = Source(name, folder / name, "lines", item="i", time=time, slack=slack)
        streams.append(RegisteredStream(source, at, at, None, evolves))
    alone = Alone(folder / "alone", [each.source for each in streams], random)
    real = Options.of

    def at_random(options: Options, need: QueryNeeds, at: str) -> list[Option]:
        found = list(real(options, need, at))
        return [random.choice(found)] if random.random() < 0.6 else found

    with monkeypatch.context() as patched:
        patched.setattr(Options, "of", at_random)
        with bare_network(network_of(topology, streams), folder / "network", random) as running:
            for portion in range(random.choice((1, 1, 2))):
                with running.together():  # a change of the plan costs more than all else here
                    for number in range(random.randrange(3, 6)):
                        name, text = f"q{portion}{number}", some_query(random, random.choice(("s", "su", "su")))
                        running.register(name, text, random.choice(topology.peers))
                        alone.drain()
                        alone.queries[name] = text
                for each in grown:
                    each.grow(random.randrange(4, 25))
                running.drain()
                alone.drain()
            for each in grown:
                each.grow(40)
            running.drain()
            alone.drain()
            return compare(running, alone, folder / "dead")


def compare(running: RunningNetwork, alone: Alone, path: Path) -> int:
    """Answers, ends and dead letters are those of one engine; gives how many of the last there are."""
    logs = [each.log for each in running.peers.values()]
    for name, text in alone.queries.items():
        due = alone.answer(name) if alone.log.subscription(name) else empty_answer(text, alone.sources)
        assert running.answer(name) == due, text
        assert ended(logs, name) == ended([alone.log], name), text
    LetterFile.of(path, path.parent / "network").take(running)
    lines = path.read_text().splitlines() if path.exists() else []
    found = told_by(json.loads(each) for each in lines)
    due_letters = told_by(json.loads(each.to_json()) for each in letters_of(alone.log))
    lost, more = due_letters - found, found - due_letters
    for name in alone.queries:  # whoever makes windows and tuples on the way hears later that one has ended
        if ended([alone.log], name) is not None:
            more = Counter({each: count for each, count in more.items() if each[0] != name})
    asked = {name: text for name, text in alone.queries.items() if any(name in each for each in (*lost, *more))}
    assert not lost, (lost, asked)
    assert not more, (more, asked)
    return found.total()
