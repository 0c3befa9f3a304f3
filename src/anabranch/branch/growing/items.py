"""What a display keeps of a stream that only grows: how many items have come, and the items that are needed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from anabranch.branch.growing.arrivals import ArrivalNumbers
from anabranch.branch.held_items import number_nodes
from anabranch.branch.intake.entries import EntryReader, FeedOrigin, RawEntry
from anabranch.branch.ports import InputStream
from anabranch.errors import StateError
from anabranch.law.evolution.canonical import remeasured
from anabranch.law.inputs import Arrival, Input
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Item
from anabranch.stream.path import Path
from anabranch.stream.reading.lines import Cut
from anabranch.stream.tree import Document, copy


@dataclass(frozen=True, slots=True)
class TakenItem:
    """An item that has come, in the units of query start: its raw entry, and the maps into these units."""

    entry: RawEntry
    units: Mapping[Path, Affine]
    arrival: Arrival
    number: int
    """Its number among all items that the query has taken."""


class Entries:
    """Entries, numbered as they come: of which something is kept, and what of that is not saved yet."""

    def __init__(self) -> None:
        self.order = ArrivalNumbers()
        self.kept: dict[int, None] = {}
        self.unsaved: dict[int, None] = {}
        self.gone: list[int] = []
        """The entries that were forgotten since the state was last saved."""

    def enter(self) -> int:
        """The number of the next entry."""
        self.order.count += 1
        return self.order.count - 1

    def keep(self, number: int) -> None:
        """Note that something is kept of an entry, which has changed."""
        self.kept[number] = self.unsaved[number] = None

    def forget(self, number: int) -> None:
        """Note that nothing is kept of an entry any more."""
        if number in self.kept:
            del self.kept[number]
            self.unsaved.pop(number, None)
            self.gone.append(number)

    def encode(self, *, whole: bool) -> list[Any]:
        """All that is kept, or what has changed since it was saved, as a layer has it (`branch/document/layers.py`)."""
        gone = [[self.gone, []]] if self.gone and not whole else []
        return [gone, [[], []], self.order.count, [[number, self.written(number)] for number in self._numbers(whole)]]

    def settled(self) -> None:
        """Note that everything is saved."""
        self.unsaved.clear()
        self.gone = []

    def _numbers(self, whole: bool) -> list[int]:
        return list(self.kept if whole else self.unsaved)

    def decode(self, count: int, gone: Iterable[int], numbers: Iterable[list[Any]]) -> None:
        """Restore from `encode`; entries that are known already are left alone."""
        self.order.count = count
        for number in gone:
            self.kept.pop(number, None)
        for number, written, *_ in numbers:
            if number not in self.kept:
                self.kept[number] = None
                self.read(number, written)

    def written(self, number: int) -> Any:
        """What is kept of an entry itself, as plain data."""
        return None

    def read(self, number: int, written: Any) -> None:
        """Restore an entry from `written`."""


class StreamItems(Entries):
    """The items of a stream; they are kept if `needs_all`."""

    def __init__(self, stream: InputStream, rank: int, *, needs_all: bool) -> None:
        """`rank` is the place of the stream among those of the query, which decides document order between them."""
        super().__init__()
        self._stream, self._rank, self._needs_all = stream, rank, needs_all
        self._root = copy(stream.root)
        self._document = Document()
        self._document.append(self._root)
        self._items: dict[int, TakenItem] = {}
        self._latest: tuple[int, TakenItem] | None = None
        self._reader = EntryReader(stream)

    def take(self, came: TakenItem) -> int:
        """Take the next item; returns its number."""
        number = self.enter()
        self._latest = number, came
        if self._needs_all:
            self._items[number] = came
            self.keep(number)
        return number

    def came(self, entry: RawEntry, item: Item, units: Mapping[Path, Affine], time: Fraction, number: int) -> TakenItem:
        """An item, put below the root of the stream; `number` counts all items that the query has taken."""
        item.tree.parent = self._root
        number_nodes(item.tree, self._rank, number)
        return TakenItem(entry, units, Arrival(item.tree, time, entry.origin.partition, item.place), number)

    def latest(self, number: int) -> Input:
        """The stream with its latest item alone."""
        assert self._latest is not None
        known, came = self._latest
        assert number == known, "an item is looked at when it comes"
        return self._input([came])

    def single(self, number: int) -> Input:
        """The stream with one item alone, the latest or one that is kept."""
        return self._input([self._items[number]]) if number in self._items else self.latest(number)

    def forget(self, number: int) -> None:
        if not self._needs_all:
            super().forget(number)

    def whole(self) -> Input:
        """The stream with all its items."""
        return self._input(list(self._items.values()))

    def _input(self, came: list[TakenItem]) -> Input:
        arrivals = tuple(each.arrival for each in came)
        self._root.children[:] = [each.item for each in arrivals]
        source = self._stream.source
        partitions = len(source.partitions)
        return Input(
            self._document,
            arrivals,
            time=source.time,
            elements=arrivals,
            partitions=partitions,
            by_item={each.item: each for each in arrivals},
            waiting=frozenset(range(partitions)),
        )

    # --- state --------------------------------------------------------------------------------------------

    def written(self, number: int) -> Any:
        if number not in self._items:
            return None
        came = self._items[number]
        origin, cut = came.entry.origin, came.entry.cut
        units = [[str(path), str(by.a), str(by.b)] for path, by in came.units.items()]
        texts = [None if each is None else _text(each) for each in (cut.raw, cut.root, cut.key, cut.headers)]
        place = [origin.partition, origin.file, cut.start, cut.end]
        return [*place, *texts, cut.encoding, str(came.arrival.time), came.number, units]

    def read(self, number: int, written: Any) -> None:
        if written is None:
            return
        partition, file, start, end, raw, *texts, encoding, time, taken, known = written
        root, key, headers = (None if each is None else _bytes(each) for each in texts)
        cut = Cut(start, end, _bytes(raw), None, root, encoding, key=key, headers=headers)
        entry = RawEntry(FeedOrigin(self._stream.name, partition, file), cut)
        item = self._reader.read(entry)
        if not isinstance(item, Item):
            raise StateError(
                f"the item at byte {start} of '{file}', which a display holds, can no longer be read",
                hint="limits or schema of the stream are narrower than they were",
            )
        units = {Path.parse(path, itself=True): Affine(Fraction(a), Fraction(b)) for path, a, b in known}
        item = replace(item, tree=remeasured(item.tree, units)) if units else item
        self._items[number] = self.came(entry, item, units, Fraction(time), taken)


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")
