"""The builder gives the plans that would be written by hand, and says what is wrong with an argument."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from fractions import Fraction

import pytest

from algebra.accented import CELSIUS, alter, path, shown
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.join import Join
from anabranch.algebra.operators.windowed import Window
from anabranch.algebra.plans import builder
from anabranch.algebra.plans.builder import DerivedStream, constant, linear, stream
from anabranch.algebra.plans.interpret import Apply, StreamSource
from anabranch.algebra.window import Extent
from anabranch.errors import UsageError
from models.interpreter import Element

S = stream("s")


def test_the_query_of_figure_1() -> None:
    """The paper's standing query, by the builder and by hand: the same plan, and the right average."""
    joined = stream("sensors").join(stream("placement"), on="s")
    built = joined.window("ts", size=5).aggregate(by=["l", "wid"], all="avg", exclude=["ts", "s"])
    pairs = Apply(Join(((path("s"), path("s")),)), (StreamSource("sensors"), StreamSource("placement")))
    windows = Apply(Window(path("ts"), Extent(Fraction(5), Fraction(5))), (pairs,))
    by = (path("l"), path("wid"))
    assert built == DerivedStream(Apply(Aggregate("avg", by, frozenset({path("ts"), path("s")})), (windows,)))
    elements: list[tuple[str, Element | str]] = [
        ("placement", "s=1 l=A"),
        ("placement", "s=2 l=A"),
        ("sensors", "ts=5 s=1 t=77"),
        ("sensors", alter("t", CELSIUS, "s = 2")),
        ("sensors", "ts=6 s=2 t=25"),
    ]
    assert shown(built.plan, elements) == ["l=A wid=1 t=77"]


def test_a_plan_can_be_printed() -> None:
    """One line per operator, inputs below it, further in."""
    query = S.some("c", "ra > 5").project("t", "k").order("-t", "k").union(S.choose("t > 1", _same, _same))
    near = query.intersect(S).join(stream("r"), on=[("k", "j")], within=("t", "u", "0.5"))
    assert str(near.aggregate(by=["k"], max=["u"], all="sum", exclude=["j"])) == "\n".join(
        (
            "aggregate by k: max of u, sum of all others but j",
            "  join on k = j and t within 0.5 of u",
            "    intersect",
            "      union",
            "        order by t descending, k",
            "          project k, t",
            "            some c: ra > 5",
            "              stream s",
            "        union",
            "          select t > 1",
            "            stream s",
            "          select not(t > 1)",
            "            stream s",
            "      stream s",
            "    stream r",
        )
    )
    assert doctest.testmod(builder).failed == 0


def _same(each: DerivedStream) -> DerivedStream:
    return each


def test_named_aggregates() -> None:
    """Each path has its function, and what is not named is left out, also what an add brings."""
    query = S.aggregate(by=["k"], max=["t"], count=["u"])
    assert shown(query.plan, [("s", "k=1 t=3 u=a v=5"), ("s", "k=1 t=7 u=b v=6")]) == ["k=1 t=7 u=2"]
    changes = [("s", alter("t", ". + 10")), ("s", alter("u", ". * 2")), ("s", alter("v", ". * 2"))]
    assert shown(query.plan, [("s", "k=1 t=3 u=1 v=5"), *changes]) == ["alter t by . + 10", "k=1 t=13 u=1"]


def test_constructed_items() -> None:
    """Copies under other names, constants and linear fields; text in the plan says which."""
    query = S.construct("reading", {"at/temp": linear({"t": "1.8"}, 32), "id": "s", "unit": constant("F")})
    assert str(query).startswith("construct reading: at/temp = t * 1.8 + 32, id = s, unit = 'F'")
    assert shown(query.plan, [("s", "s=1 t=25")]) == ["at/temp=77 id=1 unit=F"]


def test_pairs_within_a_distance() -> None:
    """LAWS 3.5: closed at both ends, in canonical values; the alter waits for the other side."""
    query = S.join(stream("r"), within=("a", "b", 10)).plan
    fed: list[tuple[str, Element | str]] = [
        ("s", "a=50"),
        ("r", "b=40"),
        ("r", "b=39"),
        ("s", alter("a", ". * 2")),
        ("s", "a=98"),
    ]
    assert shown(query, fed) == ["a=50 b=40", "a=49 b=40", "a=49 b=39"]
    assert shown(query, [*fed, ("r", alter("b", ". * 2")), ("r", "b=118")])[3:] == [
        "alter a by . * 2",
        "alter b by . * 2",
        "a=100 b=118",
        "a=98 b=118",
    ]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: stream(""), "a stream needs a name"),
        (lambda: S.select("t >"), "the condition of select: expected a number or a quoted string at character 4"),
        (lambda: S.project(), "project needs a path"),
        (lambda: S.project("1a"), "project: '1a' is not a path"),
        (lambda: S.order(), "order needs a path to sort by"),
        (lambda: S.union(), "union needs another stream"),
        (lambda: S.union("r"), "union takes a stream, not str"),  # type: ignore[arg-type]
        (lambda: S.choose("t > 1", _same, lambda _: None), "choose takes a stream, not NoneType"),  # type: ignore[arg-type, return-value]
        (lambda: S.construct("o", {}), "construct needs a field"),
        (lambda: S.construct("o", {"a": "t", "a/b": "s"}), "construct puts 'a/b' into another field"),
        (lambda: linear({"t": 0}), "linear needs paths with factors other than 0"),
        (lambda: linear({"t": "x"}), "the factor is 'x', which is no number"),
        (lambda: S.join(S), "join needs a path to join on"),
        (lambda: S.join(S, within=("t", "t", 1)), "both sides of 'within' are called 't'"),
        (lambda: S.window("t", size=0), "the size is 0, which is not above 0"),
        (lambda: S.window("t", size=1, step="x"), "the step is 'x', which is no number"),
        (lambda: S.aggregate(by=["t"]), "aggregate has nothing to do"),
        (lambda: S.aggregate(by="t", avg=["x"]), "aggregate takes a list of paths, not 't'"),
        (lambda: S.aggregate(avg=["x"], max=["x"]), "aggregate is given 'x' twice"),
        (
            lambda: S.aggregate(avg=["x"], exclude=["y"]),
            "exclude is for all=...: of named paths the others",
        ),
        (lambda: S.aggregate(all="mode"), "'mode' is no aggregate"),
        (lambda: S.aggregate(modes=["x"]), "'modes' is no aggregate"),
    ],
)
def test_what_is_wrong_is_said(build: Callable[[], object], message: str) -> None:
    """A wrong argument is an error of usage with a hint, before anything runs."""
    with pytest.raises(UsageError) as caught:
        build()
    assert caught.value.message.startswith(message)
    assert caught.value.hint
