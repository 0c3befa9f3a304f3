"""LAWS 4.5: what is refused is set aside; its path is unknown for the items described: who reads it there aborts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algebra.accented import HERE, add, alter, closed, drop, item, path, show
from anabranch.algebra.operators.construct import Construct, Copy, Linear
from anabranch.algebra.plans.builder import DerivedStream, stream
from anabranch.algebra.plans.interpret import Apply, StreamSource
from anabranch.errors import Aborted
from anabranch.stream.description import parse
from anabranch.stream.elements import DeadLetter, Doubt
from models.interpreter import Element, Interpreter, leaving

S = stream("s")
REFUSED = alter("t", ". * 2", "s = 2 and t > 5")
REASON = "the description names 't', the path that evolves"


def answers(query: DerivedStream, *elements: Element | DeadLetter | str) -> tuple[list[str], list[str]]:
    """What a query gives, and the reasons of what was set aside."""
    work = Interpreter(query.plan)
    fed = [item(each) if isinstance(each, str) else each for each in elements]
    found = [each for element in fed for each in work.feed("s", element)]
    found += work.end()
    return [show(leaving(each, 0, str)) for each in found], [each.reason for each in work.bad]


@pytest.mark.parametrize(
    ("query", "who"),
    [
        (S.select("t > 5"), "Select reads 't'"),
        (S.window("t", size=10), "Window reads 't'"),
        (S.join(S, on="t"), "Join reads 't'"),
        (S.order("t"), "Order reads 't'"),
        (S.intersect(S), "Intersect reads 't'"),
        (S.aggregate(by=["s"], avg=["t"]), "Aggregate reads 't'"),
        (S.aggregate(by=["t"], avg=["x"]), "Aggregate reads 't'"),
        (S, "the answer shows 't'"),
        (S.union(S), "the answer shows 't'"),
        (S.project("t"), "the answer shows 't'"),
    ],
)
def test_who_reads_an_unknown_path_aborts(query: DerivedStream, who: str) -> None:
    """At the first item concerned, with the reason; whether it carries the path or not."""
    for concerned in ("s=2 t=3", "s=2 x=1"):
        with pytest.raises(Aborted) as caught:
            answers(query, REFUSED, "s=1 x=1", concerned)
        assert caught.value.message == f"{who}, of which nothing is known: {REASON}"


def test_others_go_on() -> None:
    """Who does not look at the path, or sees none of the items described."""
    assert answers(S.project("s", "x"), REFUSED, "s=2 x=1 t=9") == (["s=2 x=1"], [REASON])
    assert answers(S.select("s = 1"), REFUSED, "s=2 t=9", "s=1 t=5") == (["s=1 t=5"], [REASON])
    counted = S.aggregate(by=["s"], all="count", exclude=["t"])
    assert answers(counted, REFUSED, "s=2 x=1 t=9") == (["s=2 x=1"], [REASON])


def test_a_drop_makes_it_known_again() -> None:
    """And an add gives a new path."""
    found, _ = answers(S, REFUSED, drop("t", "s = 2"), "s=2 x=1", add("t", "s = 2"), "s=2 t=9")
    assert found == ["drop t where s = 2", "s=2 x=1", "add t where s = 2", "s=2 t=9"]


def test_what_is_described_by_an_unknown_path_is_unknown() -> None:
    """Whether x was altered for an item depends on t, and t is unknown there."""
    before = (alter("x", ". * 2", "t > 30"), REFUSED)
    assert answers(S.project("s", "x"), *before, "s=1 x=8")[0] == ["s=1 x=8"]
    with pytest.raises(Aborted, match="the answer shows 'x', of which nothing is known"):
        answers(S.project("s", "x"), *before, "s=2 x=8")


def test_an_accent_that_could_not_be_read_leaves_its_path_unknown() -> None:
    """The reader sets it aside, and says what it was about."""
    letter = DeadLetter(
        HERE, "a unit change must be increasing", "<s:accent/>", doubts=(Doubt(path("t"), parse("s = 2")),)
    )
    assert answers(S.project("s"), letter, "s=2 t=1") == (["s=2"], ["a unit change must be increasing"])
    with pytest.raises(Aborted, match="the answer shows 't', of which nothing is known: a unit change must be"):
        answers(S, letter, "s=2 t=1")
    assert answers(S, letter, "s=1 t=1")[0] == ["s=1 t=1"]


def test_bad_items_are_set_aside() -> None:
    """One that carries a dropped path, and one that a punctuation has excluded, told in the units of its place."""
    found = answers(S, drop("x"), "x=1 s=1", "s=1", closed("t <= 10"), alter("t", ". * 2"), "t=20", "t=21")
    assert found == (
        ["drop x", "s=1", "closed t <= 10", "alter t by . * 2", "t=21"],
        ["it carries 'x', which was dropped", "a punctuation said that no item where 't <= 20' follows"],
    )


def test_a_refused_add_changes_nothing() -> None:
    """The path is there already, and known."""
    found = answers(S, add("p"), add("p", "s = 1"), "s=1 p=7")
    assert found == (["add p", "s=1 p=7"], ["'p' is added where it exists for 's = 1'"])


def test_what_is_unknown_follows_a_path_to_its_other_name() -> None:
    """A copy is as unknown as the path it is of; a field that is computed from it cannot be."""
    copied = Construct("o", ((path("s"), Copy(path("s"))), (path("u"), Copy(path("t")))))
    with pytest.raises(Aborted, match="the answer shows 'u', of which nothing is known"):
        answers(DerivedStream(Apply(copied, (StreamSource("s"),))), REFUSED, "s=2 t=1")
    doubled = Construct("o", ((path("u"), Linear(((Fraction(2), path("t")),))),))
    with pytest.raises(Aborted, match="Construct reads 't'"):
        answers(DerivedStream(Apply(doubled, (StreamSource("s"),))), REFUSED, "s=2 t=1")
    assert answers(DerivedStream(Apply(doubled, (StreamSource("s"),))), REFUSED, "s=1 t=4")[0] == ["u=8"]
