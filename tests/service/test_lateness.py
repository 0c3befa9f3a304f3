"""The causes of lateness one by one: what is told of each, and that what is usual is no cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.service.watch.activity import Figures, StreamTotals, Totals
from anabranch.service.watch.holdings import BranchHolding, Holdings
from anabranch.service.watch.lag import Lag, StreamLag
from anabranch.service.watch.lateness import MOST_CAUSES, Cause, Situation, lateness
from anabranch.spark.epoch.metrics import Metrics, StreamNumbers
from anabranch.spark.epoch.waits import Wait

NOW = 1_000.0


def epoch(
    number: int = 0, *, plan: int = 1, job: int = 10, publish: int = 5, deliver: int = 1, ago: float = 1
) -> Metrics:
    """An epoch that ended some seconds ago, with the milliseconds of its phases."""
    numbers = StreamNumbers(100, 100, 0, 0, 0, 1, 0, {})
    total = plan + job + publish + deliver
    return Metrics(
        number, 1, 100, 1_000, 0, 0, 1, 100, {}, 0, {}, plan, job, publish, deliver, {"s": numbers},
        NOW - ago - total / 1_000, plan + job + publish,
    )  # fmt: skip


def figures(*epochs: Metrics) -> Figures:
    return Figures(NOW, epochs, Totals(), {"s": StreamTotals()}, {}, ())


USUAL = Situation("ready", figures(*map(epoch, range(5))), {}, (), Holdings(), None, {})


def lagging(bytes: int, seconds: float, growth: float = 0.0) -> dict[str, StreamLag]:
    return {"s": StreamLag({"0": Lag(bytes, None, seconds, growth)})}


def only(situation: Situation) -> Cause:
    (found,) = lateness(situation)
    return found


def test_a_run_that_is_on_time_has_no_cause() -> None:
    """Epochs that take milliseconds, and data that came a moment ago, are nothing to tell."""
    assert lateness(USUAL) == []
    assert lateness(replace(USUAL, lags=lagging(5_000, 0.5))) == []
    assert lateness(replace(USUAL, lags=lagging(0, 4_000.0))) == [], "old items that were read are not waited for"
    assert lateness(replace(USUAL, epochs_behind={"files": 1})) == []


@pytest.mark.parametrize("state", ["starting", "stopping", "failed"])
def test_a_run_that_is_not_at_work_is_the_worst_cause(state: str) -> None:
    """It is told before any other."""
    found = lateness(replace(USUAL, state=state, lags=lagging(5_000, 50.0)))  # type: ignore[arg-type]
    assert (found[0].what, found[0].name) == ("epoch", "run")
    assert state[:4] in found[0].message


def test_lag_that_grows_is_worse_than_lag_that_shrinks() -> None:
    """One is told with its growth, the other with the time that it will take."""
    growing = only(replace(USUAL, lags=lagging(5_000, 5.0, 100.0)))
    shrinking = only(replace(USUAL, lags=lagging(5_000, 5.0, -100.0)))
    assert growing.numbers == {"bytes": 5_000, "seconds": 5.0, "grows_by_bytes_per_second": 100.0}
    assert shrinking.numbers == {"bytes": 5_000, "seconds": 5.0, "caught_up_in_seconds": 50.0}
    assert growing.seconds > shrinking.seconds
    assert "become more" in growing.message
    assert "become fewer" in shrinking.message


def test_messages_of_a_topic_are_called_messages() -> None:
    """Lag in offsets is one of messages."""
    found = only(replace(USUAL, lags={"s": StreamLag({"0": Lag(None, 7, 5.0), "1": Lag(None, 3, 9.0)})}))
    assert found.numbers == {"messages": 10, "seconds": 9.0}


def test_no_epoch_for_long_while_data_waits_is_told() -> None:
    """An hour after the last epoch, with data that has waited for a minute."""
    found = lateness(replace(USUAL, figures=figures(epoch(ago=3_600)), lags=lagging(10, 60.0)))
    stuck = next(each for each in found if each.what == "epoch")
    assert (stuck.name, stuck.numbers["seconds"]) == ("epoch 1", 60.0)
    quiet = replace(USUAL, figures=figures(epoch(ago=3_600)), lags=lagging(0, 0.0))
    assert lateness(quiet) == [], "where nothing waits, nobody is late"


@pytest.mark.parametrize("phase", ["plan", "publish", "deliver"])
def test_a_phase_that_takes_most_of_slow_epochs_is_named(phase: str) -> None:
    """With its share, and with what one can do about it."""
    slow = figures(*(epoch(number, **{phase: 2_000}) for number in range(3)))
    found = only(replace(USUAL, figures=slow))
    assert (found.what, found.name, found.numbers["phase_ms"]) == ("epoch", phase, 2_000)
    assert found.hint


def test_tasks_are_blamed_only_where_something_waits() -> None:
    """To work on items is what epochs are for."""
    slow = replace(USUAL, figures=figures(*(epoch(number, job=2_000) for number in range(3))))
    assert lateness(slow) == []
    found = lateness(replace(slow, lags=lagging(10, 5.0)))
    assert {each.what for each in found} == {"epoch", "stream"}


def test_sinks_and_branches_are_told_with_their_numbers() -> None:
    """A sink by its kind, a branch by one of its subscriptions."""
    much = BranchHolding(("a", "b"), 2, "windows", 0, 2_000_000, 10, {})
    many = BranchHolding(("c",), 1, "step join", 0, 10, 10, {"s/0": 5_000})
    found = lateness(replace(USUAL, holdings=Holdings((much, many)), epochs_behind={"kafka": 12}))
    assert [(each.what, each.name) for each in found] == [("branch", "c"), ("sink", "kafka"), ("branch", "a")]
    assert found[0].numbers == {"waiting_items": 5_000}
    assert found[1].numbers == {"epochs": 12}
    assert "'a' and 1 more" in found[2].message


def test_items_off_the_usual_look_are_told_while_epochs_are_slow() -> None:
    """Where a tenth is parsed one by one, with how many these are."""
    slow = epoch(job=5_000)
    parsed = replace(slow, streams={"s": StreamNumbers(10_000, 9_000, 0, 1_000, 0, 1, 0, {})})
    found = only(replace(USUAL, figures=figures(parsed)))
    assert found.numbers == {"parsed_items": 1_000, "items": 10_000}


def test_a_source_that_waits_is_told_where_something_is_unread() -> None:
    """The beginning of a line is; an empty folder is not late."""
    wait = Wait("s", "the last line has no end", "write it")
    assert lateness(replace(USUAL, waits=(wait,))) == []
    assert only(replace(USUAL, waits=(wait,), lags=lagging(6, 1.0))).message == "the last line has no end"


def test_very_many_causes_are_cut_and_the_worst_come_first() -> None:
    """A site of a thousand streams tells of fifty."""
    lags = {f"s{number}": StreamLag({"0": Lag(10, None, 5.0 + number)}) for number in range(1_000)}
    found = lateness(replace(USUAL, lags=lags))
    assert len(found) == MOST_CAUSES
    assert [each.seconds for each in found] == sorted((each.seconds for each in found), reverse=True)
    assert found[0].numbers["seconds"] > 1_000
