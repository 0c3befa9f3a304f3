"""Times and durations, judged by Saxon: generated queries over items whose texts are times, or nearly (LAWS 2.7)."""

from __future__ import annotations

from random import Random

from mass import Mass
from oracle.compare import difference
from oracle.counting import compared
from oracle.time_queries import item_values, time_query, xml_item


def test_generated_times(mass: Mass) -> None:
    """The reference computes, compares, casts and orders times as Saxon does; the shortest difference is shown."""
    differences: list[str] = []
    for number in mass.cases(400):
        random = Random(number)
        query = time_query(random)
        found = difference(query, {"s": f"<r>{''.join(xml_item(item_values(random)) for _ in range(8))}</r>"})
        if found is not None:
            differences.append(f"{number}: {found}")
        compared.add(query)
    assert not differences, f"{len(differences)} differences, the shortest:\n{min(differences, key=len)}"
