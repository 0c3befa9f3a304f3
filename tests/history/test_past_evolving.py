"""Queries about the past of streams that evolve: items are seen in the units of query start (LAWS 4.1, 4.7)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from mass import some
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'
QUERIES = (
    '<o>{ stream("s")/r/i/v#[2] }</o>',
    '<o>{ for $x in stream("s")/r/i return <x>{ $x/v, stream("s")/r/i/v#1 }</x> }</o>',
    '<o>{ for $x in stream("s")/r/i where $x/v > 50 return <x>{ sum(stream("s")/r/i[v > 40]/v?[2]) }</x> }</o>',
    '<o>{ for $x in stream("s")/r/i?[3] return <x>{ $x/k, $x/v + 1 }</x> }</o>',
    '<o>{ count(stream("s")/r/i[k = 1]#[3]), stream("s")/r/i/w?1 }</o>',
    '<o>{ for $w in stream("s")/r/i|t diff 3| return <x>{ $w/v, sum($w/v), stream("s")/r/i/v#[3] }</x> }</o>',
    '<o>{ for $w in stream("s")/r/i[v > 40]|t gap 2 by k| return <x>{ avg($w/v), stream("s")/r/i/w#0 }</x> }</o>',
)
CHANGES = (
    '<s:accent {}><s:alter path="v" by="(. - 32) * 5 div 9"/></s:accent>',
    '<s:accent {}><s:alter path="v" by=". * 2"/></s:accent>',
    '<s:accent {} where="k = 1"><s:alter path="v" by=". div 4"/></s:accent>',
    '<s:accent {} where="k = 2"><s:drop path="w"/></s:accent>',
    '<s:punctuation {} at="{}"/>',
)


def lines(random: Random, length: int, changes: tuple[str, ...] = CHANGES) -> list[str]:
    """Items, and accents between them now and then."""
    found: list[str] = []
    dropped = False
    for now in range(length):
        if random.random() < 0.4:
            change = random.choice(changes)
            if "drop" not in change or not dropped:
                found.append(change.format(S, now))
            dropped = dropped or "drop" in change
        k = random.choice((1, 2, 3))
        more = "" if dropped and k == 2 else "<w>7</w>"
        found.append(f"<i><t>{now}</t><k>{k}</k><v>{random.randrange(20, 90)}</v>{more}</i>")
    return found


def source(folder: Path) -> Source:
    return Source("s", folder, "lines", root="r", time=ItemPath.parse("t"))


@pytest.mark.parametrize("seed", some(range(3)))
def test_what_the_law_says(tmp_path: Path, seed: int) -> None:
    """The answers are those over the canonical stream, whatever the epochs; remembered items keep their units."""
    random = Random(seed)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1").write_text("\n".join(lines(random, 9)) + "\n")
    inputs = Inputs([source(tmp_path / "in")])
    queries = {f"q{number}": text for number, text in enumerate(QUERIES)}
    trunk = BareTrunk(tmp_path / "state", inputs.streams, random, finite=True)
    trunk.run(queries, [70, 150], [1, 2])
    assert trunk.plan is not None
    names = {each.id: each.name for each in trunk.plan.subscriptions}
    ended = {names[id]: why for each in trunk.log.manifests.since(0) for id, why in each.aborted.items()}
    with answering([prepare(*each, inputs, "reference") for each in queries.items()], inputs) as law:
        assert ended == law.aborted
        for name in queries.keys() - ended.keys():
            assert trunk.answer(name) == "".join(law.answers[name]), queries[name]


def test_a_path_that_goes_ends_who_needs_it(tmp_path: Path) -> None:
    """Where it stands in a condition; what was answered stays, and others go on without it (LAWS 4.6)."""
    (tmp_path / "in").mkdir()
    items = "<i><t>1</t><k>1</k><v>5</v></i>\n<i><t>2</t><k>1</k><v>6</v></i>\n"
    drop = f'<s:accent {S}><s:drop path="v"/></s:accent>\n'
    (tmp_path / "in/1").write_text(f"{items}{drop}<i><t>3</t><k>1</k></i>\n")
    given = [source(tmp_path / "in")]
    trunk = BareTrunk(tmp_path / "state", given, Random(3), finite=False)
    queries = {
        "needs": 'for $x in stream("s")/r/i where $x/v > 1 return <n>{ stream("s")/r/i[v > 5]/t#0 }</n>',
        "shows": 'for $x in stream("s")/r/i return <n>{ $x/t, stream("s")/r/i/v#0 }</n>',
    }
    trunk.run(queries, [60], [1])
    assert trunk.answer("needs") == "<n/><n><t>2</t></n>"
    assert trunk.answer("shows") == "<n><t>1</t><v>5</v></n><n><t>2</t><v>6</v></n><n><t>3</t><v>6</v></n>"
    (reason,) = {why for each in trunk.log.manifests.since(0) for why in each.aborted.values()}
    assert "'v'" in reason


def test_who_comes_late_has_the_units_of_its_start(tmp_path: Path) -> None:
    """Accents in force for all items are its units (LAWS 3.6); one that comes later is followed from there."""
    (tmp_path / "in").mkdir()
    alter = f'<s:accent {S}><s:alter path="v" by=". * 2"/></s:accent>\n'
    (tmp_path / "in/1").write_text(f"<i><t>1</t><v>5</v></i>\n{alter}<i><t>2</t><v>10</v></i>\n")
    trunk = BareTrunk(tmp_path / "state", [source(tmp_path / "in")], Random(4), finite=False)
    trunk.run({}, [60], [1])
    (tmp_path / "in/2").write_text(f"<i><t>3</t><v>12</v></i>\n{alter}<i><t>4</t><v>28</v></i>\n")
    trunk.run({"late": '<o>{ stream("s")/r/i/v#[3] }</o>'}, [60], [1, 2])
    assert trunk.answer("late") == "<o><v>14</v><v>12</v></o>"
