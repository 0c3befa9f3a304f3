"""Windows that remember: when they are answered, what they hold, and that they forget (LAWS 3.1 to 3.3, 3.6)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from anabranch.errors import StateError
from anabranch.stream.limits import Limits
from branch.feeding import Flow, Question, Stream


def windows(window: str, *, path: str = "i", result: str = "<w>{ $w/t/text() }</w>", **about: object) -> Flow:
    """A branch with one window over the stream 's'."""
    stream = Stream("s", **about)  # type: ignore[arg-type]
    return Flow(Question(f'for $w in stream("s")/r/{path} |{window}| return {result}', [stream]))


def item(time: object, *more: str) -> str:
    return f"<i><t>{time}</t>{''.join(more)}</i>"


def punctuation(said: str) -> str:
    return f'<s:punctuation xmlns:s="urn:anabranch:stream" {said}/>'


def test_a_window_is_answered_by_an_item_that_is_not_selected() -> None:
    """LAWS case 13: [0,10) is answered when 100 arrives, before any end; in a later epoch just so."""
    flow = windows("t diff 10", path="i[a]")
    assert flow.bring("s", item(1, "<a/>")) == []
    flow.epoch()
    assert flow.bring("s", item(100)) == ["<w>1</w>"]
    assert flow.branch.held == 0
    assert flow.end() == []


def test_count_windows_begin_with_the_subscription() -> None:
    """LAWS case 5: windows are full in turn, whatever the epochs, and the last one that is not full gives nothing."""
    flow = windows("count 2")
    for time in range(1, 6):
        flow.bring("s", item(time))
        flow.epoch()
    flow.end()
    assert flow.taken.pieces == ["<w>12</w>", "<w>34</w>"]


def test_a_late_subscription() -> None:
    """LAWS case 6: the first window of one that starts before 18 is [20,40)."""
    flow = windows("t diff 20 step 10", late=True)
    flow.bring("s", item(18), item(25))
    flow.epoch()
    flow.bring("s", item(45))
    flow.end()
    assert flow.taken.pieces == ["<w>25</w>", "<w>45</w>", "<w>45</w>"]


def test_all_partitions_must_have_come_that_far() -> None:
    """A window closes when the last partition reaches its end, and holds its items in the order of their times."""
    flow = windows("t diff 10", partitions=2, time="t")
    assert flow.bring("s", item(1), item(5), item(30)) == []
    assert flow.bring("s", item(4), item(9), partition=1) == []
    flow.epoch()
    assert flow.bring("s", item(12), partition=1) == []  # as long as 30 has not had its turn
    assert flow.bring("s", item(31), partition=1) == ["<w>1459</w>"]
    assert flow.end() == ["<w>12</w>", "<w>3031</w>"]


@pytest.mark.parametrize(
    ("said", "closes"),
    [
        ('where="t &lt; 10"', True),
        ('where="t &lt;= 9"', False),
        ('where="t &lt;= 10"', True),
        ('where="a = 1 or t &lt; 20"', True),
        ('where="a = 1 and t &lt; 20"', False),
        ('at="10"', True),
        ('at="9"', False),
    ],
)
def test_punctuations_close_windows(said: str, closes: bool) -> None:
    """A punctuation closes the windows that it covers, slack or not; a heartbeat does where the window goes by time."""
    flow = windows("t diff 10", time="t", slack=Fraction(3))
    flow.bring("s", item(1))
    flow.epoch()
    assert flow.bring("s", punctuation(said)) == (["<w>1</w>"] if closes else [])


def test_a_heartbeat_says_nothing_of_other_paths() -> None:
    """Where the window does not go by the declared time, a heartbeat closes nothing."""
    flow = windows("t diff 10", time="other")
    assert flow.bring("s", item(1), punctuation('at="1000"')) == []


def test_late_items_are_noted_once() -> None:
    """An item below what its partition has shown, less the slack, is in no window, in a later epoch too."""
    flow = windows("t diff 10", path="i/t/..", slack=Fraction(2))
    flow.bring("s", item(9))
    flow.epoch()
    flow.bring("s", item(7), item("6.9"), item(20))
    flow.end()
    assert flow.taken.pieces == ["<w>97</w>", "<w>20</w>"]
    assert [str(place) for place in flow.taken.places] == ["s/file0 at byte 33"]


def test_jumps_cost_nothing() -> None:
    """A billion windows of a thousandth of a second are passed over without being looked at."""
    flow = windows("t diff 0.001", result="<w>{ $w/t }</w>")
    flow.bring("s", item(0), item("1000000000.0005"), item("2e9"))
    flow.epoch()
    flow.end()
    assert "".join(flow.taken.pieces) == "<w><t>0</t></w><w><t>1000000000.0005</t></w><w><t>2e9</t></w>"


def test_the_state_stops_growing() -> None:
    """Over a long stream the state holds what the open windows hold, and not more."""
    flow = windows("t diff 10 step 5", path="i[a]")
    sizes = []
    for epoch in range(30):
        flow.bring("s", *(item(epoch * 20 + n, "<a/>" if n % 2 else "") for n in range(20)))
        flow.epoch()
        assert flow.branch.held <= 5
        sizes.append(flow.size)
    assert max(sizes[10:]) <= max(sizes[:10]) + 50  # numbers grow by a digit
    assert flow.taken.at_once > 100


def test_document_order_is_that_of_arrival() -> None:
    """Items read again from the state stand before those that came later, and are the same nodes however often seen."""
    flow = windows("count 3", result="<w>{ ($w, $w)/t, count(($w, $w)/t) }</w>")
    flow.bring("s", item(2), item(1))
    flow.epoch()
    assert flow.bring("s", item(0)) == ["<w><t>2</t><t>1</t><t>0</t>3</w>"]


def test_values_stand_apart_across_epochs() -> None:
    """Between two values there is a space, whoever computed them; beside an element there is none."""
    flow = windows("count 1", result="if ($w/t = '3') then <b/> else if ($w/t = '4') then () else string($w/t)")
    for time in (1, 2, 3, 5, 4, "", 6):
        flow.bring("s", item(time))
        flow.epoch()
    assert "".join(flow.taken.pieces) == "1 2<b/>5  6"


def test_errors_concern_one_window() -> None:
    """A window that fails is named by its first item, from the state too, and the others are answered."""
    flow = windows("t diff 10", result="<w>{ $w/n + 1 }</w>")
    flow.bring("s", item(1, "<n>x</n>"))
    flow.epoch()
    flow.bring("s", item(11, "<n>2</n>"), item("y"))
    flow.end()
    assert flow.taken.pieces == ["<w>3</w>"]
    letters = sorted((each.place.offset, each.raw, each.code, each.subscription) for each in flow.taken.dead)
    assert letters == [
        (3, "<i><t>1</t><n>x</n></i>", "FORG0001", "q"),
        (50, "<i><t>y</t></i>", "FORG0001", "q"),
    ]


def test_an_item_that_can_no_longer_be_read() -> None:
    """Limits that are narrower than when an item came are said, and not an accident."""
    flow = windows("t diff 10")
    flow.bring("s", item(1, "<a/>"))
    flow.question.streams[0].limits = Limits(nodes=3)
    flow.epoch()
    with pytest.raises(StateError, match="the item s/file0 at byte 3, which a window or join holds, can no longer"):
        flow.end()
