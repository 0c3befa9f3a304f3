"""Plans in writing: what is read is what was written, and what the builder refuses cannot be read."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from algebra.evolving import Planner
from algebra.written_plans import parse_plan
from anabranch.algebra.plans.builder import DerivedStream, constant, linear, stream
from anabranch.algebra.plans.written import MOST_DEPTH, MOST_OPERATORS, is_plan, read_plan, streams_of, write_plan
from anabranch.errors import StateError, UsageError

S = stream("s")
EVERYTHING = (
    S.select("t > 5 and not(k = 'it''s')")
    .some("c", "ra > 5")
    .every("c", "")
    .choose("t < 1.30", lambda one: one, lambda other: other.project("t", "@id"))
    .union(stream("t"), stream("s"))
    .intersect(stream("ü"))
    .construct("o", {"k": "k", "@c": constant('"<\n'), "f": linear({"t": "9/5", "u": -1}, "32.5")})
    .order("-k", "f")
    .join(stream("r"), on=["k", ("f", "g")], within=("f", "u", "0.1"))
    .window("f", size="0.3", step="1/3")
    .aggregate(by=["wid"], all="avg", exclude=["k"], min=["f"], count=["g", "u"])
)


def test_every_operator_can_be_written() -> None:
    """One plan of all operators, and the text of a small one, which is canonical: exact fractions, sorted paths."""
    text = write_plan(EVERYTHING.plan)
    assert read_plan(text) == EVERYTHING.plan
    assert streams_of(EVERYTHING.plan) == ("s", "t", "ü", "r")
    assert is_plan(text)
    assert not is_plan("{ 1 }")
    small = S.project("b", "a").window("ts", size="0.5")
    same = S.project("a", "b").window("ts", size="1/2", step=Fraction(1, 2))
    assert (
        write_plan(small.plan)
        == write_plan(same.plan)
        == ('{"window":"ts","size":"1/2","step":"1/2","of":[{"project":["a","b"],"of":[{"stream":"s"}]}]}')
    )


def test_random_plans_come_back() -> None:
    """The plans of the square, but for functions of Python."""
    for seed in range(100):
        planner = Planner(Random(seed), goes=False)
        for _ in range(4):
            operators = [each for each in planner.possible() if each != "construct"]
            planner.grow(planner.random.choice(operators))
        assert read_plan(write_plan(planner.plan)) == planner.plan


SHARED = """\
r0 := select t > 5
  stream s
r1 := window of 10 every 5 over ts
  r0
union
  project t
    r0
  join on k = k and f within 1 div 3 of g
    r1
    aggregate by wid: min of t, avg of all others but k, u
      r1"""


def test_a_printed_plan_names_shared_parts_once() -> None:
    """A part that is used twice has a name, one inside another, too; streams have their own."""
    some = S.select("t > 5")
    windows = some.window("ts", size=10, step=5)
    grouped = windows.aggregate(by=["wid"], min=["t"], all="avg", exclude=["k", "u"])
    plan = some.project("t").union(windows.join(grouped, on="k", within=("f", "g", Fraction(1, 3)))).plan
    assert str(plan) == SHARED
    assert str(read_plan(write_plan(plan))) == SHARED


@pytest.mark.parametrize("plan", [SHARED, str(EVERYTHING).replace('"<\n', "it''s, k = 5")])
def test_what_is_printed_is_read_back(plan: str) -> None:
    """What is printed of a plan says all that is in it."""
    assert str(parse_plan(plan)) == plan


def test_random_plans_are_printed_and_read_back() -> None:
    """The printed text of random plans leads to the same plans."""
    for seed in range(100):
        planner = Planner(Random(seed), goes=False)
        for _ in range(6):
            operators = [each for each in planner.possible() if each != "construct"]
            planner.grow(planner.random.choice(operators))
        assert parse_plan(str(planner.plan)).plan == planner.plan


def test_printing_costs_what_the_parts_cost() -> None:
    """A plan that uses its input twice, sixty times over, prints in a few lines."""
    plan = S
    for _ in range(60):
        plan = plan.union(plan)
    assert len(str(plan).splitlines()) == 60 * 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"stream":1}',
        '{"stream":""}',
        '{"of":[{"stream":"s"}]}',
        '{"select":"t >","of":[{"stream":"s"}]}',
        '{"select":"t > 1","of":[]}',
        '{"__class__":"x","of":[{"stream":"s"}]}',
        '{"project":[],"of":[{"stream":"s"}]}',
        '{"project":"st","of":[{"stream":"s"}]}'.replace('"st"', "3"),
        '{"union":[],"of":[{"stream":"s"}]}',
        '{"window":"t","size":"1e999999999","step":"1","of":[{"stream":"s"}]}',
        '{"window":"t","size":"0","step":"1","of":[{"stream":"s"}]}',
        '{"window":"t","size":"1/0","step":"1","of":[{"stream":"s"}]}',
        '{"aggregate":[["t","mode"]],"all":null,"by":[],"exclude":[],"of":[{"stream":"s"}]}',
        '{"join":[],"within":[],"of":[{"stream":"s"},{"stream":"t"}]}',
        '{"construct":"o","fields":[["a","b"],["a/c","d"]],"of":[{"stream":"s"}]}',
        '{"select":"","of":[' * 200 + '{"stream":"s"}' + "]}" * 200,
        '{"select":"","of":[' * 100_000,
    ],
)
def test_what_is_damaged_is_not_read(text: str) -> None:
    """Neither what no builder makes, nor what would cost without bound."""
    with pytest.raises(StateError, match="the text of a plan is damaged"):
        read_plan(text)


def test_caps() -> None:
    """A plan of too many operators, side by side or one above the other, is refused when it is written."""
    deep = S
    for _ in range(MOST_DEPTH):
        deep = deep.select("t > 1")
    assert read_plan(write_plan(deep.plan)) == deep.plan
    with pytest.raises(UsageError, match="one above another"):
        write_plan(deep.select("t > 1").plan)
    wide = S
    for _ in range(60):
        wide = wide.union(wide)  # as many streams as no machine has room for
    with pytest.raises(UsageError, match=f"at most {MOST_OPERATORS} operators"):
        write_plan(wide.plan)


def test_what_the_builder_does_not_make() -> None:
    """A condition that is too long to be read has no text."""
    long = " and ".join([*["t > 1"] * 999, "t > 12"])
    same: DerivedStream = S.select(long)
    assert read_plan(write_plan(same.plan)) == same.plan
    with pytest.raises(UsageError, match="cannot be written down"):
        write_plan(S.choose(long, lambda one: one, lambda other: other).plan)
