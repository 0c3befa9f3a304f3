"""One condition for several joins: it may let too much pass, and never too little."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from random import Random

import numpy as np
import pytest

from anabranch.columnar.joins.answering import TupleColumns
from anabranch.columnar.joins.compiling import CompiledJoin, compile_join, read_together
from anabranch.columnar.joins.condition import TupleCondition, relaxed
from anabranch.columnar.match.condition import NO, YES, Settled
from anabranch.columnar.match.rows import with_computed
from anabranch.columnar.scan.entries import shred_entries
from anabranch.language import ast, check, parse
from anabranch.runtime.standing import standing
from anabranch.stream.limits import Limits
from columnar.looks import look_of
from mass import enough, some

ITEM = "<p><en>{}</en><n>{}</n><t>{}</t></p>"
CONJUNCTS = (
    *("$x/en >= $y/en", "$x/en > $y/en + 0.1", "$x/en >= 0.1 + $y/en", "$x/en > $y/en - 0.3", "$x/en - 1 > $y/en + 2"),
    *("$x/en <= $y/en", "$x/en + 0.2 <= $y/en", "$x/en < $y/en - 0.1", "$x/en + 1 < $y/en - 0.3", "$y/en > $x/en"),
    *("$x/en > 1", "$x/en >= 0.5", "1 < $x/en", "$y/en <= 2", "$y/en < 2.5", "0.3 >= $y/en"),
    *("$x/n = $y/n", "$x/n != $y/n", "$x/n = 'a'", "$y/en = $x/en + 0.1", "$x/en * 2 > $y/en", "$x/en * 3 > $y/en"),
    *("($x/en > 1 or $y/en > 1)", "not($x/en > $y/en + 0.1)", "$x/none"),
)


@lru_cache(maxsize=1_000)
def compiled(condition: str) -> CompiledJoin:
    text = (
        'for $x in stream("s")/r/p|t diff 10| for $y in stream("u")/r/p|t diff 10| '
        f"{condition and 'where ' + condition} return <r>{{ $x/en, $y/en }}</r>"
    )
    hole = standing(check(parse(text), text).query).plain_hole
    look = look_of(ITEM.format("1", "a", "1").encode())
    assert isinstance(hole, ast.Flwor)
    join = compile_join(hole, ("r", "r"), (look, look), (None, None))
    assert join is not None, condition
    return join


def weakest(*conditions: str) -> TupleCondition:
    return relaxed([compiled(each).condition for each in conditions])


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (("$x/en >= $y/en + 0.5", "$x/en >= $y/en"), "$x/en >= $y/en + 0"),  # q5 and q6 of the sharing paper
        (("$x/en >= $y/en", "$x/en >= $y/en + 0.5", "$x/en > $y/en"), "$x/en >= $y/en + 0"),
        (("$x/en - 1 > $y/en", "$x/en > $y/en + 1"), "$x/en > $y/en + 0"),
        (("$x/en > $y/en", "$x/en >= $y/en"), "$x/en >= $y/en"),
        (("$x/en > $y/en - 1", "$x/en >= $y/en"), "$x/en >= $y/en - 1"),
        (("$x/en > 3 and $y/n = 'a'", "$y/n = 'a' and $x/en > 1"), "$x/en > 1 and $y/n = 'a'"),
        (("$x/en + 1 <= $y/en", "$x/en <= $y/en - 2", "$x/en < $y/en + 7"), "$x/en <= $y/en + 7"),
    ],
)
def test_the_weakest_of_what_is_compared_alike(conditions: tuple[str, ...], expected: str) -> None:
    """Whatever the order they come in."""
    assert weakest(*conditions) == compiled(expected).condition


@pytest.mark.parametrize(
    "conditions",
    [
        ("$x/en >= $y/en", "$x/en <= $y/en"),
        ("$x/en >= $y/en", "$y/en <= $x/en"),
        ("$x/n = $y/n", "$x/n != $y/n"),
        ("$x/en > 1", "$y/en > 1"),
        ("$x/en >= $y/en", ""),
    ],
)
def test_what_has_nothing_in_common_lets_all_pass(conditions: tuple[str, ...]) -> None:
    """Also what only looks different: that costs time and no answer."""
    assert weakest(*conditions) == Settled(YES)


@pytest.mark.parametrize("second", ["$x/en > $y/en - 1", "$x/en > $y/en + 0", "$x/en - 1 > $y/en"])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("100000000000000002", "100000000000000001"),  # equal as doubles
        ("none", "1"),
        ("a", "none"),
        ("2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z"),
    ],
)
def test_exact_values_and_texts_beside_sums(second: str, is_first: bool, left: str, right: str) -> None:
    """Numbers are compared exactly and texts as texts, unless one is added to: what that leaves open, stays open."""
    texts = ["$x/en > $y/en", second] if is_first else [second, "$x/en > $y/en"]
    joins = read_together([compiled(each) for each in texts])
    items = [ITEM.format(each, "a", "1").encode() for each in (left, right)]
    columns = TupleColumns(
        [
            with_computed(shred_entries(item, np.array([len(item)]), side.wanted, Limits()))
            for item, side in zip(items, joins[0].sides, strict=True)
        ]
    )
    pair = np.zeros((2, 1), np.int64)
    assert any(columns.judge(each.condition).verdicts(pair) != NO for each in joins)
    assert columns.judge(relaxed([each.condition for each in joins])).verdicts(pair) != NO


def test_what_is_left_out_nobody_wants() -> None:
    """Random conjunctions over all pairs of items, also with texts that are no numbers."""
    left_out = 0
    for number in some(range(100)):
        random = Random(number)
        kinds = random.choices(CONJUNCTS, k=4)
        texts = [" and ".join(random.sample(kinds, random.randint(2, 3))) for _ in range(random.choice((2, 2, 3, 4)))]
        joins = read_together([compiled(each) for each in texts])
        raws = [
            [ITEM.format(random.choice(VALUES), random.choice("ab1"), "1").encode() for _ in range(8)] for _ in range(2)
        ]
        shredded = [
            with_computed(shred_entries(b"".join(raw), np.cumsum(list(map(len, raw))), side.wanted, Limits()))
            for raw, side in zip(raws, joins[0].sides, strict=True)
        ]
        columns = TupleColumns(shredded)
        picks = np.array(list(product(range(8), repeat=2)), np.int64).T.copy()
        given = columns.judge(relaxed([each.condition for each in joins])).verdicts(picks)
        for text, join in zip(texts, joins, strict=True):
            mine = columns.judge(join.condition).verdicts(picks)
            assert (mine[given == NO] == NO).all(), (number, text)
        left_out += int(np.count_nonzero(given == NO))
    assert left_out > enough(500)


VALUES = ("0.1", "0.2", "0.30", "0.4", "1", "1.1", "1.0", "2", "2.5", "-0.5", "3", "none", "", "0.30000000000000004")
