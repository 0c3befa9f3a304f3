from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates.exact import exact_sum
from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, Untyped, compare, exact_number, order_rank, spell
from anabranch.values.numbers import nearest_double
from reference.asking import ask, error, leaves, stream, value

# --- spelling (LAWS 2.1) ----------------------------------------------------------------------------------

SPELLINGS: tuple[tuple[Atomic, str], ...] = (
    (1.0, "1"),
    (1.3, "1.3"),
    (-1.5, "-1.5"),
    (0.0, "0"),
    (-0.0, "-0"),
    (999999.0, "999999"),
    (999999.9, "999999.9"),
    (1e6, "1.0E6"),
    (1.5e6, "1.5E6"),
    (1e7, "1.0E7"),
    (-12345678.9, "-1.23456789E7"),
    (1e-6, "0.000001"),
    (1.5e-6, "0.0000015"),
    (1e-7, "1.0E-7"),
    (9.99e-7, "9.99E-7"),
    (1e21, "1.0E21"),
    (5e-324, "5.0E-324"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (0.1 + 0.2, "0.30000000000000004"),
    (math.inf, "INF"),
    (-math.inf, "-INF"),
    (math.nan, "NaN"),
    (0, "0"),
    (-7, "-7"),
    (10**20, "100000000000000000000"),
    (Decimal("1.30"), "1.3"),
    (Decimal("100"), "100"),
    (Decimal("0.0"), "0"),
    (Decimal("-0.0"), "0"),
    (Decimal("0.0000001"), "0.0000001"),
    (Decimal("1E+3"), "1000"),
    (True, "true"),
    (False, "false"),
    (Untyped("1.30"), "1.30"),
    ("x", "x"),
)


@pytest.mark.parametrize(("number", "text"), SPELLINGS)
def test_values_are_spelled_as_xquery_does(number: Atomic, text: str) -> None:
    """Doubles from 1e-6 up to 1e6 are written plainly, others with an exponent; decimals always plainly."""
    assert spell(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_spelled_double_is_read_back(number: float) -> None:
    """The spelling says which double it is."""
    assert float(spell(number)) == number


# --- reading ----------------------------------------------------------------------------------------------

NUMBERS = (
    ("1", Decimal(1)),
    (" 1.50\n", Decimal("1.50")),
    ("-.5", Decimal("-0.5")),
    ("+3.", Decimal(3)),
    ("1e3", Decimal(1000)),
    ("1E-2", Decimal("0.01")),
    ("INF", Decimal("Infinity")),
    ("-INF", Decimal("-Infinity")),
    ("+INF", Decimal("Infinity")),
    ("1e999999", Decimal("Infinity")),
    ("-1e99999999999999999999", Decimal("-Infinity")),
    ("1e-999999", Decimal(0)),
)


@pytest.mark.parametrize(("text", "number"), NUMBERS)
def test_text_that_is_a_number(text: str, number: Decimal) -> None:
    """What xs:double accepts is a number, with white space around it."""
    assert exact_number(text) == number


@pytest.mark.parametrize(
    "text", ["", " ", "x", "1 2", "1,5", "0x1", "inf", "nan", "infinity", "1_0", "--1", "e5", "\u0663"]
)
def test_text_that_is_no_number(text: str) -> None:
    """What Python or others would read as a number, and xs:double does not, is none."""
    assert exact_number(text) is None


def test_not_a_number_is_known() -> None:
    """NaN is one of the values of xs:double."""
    number = exact_number("NaN")
    assert number is not None
    assert number.is_nan()


# --- sums (LAWS 2.2) --------------------------------------------------------------------------------------

SUMS = (
    ("sum(stream('s')/r/i/n)", ("0.1",) * 10, "1"),
    ("avg(stream('s')/r/i/n)", ("0.1",) * 10, "0.1"),
    ("sum(stream('s')/r/i/n)", ("1e308", "1e308"), "INF"),
    ("avg(stream('s')/r/i/n)", ("1e308", "1e308"), "1.0E308"),
    ("sum(stream('s')/r/i/n)", ("1e308", "1e308", "-1e308"), "1.0E308"),
    ("sum(stream('s')/r/i/n)", ("1e16", "1", "-1e16"), "1"),
    ("sum(stream('s')/r/i/n)", ("INF", "1"), "INF"),
    ("sum(stream('s')/r/i/n)", ("INF", "-INF"), "NaN"),
    ("sum(stream('s')/r/i/n)", ("NaN", "1"), "NaN"),
    ("avg(stream('s')/r/i/n)", ("1", "2"), "1.5"),
    ("avg(stream('s')/r/i/n)", ("1", "1", "2"), "1.3333333333333333"),
    ("sum(stream('s')/r/i/n)", ("1000000", "0"), "1.0E6"),
    ("max(stream('s')/r/i/n)", ("9", "10", "-3"), "10"),
    ("min(stream('s')/r/i/n)", ("9", "1.50"), "1.5"),
    ("max(stream('s')/r/i/n)", ("1", "NaN"), "NaN"),
    ("count(stream('s')/r/i/n)", ("x", "y"), "2"),
)


@pytest.mark.parametrize(("query", "numbers", "answer"), SUMS)
def test_aggregates_are_exact(query: str, numbers: tuple[str, ...], answer: str) -> None:
    """A sum is the double nearest to the true sum, an average the one nearest to the true average."""
    assert ask(query, {"s": leaves("n", *numbers)}).text == answer


@given(st.lists(st.decimals(-1000, 1000, places=3), max_size=20), st.randoms())
def test_the_order_of_a_sum_cannot_show(numbers: list[Decimal], order: st.DataObject) -> None:
    """Any order, and any grouping into partial sums, gives the same double."""
    texts = [Untyped(str(each)) for each in numbers]
    shuffled = list(texts)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    half = len(texts) // 2
    parts = exact_sum(shuffled[:half]) + exact_sum(shuffled[half:])
    assert nearest_double(exact_sum(texts)) == nearest_double(exact_sum(shuffled)) == nearest_double(parts)
    assert nearest_double(exact_sum(texts)) == float(sum(numbers, Decimal(0)))


def test_aggregates_of_nothing() -> None:
    """The sum of nothing is 0, its count 0, its average, minimum and maximum empty."""
    assert value("sum(()), count(()), avg(()), min(()), max(())") == "0 0"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sum(<a>x</a>)", "FORG0001"),
        ("avg(<a/>)", "FORG0001"),
        ("max((<a>x</a>, 1))", "FORG0001"),
        ("sum(true())", "FORG0006"),
        ("max((1, 'a'))", "FORG0006"),
        ("min((true(), 1))", "FORG0006"),
    ],
)
def test_what_has_no_sum_is_an_error(query: str, code: str) -> None:
    """Text that is no number, and values of several kinds, raise as the W3C says."""
    assert error(query) == code


# --- comparisons (LAWS 2.3) -------------------------------------------------------------------------------

U = Untyped
COMPARISONS: tuple[tuple[Atomic, str, Atomic, bool], ...] = (
    # untyped with untyped: order by number where both are, equality by text
    (U("99"), "<", U("100"), True),
    (U("99"), ">=", U("100"), False),
    (U("9"), "<", U("10"), True),
    (U("b"), "<", U("c"), True),
    (U("9"), "<", U("x"), True),
    (U("10"), "<", U("9x"), True),
    (U("1.3"), "=", U("1.30"), False),
    (U("1.3"), "!=", U("1.30"), True),
    (U("1.3"), "<=", U("1.30"), True),
    (U("a"), "=", U("a"), True),
    (U("NaN"), "<", U("1"), False),
    (U("NaN"), ">=", U("1"), False),
    (U("NaN"), "=", U("NaN"), True),
    # untyped with a number: by exact decimal value
    (U("1.30"), "=", Decimal("1.3"), True),
    (U("1.30000000000000000001"), ">", Decimal("1.3"), True),
    (U("1.30000000000000000001"), "=", 1.3, True),
    (U(" 5 "), "=", 5, True),
    (U("1e1"), "=", 10, True),
    (5, "<", U("6"), True),
    (U("NaN"), "<", 5, False),
    (U("NaN"), "!=", 5, True),
    (U("INF"), ">", 10**400, True),
    (U("9007199254740993"), "=", 9007199254740993, True),
    (U("9007199254740993"), ">", 9007199254740992, True),
    # untyped with a string: text; with a boolean: boolean
    (U("10"), "<", "9", True),
    (U("1"), "=", True, True),
    (U("false"), "=", False, True),
    # typed with typed
    ("a", "<", "b", True),
    (1, "<", Decimal("1.5"), True),
    (1, "=", 1.0, True),
    (Decimal("0.1"), "=", 0.1, True),
    (True, ">", False, True),
    (math.nan, "=", math.nan, False),
    (math.nan, "!=", math.nan, True),
    (10**400, ">", 1.0, True),
)


@pytest.mark.parametrize(("left", "operator", "right", "holds"), COMPARISONS)
def test_comparisons(left: Atomic, operator: str, right: Atomic, holds: bool) -> None:
    """Comparisons are those of LAWS 2.3, and they can be turned round."""
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
    assert compare(operator, left, right) is holds  # type: ignore[arg-type]
    assert compare(turned, right, left) is holds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "right", "code"),
    [
        (U("x"), 1, "FORG0001"),
        (U(""), 1.0, "FORG0001"),
        (U("x"), True, "FORG0001"),
        ("1", 1, "XPTY0004"),
        (True, 1, "XPTY0004"),
        ("a", False, "XPTY0004"),
    ],
)
def test_what_cannot_be_compared(left: Atomic, right: Atomic, code: str) -> None:
    """Text that is no number, and values of different kinds, raise as the W3C says."""
    with pytest.raises(DynamicError) as caught:
        compare("=", left, right)
    assert caught.value.code == code


CASES = (
    ("1", "$p/en >= 4 and $p/en <= 2", "<en>1</en><en>5</en>", True),
    ("3, not less", "not($p/en < 5)", "<en>NaN</en>", True),
    ("3, greater", "$p/en >= 5", "<en>NaN</en>", False),
    ("15", "$p/x/phc >= $p/y/phc", "<x><phc>99</phc></x><y><phc>100</phc></y>", False),
    ("16, two texts", "$p/a = $p/b", "<a>1.3</a><b>1.30</b>", False),
    ("16, a literal", "$p/a = 1.30", "<a>1.3</a><b>1.30</b>", True),
    ("a text made a number by arithmetic", "$p/a + 0 = $p/b", "<a>1.3</a><b>1.30</b>", True),
    ("a double literal is exact too", "$p/a > 1.3e0", "<a>1.30000000000000000001</a>", True),
    ("nothing compares with nothing", "$p/a = $p/b", "<c/>", False),
    ("nothing differs from nothing", "$p/a != 1", "<c/>", False),
    ("several may both equal and differ", "$p/a = 1 and $p/a != 1", "<a>1</a><a>2</a>", True),
)


@pytest.mark.parametrize(("where", "item", "selected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_cases_of_the_laws(where: str, item: str, selected: bool) -> None:
    """The cases about values in LAWS 6, by their numbers, and their neighbours."""
    answer = ask(f"for $p in stream('s')/r/i where {where} return <hit/>", {"s": stream(item)})
    assert (answer.text, answer.dead) == ("<hit/>" if selected else "", [])


ORDERS: tuple[tuple[Atomic | None, ...], ...] = (
    (None, U("NaN"), U("-INF"), U("-1"), U("0"), U("1.5"), U("99"), U("1e2"), U("INF"), U(""), U("a"), U("b")),
    (None, math.nan, -1, 0.5, 2, Decimal("2.5")),
    (False, True),
    ("", "10", "9", "a"),
)


@pytest.mark.parametrize("keys", ORDERS)
def test_order_by_has_one_order(keys: tuple[Atomic | None, ...]) -> None:
    """Nothing comes first, then NaN, then numbers by value, then text."""
    ranks = [order_rank(key) for key in keys]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


# --- and, or, arithmetic (LAWS 2.4) -----------------------------------------------------------------------

BAD = "(1 div 0 = 1)"
ABSORBED = (
    (f"1 = 1 or {BAD}", "true"),
    (f"{BAD} or 1 = 1", "true"),
    (f"1 = 2 and {BAD}", "false"),
    (f"{BAD} and 1 = 2", "false"),
    (f"{BAD} or {BAD} or 1 = 1", "true"),
    ("(<a>x</a>, <a>2</a>) = 2", "true"),
    ("(<a>2</a>, <a>x</a>) = 2", "true"),
    ("2 = (<a>x</a>, <a>2</a>)", "true"),
    ("some $x in (0, 1) satisfies 1 div $x = 1", "true"),
    ("every $x in (0, 1) satisfies 1 div $x = 2", "false"),
    ("some $x in (0, 1), $y in ($x, 1 div $x) satisfies $y = 1", "true"),
)


@pytest.mark.parametrize(("query", "answer"), ABSORBED)
def test_what_decides_absorbs_errors(query: str, answer: str) -> None:
    """`and` is false where one side is, `or` and existential comparisons true where one part is."""
    assert value(query) == answer


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"1 = 1 and {BAD}", "FOAR0001"),
        (f"{BAD} or 1 = 2", "FOAR0001"),
        (f"not({BAD})", "FOAR0001"),
        ("(<a>x</a>, <a>2</a>) = 3", "FORG0001"),
        ("every $x in (0, 1) satisfies 1 div $x = 1", "FOAR0001"),
        ("some $x in (0, 1) satisfies 1 div $x = 5", "FOAR0001"),
        (f"if {BAD} then 1 else 2", "FOAR0001"),
        ("5 mod 0", "FOAR0001"),
        ("1 div 0.0", "FOAR0001"),
        ("'a' + 1", "XPTY0004"),
        ("true() + 1", "XPTY0004"),
        ("-'a'", "XPTY0004"),
        ("<a>x</a> + 1", "FORG0001"),
        ("(1, 2) + 1", "XPTY0004"),
        ("1 + (1, 2)", "XPTY0004"),
        ("boolean((1, 2))", "FORG0006"),
        ("(1, 2) and 1 = 1", "FORG0006"),
        ("for $x in (1, 2) order by (1, 2) return 1", "XPTY0004"),
    ],
)
def test_what_decides_nothing_raises(query: str, code: str) -> None:
    """An error that nothing settles comes out with its W3C code."""
    assert error(query) == code


ARITHMETIC = (
    ("1 + 2", "3"),
    ("0.1 + 0.2", "0.3"),
    ("0.1e0 + 0.2e0", "0.30000000000000004"),
    ("1 + 2 * 3 - 4", "3"),
    ("7 mod 3, -7 mod 3, 7 mod -3, -7 mod -3", "1 -1 1 -1"),
    ("7.5 mod 2", "1.5"),
    ("-7.5e0 mod 2", "-1.5"),
    ("5e0 mod 0", "NaN"),
    ("10 div 4", "2.5"),
    ("6 div 3", "2"),
    ("1 div 3", "0.333333333333333333"),
    ("1e0 div 3", "0.3333333333333333"),
    ("1e0 div 0, -1e0 div 0, 0e0 div 0", "INF -INF NaN"),
    ("1e308 + 1e308", "INF"),
    ("-(1), -(-1), +1, -0e0, -0", "-1 1 1 -0 0"),
    ("() + 1", ""),
    ("1 - ()", ""),
    ("-()", ""),
    ("<a>5</a> + 1", "6"),
    ("<a>1</a> * 1000000", "1.0E6"),
    ("-<a>5</a>", "-5"),
    ("100000000000 * 100000000000", "10000000000000000000000"),
    ("1.5 * 1.5", "2.25"),
    ("1000000 + 0", "1000000"),
)


@pytest.mark.parametrize(("query", "answer"), ARITHMETIC)
def test_arithmetic(query: str, answer: str) -> None:
    """Integers, decimals and doubles calculate as in XQuery; untyped text becomes a double."""
    assert value(query) == answer
