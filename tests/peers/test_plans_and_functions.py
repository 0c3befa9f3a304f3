"""Plans of operators and functions of modules in a network: written down as in a site, answered as by one engine."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from anabranch.algebra.plans import builder
from anabranch.algebra.plans.written import renamed, write_plan
from anabranch.errors import QueryError, UsageError
from anabranch.network.description import RegisteredStream, read_network
from anabranch.network.topology import line
from anabranch.network_run import check
from anabranch.peers.inspection import RanNetwork
from anabranch.peers.peer import in_process
from anabranch.peers.running import RunningNetwork
from anabranch.runtime.registering import import_all
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from peers.test_evolving import DOUBLED
from peers.working import Alone, GrowingStream, bare_network, network_of

PAIRS = builder.stream("a").select("v >= 2").join(builder.stream("b"), on=[("k", "k")]).plan
BOTH = builder.stream("a").union(builder.stream("b")).select("v >= 3").plan

NETWORK = """\
[network]
topology = "line"
peers = 3
checkpoint = "state"

[streams.a]
at = "SP0"
path = "a"
format = "lines"
time = "t"
accents = false

[subscriptions.halves]
at = "SP2"
query = "halves.xq"

[subscriptions.great]
at = "SP1"
plan = "great.json"

[functions]
half = "halves_of_a_network:half"
"""
HALVES = 'for $i in stream("a")/root/i where half($i/v) >= 1 and $i/k = 1 return <h>{ half($i/v) }</h>'


def items(random: Random, count: int) -> list[str]:
    """Items of a growing time, with few keys."""
    return [f"<i><t>{at}</t><k>{random.randrange(3)}</k><v>{random.randrange(6)}</v></i>" for at in range(count)]


@pytest.mark.parametrize("accents", [False, True])
def test_plans_are_answered_as_by_one_engine(tmp_path: Path, accents: bool) -> None:
    """A join and a union of streams that come in at different peers, one of which evolves, with a late twin."""
    random = Random(5)
    grown, streams = [], []
    for name, at in (("a", "SP0"), ("b", "SP2")):
        some = items(random, 24)
        if accents and name == "a":
            some.insert(15, DOUBLED)
        grown.append(GrowingStream(tmp_path / name, some))
        source = Source(name, tmp_path / name, "lines", time=ItemPath.parse("t"), evolves=accents)
        streams.append(RegisteredStream(source, at, at, None, accents))
    alone = Alone(tmp_path / "alone", [each.source for each in streams], random)
    with bare_network(network_of(line(3), streams), tmp_path / "network", random) as network:
        for name, plan in (("pairs", PAIRS), ("both", BOTH), ("late", PAIRS)):
            network.register(name, write_plan(plan), "SP1")
            alone.drain()
            alone.queries[name] = write_plan(plan)
            for each in grown:
                each.grow(6)
            network.drain()
            alone.drain()
        for each in grown:
            each.grow(24)
        network.drain()
        alone.drain()
        for name in alone.queries:
            assert network.answer(name) == alone.answer(name)
            assert network.answer(name).count("<v>") > 9
    if not accents:
        assert {each.need.stays for each in network.catalogue.subscriptions.values()} == {"it is a plan of operators"}


def test_streams_of_a_plan_under_other_names() -> None:
    """A plan over what reaches a peer is the same but for the names of its streams."""
    found = renamed(PAIRS, {"a": "a.1", "b": "b.7"})
    assert found == builder.stream("a.1").select("v >= 2").join(builder.stream("b.7"), on=[("k", "k")]).plan


def described(folder: Path, text: str = NETWORK) -> Path:
    """The files of a network with a plan and a function."""
    (folder / "a").mkdir()
    (folder / "halves.xq").write_text(HALVES)
    (folder / "great.json").write_text(write_plan(builder.stream("a").select("v >= 4").project("v").plan))
    (folder / "halves_of_a_network.py").write_text("def half(value):\n    return float(value) / 2\n")
    file = folder / "NETWORK.toml"
    file.write_text(text)
    return file


def test_a_network_with_a_plan_and_a_function(tmp_path: Path) -> None:
    """Both are answered behind links, which carry of the items for the query just what it reads; a restart goes on."""
    network = read_network(described(tmp_path))
    check(network)
    import_all(network.functions)
    given = [(1, 1), (1, 2), (2, 5), (1, 5), (1, 4), (2, 4)]
    for number in range(2):
        with ExitStack() as held:
            runner = in_process(Settings(shards=1), held, network.functions)
            running = held.enter_context(RunningNetwork(network, tmp_path / "state", runner=runner))
            lines = [f"<i><t>{t}</t><k>{k}</k><v>{v}</v></i>\n" for t, (k, v) in enumerate(given, 10 * number)]
            (tmp_path / "a" / f"{number}.xml").write_text("".join(lines))
            running.drain()
            ran = RanNetwork.of(network)
            assert ran is not None
            assert (
                "".join(ran.answer("halves")) == running.answer("halves") == "<h>1</h><h>2.5</h><h>2</h>" * (number + 1)
            )
            assert running.answer("great").count("<v>5</v>") == 2 * (number + 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('half = "halves_of_a_network:half"', 'half = "nowhere"', "takes 'module:function'"),
        ("half =", "count =", "'count' is built in"),
        ('plan = "great.json"', 'plan = "halves.xq"', "holds no plan"),
        ('plan = "great.json"', 'plan = "great.json"\nquery = "halves.xq"', "a plan has no 'query'"),
        ('plan = "great.json"', "", "or give a 'plan'"),
    ],
)
def test_what_is_wrong_with_them(tmp_path: Path, old: str, new: str, message: str) -> None:
    """It is refused with its place in the file."""
    with pytest.raises(UsageError) as caught:
        read_network(described(tmp_path, NETWORK.replace(old, new)))
    assert message in f"{caught.value}"


def test_a_function_that_is_not_there(tmp_path: Path) -> None:
    """A query that calls what nobody has registered is refused, and so is a plan over streams that nobody has."""
    network = NETWORK.partition("[functions]")[0]
    with pytest.raises(QueryError, match=r"no function is called 'half\(\)'"):
        check(read_network(described(tmp_path, network)))
    (tmp_path / "great.json").write_text(write_plan(PAIRS))
    (tmp_path / "NETWORK.toml").write_text(network.replace("halves.xq", "all.xq"))
    (tmp_path / "all.xq").write_text('stream("a")/root/i')
    with pytest.raises(UsageError, match="which is not registered"):
        check(read_network(tmp_path / "NETWORK.toml"))
