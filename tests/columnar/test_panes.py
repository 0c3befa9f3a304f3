from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates.partial import Failure, ItemAt, Partial, merged
from anabranch.algebra.window import Extent, Panes
from anabranch.columnar.match.kernels import Hits
from anabranch.columnar.panes.kernels import NODES, add_up, best_places, exact_ticks, place, read_decimals, text_ticks
from anabranch.columnar.panes.query import PaneQuery, compile_panes
from anabranch.columnar.panes.rows import ManyPanes, Pane, Rows, together
from anabranch.columnar.scan.kernels import number_at
from anabranch.errors import DynamicError
from anabranch.language import ast, parse
from anabranch.values.numbers import exact_number
from columnar.looks import look_of
from mass import examples

DIGITS = st.tuples(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 18)).map(
    lambda given: f"{Decimal(given[0]).scaleb(-given[1]):f}"
)

WRITTEN = st.from_regex(r"[+-]?[0-9]{0,19}(\.[0-9]{0,12})?[x ]?", fullmatch=True)


def numbers(texts: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What the shredder makes of texts."""
    raw = [np.frombuffer(text.encode(), np.uint8) for text in texts]
    return np.array([number_at(each, 0, len(each))[0] for each in raw], np.float64)


@examples(150)
@given(st.lists(DIGITS, min_size=1, max_size=8), st.integers(0, 18))
def test_what_is_called_exact_is_the_decimal_of_the_text(texts: list[str], places: int) -> None:
    """A double read from at most 15 digits gives them back, or is left alone; it is never another decimal."""
    values = numbers(texts)
    ticks, exact = exact_ticks(values, places)
    for text, value, tick, is_exact in zip(texts, values.tolist(), ticks.tolist(), exact.tolist(), strict=True):
        scaled = Decimal(text).scaleb(places)
        if is_exact:
            assert scaled == tick
        else:
            assert scaled != int(scaled) or abs(scaled) >= 2**50 or math.isnan(value)


@examples(100)
@given(
    st.lists(st.from_regex(r"[+-]?[0-9]{0,19}(\.[0-9]{0,12})?[x ]?", fullmatch=True), min_size=1), st.integers(0, 18)
)
def test_a_text_is_read_digit_by_digit(texts: list[str], places: int) -> None:
    """What is called exact is the decimal of the text; what is left out has too many digits or is no decimal."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([len(each) for each in raw], dtype=np.int32)
    mantissas, given = np.empty((2, len(raw)), np.int64)
    data = np.frombuffer(b"".join(raw), np.uint8)
    read_decimals(data, np.concatenate([[0], ends[:-1]]).astype(np.int32), ends, mantissas, given)
    ticks, exact = text_ticks(mantissas, given, places)
    for text, tick, is_exact in zip(texts, ticks.tolist(), exact.tolist(), strict=True):
        number = None if text.endswith(" ") else exact_number(text)
        scaled = None if number is None else Fraction(number) * 10**places
        if is_exact:
            assert scaled == tick
        else:
            digits = sum(each.isdigit() for each in text)
            assert scaled is None or digits > 18 or abs(scaled) > 2**60 or len(text.partition(".")[2]) > places


def test_the_places_are_those_that_most_numbers_have() -> None:
    """One number with many digits does not push all others beyond 64 bits."""
    values = numbers(["1700000000000", "1700000000001.5", "1.25", "0.000000000001"])
    assert best_places(values) == 2


def test_numbers_that_are_too_large() -> None:
    """They are left alone without a warning, which tests take for a failure."""
    ticks, exact = exact_ticks(np.array([1e308, -1e308, 2.5]), 18)
    assert exact.tolist() == [False, False, False]
    assert exact_ticks(np.array([1e308, 2.5]), 1)[1].tolist() == [False, True]
    assert ticks.tolist() == [0, 0, 0]


GIVEN = st.lists(st.tuples(st.integers(0, 2), DIGITS, st.booleans()), min_size=1, max_size=20)
"""Panes, numbers, and whether they count."""


def added_up(given: list[tuple[int, str, bool]], base: int, places: int) -> Rows:
    """Rows of one member, as hits add up; what is not exact does not count."""
    values = numbers([text for _, text, _ in given])
    ticks, exact = exact_ticks(values, places)
    panes = np.array([[pane for pane, _, _ in given]])
    taken = np.array([[each for _, _, each in given]]) & exact
    hits = Hits(np.arange(len(given), dtype=np.int32), np.array([0, len(given)]))
    rows, *heads = np.empty((4, len(given)), np.int64)
    none, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    states = np.zeros(panes.shape, np.uint8)
    found = Rows.empty(1, place(hits, none, none, states, panes, one, one, one, one, rows, *heads))
    found.panes[:], found.orders[:] = heads[1][: len(found)], (base + heads[2][: len(found)]) << NODES
    found.known.places[:] = places
    columns = (taken.astype(np.int64), ticks[None], values[None], values[None])
    given_at = (np.array([0, 1]), none, none, 3 * one)
    add_up(hits, rows, base, *given_at, *columns, 0, found.known)
    return found


@examples(60)
@given(GIVEN, GIVEN, st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_adding_up_in_columns_is_merging_partials(
    first: list[tuple[int, str, bool]], second: list[tuple[int, str, bool]], places: int, others: int, turned: bool
) -> None:
    """The same counts, sums and extremes by pane, whatever the parts, their order and their decimal places."""
    parts = [added_up(first, 0, places), added_up(second, len(first), others)]
    found = together(parts[:: -1 if turned else 1], 1).merged()
    expected: dict[int, Partial] = {}
    entries = [(*each, places) for each in first] + [(*each, others) for each in second]
    for order, (pane, text, taken, tried) in enumerate(entries):
        _, (is_exact,) = exact_ticks(numbers([text]), tried)
        here = Partial.of(text, order << NODES) if taken and is_exact else Partial()
        expected[pane] = expected.get(pane, Partial()).merge(here)
    if found is None:
        sizes = [abs(each.total) * 10 ** (max(places, others) - each.places) for each in expected.values()]
        assert max(sizes) > 2**50, "small numbers are plain"
        return
    assert found.panes.tolist() == sorted(expected)
    for pane, (partial,) in zip(found.panes.tolist(), (each.partials for each in found.read()), strict=True):
        whole = expected[pane]
        assert (partial.count, partial.least, partial.greatest) == (whole.count, whole.least, whole.greatest)
        assert Fraction(partial.total, 10**partial.places) == Fraction(whole.total, 10**whole.places)


def test_rows_give_back_what_was_written() -> None:
    """Tables hold plain numbers of many members and groups, and failures, infinities, totals and panes of any size."""
    odd = (
        merged(Partial.of(text, 2**40) for text in ("1e1000", "1e-1000", "INF", "NaN", "-0")),
        Partial.failed(DynamicError("no", code="X"), 2**41, ItemAt("f", 9, "<i/>")),
        Partial(),
    )
    plain = (merged(Partial.of(text, 0) for text in ("-1.5", "1099511627776", "0")), Partial(), Partial.of("-0", 9))
    panes = [
        (0, 0, 5, Pane(2**50, None, plain)),
        (0, 0, -(10**30), Pane(2**40, ItemAt("f", 7, "<i>é</i>"), odd)),
        (2, 0, 2**59, Pane(9, ItemAt("g", 0, ""), plain)),
        (3, 7, 5, Pane(2**40 + 3, None, plain)),
        (3, 8, 5, Pane(2, None, plain)),
        (3, 8, 6, Pane(4, None, odd)),
    ]
    many = ManyPanes.read(ManyPanes.of(panes).tables(), 2**50)
    assert [(member, number) for member, _, number, _ in many.odd] == [(0, -(10**30)), (3, 6)]
    for member, key, number, pane in panes:
        rows, others = many.member(member, 3)
        places = zip(rows.keys.tolist(), rows.panes.tolist(), strict=True)
        assert dict([*zip(places, rows.read(), strict=True), *others])[key, number] == pane
    assert not len(many.member(1, 3)[0])
    (rows, _), (_, moved, _) = many.member(2, 3), panes[1][3].moved(10).partials
    ahead, none = np.array([10]), np.zeros(1, np.int64)
    assert [each.partials[2] for each in rows.placed(none, ahead, none + 1, none).read()] == [Partial.of("-0", 19)]
    at = 2**41 + 10
    assert moved.failure == Failure(0, at, "no", "X", ((at, ItemAt("f", 9, "<i/>")),))


def test_a_window_of_another_kind_is_not_compiled() -> None:
    """Only plain items, leaves and child steps are; a path that leads nowhere gives nothing."""
    item = b"<i><t>1</t><n>2</n><c><m>3</m></c></i>"
    look = look_of(item)

    def compiled(source: str, path: str, reference: str = "t") -> bool:
        clause = parse(f'for $w in stream("s")/{source} |{reference} diff 10| return 1').body.clauses[0]  # type: ignore[union-attr]
        assert isinstance(clause, ast.For)
        panes = Panes.of(Extent(Fraction(10), Fraction(10)))
        query = PaneQuery(clause, (parse(path).body,), (frozenset(["sum"]),), panes)
        return compile_panes(query, "r", look) is not None

    for source, path, reference in (
        ("r/i", "$w/n", "t"),
        ("r/i[n > 1]", "$w/c/m[. > 1]", "./t"),
        ("r/k", "$w/n", "t"),
        ("r/i", "$w[n > 1]/missing", "/r/i/t"),
        ("r/i", "$w//m", "t"),
        ("r/i[n + 1 > 2]", "$w/n", "t"),
    ):
        assert compiled(source, path, reference), (source, path, reference)
    for source, path, reference in (
        ("r/i/c", "$w/m", "m"),
        ("r/i", "$w/c", "t"),
        ("r/i", "$w/n", "c"),
        ("r/i", "$w/n", "missing"),
    ):
        assert not compiled(source, path, reference), (source, path, reference)
