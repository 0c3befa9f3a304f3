"""Windows in columns: which way an item takes never shows, whatever comes between those of the usual look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.held_items import HeldItem, Shelf
from anabranch.branch.intake.entries import RawEntry
from anabranch.branch.windows.columns import HeldWindowColumns
from anabranch.columnar.items.growing_look import GrowingLook, Use
from anabranch.runtime.units import Units
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Item
from anabranch.stream.path import Path
from anabranch.stream.photons import photons
from anabranch.stream.tree import Element
from branch.feeding import Flow, Question, Stream
from branch.looks import HEARTBEAT, OTHER_ORDER, PUNCTUATION, TWO_REFERENCES, USUAL, stream
from mass import Mass, enough, sized

WINDOWS = [
    "t diff 10", "t diff 3 step 5", "t diff 7.5 step 0.25", "/r/p/t diff 2 step 3", "t diff 20 step 10", "count 3",
    "count 2 step 5", "count 4 step 1",
]  # fmt: skip
PATHS = ["r/p", "r/p", "r/p[en > 1]", "r/p[en > 2.1][m/n = 'a' or m/phc <= 5]", "r/p[m/phc > 10]", "r/q", "r/q[en]"]
RESULTS = [
    "<w>{ $w/t }</w>",
    "<w>{ count($w), $w/m/n/text() }</w>",
    "($w/en + 1)",
    "for $p in $w where $p/en > 1 return $p",
    "<w>{ median($w/en), stddev($w/m/phc) }</w>",
    "<w m='{ median($w/t) }'>{ avg($w/en) }</w>",
    "<w n='{ count($w) }'>{ sum($w/en) }</w>",
    "<w>{ for $p in $w where $p/en > 1 return <x>{ $p/t, $p/m/n }</x> }</w>",
    "<w>{ $w/m }{ max($w/en) }<i>{ min($w/m/phc) }</i></w>",
    "<w>{ $w }</w>",
    "$w/t",
    "<w>{ $w/m/n = 'a' }</w>",
    "<w>{ if (avg($w/en) > 1.1) then $w/t else <few/> }</w>",
    "if (count($w/m) > 3) then <w>{ $w/en }</w> else ()",
    "<w>{ sum(for $p in $w where $p/m/n = 'b' return $p/en * 2) }</w>",
    "<w>{ $w/none }</w>",
    "<w>{ $w/@a }</w>",
    "<w>{ some $p in $w satisfies $p/en > 2 }</w>",
    "<w a='{ avg($w/t) }'>{ median($w/m/phc) }</w>",
]
TAILS = ["", "let $a := avg($w/en) where $a > 1 ", "let $m := $w/m where count($w) >= 2 ", "where $w/en > 2.2 ",
    "for $p in $w where $p/en < 2 "]  # fmt: skip


class Alone:
    """Counts the items that the operator took one by one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.items = 0
        put = Shelf.put

        def counted(
            shelf: Shelf, entry: RawEntry, item: Item, units: Mapping[Path, Affine], time: Fraction
        ) -> HeldItem:
            self.items += 1
            return put(shelf, entry, item, units, time)

        monkeypatch.setattr(Shelf, "put", counted)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Alone:
    return Alone(monkeypatch)


def question(random: Random) -> Question:
    path = random.choice(PATHS)
    window = random.choice(WINDOWS).replace("/r/p", f"/{path[:3]}")
    source = f'stream("s")/{path}|{window}|'
    if random.random() < 0.15:
        source = f'stream("s")/r/p[en > 1]/m[phc > 3]|{"phc diff 10" if "diff" in window else window}|'
    query = f"for $w in {source} {random.choice(TAILS)}return {random.choice(RESULTS)}"
    partitions = random.choice((1, 1, 2, 3))
    given = stream(random, "s", timed=partitions > 1 or random.random() < 0.5, partitions=partitions)
    return Question(query, [given])


def check_against_law(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """One case, in columns and item by item; how many items were taken."""
    asked = question(Random(f"window {seed}"))
    epochs = 1 + seed % 4
    law = asked.law()
    taken = asked.run(Random(seed), epochs)
    label = f"{seed}: {asked.text}"
    assert asked.answer(taken) == law.text, label
    assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), label
    assert list(map(str, taken.places)) == list(map(str, law.late)), label
    with monkeypatch.context() as patch:
        patch.setattr(HeldWindowColumns, "_take", lambda _: False)
        slow = asked.run(Random(seed), epochs)
    assert taken.states == slow.states, label
    letters = [sorted(each.to_json() for each in found.dead) for found in (taken, slow)]
    assert letters[0] == letters[1], label
    found: int = taken.states[-1].meta["taken"]
    return found


def test_random_windows_give_the_answer_of_the_law(mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, very often."""
    for number in mass.cases(4_000):
        check_against_law(number, monkeypatch)


@pytest.mark.parametrize("first", range(0, 26, 13))
def test_any_window_gives_the_answer_of_the_law(first: int, alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers, dead letters, late items and states, with the input cut into feeds and epochs at random."""
    items = sum(check_against_law(seed, monkeypatch) for seed in range(first, first + sized(13, fast=4)))
    assert items > enough(200)
    assert alone.items < items + items / 3  # each item was taken by the operator once, where it was alone


def usual(*times: object, en: str = "1.5", n: str = "a") -> list[str]:
    return [USUAL.format(t=time, en=en, phc="1", n=n) for time in times]


def test_photons_are_never_looked_at_one_by_one(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over three epochs no photon is shown to the law before its window is answered."""
    text = f"<photons>{''.join(photons(400, 1))}</photons>"
    query = 'for $w in stream("s")/photons/photon[en >= 1.2]|det_time diff 20 step 10| return <w>{ $w/phc }</w>'
    asked = Question(query, [Stream("s", text, time="det_time")])
    law = asked.law()
    monkeypatch.delattr(Units, "candidates")
    taken = asked.run(Random(1), epochs=3)
    assert asked.answer(taken) == law.text
    assert law.text.count("<w>") == 10
    assert alone.items == 0


def test_unselected_items_and_punctuations_close_windows_at_once(alone: Alone) -> None:
    """LAWS case 13 in columns: what closes a window need be no item, and no item has to be taken alone for it."""
    query = 'for $w in stream("s")/r/p[en > 2]|t diff 10| return <w>{ $w/t/text() }</w>'
    flow = Flow(Question(query, [Stream("s", time="t")]))
    assert flow.bring("s", *usual(1, 2, en="2.5"), *usual(3, 9)) == []
    flow.epoch()
    assert flow.bring("s", *usual(10)) == ["<w>12</w>"]
    assert flow.bring("s", *usual(11, 14, en="3"), PUNCTUATION.format(t=20), *usual(21)) == ["<w>1114</w>"]
    flow.epoch()
    assert flow.bring("s", *usual(25, en="3"), HEARTBEAT.format(t=30)) == ["<w>25</w>"]
    assert flow.branch.held == 0
    assert alone.items == 0


def test_the_law_sees_what_is_not_for_columns_in_its_place(alone: Alone) -> None:
    """An item with two references is set aside between its neighbours, and columns go on behind it."""
    query = 'for $w in stream("s")/r/p|t diff 100| return <w>{ count($w) }</w>'
    odd = TWO_REFERENCES.format(t=70, en="1", phc="1", n="a")
    other = OTHER_ORDER.format(t=130, en="1", phc="1", n="a")
    text = f"<r>{''.join((*usual(*range(70)), odd, *usual(*range(70, 130)), other, *usual(*range(131, 201))))}</r>"
    asked = Question(query, [Stream("s", text)])
    law, taken = asked.law(), asked.run(Random(2), epochs=1)
    assert asked.answer(taken) == law.text == "<w>100</w><w>100</w><w>1</w>"
    assert [each.to_json() for each in taken.dead] == [each.to_json() for each in law.dead]
    assert len(taken.dead) == 1
    assert alone.items == 0


def test_a_part_of_an_item_may_be_there_twice(alone: Alone) -> None:
    """Where an item has two nodes for the window, the operator takes it, and what follows is for columns again."""
    query = 'for $w in stream("s")/r/p/m|count 2| return <w>{ $w/n/text() }</w>'
    double = "<p><m><n>x</n></m><m><n>y</n></m></p>"
    flow = Flow(Question(query, [Stream("s")]))
    assert flow.bring("s", *usual(1, 2, 3), double, *usual(4)) == ["<w>aa</w>", "<w>ax</w>", "<w>ya</w>"]
    assert alone.items == 1


@pytest.mark.parametrize(
    ("query", "pieces"),
    [
        ("for $w in stream('s')/r/p|t diff 10| return <w>{ $w/t/text() }</w>", "<w>124</w>"),
        ("for $p in stream('s')/r/p where $p/t >= 0 return $p/t", "<t>1</t><t>2</t><t>4</t>"),
    ],
)
def test_quiet_partitions_whose_items_differ_are_taken(
    query: str, pieces: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few of their entries are items, so learning never helps; the look of one is not that of the other's item."""
    learned = 0
    learn = GrowingLook.learn

    def counted(growing: GrowingLook, items: Sequence[tuple[bytes, Element]], share: float, use: Use) -> bool:
        nonlocal learned
        learned += 1
        assert learned < 50, "looks are learned from the same entries again and again"
        return learn(growing, items, share, use)

    monkeypatch.setattr(GrowingLook, "learn", counted)
    flow = Flow(Question(query, [Stream("s", partitions=3, time="t")]))
    odd = "<p><s>2</s><x>21</x><c><v>21</v></c><c><v>0</v></c><t>4</t></p>"
    for number in (2, 1):
        flow.bring("s", f"<p><s>3</s><x>12</x><t>{number}</t></p>", PUNCTUATION.format(t=9), partition=number)
    flow.bring("s", odd, *(PUNCTUATION.format(t=time) for time in (5, 6, 7, 8)))
    flow.end()
    assert "".join(flow.taken.pieces) == pieces


def test_a_new_look_is_learned(alone: Alone) -> None:
    """When items begin to look otherwise, columns follow; what was held in the old look is still there."""
    query = 'for $w in stream("s")/r/p|t diff 10| return <w>{ count($w) }</w>'
    flow = Flow(Question(query, [Stream("s", slack=Fraction(1))]))
    flow.bring("s", *usual(*range(5)))
    others = [OTHER_ORDER.format(t=time, en="1", phc="1", n="a") for time in range(5, 25)]
    assert "".join(flow.bring("s", *others)) == "<w>10</w><w>10</w>"
    assert alone.items == 0
