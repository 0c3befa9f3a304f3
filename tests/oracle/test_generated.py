from __future__ import annotations

from random import Random

import pytest

from columnar.expression_cases import PLAIN, STYLES, ItemMaker, Oddity
from columnar.random_cases import random_query
from mass import Mass
from oracle.compare import difference
from oracle.counting import compared
from oracle.generate import case


@pytest.mark.parametrize(
    ("family", "count"),
    [
        *(("items", 210), ("windows", 150), ("joins", 150), ("partitions", 80), ("groups", 150), ("positions", 200)),
        ("everyday", 300),
    ],
)
def test_generated_queries(family: str, count: int, mass: Mass) -> None:
    """The reference answers every generated query as Saxon does; of the differences the shortest is shown."""
    differences: list[str] = []
    for number in mass.cases(count):
        one = case(family, number)
        found = difference(one.query, one.inputs, dict.fromkeys(one.inputs, "t") if one.timed else None)
        if found is not None:
            differences.append(f"{family} {number}: {found}")
        compared.add(one.query)
    assert not differences, f"{len(differences)} differences, the shortest:\n{min(differences, key=len)}"


_FREE = ("let $", ")[1]", "substring(", "round(", "1234567890123456")
"""What Saxon may answer otherwise: a `let` that nobody needs does not fail there, nor does what stands behind the first
of several values, a double that lies between two shortest decimals is spelled by the other, and some positions are too
much for it."""


def test_generated_expressions(mass: Mass) -> None:
    """What columns are compared with, the law, is what Saxon answers, for queries as columns are tested by."""
    differences: list[str] = []
    judged = 0
    for number in mass.cases(400):
        random = Random(number)
        style = random.choice(STYLES[:3])  # not JSON, which Saxon would read otherwise
        query, _ = random_query(random, style)
        if any(each in query for each in _FREE):
            continue
        maker = ItemMaker(random, style, random.choice((PLAIN, Oddity(5, 2))))
        found = difference(query, {"s": f"<r>{''.join(maker.line() for _ in range(12))}</r>"})
        judged += 1
        if found is not None:
            differences.append(f"{number}: {found}")
    assert not differences, f"{len(differences)} differences, the shortest:\n{min(differences, key=len)}"
    assert 3 * judged >= mass.done or mass.done < 60
