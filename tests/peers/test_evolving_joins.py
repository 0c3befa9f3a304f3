"""Joins of streams that may have accents are made on the way, too: their tuples travel, with accents between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from anabranch.branch.remote.written import read_sent
from anabranch.network.description import RegisteredStream
from anabranch.network.needs import QueryNeeds
from anabranch.network.options import Option, Options
from anabranch.network.topology import line
from anabranch.peers.running import RunningNetwork
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.remote import ReadTuples
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from peers.test_evolving import ALL_AT_ONCE, DOUBLED, THIRDS, TOLD, accent, ended, items
from peers.working import Alone, GrowingStream, bare_network, network_of

PAIRS = 'for $x in stream("s")/root/i|t diff 10|, $y in stream("u")/root/i|t diff 10| where $x/w = $y/w return {}'
SHOWN = "<o>{ $x/v }{ $y/v + 1 }</o>"


class Two:
    """A network along a line with a stream at each of its first peers, and the single engine beside it."""

    def __init__(self, folder: Path, *, accents: bool = True, sample: int = 30) -> None:
        """So many items of each stream are there before anybody asks, for the planner."""
        self.grown = {name: GrowingStream(folder / name, ()) for name in "su"}
        for each in self.grown.values():
            each.bring(items(0, sample))
        sources = [Source(name, folder / name, "lines", time=ItemPath.parse("t"), evolves=accents) for name in "su"]
        self.alone = Alone(folder / "alone", sources, Random(5))
        streams = [
            RegisteredStream(each, f"SP{number}", f"SP{number}", None, accents) for number, each in enumerate(sources)
        ]
        self.described = network_of(line(4), streams)
        self.network: RunningNetwork = bare_network(self.described, folder / "network", Random(6), ALL_AT_ONCE)

    def ask(self, *asked: tuple[str, str, str]) -> None:
        """Register some queries together: name, text, and where."""
        with self.network.together():
            for name, text, at in asked:
                self.network.register(name, text, at)
        self.alone.drain()
        self.alone.queries |= {name: text for name, text, _ in asked}

    def bring(self, **portions: Sequence[str]) -> int:
        """Bring some elements of the streams; gives how many bytes went over links for them."""
        before = self._bytes()
        for name, portion in portions.items():
            self.grown[name].bring(portion)
        self.network.drain()
        self.alone.drain()
        self.compare()
        return self._bytes() - before

    def compare(self) -> None:
        """Answers, and reasons to end, are those of the single engine."""
        logs = [each.log for each in self.network.peers.values()]
        for name in self.alone.queries:
            assert self.network.answer(name) == self.alone.answer(name)
            assert ended(logs, name) == ended([self.alone.log], name)

    def _bytes(self) -> int:
        return sum(each.bytes for each in self.network.measured().flows.values())

    @property
    def tuple_flows(self) -> int:
        """How many flows over links carry tuples."""
        return sum(isinstance(each.form, PropertyForest) for each in self.network.catalogue.hops)


@pytest.mark.mass
def test_as_narrow_as_without_accents(tmp_path: Path) -> None:
    """As long as no accent comes, the same is sent as of streams that have none, to the byte."""
    sent = []
    for accents in (True, False):
        two = Two(tmp_path / f"{accents}", accents=accents)
        with two.network:
            two.ask(("a", PAIRS.format(SHOWN), "SP3"))
            assert two.tuple_flows == 2
            sent.append([two.bring(s=items(at, 30), u=items(at + 20, 30)) for at in (30, 60)])
            assert two.network.answer("a").count("<o>") > 10
    assert sent[0] == sent[1]


@pytest.mark.mass
def test_accents_between_tuples(tmp_path: Path) -> None:
    """Tuples hold items from before and behind an accent; the answer changes its units where a single one does."""
    two = Two(tmp_path)
    with two.network:
        narrower = PAIRS.format("<p>{ $y/v }</p>").replace("where", "where $x/v >= 20 and")
        two.ask(("a", PAIRS.format(SHOWN), "SP2"), ("b", narrower, "SP3"))
        (onwards,) = two.network.peers["SP2"].program.made
        assert isinstance(read_sent(onwards.text), ReadTuples), "b gets less than a"
        usual = two.bring(s=items(30, 30), u=items(30, 30))
        two.bring(s=[*items(60, 5), DOUBLED, *items(65, 20)], u=items(60, 30))
        assert "accent" in two.network.answer("a")
        two.bring(s=items(85, 10), u=[THIRDS, *items(90, 10)])
        two.bring(s=[accent('<s:drop path="much"/>')], u=[accent('<s:drop path="v"/>', "k = 3")])
        behind = two.bring(
            s=[each.replace(f"<much>{'x' * 60}</much>", "") for each in items(95, 30)],
            u=[
                each.replace("<v>", "<z>").replace("</v>", "</z>") if "<k>3" in each else each
                for each in items(100, 30)
            ],
        )
        assert behind < 2 * usual, "narrow again"
        assert two.network.answer("a").count("<o>") > 30


def join_query(random: Random) -> str:
    """A join by windows or by an interval."""
    size, step = random.choice(((10, 10), (10, 5), (20, 10)))
    windows = random.choice(
        ((f"|t diff {size} step {step}|", "|t diff 10|"), ("|count 3|", "|count 2 step 1|"), ("", ""))
    )
    condition = random.choice(("", "[k >= 1]"))
    other = random.choice("uuus")
    loops = f'for $x in stream("s")/root/i{condition}{windows[0]}, $y in stream("{other}")/root/i{windows[1]}'
    near = "" if windows[0] else "$x/t >= $y/t - 2 and $x/t <= $y/t + 2 and "
    where = near + random.choice(("$x/k = $y/k", "$x/w = $y/w", "$x/v >= $y/v", "$x/v >= 40 and $x/k = $y/k"))
    shown = random.choice((SHOWN, "<p>{ $x }{ $y/v }</p>", "($x/v, $y/k)", "<q>{ $x/w * 2 }</q>", "$y", "$x/v + $y/v"))
    return f"<r>{{ {loops} where {where} return {shown} }}</r>"


@pytest.mark.mass
def test_random_joins_of_streams_that_evolve(tmp_path: Path, mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever streams announce, and wherever the join is made, the answer and its end are those of one engine."""
    read = sum(check(tmp_path / f"{number}", Random(number), monkeypatch) for number in mass.cases(300))
    assert read or mass.done < 10, "no tuples have travelled"


def check(folder: Path, random: Random, monkeypatch: pytest.MonkeyPatch) -> int:
    """Try random joins, for which plans are taken at random; gives how many flows have carried tuples."""
    two = Two(folder, sample=random.choice((0, 20)))
    real = Options.of

    def at_random(options: Options, need: QueryNeeds, at: str) -> list[Option]:
        found = list(real(options, need, at))
        return [random.choice(found)] if random.random() < 0.8 else found

    with monkeypatch.context() as patched, two.network:
        patched.setattr(Options, "of", at_random)
        first, where = join_query(random), ("SP1", "SP2", "SP3")
        texts = [first, first.replace("where ", "where $x/v >= 20 and "), join_query(random)]
        some = random.sample(texts, random.randrange(1, 4))
        two.ask(*((f"q{number}", text, random.choice(where)) for number, text in enumerate(some)))
        flows, at = two.tuple_flows, 20
        for _ in range(random.randrange(3, 6)):
            portions = {}
            for name in "su":  # a late answer begins with the accents in force as soon as something comes
                portion = items(at + random.randrange(3), random.randrange(1, 15))
                for _ in range(random.choice((0, 0, 1, 2))):
                    portion.insert(random.randrange(len(portion) + 1), random.choice(TOLD))
                portions[name] = portion
            at += 10
            two.bring(**portions)
            if random.random() < 0.2:
                two.ask((f"late {at}", join_query(random), random.choice(where)))
            if random.random() < 0.15 and len(two.alone.queries) > 1:
                gone = random.choice(list(two.alone.queries))
                two.network.cancel(gone)
                del two.alone.queries[gone]
        for name in "su":
            two.network.end_stream(name)
        two.alone.end()
        for name in two.alone.queries:
            assert two.network.answer(name) == two.alone.answer(name)
    return flows
