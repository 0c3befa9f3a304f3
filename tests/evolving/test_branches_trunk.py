"""Branches in trunks, over streams that evolve: whatever epochs, ranges and shards, the answer is the reference's."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from algebra import evolving as algebra_evolving
from algebra.evolving import stream
from anabranch.engine.evolved import answer_evolving, fed, text_of
from anabranch.engine.reading import read_stream
from anabranch.runtime.standing import standing
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import write
from evolving.outlets import checked
from evolving.questions import Kind, question, timed
from evolving.square import EXACT
from spark.bare import BareTrunk
from spark.test_evolving_items import CELSIUS, TO_CELSIUS, Trunk, accent

WRONG = '<s:accent xmlns:s="urn:anabranch:stream" where="u = 1"><s:alter path="u" by=". * 2"/></s:accent>'


def sources(folder: Path, random: Random) -> list[Source]:
    """Two streams of two partitions each, with an accent that is refused in one of them."""
    found: list[Source] = []
    for name in ("a", "b"):
        paths = []
        for part in range(2):
            lines = [write(each) for each in timed(random, stream(random, ["s", "t", "x"], 14, comes=True, goes=True))]
            if part:
                lines.insert(random.randrange(len(lines)), WRONG)
            paths.append(folder / f"{name}{part}")
            paths[-1].write_text("".join(f"{line}\n" for line in lines))
        found.append(Source(name, paths[0], root="r", time=ItemPath.parse("ts"), more=(paths[1],), format="lines"))
    return found


@pytest.mark.mass
@pytest.mark.parametrize("seed", range(1))
def test_trunks_answer_as_the_reference(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random windows, joins, merges and what waits for the end, all in one trunk with branches that are shared."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    check_trunk(seed, tmp_path)


def check_trunk(seed: int, folder: Path) -> None:
    random = Random(seed)
    given = sources(folder, random)
    kinds: tuple[Kind, ...] = ("items", "items", "windows", "windows", "joins", "whole")
    queries = {f"q{number}": question(random, kind) for number, kind in enumerate(kinds)}
    trunk = BareTrunk(folder / "state", given, random, finite=True)
    trunk.run(queries, (150, 300, 1 << 20), (1, 2, 3))
    assert trunk.plan is not None
    ended = {each.name for each in trunk.plan.subscriptions if each.aborted}
    read = {source.name: read_stream(source, Limits()) for source in given}
    for name, text in queries.items():
        query = standing(checked(text))
        streams = {each: fed(read[each]) for each in query.streams}
        law = answer_evolving(query, name, streams, {}, {}, "accumulate")
        assert trunk.answer(name) == text_of(query, law), (seed, text)
        if name in ended:
            assert law.aborted is not None, (seed, text)


def test_a_late_branch_in_a_trunk(tmp_path: Path) -> None:
    """LAWS 3.6: what holds for a part is shown first, what holds for all is its units; the early one goes on."""
    trunk = Trunk(tmp_path)
    query = 'for $w in stream("a")/r/i |count 2| return <w>{$w/t}{$w/s}</w>'
    first = ["<i><s>1</s><t>50</t></i>", accent(TO_CELSIUS), accent('alter path="t" by=". + 1"', "s = 2")]
    trunk.run({"early": query}, [*first, "<i><s>1</s><t>20</t></i>"], [60])
    second = ["<i><s>2</s><t>31</t></i>", "<i><s>1</s><t>10</t></i>", accent('alter path="t" by=". * 10"')]
    trunk.run(
        {"early": query, "late": query}, [*second, "<i><s>1</s><t>200</t></i>", "<i><s>1</s><t>300</t></i>"], [60]
    )
    pieces = "<w><t>30</t><t>10</t><s>2</s><s>1</s></w><w><t>20</t><t>30</t><s>1</s><s>1</s></w>"
    assert trunk.answers("early") == [CELSIUS, f"<w><t>10</t><t>20</t><s>1</s><s>1</s></w>{pieces}"]
    assert trunk.answers("late") == [pieces], "sensor 2 has gone another way, so nothing comes out"


def test_an_aborted_branch_in_a_trunk(tmp_path: Path) -> None:
    """One subscription of a shared branch ends with its reason; the other goes on over the next epochs."""
    trunk = Trunk(tmp_path)
    source = 'for $w in stream("a")/r/i |count 2| '
    queries = {"needs": f"{source}where $w/t > 0 return <n/>", "shows": f"{source}return <s>{{$w/s}}</s>"}
    lines = ["<i><t>1</t></i>", "<i><t>2</t></i>", accent('drop path="t"'), "<i><s>3</s></i>", "<i><s>4</s></i>"]
    trunk.run(queries, lines, [50])
    trunk.run(queries, ["<i><s>5</s></i>", "<i><s>6</s></i>"])
    assert trunk.answers("needs") == ["<n/>"]
    assert trunk.answers("shows") == ["<s/><s><s>3</s><s>4</s></s><s><s>5</s><s>6</s></s>"]
    assert trunk.bare.plan is not None
    (ended,) = (each for each in trunk.bare.plan.subscriptions if each.aborted)
    assert (ended.name, ended.aborted) == (
        "needs",
        "'where' cannot do without 't': the accent on 't' where true() drops it",
    )
