"""Windows that are counted by panes, over accented streams: what a trunk answers is the law's, however it is split."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path as Folder
from random import Random

import numpy as np
import pytest

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.partial import Partial, merged
from anabranch.columnar.panes import units as pane_units
from anabranch.columnar.panes.panes import PaneCounter
from anabranch.columnar.panes.rows import ManyPanes, Pane
from anabranch.columnar.panes.units import decimals
from anabranch.spark.epoch.counting import RangeResult, Recount
from anabranch.spark.intake import ranges
from anabranch.spark.intake.ranges import Range
from anabranch.spark.state.pane_branches import PaneBranches
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation
from anabranch.stream.reading.source import Source, domains_of
from anabranch.values.atomic import Atomic, Rounded, Untyped
from disk import on_disk
from evolving.windowed import OVER, TO_CELSIUS, Law, add, alter, closing, drop, elements, item, lay
from mass import enough, some
from spark.bare import BareTrunk

SENSORS = domains_of({"s": [1, 2]})
ACCENT = '<s:accent xmlns:s="urn:anabranch:stream">'
CELSIUS = f'{ACCENT}<s:alter path="." by=". * 5 div 9 - 160 div 9"/></s:accent>'
WINDOWS = ("|n diff 10|", "|n diff 20 step 10|", "|n diff 7 step 3|", "|count 3|", "|count 4 step 2|")
SELECTED = ("", "", "[x > 10]", "[s = 1]", "[t >= 12.5]")
CONDITIONS = ("", "", "", "where avg($w/t) >= 20 ", "where max($w/x) > 20 and count($w) > 1 ")
RESULTS = (
    "<o>{avg($w/t)}</o>",
    "<o>{sum($w/t)}</o>",
    "<o>{min($w/t)}</o>",
    "<o>{count($w/t)}</o>",
    '<o n="{count($w)}">{max($w/t)}</o>',
    "<o><a>{avg($w/t)}</a><b>{max($w/x)}</b><c>{sum($w/x)}</c></o>",
    "<o>{avg($w/t) * 2 + 1}</o>",
    "<o>{avg($w/t), max($w/t)}</o>",
    "<o>{avg($w/t[. > 10])}</o>",
    '<o m="{min($w/n)}">{max($w/n)}</o>',
)


def query(random: Random) -> str:
    chosen = (random.choice(each) for each in (SELECTED, WINDOWS, CONDITIONS, RESULTS))
    selected, window, condition, result = chosen
    return f"{OVER}{selected} {window} {condition}return {result}"


def sliced(folder: Folder, sources: Sequence[Source], random: Random, queries: Mapping[str, str]) -> BareTrunk:
    """A trunk that has read all there is, in epochs, ranges and shards of random sizes."""
    trunk = BareTrunk(folder, sources, random, finite=True, sharing=random.random() < 0.7)
    size = sum(source.size for source in sources)
    trunk.run(queries, (size // 7 + 1, size // 2 + 1, size + 1), (1, 3))
    return trunk


def answers(
    folder: Folder, lines: Sequence[str], *results: str, window: str = "|n diff 10|", **settings: object
) -> list[str]:
    """What window queries answer, the same for every split, and as the law says."""
    queries = {str(number): f"{OVER} {window} return {each}" for number, each in enumerate(results)}
    source = lay(folder / "in", [lines], **settings)
    found = {tuple(map(trunk.answer, queries)) for trunk in _splits(folder, source, queries)}
    assert found == {tuple(Law(each, source).read() for each in queries.values())}
    return list(*found)


def _splits(folder: Folder, source: Source, queries: Mapping[str, str]) -> list[BareTrunk]:
    sizes = (90, 1 << 20)
    trunks = [BareTrunk(folder / str(each), [source], Random(each), finite=True) for each in sizes]
    for trunk, size in zip(trunks, sizes, strict=True):
        trunk.run(queries, (size,), (1, 2))
    return trunks


# --- the cases of the laws ----------------------------------------------------------------------------------------


def test_case_17(tmp_path: Folder) -> None:
    """LAWS case 17: an average is announced in the new unit, a sum of degrees cannot be, and a count has none."""
    lines = [item(1, t=68), item(2, t=77), alter("t", TO_CELSIUS), item(3, t=30)]
    functions = [f"<o>{{{each}($w/t)}}</o>" for each in ("avg", "sum", "count", "min", "max")]
    found = answers(tmp_path, lines, *functions)
    assert found == [f"{CELSIUS}<o>25</o>", "<o>231</o>", "<o>3</o>", f"{CELSIUS}<o>20</o>", f"{CELSIUS}<o>30</o>"]


def test_case_25(tmp_path: Folder) -> None:
    """LAWS case 25: a drop inside an open window purges what the window knows of the path, whatever comes out."""
    lines = [item(1, t=70, x=5), drop("t"), item(7, x=7), item(12, x=1)]
    results = ("<o>{avg($w/t)}</o>", "<o>{sum($w/t)}</o>", "<o>{count($w/t)}</o>", "<o>{avg($w/t), sum($w/x)}</o>")
    found = answers(tmp_path, lines, *results)
    gone = f'{ACCENT}<s:drop path="."/></s:accent>'
    assert found == [f"{gone}<o/><o/>", "<o>0</o><o>0</o>", "<o>0</o><o>0</o>", "<o>12</o><o>1</o>"]


def test_dropped_and_added(tmp_path: Folder) -> None:
    """A path that is added again is a new one: an open window holds what came since."""
    lines = [item(1, t=70), drop("t"), item(2), add("t"), item(3, t=5), item(12)]
    (found,) = answers(tmp_path, lines, "<o>{avg($w/t)}</o>")
    assert found.endswith("<o>5</o><o/>")


def test_figure_1(tmp_path: Folder) -> None:
    """Accents, figure 1: two sensors go over to Celsius one after the other, and no average mixes their units.

    The accent comes out when both have changed: until then averages are in Fahrenheit.
    """
    lines = [item(1, s=1, t=68), item(2, s=2, t=68), alter("t", TO_CELSIUS, "s = 1"), item(3, s=1, t=20)]
    lines += [item(11, s=1, t=30), item(12, s=2, t=86), alter("t", TO_CELSIUS, "s = 2"), item(13, s=2, t=30)]
    lines += [item(21, s=1, t=10), item(22, s=2, t=20)]
    (found,) = answers(tmp_path, lines, "<avg>{avg($w/t)}</avg>", domains=SENSORS)
    assert found == f"<avg>68</avg>{CELSIUS}<avg>30</avg><avg>15</avg>"
    wrong = [line for line in lines if "s:accent" not in line]
    (mixed,) = answers(tmp_path / "wrong", wrong, "<avg>{avg($w/t)}</avg>", domains=SENSORS)
    assert mixed == "<avg>52</avg><avg>48.666666666666664</avg><avg>15</avg>"


# --- where accents stand ------------------------------------------------------------------------------------------


def test_windows_on_both_sides(tmp_path: Folder) -> None:
    """What is complete at an accent stands before it, in the old unit, and what closes later behind it."""
    lines = [item(1, t=50), item(11, t=70), alter("t", ". * 2"), item(12, t=160), item(21, t=8), alter("t", ". div 2")]
    (found,) = answers(tmp_path, lines, "<o>{max($w/t)}</o>")
    twice, half = (f'{ACCENT}<s:alter path="." by="{by}"/></s:accent>' for by in (". * 2", ". * 1 div 2"))
    assert found == f"<o>50</o>{twice}<o>160</o>{half}<o>4</o>"


def test_punctuations_let_out(tmp_path: Folder) -> None:
    """An accent on a part of the items waits until a punctuation says that no others come."""
    lines = [item(1, s=1, t=10), alter("t", ". * 2", "s = 1"), item(11, s=2, t=3), closing("s = 2")]
    lines += [item(12, s=1, t=10), item(22, s=1, t=8)]
    (found,) = answers(tmp_path, lines, "<o>{max($w/t)}</o>", domains=SENSORS)
    assert found == f'<o>10</o>{ACCENT}<s:alter path="." by=". * 2"/></s:accent><o>10</o><o>8</o>'


def test_reference_in_other_units(tmp_path: Folder) -> None:
    """Windows are in the units of query start, also where the path that places items changes its own (LAWS 4.2 b)."""
    lines = [item(1, s=1, t=1), alter("n", ". * 60", "s = 1"), item(300, s=1, t=2), item(9, s=2, t=3)]
    lines += [item(720, s=1, t=4), item(13, s=2, t=5)]
    (found,) = answers(tmp_path, lines, "<o>{sum($w/t)}</o>")
    assert found == "<o>6</o><o>9</o>"


def test_punctuation_in_other_units(tmp_path: Folder) -> None:
    """A punctuation speaks of raw values: it closes the windows that all items described have left behind."""
    source = lay(
        tmp_path / "in", [[item(1, t=1), alter("n", ". * 2"), item(30, t=5), closing("n &lt; 40"), alter("t", ". * 3")]]
    )
    trunk = BareTrunk(tmp_path / "state", [source], Random(0), finite=False)
    trunk.run({"q": f"{OVER} |n diff 10| return <o>{{max($w/t)}}</o>"}, (1 << 20,), (1,))
    assert trunk.answer("q") == f'<o>1</o><o>5</o>{ACCENT}<s:alter path="." by=". * 3"/></s:accent>'


def test_punctuation_beside_other_units(tmp_path: Folder) -> None:
    """A punctuation on a path that has kept its unit closes windows as ever, whatever has happened to others."""
    lines = [item(1, t=1), alter("t", ". * 2"), item(12, t=10), closing("n &lt; 20"), alter("t", ". * 3")]
    (found,) = answers(tmp_path, lines, "<o>{max($w/t)}</o>")
    twice, thrice = (f'{ACCENT}<s:alter path="." by="{by}"/></s:accent>' for by in (". * 2", ". * 3"))
    assert found == f"{twice}<o>2</o><o>10</o>{thrice}"


def test_fractions(tmp_path: Folder) -> None:
    """Sums are exact where a value is a fraction that no decimal is: three thirds are one."""
    lines = [alter("t", ". * 3 + 3"), *(item(n, t=4) for n in (1, 2, 3)), item(11, t=5), item(12, t=4)]
    found = answers(tmp_path, lines, "<o>{sum($w/t)}</o>", '<o c="{count($w)}">{sum($w/t) * 3}</o>')
    assert found == ["<o>1</o><o>1</o>", '<o c="3">3</o><o c="2">3</o>']


# --- those who cannot go on ---------------------------------------------------------------------------------------


def test_abort(tmp_path: Folder) -> None:
    """LAWS 4.6: the drop of a path that a query needs ends that one alone; what was delivered stays."""
    lines = [item(1, t=5, x=1), item(11, t=6, x=1), drop("t"), item(21, x=2)]
    queries = {
        "needs": f"{OVER} |n diff 10| where max($w/t) > 1 return <o>{{max($w/t)}}</o>",
        "selects": f"{OVER}[t > 1] |n diff 10| return <o>{{max($w/x)}}</o>",
        "other": f"{OVER} |n diff 10| return <o>{{max($w/x)}}</o>",
    }
    trunk = sliced(tmp_path / "state", [lay(tmp_path / "in", [lines])], Random(1), queries)
    assert {name: trunk.answer(name) for name in queries} == {
        "needs": "<o>5</o>",
        "selects": "<o>1</o>",
        "other": "<o>1</o><o>1</o><o>2</o>",
    }
    assert trunk.plan is not None
    numbers = {each.name: each.id for each in trunk.plan.subscriptions}
    ended = list(trunk.log.manifests.since(0))[-1].aborted
    assert set(ended) == {numbers["needs"], numbers["selects"]}
    assert ended[numbers["needs"]] == "'where' cannot do without 't': the accent on 't' where true() drops it"


def test_unknown(tmp_path: Folder) -> None:
    """LAWS 4.5: who reads what an unreadable accent speaks of is over, others go on."""
    lines = [item(1, t=5, x=1), alter("t", ". * ."), item(11, t=6, x=2)]
    queries = {name: f"{OVER} |n diff 10| return <o>{{max($w/{name})}}</o>" for name in "tx"}
    trunk = sliced(tmp_path / "state", [lay(tmp_path / "in", [lines])], Random(1), queries)
    assert (trunk.answer("t"), trunk.answer("x")) == ("", "<o>1</o><o>2</o>")
    assert len(list(trunk.log.manifests.since(0))[-1].aborted) == 1


# --- the law ------------------------------------------------------------------------------------------------------


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[Recount]:
    """All that is counted once more."""
    found: list[Recount] = []
    recount = PaneBranches._recount

    def noted(self: PaneBranches, numbers: Sequence[int], reach: Range, again: Recount) -> RangeResult:
        found.append(again)
        return recount(self, numbers, reach, again)

    monkeypatch.setattr(PaneBranches, "_recount", noted)
    return found


@pytest.mark.mass
def test_no_split_shows(tmp_path: Folder, monkeypatch: pytest.MonkeyPatch, again: list[Recount]) -> None:
    """Random queries over random accented streams, in any split; counts that turn out void are counted again."""
    accents = 0
    for seed in range(6):
        random = Random(f"panes {seed}")
        monkeypatch.setattr(ranges, "SMALLEST_RANGE", random.choice((200, 700, 1 << 20)))
        slack = random.choice((0, 5))
        lines = elements(random, random.choice((20, 50)), gone=random.choice(("", "t", "tx")), slack=slack)
        for _ in range(random.choice((0, 2))):
            said = random.choice(("s = 3", "x &gt; 9000", "s = 2 and x &lt; -999"))
            lines.insert(random.randrange(len(lines)), closing(said))
        source = lay(tmp_path / f"in-{seed}", [lines], slack=Fraction(slack), domains=random.choice(((), SENSORS)))
        queries = {each: f"{OVER} {each} return {RESULTS[5]}" for each in WINDOWS[::3]}
        queries |= {str(number): query(random) for number in range(2)}
        trunk = sliced(tmp_path / f"state-{seed}", [source], random, queries)
        for name, text in queries.items():
            due = Law(text, source).read()
            assert trunk.answer(name) == due, (seed, text)
            accents += due.count(ACCENT)
    assert accents > 5
    assert any(each.stretch.first for each in again)


@pytest.mark.mass
def test_partitions(tmp_path: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """LAWS 1.4: a stream of several partitions evolves as their union; also a punctuation of one may let out others."""
    accents = 0
    for seed in some((1, 0, 2)):
        random = Random(f"partitions {seed}")
        monkeypatch.setattr(ranges, "SMALLEST_RANGE", random.choice((200, 1 << 20)))
        parts = [elements(random, random.choice((10, 20)), gone=random.choice(("", "t"))) for _ in range(2)]
        parts[1:] = [[*parts[0]]] if seed else parts[1:]  # else they hardly have anything in common
        for part in parts:
            part.insert(random.randrange(len(part)), closing(random.choice(("s = 3", "s = 1 and x &lt; -999"))))
            part += [closing(random.choice(("true()", "s = 1", "s = 2")))] if random.random() < 0.5 else []
        source = lay(tmp_path / f"in-{seed}", parts, domains=SENSORS)
        queries = {each: f"{OVER} {each} return {RESULTS[5]}" for each in WINDOWS[1:4]} | {"any": query(random)}
        trunk = sliced(tmp_path / f"state-{seed}", [source], random, queries)
        for name, text in queries.items():
            due = Law(text, source).read()
            assert trunk.answer(name) == due, (seed, text)
            accents += due.count(ACCENT)
    assert accents > enough(3)


@pytest.mark.mass
def test_late(tmp_path: Folder) -> None:
    """LAWS 3.6: who comes late is shown what is in force for a part, and knows the values in the units of its start."""
    accents = 0
    for seed in some(range(3)):
        random = Random(f"late {seed}")
        lines = elements(random, 45, gone=random.choice(("", "t", "tx")))
        source = lay(tmp_path / f"in-{seed}", [[]], domains=random.choice(((), SENSORS)))
        trunk = BareTrunk(tmp_path / f"state-{seed}", [source], random, finite=False)
        queries: dict[str, str] = {}
        same, at = query(random), 0
        for end in (15, 30, 45):
            queries |= {f"{at} same": same, f"{at} own": query(random)}
            with (on_disk(source.path) / "0").open("a") as file:
                file.writelines(f"{line}\n" for line in lines[at:end])
            trunk.run(queries, (300, 2_000), (1, 3))
            at = end
        for name, text in queries.items():
            due = Law(text, source).read(int(name.split()[0]), ends=False)
            assert trunk.answer(name) == due, (seed, name, text)
            accents += due.count(ACCENT)
    assert accents > enough(5)


# --- columns ------------------------------------------------------------------------------------------------------


@pytest.mark.mass
@pytest.mark.parametrize("most", [64, 0])
def test_columns_in_other_units(tmp_path: Folder, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Items of the usual look stay in columns when units change, be the changes few or too many to be held there."""
    shown: list[int] = []
    show = PaneCounter.show

    def noted(self: PaneCounter, entry: int, element: Item | Punctuation | Accent | DeadLetter) -> None:
        shown.append(entry)
        show(self, entry, element)

    monkeypatch.setattr(PaneCounter, "show", noted)
    monkeypatch.setattr(pane_units, "MOST_BOXES", most)
    random = Random(7)
    lines = [item(n, s=random.randint(1, 2), t=random.randint(-90, 900) / 10, x=n % 7) for n in range(40)]
    lines += [alter("n", ". * 60"), alter("t", TO_CELSIUS, "s = 2"), alter("x", ". * 3 + 1", "s = 1")]
    units = ({"t": "68.5"}, {"x": 13}, {"t": "-3.25", "x": 7})
    lines += [
        item(60 * n, **{"s": random.randint(1, 2), "t": 20, "x": 4} | random.choice(units)) for n in range(40, 90)
    ]
    source = lay(tmp_path / "in", [lines])
    queries = {
        "timed": f"{OVER}[t > 10] |n diff 30 step 15| return {RESULTS[5]}",
        "counted": f"{OVER}[x < 5] |count 20| return <o>{{avg($w/t[. > 3]), max($w/n)}}</o>",
    }
    trunk = BareTrunk(tmp_path / "state", [source], Random(0), finite=True)
    trunk.run(queries, (1 << 20,), (1,))
    assert {name: trunk.answer(name) for name in queries} == {
        name: Law(text, source).read() for name, text in queries.items()
    }
    assert len(shown) <= 4 * trunk.jobs, "the accents and hardly anything else"


def test_decimals_under_maps() -> None:
    """Numbers are brought into another unit exactly, or not at all."""
    random = Random(3)
    known = 0
    for _ in range(300):
        numbers = (Fraction(random.randint(1, 500), random.choice((1, 2, 5, 9, 100))) for _ in range(2))
        by = Affine(next(numbers), random.choice((-1, 1)) * next(numbers))
        texts = [f"{random.randint(-9999, 9999) / 10 ** random.randint(0, 3)}" for _ in range(20)]
        for text, found in zip(texts, decimals(np.array(list(map(float, texts))), by).tolist(), strict=True):
            if not math.isnan(found):
                assert Fraction(repr(found)) == by(Fraction(text))
                known += 1
    assert known > 1_000


# --- parts of windows ---------------------------------------------------------------------------------------------


def test_partials_of_fractions() -> None:
    """What is known of values, some of which are fractions, does not depend on the order, nor on being written down."""
    third, long = Fraction(1, 3), "0.333333333333333333"
    values = (third, Fraction(5, 4), long, "0.3333333333333333", Fraction(-2, 7))
    found = set()
    for order in permutations(range(len(values))):
        known = merged(Partial.of(values[each], each) for each in order)
        (*_, pane), *_ = ManyPanes.read(ManyPanes.of([(0, 0, 3, Pane(0, None, (known,)))]).tables(), 10).odd
        assert pane.partials == (known,)
        found.add(known)
    (known,) = found
    total = sum(Fraction(each) for each in values)
    for name, exact in {"sum": total, "avg": total / 5, "min": Fraction(-2, 7), "max": Fraction(5, 4)}.items():
        (value,) = AGGREGATES[name].value(known)
        assert isinstance(value, Rounded)
        assert value.exact == exact
    assert AGGREGATES["count"].value(known) == [5]


def test_extremes_of_equal_doubles() -> None:
    """Of values that are the same double the exact one is told, as the law does."""
    texts = ("0.33333333333333331", "0.333333333333333314829616256247", "0.3333333333333333")
    known = merged(Partial.of(text, number) for number, text in enumerate(texts))
    given: list[Atomic] = [Untyped(each) for each in texts]
    for name in ("min", "max"):
        (expected,), (found,) = AGGREGATES[name].law([*given]), AGGREGATES[name].value(known)
        assert isinstance(expected, Rounded)
        assert isinstance(found, Rounded)
        assert (found, found.exact) == (expected, expected.exact)
