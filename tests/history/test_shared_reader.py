"""A stream of updates is parsed once for all branches of a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from anabranch.branch.document import shared_reader
from anabranch.branch.document.shared_reader import SharedReader
from anabranch.stream.elements import DeadLetter, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.reader import ElementReader
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


def update(target: str, start: int = 0) -> Cut:
    raw = f'<s:replace xmlns:s="{STREAM_NAMESPACE}" target="{target}"/>'.encode()
    return Cut(start, start + len(raw), raw, None, None, "utf-8")


def test_whoever_comes_second_is_given_what_was_parsed() -> None:
    """The same element, whatever stood between; another entry at the same place is parsed for itself."""
    counted = Counted()
    reader = SharedReader(counted)
    (first,) = reader.elements([update("1")], "file")
    list(reader.elements([update("2", 100)], "file"))
    (again,) = reader.elements([update("1")], "file")
    assert (again is first, counted.parsed) == (True, 2)
    (other,) = reader.elements([update("3")], "file")
    assert isinstance(other, Update)
    assert (other.target, counted.parsed) == ("3", 3)


def test_what_is_too_much_is_parsed_by_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: the first entries are known, those behind them are parsed again."""
    monkeypatch.setattr(shared_reader, "_MOST_BYTES", 1)
    counted = Counted()
    reader = SharedReader(counted)
    for _ in range(3):
        assert len(list(reader.elements([update("1"), update("2", 100)], "file"))) == 2
    assert counted.parsed == 4
