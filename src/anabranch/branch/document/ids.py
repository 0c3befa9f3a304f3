"""A register of ids with its changes, so that all of it can be saved or only the changes.

It is written as rows: for each region with an id what is known of it, with its first and its newest id and its place in
its item, and for each past id the region that it names.
A row of only a number is a removal; numbers are never used again.
So of several rows with one number the latest counts.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from anabranch.law.history.chains import Chain, InsideItem
from anabranch.law.history.register import Named, Register, Registered
from anabranch.law.history.tokens import names_open_end
from anabranch.stream.path import Path

Rows: TypeAlias = list[list[Any]]


class KeptRegister(Register):
    """The law's register, by numbers, with its changes."""

    def __init__(self) -> None:
        super().__init__()
        self._chains: dict[int, Chain] = {}
        self._past: dict[int, tuple[int, str]] = {}
        """By number: the past ids with their partitions."""
        self._unsaved: dict[int, None] = {}
        self._unsaved_past: dict[int, None] = {}
        self._first = self._first_past = 0
        """The next numbers at the last write: what has come and gone since needs no row."""

    def chain(self, number: int | None) -> Chain:
        """The region of a number; a new one without ids where it is unknown."""
        found = None if number is None else self._chains.get(number)
        return Chain(0, False) if found is None else found

    def number(self, chain: Chain) -> int | None:
        """The number of a region with ids."""
        region = self.known.get(chain)
        return None if region is None else region.number

    def changed(self, chain: Chain, region: Registered) -> None:
        self._unsaved[region.number] = None
        if chain in self.known:
            self._chains[region.number] = chain
        else:
            self._chains.pop(region.number, None)
            if region.number >= self._first:
                del self._unsaved[region.number]

    def past_changed(self, partition: int, name: str, number: int) -> None:
        self._unsaved_past[number] = None
        if self.past[partition].get(name) == number:
            self._past[number] = partition, name
        else:
            self._past.pop(number, None)
            if number >= self._first_past:
                del self._unsaved_past[number]

    # --- saved state --------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """The number of changes since `settled`."""
        return len(self._unsaved) + len(self._unsaved_past)

    def settled(self) -> None:
        """All changes are written."""
        self._unsaved, self._unsaved_past = {}, {}
        self._first, self._first_past = self.next_number, self.next_past

    def encode(self, *, whole: bool) -> list[Rows]:
        """The rows of regions and of past ids: all, or the changed ones."""
        regions, past = (self._chains, self._past) if whole else (self._unsaved, self._unsaved_past)
        return [[self._region_row(each) for each in regions], [self._past_row(each) for each in past]]

    def _region_row(self, number: int) -> list[Any]:
        if number not in self._chains:
            return [number]
        chain = self._chains[number]
        region = self.known[chain]
        flags = chain.between | region.inserted << 1 | region.is_deleted << 2 | region.is_over << 3
        around = None if region.around is None else self.known[region.around].number
        row = [number, region.partition, chain.depth, flags, around, region.first]
        if region.newest != region.first:
            row.append(region.newest)
        return row if chain.inside is None else [*row, _inside_row(chain.inside)]

    def _past_row(self, number: int) -> list[Any]:
        if number not in self._past:
            return [number]
        partition, name = self._past[number]
        return [number, partition, name, self.known[self.names[partition][name].chain].number]

    def decode(self, regions: Rows, past: Rows) -> None:
        """Restore rows, all of them or changes to an earlier state."""
        for number, *row in past:
            if not row and number in self._past:
                self._take_back(*self._past.pop(number))
        for number, *row in regions:
            self._forget_needed(number)
            if not row:
                self._forget_region(number)
            elif number not in self._chains:
                inside = _read_inside(row[-1]) if isinstance(row[-1], list) else None
                is_open_end = names_open_end(row[4])
                self._chains[number] = Chain(row[1], bool(row[2] & 1), inside=inside, is_open_end=is_open_end)
                self.known[self._chains[number]] = Registered(row[0], number, bool(row[2] & 2))
        for number, partition, name, region in sorted(row for row in past if len(row) > 1):
            self._past[number] = partition, name
            self.past.setdefault(partition, {})[name] = number
            self._put_back(self._chains[region], name)
        for number, *row in regions:
            if row:
                self._read_region(self._chains[number], *row)

    def _take_back(self, partition: int, name: str) -> None:
        """Remove a past id; if it is still known, the row of its region says so."""
        del self.past[partition][name]
        self.known[self.names[partition].pop(name).chain].ids.pop(name)

    def _forget_needed(self, number: int) -> None:
        """Remove the ids of a region; its row names those that it still has."""
        if number not in self._chains:
            return
        chain = self._chains[number]
        region = self.known[chain]
        names, past = self.names.setdefault(region.partition, {}), self.past.setdefault(region.partition, {})
        for name in [each for each in region.ids if each not in past]:
            del region.ids[name]
            del names[name]

    def _forget_region(self, number: int) -> None:
        if (chain := self._chains.pop(number, None)) is not None:
            region = self.known.pop(chain)
            self._move(chain, region, None)
            for inner in region.inner:
                self.known[inner].around = None  # their rows say where they stand now

    def _put_back(self, chain: Chain, name: str) -> None:
        region = self.known[chain]
        region.ids[name] = None
        mutable = not region.inserted and name == region.first
        self.names.setdefault(region.partition, {})[name] = Named(chain, mutable)

    def _read_region(
        self,
        chain: Chain,
        partition: int,
        depth: int,
        flags: int,
        around: int | None,
        first: str | None,
        *more: str | list[Any] | None,
    ) -> None:
        region = self.known[chain]
        region.is_deleted, region.is_over = bool(flags & 4), bool(flags & 8)
        newest = first if not more or isinstance(more[0], list) else more[0]
        region.first, region.newest = first, newest
        self._move(chain, region, None if around is None else self._chains[around])
        for name in (region.first, region.newest, *region.ids):
            if name is not None:
                self._put_back(chain, name)
        self.past.setdefault(partition, {})

    def _move(self, chain: Chain, region: Registered, around: Chain | None) -> None:
        """Move a region into another one."""
        if region.around is not None and region.around in self.known:
            self.known[region.around].inner.pop(chain, None)
        region.around = around
        if around is not None:
            self.known[around].inner[chain] = None


def _inside_row(inside: InsideItem) -> list[Any]:
    """The place of a region in its item as data."""
    return [list(inside.steps), *([list(path.steps), text] for path, text in inside.facts)]


def _read_inside(row: list[Any]) -> InsideItem:
    steps, *facts = row
    return InsideItem.of(tuple(steps), tuple((Path(tuple(path)), text) for path, text in facts))
