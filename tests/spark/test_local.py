"""Trunks whose host is this process: answers, dead letters and late items are those of the law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.errors import Unsupported
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from papers import INTERVAL_JOIN, SHARING
from spark.test_branches import photon_files


def found(
    engine: EngineName, sources: Sequence[Source], queries: Mapping[str, str], epoch_bytes: int
) -> tuple[dict[str, str], set[str], int, int]:
    """All that an engine tells of queries."""
    inputs = Inputs(sources)
    prepared = [prepare(name, text, inputs, engine) for name, text in queries.items()]
    with answering(prepared, inputs, Settings(epoch_bytes=epoch_bytes, shards=2)) as run:
        answers = {name: "".join(answer) for name, answer in run.answers.items()}
        return answers, {letter.to_json() for letter in run.dead}, run.items, run.late


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_papers_queries(tmp_path: Path, partitions: int) -> None:
    """q1 to q8 and the interval join over photons, with epochs of some random size."""
    names = enumerate(("photons", "photon1", "photon2"))
    sources = [photon_files(tmp_path, name, 80, seed, partitions) for seed, name in names]
    queries = {**SHARING, "interval": INTERVAL_JOIN}
    size = Random(partitions).randrange(4_000, 9_000)
    answers, *rest = found("local", sources, queries, size)
    law, *of_law = found("reference", sources, queries, size)
    assert answers == law
    assert rest == of_law
    assert sum(map(len, answers.values())) > 1_000


def test_what_is_set_aside(tmp_path: Path) -> None:
    """Items that are no XML, values that are no numbers, and items that come too late."""
    times = [*range(30), 3, *range(30, 40)]
    lines = [f"<p><t>{time}</t><e>{'x' if time == 7 else time}</e></p>" for time in times]
    (tmp_path / "s").write_text("\n".join([*lines[:9], "<p><t>", *lines[9:], ""]))
    source = Source("s", tmp_path / "s", "lines", root="r", time=ItemPath.parse("t"))
    queries = {
        "items": '<a>{ for $p in stream("s")/r/p where $p/e + 1 > 20 return $p/e }</a>',
        "windows": '<a>{ for $w in stream("s")/r/p|t diff 10| return <w>{ count($w) }</w> }</a>',
    }
    answers, dead, items, late = found("local", [source], queries, 200)
    assert (answers, dead, items, late) == found("reference", [source], queries, 200)
    assert (len(dead), items, late) == (2, len(times), 1)


def test_updates(tmp_path: Path) -> None:
    """A display that is corrected."""
    elements = (
        '<r xmlns:s="urn:anabranch:stream">',
        '<i><s:mutable id="a"><v>1</v></s:mutable></i>',
        "<i><v>5</v></i>",
        '<s:replace target="a" at="3"><v>7</v></s:replace>',
        "</r>",
    )
    (tmp_path / "s.xml").write_text("\n".join(elements))
    source = Source("s", tmp_path / "s.xml", updates=True)
    queries = {"sum": 'sum(stream("s")/r/i/v)'}
    answers, *rest = found("local", [source], queries, 50)
    assert (answers, rest[0]) == ({"sum": "12"}, set())
    assert (answers, *rest) == found("reference", [source], queries, 50)


def test_what_a_trunk_cannot_do_is_refused(tmp_path: Path) -> None:
    """As on Spark; where nobody names an engine, the reference answers it."""
    (tmp_path / "s.xml").write_text("<r><p/></r>")
    inputs, query = Inputs([Source("s", tmp_path / "s.xml")]), 'count(stream("s")/r/p)'
    with pytest.raises(Unsupported, match="no timeline"):
        prepare("q", query, inputs, "local", timeline=True)
    assert prepare("q", query, inputs, timeline=True).engine == "reference"
