"""Pairs over columns are those of the law: which of them there are, in which order, and what they give."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from heapq import merge
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.window import Extent
from anabranch.columnar.joins import answering
from anabranch.columnar.joins import step_join as joining
from anabranch.columnar.joins.answering import TupleAnswers, TupleColumns
from anabranch.columnar.joins.compiling import CompiledJoin, compile_join
from anabranch.columnar.joins.kernels import merged
from anabranch.columnar.joins.step_join import Lane, StepJoinLanes
from anabranch.columnar.match.rows import with_computed
from anabranch.columnar.scan.entries import SELECTED, SHOWN, VOID, Decimals, common_unit, shred_entries
from anabranch.errors import BadItem, DynamicError
from anabranch.language import ast, check, parse
from anabranch.law.rounds.joins import Entry, Moved, Side, step_join
from anabranch.runtime.standing import standing
from anabranch.runtime.units import Units
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.tree import Element
from columnar.looks import look_of
from columnar.streams import NUMBERS, SHAPES, TEXTS, USUAL
from mass import examples, some

# --- movements --------------------------------------------------------------------------------------------

FOREVER = 1 << 62
Lanes: TypeAlias = Sequence[Sequence[tuple[int, int, int]]]
"""By side: time, value and status of each item."""
gaps = st.tuples(
    st.sampled_from([0, 0, 1, 2, -1]),
    st.sampled_from([0, 1, 1, 2, 3, 9, -1, -4]),
    st.sampled_from([SELECTED, SELECTED, SELECTED, SELECTED, SHOWN, VOID]),
)
arrivals = st.lists(gaps, max_size=40).map(
    lambda found: [
        (sum(each[0] for each in found[:end]), sum(each[1] for each in found[:end]), found[end - 1][2])
        for end in range(1, len(found) + 1)
    ]
)
Window: TypeAlias = tuple[int, int, int, bool]
"""Its size, step and slack, and whether it is one of time."""
windows = st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 4), st.sampled_from([True, True, False]))


def by_law(lanes: Lanes, windows: Sequence[Window], inputs: Sequence[int]) -> list[tuple[int, ...]]:
    """The tuples of items, by number, when all have arrived and the inputs have ended.

    `lanes` are by input, and `inputs` say which each side reads.
    """
    kinds: list[Literal["time", "count"]] = ["time" if timed else "count" for _, _, _, timed in windows]
    sides: list[Side[int]] = [
        Side(kind, Extent(Fraction(size), Fraction(step)))
        for kind, (size, step, _, _) in zip(kinds, windows, strict=True)
    ]
    tagged = [[(item, input, number) for number, item in enumerate(lane)] for input, lane in enumerate(lanes)]
    events: list[Entry[int] | Moved] = []
    counts = [0 for _ in sides]
    for (_, value, status), input, number in merge(*tagged, key=lambda each: each[0][0]):
        for side, (_, _, slack, timed) in enumerate(windows):
            if inputs[side] != input:
                continue
            if status == SELECTED:
                events.append(Entry(side, number, Fraction(value if timed else counts[side])))
                counts[side] += 1
            if timed and status != VOID:
                events.append(Moved(side, Fraction(value - slack)))
            elif not timed and status == SELECTED:
                events.append(Moved(side, Fraction(counts[side])))
    return [tuple(each) for each in step_join(sides, events)]


@examples(120)
@given(
    st.lists(arrivals, min_size=3, max_size=3),
    st.lists(windows, min_size=3, max_size=3),
    st.sampled_from([(0, 1), (0, 0), (1, 0), (0, 1, 2), (0, 1, 0), (0, 0, 0), (2, 1, 0)]),
    st.integers(0, 40),
    st.sampled_from([1, 3, 1000]),
)
def test_movements_are_those_of_the_law(
    lanes: Lanes, extents: Sequence[Window], inputs: tuple[int, ...], split: int, block: int
) -> None:
    """Any items, any windows, of one input or several, cut at any arrival into two runs: the second goes on."""
    lanes = lanes[: max(inputs) + 1]
    slacks = [min([4, *(each[2] for each, mine in zip(extents, inputs, strict=False) if mine == number)])
              for number in range(len(lanes))]  # fmt: skip
    extents = [(size, step, slacks[mine], timed) for (size, step, _, timed), mine in zip(extents, inputs, strict=False)]
    kept = [_without_late(lane, slack) for lane, slack in zip(lanes, slacks, strict=True)]
    order = merged([np.array([each[0] for each in lane], np.int64) for lane in kept], [FOREVER] * len(kept))
    assert len(order) == sum(map(len, kept))
    sides = [_positions(kept[mine], *extent[2:]) for mine, extent in zip(inputs, extents, strict=True)]
    found: list[tuple[int, ...]] = []
    state: list[tuple[int, list[int], list[int]]] = [(0, [], []) for _ in sides]
    for part, before, ended in ((order[:split], order[:0], False), (order[split:], order[:split], True)):
        items: list[list[int]] = []
        given: list[Lane] = []
        for mine, (size, step, _, timed), (following, held, waiting), known in zip(
            inputs, extents, state, sides, strict=True
        ):
            first = int((before == mine).sum())
            items.append([*held, *waiting, *range(first, first + int((part == mine).sum()))])
            values, reached, status = (each[items[-1]] for each in known)
            counts = len(held), len(waiting)
            given.append(Lane(mine, size, step, following, *counts, values, reached, status, timed))
        join = StepJoinLanes(given)
        for picks in _blocks(join, part, block, ended=ended):
            found += [tuple(mine[each] for mine, each in zip(items, pick, strict=True)) for pick in picks]
        state = [
            (join.next(side), [mine[each] for each in join.held(side)], [mine[each] for each in join.waiting(side)])
            for side, mine in enumerate(items)
        ]
    assert found == by_law(kept, extents, inputs)


def _positions(lane: Sequence[tuple[int, int, int]], slack: int, timed: bool) -> tuple[np.ndarray, ...]:
    """The values of items in windows of a kind, how far each lets the window move, and their status."""
    values, status = (np.array([each[field] for each in lane], np.int64) for field in (1, 2))
    if timed:
        return values, values - slack, status.astype(np.uint8)
    counted = np.cumsum(status == SELECTED) - 1
    return counted, counted + 1, np.where(status == SHOWN, VOID, status).astype(np.uint8)


def _blocks(join: StepJoinLanes, part: np.ndarray, block: int, *, ended: bool) -> list[list[list[int]]]:
    """The tuples in blocks of another size, with hardly any room for meetings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "BLOCK", block)
        patch.setattr(joining, "MEETINGS", block)
        return [picks.T.tolist() for picks, _ in join.tuples(part, ended=ended)]


def _without_late(lane: Sequence[tuple[int, int, int]], slack: int) -> list[tuple[int, int, int]]:
    """Late items are void before they come to a join (LAWS 3.2)."""
    found: list[tuple[int, int, int]] = []
    largest: int | None = None
    for time, value, status in lane:
        late = status != VOID and largest is not None and value < largest - slack
        if status != VOID:
            largest = value if largest is None else max(largest, value)
        found.append((time, value, VOID if late else status))
    return found


def test_a_long_way_costs_no_more_than_a_short_one() -> None:
    """A jump over a million million positions; pairs on both sides of it."""
    values = np.array([1, 2, 10**15, 10**15 + 1, 10**15 + 50], np.int64)
    lanes = [Lane(side, 10, 1, 0, 0, 0, values, values, np.full(5, SELECTED, np.uint8)) for side in range(2)]
    sides = merged([values, values], [FOREVER, FOREVER])
    blocks = StepJoinLanes(lanes).tuples(sides, ended=True)
    found = [tuple(each) for picks, _ in blocks for each in picks.T.tolist()]
    nearer = [int(value) - (10**15 - 1_000 if value > 10 else 0) for value in values]
    windows: list[Window] = [(10, 1, 0, True)] * 2
    assert found == by_law([[(value, value, SELECTED) for value in nearer]] * 2, windows, (0, 1))
    assert (4, 4) in found


def test_an_input_that_may_bring_something_earlier_holds_the_other_back() -> None:
    """Behind its last item a side is known up to its limit, and no further (LAWS 1.2)."""
    first, second = np.array([1, 5, 9]), np.array([2, 5])
    assert merged([first, second], [-1, -1]).tolist() == [0, 1, 0, 1]
    assert merged([first, second], [-1, 9]).tolist() == [0, 1, 0, 1, 0]
    assert merged([first, second[:0]], [-1, 4]).tolist() == [0]
    assert merged([np.array([7, 1]), np.array([3])], [FOREVER, -1]).tolist() == [1]


# --- conditions and results -------------------------------------------------------------------------------

ROOT = parse_root(b"<root>")
JOINS = {
    "numbers": ("$x/a/x >= $y/z + 0.5", "<r>{ $x/a/x } { $y/z }</r>"),
    "untyped": ("$x/z >= $y/z", "<r>{ $x/z, $y/z, $x/a/y/text() }</r>"),
    "texts": ("$x/a/y = $y/a/y or $x/z != $y/z", "($y, $x/a)"),
    "reckoned": ("$x/a/x * 2 - $y/z <= 0.1 + $x/z and -$y/z < $x/a/x - 0.2 - 0.1", "<r k='{ $x/z }-{ $y/a/y }'/>"),
    "one side": ("$x/z < 3 and not($y/a/y = 'abc') and 0 <= $y/a/x + $y/z", "<s>&lt;{ $y/z }</s>"),
    "equal numbers": ("$x/z + 0 = $y/z or $x/a/x != $y/z * 1", "<e/>"),
    "nothing": ("$x/opt > $y/z or $x/opt", "$x"),
    "no condition": ("", "<r>{ $x/z }<b/>{ $y/z }{ $x/a/y }</r>"),
    "nothing and a sum": ("$x/opt < $y/z + 1", "$x"),
    "no result": ("$x/z < $y/z", "$x/opt"),
    "repeated": ("$x/a/* > 1", "$x"),
    "exact": ("$x/z + (0.1 + 0.2) > $y/z", "$x"),
    "division": ("$x/z div 2 > $y/z", "$x"),
    "empty sum": ("$x/opt + 1 > $y/z", "$x"),
    "digits": ("$x/z > $y/z + 0.1000000000000000055", "$x"),
    "folds": ("string-join(($x/a/y, $y/a/y), '-') != '1-1'", "<r>{ string-join(('a', $y/z, $x/a/y), ' ') }</r>"),
    "predicates": ("$x/a[y = $y/a/y] or $y/z[. > 1]", "<r>{ $x/a[y > 1], $y/z[. > 0] }</r>"),
    "function": ("$x/z > $y/z", "<r>{ concat($x/z, '-', $y/a/y) }</r>"),
    "computed": ("contains($x/a/y, $y/a/y)", "<r a='{ $x/z * 2 }'>{ $x/z + $y/z }<n>{ string-length($y/a/y) }</n></r>"),
    "chosen": ("$x/z > 1 or $y/z > 1", "<r>{ if ($x/z > $y/z) then $x/a else <less>{ $y/z }</less> }</r>"),
    "maybe empty": ("", "<r>{ $x/z/text(), $y/a/y/text() }</r>"),
    "attribute": ("", "<r>{ if ($x/z > 2) then $x/z else () }{ if ($y/z > 2) then $y/z else () }</r>"),
}


def join_text(name: str) -> str:
    where, result = JOINS[name]
    return (
        'for $x in stream("s")/root/p[z >= -5]|a/x diff 10| for $y in stream("t")/root/p|/root/p/z diff 4 step 2| '
        f"{where and 'where ' + where} return {result}"
    )


def compiled(name: str) -> tuple[CompiledJoin | None, Units]:
    text = join_text(name)
    found = standing(check(parse(text), text).query)
    look = look_of(USUAL.format(x="1", y="abc", z="2").encode())
    assert isinstance(found.plain_hole, ast.Flwor)
    join = compile_join(found.plain_hole, ("root", "root"), (look, look), (None, Path.parse("a/x")))
    return join, Units(found)


numbers = st.sampled_from([*(f"{number / 10}" for number in range(-20, 60, 5)), "5", "5.0", *NUMBERS[:10]])
texts = st.sampled_from(["abc", "abd", "b", "5", "5.0", "abc", "abd", *TEXTS[:8]])
shapes = st.one_of(st.just(USUAL), st.just(USUAL), st.just(USUAL), st.sampled_from(SHAPES[:8]))
items = st.lists(
    st.builds(lambda shape, **leaves: shape.format(**leaves), shapes, x=numbers, y=texts, z=numbers), max_size=6
)


@pytest.mark.parametrize("name", sorted(JOINS))
def test_what_is_made_for_columns(name: str) -> None:
    """Joins of plain paths and simple arithmetic are compiled."""
    assert compiled(name)[0] is not None


@pytest.mark.parametrize("name", some(sorted(JOINS)))
@examples(20)
@given(st.tuples(items, items))
def test_pairs_are_answered_as_by_law(name: str, sides: tuple[list[str], list[str]]) -> None:
    """All pairs of two lists of items of any kind; those that are not clear are asked for one by one."""
    join, units = compiled(name)
    assert join is not None
    good = [[(raw.encode(), tree) for raw in side if (tree := _tree(raw)) is not None] for side in sides]
    shredded = [
        with_computed(
            shred_entries(
                b"".join(raw for raw, _ in side),
                np.cumsum([len(raw) for raw, _ in side], dtype=np.int64),
                each.wanted,
                Limits(),
            )
        )
        for side, each in zip(good, join.sides, strict=True)
    ]
    pairs = list(product(range(len(good[0])), range(len(good[1]))))
    asked: list[Sequence[int]] = []

    def law(pair: Sequence[int]) -> bytes:
        try:
            return units.tuple([side[each][1] for side, each in zip(good, pair, strict=True)]).text.encode()
        except DynamicError:
            return b""

    def slow(pair: Sequence[int]) -> bytes:
        asked.append(pair)
        return law(pair)

    columns = TupleColumns(shredded)
    answers = TupleAnswers(join, columns, slow)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "SLOW", 2)
        patch.setattr(answering, "LONGEST", 50)
        laid = [*answers.answer(np.array(pairs, np.int64).reshape(-1, 2).T.copy())]
    pieces = [piece for pair in pairs if (piece := law(pair))]
    assert b"".join(each.data for each in laid) == b"".join(pieces)
    assert sum(each.entries for each in laid) == len(pieces)
    for each in laid:
        assert each.first == len(pieces[0])
        pieces = pieces[each.entries :]
    if name == "no condition" and shredded[0].fits.all() and shredded[1].fits.all():
        assert not asked


def _tree(raw: str) -> Element | None:
    try:
        tree = parse_item(raw.encode(), Limits())
    except BadItem:
        return None
    tree.parent = ROOT
    return tree


# --- exact values -----------------------------------------------------------------------------------------


@examples(30)
@given(st.lists(st.one_of(st.decimals(-1000, 1000, places=3), st.integers(-(10**9), 10**9)), min_size=1))
def test_values_are_exact(values: list[Decimal | int]) -> None:
    """In units all values are integers, and none is rounded."""
    join, _ = compiled("numbers")
    assert join is not None
    raws = [USUAL.format(x=value, y="a", z="+.50").encode() for value in values]
    shredded = shred_entries(b"".join(raws), np.cumsum(list(map(len, raws))), join.sides[0].wanted, Limits())
    column = Decimals.read(shredded, join.sides[0].reference, {0: Fraction(1, 3)}, len(raws))
    unit = common_unit([column], [Fraction(1, 7)])
    found = column.in_units(unit)
    assert unit % 21 == 0
    assert [Fraction(int(each), unit) for each in found] == [Fraction(1, 3), *map(Fraction, values[1:])]


def test_values_that_are_too_large_are_not_for_columns() -> None:
    """Digits that do not fit into one unit with the others are left to the law."""
    join, _ = compiled("numbers")
    assert join is not None
    raws = [USUAL.format(x=value, y="a", z="1").encode() for value in ("0.00000000000001", "100000000000000", "0")]
    shredded = shred_entries(b"".join(raws), np.cumsum(list(map(len, raws))), join.sides[0].wanted, Limits())
    column = Decimals.read(shredded, join.sides[0].reference, {}, len(raws))
    assert common_unit([column], []) == 10**14
    with pytest.raises(OverflowError):
        column.in_units(10**14)
