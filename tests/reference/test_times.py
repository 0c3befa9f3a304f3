"""Times, durations and casts as values: what Saxon cannot judge, and errors by their codes (LAWS 2.7)."""

from __future__ import annotations

import pytest

from reference.asking import ask, error, leaves, value


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ('xs:dateTime("2024-02-29T12:00:00Z") + xs:yearMonthDuration("P1Y")', "2025-02-28T12:00:00Z"),  # case 47
        ('xs:dateTime("2026-01-01T01:00:00+01:00") = xs:dateTime("2026-01-01T00:00:00")', "true"),  # as in case 46
        (f'xs:dateTime("2026-01-01T00:00:00.{"1" * 100}Z")', f"2026-01-01T00:00:00.{'1' * 100}Z"),
        ('xs:dateTime("2026-01-01T00:00:00.00000000000001Z") > xs:dateTime("2026-01-01T00:00:00Z")', "true"),
        (f'xs:dayTimeDuration("PT0.{"0" * 99}1S") * 10', f"PT0.{'0' * 98}1S"),
        (f'xs:dayTimeDuration("PT0.{"0" * 99}1S") * 0.1', "PT0S"),
        (f'xs:dayTimeDuration("PT0.{"0" * 99}1S") * 0.51', f"PT0.{'0' * 99}1S"),
        ('xs:dayTimeDuration("PT2S") div 3', "PT0.666666666666666667S"),
        ('xs:dayTimeDuration("-PT2S") div 3', "-PT0.666666666666666667S"),
        (f'xs:dayTimeDuration("PT0.{"0" * 20}1S") div 3', "PT0S"),
        (f'xs:dayTimeDuration("PT0.{"0" * 20}2S") div 3', f"PT0.{'0' * 20}1S"),
        ('xs:dayTimeDuration("PT1S") div xs:dayTimeDuration("PT3S")', "0.333333333333333333"),
        ('xs:dayTimeDuration("PT1S") * 0.1e0', "PT0.1S"),
        ('xs:dayTimeDuration("PT1S") div (1 div 0e0)', "PT0S"),
        (
            'avg((xs:dayTimeDuration("PT1S"), xs:dayTimeDuration("PT1S"), xs:dayTimeDuration("PT0S")))',
            "PT0.666666666666666667S",
        ),
        ('xs:yearMonthDuration("P1M") * -2.5', "-P2M"),
        ('xs:dayTimeDuration("PT0S") = xs:yearMonthDuration("P0M")', "true"),
        ('xs:dayTimeDuration("PT0S") != xs:yearMonthDuration("P1M")', "true"),
        (
            'distinct-values((xs:dayTimeDuration("PT0S"), xs:yearMonthDuration("P0M"), xs:dayTimeDuration("PT1S")))',
            "PT0S PT1S",
        ),
        (
            'distinct-values((xs:time("01:00:00+01:00"), xs:time("00:00:00Z"), xs:date("2026-01-01")))',
            "01:00:00+01:00 2026-01-01",
        ),
        (
            'let $a := xs:time("00:00:00Z"), $b := xs:time("01:00:00+01:00") return (min(($a, $b)), max(($b, $a)))',
            "00:00:00Z 01:00:00+01:00",
        ),
        ("min((true(), false())), max((true(), false()))", "false true"),
        ("max(data((<a>2026-01-01T00:00:00Z</a>, <a> 2026-01-01T00:00:00.50+00:00 </a>)))", "2026-01-01T00:00:00.5Z"),
        ('max((data(<a>2026-01-01T00:00:00Z</a>), xs:dateTime("2025-01-01T00:00:00Z")))', "2026-01-01T00:00:00Z"),
        (
            """for $k in (
                 xs:yearMonthDuration("P1M"), "a", xs:dayTimeDuration("PT1S"), xs:time("00:00:00"), 5, true(),
                 data(<a>2027-01-01T00:00:00Z</a>), xs:date("2026-01-01"), xs:dateTime("2026-01-01T00:00:00Z")
               ) order by $k return $k""",
            "true 5 2026-01-01T00:00:00Z 2027-01-01T00:00:00Z 2026-01-01 00:00:00 PT1S P1M a",
        ),
        (
            "let $a := data(<a>-P1Y2M3DT4H5M6.5S</a>) return (seconds-from-duration($a), months-from-duration($a))",
            "-6.5 -2",
        ),
        (
            'string(xs:integer("1700000000000") + 1), 1000000 * 1000000, floor(1e0 * 2500000.5), xs:integer(1e21)',
            "1700000000001 1000000000000 2.5E6 1000000000000000000000",
        ),
        ('"5" cast as xs:integer + 1, -("5" cast as xs:integer), count(() cast as xs:time?)', "6 -5 0"),
        ('() castable as xs:date, () castable as xs:date?, ("1", "2") castable as xs:integer', "false true false"),
        (
            'xs:dateTime("2026-01-01T00:00:00Z") castable as xs:time, 1 castable as xs:date, "1" castable as xs:double',
            "true false true",
        ),
        (
            'concat(xs:date("2026-01-01"), "|", xs:time("00:00:00")), number(xs:date("2026-01-01"))',
            "2026-01-01|00:00:00 NaN",
        ),
    ],
)
def test_values_by_hand(query: str, answer: str) -> None:
    """Exact digits, rounded quotients, the order of all types, and what only some types have."""
    assert value(query) == answer


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ('xs:dateTime("2026-02-29T00:00:00Z")', "FORG0001"),
        ('xs:dateTime("2026-01-01")', "FORG0001"),
        (f'xs:dateTime("2026-01-01T00:00:00.{"1" * 101}Z")', "FORG0001"),
        ('xs:dayTimeDuration("P ")', "FORG0001"),
        ('xs:dayTimeDuration("P1M")', "FORG0001"),
        ('xs:integer("1.0")', "FORG0001"),
        ('xs:boolean("yes")', "FORG0001"),
        ('xs:date("2026-01-01") = data(<a>noon</a>)', "FORG0001"),
        ('data(<a>PT1S</a>) + xs:dayTimeDuration("PT1S")', "FORG0001"),
        ("year-from-dateTime(data(<a>2026</a>))", "FORG0001"),
        ("days-from-duration(data(<a>P</a>))", "FORG0001"),
        ('xs:dateTime("12345678901-01-01T00:00:00Z")', "FODT0001"),
        ('xs:date("999999999-12-31") + xs:dayTimeDuration("P1D")', "FODT0001"),
        ('xs:dateTime("999999999-12-31T24:00:00")', "FODT0001"),
        (f'xs:dayTimeDuration("P{"9" * 5000}D")', "FODT0002"),
        ('xs:dayTimeDuration("P999999999999999999D") * 1000000', "FODT0002"),
        (
            'sum((xs:dayTimeDuration("P999999999999999999D") * 11, xs:dayTimeDuration("P999999999999999999D")))',
            "FODT0002",
        ),
        ('xs:dayTimeDuration("PT1S") div 0', "FODT0002"),
        ('xs:dayTimeDuration("PT1S") * (1 div 0e0)', "FODT0002"),
        ('xs:dayTimeDuration("PT1S") div xs:dayTimeDuration("PT0S")', "FOAR0001"),
        ('xs:dayTimeDuration("PT1S") * number("x")', "FOCA0005"),
        ("xs:integer(1 div 0e0)", "FOCA0002"),
        (f'xs:integer("{"9" * 2001}")', "FOCA0003"),
        ('adjust-time-to-timezone(xs:time("00:00:00"), xs:dayTimeDuration("PT14H1M"))', "FODT0003"),
        ('adjust-time-to-timezone(xs:time("00:00:00"), xs:dayTimeDuration("PT1S"))', "FODT0003"),
        ('dateTime(xs:date("2026-01-01Z"), xs:time("00:00:00+01:00"))', "FORG0008"),
        ('xs:dateTime("2026-01-01T00:00:00Z") = "2026-01-01T00:00:00Z"', "XPTY0004"),
        ('xs:dateTime("2026-01-01T00:00:00Z") = xs:date("2026-01-01")', "XPTY0004"),
        ('xs:dayTimeDuration("PT1S") < xs:yearMonthDuration("P1M")', "XPTY0004"),
        ('xs:date("2026-01-01") = 1', "XPTY0004"),
        ('xs:date("2026-01-01") = true()', "XPTY0004"),
        ('xs:date("2026-01-01") + xs:date("2026-01-01")', "XPTY0004"),
        ('xs:date("2026-01-01") + 1', "XPTY0004"),
        ('xs:dayTimeDuration("PT1S") - xs:date("2026-01-01")', "XPTY0004"),
        ('xs:time("00:00:00") + xs:yearMonthDuration("P1M")', "XPTY0004"),
        ('xs:dayTimeDuration("PT1S") + xs:yearMonthDuration("P1M")', "XPTY0004"),
        ('1 div xs:dayTimeDuration("PT1S")', "XPTY0004"),
        ('xs:dayTimeDuration("PT1S") mod 2', "XPTY0004"),
        ('-xs:dayTimeDuration("PT1S")', "XPTY0004"),
        ('abs(xs:dayTimeDuration("PT1S"))', "XPTY0004"),
        ('string-length(xs:date("2026-01-01"))', "XPTY0004"),
        ('year-from-dateTime("2026-01-01T00:00:00Z")', "XPTY0004"),
        ('years-from-duration("P1Y")', "XPTY0004"),
        ("xs:date(1)", "XPTY0004"),
        ('xs:integer(xs:date("2026-01-01"))', "XPTY0004"),
        ('xs:time(xs:date("2026-01-01"))', "XPTY0004"),
        ("() cast as xs:date", "XPTY0004"),
        ('("2026-01-01", "2026-01-02") cast as xs:date', "XPTY0004"),
        ('boolean(xs:date("2026-01-01"))', "FORG0006"),
        ('if (xs:dayTimeDuration("PT0S")) then 1 else 2', "FORG0006"),
        ('sum(xs:date("2026-01-01"))', "FORG0006"),
        ('sum((xs:dayTimeDuration("PT1S"), 1))', "FORG0006"),
        ('avg((xs:dayTimeDuration("PT1S"), xs:yearMonthDuration("P1M")))', "FORG0006"),
        ('median(xs:dayTimeDuration("PT1S"))', "FORG0006"),
        ('min((xs:date("2026-01-01"), xs:dateTime("2026-01-01T00:00:00Z")))', "FORG0006"),
        ('min((xs:date("2026-01-01"), 1))', "FORG0006"),
        ("min(data((<a>2026-01-01T00:00:00Z</a>, <a>1</a>)))", "FORG0001"),
    ],
)
def test_errors_have_the_codes_of_xquery(query: str, code: str) -> None:
    """Text that is none, pairs that do not go together, values beyond limits, and truth that is none."""
    assert error(query) == code


def test_case_42_texts_that_are_times() -> None:
    """LAWS case 42: as text `00.5Z` would stand before `00Z`; compared, ordered and aggregated it comes behind it."""
    given = {"s": leaves("ts", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z")}
    times = 'let $a := stream("s")/r/i/ts '
    assert (
        ask(f'{times} return ($a[. = "2026-01-01T00:00:00Z"] < $a[. = "2026-01-01T00:00:00.5Z"])', given).text == "true"
    )
    ordered = ask('for $p in stream("s")/r/i order by $p/ts descending return $p/ts', given).text
    assert ordered == "<ts>2026-01-01T00:00:00.5Z</ts><ts>2026-01-01T00:00:00Z</ts>"
    assert ask('min(stream("s")/r/i/ts)', given).text == "2026-01-01T00:00:00Z"


def test_a_python_function_is_given_the_spelling() -> None:
    """Python's own times hold neither all years nor all digits."""
    functions = {"kind": lambda given: f"{type(given).__name__} {given}"}
    assert ask('kind(xs:date("2026-01-01+01:00"))', functions=functions).text == "str 2026-01-01+01:00"


def test_a_bad_time_concerns_its_item_only() -> None:
    """LAWS 2.4: the item is named with the code, and the others are answered."""
    answer = ask(
        'for $p in stream("s")/r/i where $p/ts < xs:dateTime("2026-01-02T00:00:00Z") return $p/ts',
        {"s": leaves("ts", "noon", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z")},
    )
    assert answer.text == "<ts>2026-01-01T00:00:00Z</ts>"
    assert [(letter.reason, letter.code) for letter in answer.dead] == [("'noon' is no xs:dateTime", "FORG0001")]
