"""Who comes later to windows and joins on the way goes along with them, until they have become one (LAWS 3.6, 3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.needs import QueryNeeds
from anabranch.network.options import Option, Options
from anabranch.network.topology import built
from anabranch.peers.running import RunningNetwork
from anabranch.spark.answers.log import empty_answer
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from peers.test_evolving import ALL_AT_ONCE, DOUBLED, TOLD, Pair, accent, items, window_query
from peers.test_evolving_joins import PAIRS, SHOWN, Two, join_query
from peers.test_running import deadly
from peers.working import Alone, GrowingStream, Killed, bare_network, network_of

SLIDING = 'for $w in stream("s")/root/i|t diff 20 step 5| return <o>{ sum($w/v), max($w/v) }</o>'
LARGER = 'for $w in stream("s")/root/i|t diff 40 step 10| return <l>{ max($w/v) }</l>'


def ways(network: RunningNetwork) -> list[tuple[str | None, str]]:
    """The links over which something flows."""
    return [(each.before, each.at) for each in network.catalogue.hops]


def kept(network: RunningNetwork) -> int:
    """How many flows have become one with another."""
    return sum(each.is_kept for each in network.catalogue.logged)


def test_windows_become_one(tmp_path: Path) -> None:
    """Whoever comes later, and asks the same or for larger windows, is answered out of what flows for the first."""
    pair = Pair(tmp_path, sample=items(0, 40))
    with pair.network:
        pair.ask("a", SLIDING)
        pair.bring(items(0, 40))
        usual = pair.bring(items(40, 40))
        pair.ask("b", SLIDING.replace("<o>", "<p>").replace("</o>", "</p>"))
        pair.ask("c", LARGER, "SP1")
        assert ways(pair.network) == [("SP0", "SP1"), ("SP1", "SP2"), ("SP0", "SP1"), ("SP1", "SP2"), ("SP0", "SP1")]
        assert pair.bring(items(80, 40)) > 1.5 * usual
        pair.bring(items(120, 10))
        assert ways(pair.network) == [("SP0", "SP1"), ("SP1", "SP2")]
        assert kept(pair.network) == 2
        assert pair.bring(items(130, 40)) < 1.2 * usual
        pair.network.cancel("a")
        pair._alone.queries.pop("a")
        pair.bring([*items(170, 20), DOUBLED, *items(190, 20)])
        assert pair.network.answer("b").count("<p>") > 20
        assert pair.network.answer("c").count("<l>") > 5
        assert "accent" in pair.network.answer("c")
        pair.network.cancel("b", "c")
        assert not ways(pair.network)
        pair._alone.queries.clear()
        pair.end()


@pytest.mark.mass
def test_windows_of_numbered_items_stay_apart(tmp_path: Path) -> None:
    """They are numbered from the subscription's own start, so a later one has others (LAWS 3.3)."""
    pair = Pair(tmp_path, sample=items(0, 40))
    with pair.network:
        for name in "ab":
            pair.ask(name, SLIDING.replace("t diff 20 step 5", "count 4"))
            pair.bring(items(40 + 40 * (name == "b"), 40))
        pair.bring(items(120, 40))
        assert not kept(pair.network)
        pair.end()


@pytest.mark.mass
def test_tuples_become_one(tmp_path: Path) -> None:
    """So do the tuples of a join on the way, once its windows have passed what came before the newcomer."""
    two = Two(tmp_path)
    with two.network:
        two.ask(("a", PAIRS.format(SHOWN), "SP3"))
        two.bring(s=items(0, 30), u=items(0, 30))
        usual = two.bring(s=items(30, 30), u=items(30, 30))
        two.ask(("b", PAIRS.format("<p>{ $y/v }</p>"), "SP3"))
        assert len(ways(two.network)) == 5
        two.bring(s=items(60, 30), u=items(60, 30))
        two.bring(s=items(90, 1), u=items(90, 1))
        assert ways(two.network) == [("SP0", "SP1"), ("SP1", "SP2"), ("SP2", "SP3")]
        assert two.bring(s=items(91, 30), u=items(91, 30)) < 1.2 * usual
        assert two.network.answer("b").count("<p>") > 20


@pytest.mark.mass
def test_tuples_that_tell_of_earlier_items_stay_apart(tmp_path: Path) -> None:
    """They do so by numbers, which count from where each began: until such items have left the windows of both.

    One whose reader took the numbers of the other would show a value behind the accent that dropped it.
    """
    two = Two(tmp_path)
    with two.network:
        two.ask(("a", PAIRS.format(SHOWN), "SP3"))
        two.bring(s=items(30, 30), u=items(30, 30))
        two.ask(("b", PAIRS.format("<p>{ $y/v }</p>"), "SP3"))
        two.bring(s=[*items(60, 19), DOUBLED], u=[*items(60, 19), accent('<s:drop path="v"/>', "k = 3")])
        two.bring(s=items(79, 1), u=[each for each in items(79, 2) if "<k>3" not in each])
        assert not kept(two.network)
        dropped = [each.replace("<v>", "<z>").replace("</v>", "</z>") for each in items(80, 40)]
        behind = [other if "<k>3" in each else each for each, other in zip(items(80, 40), dropped, strict=True)]
        two.bring(s=items(80, 20), u=behind[:20])
        two.bring(s=items(100, 20), u=behind[20:])
        assert kept(two.network) == 1


@pytest.mark.mass
def test_by_itself(tmp_path: Path) -> None:
    """While a network runs, flows become one without another change that would ask for it."""
    pair = Pair(tmp_path, sample=items(0, 40))
    with pair.network:
        pair.ask("a", SLIDING)
        pair.bring(items(40, 20))
        pair.ask("b", SLIDING)
        pair._grown.bring(items(60, 60))
        while pair.network._team.round():
            pass
        assert not kept(pair.network)
        pair.network.start()
        pair._grown.bring(items(120, 1))
        with ExitStack() as held:
            held.callback(pair.network.stop)
            for _ in range(600):
                if kept(pair.network):
                    break
                pair.network._stopping.wait(0.1)
        assert kept(pair.network) == 1
        pair.bring(items(121, 30))


def some_portion(random: Random, begin: int, *, disorder: float) -> list[str]:
    """Items, some of which come too late, or twice."""
    found = items(begin, random.randrange(1, 25))
    for place in range(1, len(found)):
        if random.random() < disorder:
            other = max(0, place - random.randrange(1, 4))
            found[place], found[other] = found[other], found[place]
        elif random.random() < disorder:
            found[place] = found[place - 1]
    return found


@pytest.mark.mass
def test_random_networks(tmp_path: Path, mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes and goes, whatever streams say, and whenever it is killed: the answers are those of one engine."""
    countdown = deadly(monkeypatch)
    found = [check(tmp_path / f"{number}", Random(number), monkeypatch, countdown) for number in mass.cases(300)]
    shared, died = map(sum, zip(*found, strict=True))
    assert mass.done < 40 or (shared and died), "no flows have become one, or nobody was killed"


def check(folder: Path, random: Random, monkeypatch: pytest.MonkeyPatch, countdown: list[int]) -> tuple[int, int]:
    """Try one network, in which a few queries are asked again and again, mostly going along with others that began.

    Gives how many flows have become one with others, and how often it was killed.
    """
    topology = built(random.choice(("line", "line", "star", "random")), random.randrange(3, 5), random.randrange(99))
    evolves, dies = random.random() < 0.7, random.random() < 0.3
    sizes = random.choice(((1_500, 9_000), ALL_AT_ONCE))
    slack, disorder = Fraction(random.choice((0, 0, 3))), random.choice((0, 0, 0.1))
    grown, streams = {}, []
    for name in "su":
        grown[name] = GrowingStream(folder / name, ())
        grown[name].bring(items(0, random.choice((0, 20, 20))))
        peer = random.choice(topology.peers)
        source = Source(name, folder / name, "lines", time=ItemPath.parse("t"), slack=slack, evolves=evolves)
        streams.append(RegisteredStream(source, peer, peer, None, evolves))
    alone = Alone(folder / "alone", [each.source for each in streams], random)
    texts = [some_text(random) for _ in range(random.choice((1, 1, 2)))]
    asked: dict[str, tuple[str, str, str]] = {}
    told = random.randrange(20) if evolves else 20
    became: set[str] = set()
    died, at, real = 0, 20, Options.of

    def along(options: Options, need: QueryNeeds, at: str) -> list[Option]:
        found = list(real(options, need, at))
        beside = [each for each in found if each.words.endswith("from here on") or ", from here on, " in each.words]
        return [random.choice(beside or found)] if random.random() < 0.7 else found

    with monkeypatch.context() as patched:
        patched.setattr(Options, "of", along)
        for step in range(random.randrange(4, 8)):
            if asked:
                alone.drain()
            if len(asked) > 1 and random.random() < 0.3:
                gone = random.choice(list(asked))
                del asked[gone], alone.queries[gone]
            for _ in range(random.choice((0, 1, 1, 2)) if asked else 1):
                name, text = f"q{step}-{len(asked)}", random.choice(texts)
                asked[name] = name, text, random.choice(topology.peers)
                alone.queries[name] = text
            network = network_of(topology, streams, "widening", asked.values())
            is_done = False
            while not is_done:
                countdown[0] = random.choice((0, 0, *range(2, 120, 12))) if dies else 0
                with suppress(Killed), bare_network(network, folder / "network", random, sizes) as running:
                    for each in grown.values():
                        portion = some_portion(random, at, disorder=disorder)
                        if step > told and random.random() < 0.5:
                            portion.insert(random.randrange(len(portion) + 1), random.choice(TOLD))
                        each.bring(portion)
                    at += 12
                    running.drain()
                    is_done = True
                died += not is_done
            countdown[0] = 0
            became |= {each.name for each in running.catalogue.logged if each.is_kept}
            alone.drain()
        with bare_network(network, folder / "network", random) as running:
            for name in "su":
                running.end_stream(name)
            alone.end()
            compare(running, alone, list(asked.values()))
    return len(became), died


def compare(running: RunningNetwork, alone: Alone, asked: Sequence[tuple[str, str, str]]) -> None:
    """Hold all answers against those of the single engine."""
    for name, text, _ in asked:
        due = alone.answer(name) if alone.log.subscription(name) else empty_answer(text, alone.sources)
        assert running.answer(name) == due, (name, text)


def some_text(random: Random) -> str:
    """A query whose windows or tuples may travel."""
    if random.random() < 0.4:
        return join_query(random)
    if random.random() < 0.5:
        return random.choice((SLIDING, LARGER, SLIDING.replace("20 step 5", "10")))
    return window_query(random)
