"""Elements of a stream of updates, parsed once for all branches of a task.

The keeper of a stream and all queries over it in one shard get the same raw entries, one branch after the other, and
none changes the parsed elements (`projection.py` copies what it keeps).
So the first branch parses an entry, and the others find it; each judges it by its own ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from anabranch.branch.ports import Reader
from anabranch.stream.elements import DeadLetter, StreamElement
from anabranch.stream.reading.lines import Cut

_MOST_BYTES = 2 << 20
"""The elements of this many raw bytes are cached; later ones are parsed by each branch."""


class SharedReader:
    """A reader with a cache; for one stream, and for one epoch of a shard."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[tuple[str, int], tuple[Cut, StreamElement | DeadLetter]] = {}
        self._bytes = 0

    def elements(self, cuts: Iterable[Cut], partition: str) -> Iterator[StreamElement | DeadLetter]:
        """The elements of cuts, one each."""
        for cut in cuts:
            key = partition, cut.start
            known = self._known.get(key)
            if known is not None and known[0] == cut:
                yield known[1]
                continue
            (element,) = self._reader.elements([cut], partition)
            if known is None and self._bytes < _MOST_BYTES:
                self._known[key] = cut, element
                self._bytes += len(cut.raw)
            yield element
