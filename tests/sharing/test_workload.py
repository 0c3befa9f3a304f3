"""The paper's own workload: 32 random queries, and how many of them share a stream."""

from __future__ import annotations

import re

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


def test_constants_that_lie_farther_apart() -> None:
    """The same queries with other constants; those in the middle stay."""
    texts, wider = workload(1), workload(1, QUERIES, "2")
    assert [re.sub("[0-9.]+", "", each) for each in texts] == [re.sub("[0-9.]+", "", each) for each in wider]
    energies = {each for text in texts for each in re.findall("en >= ([0-9.]+)", text)}
    more = {each for text in wider for each in re.findall("en >= ([0-9.]+)", text)}
    assert energies == {"1.1", "1.2", "1.3", "1.4", "1.5"}
    assert more == {"0.9", "1.1", "1.3", "1.5", "1.7"}


@pytest.mark.mass
def test_how_many_share() -> None:
    """As many as in the paper share as they are; with widening all but the first do, as there."""
    found = share(0, sample=10)
    assert found == Shared(32, PAPER_WITHOUT, PAPER_WITH)
