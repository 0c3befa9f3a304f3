"""Queries that are answered item by item, over streams that evolve: what trunks answer is what the law answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from algebra import evolving
from algebra.evolving import stream
from anabranch.errors import Aborted
from anabranch.law.construct import content_text
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.stream.elements import Accent, Item, Punctuation
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import write
from anabranch.stream.serialize import serialize
from evolving.outlets import Asked, item
from evolving.square import EXACT, item_query
from mass import some
from spark.bare import BareTrunk

NAMESPACE = 'xmlns:s="urn:anabranch:stream"'
TO_CELSIUS = 'alter path="t" by="(. - 32) * 5 div 9"'


def accent(evolution: str, where: str = "") -> str:
    told = f' where="{where}"' if where else ""
    return f"<s:accent {NAMESPACE}{told}><s:{evolution}/></s:accent>"


def each_item(result: str, where: str = "") -> str:
    return f'for $p in stream("a")/r/i {f"where {where} " if where else ""}return {result}'


class Trunk:
    """A trunk over one growing folder."""

    def __init__(self, folder: Path, seed: int = 0, *, sharing: bool = True) -> None:
        self._in = folder / "in"
        self._in.mkdir(parents=True)
        self._files = 0
        source = Source("a", self._in, root="r")
        self.bare = BareTrunk(folder / "state", [source], Random(seed), finite=False, sharing=sharing)

    def run(self, queries: dict[str, str], lines: Sequence[str], epoch_bytes: Sequence[int] = (1 << 20,)) -> None:
        self._files += 1
        (self._in / f"{self._files:03}").write_text("".join(f"{line}\n" for line in lines))
        self.bare.run(queries, epoch_bytes, (1, 2))

    def answers(self, name: str) -> list[str]:
        """The answer, with accents in short."""
        text = self.bare.answer(name).replace(f" {NAMESPACE}", "").replace("<s:accent", "\n<s:accent")
        return [
            each
            for line in text.split("\n")
            for each in line.replace("</s:accent>", "</s:accent>\n").split("\n")
            if each
        ]


CELSIUS = '<s:accent><s:alter path="t" by=". * 5 div 9 - 160 div 9"/></s:accent>'


def test_units_are_right_on_both_sides_of_an_accent(tmp_path: Path) -> None:
    """LAWS case 18 and 19: conditions are in the units of the start, copies keep their text, and the accent is told."""
    trunk = Trunk(tmp_path)
    lines = ["<i><t>38.84</t></i>", "<i><t>38</t></i>", accent(TO_CELSIUS), "<i><t>3.8</t></i>", "<i><t>3.79</t></i>"]
    trunk.run({"warm": each_item("<o>{$p/t}</o>", "$p/t >= 38.84"), "value": each_item("$p/t")}, lines)
    assert trunk.answers("warm") == ["<o><t>38.84</t></o>", CELSIUS, "<o><t>3.8</t></o>"]
    itself = CELSIUS.replace('path="t"', 'path="."')
    assert trunk.answers("value") == ["<t>38.84</t><t>38</t>", itself, "<t>3.8</t><t>3.79</t>"]


def test_an_accent_that_cannot_be_told_is_absorbed(tmp_path: Path) -> None:
    """The output does not say which items have changed: it stays in the units of the start until all have."""
    trunk = Trunk(tmp_path)
    lines = [
        "<i><s>2</s><t>50</t></i>",
        accent(TO_CELSIUS, "s = 2"),
        "<i><s>2</s><t>10</t></i>",
        "<i><s>1</s><t>50</t></i>",
    ]
    lines += [accent(TO_CELSIUS, "not(s = 2)"), "<i><s>1</s><t>10.0</t></i>"]
    trunk.run({"q": each_item("<o>{$p/t}</o>")}, lines)
    assert trunk.answers("q") == ["<o><t>50</t></o>" * 3, CELSIUS, "<o><t>10.0</t></o>"]


@pytest.mark.parametrize("epoch_bytes", [1 << 20, 90])
def test_an_accent_ends_the_query_that_cannot_do_without(tmp_path: Path, epoch_bytes: int) -> None:
    """LAWS 4.6: its answer stays, others go on, and it does not begin again."""
    trunk = Trunk(tmp_path)
    queries = {"needs": each_item("<o>{$p/u}</o>", "$p/t > 0"), "shows": each_item("<o>{$p/t}{$p/u}</o>")}
    lines = [
        "<i><t>1</t><u>1</u></i>",
        accent('drop path="t"'),
        "<i><u>2</u></i>",
        accent('add path="t"'),
        "<i><t>3</t></i>",
    ]
    trunk.run(queries, lines, [epoch_bytes])
    trunk.run(queries, ["<i><t>4</t></i>"])
    assert trunk.answers("needs") == ["<o><u>1</u></o>"]
    assert len(trunk.answers("shows")) == 5
    assert trunk.bare.plan is not None
    (ended,) = (each for each in trunk.bare.plan.subscriptions if each.aborted)
    assert ended.name == "needs"
    assert "'where' cannot do without 't'" in ended.aborted


def test_a_refused_accent_ends_those_who_read_its_path(tmp_path: Path) -> None:
    """LAWS 4.5: nobody knows what the path means then; others go on, and the accent is a dead letter."""
    trunk = Trunk(tmp_path)
    queries = {"reads": each_item("<o>{$p/t}</o>"), "other": each_item("<o>{$p/u}</o>")}
    wrong = accent('alter path="t" by=". * 2"', "t &gt; 1")
    trunk.run(queries, ["<i><t>1</t><u>1</u></i>", wrong, "<i><t>2</t><u>2</u></i>"])
    assert trunk.answers("reads") == ["<o><t>1</t></o>"]
    assert trunk.answers("other") == ["<o><u>1</u></o><o><u>2</u></o>"]
    (letter,) = trunk.bare.log.dead_letters()
    assert "the path that evolves" in letter.reason


def test_who_comes_late_is_shown_what_holds_for_a_part(tmp_path: Path) -> None:
    """LAWS 3.6: what holds for all items is simply its unit; equal queries that came before and after do differ."""
    trunk = Trunk(tmp_path)
    whole = each_item("$p")
    before = ["<i><s>1</s><u>1</u></i>", accent(TO_CELSIUS, "s = 2"), accent('alter path="u" by=". * 2"')]
    trunk.run({"early": whole}, [*before, "<i><s>2</s><t>10</t><u>2</u></i>"])
    warm = each_item("<o>{$p/u}</o>", "$p/t >= 68")
    after = [
        "<i><s>2</s><t>20</t><u>4</u></i>",
        accent('alter path="u" by=". div 2"'),
        "<i><s>2</s><t>30</t><u>3</u></i>",
    ]
    trunk.run({"early": whole, "late": whole, "warm": warm}, after)
    partly = CELSIUS.replace("<s:accent>", '<s:accent where="s = 2">')
    halved = '<s:accent><s:alter path="u" by=". * 1 div 2"/></s:accent>'
    assert trunk.answers("early")[-2:] == [halved, after[2]]
    assert trunk.answers("late") == [partly, after[0], halved, after[2]]
    assert trunk.answers("warm") == ["<o><u>4</u></o>", halved, "<o><u>3</u></o>"]


def expected(query: str, elements: Sequence[Item | Accent | Punctuation]) -> str:
    """What the law answers, to the end or to where an accent ends the query."""
    asked = Asked(query)
    try:
        for each in elements:
            asked.feed("a", item(serialize(each.tree)) if isinstance(each, Item) else each)
    except Aborted:
        pass
    return "".join(accent_text(each) if isinstance(each, Accent) else content_text(each) for each in asked.answer)


@pytest.mark.parametrize("seed", some(range(3)))
@pytest.mark.mass
def test_trunks_answer_what_the_law_answers(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random queries over random accented streams, in epochs and ranges of any size, with and without sharing."""
    monkeypatch.setattr(evolving, "MAPS", EXACT)
    random = Random(seed)
    queries = {f"q{number}": item_query(random) for number in range(8)}
    elements = stream(random, ["s", "t", "x"], 30, comes=True, goes=True)
    lines = [serialize(each.tree) if isinstance(each, Item) else write(each) for each in elements]
    found: list[dict[str, str]] = []
    for sharing in (True, False):
        trunk = Trunk(tmp_path / str(sharing), seed, sharing=sharing)
        trunk.run(queries, lines, (40, 200, 1 << 20))
        found.append({name: trunk.bare.answer(name) for name in queries})
    for name, query in queries.items():
        assert found[0][name] == found[1][name], query
        assert found[0][name] == expected(query, elements), query


def test_partitions_are_the_union_of_their_evolutions(tmp_path: Path) -> None:
    """LAWS case 21: alters come out where they are next in all partitions; until then the old units stay."""
    folders = [tmp_path / name for name in ("x", "y")]
    lines = (
        [accent('alter path="t" by=". * 2"'), accent('alter path="t" by=". + 10"'), "<i><t>20</t></i>"],
        [accent('alter path="t" by=". + 10"'), accent('alter path="t" by=". * 2"'), "<i><t>30</t></i>"],
    )
    for folder, each in zip(folders, lines, strict=True):
        folder.mkdir()
        (folder / "1").write_text("".join(f"{line}\n" for line in each))
    source = Source("a", folders[0], root="r", more=(folders[1],))
    for seed in range(4):
        bare = BareTrunk(tmp_path / f"state{seed}", [source], Random(seed), finite=True)
        bare.run({"q": each_item("<o>{$p/t}</o>")}, (60, 1 << 20), (1, 2))
        assert bare.answer("q") == "<o><t>5</t></o><o><t>5</t></o>"
