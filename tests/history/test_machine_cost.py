"""What an update costs, and how much is kept: that of one entry, and no more than the query can need."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from history.following import TICKER, Followed, items, replaced


@pytest.mark.parametrize(
    "query",
    [
        'stream("s")/root/i/v#1',
        TICKER,
        '<n>{ count(stream("s")/root/i[v > 3]), max(stream("s")//v) }</n>',
        'for $x in stream("s")//i order by $x/v descending return <x>{ $x/v, sum($x/v?[9]) }</x>',
    ],
)
def test_an_update_touches_one_entry(query: str) -> None:
    """However many entries there are, an update is one evaluation for each part of the query that has entries."""
    counts = []
    for count in (5, 60):
        followed = Followed(query, s=items(count) + replaced(2, 77))
        elements = followed.given["s"][0]
        for element in elements[:-1]:
            list(followed.machine.take("s", element, Fraction(0)))
        before = followed.machine.evaluated
        list(followed.machine.take("s", elements[-1], Fraction(0)))
        counts.append(followed.machine.evaluated - before)
    assert counts[0] == counts[1] <= 4  # an aggregate is written anew, too


@pytest.mark.parametrize(
    "query",
    [
        'stream("s")//v',
        'stream("s")//v#1',
        TICKER,
        'sum(stream("s")//v#[9])',
        'stream("s")//v?[5]',
        'for $x in stream("s")//i order by $x/v return $x/v?3',
    ],
)
def test_the_state_is_flat(query: str) -> None:
    """After a while of updates the state does not grow any more, whatever follows."""
    updates = "".join(replaced(id, second, f' at="{second}"') for second in range(40) for id in range(3))
    followed = Followed(query, s=items(3) + updates)
    kept = followed.machine.kept["s"]
    sizes = []
    for element in followed.given["s"][0]:
        at = Fraction(getattr(element, "at", None) or 0)
        list(followed.machine.take("s", element, at))
        versions = sum(len(chain.versions) for chain in kept.held)
        marks = sum(len(entry.marks) for entry in kept.by_number.values())
        sizes.append((len(kept.by_number), len(kept.held), versions, marks))
    assert sizes[-3] == sizes[-30] == sizes[-60]
    assert len(json.dumps(followed.machine.encode())) < 8_000
