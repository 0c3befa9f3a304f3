"""Streams of tokens on a trunk: any epochs, shards, strands and late queries show what the law shows (LAWS 5.11)."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from anabranch.branch.display.strands import spreads
from anabranch.errors import AnabranchError
from anabranch.language import check, parse
from anabranch.law.arrivals.past import named
from anabranch.law.history.timeline import arrivals
from anabranch.stream.tree import STREAM_NAMESPACE
from history.following import Asking, Followed
from history.hosting import Case, Law, replayed
from history.in_tokens import TokenWriter
from history.late import begun_at, late_start
from history.test_hosted import Lines
from history.test_strands import StrandBranch
from mass import Mass
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'


def lines(text: str, at: int) -> list[str]:
    """Tokens of a time, each as a line."""
    return [re.sub(r"^<s:\w+", rf'\g<0> {S} at="{at}"', each) for each in text.split("\n") if each]


def random_case(number: int) -> Case | None:
    """A random query over streams of tokens; None where it is refused. Some cases have their streams in common."""
    world, random = number // 3, Random(number // 3)
    names = [f"s{world}", *([f"t{world}"] if random.random() < 0.3 else [])]
    several = random.random() < 0.2
    streams = {
        name: [TokenWriter(random).stream(random.choice((10, 20, 40))) for _ in range(2 if several else 1)]
        for name in names
    }
    query = Asking(Random(f"tokens {number}")).any_query(*names)
    try:
        read = named(check(parse(query), query, inputs=dict.fromkeys(streams), edited=tuple(streams)).query)
    except AnabranchError:
        return None
    return Case(query, {name: streams[name] for name in read}, timed=several)


def test_random_cases_on_a_trunk(mass: Mass, tmp_path: Path) -> None:
    """After every moment a trunk shows what the law shows, however it was cut into epochs, shards and strands."""
    for seed in mass.cases(100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = {f"q{number}": random_case(number) for number in range(seed * 12, seed * 12 + 12)}
        cases = {name: each for name, each in found.items() if each is not None}
        sources = {name: each.sources(folder) for name, each in cases.items()}
        given = {each.name: each for several in sources.values() for each in several}
        trunk = BareTrunk(folder / "state", list(given.values()), Random(seed), finite=True)
        trunk.strands = seed % 4
        trunk.run({name: each.query for name, each in cases.items()}, [300, 1_000, 5_000], [1, 2, 3])
        bad: set[tuple[str, int, str]] = set()
        for name, case in cases.items():
            law = Law.of(case, sources[name])
            assert replayed(trunk.log, name) == law.shown, case
            bad |= {(each.place.partition, each.place.offset, each.reason) for each in law.bad}
            if law.answer is not None:
                assert trunk.answer(name) == law.answer, case
        letters = [each for each in trunk.log.dead_letters() if each.subscription is None]
        assert bad <= {(each.place.partition, each.place.offset, each.reason) for each in letters}


def test_random_cases_in_strands(mass: Mass) -> None:
    """A query in strands tells of tokens, to the byte, what it tells in one piece."""
    told = 0
    for number in mass.cases(3_000):
        random = Random(number)
        case = Followed(Asking(random).any_query("s"), s=TokenWriter(random).stream(20))
        if spreads(case.machine.part):
            told += StrandBranch(case, random).run()
    assert told > 0 or mass.done < 20


def test_random_late_queries(mass: Mass) -> None:
    """Who begins while elements and regions are open sees what has come of them, and follows the rest (LAWS 3.6)."""
    shown = 0
    for number in mass.cases(3_000):
        random = Random(number)
        case = Followed(Asking(random).any_query("s"), s=TokenWriter(random).stream(30))
        early, late = case.law, random.randrange(2, 20)
        for place, each in enumerate(arrivals(early, case.given)):
            list(early["s"].take(each.element, each.at))
            if place == late:
                now = early["s"].now
                case.law = {"s": begun_at(early["s"], now)}
                case.machine.begin({"s": late_start(early["s"], now)})
            elif place > late:
                list(case.law["s"].take(each.element, each.at))
                list(case.machine.take("s", each.element, each.at))
            if place >= late:
                assert case.machine.text == case.by_law(), number
                shown += bool(case.machine.text)
    assert shown > 0 or mass.done < 20


@pytest.fixture(params=[0, 3], ids=["in one piece", "in strands"])
def stream(tmp_path: Path, request: pytest.FixtureRequest) -> Lines:
    """A stream whose queries are answered in one piece, or in strands where they can be."""
    found = Lines(tmp_path)
    found.trunk.strands = request.param
    return found


def test_what_is_open_stays_so_between_epochs(stream: Lines) -> None:
    """Two elements that never end grow in one epoch after the other, and a query that comes late sees both."""
    queries = {"all": 'stream("s")/root/*', "past": 'stream("s")/root/funds/fund#1'}
    begin = """
<s:start kind="mutable" id="1"/>
<s:open in="1"><stocks/></s:open>
<s:start kind="mutable" id="2"/>
<s:open in="2"><funds/></s:open>
<s:open in="1"><stock/></s:open>
"""
    grow = """
<s:append in="1">ACME</s:append>
<s:start kind="mutable" in="2" id="3"/>
<s:append in="3"><fund>A</fund></s:append>
<s:close in="1" name="stock"/>
<s:end id="3"/>
"""
    edit = """
<s:start kind="replace" target="3" id="4"/>
<s:append in="1"><stock>Initech</stock></s:append>
<s:append in="4"><fund>B</fund></s:append>
<s:end id="5"/>
"""
    stream.add(*lines(begin, 1), queries=queries)
    stream.add(*lines(grow, 2), queries=queries)
    late = {"late": queries["all"], "before": queries["past"]}
    stream.add(*lines(edit, 3), queries={**queries, **late})
    stocks = "<stocks><stock>ACME</stock>{}</stocks>{}"
    assert [text for _, text in stream.shown("all")] == [
        "<stocks/>",
        "<stocks/><funds/>",
        "<stocks><stock/></stocks><funds/>",
        stocks.format("", "<funds/>"),
        stocks.format("", "<funds><fund>A</fund></funds>"),
        stocks.format("", "<funds/>"),
        stocks.format("<stock>Initech</stock>", "<funds/>"),
        stocks.format("<stock>Initech</stock>", "<funds><fund>B</fund></funds>"),
    ]
    assert stream.shown("past") == stream.shown("before") == [("3", "<fund>A</fund>")]
    assert [text for _, text in stream.shown("late")] == [text for _, text in stream.shown("all")][4:]
    assert [(each.place.partition, each.reason) for each in stream.trunk.log.dead_letters()] == [
        ("003", "no region called '5' is open")
    ]
