"""Step joins in columns: which way an item takes never shows, whatever comes between those of the usual look."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.intake.entries import FeedOrigin, pack
from anabranch.branch.joins.step_columns import StepJoinColumns
from anabranch.runtime.units import Units
from anabranch.stream.photons import photons
from anabranch.stream.reading.lines import Cut
from branch.feeding import Flow, Question, Stream
from branch.looks import PUNCTUATION, TWO_REFERENCES, USUAL, stream
from mass import enough, some
from papers import SHARING

CONDITIONS = [
    "", "where $x/en >= $y/en + 0.5", "where $x/en >= $y/en", "where $x/m/phc > $y/m/phc * 2 - $x/en",
    "where $x/m/n = $y/m/n", "where $x/m/n != $y/m/n", "where $x/en < 2 and ($y/m/n != 'a' or $x/m/phc <= $y/m/phc)",
    "where not($x/en - $y/en > 0.1) and $x/t <= $y/t", "where $x/en", "where -$x/en < $y/en or $y/en > 1.5",
]  # fmt: skip
RESULTS = [
    "<r>{ $x/en } { $x/t }{ $y/en }{ $y/m/n/text() }</r>", "($x, $y/m)", "<r a='{ $x/t }:{ $y/t }'>!</r>", "$y/none",
]  # fmt: skip
WINDOWS = ["t diff 10", "t diff 3 step 5", "t diff 7.5 step 0.25", "/r/p/t diff 2 step 3", "t diff 20 step 10"]
PREDICATES = ["", "", "[en > 1]", "[m/n = 'a' or en <= 1.5]"]

JOIN = 'for $x in stream("a")/r/p|t diff 1| for $y in stream("b")/r/p|t diff 1| return <r>{ $x/t }{ $y/t }</r>'
ITEMS = [USUAL.format(t=number, en="1", phc="1", n="a") for number in range(10)]


def question(random: Random) -> Question:
    sides = [f'stream("{name}")/r/p{random.choice(PREDICATES)}|{random.choice(WINDOWS)}|' for name in "ab"]
    query = f"for $x in {sides[0]} for $y in {sides[1]} {random.choice(CONDITIONS)} return {random.choice(RESULTS)}"
    timed = random.random() < 0.8
    return Question(f"<o>{{ {query} }}</o>", [stream(random, name, timed=timed) for name in "ab"])


def check_against_law(seed: int) -> int:
    """One case; how many pieces came of columns."""
    random = Random(f"join {seed}")
    asked = question(random)
    law = asked.law()
    taken = asked.run(random, epochs=random.choice((1, 2, 4)))
    label = f"{seed}: {asked.text}"
    assert asked.answer(taken) == law.text, label
    assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), label
    assert sorted(map(str, taken.places)) == sorted(map(str, law.late)), label
    return taken.at_once


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_any_join_gives_the_answer_of_the_law(first: int) -> None:
    """Answers, dead letters and late items, with the inputs cut into feeds and epochs at random."""
    at_once = [check_against_law(seed) for seed in some(range(first, first + 10))]
    assert sum(each > 0 for each in at_once) > enough(2)


@pytest.mark.parametrize("name", some(["q5", "q6", "q7", "q8"]))
def test_photons_are_never_looked_at_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The joins of the sharing paper, over two epochs: no photon is shown to the law, and no pair."""
    streams = [
        Stream(each, f"<photons>{''.join(photons(60, seed))}</photons>", time="det_time")
        for seed, each in enumerate(("photon1", "photon2"))
    ]
    asked = Question(SHARING[name], streams)
    law = asked.law()
    monkeypatch.delattr(Units, "candidates")
    monkeypatch.delattr(Units, "tuple")
    taken = asked.run(Random(name), epochs=2)
    assert asked.answer(taken) == law.text
    assert taken.at_once == law.text.count("<result>") > 50


def test_behind_what_is_not_for_columns_they_go_on() -> None:
    """A punctuation and an item with two references are left to the operator; what follows is not."""
    usual = [USUAL.format(t=number / 10, en="1.5", phc="1", n="a") for number in range(150)]
    items = [
        *usual[:50],
        PUNCTUATION.format(t="5"),
        *usual[50:100],
        TWO_REFERENCES.format(t="10", en="2", phc="1", n="a"),
    ]
    text = f"<r>{''.join([*items, *usual[100:]])}</r>"
    asked = Question(JOIN, [Stream("a", text, time="t"), Stream("b", f"<r>{''.join(usual)}</r>", time="t")])
    taken = asked.run(Random(1), epochs=1)
    law = asked.law()
    assert asked.answer(taken) == law.text
    assert [each.to_json() for each in taken.dead] == [each.to_json() for each in law.dead]
    assert taken.at_once > 0.95 * law.text.count("<r>")


def test_nothing_overtakes_what_is_left_to_the_operator() -> None:
    """Though its stream has ended, a punctuation holds the other stream's items back until it was taken."""
    flow = Flow(Question(JOIN, [Stream("a", time="t"), Stream("b", time="t")]))
    punctuation = '<s:punctuation xmlns:s="urn:anabranch:stream" where="en &lt; 0" at="1"/>'
    flow.bring("a", ITEMS[1], punctuation, ITEMS[5])
    flow.branch.end("a", 0)
    flow.bring("b", ITEMS[2], ITEMS[3], ITEMS[4], ITEMS[6])
    # a's 1 enters when 5 comes, and b's window then holds 3
    assert "".join(flow.taken.pieces) == _pairs((1, 3))


def test_what_was_set_aside_stays_aside() -> None:
    """An entry with a reason is no item, whatever its bytes look like."""
    flow = Flow(Question(JOIN, [Stream("a", time="t"), Stream("b", time="t")]))
    raws = [ITEMS[number].encode() for number in (1, 2, 3, 6)]
    cuts = [Cut(number, number, raw, "no" if number == 1 else None, b"<r>") for number, raw in enumerate(raws)]
    flow.branch.feed(pack(FeedOrigin("a", 0, "file0"), cuts))
    flow.bring("b", *ITEMS[:7])
    flow.end()
    # a's 1 enters when 3 comes and b's window holds 1; had 2 come, it would have entered then, when that held 0
    assert "".join(flow.taken.pieces) == _pairs((1, 1), (3, 4), (6, 5), (6, 6))


@pytest.mark.parametrize("columns", [True, False])
def test_items_without_a_time_come_when_they_arrived(columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of an input that is silent lets the other's items go, as far as it reaches and no further."""
    if not columns:
        monkeypatch.setattr(StepJoinColumns, "_take", lambda _, *, ended: False)
    flow = Flow(Question(JOIN, [Stream("a"), Stream("b")]))
    items = ITEMS[:6]
    assert flow.bring("a", *items[:3], arrived=Fraction(1, 3)) == []
    flow.epoch()
    assert flow.bring("b", *items[:2], arrived=Fraction(2, 3)) == []  # a's have gone, and nothing of b's has
    flow.branch.passed(Fraction(1, 2))
    assert flow.taken.pieces == []
    flow.branch.passed(Fraction(2, 3))
    assert "".join(flow.taken.pieces) == _pairs((1, 0))
    flow.epoch()
    assert flow.bring("a", *items[3:], arrived=Fraction(1)) == []
    assert "".join(flow.bring("b", *items[2:], arrived=Fraction(1))) == _pairs((2, 0), (3, 0), (4, 0))
    assert "".join(flow.end()) == _pairs((4, 1), (4, 2), (4, 3), (4, 4), (5, 4), (5, 5))
    assert (flow.taken.at_once > 0) == columns


@pytest.mark.parametrize("new_epoch", [True, False])
def test_what_is_late_is_judged_by_all_that_came_before(new_epoch: bool) -> None:
    """An item far behind the largest value of an earlier batch is late, and meets nothing."""
    flow = Flow(Question(JOIN, [Stream("a"), Stream("b")]))
    items = ITEMS
    flow.bring("a", *items[:5], arrived=Fraction(1))
    flow.bring("b", *items[:5], arrived=Fraction(1))
    flow.branch.passed(Fraction(1))
    if new_epoch:
        flow.epoch()
    flow.bring("a", items[3], items[4], items[9], arrived=Fraction(2))
    flow.bring("b", items[8], items[9], arrived=Fraction(2))
    flow.branch.passed(Fraction(2))
    flow.end()
    assert [each.offset for each in flow.taken.places] == [3 + sum(map(len, items[:5]))]
    # b's 4 enters when 8 comes; by then a's 9 has taken a's window behind both 4s
    assert "".join(flow.taken.pieces) == _pairs((3, 0), (3, 1), (3, 2), (3, 3), (4, 3), (4, 3), (9, 8), (9, 9))


def _pairs(*pairs: tuple[int, int]) -> str:
    return "".join(f"<r><t>{x}</t><t>{y}</t></r>" for x, y in pairs)
