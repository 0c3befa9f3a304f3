"""Queries about the past of items on a trunk: the law's answers for any epochs, shards and restarts (LAWS 5.5)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

import papers
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare_endless
from anabranch.law import evaluate
from anabranch.runtime.past.timeline import Timeline
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from history.hosting import replayed
from history.past import checked, given, item, stream
from history.test_remember import BODIES, PATHS, QUALIFIERS, some_stream
from mass import some
from spark.bare import BareTrunk

CORRECTED = (
    "stream('a')/r/i/v#1",
    "<o>{ count(stream('b')/r/i?[2]), stream('a')/r/i/v?1 }</o>",
    "for $x in stream('a')/r/i?[2], $y in stream('b')/r/i?[3] where $x/v = $y/v return <p>{ $x/t, $y/t }</p>",
    "sum(stream('a')/r/i#[2]/v)",
    "for $x in stream('a')/r/i#[3] return $x/v + 1",
)


def sources(folder: Path, streams: dict[str, str]) -> list[Source]:
    """Streams as files; items have their time at `t`."""
    for name, text in streams.items():
        (folder / f"{name}.xml").write_text(text)
    return [Source(name, folder / f"{name}.xml", time=ItemPath.parse("t")) for name in streams]


@pytest.mark.mass
@pytest.mark.parametrize("seed", some(range(2)))
def test_random_queries(seed: int, tmp_path: Path) -> None:
    """Results that stand and displays that are corrected, over streams that are out of order here and there."""
    random = Random(seed)
    queries = {f"c{number}": text for number, text in enumerate(CORRECTED)}
    for number in range(8):
        asked = [random.choice(PATHS) + random.choice(QUALIFIERS) for _ in range(2)]
        queries[f"s{number}"] = random.choice(BODIES).format(*asked)
    streams = {name: some_stream(random, random.randrange(6, 14)) for name in ("a", "b")}
    trunk = BareTrunk(tmp_path / "state", sources(tmp_path, streams), random, finite=True)
    trunk.run(queries, [80, 200, 1_000], [1, 2, 3])
    for name, query in queries.items():
        parsed = checked(query, streams).query
        if name.startswith("c"):
            law = Timeline(parsed, given(streams), name=name)
            shown = [(each.at, each.text) for each in law]
            assert replayed(trunk.log, name) == shown, query
            assert trunk.answer(name) == (shown[-1][1] if shown else ""), query
        else:
            assert trunk.answer(name) == evaluate(parsed, given(streams)).text, query


def test_prefixes_of_the_stream_stay(tmp_path: Path) -> None:
    """What the root declares its items have too, on display as in the answer, but for control elements (LAWS 2.1)."""
    streams = {"a": '<r xmlns:s="urn:anabranch:stream" xmlns:n="u"><i><t>1</t></i><s:punctuation at="2"/></r>'}
    trunk = BareTrunk(tmp_path / "state", sources(tmp_path, streams), Random(1), finite=True)
    trunk.run({"q": "stream('a')/r/i/t?[3]"}, [1_000], [1])
    (_, text), *more = replayed(trunk.log, "q")
    assert (text, more) == ('<t xmlns:n="u">1</t>', [])
    assert trunk.answer("q") == text


def test_query_3_on_a_trunk_remembers_a_minute(tmp_path: Path) -> None:
    """Late acknowledgements stand where they were found; of packets the last minute is in the state."""
    syn = stream(*(item(time, id=time) for time in range(0, 600, 2))).replace("i>", "packet>")
    ack = stream(item(300, id=250), item(310, id=240), item(400, id=399)).replace("i>", "packet>")
    streams = {"ack": ack.replace("packetd>", "id>"), "syn": syn.replace("packetd>", "id>")}
    trunk = BareTrunk(tmp_path / "state", sources(tmp_path, streams), Random(1), finite=True)
    trunk.run({"late": papers.PACKETS}, [2_000], [1, 2])
    law = evaluate(checked(papers.PACKETS, streams).query, given(streams)).text
    assert trunk.answer("late") == law != ""
    held = [each.states[0].held for each in trunk.log.manifests.since(0) if 0 in each.states]
    assert len(held) > 2
    assert max(held) <= 31


def test_what_the_stream_retains(tmp_path: Path) -> None:
    """Case 231 on a trunk, in epochs of a few items: what is too old is neither chosen nor held."""
    beats = stream(item(0, s="rare", v=1), *(item(time, s="usual", v=2) for time in range(1, 60)))
    streams = {"a": stream(item(20, s="rare"), item(45, s="rare"), item("59.5", s="usual")), "b": beats}
    query = "for $x in stream('a')/r/i return <o>{ data(stream('b')/r/i[s = $x/s]#0/v) }</o>"
    for retain, expected in ((None, "<o>1</o><o>1</o><o>2</o>"), (30, "<o>1</o><o/><o>2</o>")):
        folder = tmp_path / str(retain)
        folder.mkdir()
        given = [
            replace(each, retain=None if retain is None else Fraction(retain)) for each in sources(folder, streams)
        ]
        trunk = BareTrunk(folder / "state", given, Random(1), finite=True)
        trunk.run({"q": query}, [600], [1, 2])
        assert trunk.answer("q") == expected
        held = [each.states[0].held for each in trunk.log.manifests.since(0) if 0 in each.states]
        assert (max(held) <= 33) is (retain is not None)


def test_a_running_site_warns_of_what_grows(tmp_path: Path) -> None:
    """Where a variable decides how far back a path looks, it says what is kept, and what bounds it."""
    (tmp_path / "s").mkdir()
    query = "for $x in stream('s')/root/item return stream('s')/root/item[k = $x/k]#1"
    for retain, kept in ((None, "keeps all items of 's', which grow"), (Fraction(60), "of the last 60 s, as 'retain'")):
        inputs = Inputs([Source("s", tmp_path / "s", "lines", retain=retain)])
        (warning,) = prepare_endless("q", query, inputs).growth
        assert kept in warning
