"""Displays over items of the past that change item by item: the law's answers at the cost of what changes.

The judge is the law, which answers every moment from scratch, and of dead letters the answer that is computed anew with
each element (`DisplayAnswer`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from anabranch.algebra.display.replay import Replay
from anabranch.branch.display.branch import BranchContext
from anabranch.branch.members import BranchMember
from anabranch.branch.past.entrywise import EntrywiseAnswer
from anabranch.branch.past.queries import RecalledQuery, recalled_query
from anabranch.branch.past.recalling import DisplayAnswer
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.errors import DynamicError
from anabranch.law.arrivals.past import Past
from anabranch.law.arrivals.recall import Recalling
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import answer_text
from anabranch.law.env import Env
from anabranch.law.inputs import Arrival, Input
from anabranch.runtime.past.recollection import Recollection
from anabranch.runtime.past.timeline import Timeline
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.finite import run_queries
from anabranch.spark.hosts.local_host import LocalHost
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.elements import DeadLetter
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from branch.feeding import Taken
from history.editing import apply
from history.hosting import replayed
from history.past import checked, given, item, stream
from history.test_past_evolving import lines
from mass import Mass, sized, some
from spark.bare import BareTrunk

Functions: TypeAlias = Mapping[str, PythonFunction]
NO_FUNCTIONS: Functions = {}
DISTANCE = """declare function local:distance($one, $two) {
    math:sqrt(math:pow($one/v - $two/v, 2) + math:pow($one/w - $two/w, 2))
};"""


@dataclass
class Answered:
    """A query answered element by element; its state may be put away between any two."""

    query: str
    streams: Mapping[str, Input]
    functions: Functions = field(default_factory=dict)
    is_whole: bool = False
    """Whether it is computed anew with each element."""
    out: Taken = field(default_factory=Taken)

    def __post_init__(self) -> None:
        found = recalled_query(checked(self.query, self.streams, self.functions).query, self.functions)
        assert found is not None, self.query
        assert found.standing is None, self.query
        self._found: RecalledQuery = found
        self._begin()

    def _begin(self) -> None:
        query = self._found
        self.memory = Recollection(query.query, query.asked, self.streams, self.functions, "q")
        member = BranchMember("q", "q", query, self.out)
        around = BranchContext(self.functions)
        roots = {name: each.root.name.local for name, each in self.streams.items()}
        self.answer: EntrywiseAnswer | DisplayAnswer | None = DisplayAnswer(member, "xml")
        if not self.is_whole:
            self.answer = EntrywiseAnswer.of(member, around, self.memory, roots)

    def put_away(self) -> None:
        """Put the state away, and go on with what was made of it."""
        assert self.answer is not None
        now, known = self.memory.now, list(self.memory.remembered())
        data, shown = self.answer.save()
        self._begin()
        self.memory.restore(now, known)
        self.answer.restore(json.loads(json.dumps(data)), shown)

    def run(self, random: Random | None = None) -> Iterator[tuple[str, list[DeadLetter]]]:
        """The text after each element, and the dead letters with it."""
        replay, text = Replay(), ""
        for moment in Past(self._found.query, self.streams).moments:
            if random is not None and random.random() < 0.3:
                self.put_away()
            assert self.answer is not None, self.query
            told, buried = len(self.out.pieces), len(self.out.dead)
            self.memory.take(moment.place.stream, moment.element)
            came = moment.element if isinstance(moment.element, Arrival) else None
            self.answer.take(self.memory, moment.place, came)
            for each in replay.feed("".join(self.out.pieces[told:])):
                text = apply(each.edits, text)
            yield text, self.out.dead[buried:]


def compare(query: str, streams: Mapping[str, Input], random: Random, functions: Functions = NO_FUNCTIONS) -> int:
    """The law and the machine show the same after every element, and set the same aside; how often that changes."""
    whole = list(Answered(query, streams, functions, is_whole=True).run())
    ours = list(Answered(query, streams, functions).run(random))
    assert [text for text, _ in ours] == list(by_law(query, streams, functions)), query
    assert [set(dead) for _, dead in ours] == [set(dead) for _, dead in whole], query
    assert all(len(set(dead)) == len(dead) for _, dead in ours), query
    return len({text for text, _ in ours}) + sum(len(dead) for _, dead in ours)


def by_law(query: str, streams: Mapping[str, Input], functions: Functions = NO_FUNCTIONS) -> Iterator[str]:
    """What the law shows after each element."""
    parsed = checked(query, streams, functions).query
    past = Past(parsed, streams)
    law = Recalling(parsed, past, streams, functions, "q")
    for number in range(len(past.moments)):
        with law.at(number):
            try:
                yield answer_text(law.top(parsed.body, Env.of(parsed)), json=False)
            except DynamicError:
                yield ""


def test_a_pair_lives_as_long_as_both_of_its_items() -> None:
    """An item of exactly a second ago still meets another, and then the pair is gone without an update.

    A pair that fails is set aside when it comes, under its last item.
    """
    beat = '<s:punctuation xmlns:s="urn:anabranch:stream" at="{}"/>'
    first = stream(item(0, v=1, w=1), item(2, v=2, w="x"))
    second = stream(item(1, v=1, w=1), beat.format(1.5), item(2, v=2, w=1), beat.format(2.5), item(3, v=2, w=1))
    query = "for $x in stream('a')/r/i?[1], $y in stream('b')/r/i?[1] where $x/v = $y/v return <p>{ $x/w + $y/w }</p>"
    found = list(Answered(query, given({"a": first, "b": second})).run(Random(1)))
    assert [text for text, _ in found] == ["", "<p>2</p>", "", "", "", "", ""]
    dead = [[(each.raw, each.reason) for each in letters] for _, letters in found]
    failed = [[(item(time, v=2, w=1), "'x' is no number")] for time in (2, 3)]
    assert dead == [[], [], [], [], failed[0], [], failed[1]]


# --- random queries -----------------------------------------------------------------------------------------

PATHS = ("/r/i", "//i", "/r/i[v > 2]", "/r/i[v != 1]", "/r/i[w]", "/r/i/n", "//i[2 div v > 0]")
SECONDS = ("0", "0.5", "1", "1.5", "3", "6")
CONDITIONS = (
    "$x/v = $y/v",
    "$y/w = $x/v",
    "$x/v = $y/v and 1 div $y/w > 0",
    "$x/v < $y/v",
    "abs($x/v - $y/w) <= 1",
    "$x/v - $y/v <= 1 and $y/v - $x/v < 2",
    "local:distance($x, $y) < 1.5",
    "math:pow($x/v - $y/v, 2) + math:pow($x/w - $y/w, 2) <= 4",
    "$x/v = $y/v or $x/w > $y/w",
    "$x/v + $y/v > 3",
    "near($x/v, $y/v)",
    "$x/v > 0 and $y/w < 3",
    "$x/w + 1 > 1 and near($y/v, $x/w) and $y/v != 2",
    "(some $m in $y/v satisfies $m = $x/w) and count($x/v) = 1",
)
RESULTS = (
    "<p>{ $x/v, $y/w }</p>",
    "$x/v + $y/v",
    "($x/v/text(), $y/v/text())",
    "if ($x/w = 0) then () else <q w='{ $y/w }'>{ $x/v * 2 }</q>",
)
SINGLE = (
    "for $x in {0} return <p>{{ $x/v }}</p>",
    "for $x in {0} where $x/v > 1 order by $x/w descending return $x/v + 1",
    "for $x in {0} let $z := $x/v * 2 where $z > 2 return <z>{{ $z }}</z>",
    "for $x in {0}/v return $x + 1",
    "{0}/v",
    "{0}",
)
NUMBERS = ("0", "1", "2", "3", "0.5", "-1", "2", "3")


def near(one: object, other: object) -> bool:
    """A function in Python, of which nothing is known."""
    return abs(float(str(one)) - float(str(other))) < 1.5


FUNCTIONS: Functions = {"near": near}


def random_stream(random: Random, items: int) -> str:
    """Items whose times rise, or mostly so, with heartbeats, several values, none, and values that are no numbers."""
    found: list[str] = []
    time = 0.0

    def values(name: str) -> str:
        count = random.choice((1, 1, 1, 1, 1, 1, 2, 0))
        some = (
            random.choice((*NUMBERS, "x")) if random.random() < 0.5 else random.choice(NUMBERS) for _ in range(count)
        )
        return "".join(f"<{name}>{each}</{name}>" for each in some)

    for _ in range(items):
        time += random.choice((0, 0, 0.5, 0.5, 1, 3))
        if random.random() < 0.2:
            found.append(f'<s:punctuation xmlns:s="urn:anabranch:stream" at="{time}"/>')
        shown = time - random.choice((0, 0, 0, 0, 1)) if time > 1 else time
        inner = "".join(f"<n>{values('v')}{values('w')}</n>" for _ in range(random.choice((0, 0, 1, 2))))
        found.append(f"<i><t>{shown:g}</t>{values('v')}{values('w')}{inner}</i>")
    return stream(*found)


def random_loop(random: Random) -> str:
    """A loop over one, two or three streams, or a path."""

    def path(name: str) -> str:
        return f"stream('{name}'){random.choice(PATHS)}?[{random.choice(SECONDS)}]"

    names = random.sample(("a", "b", "c"), 3)
    sides = random.choice((1, 2, 2, 2, 3))
    if sides == 1:
        return random.choice(SINGLE).format(path(names[0]))
    condition = random.choice(CONDITIONS)
    fors = f"$x in {path(names[0])}, $y in {path(names[1])}"
    if sides == 3:
        other = random.choice(CONDITIONS).replace("$y", "$z").replace("$x", random.choice(("$x", "$y")))
        between = random.random() < 0.3
        third = f"$z in {path(names[2])}"
        fors = f"$x in {path(names[0])}, {third}, $y in {path(names[1])}" if between else f"{fors}, {third}"
        condition = f"({condition}) and ({other})" if " or " in condition + other else f"{condition} and {other}"
    let = random.choice(("", "", "", "let $m := $y/v ", "let $m := $y/v + 1 "))
    order = random.choice(("", "", "", "order by $y/w ", "order by $x/v descending, $y/v "))
    return f"for {fors} {let}where {condition} {order}return {random.choice(RESULTS)}"


def random_query(random: Random) -> str:
    """One loop, or several in elements and beside each other."""
    loop = random_loop(random)
    return DISTANCE + random.choice((
        "{0}", "{0}", "<all>{{ {0} }}</all>", "({0}, 'and', {1})", "<o><a>{{ {0} }}</a>{{ {1} }}</o>"
    )).format(loop, random_loop(random))  # fmt: skip


def check_random(number: int) -> int:
    random = Random(f"past {number}")
    query = random_query(random)
    streams = given({name: random_stream(random, random.randrange(1, 9)) for name in ("a", "b", "c")})
    return compare(query, streams, random, FUNCTIONS)


@pytest.mark.parametrize("number", some(range(30)))
def test_some_random_queries_show_what_the_law_says(number: int) -> None:
    """Loops over one to three streams, out of order here and there, put away and taken up between any two elements."""
    check_random(number)


def test_random_queries_show_what_the_law_says(mass: Mass) -> None:
    """The same for very many."""
    changes = [check_random(number) for number in mass.cases(20_000)]
    assert max(changes) > 2 or mass.done < 100


FOUR = "for $r in stream('a')//i?[2], $s in stream('b')//i?[2] where $r/v = $s/v return <p>{ $r/w + $s/w }</p>"
FIVE = DISTANCE + (
    "for $v in stream('a')//i[v >= 0]?[4], $r in stream('b')//i?[4], $t in stream('c')//i?[4] "
    "where local:distance($v, $r) < 2.5 and local:distance($v, $t) < 3 return <set>{ $t/t, $v/w div $r/w }</set>"
)


# --- on trunks ----------------------------------------------------------------------------------------------


def sources_of(folder: Path, texts: Mapping[str, str]) -> list[Source]:
    """Streams as files; items have their time at `t`."""
    for name, text in texts.items():
        (folder / f"{name}.xml").write_text(text)
    return [Source(name, folder / f"{name}.xml", time=ItemPath.parse("t")) for name in texts]


def some_queries(random: Random, count: int) -> dict[str, str]:
    """Random queries that call no function in Python."""
    queries: dict[str, str] = {}
    while len(queries) < count:
        text = random_query(random)
        queries |= {} if "near(" in text else {f"q{len(queries)}": text}
    return queries


def why(letter: DeadLetter) -> tuple[str, str, str]:
    """A dead letter without its place in a file."""
    return letter.place.stream, letter.reason, letter.raw


def shown_by_law(query: str, texts: Mapping[str, str], name: str) -> tuple[list[tuple[Fraction, str]], set[DeadLetter]]:
    """What the law shows, and when, and all that it sets aside on the way."""
    timeline = Timeline(checked(query, texts).query, given(texts), name=name)
    return [(each.at, each.text) for each in timeline], set(timeline.dead)


@pytest.mark.mass
@pytest.mark.parametrize("seed", some(range(3)))
def test_displays_on_a_trunk(seed: int, tmp_path: Path) -> None:
    """Whatever the epochs, shards and restarts, each moment is the law's."""
    random = Random(f"trunk {seed}")
    texts = {name: random_stream(random, 8) for name in ("a", "b", "c")}
    trunk = BareTrunk(tmp_path / "state", sources_of(tmp_path, texts), random, finite=True)
    queries = some_queries(random, 8)
    trunk.run(queries, [120, 300, 2_000], [1, 2, 3])
    for name, query in queries.items():
        shown, _ = shown_by_law(query, texts, name)
        assert replayed(trunk.log, name) == shown, query
        assert trunk.answer(name) == (shown[-1][1] if shown else ""), query


@pytest.mark.parametrize(
    "host", [pytest.param("local", marks=pytest.mark.mass), pytest.param("spark", marks=pytest.mark.spark)]
)
def test_queries_4_and_5_on_a_trunk(host: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Through the engine, in one process and on Spark, they show and set aside what the law does."""
    random = Random(6)
    texts = {name: random_stream(random, sized(30, fast=12)) for name in ("a", "b", "c")}
    queries = {"four": FOUR, "five": FIVE}
    work = tmp_path / "work"
    work.mkdir()
    doing = LocalHost() if host == "local" else SparkHost(request.getfixturevalue("spark"))
    outcome = run_queries(doing, sources_of(tmp_path, texts), queries, work, Settings(epoch_bytes=900, shards=2))
    assert outcome.progress.epochs > 1
    log = AnswerLog(Checkpoint.at(work))
    for name, query in queries.items():
        shown, dead = shown_by_law(query, texts, name)
        assert len(shown) > 3
        assert replayed(log, name) == shown
        told = [each for each in outcome.dead_letters() if each.subscription == name]
        assert set(map(why, told)) == set(map(why, dead)) != set()


@pytest.mark.mass
@pytest.mark.parametrize("seed", some(range(4)))
def test_streams_that_evolve(seed: int, tmp_path: Path) -> None:
    """Values are compared in the units of the query's start, also those of items that were put away."""
    random = Random(seed)
    sources = []
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f"{each}\n" for each in lines(random, 12)))
        sources.append(Source(name, tmp_path / name, "lines", root="r", time=ItemPath.parse("t")))
    loop = 'for $x in stream("a")/r/i?[4], $y in stream("b")/r/i?[4] where {} return <p>{{ $x/v, $y/v }}</p>'
    conditions = ("abs($x/v - $y/v) < 25", "$x/k = $y/k", "$x/v = $y/v + 1 or $x/v > $y/v and $x/k = $y/k")
    queries = {f"q{number}": loop.format(each) for number, each in enumerate(conditions)}
    inputs = Inputs(sources)
    trunk = BareTrunk(tmp_path / "state", sources, random, finite=True)
    trunk.run(queries, [70, 150], [1, 2])
    with answering([prepare(*each, inputs, "reference") for each in queries.items()], inputs) as law:
        assert not law.aborted
        for name, query in queries.items():
            assert trunk.answer(name) == "".join(law.answers[name]), query


def test_items_of_json(tmp_path: Path) -> None:
    """A loop over one stream of JSON changes item by item as well; one over two is evaluated anew."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f'{{"t": {each}, "v": {each % 3}}}\n' for each in range(9)))
    sources = [Source(name, tmp_path / name, "json", time=ItemPath.parse("t")) for name in ("a", "b")]
    queries = {
        "one": 'for $x in stream("a")?[3] where $x.v > 0 return { "v": $x.v, "more": $x.v + 1 }',
        "two": 'for $x in stream("a")?[3], $y in stream("b")?[3] where $x.v = $y.v return $x.t + $y.t',
    }
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=True)
    trunk.run(queries, [40, 90], [1, 2])
    inputs = Inputs(sources)
    with answering([prepare(*each, inputs, "reference") for each in queries.items()], inputs) as law:
        for name in queries:
            assert trunk.answer(name) == "".join(law.answers[name]) != ""


# --- what it costs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("query", "sides"), [(FOUR, "ab"), (FIVE, "abc")])
def test_an_element_costs_what_it_changes(query: str, sides: str) -> None:
    """With each value there once in a second, an element takes as many evaluations, however many are remembered."""
    counts = []
    for remembered in (10, 40):
        items = [f"<i><t>{each / remembered}</t><v>{10 * each}</v><w>1</w></i>" for each in range(3 * remembered)]
        answered = Answered(query, given({name: stream(*items) for name in sides}))
        assert isinstance(answered.answer, EntrywiseAnswer)
        texts = [text for text, _ in answered.run()]
        assert texts[-1].count("</") >= remembered
        counts.append(answered.answer.evaluated / len(sides) / len(items))
    assert counts[0] == counts[1] < 6


@pytest.mark.parametrize(
    "query",
    [
        "count(stream('a')/r/i?[2])",
        "for $x in stream('a')/r/i#[2] return $x/v",
        "for $x in stream('a')/r/i?[2], $y in stream('a')/r/i?[3] where $x/v = $y/v return $x/v",
        "for $x in stream('a')/r/i?[2] return <n>{ $x/v, stream('b')/r/i/v#0 }</n>",
        "for $x in stream('a')/r/i?[2], $y in stream('b')/r/i[v = $x/v]?[3] return $y",
        "for $x in stream('a')/r/i?[2]/v[. > 1] return $x",
        "(for $x in stream('a')/r/i?[2] return $x/v, near(1, 2))",
    ],
)
def test_what_is_evaluated_anew(query: str) -> None:
    """What depends on the moment by more than the age of its items, or on a function in Python alone, does so."""
    streams = given({name: random_stream(Random(1), 3) for name in ("a", "b")})
    assert Answered(query, streams, FUNCTIONS).answer is None


def test_a_state_of_an_earlier_release_goes_on(tmp_path: Path) -> None:
    """Where a state has one region for the whole answer, that region stays, and the answer is the law's."""
    (tmp_path / "in").mkdir()
    items = [f"<i><t>{each}</t><v>{each % 3}</v></i>\n" for each in range(8)]
    source = Source("a", tmp_path / "in", "lines", root="r", time=ItemPath.parse("t"))
    query = "for $x in stream('a')/r/i?[2] where $x/v > 0 return <v>{ $x/v + 1 }</v>"
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    (tmp_path / "in/1").write_text("".join(items[:4]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EntrywiseAnswer, "of", lambda *_: None)
        trunk.run({"q": query}, [60], [1])
    (tmp_path / "in/2").write_text("".join(items[4:]))
    trunk.run({"q": query}, [60], [1])
    assert replayed(trunk.log, "q") == shown_by_law(query, {"a": stream(*items)}, "q")[0]
    subscription = trunk.log.subscription("q")
    assert subscription is not None
    told = [
        trunk.log.text(each)
        for manifest in trunk.log.manifests.since(subscription.first)
        for each in trunk.log.chunks(manifest, subscription.id)
    ]
    assert set(re.findall('id="(s[0-9.]*|all)"', "".join(told))) == {"all"}
