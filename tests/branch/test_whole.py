"""Queries that wait for the end: everything is kept, on disk where it is much, and the law answers (LAWS 1.2)."""

from __future__ import annotations

from anabranch.branch.intake.backlog import SMALL
from branch.feeding import Flow, Question, Stream


def test_the_whole_is_answered_at_the_end() -> None:
    """Nothing comes before the last input ends; then the answer comes in one piece."""
    query = '<n>{ count(stream("a")/r/i), for $x in stream("b")/r/i order by $x/n descending return $x/n }</n>'
    flow = Flow(Question(query, [Stream("a"), Stream("b")]))
    flow.bring("a", "<i/>", "<i/>")
    flow.epoch()
    assert flow.branch.held == 2
    flow.bring("b", "<i><n>1</n></i>", "<i><n>2</n></i>")
    flow.epoch()
    flow.branch.end("b", 0)
    flow.epoch()
    flow.bring("a", "<i/>")
    assert flow.taken.pieces == []
    flow.branch.end("a", 0)
    assert flow.taken.pieces == ["<n>3<n>2</n><n>1</n></n>"]


def test_what_waits_is_on_disk() -> None:
    """The state stays small, however much waits."""
    flow = Flow(Question('count(stream("a")/r/i)', [Stream("a")]))
    for _ in range(12):
        flow.bring("a", *(f"<i>{'x' * 5_000}</i>" for _ in range(20)))
        flow.epoch()
        assert flow.size < SMALL + 10_000
    assert len(flow.branch.spilled) >= 3
    assert flow.end() == ["240"]


def test_errors_and_late_items_are_those_of_the_law() -> None:
    """What the law sets aside, or finds late, is said."""
    query = 'for $w in stream("a")/r/i |t diff 10| order by sum($w/n) return <w>{ $w/t }</w>'
    flow = Flow(Question(query, [Stream("a")]))
    flow.bring("a", "<i><t>5</t></i>", "<i><t>4</t></i>", "<i><t>x</t></i>", "<i><t>15</t><n>x</n></i>")
    flow.epoch()
    assert flow.end() == ["<w><t>5</t></w>"]
    assert [each.offset for each in flow.taken.places] == [18]
    assert [each.place.offset for each in flow.taken.dead] == [33, 48]
