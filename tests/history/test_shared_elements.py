"""A stream of updates is read once for all branches of a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from anabranch.branch.intake import shared_elements
from anabranch.branch.intake.entries import EntryReader, FeedOrigin, RawEntry
from anabranch.branch.intake.shared_elements import SharedElements
from anabranch.branch.ports import InputStream
from anabranch.stream.elements import DeadLetter, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE


class Counted:
    """A reader that counts what it parses."""

    def __init__(self) -> None:
        self.parsed = 0
        self._reader = ElementReader("s", "lines", Limits(), implied_root("root"))

    def elements(self, cuts: Iterable[Cut], partition: str) -> Iterator[StreamElement | DeadLetter]:
        for cut in cuts:
            self.parsed += 1
            yield from self._reader.elements([cut], partition)


def update(target: str, start: int = 0) -> RawEntry:
    """A deletion, which has no usual look, so that the parser reads it."""
    raw = f'<s:replace xmlns:s="{STREAM_NAMESPACE}" target="{target}"/>'.encode()
    return RawEntry(FeedOrigin("s", 0, "file"), Cut(start, start + len(raw), raw, None, None, "utf-8"))


def readers(counted: Counted) -> tuple[EntryReader, EntryReader]:
    """The readers of two branches in one shard."""
    source = Source("s", Path("s"), updates=True)
    stream = InputStream(source, implied_root("root"), lambda: counted, shared=SharedElements())
    return EntryReader(stream), EntryReader(stream)


def test_whoever_comes_second_is_given_what_was_read() -> None:
    """The same element, whatever stood between; another entry at the same place is read for itself."""
    counted = Counted()
    one, other = readers(counted)
    first = one.read(update("1"))
    one.read(update("2", 100))
    assert (other.read(update("1")) is first, counted.parsed) == (True, 2)
    another = other.read(update("3"))
    assert isinstance(another, Update)
    assert (another.target, counted.parsed) == ("3", 3)


def test_what_is_too_much_is_read_by_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: the first entries are known, those behind them are read again."""
    monkeypatch.setattr(shared_elements, "_MOST_BYTES", 1)
    counted = Counted()
    for reader in (*readers(counted), readers(counted)[1]):
        for entry in (update("1"), update("2", 100)):
            assert isinstance(reader.read(entry), Update)
    assert counted.parsed == 5
