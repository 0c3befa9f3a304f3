"""Joins by keys and sets of several streams in a trunk: shared, over JSON, in SQL, and late (LAWS 3.5, 3.6)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch import Engine
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

FORS = 'for $x in stream("a")/r/i, $y in stream("b")/r/i where '
ON = "$x/k = $y/k"
QUERIES = {
    "pairs": f"{FORS}{ON} return <o>{{ $x/t, $y/t }}</o>",
    "twin": 'for $u in stream("a")/r/i, $v in stream("b")/r/i where $u/k = $v/k return <o>{ $u/t, $v/t }</o>',
    "fewer": f"{FORS}$x/t > 2 and {ON} return <o>{{ $x/t, $y/t }}</o>",
    "other": f"{FORS}$x/t = $y/k return <o>{{ $x/t, $y/t }}</o>",
    "union": 'for $x in stream("a")/r/i union stream("b")/r/i return $x/t',
    "except": 'for $x in stream("a")/r/i union stream("b")/r/i except stream("b")/r/i[k = "q"] return $x/t',
}


def lay(folder: Path) -> list[Source]:
    for name, times in (("a", (1, 4, 6)), ("b", (2, 4, 5))):
        items = (f"<i><t>{t}</t><k>{'pq'[t % 2]}</k></i>\n" for t in times)
        (folder / name).write_text("".join(items) + '<s:punctuation xmlns:s="urn:anabranch:stream" at="9"/>\n')
    time = ItemPath.parse("t")
    return [Source(name, folder / name, "lines", root="r", time=time) for name in "ab"]


def test_queries_with_the_same_keys_share_a_branch(tmp_path: Path) -> None:
    """Items are held once for all that read them by the same keys; twins are answered once (LAWS 3.7)."""
    answers = []
    for sharing in (True, False):
        folder = tmp_path / str(sharing)
        folder.mkdir()
        trunk = BareTrunk(folder / "state", lay(folder), Random(3), finite=False, sharing=sharing)
        trunk.run(QUERIES, (60, 200), (1, 3))
        assert trunk.plan is not None
        known = trunk.plan.by_name
        answers.append({name: trunk.answer(name) for name in QUERIES})
        branches = {name: each.branch for name, each in known.items()}
        assert len(set(branches.values())) == (3 if sharing else len(QUERIES))
        assert known["pairs"].kind == known["fewer"].kind == "keyed join"
        assert known["union"].kind == "items in order"
        if sharing:
            assert branches["pairs"] == branches["twin"] == branches["fewer"]
            assert branches["union"] == branches["except"]
    assert answers[0] == answers[1]
    first = answers[0]
    assert (
        first["pairs"]
        == first["twin"]
        == (
            "<o><t>4</t><t>2</t></o><o><t>4</t><t>4</t></o><o><t>1</t><t>5</t></o>"
            "<o><t>6</t><t>2</t></o><o><t>6</t><t>4</t></o>"
        )
    )
    assert first["fewer"] == first["pairs"].replace("<o><t>1</t><t>5</t></o>", "")
    assert first["other"] == ""
    assert first["union"] == "<t>1</t><t>2</t><t>4</t><t>4</t><t>5</t><t>6</t>"
    assert first["except"] == "<t>1</t><t>2</t><t>4</t><t>4</t><t>6</t>"


@pytest.mark.parametrize(
    "query",
    [
        'for $x in stream("a"), $y in stream("b") where $x.k = $y.k return { "x": $x.t, "y": $y.t }',
        "SELECT x.t AS x, y.t AS y FROM a AS x JOIN b AS y ON x.k = y.k",
    ],
    ids=["dots", "SQL"],
)
def test_keys_of_json(tmp_path: Path, query: str) -> None:
    """Numbers meet by value, and strings by text; a string and a number are not equal, nor are nulls."""
    lines = {"a": ('1, "k": 1.0', '3, "k": "1"', '5, "k": null'), "b": ('2, "k": 1', '4, "k": "1"', '6, "k": null')}
    for name, items in lines.items():
        text = "".join(f'{{"t": {each}}}\n' for each in items)
        (tmp_path / name).write_text(text + '{"$punctuation": {"at": 9}}\n')
    with Engine(local=True, once=True) as engine:
        for name in lines:
            engine.stream(name, tmp_path / name, format="json", time="t", retain="1 h")
        asked = engine.subscribe(query)
        assert asked.answer() == '{"x": 1, "y": 2}\n{"x": 3, "y": 4}\n'
        assert asked.warnings == ()


def test_a_late_subscription_joins_what_it_sees(tmp_path: Path) -> None:
    """LAWS 3.6: it answers as if the streams began with the first element that it sees."""
    sources = lay(tmp_path)
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=False)
    pairs = QUERIES["pairs"]
    trunk.run({"early": pairs}, (1 << 20,), (2,))
    for name, time in (("a", 10), ("b", 11)):
        with (tmp_path / name).open("a") as file:
            file.write(f"<i><t>{time}</t><k>p</k></i>\n" + '<s:punctuation xmlns:s="urn:anabranch:stream" at="20"/>\n')
    trunk.run({"early": pairs, "late": pairs}, (1 << 20,), (2,))
    assert trunk.answer("late") == "<o><t>10</t><t>11</t></o>"
    met = (f"<o><t>{x}</t><t>{y}</t></o>" for x, y in ((10, 2), (10, 4), (4, 11), (6, 11), (10, 11)))
    assert trunk.answer("early").endswith("".join(met))


@pytest.mark.mass
def test_the_state_is_flat_under_punctuation(tmp_path: Path) -> None:
    """Over a hundred epochs the state holds what may still meet others, and so does that of a twin, which joins.

    Keys rise, and each stream closes those that it is done with; windows over the pairs and a union are there as well.
    """
    join = f"{FORS}$x/k = $y/k return <m>{{ $x/t, $x/v }}</m>"
    queries = {
        "pairs": join,
        "windows": f"for $w in ({join})|t diff 20| return <w>{{ sum($w/v) }}</w>",
        "union": QUERIES["union"],
    }
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.touch()
    time = ItemPath.parse("t")
    sources = [Source(path.name, path, "lines", root="r", time=time) for path in paths]
    trunk = BareTrunk(tmp_path / "state", sources, Random(5), finite=False)
    sizes: list[int] = []
    for epoch in range(100):
        for path in paths:
            items = (f"<i><t>{4 * epoch + t}</t><k>{4 * epoch + t}</k><v>{t}</v></i>\n" for t in range(4))
            closed = f'<s:punctuation xmlns:s="urn:anabranch:stream" where="k &lt; {4 * epoch + 4}"/>\n'
            with path.open("a") as file:
                file.write("".join(items) + closed)
        trunk.run(queries | ({"late pairs": join} if epoch >= 20 else {}), (1 << 20,), (1,))
        sizes.append(sum(each.size for each in trunk.log.manifests.load(trunk.epochs - 1).states.values()))
    assert max(sizes[60:]) < 1.1 * max(sizes[:50])
    assert trunk.plan is not None
    assert trunk.plan.by_name["late pairs"].branch == trunk.plan.by_name["pairs"].branch
    assert trunk.answer("late pairs") == "".join(
        f"<m><t>{t}</t><v>{t % 4}</v></m>" for t in range(80, 399)
    )  # the last still waits
