"""Timelines of the reference over streams of items that evolve: in the units of the start, all the way (LAWS 3.11).

The judge is the timeline of the same stream as it would be without accents (`evolving.py`), which has heartbeats in
their places.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.timelines import timelines
from anabranch.stream.reading.source import Source
from history.evolving import Pair, World
from mass import some

QUERIES = {
    "counted": 'count(stream("u")/r/e[t > 10])',
    "summed": '<o>{ sum(stream("u")/r/e/t), max(stream("u")/r/e/@v) }</o>',
    "sorted": 'for $e in stream("u")/r/e order by $e/t descending return <x>{ $e/s, $e/t }</x>',
    "grouped": 'for $e in stream("u")/r/e group by $s := $e/s return <x>{ $s, avg($e/p/q) }</x>',
    "lately": '<o>{ stream("u")/r/e?[2]/t, <v>{ string(stream("u")/r/e[t > 9]#1/@v) }</v> }</o>',
    "looked back": 'for $e in stream("u")/r/e where $e/t > max(stream("u")/r/e#[2]/t) - 5 return <x>{ $e/t }</x>',
}


def shown(source: Source, queries: dict[str, str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The timelines of the reference, line by line, and why there is none."""
    inputs = Inputs([source])
    prepared = [prepare(name, text, inputs, "reference") for name, text in queries.items()]
    with timelines(prepared, inputs) as found:
        lines = {name: list(several) for name, several in found.answers.items()}
        return lines, dict(found.aborted)


@pytest.mark.parametrize("number", some(range(8)))
def test_as_without_accents(number: int, tmp_path: Path) -> None:
    """Moment by moment, for what is computed at the end, in order, in groups, and from the past."""
    world = World(Random(f"items {number}"))
    world.items(14)
    given = Pair.of(tmp_path, "u", [world], updates=False)
    accented, ended = shown(given.accented, QUERIES)
    canonical, _ = shown(given.canonical, QUERIES)
    assert ended == {}
    assert accented == canonical
    assert world.changes
    assert all(len(each) > 2 for each in accented.values())


def test_what_has_none(tmp_path: Path) -> None:
    """Results that stand may have accents among them, and an accent may end a query: both are refused by name."""
    lines = "<e><t>1</t></e>\n", '<s:accent xmlns:s="urn:anabranch:stream"><s:drop path="t"/></s:accent>\n', "<e/>\n"
    (tmp_path / "u").write_text("".join(lines))
    source = Source("u", tmp_path / "u", "lines", root="r")
    queries = {
        "stands": 'stream("u")/r/e/t',
        "ends": 'count(stream("u")/r/e[t > 0])',
        "goes on": 'count(stream("u")/r/e)',
    }
    found, ended = shown(source, queries)
    assert [len(found[name]) for name in queries] == [0, 0, 2]
    assert ended["stands"].startswith("the reference has no timeline yet of results that stand where a stream evolves")
    assert "of a query that fails or ends where a stream evolves: " in ended["ends"]
    assert ended.keys() == {"stands", "ends"}
