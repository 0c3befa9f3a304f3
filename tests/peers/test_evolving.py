"""Streams that evolve travel in parts: as narrow as others before their accents, and again behind them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from anabranch.network.catalogue import Flow
from anabranch.network.description import RegisteredStream
from anabranch.network.topology import line
from anabranch.peers.inspection import RanNetwork
from anabranch.peers.running import RunningNetwork
from anabranch.sharing.tree import PropertyTree
from anabranch.spark.answers.log import AnswerLog
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from peers.working import Alone, GrowingStream, bare_network, network_of

S = 'xmlns:s="urn:anabranch:stream"'
ALL_AT_ONCE = (1 << 20,)


def items(begin: int, count: int) -> list[str]:
    """Items of a growing time, with values below 100 that come again and again, and much that nobody asks for."""
    return [
        f"<i><t>{at}</t><k>{at % 4}</k><v>{at * 7 % 100}.5</v><w>{at}</w><much>{'x' * 60}</much></i>"
        for at in range(begin, begin + count)
    ]


def accent(what: str, where: str = "") -> str:
    """An accent."""
    described = f' where="{where}"' if where else ""
    return f"<s:accent {S}{described}>{what}</s:accent>"


DOUBLED = accent('<s:alter path="v" by=". * 2"/>')
THIRDS = accent('<s:alter path="v" by=". * 5 div 9 - 3"/>', "k = 1")
SELECT = 'for $i in stream("s")/root/i where $i/v >= {} return <o>{{ $i/v }}</o>'
WINDOW = 'for $w in stream("s")/root/i[v >= {}]|t diff 10| return <o>{{ sum($w/v), max($w/v) }}</o>'


def ended(logs: Sequence[AnswerLog], name: str) -> str | None:
    """Why a query has ended, as the log of its peer has it."""
    for log in logs:
        found, last = log.subscription(name), log.manifests.newest()
        if found is not None and last is not None and found.id in last.aborted:
            return last.aborted[found.id]
    return None


class Pair:
    """A network along a line, and the single engine beside it, which read the same stream."""

    def __init__(self, folder: Path, *, accents: bool = True, sample: Sequence[str] = ()) -> None:
        """The sample is there before anybody asks, for the planner."""
        self._grown = GrowingStream(folder / "s", ())
        self._grown.bring(sample)
        source = Source("s", folder / "s", "lines", time=ItemPath.parse("t"), evolves=accents)
        self._alone = Alone(folder / "alone", [source], Random(5))
        registered = RegisteredStream(source, "SP0", "SP0", None, accents)
        self.described = network_of(line(3), [registered])
        self.network: RunningNetwork = bare_network(self.described, folder / "network", Random(6), ALL_AT_ONCE)

    def ask(self, name: str, text: str, at: str = "SP2") -> None:
        """Register a query."""
        self.network.register(name, text, at)
        self._alone.drain()
        self._alone.queries[name] = text

    def bring(self, portion: Sequence[str]) -> int:
        """Bring some elements; gives how many bytes went over links for them."""
        before = self._bytes()
        self._grown.bring(portion)
        self.network.drain()
        self._alone.drain()
        self._compare()
        return self._bytes() - before

    def _compare(self) -> None:
        logs = [each.log for each in self.network.peers.values()]
        for name in self._alone.queries:
            assert self.network.answer(name) == self._alone.answer(name)
            assert ended(logs, name) == ended([self._alone.log], name)

    def end(self) -> None:
        """End the stream, so that all windows close."""
        self.network.end_stream("s")
        self._alone.end()
        self._compare()

    @property
    def flows(self) -> list[Flow]:
        """The flows over links."""
        return list(self.network.catalogue.hops)

    def _bytes(self) -> int:
        return sum(each.bytes for each in self.network.measured().flows.values())


@pytest.mark.mass
def test_as_narrow_as_without_accents(tmp_path: Path) -> None:
    """As long as no accent comes a stream that may have some is sent as one that has none, to the byte."""
    sent = []
    for accents in (True, False):
        pair = Pair(tmp_path / f"{accents}", accents=accents)
        with pair.network:
            pair.ask("a", SELECT.format(50))
            pair.ask("b", SELECT.format(80).replace("$i/v }", "$i/w }"), "SP1")
            sent.append([pair.bring(items(0, 60)), pair.bring(items(60, 60))])
    assert sent[0] == sent[1]
    assert 0 < sum(sent[0]) < sum(map(len, items(0, 120))) / 2


COUNTED = 'for $w in stream("s")/root/i[v >= {}]|count 3| return <o>{{ $w/v }}</o>'


@pytest.mark.parametrize("text", [SELECT, COUNTED])
def test_narrow_again_behind_an_accent(tmp_path: Path, text: str) -> None:
    """The epoch of an accent is sent whole, and those behind it in parts, selected in the units of the start."""
    pair = Pair(tmp_path)
    with pair.network:
        pair.ask("a", text.format(50))
        usual = pair.bring(items(0, 100))
        whole = pair.bring([*items(100, 50), DOUBLED, *items(150, 50)])
        assert whole > 2 * usual
        behind = pair.bring(items(200, 100))
        assert behind < usual, "doubled values are selected by half as much"
        assert pair.network.answer("a").count("<o>") > 3


@pytest.mark.mass
def test_who_begins_behind_an_accent(tmp_path: Path) -> None:
    """It asks in other units than those before it, of the same flow: an item is sent if somebody selects it."""
    pair = Pair(tmp_path)
    with pair.network:
        pair.ask("a", SELECT.format(80))
        pair.bring(items(0, 100))
        pair.bring([DOUBLED])
        alone = pair.bring(items(100, 100))
        pair.ask("b", SELECT.format(50))
        both = pair.bring(items(200, 100))
        assert alone < both < sum(map(len, items(200, 100)))
        assert pair.network.answer("b").count("<o>") > 10
        pair.network.cancel("a")
        pair._alone.queries.pop("a")
        pair.bring([accent('<s:alter path="v" by=". div 4"/>'), *items(300, 10)])
        pair.ask("c", WINDOW.format(10), "SP1")
        pair.bring(items(310, 50))


def test_who_was_there_before_its_flow_was_made(tmp_path: Path) -> None:
    """A peer that handed a flow on, and makes it since another one asks for more, does not ask in units of its own."""
    pair = Pair(tmp_path, sample=items(0, 40))
    with pair.network:
        pair.ask("a", SELECT.format(80))
        pair.bring(items(40, 10))
        pair.bring([accent('<s:alter path="v" by=". div 4"/>')])
        made = len(pair.network.peers["SP1"].program.made)
        pair.ask("b", 'for $i in stream("s")/root/i where $i/w >= 10 return <o>{ $i/k }{ $i/much }</o>', "SP1")
        assert len(pair.network.peers["SP1"].program.made) == made + 1
        before = pair.network.answer("a").count("<o>")
        pair.bring([each.replace(".5</v>", "</v>") for each in items(50, 50)])
        assert pair.network.answer("a").count("<o>") > before + 20, "values from 20 on are 80 and more"


@pytest.mark.mass
def test_a_description_of_a_path_that_nobody_reads(tmp_path: Path) -> None:
    """It travels from then on, for readers must know in which unit a value is."""
    pair = Pair(tmp_path)
    with pair.network:
        pair.ask("a", SELECT.format(20))
        pair.ask("w", COUNTED.format(20))
        usual = pair.bring(items(0, 50))
        pair.bring([THIRDS])
        behind = pair.bring(items(50, 50))
        (flow,) = {each.name for each in pair.network.catalogue.hops if each.made_at == "SP1"}
        newest = max((tmp_path / "network/links" / flow / "0").glob("*.xml")).read_text()
        assert "<k>1</k>" in newest
        assert "much" not in newest
        assert behind < 1.5 * usual


@pytest.mark.parametrize(
    ("told", "behind"),
    [
        (accent('<s:drop path="much"/>'), items(60, 30)),
        (accent('<s:alter path="t" by=". * 10"/>'), [each.replace("</t>", "0</t>") for each in items(60, 30)]),
        (f'<s:punctuation {S} where="w &lt; 80"/>', items(60, 30)),
        (accent('<s:drop path="v"/>'), [each.replace("<v>", "<u>").replace("</v>", "</u>") for each in items(60, 30)]),
    ],
)
def test_what_is_sent_whole(tmp_path: Path, told: str, behind: list[str]) -> None:
    """Bad items travel as they came, to be set aside; so does a stream whose times evolve."""
    pair = Pair(tmp_path)
    with pair.network:
        pair.ask("a", SELECT.format(20))
        pair.ask("w", WINDOW.format(20), "SP1")
        pair.bring(items(0, 60))
        pair.bring([told])
        pair.bring(behind)
        pair.ask("b", SELECT.format(20).replace("$i/v }", "$i/w }"), "SP1")
        pair.bring([each.replace("<much>", "<other>").replace("</much>", "</other>") for each in items(100, 30)])


def test_it_is_said_why_a_stream_is_sent_whole(tmp_path: Path) -> None:
    """A stream whose times evolve cannot be cut down, nor one that is described by what parts do not have."""
    for number, (told, why) in enumerate(
        (
            (
                accent('<s:alter path="t" by=". * 10"/>'),
                ["all of s is sent, for windows are measured by 't', which has evolved"],
            ),
            (accent('<s:alter path="v" by=". * 10"/>', "@a = 1"), ["all of s is sent, for a description names '@a'"]),
            (DOUBLED, []),
        )
    ):
        pair = Pair(tmp_path / f"{number}")
        with pair.network:
            pair.ask("a", WINDOW.format(20))
            pair.ask("b", SELECT.format(20))
            pair.bring([*items(0, 20), told])
            ran = RanNetwork(pair.described, tmp_path / f"{number}" / "network")
            assert list(ran.sent_whole()) == why


TOLD = (
    DOUBLED,
    THIRDS,
    accent('<s:alter path="v" by=". * 9 div 7"/>'),
    accent('<s:alter path="v" by=". + 0.5"/>', "k &lt; 2"),
    accent('<s:alter path="v" by=". + 0.5"/>', "not(k &lt; 2)"),
    accent('<s:alter path="w" by=". * 3"/>'),
    accent('<s:drop path="w"/>'),
    accent('<s:drop path="w"/>', "k = 2"),
    accent('<s:add path="w" type="number"/>'),
    accent('<s:drop path="v"/>', "k = 3"),
    accent('<s:drop path="much"/>'),
    accent('<s:alter path="t" by=". * 2"/>', "k = 0"),
    accent('<s:alter path="nothing" by="?"/>'),
    accent('<s:alter path="w" by="?"/>'),
    f'<s:punctuation {S} where="k &gt; 2"/>',
    f'<s:punctuation {S} where="t &lt; 40"/>',
)
"""What a stream may say."""


def window_query(random: Random) -> str:
    """A query that only asks for values of windows."""
    size, step = random.choice(((10, 10), (20, 10), (30, 10), (20, 20), (40, 20)))
    names = random.sample(("sum", "avg", "min", "max", "count"), random.randrange(1, 4))
    lets = "".join(f"let $a{at} := {name}($w/{random.choice('vvw')}) " for at, name in enumerate(names))
    shown = "".join(f"<a{at}>{{ $a{at} }}</a{at}>" for at in range(len(names)))
    where = random.choice(("", "", "where $a0 >= 150 "))
    condition = random.choice(("", "", "[k >= 1]"))
    window = random.choice(("t diff {} step {}", "t diff {} step {}", "count {} step {}")).format(size, step)
    head = f'for $w in stream("s")/root/i{condition}|{window}| {lets}{where}'
    return f"{head}return <o>{shown}</o>"


@pytest.mark.mass
def test_windows_of_a_stream_that_evolves(tmp_path: Path, mass: Mass) -> None:
    """Windows are made on the way from the beginning, in the units of then, and readers follow accents between them."""
    windows = 0
    for number in mass.cases(300):
        random = Random(number)
        pair = Pair(tmp_path / f"{number}")
        with pair.network:
            for name in "abc"[: random.randrange(1, 4)]:
                pair.ask(name, window_query(random), random.choice(("SP1", "SP2")))
            windows += any(isinstance(each.form, PropertyTree) and each.form.window is not None for each in pair.flows)
            at = 0
            for _ in range(random.randrange(3, 6)):
                portion = items(at, random.randrange(1, 40))
                at += len(portion)
                for _ in range(random.choice((0, 1, 1, 2))):
                    portion.insert(random.randrange(len(portion) + 1), random.choice(TOLD))
                pair.bring(portion)
                if random.random() < 0.2:
                    pair.ask(f"late {at}", window_query(random), random.choice(("SP1", "SP2")))
            pair.end()
    assert windows or mass.done < 10, "none were made on the way"
