"""Control elements that streams do not take, in a network of peers: the answers are those of streams without them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.topology import line
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from control.elements import UNCLOSED, XML
from peers.working import GrowingStream, bare_network, network_of

N = 'xmlns:s="urn:anabranch:stream"'
ITEMS = tuple(f"<i><t>{n}</t><k>{n % 3}</k><v>{n}</v></i>" for n in range(24))
EDITED = tuple(
    each
    for n in range(8)
    for each in (
        f'<e {N}><n>{n}</n><s:mutable id="{n}"><q>{n}</q></s:mutable></e>',
        *([f'<s:replace {N} target="{n - 1}"><q>{n * 10}</q></s:replace>'] if n % 2 else []),
    )
)
JOIN = """for $x in stream("a")/root/i|count 2| for $y in stream("b")/root/i|count 2|
    where $x/k = $y/k return <j>{ $x/v }{ $y/v }</j>"""
QUERIES = (
    ("items", 'for $i in stream("a")/root/i where $i/k = 1 return $i/v', "SP2"),
    ("windows", 'for $w in stream("a")/root/i[k >= 1]|t diff 6| return <w>{ sum($w/v) }</w>', "SP2"),
    ("larger", 'for $w in stream("a")/root/i[k >= 1]|t diff 12| return <w>{ avg($w/v) }</w>', "SP1"),
    ("join", JOIN, "SP2"),
    ("past", 'for $i in stream("b")/root/i[k = 2] return <p>{ $i/v }{ stream("b")/root/i#1/v }</p>', "SP2"),
    ("shown", 'for $e in stream("u")/root/e where $e/q > 5 return $e/q', "SP2"),
    ("names", 'for $e in stream("u")/root/e return $e/n', "SP1"),
)


def answers(folder: Path, more: tuple[str, ...], *, accents: bool, edited: tuple[str, ...] = ()) -> dict[str, str]:
    """What a network answers over streams with these elements among their own."""
    folder.mkdir()
    random = Random(5)
    grown, streams = [], []
    for name, own in (("a", ITEMS), ("b", ITEMS), ("u", EDITED)):
        elements = list(own)
        for number, each in enumerate((*more, *(edited if name == "u" else ()))):
            elements.insert(random.randint(1, len(elements)), each.replace("{}", f"{number}"))
        grown.append(GrowingStream(folder / name, elements))
        time = None if name == "u" else ItemPath.parse("t")
        source = Source(name, folder / name, "lines", time=time, updates=name == "u")
        streams.append(RegisteredStream(source, "SP0", "SP0", None, accents))
    with bare_network(network_of(line(3), streams, "widening", QUERIES), folder / "network", random) as network:
        for _ in range(4):
            for stream in grown:
                stream.grow(20)
            network.drain()
        for stream in grown:
            stream.grow(200)
        network.drain()
        return {name: network.answer(name) for name, _, _ in QUERIES}


@pytest.mark.parametrize("accents", [True, False])
@pytest.mark.mass
def test_answers_are_those_of_streams_without_them(tmp_path: Path, accents: bool) -> None:
    """Whether items, windows, tuples or documents travel; whatever stands between the items."""
    expected = answers(tmp_path / "calm", (), accents=accents)
    assert all(any(each.isdigit() for each in text) for text in expected.values())
    bad = tuple(each for each in XML if each not in UNCLOSED)
    assert answers(tmp_path / "wild", bad, accents=accents) == expected


@pytest.mark.mass
def test_what_an_accent_ends_it_ends_behind_links_too(tmp_path: Path) -> None:
    """In a stream of updates: who reads its path, at another peer, shows what it showed before; the others go on."""
    expected = answers(tmp_path / "calm", (), accents=True)
    accent = f'<s:accent {N}><s:alter path="q" by=". * 2"/></s:accent>'
    found = answers(tmp_path / "wild", (), accents=True, edited=(accent,))
    shown = found.pop("shown")
    assert shown != expected.pop("shown")
    assert expected == found
