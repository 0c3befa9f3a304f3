from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracle.compare import compared, difference
from oracle.generate import Case, item_queries, join_queries, window_queries


def agreement(cases: st.SearchStrategy[Case], count: int) -> Callable[[], None]:
    """A test that compares `count` generated cases, the same in every run."""

    @settings(
        max_examples=count,
        derandomize=True,
        deadline=None,  # the first query pays for starting Saxon
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(cases)
    def compare(case: Case) -> None:
        found = difference(case.query, case.inputs, dict.fromkeys(case.inputs, "t") if case.timed else None)
        assert found is None, f"\n{found}"
        compared.add(case.query)

    return compare


@pytest.mark.parametrize(
    ("cases", "count"),
    [
        pytest.param(item_queries(), 500, id="items"),
        pytest.param(window_queries(), 350, id="windows"),
        pytest.param(join_queries(), 350, id="joins"),
    ],
)
def test_generated_queries(cases: st.SearchStrategy[Case], count: int) -> None:
    """The reference answers every generated query as Saxon does, and hardly any is generated twice."""
    before = len(compared)
    agreement(cases, count)()
    assert len(compared) - before > 0.8 * count
