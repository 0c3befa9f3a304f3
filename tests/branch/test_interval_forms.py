"""Interval joins in columns: of one stream with itself, of two and three, with keys or without, also over JSON."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from anabranch.columnar.joins.interval import BLOCK, IntervalLane, Near, interval_tuples
from anabranch.columnar.joins.kernels import Guards
from branch.feeding import Question, Stream
from branch.looks import stream
from branch.test_join_forms import NAMES, PREDICATES, RESULTS, json_stream
from mass import Mass, some

SHAPES = ["ab", "ba", "ab", "aa", "aa", "abc", "aab", "aba"]
"""The streams of the `for`s, in their order."""
INTERVALS = [
    "${0}/t - ${1}/t <= {low} and ${1}/t - ${0}/t <= {high}",
    "${0}/t >= ${1}/t - {high} and ${0}/t <= ${1}/t + {low}",
    "${1}/t <= ${0}/t + {high} and ${1}/t > ${0}/t - {low}",
]
CONDITIONS = [
    "", "", " and ${0}/m/n = ${1}/m/n", " and ${0}/m/n = ${1}/m/n and ${0}/en < ${1}/en",
    " and ${0}/en > ${1}/en + 0.5", " and ${0}/m/phc + 0 = ${1}/m/phc + 0",
    " and ${0}/en = ${1}/en + 0.1", " and ${0}/en < 1",
    " and (${0}/en + ${1}/en > 2 or ${0}/m/phc < 3)", " and not(${0}/m/n != ${1}/m/n)",
    " and ${0}/m/n = ${1}/m/n and ${0}/en + 1 = ${1}/en + 0.7", " and ${1}/m/phc = ${0}/m/phc and ${0}/en * 2 > 0",
]  # fmt: skip


def question(random: Random) -> Question:
    """A join of some streams that never end, over items of the usual look and others."""
    shape = random.choice(SHAPES)
    names = NAMES[: len(shape)]
    fors = [
        f'for ${name} in stream("{each}")/r/p{random.choice(PREDICATES)}'
        for name, each in zip(names, shape, strict=True)
    ]
    parts = []
    for other in names[1:]:
        pair = random.sample([random.choice(names[: names.index(other)]), other], 2)
        low, high = (random.choice(("0", "1", "0.5", "2.25", "6", "-0.5")) for _ in "ab")
        parts.append(random.choice(INTERVALS).format(*pair, low=low, high=high))
    pairs = [random.sample(names, 2) for _ in range(2)]
    where = f"{' and '.join(parts)}{random.choice(CONDITIONS).format(*pairs[0])}"
    query = f"{' '.join(fors)} where {where} return {random.choice(RESULTS).format(*pairs[1])}"
    make = json_stream if random.random() < 0.3 else stream
    items = 60 if len(shape) == 2 else 25
    streams = [make(random, name, timed=True, items=items) for name in sorted(set(shape))]
    return Question(f"<o>{{ {query} }}</o>", [replace(each, endless=True) for each in streams])


def check_against_law(seed: int) -> int:
    """One case; how many pieces came of columns."""
    random = Random(f"interval forms {seed}")
    asked = question(random)
    assert asked.operator == "interval join", asked.text
    law = asked.law()
    taken = asked.run(random, epochs=random.choice((1, 2, 4)))
    label = f"{seed}: {asked.text}"
    assert asked.answer(taken) == law.text, label
    assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), label
    assert sorted(map(str, taken.places)) == sorted(map(str, law.late)), label
    return taken.at_once


def test_interval_joins_of_all_forms_give_the_answer_of_the_law(mass: Mass) -> None:
    """Answers, dead letters and late items, with the inputs cut into feeds and epochs at random."""
    at_once = [check_against_law(seed) > 0 for seed in mass.cases(2_000)]
    assert sum(at_once) > len(at_once) / 6 or mass.done < mass.total


@pytest.mark.parametrize("seed", some(range(25)))
def test_some_interval_joins_give_the_answer_of_the_law(seed: int) -> None:
    """The same for a few."""
    check_against_law(seed)


def test_equal_keys_of_times_far_apart() -> None:
    """Any times may come together, however many keys there are: the first item stands at 0, the others much later."""
    times = [0, *(10**18 + number for number in range(20))]
    items = "".join(f"<p><t>{time}</t><k>{number}</k></p>" for number, time in enumerate(times))
    near = "$x/t - $y/t <= 5 and $y/t - $x/t <= 5 and $x/k = $y/k"
    query = f'for $x in stream("a")/r/p for $y in stream("b")/r/p where {near} return <r>{{ $x/k }}</r>'
    asked = Question(
        f"<o>{{ {query} }}</o>", [Stream(each, f"<r>{items}</r>", time="t", endless=True) for each in "ab"]
    )
    taken = asked.run(Random(1), epochs=1)
    assert taken.at_once
    assert asked.answer(taken) == asked.law().text


def test_no_block_is_larger_than_others() -> None:
    """A single item has as many tuples as the other sides have pairs; these, too, come a few at a time."""
    count = 600
    lane = IntervalLane(np.arange(count), np.zeros(count, np.int64))
    first = IntervalLane(np.arange(2), np.zeros(2, np.int64))
    near = Near(np.array([-1, -1]), np.array([1, 1]))
    guards = Guards(np.empty((0, 3), np.int64), np.empty((0, count)))
    found = list(interval_tuples([first, lane, lane], [near, near], guards))
    assert max(each.shape[1] for each in found) <= BLOCK
    expected = np.indices((2, count, count)).reshape(3, -1)
    assert np.array_equal(np.concatenate(found, axis=1), expected)
