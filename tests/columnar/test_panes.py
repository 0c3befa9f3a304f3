from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.algebra.aggregate import Partial, merged
from anabranch.algebra.numbers import exact_number
from anabranch.algebra.window import Extent, Panes
from anabranch.columnar.kernels import number_at
from anabranch.columnar.kernels_panes import add_up, best_places, exact_ticks, read_decimals, sums, text_ticks
from anabranch.columnar.pane_query import PaneQuery, compile_panes
from anabranch.columnar.pane_rows import Pane, read, written
from anabranch.columnar.template import Template
from anabranch.errors import DynamicError
from anabranch.language import ast, parse
from anabranch.stream.limits import Limits
from anabranch.stream.parse import parse_item

DIGITS = st.tuples(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 18)).map(
    lambda given: f"{Decimal(given[0]).scaleb(-given[1]):f}"
)

WRITTEN = st.from_regex(r"[+-]?[0-9]{0,19}(\.[0-9]{0,12})?[x ]?", fullmatch=True)


def numbers(texts: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What the shredder makes of texts."""
    raw = [np.frombuffer(text.encode(), np.uint8) for text in texts]
    return np.array([number_at(each, 0, len(each))[0] for each in raw], np.float64)


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), DIGITS, st.booleans()), min_size=1, max_size=20), st.booleans())
def test_adding_up_in_columns_is_merging_partials(given: list[tuple[int, str, bool]], turned: bool) -> None:
    """The same counts, sums and extremes by pane, in whatever order the entries are given."""
    entries = [(order, row, text, taken) for order, (row, text, taken) in enumerate(given)]
    places = best_places(numbers([text for _, text, _ in given]))
    ticks, exact = exact_ticks(numbers([text for _, text, _ in given]), places)
    order = np.arange(len(given))[:: -1 if turned else 1]
    counts, high, low, least_at, greatest_at = (np.zeros(3, np.int64) for _ in range(5))
    least, greatest = np.full(3, np.nan), np.full(3, np.nan)
    taken = np.array([each[3] for each in entries]) & exact
    rows = np.array([each[1] for each in entries])
    values = numbers([each[2] for each in entries])
    columns = (rows[order], order, taken[order], ticks[order], values[order])
    add_up(*columns, counts, high, low, least, least_at, greatest, greatest_at)
    for row in range(3):
        whole = merged(Partial.of(text, at) for at, each, text, _ in entries if each == row and taken[at])
        assert counts[row] == whole.count
        assert Fraction(sums(high, low)[row], 10**places) == Fraction(whole.total, 10**whole.places)
        if whole.least and whole.greatest:
            assert (least[row], least_at[row]) == whole.least
            assert (greatest[row], greatest_at[row]) == whole.greatest


def test_rows_give_back_what_was_written() -> None:
    """A state holds failures, infinities, totals of any length and panes of any number."""
    partials = (
        merged(Partial.of(text, 2**40) for text in ("1e1000", "1e-1000", "INF", "NaN", "-0")),
        Partial.failed(DynamicError("no", code="X"), 2**41),
    )
    panes = [(-(10**30), Pane(2**40, "f", 7, "<i>é</i>", partials)), (5, Pane(3, "g", 0, "", (Partial(), Partial())))]
    assert list(read(written(panes, 2))) == panes
    (_, moved), _ = read(written(panes, 2), base=10)
    assert (moved.order, moved.partials[1].failure) == (2**40 + 10, (0, 2**41 + 10, "no", "X"))


def test_a_window_of_another_kind_is_not_compiled() -> None:
    """Only plain items, leaves and child steps are; a path that leads nowhere gives nothing."""
    item = b"<i><t>1</t><n>2</n><c><m>3</m></c></i>"
    template = Template.of(parse_item(item, Limits()))
    assert template is not None

    def compiled(source: str, path: str, reference: str = "t") -> bool:
        clause = parse(f'for $w in stream("s")/{source} |{reference} diff 10| return 1').body.clauses[0]  # type: ignore[union-attr]
        assert isinstance(clause, ast.For)
        panes = Panes.of(Extent(Fraction(10), Fraction(10)))
        query = PaneQuery(clause, (parse(path).body,), (True,), panes)
        return compile_panes(query, "r", template) is not None

    for source, path, reference in (
        ("r/i", "$w/n", "t"),
        ("r/i[n > 1]", "$w/c/m[. > 1]", "./t"),
        ("r/k", "$w/n", "t"),
        ("r/i", "$w[n > 1]/missing", "/r/i/t"),
    ):
        assert compiled(source, path, reference), (source, path, reference)
    for source, path, reference in (
        ("r/i/c", "$w/m", "m"),
        ("r/i", "$w/c", "t"),
        ("r/i", "$w//m", "t"),
        ("r/i", "$w/n", "c"),
        ("r/i", "$w/n", "missing"),
        ("r/i[n + 1 > 2]", "$w/n", "t"),
    ):
        assert not compiled(source, path, reference), (source, path, reference)
