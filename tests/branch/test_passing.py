"""Items of several timed partitions in columns: which way an item takes never shows (LAWS 1.2)."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.items import PassingColumns
from anabranch.runtime.units import Units
from anabranch.stream.photons import photons
from branch.feeding import Flow, Question, Stream
from branch.looks import BAD, HEARTBEAT, STAMPED, USUAL, stream
from mass import enough, some

QUERIES = [
    'for $p in stream("s")/r/p return <o>{ $p/t/text() }</o>',
    'for $p in stream("s")/r/p[en > 1] where $p/m/phc > 5 return ($p/t, $p/m)',
    'stream("s")/r/p[m/n = "a"]',
    'for $p in stream("s")/r/p where $p/en < 2 and ($p/m/n != "a" or $p/m/phc >= 10) return <o a="{ $p/t }">!</o>',
    'for $p in stream("s")/r/p return if ($p/en > 1) then $p/t else ()',  # not for columns
    'for $p in stream("s")/r/q return <q>{ $p/t }</q>',
    'for $p in stream("s")/r/p where $p/t != "3" return $p/none',
    'for $p in stream("s")/r/p return $p/en + 1',  # values: a space between them
]


def check_against_law(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """One case, in columns and item by item; how many pieces came of columns."""
    random = Random(f"passing {seed}")
    given = stream(random, "s", timed=random.random() < 0.9, partitions=random.randint(1, 4), items=120)
    asked = Question(f"<o>{{ {random.choice(QUERIES)} }}</o>", [given])
    epochs = 1 + seed % 4
    law = asked.law()
    taken = asked.run(Random(seed), epochs)
    label = f"{seed}: {asked.text}"
    assert asked.answer(taken) == law.text, label
    assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), label
    with monkeypatch.context() as patch:
        patch.setattr(PassingColumns, "_take", lambda _: False)
        slow = asked.run(Random(seed), epochs)
    assert taken.states == slow.states, label
    assert [each.to_json() for each in taken.dead] == [each.to_json() for each in slow.dead], label
    return taken.at_once


@pytest.mark.parametrize("first", range(0, 26, 13))
def test_any_query_gives_the_answer_of_the_law(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers, dead letters and states, with the partitions cut into feeds and epochs at random."""
    at_once = [check_against_law(seed, monkeypatch) for seed in some(range(first, first + 13))]
    assert sum(each > 0 for each in at_once) > enough(3)


def usual(*times: object) -> list[str]:
    return [USUAL.format(t=time, en="1.5", phc="1", n="a") for time in times]


def passing(**about: object) -> Flow:
    """A branch that gives the times of its items in the order in which it takes them."""
    query = 'for $p in stream("s")/r/p return <o>{ $p/t/text() }</o>'
    return Flow(Question(query, [Stream("s", **about)]))  # type: ignore[arg-type]


def times(*given: object) -> str:
    return "".join(f"<o>{each}</o>" for each in given)


def test_photons_are_never_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three partitions over two epochs: no photon is shown to the law."""
    random = Random(1)
    dealt = [random.randrange(3) for _ in range(300)]
    text = f"<photons>{''.join(photons(300, 1))}</photons>"
    query = 'for $p in stream("s")/photons/photon where $p/en >= 1.2 return <o>{ $p/coord, $p/det_time }</o>'
    asked = Question(query, [Stream("s", text, dealt, 3, time="det_time")])
    law = asked.law()
    monkeypatch.delattr(Units, "item")
    taken = asked.run(random, epochs=2)
    assert asked.answer(taken) == law.text
    assert taken.at_once == law.text.count("<o>") > 50


def test_ties_falling_times_and_bad_items() -> None:
    """Of equal times the lower partition goes first, and a time that falls hides behind its predecessor."""
    bad = BAD.format(t=9, en="1", phc="1", n="a")
    flow = passing(partitions=3, time="t")
    assert flow.bring("s", *usual(4, 4), bad, *usual(1, 6)) == []
    assert flow.bring("s", *usual(2, 6, 3), partition=2) == []
    assert "".join(flow.bring("s", *usual(4, 5), partition=1)) == times(2, 4, 4, 1, 4, 5)
    flow.epoch()
    assert "".join(flow.end()) == times(6, 6, 3)
    assert flow.taken.at_once == 9


def test_a_heartbeat_lets_the_others_go() -> None:
    """A heartbeat has its place in the merge, and columns do not stop at it."""
    flow = passing(partitions=2, time="t")
    assert flow.bring("s", *usual(1, 5, 7)) == []
    assert "".join(flow.bring("s", *usual(2), HEARTBEAT.format(t=6), partition=1)) == times(1, 2, 5)
    flow.epoch()
    assert "".join(flow.bring("s", HEARTBEAT.format(t=7), HEARTBEAT.format(t="7.5"), partition=1)) == times(7)
    assert flow.taken.at_once == 4


def test_items_without_a_time_come_when_they_arrived() -> None:
    """What is known of a silent partition lets the others' items go, as far as it reaches and no further."""
    flow = passing(partitions=2)
    assert flow.bring("s", *usual(1, 2), arrived=Fraction(1, 3)) == []
    assert flow.bring("s", *usual(3), arrived=Fraction(2, 3)) == []
    flow.branch.passed(Fraction(1, 2))
    assert "".join(flow.taken.pieces) == times(1, 2)
    flow.epoch()
    assert "".join(flow.bring("s", *usual(4, 5), partition=1, arrived=Fraction(3, 4))) == times(3)
    flow.branch.passed(Fraction(1))
    assert "".join(flow.taken.pieces) == times(1, 2, 3, 4, 5)
    assert flow.taken.at_once == 5


def test_what_is_no_element_holds_nothing_back() -> None:
    """A bad item has no place in the order, not even that of its arrival: what is behind it comes when its time has."""
    flow = passing(partitions=2)
    assert flow.bring("s", STAMPED.format(t=5, en="50", phc="1", n="a"), arrived=Fraction(9)) == []
    later = [BAD.format(t=1, en="1", phc="1", n="a"), STAMPED.format(t=2, en="20", phc="1", n="a")]
    assert "".join(flow.bring("s", *later, partition=1, arrived=Fraction(10))) == times(20)
    flow.branch.passed(Fraction(10))
    assert "".join(flow.taken.pieces) == times(20, 50)
