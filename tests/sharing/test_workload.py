"""The paper's own workload: 32 random queries, and how many of them share a stream."""

from __future__ import annotations

import pytest

from anabranch.bench.workloads.paper import PAPER_WITH, PAPER_WITHOUT, QUERIES, Shared, share, workload
from sharing.making import tree


def test_the_queries_are_as_the_paper_says() -> None:
    """They select on pixels, on energies or on both, by comparisons joined by `and` or by `or`; seeds differ."""
    texts = workload(1)
    assert len(texts) == QUERIES
    assert texts == workload(1) != workload(2)
    conditions = [text.split("return")[0] for text in texts]
    kinds = [("det/dx" in condition, "/en" in condition) for condition in conditions]
    assert set(kinds) == {(True, False), (False, True), (True, True)}
    assert any(" or " in text for text in texts)
    assert any(" and " in text for text in texts)
    assert all(tree(text).outputs for text in texts)


@pytest.mark.mass
def test_how_many_share() -> None:
    """As many as in the paper share as they are; with widening all but the first do, as there."""
    found = share(0, sample=10)
    assert found == Shared(32, PAPER_WITHOUT, PAPER_WITH)
