"""Accents beside updates: who cannot follow one ends there, by name, and nobody else; the others reckon with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.stream.elements import DeadLetter
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

N = 'xmlns:s="urn:anabranch:stream"'
TIME = ItemPath.parse("w")


def accent(change: str) -> str:
    return f"<s:accent {N}>{change}</s:accent>"


UPDATES = (
    f'<e><w>1</w><a><s:mutable {N} id="1"><t>1</t></s:mutable></a><n>1</n></e>',
    f'<s:replace {N} target="1" at="2"><t>2</t></s:replace>',
    accent('<s:add path="a/x"/>'),
    "<e><w>3</w><a><t>3</t></a><n>2</n></e>",
    accent('<s:alter path="a/t" by=". * 2"/>'),
    f'<s:replace {N} target="1" at="4"><t>4</t></s:replace>',
    "<e><w>5</w><a><t>6</t></a><n>3</n></e>",
    accent('<s:alter path="n" by="?"/>'),
    "<e><w>7</w><n>4</n></e>",
)
MORE = ("<e><w>2</w><n>9</n></e>", "<e><w>6</w><n>8</n><a><t>9</t></a></e>")
ITEMS = (
    "<p><w>1</w><k>1</k><v>1</v></p>",
    accent('<s:add path="z"/>'),
    "<p><w>3</w><k>2</k><v>2</v><z>1</z></p>",
    accent('<s:alter path="v" by=". + 1"/>'),
    "<p><w>5</w><k>3</k><v>3</v></p>",
    accent('<s:drop path="z"/>'),
    "<p><w>6</w><k>4</k><v>4</v><z>1</z></p>",
    accent('<s:drop path="z"/>'),
    "<p><w>8</w><k>5</k><v>5</v></p>",
)
QUERIES = {
    "t": '<o>{ for $e in stream("u")/r/e where $e/a/t > 1 return $e/a/t }</o>',
    "n": '<o>{ for $e in stream("u")/r/e return $e/n }</o>',
    "w": '<o>{ count(stream("u")/r/e) }</o>',
    "all": '<o>{ stream("u")/r/e }</o>',
    "deep": '<o>{ stream("u")//t }</o>',
    "past": '<o>{ stream("u")/r/e/a/t#1 }</o>',
    "beside k": 'for $p in stream("i")/r/p return <b>{ $p/k }{ count(stream("u")/r/e) }</b>',
    "beside v": 'for $p in stream("i")/r/p return <b>{ $p/v }{ count(stream("u")/r/e) }</b>',
    "beside z": 'for $p in stream("i")/r/p return <b>{ $p/z }{ count(stream("u")/r/e) }</b>',
    "beside n": 'for $p in stream("i")/r/p return <b>{ $p/k }{ stream("u")/r/e/n }</b>',
    "together": '<d>{ count(stream("i")/r/p[k > 1]?[9]) }{ sum(stream("u")/r/e/n) }</d>',
    "together v": '<d>{ sum(stream("i")/r/p#[2]/v) }{ count(stream("u")/r/e) }</d>',
}


def sources(folder: Path) -> list[Source]:
    """A stream of updates in two partitions, and one of items."""
    for name, lines in (("u", UPDATES), ("u2", MORE), ("i", ITEMS)):
        (folder / name).write_text("".join(f"{each}\n" for each in lines))
    return [
        Source("u", folder / "u", "lines", root="r", time=TIME, updates=True, more=(folder / "u2",)),
        Source("i", folder / "i", "lines", root="r", time=TIME),
    ]


def told(letters: Iterable[DeadLetter]) -> Counter[str]:
    return Counter(each.to_json() for each in letters)


@pytest.mark.parametrize("strands", [0, 3])
@pytest.mark.mass
def test_a_trunk_ends_them_where_the_law_does(tmp_path: Path, strands: int) -> None:
    """Answers, dead letters, and who has ended and why: whatever the epochs, shards and strands."""
    inputs = Inputs(sources(tmp_path))
    prepared = [prepare(name, text, inputs, "reference") for name, text in QUERIES.items()]
    with answering(prepared, inputs) as law:
        due = {name: "".join(answer) for name, answer in law.answers.items()}
        ended, letters = dict(law.aborted), told(law.dead)
    assert set(ended) == {"n", "all", "deep", "beside z", "beside n", "together"}
    assert due["t"] == "<o><t>2</t><t>3</t><t>3</t><t>9</t></o>"
    assert due["past"] == "<o><t>2</t></o>"
    assert due["w"] == "<o>6</o>"
    assert due["beside k"].endswith("<b><k>5</k>6</b>")
    for seed in range(6):
        trunk = BareTrunk(tmp_path / f"state-{seed}", inputs.streams, Random(seed), finite=True)
        trunk.strands = strands
        trunk.run(QUERIES, (1, 90, 200, 1 << 20), (1, 2, 3))
        assert {name: trunk.answer(name) for name in QUERIES} == due, seed
        assert told(trunk.log.dead_letters()) == letters
        assert trunk.plan is not None
        aborted = list(trunk.log.manifests.since(0))[-1].aborted
        assert {each.name: aborted[each.id] for each in trunk.plan.subscriptions if each.id in aborted} == ended
