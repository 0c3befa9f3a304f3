"""Runs of usual updates: they are taken many at a time, and a trunk shows what the law shows after each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from anabranch.branch.intake import shared_elements
from anabranch.branch.intake.entries import EntryReader, FeedOrigin
from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.hosting import Case, Law, replayed
from mass import some
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'
QUERIES = {
    "risen": 'for $q in stream("s")/root/t where $q/v >= $q/v#1 * 1.1 order by ($q/v - $q/v#1) div $q/v return $q/v',
    "tied": 'for $q in stream("s")/root/t order by $q/v descending, $q/@n return <r>{ $q/w/@k, $q/v }</r>',
    "whole": 'stream("s")/root/t',
    "texts": 'for $q in stream("s")/root/t return <r>{ $q/v/text(), $q//x#[2] }</r>',
    "lived": 'for $q in stream("s")/root/t return <r>{ $q/v?3 }</r>',
}
_TICKERS = 7


def ticker(number: int) -> str:
    return f'<t {S} n="{number}"><s:mutable id="{number}"><v>{number}</v></s:mutable></t>'


def usual(random: Random, look: int, number: int, at: int) -> str:
    """A replacement of a usual look."""
    value = random.randrange(3, 9)
    content = (
        f"<v>{value}</v>",
        f'<v>{value}</v><w k="{value}"><x>{value}</x></w>',
        f"<v>{value}.5</v> and <y><x>{value}</x></y>",
        f'<v xmlns:q="urn:q"><q:x>{value}</q:x>{value}</v>',
        f'<v xmlns="urn:d">{value}</v>',
    )
    return f'<s:replace {S} target="{number}" at="{at}">{content[look]}</s:replace>'


def other(random: Random, number: int, at: int) -> str:
    """An element that is no usual update, or a bad one, which may look like a usual one."""
    value = random.randrange(3, 9)
    return random.choice(
        (
            f'<s:replace {S} target="none" at="{at}"><v>{value}</v></s:replace>',
            f'<s:replace {S} target="{number}" at="0"><v>{value}</v></s:replace>',
            f'<s:replace {S} target="{number}" at="{at}"/>',
            f'<s:replace {S} target="{number}" at="{at}"><v>a &amp; b</v></s:replace>',
            f'<s:replace {S} target="{number}"><v>{value}</v></s:replace>',
            f'<s:replace {S} target="{number}" at="{at}"><s:mutable id="i{at}"><x/></s:mutable></s:replace>',
            f'<s:replace {S} target="i{at - 1}" at="{at}"><x>{value}</x></s:replace>',
            f'<s:after {S} target="{number}" id="a{at}" at="{at}"><x>{value}</x></s:after>',
            f'<t {S} n="{at}"><v>{value}</v></t>',
            f'<s:punctuation {S} at="{at}"/>',
        )
    )


def lines(random: Random, share: float) -> list[str]:
    """Tickers, and elements of which such a share is usual; looks change now and then."""
    found, at, look = [ticker(each) for each in range(_TICKERS)], 1, 0
    for _ in range(160):
        at += random.random() < 0.3
        look = random.randrange(5) if random.random() < 0.1 else look
        number = random.randrange(_TICKERS)
        found.append(usual(random, look, number, at) if random.random() < share else other(random, number, at))
    return found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The number of updates that were read in runs."""
    counts: list[int] = []
    read = EntryReader.usual_updates

    def counted(self: EntryReader, origin: FeedOrigin, table: pa.Table) -> list[UsualUpdate]:
        found = read(self, origin, table)
        counts.append(len(found))
        return found

    monkeypatch.setattr(EntryReader, "usual_updates", counted)
    return lambda: sum(counts)


@pytest.mark.parametrize("seed", some(range(4)))
@pytest.mark.mass
def test_runs_show_what_the_law_shows(
    seed: int, tmp_path: Path, taken: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every moment is that of the law, and the same elements are bad, wherever runs are broken off."""
    random = Random(seed)
    if seed % 2:
        monkeypatch.setattr(shared_elements, "_MOST_BYTES", 3_000)  # some runs are read by each branch
    (tmp_path / "in").mkdir()
    written = "".join(f"{each}\n" for each in lines(random, share=(0.97, 0.8, 0.5, 0.95)[seed % 4]))
    (tmp_path / "in" / "1").write_text(written)
    source = Source("s", tmp_path / "in", "lines", updates=True)
    trunk = BareTrunk(tmp_path / "state", [source], random, finite=True)
    trunk.strands = 2 * (seed % 3 == 1)
    trunk.run(QUERIES, [4_000, 20_000], [1, 2])
    for name, query in QUERIES.items():
        law = Law.of(Case(query, {"s": [written]}), [source])
        assert replayed(trunk.log, name) == law.shown, name
        bad = {(each.place.offset, each.reason) for each in law.bad}
        letters = [each for each in trunk.log.dead_letters() if each.subscription is None]
        assert {(each.place.offset, each.reason) for each in letters} == bad
    assert taken() > 10
