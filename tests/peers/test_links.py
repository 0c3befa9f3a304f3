"""Links: what was read for good is forgotten, whoever begins, ends or begins again to read behind them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.topology import line
from anabranch.peers.links import Link
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from peers.test_kinds import WINDOWS, S
from peers.working import Alone, GrowingStream, bare_network, network_of

EACH = 'for $i in stream("s")/root/i return $i/v'
ITEMS = [f"<i><t>{9 * place}</t><k>{place % 3}</k><v>{place}</v></i>" for place in range(1, 11)]
STREAMS = {
    "evolving": [
        *ITEMS[:2],
        f'<s:accent {S} where="k = 1"><s:alter path="v" by=". * 10"/></s:accent>',
        *ITEMS[2:5],
        f'<s:accent {S}><s:alter path="v" by=". + 1"/></s:accent>',
        *ITEMS[5:],
    ],
    "edited": [
        *(f'<e {S} s:at="{place}"><s:mutable id="{place}"><q>7</q></s:mutable></e>' for place in (1, 2, 3)),
        *(f'<s:replace {S} target="{place % 3 + 1}" at="{place}"><q>{place}</q></s:replace>' for place in range(4, 11)),
    ],
}
SHOWN = '<all>{ stream("s")/root/e/q }</all>'


def names(link: Link) -> list[str]:
    """What lies in the first partition of a link."""
    return sorted(each.name for each in link.paths[0].iterdir())


def test_a_link_and_who_hands_it_on(tmp_path: Path) -> None:
    """What was handed on once and forgotten is not handed on again, nor is what a plan tells only the link's reader."""
    first, second = (Link.of(tmp_path, each) for each in ("s.1", "s.2"))
    for link in (first, second):
        link.make()
    assert first.is_empty
    sizes = [first.append(3, number, "<r/>", ["<i/>"] * number) for number in (1, 2, 3)]
    assert second.hand_on(first, 3) == sizes
    assert second.reached(3) == ("000003-0000000003.xml",)
    second.forget(["000003-0000000003.xml"])
    first.forget(second.reached(3))
    assert names(first) == names(second) == ["000003-0000000003.xml"]
    assert second.hand_on(first, 3) == []
    first.begin(4, "<r/>", [["<j/>"]])
    first.append(4, 7, "<r/>", ["<i/>"])
    assert (first.paths[0] / "000004-0000000000.xml").read_text() == "<r><j/></r>"
    assert len(second.hand_on(first, 4)) == 1
    assert names(second) == ["000003-0000000003.xml", "000004-0000000007.xml"]
    second.forget([""])
    assert len(names(second)) == 2, "a reader that has read nothing yet needs everything"


@pytest.mark.parametrize("kind", ["evolving", "edited"])
@pytest.mark.mass
def test_links_stay_small(tmp_path: Path, kind: str) -> None:
    """A peer that hands a stream on, is asked for it later, and again after a while, answers like a single engine.

    What lies in links is bounded by then; what was sent is counted as ever.
    """
    edited = kind == "edited"
    source = Source("s", tmp_path / "s", "lines", time=None if edited else ItemPath.parse("t"), updates=edited)
    grown = GrowingStream(tmp_path / "s", STREAMS[kind])
    random = Random(3)
    alone = Alone(tmp_path / "alone", [source], random)
    registered = RegisteredStream(source, "SP0", "SP0", None, accents=not edited)
    with bare_network(network_of(line(3), [registered]), tmp_path / "network", random) as network:

        def go_on() -> None:
            for _ in range(2):
                grown.grow(1)
                network.drain()
            alone.drain()

        for name, at in (("far", "SP2"), ("near", "SP1"), ("again", "SP1")):
            alone.queries[name] = SHOWN if edited else WINDOWS if name == "far" else EACH
            network.register(name, alone.queries[name], at)
            go_on()
            assert network.answer(name) == alone.answer(name)
            assert "<" in network.answer(name) or name == "far"
            if at == "SP1":
                network.cancel(name)
                del alone.queries[name]
                go_on()
        assert network.answer("far") == alone.answer("far")
        for each in network.catalogue.hops:
            link = Link.of(tmp_path / "network/links", each.name)
            (held,) = link.paths[0].iterdir()
            assert network.measured().flows[each.name].bytes > 3 * held.stat().st_size
