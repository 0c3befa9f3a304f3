"""Texts that columns search, cut, compare and make are those of the law's functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.expressions import texts as kernels
from anabranch.columnar.expressions.texts import LOWER_CASE, UPPER_CASE, TextColumn, Translation
from anabranch.law.functions import BUILTINS
from anabranch.values.sequences import Value
from columnar.text_columns import column, texts_of
from mass import Mass

TEXT = st.text(st.sampled_from("aabAB1 \t\n\r\u00e4\u20ac\U0001f600\u00a0\u0130"), max_size=12)
ROWS = st.lists(st.tuples(TEXT, TEXT), max_size=8)
POSITION = st.one_of(st.integers(-3, 15).map(float), st.integers(-30, 150).map(lambda tenths: tenths / 10), st.floats())
TWO_TEXTS: dict[str, Callable[[TextColumn, TextColumn], object]] = {
    "contains": kernels.contains,
    "starts-with": kernels.starts_with,
    "ends-with": kernels.ends_with,
    "substring-before": kernels.substring_before,
    "substring-after": kernels.substring_after,
    "=": kernels.equal,
    "order": kernels.order_of,
}
"""What takes two texts, by the law's name."""


def law(name: str, *arguments: Value) -> Value:
    """What the law makes of one value each."""
    match name, arguments:
        case "=", (left, right):
            return left == right
        case "order", (str(left), str(right)):
            return (left > right) - (left < right)
    (found,) = BUILTINS[name](*([each] for each in arguments))
    return found


def values(found: object) -> Sequence[Value]:
    """A column as a list."""
    if isinstance(found, TextColumn):
        return texts_of(found)
    assert isinstance(found, np.ndarray)
    listed: list[Value] = found.tolist()
    return listed


# --- searching and comparing --------------------------------------------------------------------------------------


def check_two(name: str, rows: Sequence[tuple[str, str]]) -> None:
    """A column with a column, and with one text on either side."""
    kernel = TWO_TEXTS[name]
    left, right = [row[0] for row in rows], [row[1] for row in rows]
    assert values(kernel(column(left, "a"), column(right, "b"))) == [law(name, *row) for row in rows]
    for one in {*left[:2], *right[:2], ""}:
        assert values(kernel(column(left, "a"), column([one]))) == [law(name, text, one) for text in left]
        assert values(kernel(column([one]), column(right, "a"))) == [law(name, one, text) for text in right]


@pytest.mark.parametrize("name", TWO_TEXTS)
@given(rows=ROWS)
def test_two_texts(name: str, rows: list[tuple[str, str]]) -> None:
    """Whatever takes two texts gives what the law gives, and looks at nothing but these texts."""
    check_two(name, rows)


@pytest.mark.parametrize("name", TWO_TEXTS)
def test_two_long_texts(name: str) -> None:
    """Parts are found at every place of texts of all lengths, also across what is looked at together."""
    parts = ["needle", "\u20ac", "n" * 300]
    rows = [
        (("x" * before + part + "y" * behind)[cut:], part)
        for part in parts
        for before in (0, 1, 31, 250, 255, 256, 257, 600)
        for behind in (0, 1, 300)
        for cut in (0, 1)
    ]
    check_two(name, rows)


@pytest.mark.parametrize("name", ["contains", "substring-before", "substring-after"])
def test_a_search_that_is_made_to_be_slow(name: str) -> None:
    """Texts with a long beginning of the part at every place take time that is linear in their bytes, too."""
    text, part = "a" * 2_000_000, "a" * 500_000 + "b" + "a" * 500_000
    rows = [(text, part), (text + "b" + text, part), ("ab" * 1_000_000, "ab" * 250_000 + "b" + "ab" * 250_000 + "a")]
    columns = column(row[0] for row in rows), column(row[1] for row in rows)
    TWO_TEXTS[name](column(["ab"]), column(["b"]))  # compiled
    began = perf_counter()
    found = values(TWO_TEXTS[name](*columns))
    assert perf_counter() - began < 5  # 5e11 comparisons take minutes
    assert found == [law(name, *row) for row in rows]


@given(st.text("ab", max_size=40), st.text("ab", min_size=1, max_size=6))
def test_the_search_for_hostile_texts(text: str, part: str) -> None:
    """It finds what Python finds, from any place on."""
    for begin in range(len(text)):
        found = kernels._find_by_borders(column([text]).data, begin, len(text), column([part]).data)
        assert found == text.find(part, begin)


def test_order_is_that_of_code_points() -> None:
    """Characters beyond 16 bits come last, as they do not in UTF-16."""
    assert kernels.order_of(column(["\uffff", "a", "", "b"]), column(["\U00010000", "ab", "", "ab"])).tolist() == [
        -1, -1, 0, 1]  # fmt: skip


# --- cutting ------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(TEXT, POSITION, POSITION), max_size=8))
def test_substrings(rows: list[tuple[str, float, float]]) -> None:
    """Positions count code points, are rounded half up, and may lie anywhere."""
    given_texts = column((row[0] for row in rows), "a")
    firsts, lengths = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    assert texts_of(kernels.substring(given_texts, firsts)) == [law("substring", *row[:2]) for row in rows]
    assert texts_of(kernels.substring(given_texts, firsts, lengths)) == [law("substring", *row) for row in rows]
    for _, first, length in rows[:1]:
        found = kernels.substring(given_texts, np.array([first]), np.array([length]))
        assert texts_of(found) == [law("substring", row[0], first, length) for row in rows]


def test_substrings_at_the_edges() -> None:
    """The W3C's own examples, and positions where rounding or NaN decide."""
    edges = [-math.inf, math.inf, math.nan, 0.0, -0.0, 0.5, 1.0, 1.5, 2.5, 0.49999999999999994, -42.0, 3.0, 6.0, 1e300]
    rows = [(text, a, b) for text in ("12345", "\u00e4\u20ac\U0001f600", "") for a in edges for b in edges]
    found = kernels.substring(
        column((row[0] for row in rows), "x"), np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    )
    assert texts_of(found) == [law("substring", *row) for row in rows]


# --- one text -----------------------------------------------------------------------------------------------------


def check_one(texts: list[str]) -> None:
    given_texts = column(texts, " ")
    assert kernels.string_length(given_texts).tolist() == [law("string-length", text) for text in texts]
    assert texts_of(kernels.normalize_space(given_texts)) == [law("normalize-space", text) for text in texts]
    for name, translation in (("upper-case", UPPER_CASE), ("lower-case", LOWER_CASE)):
        made, unclear = kernels.translate(given_texts, translation)
        assert unclear.tolist() == [not text.isascii() for text in texts]
        for text, found in zip(texts, texts_of(made), strict=True):
            assert not text.isascii() or found == law(name, text)


@given(st.lists(TEXT))
def test_one_text(texts: list[str]) -> None:
    """Lengths count code points; white space is XML's; case is changed where all is ASCII, else left to the law."""
    check_one(texts)


def test_every_character_of_ascii_changes_its_case() -> None:
    """As the law has it."""
    texts = [chr(code) for code in range(128)]
    assert texts_of(kernels.translate(column(texts), UPPER_CASE)[0]) == [law("upper-case", text) for text in texts]
    assert texts_of(kernels.translate(column(texts), LOWER_CASE)[0]) == [law("lower-case", text) for text in texts]


def test_texts_that_are_normal_are_not_copied() -> None:
    """Only where white space between words changes is there anything to make."""
    normal, other = column(["a b", "", " c\t", "\n"]), column(["a b", "c  d"])
    assert kernels.normalize_space(normal).data is normal.data
    assert kernels.normalize_space(other).data is not other.data
    assert texts_of(kernels.normalize_space(normal)) == ["a b", "", "c", ""]


@given(st.lists(TEXT), TEXT, TEXT)
def test_translations(texts: list[str], old: str, new: str) -> None:
    """Characters are replaced or left out; what may be wide is left to the law."""
    translation = Translation.of(old, new)
    if translation is None:
        assert not new.isascii()
        return
    made, unclear = kernels.translate(column(texts, "a"), translation)
    for text, found, open_ in zip(texts, texts_of(made), unclear.tolist(), strict=True):
        assert open_ == (not text.isascii() and not old.isascii())
        assert open_ or found == law("translate", text, old, new)


# --- several texts ------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=8), TEXT)
def test_texts_are_joined(rows: list[tuple[str, str, str]], one: str) -> None:
    """Columns and single texts, in their order."""
    first, second, third = (column((row[place] for row in rows), "x") for place in range(3))
    made, unclear = kernels.concat([first, column([one]), second, third])
    assert texts_of(made) == [law("concat", row[0], one, *row[1:]) for row in rows]
    assert not unclear.any()
    assert texts_of(kernels.concat([TextColumn.of(one.encode()), TextColumn.of(b"b")])[0]) == [one + "b"]


def test_texts_that_take_too_much_room_are_unclear(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law judges them; those before them are joined."""
    monkeypatch.setattr(kernels, "MOST_BYTES", 10)
    made, unclear = kernels.concat([column(["a", "bcd", "e", "f"]), column(["123", "12345678", "1", "2"])])
    assert unclear.tolist() == [False, True, True, True]
    assert texts_of(made)[0] == "a123"
    assert len(made.data) <= 10


# --- many ---------------------------------------------------------------------------------------------------------


def random_text(random: Random) -> str:
    letters = random.choice(["ab", "a", "ab \t\n", "abcdefgh\u00e4\u20ac\U0001f600"])
    return "".join(random.choices(letters, k=random.randrange(random.choice([3, 10, 600]))))


def test_many_texts(mass: Mass) -> None:
    """Long ones of few letters, in which parts stand often and nearly."""
    for case in mass.cases(2_000):
        random = Random(case)
        texts = [random_text(random) for _ in range(20)]
        cut = [text[(start := random.randrange(len(text) + 1)) : start + random.randrange(20)] for text in texts]
        for name in TWO_TEXTS:
            check_two(name, [*zip(texts, cut, strict=True), *zip(cut, random.sample(cut, 20), strict=True)])
        check_one(texts)
