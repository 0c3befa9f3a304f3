"""Times that place items: dateTimes, units, durations, bounds and sessions (LAWS 1.3, 3.1, 3.9)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.window import Extent, Panes
from anabranch.errors import UsageError
from anabranch.law import Input, text_input
from anabranch.stream.path import Path, TimeScale, TimeUnit
from anabranch.values.atomic import Untyped
from anabranch.values.declared import declared_origin, declared_slack, declared_time
from anabranch.values.placing import Moment, place_of, seconds_at
from reference.asking import ask, leaves, stream

BOUNDS = '<w s="{ window-start($w) }" e="{ window-end($w) }">{ for $t in ($w/t, $w/ts) return string($t) }</w>'


def stream_with(unit: TimeUnit | None, text: str, slack: int = 0, *, late: bool = False) -> Input:
    """A stream whose items have their times at `ts`, in a unit; slack is in seconds."""
    return replace(text_input(text, name="s", time="ts", unit=unit, slack=str(slack)), late=late)


def bounds(window: str, given: str | Input) -> str:
    """The windows of a stream, with their bounds."""
    return ask(f"for $w in stream('s')/r/i|{window}| return {BOUNDS}", {"s": given}).text


# --- what a text says -----------------------------------------------------------------------------------------

PLACES = (
    ("12.5", None, Fraction("12.5"), False),
    ("1970-01-01T00:01:00Z", None, Fraction(60), True),
    ("1970-01-02", None, Fraction(86_400), True),
    ("1969-12-31T23:59:59.5", None, Fraction("-0.5"), True),
    (" 1970-01-01T01:00:00+01:00 ", None, Fraction(0), True),
    ("12.5", "ms", Fraction("12.5"), True),
    ("1970-01-01T00:00:01.25Z", "ms", Fraction(1_250), True),
    ("1970-01-01T00:00:01Z", "ns", Fraction(10**9), True),
)


@pytest.mark.parametrize(("text", "unit", "value", "is_time"), PLACES)
def test_a_text_is_a_number_or_a_time(text: str, unit: TimeUnit | None, value: Fraction, is_time: bool) -> None:
    """A dateTime or date is a time; a number is one where its path counts in a unit."""
    path = Path(("ts",), unit)
    found = place_of(Untyped(text), TimeScale.of(path, path))
    assert (found, isinstance(found, Moment)) == (value, is_time)


@pytest.mark.parametrize("text", ["", "soon", "NaN", "INF", "2026-02-30", "2026-01-01T25:00:00Z", "12:00:00", "PT1M"])
def test_other_texts_place_nothing(text: str) -> None:
    """Neither words nor what only looks like a date."""
    assert place_of(Untyped(text), TimeScale()) is None
    assert seconds_at(Untyped(text), Path(("ts",))) is None


# --- cases of the laws ----------------------------------------------------------------------------------------


def test_case_43() -> None:
    """Times before 1970 have windows, with bounds that are dateTimes in UTC."""
    found = bounds("ts diff PT1M", leaves("ts", "1969-12-31T23:59:30Z"))
    assert found == '<w s="1969-12-31T23:59:00Z" e="1970-01-01T00:00:00Z">1969-12-31T23:59:30Z</w>'


def test_case_44() -> None:
    """Plain numbers below 0 are in no window."""
    assert bounds("t diff PT1M", leaves("t", -30)) == ""


@pytest.mark.parametrize("size", ["PT1M", "60000"])
def test_case_45(size: str) -> None:
    """In a stream that counts in milliseconds a plain size counts in these, and a duration means itself."""
    found = bounds(f"ts diff {size}", stream_with("ms", leaves("ts", 30_000, 90_000)))
    first = '<w s="1970-01-01T00:00:00Z" e="1970-01-01T00:01:00Z">30000</w>'
    assert found == f'{first}<w s="1970-01-01T00:01:00Z" e="1970-01-01T00:02:00Z">90000</w>'


def test_case_46() -> None:
    """Zones are only a way to write, and no zone is UTC."""
    texts = ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00")
    found = bounds("ts diff PT1S", leaves("ts", *texts))
    assert found == f'<w s="2026-01-01T00:00:00Z" e="2026-01-01T00:00:01Z">{" ".join(texts)}</w>'


def test_case_51() -> None:
    """What is a whole gap away begins another session."""
    found = bounds("t gap 30", leaves("t", 0, 20, 50, 90))
    assert found == '<w s="0" e="50">0 20</w><w s="50" e="80">50</w><w s="90" e="120">90</w>'


def test_case_52() -> None:
    """Sessions of several users lie beside each other, and come in the order of their ends."""
    items = ((0, "a"), (10, "b"), (25, "a"), (39, "b"), (100, "a"))
    found = bounds("t gap 30 by u", stream(*(f"<t>{time}</t><u>{user}</u>" for time, user in items)))
    assert found == '<w s="0" e="55">0 25</w><w s="10" e="69">10 39</w><w s="100" e="130">100</w>'


def test_case_53() -> None:
    """Who comes late leaves out the session that it lands in."""
    whole, rest = leaves("ts", 0, 20, 40, 100), leaves("ts", 40, 100)
    assert bounds("ts gap 30", whole) == '<w s="0" e="70">0 20 40</w><w s="100" e="130">100</w>'
    assert bounds("ts gap 30", stream_with(None, rest, late=True)) == '<w s="100" e="130">100</w>'


# --- more of windows and sessions -----------------------------------------------------------------------------


def test_a_window_of_both_has_times() -> None:
    """A number and a dateTime in one window: its bounds are times."""
    found = bounds("t diff 10", leaves("t", 3, "1970-01-01T00:00:04Z", 12))
    first = '<w s="1970-01-01T00:00:00Z" e="1970-01-01T00:00:10Z">3 1970-01-01T00:00:04Z</w>'
    assert found == f'{first}<w s="10" e="20">12</w>'


def test_only_times_are_in_windows_that_begin_before_the_first() -> None:
    """A number and a dateTime of the same value, in windows that overlap."""
    found = bounds("t diff 20 step 10", leaves("t", 5, "1970-01-01T00:00:05Z"))
    assert [each.count(">") for each in found.split("</w>")[:-1]] == [1, 1]
    assert "5 1970" not in found.split("</w>")[0]
    assert "5 1970" in found.split("</w>")[1]


def test_bounds_count_from_the_origin() -> None:
    """A stream's origin moves windows, and their bounds with them."""
    given = text_input(leaves("t", 3, 12), name="s", origin="2.5")
    assert bounds("t diff 10", given) == '<w s="2.5" e="12.5">3 12</w>'


def test_bounds_are_values_like_others() -> None:
    """They are compared, named and computed with; another name for the window will do."""
    query = (
        "for $w in stream('s')/r/i|t diff 10| let $v := $w, $end := window-end($v) "
        "where window-start($w) >= 10 return <w>{ $end + 1, count($v) }</w>"
    )
    assert ask(query, {"s": leaves("t", 3, 12, 25)}).text == "<w>21 1</w><w>31 1</w>"


def test_windows_of_a_part_of_an_item_have_bounds() -> None:
    """A window on something finite has them, too."""
    query = "for $i in stream('s')/r/i for $w in $i/p|@t gap 5| return <w s='{ window-start($w) }'>{ count($w) }</w>"
    found = ask(query, {"s": stream('<p t="1"/><p t="3"/><p t="9"/>')}).text
    assert found == '<w s="1">2</w><w s="9">1</w>'


def test_an_item_that_comes_within_the_slack_makes_two_sessions_one() -> None:
    """What lies between two sessions joins them, in the order of the stream."""
    given = text_input(leaves("t", 0, 40, 20, 100), name="s", slack="30")
    assert bounds("t gap 30", given) == '<w s="0" e="70">0 40 20</w><w s="100" e="130">100</w>'


def test_sessions_that_end_together_come_as_they_began() -> None:
    """The one whose first item came first, whatever its key and value."""
    items = ((5, "b"), (2, "a"), (7, "a"), (7, "b"))
    given = text_input(stream(*(f"<t>{time}</t><u>{user}</u>" for time, user in items)), name="s", slack="9")
    assert bounds("t gap 10 by u", given) == '<w s="5" e="17">5 7</w><w s="2" e="17">2 7</w>'


def test_keys_are_texts_and_a_missing_one_is_a_key() -> None:
    """`1` and `1.0` are two, an empty one is not a missing one; one with two values is set aside, by name."""
    keys = ("<u>1</u>", "<u>1.0</u>", "", "<u/>", "", "<u>1</u>", "<u>1</u><u>1</u>")
    given = stream(*(f"<t>{number}</t>{key}" for number, key in enumerate(keys)))
    answer = ask("for $w in stream('s')/r/i|t gap 10 by u| return <w>{ $w/t }</w>", {"s": given})
    sessions = ("<t>1</t>", "<t>3</t>", "<t>2</t><t>4</t>", "<t>0</t><t>5</t>")
    assert answer.text == "".join(f"<w>{each}</w>" for each in sessions)
    assert [(each.code, each.reason) for each in answer.dead] == [
        ("XPTY0004", "the session's key has 2 values in this item, not one")
    ]


def test_the_past_in_durations() -> None:
    """`?PT1M` and `?[PT1M]` look back so many seconds, also where times are written in milliseconds."""
    given = stream_with("ms", leaves("ts", 1_000, 30_000, 90_000))
    query = "for $p in stream('s')/r/i return <p>{{ count(stream('s')/r/i?{}) }}</p>"
    for span in ("[60]", "[PT1M]"):
        assert ask(query.format(span), {"s": given}).text == "<p>1</p><p>2</p><p>2</p>"
    assert ask("for $p in stream('s')/r/i return stream('s')/r/i?PT1M", {"s": given}).text == "<i><ts>30000</ts></i>"


def test_heartbeats_are_in_seconds() -> None:
    """They show how far a stream is whose numbers count milliseconds."""
    beat = '<s:punctuation xmlns:s="urn:anabranch:stream" at="61"/>'
    given = stream_with("ms", f"<r><i><ts>1000</ts></i>{beat}<i><ts>60500</ts></i></r>")
    answer = ask("for $w in stream('s')/r/i|ts diff PT1M| return count($w)", {"s": given})
    assert (answer.text, len(answer.late)) == ("1", 1)


def test_items_are_late_by_seconds() -> None:
    """A slack of 2 seconds is 2,000 milliseconds."""
    given = stream_with("ms", leaves("ts", 5_000, 3_000, 2_999), slack=2)
    answer = ask("for $w in stream('s')/r/i|ts diff PT1M| return count($w)", {"s": given})
    assert (answer.text, len(answer.late)) == ("2", 1)


# --- windows before the first ---------------------------------------------------------------------------------

DECIMALS = st.integers(-400, 400).map(lambda tick: Fraction(tick, 20))
SIZES = st.integers(1, 300).map(lambda tick: Fraction(tick, 10))


@given(SIZES, SIZES, DECIMALS)
def test_times_are_in_all_windows_around_them(size: Fraction, step: Fraction, value: Fraction) -> None:
    """Numbers are in those of the same windows that are not before the first; panes know both."""
    extent = Extent(size, step)
    around = [k for k in range(-600, 600) if extent.start(k) <= value < extent.end(k)]
    assert list(extent.holding(Moment(value))) == around
    assert list(extent.holding(value)) == [k for k in around if k >= 0]
    panes = Panes.of(extent)
    assert panes.is_used_before(panes.at(value)) == any(k < 0 for k in around)


# --- what is declared -----------------------------------------------------------------------------------------

MS = Path(("t",), "ms")


def test_slack_and_origin_are_given_in_units_or_as_times() -> None:
    """A plain number counts in the stream's unit, a duration or dateTime means itself."""
    assert declared_slack(5, None) == 5
    assert declared_slack("5", MS) == Fraction(5, 1_000)
    assert declared_slack("PT1M", MS) == declared_slack("PT60S", None) == 60
    assert declared_origin("1970-01-02", None) == 86_400
    assert declared_origin("1970-01-01T00:00:01Z", MS) == 1
    assert declared_origin(500, MS) == Fraction(1, 2)
    assert declared_origin(None, MS) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: declared_time(None, "ms"), "a 'time_unit' needs a 'time'"),
        (lambda: declared_time("t", "min"), "the time unit 'min' is unknown"),
        (lambda: declared_time("t t", None), "'t t' is not a path"),
        (lambda: declared_slack("P1M", None), "'slack' takes a number, or a duration such as PT5S, not 'P1M'"),
        (lambda: declared_slack(float("nan"), None), "'slack' takes a number, .* not 'nan'"),
        (lambda: declared_slack(True, None), "'slack' takes a number, .* not 'True'"),
        (lambda: declared_origin("PT5S", None), "'origin' takes a number, or a dateTime"),
    ],
)
def test_what_makes_no_sense_is_said_so(call: object, message: str) -> None:
    """Each by its name."""
    assert callable(call)
    with pytest.raises(UsageError, match=message):
        call()
