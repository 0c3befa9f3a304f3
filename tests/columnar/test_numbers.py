"""Numbers that columns read, spell and round are the law's, to the bit and to the byte."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.expressions.numbers import (
    NO_NUMBER,
    NUMBER,
    UNCLEAR,
    read_doubles,
    spelled_doubles,
    spelled_integers,
)
from anabranch.columnar.expressions.rounding import ROUNDINGS
from anabranch.columnar.scan.kernels import Numbers
from anabranch.law.functions import BUILTINS
from anabranch.values.numbers import exact_number, spell_double
from columnar.text_columns import column, texts_of
from mass import Mass

BITS = st.integers(0, 2**64 - 1).map(lambda bits: float(struct.unpack("d", struct.pack("Q", bits))[0]))
POWERS = [*(math.ldexp(1, power) for power in range(-1074, 1024)), *(float(f"1e{power}") for power in range(-323, 309))]
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
"""Doubles at the ends of what there is."""


def bits(number: float) -> bytes:
    """What tells -0 from 0, and one NaN from no other."""
    return b"NaN" if math.isnan(number) else struct.pack("d", number)


def around(numbers: Iterable[float]) -> list[float]:
    """Doubles with their neighbours, and all of them below zero."""
    given = np.array([*numbers])
    found = np.concatenate([given, np.nextafter(given, np.inf), np.nextafter(given, -np.inf)])
    return [*found.tolist(), *(-found).tolist()]


# --- reading ----------------------------------------------------------------------------------------------------


def read(texts: list[str]) -> list[tuple[float, int]]:
    found, state = np.empty(len(texts)), np.empty(len(texts), np.uint8)
    read_doubles(column(texts, "9"), found, state)
    return [*zip(found.tolist(), state.tolist(), strict=True)]


def significant(text: str) -> int:
    """How many digits of a number count."""
    mantissa = text.lower().partition("e")[0]
    return len("".join(filter(str.isdigit, mantissa)).strip("0"))


def halfway(text: str) -> bool:
    """Whether a number lies exactly between two doubles."""
    exact = exact_number(text)
    if exact is None or not exact.is_finite() or not math.isfinite(double := float(exact)):
        return False
    towards = math.nextafter(double, math.inf if exact > double else -math.inf)
    numerator, denominator = exact.as_integer_ratio()
    (a, b), (c, d) = double.as_integer_ratio(), towards.as_integer_ratio()
    return double != exact and 2 * numerator * b * d == denominator * (a * d + c * b)


def check_reading(texts: list[str]) -> None:
    """What is read is what the law reads; what is left open has too many digits, or lies between two doubles."""
    for text, (number, state) in zip(texts, read(texts), strict=True):
        exact = exact_number(text)
        if state == UNCLEAR:
            assert exact is not None
            assert significant(text) > 19 or halfway(text), text
        else:
            assert (state == NO_NUMBER) == (exact is None), text
            assert bits(number) == bits(math.nan if exact is None else float(exact)), text
        assert state in (NUMBER, NO_NUMBER, UNCLEAR)
        assert state == NUMBER or math.isnan(number)


SPELLINGS = [
    *("1", "1.5", " 1.5e3\n", "\t\r+7 ", "-0", "0.0", "00012", "1.", ".5", "-.5e-1", "1E5", "1e+5", "1e05", "0e7"),
    *("INF", "+INF", "-INF", "NaN", " NaN ", "\n-INF\t", "1.000000000000000000000000", "100000000000000000000000"),
    *("", " ", "+", "-", ".", "-.", "e5", ".e5", "1e", "1e+", "1e5.", "1 2", "1_0", "1,5", "--1", "+-1", "1e5e5"),
    *("inf", "Inf", "nan", "-NaN", "+NaN", "INFx", "IN", "NaNN", "Infinity", "1.2.3", "\u0661", "1\u00a0", "\u22121"),
    *("1e308", "1e309", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "-1e400"),
    *("1e-323", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-342", "9e-343", "-1e-400"),
    *("2.2250738585072011e-308", "2.2250738585072014e-308", "4.4501477170144023e-308", "6.631236871469758276e-316"),
    *("0e99999999999999999999", "-0e-99999999999999999999", "1e99999999999999999999", "-1e-99999999999999999999"),
    *("9007199254740993", "9007199254740993e0", "9007199254740992.5", "4503599627370497.5", "9007199254740993.0"),
    *("9223372036854775807", "9999999999999999999", "10000000000000000000", "18446744073709551616", "1e400"),
    *("1700000000123456789", "1700000000.123456789", "0." + "0" * 400 + "1e400", "1" + "0" * 400 + "e-400", "1e23"),
    *("8.589973e9", "5e125", "999e-026", "14489974452386", "7.0420557077594588669e-1", "12345.0123456789e-300"),
]  # fmt: skip


def test_every_spelling_of_a_number_is_read() -> None:
    """Blanks, signs, points, exponents and words as xs:double has them, and nothing else; no bound is too far."""
    check_reading(SPELLINGS)
    states = dict(zip(SPELLINGS, (state for _, state in read(SPELLINGS)), strict=True))
    assert states["1700000000.123456789"] == states["1700000000123456789"] == states["1e400"] == NUMBER
    assert states["100000000000000000000000"] == NUMBER
    assert states["4503599627370497.5"] == UNCLEAR  # between two doubles
    assert states["1_0"] == states["inf"] == states[""] == NO_NUMBER


@given(st.lists(st.text(st.sampled_from("0123456789+-.eE \nINFa_\u0661"), max_size=12)))
def test_other_texts_are_no_numbers(texts: list[str]) -> None:
    """What the law does not read is no number, for certain."""
    check_reading(texts)


@given(st.lists(BITS))
def test_doubles_are_read_back(numbers: list[float]) -> None:
    """Every double reads back from what Python spells."""
    check_reading([repr(number) for number in numbers])


def random_text(random: Random) -> str:
    """A number of up to 20 digits."""
    digits = str(random.randrange(10 ** random.randrange(1, 21)))
    point = random.randrange(len(digits) + 1)
    exponent = random.choice(["", "", f"e{random.randrange(-360, 330)}", f"E{random.randrange(-30, 30):+}"])
    return f"{random.choice(['', '-'])}{digits[:point]}{random.choice(['', '.'])}{digits[point:]}{exponent}"


def between(random: Random) -> str:
    """A number of up to 19 digits that is very near to the middle of two doubles."""
    double = abs(random.choice([random.random() * 10 ** random.randrange(-10, 20), float(random.getrandbits(60))]))
    low, high = np.array([double, np.nextafter(double, np.inf)]).astype(np.longdouble)
    return f"{(low + high) / 2:.{random.randrange(16, 19)}e}"


def test_many_numbers_are_read(mass: Mass) -> None:
    """At random, near the middle between two doubles, and of all sizes."""
    for case in mass.cases(2_000):
        random = Random(case)
        check_reading([make(random) for make in (random_text, between) for _ in range(500)])


# --- spelling ---------------------------------------------------------------------------------------------------


def check_spelling(numbers: Iterable[float]) -> None:
    given = np.array([*numbers])
    assert texts_of(spelled_doubles(given)) == [spell_double(number) for number in given.tolist()]


def test_doubles_of_all_kinds_are_spelled() -> None:
    """At the ends of what there is, where the notation changes, and around all powers of 2 and 10."""
    check_spelling([])
    check_spelling(EDGES)
    check_spelling(around([1e-6, 1e6, 1e11, 1e15, 1e16, 2**53, 0.3, 36.6, 999999.9995, 0.001, 12.345, 1.5]))
    check_spelling(around(POWERS))
    check_spelling([-1.2345678901234567e-6] * 100)  # as long as they get


@given(st.lists(st.one_of(BITS, st.floats(), st.integers(-(2**63), 2**63).map(float))))
def test_doubles_are_spelled(numbers: list[float]) -> None:
    """As the law spells them."""
    check_spelling(numbers)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_spelled(integers: list[int]) -> None:
    """As Python spells them."""
    integers += [0, -1, 9, 10, 99, 100, 2**63 - 1, -(2**63), *(10**power for power in range(19))]
    assert texts_of(spelled_integers(np.array(integers, np.int64))) == [*map(str, integers)]


def random_doubles(case: int, count: int) -> Numbers:
    """Doubles of one kind, each a different one."""
    random = np.random.default_rng(case)
    integers = random.integers(-(2**63), 2**63, count) >> random.integers(0, 63, count)
    match case % 6:
        case 0:
            return integers.view(np.float64)
        case 1:
            return random.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
        case 2:
            return integers.astype(np.float64)
        case 3:
            return integers / 10.0 ** random.integers(0, 25, count)
        case 4:
            return (random.integers(-1_000, 3_000, count) / 10 - 32) * 5 / 9
        case _:
            return random.standard_normal(count) * 10.0 ** random.integers(-12, 12, count)


def test_many_doubles_are_spelled(mass: Mass) -> None:
    """Millions at random: all bits, subnormal ones, integers, short decimals, and what arithmetic gives."""
    for case in mass.cases(6_000):
        check_spelling(random_doubles(case, 1_000).tolist())


# --- rounding ---------------------------------------------------------------------------------------------------

HALVES = [0.5, 1.5, 2.5, 0.25, 0.75, 1e15 + 0.5, 4503599627370495.5, 4503599627370496.5, 2**52, 2**53, 1e300, 5e-324]


@pytest.mark.parametrize("name", ROUNDINGS)
def test_doubles_are_rounded(name: str) -> None:
    """As the law rounds them, with the sign of what becomes 0."""
    numbers = [*EDGES, *around(HALVES), *random_doubles(3, 1_000).tolist(), *random_doubles(5, 1_000).tolist()]
    law = BUILTINS[name]
    for number, found in zip(numbers, ROUNDINGS[name](np.array(numbers)).tolist(), strict=True):
        (expected,) = law([number])
        assert isinstance(expected, float)
        assert bits(found) == bits(expected), number
