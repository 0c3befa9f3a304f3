"""Numbers and times by pictures, texts taken apart, dates of the IETF, places of nodes: the cases of LAWS 2.8."""

from __future__ import annotations

import time

import pytest

from anabranch.errors import DynamicError
from reference.asking import ask, error, leaves, stream

_ROOT = "Q{http://www.w3.org/2005/xpath-functions}root()"


def test_numbers_by_a_picture() -> None:
    """LAWS 6, case 220."""
    answer = ask(
        "for $p in stream('s')/r/i return format-number($p/n, '#,##0.00;(0.00)')",
        {"s": leaves("n", 1234.5, -0.005, "x")},
    )
    assert (answer.text, [each.code for each in answer.dead]) == ("1,234.50 (0.00)", ["FORG0001"])
    assert ask("format-number(2.5, '0'), format-number((), '0')").text == "2 NaN"


def test_times_by_a_picture() -> None:
    """LAWS 6, case 221."""
    query = "for $p in stream('s')/r/i return format-dateTime($p/t, '[FNn] [D1o] [MNn,3-3] [Y], [h]:[m][Pn] [Z]')"
    answer = ask(query, {"s": leaves("t", "2026-03-01T09:05:00Z")})
    assert answer.text == "Sunday 1st Mar 2026, 9:05a.m. +00:00"
    other = ask("format-date(xs:date('2026-03-01'), '[Y]', 'de', 'AH', ())")
    assert other.text == "[Calendar: AD][Language: en]2026"


TIME = "format-dateTime(xs:dateTime('2026-03-01T00:00:00'), '{}')"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (TIME.format("x" * 1_001), "FOFD1340"),
        (TIME.format("[Y,101]"), "FOFD1340"),
        (TIME.format("[Y,3-2]"), "FOFD1340"),
        (TIME.format("[f#99]"), "FOFD1340"),
        (TIME.format("[f9#\u0660]"), "FOFD1340"),
        (TIME.format("[Y"), "FOFD1340"),
        (TIME.format("Y]"), "FOFD1340"),
        (TIME.format("[X]"), "FOFD1340"),
        ("format-date(xs:date('2026-03-01'), '[H]')", "FOFD1350"),
        ("format-time(xs:time('00:00:00'), '[Y]')", "FOFD1350"),
        ("format-date(xs:date('2026-03-01'), '[Y]', 'en', 'XX', ())", "FOFD1340"),
        ("format-date(1, '[Y]')", "XPTY0004"),
        ("format-number(1, '0.0.0')", "FODF1310"),
        (f"format-number(1, '{'0' * 1_001}')", "FODF1310"),
        ("format-number(1, '')", "FODF1310"),
        ("format-number(1, '0e0%')", "FODF1310"),
        ("format-number(1, '0', 'other')", "FODF1280"),
        ("format-number('1', '0')", "XPTY0004"),
        ("parse-ietf-date('1 March 2026')", "FORG0010"),
        ("parse-ietf-date('31 Feb 2026 00:00')", "FORG0010"),
        ("analyze-string('a', 'a*')", "FORX0003"),
        ("path(1)", "XPTY0004"),
    ],
)
def test_what_is_no_picture_has_xquerys_code(query: str, code: str) -> None:
    """LAWS 6, case 222, and its kin."""
    assert error(query) == code


@pytest.mark.parametrize(
    ("picture", "text"),
    [
        ("0.00,0", "0.12,3"),
        ("#,##0.0##,#", "0.123"),
        ("0,0e0", "1,2e-2"),
        ("[0]", "[0]"),
        ("#", "0"),
        ("#.e0", "0.1e0"),
    ],
)
def test_numbers_are_written_where_saxon_is_no_judge(picture: str, text: str) -> None:
    """Groups behind the point, and those beside an exponent, by the letter of XQuery's rules (F&O 4.7.5)."""
    assert ask(f"format-number(0.123, '{picture}')").text == text


def test_every_digit_of_a_decimal_is_written() -> None:
    """A decimal is exact, however long; a double has the fewest digits that spell it."""
    digits = "0.1234567890123456789012345678901234567890"
    assert ask(f"format-number({digits}, '0.{'#' * 50}')").text == digits.rstrip("0")
    assert ask(f"format-number(xs:double({digits}), '0.{'#' * 50}')").text == "0.12345678901234568"


def test_places_of_nodes() -> None:
    """LAWS 6, case 223: a node is known by its place in its item."""
    items = {"s": stream("<a/><a k='1'/>", "<a/><a k='1'/>")}
    around = "for $p in stream('s')/r/i return <o>{{ {} }}</o>"
    assert ask(around.format("path($p/a[2]/@k)"), items).text == f"<o>{_ROOT}/Q{{}}a[2]/@k</o>" * 2
    assert ask(around.format("$p/path()"), items).text == f"<o>{_ROOT}</o>" * 2
    assert ask(around.format("generate-id($p/a[1]) = generate-id($p/a[2])"), items).text == "<o>false</o>" * 2
    every = ask(around.format("string-join(($p//node() | $p//@*) ! generate-id(), ' ')"), items).text
    assert len(set(every.replace("<o>", " ").replace("</o>", " ").split())) == 3
    assert ask("generate-id(()), count(path(()))").text == " 0"


def test_a_text_is_taken_apart() -> None:
    """LAWS 6, case 224; an anchor means what it means in all of the text."""
    opening = '<analyze-string-result xmlns="http://www.w3.org/2005/xpath-functions">'
    groups = '<match><group nr="1">a</group><group nr="2">1</group></match><match><group nr="1">b</group></match>'
    assert ask("analyze-string('a1b', '([a-z])([0-9])?')").text == f"{opening}{groups}</analyze-string-result>"
    assert ask("analyze-string('aa', '^(a)')/*/local-name()").text == "match non-match"
    assert ask("analyze-string('ab', '(a|(b))+')//*:group ! concat(@nr, .)").text == "1b 2b"


def test_dates_of_the_ietf() -> None:
    """LAWS 6, case 225."""
    assert (
        ask("parse-ietf-date('Sun, 1 Mar 26 09:05 EST'), count(parse-ietf-date(()))").text
        == "1926-03-01T09:05:00-05:00 0"
    )


@pytest.mark.parametrize(
    "query",
    [
        "for $p in stream('s')/r/i return count(analyze-string($p/t, '((a)|(b))')//*)",
        "for $p in stream('s')/r/i return parse-ietf-date($p/t)",
        "for $p in stream('s')/r/i return string-length(format-number($p/t, '#,##0'))",
        f"for $p in stream('s')/r/i return string-length(format-number(1, '{'#,' * 490}0'))",
        f"for $p in stream('s')/r/i return string-length({TIME.format('[Y,100]' * 140)})",
    ],
    ids=["analyze-string", "parse-ietf-date", "long number", "long picture", "wide picture"],
)
@pytest.mark.parametrize("text", ["ab" * 100_000, " " * 200_000, "9" * 200_000], ids=["letters", "spaces", "digits"])
def test_hostile_texts_and_pictures_take_bounded_time(query: str, text: str) -> None:
    """A text of 200,000 characters, or a picture as large as may be: an answer or a dead letter within a second or two.

    What would make too many nodes ends by its steps (LAWS 2.6).
    """
    began = time.process_time()
    answer = ask(query, {"s": leaves("t", text)})
    assert time.process_time() - began < 4
    assert len(answer.text) < 20
    assert {each.code for each in answer.dead} <= {"XPDY0130", "FORG0001", "FORG0010"}


def test_too_many_parts_end_by_their_steps() -> None:
    """A million matches are a million steps before the first node is made, so that no memory is taken for them."""
    began = time.process_time()
    answer = ask(
        "for $p in stream('s')/r/i return count(analyze-string($p/t, 'a')/*)", {"s": leaves("t", "ab" * 600_000)}
    )
    assert [each.code for each in answer.dead] == ["XPDY0130"]
    assert time.process_time() - began < 4


def test_the_error_names_the_text() -> None:
    """As short as others (`errors.py`)."""
    with pytest.raises(DynamicError, match="'31 Feb 2026 00:00' is no date of the IETF"):
        ask("parse-ietf-date('31 Feb 2026 00:00')")
