"""LAWS 2.6 in branches: whoever evaluates, what takes too many steps is the same."""

from __future__ import annotations

from random import Random

import pytest

from branch.counting import Stream
from branch.test_law import question
from reference.few_steps import allowing

PANES = (
    "let $v := $w/n for $i in (1, 2, 3) where $i <= count($v[. > 1]) return <o>{ $i, avg($v), count($v[. > 2]) }</o>",
    "return <o>{ count($w[n = c/m]), for $i in (1, 2, 3, 4) return sum($w/n) }</o>",
    "return <o>{ count($w[*[.//m[. > 1] = (1, 2, 3, 4)] = (n, n, c/m)]), max($w/c[m = (1, 2, 3)]/m) }</o>",
    "where some $i in (1, 2, 3, 4, 5, 6), $j in (1, 2, 3) satisfies $i * $j = count($w) return <o>{ count($w) }</o>",
)


def items(random: Random) -> list[str]:
    """Items of which some have more to compare than others."""
    found = []
    for number in range(40):
        values = "".join(f"<n>{random.randrange(9)}</n><c><m>{random.randrange(9)}</m></c>" for _ in range(number % 6))
        found.append(f"<i><t>{number}</t>{values}</i>")
    return found


@pytest.mark.parametrize("family", ["items", "windows", "joins"])
def test_a_branch_counts_as_the_law_does(family: str) -> None:
    """Generated queries with few steps allowed: answers and dead letters are those of the reference."""
    exhausted = 0
    for number in range(24):
        with allowing((3, 4, 7, 12)[number % 4]):
            random = Random(f"{family} {number}")
            asked = question(family, number, random)
            if not asked.standing.streams:
                continue
            law, taken = asked.law(), asked.run(random, epochs=2)
            assert asked.answer(taken) == law.text, asked.text
            assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead)
            exhausted += any(each.code == "XPDY0130" for each in law.dead)
    assert exhausted


@pytest.mark.parametrize("rest", PANES)
@pytest.mark.mass
def test_panes_count_as_the_law_does(rest: str) -> None:
    """A window that is counted by panes fails with as many steps as one that holds its items, and with no fewer."""
    query = f"for $w in stream('s')/r/i|t diff 4 step 2| {rest}"
    outcomes = set()
    for steps in (1, 2, 3, 5, 8, 12, 18, 30, 50):
        with allowing(steps):
            stream = Stream(items(Random("items")), "0", "0", None, False)
            plan = stream.plan(query)
            assert plan is not None, "it is seen through aggregates only"
            law = stream.by_law(query)
            answer, found = stream.by_panes(query, plan, Random(steps))
            assert answer == law.text, steps
            assert sorted(each.to_json() for each in found.dead) == sorted(each.to_json() for each in law.dead), steps
            outcomes.add(len(law.dead))
    assert len(outcomes) > 1, "the limit must matter"
