from __future__ import annotations

import pytest

from mass import Mass
from oracle.compare import difference
from oracle.counting import compared
from oracle.generate import case


@pytest.mark.parametrize(("family", "count"), [("items", 210), ("windows", 150), ("joins", 150), ("partitions", 80)])
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
