"""A stream in which every update has a fresh id runs with flat state, however long (LAWS 5.8)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from random import Random

import pytest

from anabranch.algebra.display.display import Piece
from anabranch.algebra.display.publishing import Published, heartbeat
from anabranch.algebra.display.replay import Replay
from anabranch.bench.parts.steady import RISEN, LongRun
from anabranch.law.history import register
from anabranch.stream.tree import STREAM_NAMESPACE
from mass import Mass

XMLNS = f'xmlns:s="{STREAM_NAMESPACE}"'
QUERIES = {
    "risen": RISEN,
    "names": 'for $t in stream("tickers")/tickers/ticker where $t/quote > 150 return $t/name',
    "whole": 'count(stream("tickers")//ticker)',
    "recent": 'max(stream("tickers")/tickers/ticker?[50]/quote)',
}


class Tickers:
    """So many tickers, and updates of them, each of which takes an id that no other has had."""

    def __init__(self, regions: int) -> None:
        self.random = Random(1)
        self.taken = 0
        self.at = 0
        self.firsts = [self.fresh() for _ in range(regions)]
        self.newest = list(self.firsts)
        self.nested = [self.fresh() for _ in range(regions)]
        self.inserted: deque[str] = deque()

    def fresh(self) -> str:
        self.taken += 1
        return f"{self.taken:09}"

    def begin(self) -> Iterator[str]:
        """The tickers, and a region at the end."""
        for first, nested in zip(self.firsts, self.nested, strict=True):
            note = f'<s:mutable id="{nested}"><of>0</of></s:mutable>'
            yield f'<ticker {XMLNS}><s:mutable id="{first}"><quote>100</quote><note>{note}</note></s:mutable></ticker>'
        yield f'<s:mutable {XMLNS} id="end"/>'

    def updates(self, count: int) -> Iterator[str]:
        """Updates of all kinds."""
        made = 0
        while made < count:
            for update in self.random.choice((self.replace, self.replace, self.change, self.come_and_go))():
                made += 1
                self.at += 1
                yield update

    def replace(self) -> Iterator[str]:
        """A quote, whose region is named by its first id or by its newest, and a region in it."""
        number = self.random.randrange(len(self.firsts))
        target = self.random.choice((self.firsts, self.newest))[number]
        self.newest[number], self.nested[number] = self.fresh(), self.fresh()
        note = f'<s:mutable id="{self.nested[number]}"><of>{self.at}</of></s:mutable>'
        content = f"<quote>{self.random.randint(50, 200)}</quote><note>{note}</note>"
        yield self.update("replace", target, content, self.newest[number])

    def change(self) -> Iterator[str]:
        """What stands in a region in a region; the next time it is named by another id."""
        number = self.random.randrange(len(self.nested))
        target, self.nested[number] = self.nested[number], self.fresh()
        yield self.update("replace", target, f"<of>{self.at}</of>", self.nested[number])

    def come_and_go(self) -> Iterator[str]:
        """A ticker is put before the end, or beside one that was, and an earlier one is taken back."""
        beside = self.inserted[-1] if self.inserted and self.random.random() < 0.5 else "end"
        inner = f'<s:mutable id="{self.fresh()}"><quote>{self.random.randint(50, 200)}</quote></s:mutable>'
        self.inserted.append(self.fresh())
        yield self.update("before", beside, f"<ticker><name>N</name>{inner}</ticker>", self.inserted[-1])
        if len(self.inserted) > 20:
            yield self.update("replace", self.inserted.popleft(), "", self.random.choice((None, self.fresh())))

    def update(self, kind: str, target: str, content: str, own: str | None) -> str:
        named = "" if own is None else f' id="{own}"'
        return f'<s:{kind} {XMLNS} target="{target}"{named} at="{self.at}">{content}</s:{kind}>'


def sizes(query: str, regions: int, updates: int, epoch: int) -> list[int]:
    """The bytes of what query and keeper keep, behind each epoch."""
    tickers, long, found = Tickers(regions), LongRun(query), list[int]()
    long.epoch(tickers.begin())
    while tickers.at < updates:
        long.epoch(tickers.updates(epoch))
        found.append(long.size)
    return found


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.mass
def test_a_thousand_updates_with_fresh_ids(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where thirty past ids are known, what is kept soon grows no more: in the last third it is what it was before."""
    monkeypatch.setattr(register, "MOST_PAST", 30)
    found = sizes(QUERIES[name], regions=20, updates=1_500, epoch=25)
    early, late = max(found[len(found) // 3 : 2 * len(found) // 3]), max(found[2 * len(found) // 3 :])
    assert late < 1.1 * early


def test_a_million_updates_with_fresh_ids(mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a thousand regions: behind the last of them no more is kept than behind the first 100,000; fewer to fewer."""
    updates = mass.amount(1_000_000, budget=20_000)
    monkeypatch.setattr(register, "MOST_PAST", updates // 1_000)
    found = sizes(RISEN, regions=updates // 1_000, updates=updates, epoch=max(50, updates // 2_000))
    tenth = len(found) // 10
    early, late = max(found[tenth // 2 : tenth]), max(found[-tenth // 2 :])
    assert late < 1.2 * early, f"{early:,} bytes after {updates // 10:,} updates, {late:,} after {updates:,}"


@pytest.mark.mass
def test_who_follows_an_answer_keeps_what_it_shows() -> None:
    """Results change, leave and come back under their ids or new ones: no more is kept of those than of a thousand."""
    display, replay, random = Published(), Replay(), Random(1)
    display.region("end of all")
    names = [f"r{number}" for number in range(20)]
    for name in names:
        display.region(name, [Piece("<r/>")], before="end of all")
    kept: list[int] = []
    for number in range(6_000):
        place = random.randrange(len(names))
        if random.random() < 0.5:
            display.rewrite(names[place], [Piece(f"<r>{number}</r>")])
        else:
            display.delete(names[place])
            names[place] = random.choice((names[place], f"n{number}"))
            display.region(names[place], [Piece("<r/>")], before="end of all")
        at = Decimal(number)
        (moment,) = replay.feed("".join((*display.wire(at), heartbeat(at))))
        assert moment.at == at
        assert number % 100 or replay.text == display.text
        followed = replay.display
        kept.append(followed.size + len(followed.names))
    assert max(kept[5_000:]) <= max(kept[3_000:4_000]) + 20 < 4 * 1_000
