from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.window import Extent
from anabranch.law import text_input
from anabranch.law.rounds.windows import time_windows
from reference.asking import ask, leaves, stream

SHOW = "<w>{ for $i in $w return string($i/t) }</w>"


def windows(
    window: str, *times: object, slack: str = "0", origin: str = "0", path: str = "stream('s')/r/i"
) -> list[str]:
    """What each window holds, as the times of its items with spaces between."""
    given = text_input(leaves("t", *times), name="s", slack=slack, origin=origin)
    text = ask(f"for $w in {path}|{window}| return {SHOW}", {"s": given}).text
    return text.replace("<w/>", "<w></w>").removeprefix("<w>").removesuffix("</w>").split("</w><w>") if text else []


# --- time windows (LAWS 3.1) ------------------------------------------------------------------------------

TIME = (
    ("a step left out is the size", "t diff 10", (1, 9.999, 10, 25), ["1 9.999", "10", "25"]),
    ("windows overlap", "t diff 10 step 5", (1, 6, 12), ["1 6", "6 12", "12"]),
    ("a bound belongs to the window that it begins", "t diff 10 step 5", (5, 10, 15), ["5", "5 10", "10 15", "15"]),
    ("a step larger than the size leaves gaps", "t diff 2 step 5", (0, 1, 2, 4, 5, 6.5, 7), ["0 1", "5 6.5"]),
    ("only windows that hold an item answer", "t diff 1", (3, 1000000), ["3", "1000000"]),
    ("nothing lies before the origin", "t diff 10", (-5, -1, 3), ["3"]),
    (
        "tenths are tenths",
        "t diff 0.1",
        ("0.29999999999999999999", "0.3", "0.7"),
        ["0.29999999999999999999", "0.3", "0.7"],
    ),
    ("thirds of tenths", "t diff 0.3 step 0.1", ("0.1", "0.3"), ["0.1", "0.1 0.3", "0.3", "0.3"]),
    ("numbers in any spelling", "t diff 10", ("1e0", " 2 ", "1.1E1"), ["1e0  2 ", "1.1E1"]),
    ("equal times are together", "t diff 1", (5, 5, 5), ["5 5 5"]),
    ("an absolute reference", "/r/i/t diff 10", (1, 11), ["1", "11"]),
    ("the item itself as a reference", "./t diff 10", (1, 11), ["1", "11"]),
)


@pytest.mark.parametrize(("window", "times", "expected"), [row[1:] for row in TIME], ids=[row[0] for row in TIME])
def test_time_windows(window: str, times: tuple[object, ...], expected: list[str]) -> None:
    """Window k holds what has a reference value from k steps up to, and without, a size later."""
    assert windows(window, *times) == expected


@given(
    st.lists(st.decimals(0, 50, places=1), max_size=12),
    st.decimals("0.1", 20, places=1),
    st.decimals("0.1", 20, places=1),
)
def test_time_windows_are_what_the_law_says(times: list[object], size: object, step: object) -> None:
    """Law: W_k is exactly what lies in [k*step, k*step + size), and no empty window appears."""
    extent = Extent(Fraction(str(size)), Fraction(str(step)))
    values = [Fraction(str(each)) for each in times]
    found = {window.k: list(window.content) for window in time_windows(extent, [(each, each) for each in values])}
    last = max(values, default=Fraction(0)) / extent.step
    for k in range(int(last) + 2):
        start = k * extent.step
        assert found.pop(k, []) == [each for each in values if start <= each < start + extent.size]
    assert found == {}


def test_preselection_comes_before_the_window() -> None:
    """Windows hold only items that the predicates select; result filters look at whole windows."""
    document = stream("<t>1</t><n>5</n>", "<t>2</t><n>1</n>", "<t>11</t><n>1</n>", "<t>12</t><n>9</n>")
    query = "for $w in stream('s')/r/i[n > 1]|t diff 10| let $a := avg($w/n) where $a > 5 return <a>{ $a, $w/t }</a>"
    assert ask(query, {"s": document}).text == "<a>9<t>12</t></a>"


def test_the_reference_may_lie_deeper() -> None:
    """A reference is a path of names, with an attribute at its end if it likes."""
    document = "<r><i><a><t u='3'/></a></i><i><a><t u='13'/></a></i></r>"
    assert ask("for $w in stream('s')/r/i|a/t/@u diff 10| return <w/>", {"s": document}).text == "<w/><w/>"


def test_case_12() -> None:
    """A window whose only item has no such value: average empty, sum 0, count 0 (LAWS 6, case 12)."""
    query = "for $w in stream('s')/r/i|t diff 10| return <o>{ count(avg($w/en)), sum($w/en), count($w/en) }</o>"
    assert ask(query, {"s": leaves("t", 3)}).text == "<o>0 0 0</o>"


# --- origin, lateness, slack (LAWS 3.1, 3.2) --------------------------------------------------------------


def test_the_origin_shifts_all_windows() -> None:
    """Windows are counted from the stream's origin."""
    assert windows("t diff 10", 1, 4, 5, 14, 15, origin="5") == ["5 14", "15"]
    assert windows("t diff 10", -7, -1, 3, origin="-7") == ["-7 -1", "3"]


LATE = (
    ("0", (1, 3, 2, 4), ["1 3 4"], 1),
    ("0", (1, 3, 3, 4), ["1 3 3 4"], 0),
    ("1", (1, 3, 2, 4), ["1 3 2 4"], 0),
    ("1", (1, 3, "1.999", 4), ["1 3 4"], 1),
    ("0.5", (12, 8, 11.5, 13), ["12 11.5 13"], 1),
    ("20", (25, 8, 6), ["8 6", "25"], 0),
)


@pytest.mark.parametrize(("slack", "times", "expected", "late"), LATE)
def test_late_items_are_left_out_and_counted(
    slack: str, times: tuple[object, ...], expected: list[str], late: int
) -> None:
    """Late is what lies more than slack below the largest before it."""
    assert windows("t diff 10", *times, slack=slack) == expected
    given = text_input(leaves("t", *times), name="s", slack=slack)
    answer = ask(f"for $w in stream('s')/r/i|t diff 10| return {SHOW}", {"s": given})
    assert len(answer.late) == late
    assert answer.dead == []


def test_a_variable_may_stand_for_the_stream() -> None:
    """Its origin and its slack are the stream's, and what is not selected shows how far it is."""
    given = text_input(leaves("t", 5, 14, 13, 12, 15), name="s", slack="1", origin="5")
    query = f"let $s := stream('s')/r for $w in $s/i[t != 14]|t diff 10| return {SHOW}"
    answer = ask(query, {"s": given})
    assert (answer.text, len(answer.late)) == ("<w>5 13</w><w>15</w>", 1)


def test_a_function_may_give_the_stream() -> None:
    """What it gives is the stream's, with slack, origin and places."""
    given = text_input(leaves("t", 5, 14, 13, 12, "z", 15), name="s", slack="1", origin="5")
    query = f"declare function local:s() {{ stream('s')/r }}; for $w in local:s()/i|t diff 10| return {SHOW}"
    answer = ask(query, {"s": given})
    assert (answer.text, len(answer.late)) == ("<w>5 14 13</w><w>15</w>", 1)
    assert [letter.place.stream for letter in answer.dead] == ["s"]


def test_windows_inside_an_item_know_nothing_of_its_stream() -> None:
    """They are over something finite, which has neither slack nor origin."""
    document = stream("<x><t>5</t></x><x><t>14</t></x><x><t>13</t></x>")
    given = text_input(document, name="s", slack="1", origin="5")
    query = f"for $p in stream('s')/r/i for $w in $p/x|t diff 10| return {SHOW}"
    answer = ask(query, {"s": given})
    assert (answer.text, answer.late) == ("<w>5</w><w>14</w>", [])


def test_a_failing_window_inside_an_item_fails_the_item() -> None:
    """An item stands or falls as one (LAWS 2.4)."""
    document = stream("<x><t>1</t></x><x><t>z</t></x>", "<x><t>2</t></x>")
    answer = ask(f"for $p in stream('s')/r/i for $w in $p/x|t diff 10| return {SHOW}", {"s": document})
    assert (answer.text, [letter.code for letter in answer.dead]) == ("<w>2</w>", ["FORG0001"])


def test_what_is_not_selected_makes_others_late() -> None:
    """How far a stream is, every item shows, selected or not; a late item stands in the late output once."""
    document = stream("<t>1</t><n/>", "<t>20</t>", "<t>19</t><n/>", "<t>21</t><n/>")
    answer = ask(f"for $w in stream('s')/r/i[n]|t diff 10| return {SHOW}", {"s": document})
    assert answer.text == "<w>1</w><w>21</w>"
    assert [place.stream for place in answer.late] == ["s"]


def test_queries_without_a_time_window_see_late_items() -> None:
    """Late concerns time windows only."""
    late = leaves("t", 5, 1)
    assert ask("for $p in stream('s')/r/i return $p/t", {"s": late}).text == "<t>5</t><t>1</t>"
    assert ask(f"for $w in stream('s')/r/i|count 2| return {SHOW}", {"s": late}).text == "<w>5 1</w>"


def test_a_self_join_counts_a_late_item_once() -> None:
    """An item is late once, however many windows ask for it."""
    query = "for $x in stream('s')/r/i|t diff 10|, $y in stream('s')/r/i|t diff 5| return <p/>"
    assert len(ask(query, {"s": leaves("t", 5, 1)}).late) == 1


BAD_REFERENCES = (
    ("<n/>", "XPTY0004", "the window's reference has 0 values in this item, not one"),
    ("<t>1</t><t>2</t>", "XPTY0004", "the window's reference has 2 values in this item, not one"),
    ("<t>x</t>", "FORG0001", "the window's reference 'x' is no number and no dateTime"),
    ("<t/>", "FORG0001", "the window's reference '' is no number and no dateTime"),
    ("<t>NaN</t>", "FORG0001", "the window's reference 'NaN' is no number and no dateTime"),
    ("<t>INF</t>", "FORG0001", "the window's reference 'INF' is no number and no dateTime"),
)


@pytest.mark.parametrize(("item", "code", "reason"), BAD_REFERENCES)
def test_an_item_without_one_reference_value_is_set_aside(item: str, code: str, reason: str) -> None:
    """It goes to the dead letters with its place, and the stream goes on."""
    answer = ask(f"for $w in stream('s')/r/i|t diff 10| return {SHOW}", {"s": stream("<t>1</t>", item, "<t>2</t>")})
    assert answer.text == "<w>1 2</w>"
    (letter,) = answer.dead
    assert (letter.code, letter.reason, letter.subscription) == (code, reason, "q")
    assert (letter.place.stream, letter.place.offset) == ("s", len("<r><i><t>1</t></i>"))


def test_an_item_that_is_not_selected_needs_no_reference() -> None:
    """Nobody asked for it, so nothing is wrong."""
    answer = ask(f"for $w in stream('s')/r/i[t]|t diff 10| return {SHOW}", {"s": stream("<t>1</t>", "<n/>")})
    assert (answer.text, answer.dead) == ("<w>1</w>", [])


# --- punctuations (LAWS 3.2) ------------------------------------------------------------------------------

CONTROL = "xmlns:s='urn:anabranch:stream'"
COVERED = (
    ("where='t &lt; 8'", "t diff 10", 0, 2),
    ("where='t &lt;= 5'", "/r/i/t diff 10", 0, 2),
    ("where='t &lt; 8 or n = 1'", "t diff 10", 0, 2),
    ("where='t &lt; 8 and n = 1'", "t diff 10", 0, 0),
    ("where='n &lt; 5'", "t diff 10", 0, 1),
    ("where='true()'", "t diff 10", 0, 3),
    ("at='8'", "t diff 10", 2, 0),
    ("at='8'", "n diff 10", 0, 0),
    ("at='1' where='t &lt; 8'", "t diff 10", 0, 2),
)


@pytest.mark.parametrize(("told", "window", "late", "bad"), COVERED)
def test_what_a_punctuation_covers_does_not_come(told: str, window: str, late: int, bad: int) -> None:
    """An item that it describes is bad behind it (LAWS 4.5); a heartbeat shows how far the stream is."""
    items = "".join(f"<i><t>{t}</t><n>{t}</n></i>" for t in (4, 5, 9))
    document = f"<r {CONTROL}><i><t>1</t><n>1</n></i><s:punctuation {told}/>{items}</r>"
    given = text_input(document, name="s", time="t")
    answer = ask(f"for $w in stream('s')/r/i|{window}| return <w>{{ count($w) }}</w>", {"s": given})
    assert (answer.text, len(answer.late)) == (f"<w>{4 - late - bad}</w>", late)


def test_slack_counts_from_where_a_punctuation_is() -> None:
    """What is covered is over, whatever the slack; the rest is not."""
    document = f"<r {CONTROL}><s:punctuation where='t &lt; 8'/><i><t>7</t></i><i><t>8</t></i></r>"
    given = text_input(document, name="s", slack="5")
    answer = ask(f"for $w in stream('s')/r/i|t diff 10| return {SHOW}", {"s": given})
    assert (answer.text, len(answer.late)) == ("<w>8</w>", 0)


def test_what_a_punctuation_excludes_is_bad_for_all_queries() -> None:
    """Items, count windows and aggregates over the whole do not see it; those that it does not describe they do."""
    document = f"<r {CONTROL}><i><t>1</t></i><s:punctuation where='t = 0'/><i><t>0</t></i><i><t>2</t></i></r>"
    assert ask("for $p in stream('s')/r/i return string($p/t)", {"s": document}).text == "1 2"
    assert ask(f"for $w in stream('s')/r/i|count 2| return {SHOW}", {"s": document}).text == "<w>1 2</w>"
    assert ask("count(stream('s')/r/i)", {"s": document}).text == "2"


# --- late subscriptions (LAWS 3.6) ------------------------------------------------------------------------


def late_windows(window: str, *times: object, origin: str = "0", path: str = "stream('s')/r/i") -> str:
    """What a subscription answers that came late, and sees these items."""
    given = replace(text_input(leaves("t", *times), name="s", origin=origin), late=True)
    return ask(f"for $w in {path}|{window}| return {SHOW}", {"s": given}).text


def test_case_6() -> None:
    """After 5 and 12 the subscription sees 18 first; its first window is [20,40) (LAWS 6, case 6)."""
    assert late_windows("t diff 20 step 10", 18, 25, 45) == "<w>25</w><w>45</w><w>45</w>"


def test_a_window_that_begins_with_the_first_value_is_whole() -> None:
    """Nothing of it was missed."""
    assert late_windows("t diff 10", 20, 25) == "<w>20 25</w>"
    assert late_windows("t diff 10", 23, 28, origin="3") == "<w>23 28</w>"
    assert late_windows("t diff 10", 20.5, 25, 30) == "<w>30</w>"


def test_the_first_value_counts_whether_selected_or_not() -> None:
    """A stream begins with what is seen of it, not with what is chosen."""
    assert late_windows("t diff 10", 5, 12, 20, path="stream('s')/r/i[t > 10]") == "<w>12</w><w>20</w>"
    assert late_windows("t diff 10", 15, 8, 20, 12) == "<w>20</w>"


def test_what_has_no_reference_value_is_not_the_first() -> None:
    """The first that has one is."""
    assert late_windows("t diff 10", "x", 11, 25) == "<w>25</w>"


def test_count_windows_begin_with_the_subscription() -> None:
    """A late subscription counts from what it sees (LAWS 6, case 5)."""
    assert late_windows("count 2", 2, 3, 4, 5) == "<w>2 3</w><w>4 5</w>"


# --- count windows (LAWS 3.3) -----------------------------------------------------------------------------

COUNT: tuple[tuple[str, tuple[object, ...], list[str]], ...] = (
    ("count 2", (1, 2, 3, 4, 5), ["1 2", "3 4"]),
    ("count 2 step 1", (1, 2, 3), ["1 2", "2 3"]),
    ("count 2 step 3", (1, 2, 3, 4, 5, 6), ["1 2", "4 5"]),
    ("count 1", (1, 2), ["1", "2"]),
    ("count 3", (1, 2), []),
    ("count 3 step 2", (1, 2, 3, 4), ["1 2 3"]),
    ("count 2", (), []),
)


@pytest.mark.parametrize(("window", "times", "expected"), COUNT)
def test_count_windows(window: str, times: tuple[object, ...], expected: list[str]) -> None:
    """Window j holds the items from j steps on; one that is not full at the end gives nothing."""
    assert windows(window, *times) == expected


def test_case_5() -> None:
    """A subscription from the second item on counts from there (LAWS 6, case 5)."""
    assert windows("count 2", 1, 2, 3, 4, 5) == ["1 2", "3 4"]
    assert windows("count 2", 2, 3, 4, 5) == ["2 3", "4 5"]


def test_only_selected_items_are_counted() -> None:
    """A count window numbers what the predicates select."""
    assert windows("count 2", 1, 2, 3, 4, 5, path="stream('s')/r/i[t mod 2 = 1]") == ["1 3"]


def test_windows_over_a_document() -> None:
    """What is finite has windows too."""
    query = "for $w in doc('s')/r/i|count 2| return <w>{ $w/t }</w>"
    assert ask(query, {"s": leaves("t", 1, 2, 3)}).text == "<w><t>1</t><t>2</t></w>"


def test_nodes_below_items_may_fill_windows() -> None:
    """A window takes what its path reaches, be it items or parts of them."""
    document = stream("<n>1</n><n>2</n>", "<n>3</n>")
    assert ask("for $w in stream('s')/r/i/n|count 2 step 1| return <w>{ $w }</w>", {"s": document}).text == (
        "<w><n>1</n><n>2</n></w><w><n>2</n><n>3</n></w>"
    )
    assert ask("for $w in stream('s')/r/i/n|self::n diff 2| return <w>{ $w }</w>", {"s": document}).text == (
        "<w><n>1</n></w><w><n>2</n><n>3</n></w>"
    )


def test_a_window_that_fails_is_set_aside_alone() -> None:
    """An error concerns one window, which is named by its first item."""
    query = "for $w in stream('s')/r/i|t diff 10| return <w>{ sum($w/n) }</w>"
    document = stream("<t>1</t><n>1</n>", "<t>11</t><n>x</n>", "<t>21</t><n>3</n>")
    answer = ask(query, {"s": document})
    assert answer.text == "<w>1</w><w>3</w>"
    assert [(letter.code, letter.place.offset) for letter in answer.dead] == [("FORG0001", document.index("<i><t>11"))]
