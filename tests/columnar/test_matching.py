"""The index over predicates: for every condition and entry it finds what judging the condition by itself finds."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from anabranch.columnar.match.arranging import gathered
from anabranch.columnar.match.condition import (
    NO,
    UNCLEAR,
    YES,
    Condition,
    ItemTest,
    NumberTest,
    Settled,
    TextTest,
    judge,
)
from anabranch.columnar.match.index import Matcher, Matches
from anabranch.columnar.scan import untemplated
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.logic import And, Not, Or, Tree
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import LineSplitter
from anabranch.values.operators import ComparisonOperator
from columnar.looks import wanted_of

_OPERATORS: tuple[ComparisonOperator, ...] = ("=", "!=", "<", "<=", ">", ">=")
_LEAVES = 4


def _batch(random: Random, items: int) -> Shredded:
    """Items `<p><a/><b/><c/><d/></p>`, of which some have odd numbers and some another look."""
    wanted = wanted_of(b"<p><a>1</a><b>1</b><c>1</c><d>1</d></p>", *"abcd")
    lines = []
    for _ in range(items):
        values = [random.choice(_VALUES) for _ in range(_LEAVES)]
        space = " " if random.random() < 0.1 else ""
        lines.append("<p>" + "".join(f"<{n}>{v}</{n}>{space}" for n, v in zip("abcd", values, strict=True)) + "</p>\n")
    limits = Limits()
    head, *rest = Shredder(LineSplitter(limits), limits).feed(("\n" * 8 + "".join(lines)).encode(), wanted)
    found = rest[-1] if rest else head
    untemplated.fill(found, limits)
    return found


_VALUES = ["0", "1", "2", "2.5", "3", "-4", "7.25", "10", "x", "abc", "1234567890123456789", "1e3"]


def _condition(random: Random, depth: int) -> Tree[ItemTest]:
    match random.randrange(8 if depth else 3):
        case 0 | 1:
            number = random.choice([0.0, 1.0, 2.0, 2.5, -4.0, 5.0, random.uniform(-5, 10)])
            return NumberTest(1 + random.randrange(_LEAVES), random.choice(_OPERATORS), number)
        case 2:
            return TextTest(1 + random.randrange(_LEAVES), random.choice(_OPERATORS), random.choice(_VALUES).encode())
        case 3:
            return Settled(random.choice([YES, NO, UNCLEAR]))
        case 4:
            return Not(_condition(random, depth - 1))
        case 5 | 6:
            return And(tuple(_condition(random, depth - 1) for _ in range(random.randint(1, 4))))
        case _:
            return Or(tuple(_condition(random, depth - 1) for _ in range(random.randint(1, 3))))


def _staged(random: Random) -> Condition:
    first = _condition(random, 2)
    return (first, *(_condition(random, 2) for _ in range(random.choice([0, 0, 0, 1, 2]))))


def _matches(conditions: Sequence[Condition], shredded: Shredded) -> Matches:
    assert shredded.wanted is not None
    found = Matcher(len(conditions), *gathered(enumerate(conditions)), shredded.wanted).match(shredded)
    assert found is not None
    return found


def _taken(matches: Matches, condition: int) -> NDArray[np.int32]:
    """The entries that a condition takes."""
    found: NDArray[np.int32] = matches.pairs[matches.conditions == condition]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_index_finds_what_each_condition_finds(seed: int) -> None:
    """Every pair of a condition and an entry has the outcome that `judge` gives, and comes in its order."""
    random = Random(seed)
    shredded = _batch(random, 120)
    conditions = [_staged(random) for _ in range(random.choice([1, 7, 150]))]
    conditions += random.choices(conditions, k=3)
    matches = _matches(conditions, shredded)
    opened = list(zip(matches.open_conditions.tolist(), matches.open_entries.tolist(), strict=True))
    assert [entry for _, entry in opened] == sorted(entry for _, entry in opened)
    for number, condition in enumerate(conditions):
        verdicts = judge(condition, shredded)
        verdicts = np.where(shredded.fits | (verdicts == NO), verdicts, np.uint8(UNCLEAR))
        assert _taken(matches, number).tolist() == np.flatnonzero(verdicts == YES).tolist(), condition
        mine = [entry for each, entry in opened if each == number]
        assert mine == np.flatnonzero(verdicts == UNCLEAR).tolist(), condition


def test_boxes_over_two_axes() -> None:
    """Many boxes of one form, more than fit into the first room for pairs."""
    random = Random(3)
    shredded = _batch(random, 400)
    boxes = [
        (
            And(
                (
                    NumberTest(1, ">=", low),
                    NumberTest(1, "<", low + 3),
                    NumberTest(2, ">", low - 9),
                    NumberTest(2, "<=", low),
                )
            ),
        )
        for low in (random.uniform(-6, 9) for _ in range(500))
    ]
    matches = _matches(boxes, shredded)
    for number, box in enumerate(boxes):
        expected = np.flatnonzero((judge(box, shredded) == YES) & shredded.fits)
        assert _taken(matches, number).tolist() == expected.tolist()


def test_more_pairs_than_one_batch_may_have() -> None:
    """A batch with too many is refused, its parts are not, and together they say the same."""
    shredded = _batch(Random(4), 1_200)
    assert shredded.wanted is not None
    conditions: list[Condition] = [(NumberTest(1, ">=", float(-each)),) for each in range(1_500)]
    matcher = Matcher(len(conditions), *gathered(enumerate(conditions)), shredded.wanted)
    assert matcher.match(shredded) is None
    halves = [matcher.match(shredded.part(*each)) for each in ((0, 600), (600, len(shredded.fits)))]
    first, second = (each for each in halves if each is not None)
    expected = np.flatnonzero((judge((NumberTest(1, ">=", -7.0),), shredded) == YES) & shredded.fits)
    assert [*_taken(first, 7), *(600 + _taken(second, 7))] == expected.tolist()
