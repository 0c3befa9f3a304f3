"""The index over predicates: for every condition and entry it finds what judging the condition by itself finds."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from anabranch.columnar.expressions.tree import ColumnArithmetic, ConstantValue, PartText
from anabranch.columnar.items import untemplated
from anabranch.columnar.match.condition import (
    NO,
    UNCLEAR,
    YES,
    Condition,
    ItemTest,
    MomentTest,
    NumberTest,
    PatternTest,
    PresenceTest,
    RowTest,
    Settled,
    SumTest,
    TextTest,
)
from anabranch.columnar.match.forms import gathered
from anabranch.columnar.match.index import Matcher, Matches
from anabranch.columnar.match.judging import judge
from anabranch.columnar.match.ranks import UNKNOWN, rank_sums
from anabranch.columnar.scan.kernels import ABSENT
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.logic import And, Not, Or, Tree
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import LineSplitter
from anabranch.values.operators import ComparisonOperator
from columnar.looks import look_of
from mass import some

_OPERATORS: tuple[ComparisonOperator, ...] = ("=", "!=", "<", "<=", ">", ">=")
_LEAVES = 4
_REPEATED = 5
"""The part that items have several times."""


def _batch(random: Random, items: int) -> Shredded:
    """Items `<p><a/><b/><c/><d/><v/>...</p>`, some with odd numbers, some without a part, and some of another look."""
    look = look_of(b"<p><a>1</a><b>1</b><c>1</c><d>1</d><v>1</v><v>1</v></p>", b"<p><a>1</a><b>1</b></p>")
    columns = [*range(1, _REPEATED + 1)]
    assert [look.parts[each].name for each in columns] == ["a", "b", "c", "d", "v"]
    wanted = WantedColumns.of(look, columns, columns)
    lines = []
    for _ in range(items):
        parts = [f"<{name}>{random.choice(_VALUES)}</{name}>" for name in "abcd" if random.random() < 0.9]
        parts += [f"<v>{random.choice(_VALUES)}</v>" for _ in range(random.choice([0, 1, 1, 2, 5]))]
        if random.random() < 0.1:
            parts.insert(random.randrange(len(parts) + 1), random.choice([" ", "<strange/>", "<!-- -->"]))
        lines.append("<p>" + "".join(parts) + "</p>\n")
    limits = Limits()
    head, *rest = Shredder(LineSplitter(limits), limits).feed(("\n" * 8 + "".join(lines)).encode(), wanted)
    found = rest[-1] if rest else head
    untemplated.fill(found, limits)
    return found


_MOMENTS = ["2026-03-01T10:00:00Z", "2026-03-01T11:00:00+01:00", "2026-03-01T10:00:00.5Z", "2026-03-01"]
_VALUES = ["0", "1", "2", "2.5", "3", "-4", "7.25", "10", "x", "abc", "1234567890123456789", "1e3", "", *_MOMENTS]
_PATTERNS = ["", "1", "2.5", "0", "abc", "bc", "x", "34567", "none", "5", "-"]


def _condition(random: Random, depth: int) -> Tree[ItemTest]:
    number = random.choice([0.0, 1.0, 2.0, 2.5, -4.0, 5.0, random.uniform(-5, 10)])
    match random.randrange(13 if depth else 8):
        case 0 | 1:
            return NumberTest(1 + random.randrange(_LEAVES), random.choice(_OPERATORS), number)
        case 2:
            return TextTest(1 + random.randrange(_LEAVES), random.choice(_OPERATORS), random.choice(_VALUES).encode())
        case 3:
            return PatternTest(1 + random.randrange(_LEAVES), random.choice(_PATTERNS).encode())
        case 4:
            return PresenceTest(1 + random.randrange(_LEAVES))
        case 5:
            columns = random.sample(range(1, _LEAVES + 1), 2)
            return SumTest(columns[0], random.choice(_OPERATORS), columns[1], number)
        case 6:
            return RowTest(_REPEATED, (_row_condition(random, number),))
        case 7:
            moment = random.choice(["2026-03-01T12:00:00", "2026-03-01T24:00:00Z", *_MOMENTS]).encode()
            return MomentTest(1 + random.randrange(_LEAVES), random.choice(_OPERATORS), moment)
        case 8:
            return Settled(random.choice([YES, NO, UNCLEAR]))
        case 9:
            return Not(_condition(random, depth - 1))
        case 10 | 11:
            return And(tuple(_condition(random, depth - 1) for _ in range(random.randint(1, 4))))
        case _:
            return Or(tuple(_condition(random, depth - 1) for _ in range(random.randint(1, 3))))


def _row_condition(random: Random, number: float) -> Tree[ItemTest]:
    """A condition on one value: equal to another, in an interval, with a pattern, computed, or none of these."""
    text = random.choice(_VALUES).encode()
    low = NumberTest(_REPEATED, random.choice((">", ">=")), number)
    doubled = ColumnArithmetic("*", PartText(_REPEATED), ConstantValue(2))
    around = ColumnArithmetic("-", PartText(_REPEATED), PartText(1))
    found: list[Tree[ItemTest]] = [
        NumberTest(_REPEATED, random.choice(_OPERATORS), number),
        TextTest(_REPEATED, random.choice(_OPERATORS), text),
        And((low, NumberTest(_REPEATED, "<", number + 3))),
        Or((low, TextTest(_REPEATED, "=", text))),
        And((Not(low), PatternTest(_REPEATED, random.choice(_PATTERNS).encode()))),
        NumberTest(doubled, "<", number),
        MomentTest(_REPEATED, random.choice(_OPERATORS), random.choice(_MOMENTS).encode()),
        And((NumberTest(around, ">=", number), NumberTest(doubled, "<", number))),
        PresenceTest(_REPEATED),
    ]
    return random.choice(found)


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


@pytest.mark.parametrize("seed", some(range(24)))
def test_the_index_finds_what_each_condition_finds(seed: int) -> None:
    """Every pair of a condition and an entry has the outcome that `judge` gives, and comes in its order."""
    random = Random(seed)
    shredded = _batch(random, 120)
    conditions = [_staged(random) for _ in range(random.choice([1, 7, 40, 150]))]
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
    shredded = _batch(Random(4), 1_800)
    assert shredded.wanted is not None
    conditions: list[Condition] = [(NumberTest(1, ">=", float(-each)),) for each in range(1_500)]
    matcher = Matcher(len(conditions), *gathered(enumerate(conditions)), shredded.wanted)
    assert matcher.match(shredded) is None
    taken = []
    for begin, end in ((0, 900), (900, len(shredded.fits))):
        half = matcher.match(shredded.part(begin, end))
        assert half is not None
        taken += (begin + _taken(half, 7)).tolist()  # what is found is there until the next is judged
    expected = np.flatnonzero((judge((NumberTest(1, ">=", -7.0),), shredded) == YES) & shredded.fits)
    assert taken == expected.tolist()


def _interval_of_rows(low: float, high: float) -> RowTest:
    return RowTest(_REPEATED, (And((NumberTest(_REPEATED, ">=", low), NumberTest(_REPEATED, "<", high))),))


def _alike(random: Random, count: int) -> list[Condition]:
    """Conditions of few forms with many constants, found by ranges and by keys."""
    found: list[Condition] = []
    for _ in range(count):
        number = random.choice([random.uniform(-9, 12), float(random.randrange(-4, 11)), 2.5])
        pattern, other = (random.choice(_PATTERNS).encode() for _ in range(2))
        found.append(
            random.choice(
                [
                    (PatternTest(1, pattern),),
                    (And((PatternTest(1, pattern), PatternTest(2, other))),),
                    (And((PatternTest(1, pattern), Not(PatternTest(1, other)), NumberTest(2, "<", number))),),
                    (And((Not(PatternTest(3, pattern)), NumberTest(2, "=", number))),),
                    (And((NumberTest(2, "=", number), PatternTest(1, pattern))),),
                    (SumTest(1, random.choice(_OPERATORS), 2, number),),
                    (RowTest(_REPEATED, (NumberTest(_REPEATED, "=", number),)),),
                    (_interval_of_rows(number, number + random.choice([0.5, 3])),),
                    (And((_interval_of_rows(number, number + 3), NumberTest(2, "<", number))),),
                    (
                        PresenceTest(3),
                        Or((RowTest(_REPEATED, (TextTest(_REPEATED, "=", other),)), SumTest(1, ">=", 3, number))),
                    ),
                    (Not(_interval_of_rows(number, number + 0.5)),),
                    (Not(RowTest(_REPEATED, (PatternTest(_REPEATED, pattern),))),),
                ]
            )
        )
    return found


@pytest.mark.parametrize("count", [40, 900])
def test_many_conditions_of_few_forms(count: int) -> None:
    """Patterns, sums and rows are found among many conditions and among few."""
    random = Random(count)
    shredded = _batch(random, 150)
    assert {True, False} == set(shredded.fits.tolist())
    assert (shredded.starts[:_LEAVES, shredded.fits] == ABSENT).any()
    conditions = _alike(random, count)
    matches = _matches(conditions, shredded)
    opened: dict[int, set[int]] = {}
    for number, entry in zip(matches.open_conditions.tolist(), matches.open_entries.tolist(), strict=True):
        opened.setdefault(number, set()).add(entry)
    for number, condition in enumerate(conditions):
        verdicts = judge(condition, shredded)
        verdicts = np.where(shredded.fits | (verdicts == NO), verdicts, np.uint8(UNCLEAR))
        assert _taken(matches, number).tolist() == np.flatnonzero(verdicts == YES).tolist(), condition
        assert sorted(opened.get(number, ())) == np.flatnonzero(verdicts == UNCLEAR).tolist(), condition


@pytest.mark.parametrize("seed", some(range(8)))
def test_sums_are_ranked_as_they_are_rounded(seed: int) -> None:
    """A rank says for every constant how the number stands to the rounded sum; it is unknown for equal sums only."""
    random = Random(seed)

    def number() -> float:
        match random.randrange(5):
            case 0:
                return random.randrange(-30, 30) / 10
            case 1:
                return random.randrange(10**14, 10**15) * 10.0 ** random.randrange(-16, 3)
            case 2:
                return float(random.randrange(-5, 5))
            case 3:
                return random.choice([0.0, -0.0, float("inf"), -float("inf"), 5e-324, 1.7e308, -1.7e308])
            case _:
                return random.uniform(-1, 1) * 10.0 ** random.randrange(-20, 20)

    addends = np.array([number() for _ in range(400)])
    finite = [each for each in (number() for _ in range(40)) if np.isfinite(each)]
    constants = np.unique([*finite, *np.nextafter(finite, np.inf)])
    with np.errstate(over="ignore"):
        near = addends + np.array([random.choice(constants) for _ in addends])
        values = np.array(
            [random.choice([np.nextafter(each, np.inf), each, np.nextafter(each, -np.inf)]) for each in near]
        )
    starts = np.zeros(len(values), np.int32)
    ranks = np.empty(len(values), np.int32)
    rank_sums(values, starts, addends, starts, 2 * len(constants) + 1, constants, ranks)
    assert (ranks != UNKNOWN).sum() > 100
    for value, addend, rank in zip(values.tolist(), addends.tolist(), ranks.tolist(), strict=True):
        orders = [(value > addend + constant) - (value < addend + constant) for constant in constants.tolist()]
        if rank == UNKNOWN:
            assert orders.count(0) > 1
        else:
            assert orders == [(rank > 2 * place + 1) - (rank < 2 * place + 1) for place in range(len(constants))]


def test_sums_of_what_is_absent_or_unread() -> None:
    """Nothing is compared with a sum, unless one side of it may fail."""
    values, addends = np.array([np.nan, 1.0, np.nan, np.nan, 1.0]), np.array([1.0, np.nan, np.nan, np.nan, np.nan])
    starts, others = np.array([ABSENT, 0, ABSENT, ABSENT, 0], np.int32), np.array([0, ABSENT, ABSENT, 0, 0], np.int32)
    ranks = np.empty(5, np.int32)
    rank_sums(values, starts, addends, others, 3, np.array([1.0]), ranks)
    assert ranks.tolist() == [3, 3, 3, UNKNOWN, UNKNOWN]
