"""Values that a unit change has made numbers: what a query from before the change makes of them (LAWS 2.3, 4.3)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algebra.accents.making import alter
from anabranch.language import parse
from anabranch.stream.elements import Accent
from anabranch.stream.tree import Element, Measure, Text
from anabranch.values.atomic import Measured
from anabranch.values.sequences import atom
from evolving.measuring import ask, behind
from oracle.saxon import canonical, judge

CELSIUS = alter("t", "(. - 32) * 5 div 9")
THIRD = alter("t", ". * 3")
"""What is written is three times what is meant."""


def stream(*contents: str) -> str:
    return f"<r>{''.join(f'<i>{each}</i>' for each in contents)}</r>"


def temperatures(*values: object) -> str:
    return stream(*(f"<t>{each}</t>" for each in values))


def answer(query: str, items: str, *accents: Accent) -> str:
    """The answer of a query over `s`, whose items all come behind the accents."""
    return ask(query, {"s": behind(items, *accents)}).text


FOR = 'for $i in stream("s")/r/i '

CASES = (
    ("18", FOR + "where $i/t >= 38.84 return <hit/>", temperatures("3.8"), temperatures("38.84"), "<hit/>"),
    ("18, not", FOR + "where $i/t > 38.84 return <hit/>", temperatures("3.8"), temperatures("38.84"), ""),
    ("double", FOR + "where $i/t >= 3.884e1 return <hit/>", temperatures("3.8"), temperatures("38.84"), "<hit/>"),
    ("copy", FOR + "return $i/t", temperatures("25.0"), temperatures("77"), "<t>77</t>"),
    ("arithmetic", FOR + "return <o>{ $i/t + 1 }</o>", temperatures("25.0"), temperatures("77"), "<o>78</o>"),
    (
        "sum",
        'for $w in stream("s")/r/i |count 3| return <o>{ sum($w/t), avg($w/t), min($w/t), max($w/t), count($w/t) }</o>',
        temperatures("20", "25", "30"),
        temperatures("68", "77", "86"),
        "<o>231 77 68 86 3</o>",
    ),
    (
        "median and stddev",
        'for $w in stream("s")/r/i |count 4| return <o>{ median($w/t), stddev($w/t[. > 70]) }</o>',
        temperatures("20", "25", "30", "1"),
        temperatures("68", "77", "86", "33.8"),
        "<o>72.5 6.363961030678928</o>",
    ),
    (
        "order",
        f"<o>{{ {FOR} order by $i/t return string($i/t) }}</o>",
        temperatures("100", "20", "9", "-40"),
        temperatures("212", "68", "48.2", "-40"),
        "<o>-40 48.2 68 212</o>",
    ),
    (
        "text",
        FOR + "return <o>{ string-length($i/t), concat($i/t, ' F'), contains($i/t, '7'), $i/t = '77' }</o>",
        temperatures("25.0"),
        temperatures("77"),
        "<o>2 77 F true true</o>",
    ),
    (
        "numbers",
        FOR + "return <o>{ number($i/t), floor($i/t), round($i/t), abs($i/t), -$i/t, $i/t mod 2 }</o>",
        temperatures("-41.5"),
        temperatures("-42.7"),
        "<o>-42.7 -43 -43 42.7 42.7 -0.7000000000000028</o>",
    ),
    (
        "window",
        'for $w in stream("s")/r/i |t diff 10| return <o>{ $w/t/text() }</o>',
        temperatures("25", "25.5", "30"),
        temperatures("77", "77.9", "86"),
        "<o>7777.9</o><o>86</o>",
    ),
    (
        "join",
        'for $x in stream("s")/r/i |count 2| for $y in stream("s")/r/i |count 2| where $x/t = $y/t - 9 '
        "return <p>{ $x/t, $y/t }</p>",
        temperatures("20", "25"),
        temperatures("68", "77"),
        "<p><t>68</t><t>77</t></p>",
    ),
)


@pytest.mark.parametrize(("query", "raw", "meant", "expected"), [each[1:] for each in CASES], ids=[c[0] for c in CASES])
def test_as_if_written_so(query: str, raw: str, meant: str, expected: str) -> None:
    """A query sees Celsius in Fahrenheit, as Saxon does where Fahrenheit is written."""
    assert canonical(answer(query, raw, CELSIUS)) == canonical(expected)
    assert judge(parse(query), {"s": meant}) == canonical(expected)


# --- where no decimal says it -----------------------------------------------------------------------------------------


def test_comparisons_are_exact() -> None:
    """A third is larger than any decimal below it, and equal to a third only."""
    third = temperatures(1)
    assert answer(FOR + "where $i/t > 0.33333333333333333333333333 return <hit/>", third, THIRD) == "<hit/>"
    assert answer(FOR + "where $i/t < 0.33333333333333333333333334 return <hit/>", third, THIRD) == "<hit/>"
    assert answer(FOR + "where $i/t = 0.3333333333333333 return <hit/>", third, THIRD) == ""
    assert answer(FOR + "where $i/t = 1 div 3e0 return <hit/>", third, THIRD) == "<hit/>"  # as doubles


def test_measured_with_other_text() -> None:
    """LAWS 2.3: a unit change has made one a number, so text compares with it as a number, also by `=`."""
    both = stream("<t>2.0</t><u>1</u><v>1.0</v>")
    query = FOR + "return <o>{ $i/t = $i/u, $i/t = $i/v, $i/u = $i/v, $i/t != $i/v, $i/t < $i/u, $i/t >= $i/v }</o>"
    assert answer(query, both, alter("t", ". * 2")) == "<o>true true false false false true</o>"


@pytest.mark.parametrize("operator", ["=", "!=", "<", ">="])
def test_measured_with_words(operator: str) -> None:
    """A number cannot be compared with a word; text with text can."""
    found = ask(FOR + f"return <o>{{ $i/t {operator} $i/u }}</o>", {"s": behind(stream("<t>1</t><u>x</u>"), THIRD)})
    assert found.text == ""
    assert [each.code for each in found.dead] == ["FORG0001"]
    assert answer(FOR + "return <o>{ $i/t = $i/u }</o>", stream("<t>1</t><u>x</u>")) == "<o>false</o>"


def test_words_have_no_unit() -> None:
    """Words, NaN and INF stay as they are, and so does an element that holds elements."""
    items = stream("<t>x</t>", "<t>NaN</t>", "<t>-INF</t>", "<t><e>3</e></t>", "<t/>")
    assert answer(FOR + "return $i", items, THIRD) == answer(FOR + "return $i", items)


def test_sums_are_exact() -> None:
    """Three thirds are one, seven sevenths with two more are nine: nothing is rounded before the end (LAWS 2.2)."""
    query = 'for $w in stream("s")/r/i |count 3| return <o>{ sum($w/t), avg($w/t) }</o>'
    assert answer(query, temperatures(1, 1, 1), THIRD) == "<o>1 0.3333333333333333</o>"
    assert answer(query, stream("<t>1</t>", "<t>1</t>", "<s>2</s><t>1</t>"), alter("t", ". * 3", "s = 2")).startswith(
        "<o>2.3333333333333335 0.77777"
    )


def test_extremes_are_exact() -> None:
    """Of values with the same nearest double the least and greatest are found exactly, and given as a double."""
    items = stream("<s>1</s><t>1</t>", "<s>2</s><t>0.33333333333333333333</t>")
    found = ask(
        'for $w in stream("s")/r/i |count 2| return <o><a>{ min($w/t) }</a><b>{ max($w/t) }</b></o>',
        {"s": behind(items, alter("t", ". * 3", "s = 1"))},
    )
    assert found.text == "<o><a>0.3333333333333333</a><b>0.3333333333333333</b></o>"
    assert [measure_of(each).number for each in children(found.values[0])] == [
        Fraction("0.33333333333333333333"),
        Fraction(1, 3),
    ]


def test_order_is_exact() -> None:
    """Values that the nearest double cannot tell apart are still in order."""
    items = stream("<s>1</s><t>1</t>", "<s>2</s><t>0.33333333333333333333</t>")
    accent = alter("t", ". * 3", "s = 1")
    assert answer(f"<o>{{ {FOR} order by $i/t return string($i/s) }}</o>", items, accent) == "<o>2 1</o>"


def test_windows_on_an_altered_path() -> None:
    """A third of 3 is 1, and so the window [1, 2) begins there."""
    query = 'for $w in stream("s")/r/i |t diff 1| return <o>{ count($w) }</o>'
    assert answer(query, temperatures(1, 2, 3, 4), THIRD) == "<o>2</o><o>2</o>"


def test_distinct_values() -> None:
    """What equals none before it: a measured value and text of the same number are one, text that differs is two."""
    items = stream("<s>1</s><t>2</t>", "<s>2</s><t>1</t>", "<s>2</s><t>1.0</t>", "<s>2</s><t>x</t>", "<s>1</s><t>4</t>")
    query = '<o>{ distinct-values(stream("s")/r/i/t) }</o>'
    assert answer(query, items, alter("t", ". * 2", "s = 1")) == "<o>1 x 2</o>"
    turned = stream("<s>2</s><t>1</t>", "<s>2</s><t>1.0</t>", "<s>1</s><t>2</t>")
    assert answer(query, turned, alter("t", ". * 2", "s = 1")) == "<o>1 1.0</o>"


def test_python_functions_get_the_double() -> None:
    """A registered function gets the nearest double."""
    seen: list[object] = []
    ask(FOR + "return f($i/t)", {"s": behind(temperatures(1), THIRD)}, {"f": lambda value: seen.append(value)})
    assert seen == [1 / 3]


def test_attributes_are_measured() -> None:
    """An attribute has a unit like any leaf."""
    items = '<r><i t="25.0"/></r>'
    found = ask(FOR + "where $i/@t > 76.9 return <o>{ $i/@t }</o>", {"s": behind(items, alter("@t", CELSIUS_BY))})
    assert found.text == '<o t="77"/>'
    (element,) = found.values
    assert isinstance(element, Element)
    assert element.attributes[0].measure is not None


CELSIUS_BY = "(. - 32) * 5 div 9"


def test_declared_times() -> None:
    """An item's time is the number meant: the second comes 1.8 units after the first, which is within 2."""
    query = (
        'for $x in stream("s")/r/i for $y in stream("s")/r/i '
        "where $x/t >= $y/t - 2 and $x/t <= $y/t + 2 return <p>{ $x/t, $y/t }</p>"
    )
    found = ask(query, {"s": behind(temperatures("20", "21", "30"), CELSIUS, time="t")})
    assert found.text.count("<p>") == 5


# --- what stays measured ----------------------------------------------------------------------------------------------


def children(element: object) -> list[Element]:
    assert isinstance(element, Element)
    return [each for each in element.children if isinstance(each, Element)]


def measure_of(element: Element) -> Measure:
    (text,) = element.children
    assert isinstance(text, Text)
    assert text.measure is not None
    return text.measure


def test_copies_stay_measured() -> None:
    """What is copied into an element, as a node or as the only value, still knows what was written."""
    found = ask(
        FOR + "return <o>{ $i/t, <a>{ $i/t/text() }</a>, <b>{ data($i/t) }</b> }</o>",
        {"s": behind(temperatures("25.0"), CELSIUS)},
    )
    measures = [measure_of(each) for each in children(found.values[0])]
    assert [(each.raw, each.number, each.computed) for each in measures] == [("25.0", Fraction(77), False)] * 3


def test_text_around_a_value_is_text() -> None:
    """A value among other text is no value any more."""
    query = FOR + 'return <o k="{ $i/t } F"><a>{ $i/t/text() } F</a><b>{ data($i/t), 1 }</b></o>'
    found = ask(query, {"s": behind(temperatures("25.0"), CELSIUS)})
    assert found.text == '<o k="77 F"><a>77 F</a><b>77 1</b></o>'
    (element,) = found.values
    assert isinstance(element, Element)
    assert element.attributes[0].measure is None
    texts = [child for each in children(element) for child in each.children if isinstance(child, Text)]
    assert [each.measure for each in texts] == [None, None]


def test_results_stay_exact() -> None:
    """An average knows the fraction it was rounded from, also where no value was ever measured."""
    query = 'for $w in stream("s")/r/i |count 3| return <o><a>{ avg($w/t) }</a><a>{ sum($w/t) }</a></o>'
    found = ask(query, {"s": behind(temperatures(1, 1, 2))})
    assert found.text == "<o><a>1.3333333333333333</a><a>4</a></o>"
    measures = [measure_of(each) for each in children(found.values[0])]
    assert [(each.raw, each.number, each.computed) for each in measures] == [
        ("0", Fraction(4, 3), True),
        ("0", Fraction(4), True),
    ]


def test_results_are_text_where_they_are_read() -> None:
    """What a query has written into an element is the text of a double to whoever reads it there."""
    query = (
        'for $w in stream("s")/r/i |count 3| let $o := <o>{ avg($w/t) }</o> '
        "return <p>{ $o = '0.3333333333333333', sum(($o, $o, $o)) }</p>"
    )
    assert answer(query, temperatures(1, 1, 1), THIRD) == "<p>true 0.9999999999999999</p>"


def test_values_above_a_measured_text() -> None:
    """The value of an element whose text is one measured value is that value; of several it is text."""
    inner = "(. - 32) * 5 div 9"
    items = stream("<c><t>25.0</t></c>", "<c><t>25.0</t><u>1</u></c>")
    stream_input = behind(items, alter("c/t", inner))
    one, other = (atom(each.item) for each in stream_input.arrivals)
    assert isinstance(one, Measured)
    assert (str(one), one.measure.number) == ("77", Fraction(77))
    assert not isinstance(other, Measured)
    assert str(other) == "771"
