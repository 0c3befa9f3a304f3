"""Saxon as the independent judge of the law: random streams of updates, random queries about their past."""

from __future__ import annotations

import pytest

from history.asking import Asked
from history.comparing import case, differences
from mass import some

CASES = 80


@pytest.mark.parametrize("part", range(8))
def test_random_streams_and_queries(part: int) -> None:
    """At moments anywhere in a stream the law answers what Saxon does over the annotated document."""
    for number in some(range(part, CASES, 8)):
        query, streams = case(number)
        assert list(differences(query, streams, judged=0.3)) == [], (number, query, streams)


def test_the_random_queries_have_answers() -> None:
    """Most of them show something at the end, so that agreement says something."""
    answers = [Asked(query, **streams).answer() for query, streams in map(case, range(CASES))]
    assert sum(each not in ("", "0") for each in answers) > CASES / 2
