"""Documents behind `doc()` in a network: every peer reads them, and answers are those of a single engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.topology import line
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from peers.working import Alone, GrowingStream, bare_network, network_of

TABLE = "<t><row><k>0</k><v>zero</v></row><row><k>1</k><v>one</v></row><least>4</least></t>"
QUERIES = {
    "joined": 'for $i in stream("s")/root/i for $x in doc("t")/t/row where $x/k = $i/k return <j>{ $i/v }{ $x/v }</j>',
    "selected": 'for $i in stream("s")/root/i where $i/v >= doc("t")/t/least return $i/v',
    "by both": 'for $i in stream("s")/root/i where $i/v > 2 and $i/k = doc("t")/t/row/k return <b>{ $i/v }</b>',
    "predicate": 'stream("s")/root/i[k = doc("t")/t/row[v = "one"]/k]/v',
    "held": 'for $w in stream("s")/root/i[v > 1]|t diff 10| return <w>{ doc("t")/t/row[k = $w/k]/v }</w>',
    "counted": 'for $w in stream("s")/root/i[v > 1]|t diff 10| where count($w) > doc("t")/t/least - 3 '
    "return <c>{ sum($w/v) }</c>",
    "preselected": 'for $w in stream("s")/root/i[k = doc("t")/t/row/k]|t diff 10| return <c>{ sum($w/v) }</c>',
    "plain": 'for $w in stream("s")/root/i[v > 1]|t diff 10| return <c>{ sum($w/v) }</c>',
}


@pytest.mark.mass
def test_what_is_looked_up_on_the_way(tmp_path: Path) -> None:
    """Queries come one after the other, at both ends of a line of peers; some can share what travels, with others."""
    for accents in (True, False):
        folder = tmp_path / str(accents)
        folder.mkdir()
        (folder / "t.xml").write_text(TABLE)
        documents = {"t": DocumentSource(folder / "t.xml")}
        items = [f"<i><t>{n}</t><k>{n % 3}</k><v>{n % 7}</v></i>" for n in range(110)]
        random = Random(3)
        grown = GrowingStream(folder / "in", items)
        source = Source("s", folder / "in", "lines", time=ItemPath.parse("t"))
        alone = Alone(folder / "alone", [source], random)
        alone._trunk.documents = documents
        registered = RegisteredStream(source, "SP0", "SP0", None, accents)
        described = replace(network_of(line(3), [registered]), documents=documents)
        with bare_network(described, folder / "network", random) as network:
            for number, (name, text) in enumerate(QUERIES.items()):
                network.register(name, text, f"SP{2 - number % 2}")
                alone.drain()
                alone.queries[name] = text
                grown.grow(10)
                network.drain()
                alone.drain()
            grown.grow(30)
            network.drain()
            alone.drain()
            for name in QUERIES:
                assert network.answer(name) == alone.answer(name), name
                assert ">" in network.answer(name), name
