"""What an update costs, and how much is kept: that of one entry, and no more than the query can need."""

from __future__ import annotations

import json
from fractions import Fraction
from unittest import mock

import pytest

from anabranch.branch.display.compiled_loops.loops import CompiledLoop
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


BOOKS = """<books>{
  for $b in stream("s")//biblio[publisher = "Wiley"]/books where $b/author = "Smith" order by $b/price
  return <book>{ $b/title, $b/price }</book>
}</books>"""


def test_an_update_inside_a_large_entry_runs_one_round() -> None:
    """Query 1 of the history paper: with however many books in one entry, a new price concerns one of them."""
    rounds = []
    for count in (40, 400):
        books = "".join(
            f'<books><title>{each}</title><s:mutable id="a{each}"><author>Smith</author></s:mutable>'
            f'<s:mutable id="{each}"><price>{each}</price></s:mutable></books>'
            for each in range(count)
        )
        updates = (
            '<s:replace target="3"><price>9</price></s:replace>'
            + '<s:replace target="a5"><author>Jones</author></s:replace>'
        )
        publisher = '<s:mutable id="p"><publisher>Wiley</publisher></s:mutable>'
        followed = Followed(BOOKS, s=f"<biblio>{publisher}{books}</biblio>{updates}")
        first, *others = followed.given["s"][0]
        list(followed.machine.take("s", first, Fraction(0)))
        with mock.patch.object(
            CompiledLoop, "single_round", autospec=True, side_effect=CompiledLoop.single_round
        ) as run:
            for element in others:
                list(followed.machine.take("s", element, Fraction(0)))
        rounds.append(run.call_count)
        assert followed.machine.text.count("<book>") == count - 1
    assert rounds == [2, 2]


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
