"""Elements of a stream of updates, read once for all branches of a task.

The keeper of a stream and all queries over it in one shard get the same raw entries, one branch after the other, and
none changes the elements that were read (`branch/document/projection.py` copies what it keeps).
So the first branch reads an entry, and the others find it; each judges it by its own ids.
"""

from __future__ import annotations

from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.stream.elements import DeadLetter, StreamElement
from anabranch.stream.reading.lines import Cut

_MOST_BYTES = 2 << 20
"""The elements of this many raw bytes are cached; later ones are read by each branch."""


class SharedElements:
    """The elements of one stream in one epoch of a shard, by their places."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[Cut, StreamElement | DeadLetter]] = {}
        self._runs: dict[tuple[str, int], tuple[list[bytes], list[UsualUpdate]]] = {}
        """Runs of entries, each with the usual updates at its front."""
        self._bytes = 0

    def find(self, cut: Cut, file: str) -> StreamElement | DeadLetter | None:
        """The element of a cut of a file; None where it is not known."""
        known = self._known.get((file, cut.start))
        return known[1] if known is not None and known[0] == cut else None

    def put(self, cut: Cut, file: str, element: StreamElement | DeadLetter) -> None:
        """Remember an element, if there is room for it; the first at a place stays."""
        key = file, cut.start
        if self._bytes < _MOST_BYTES and key not in self._known:
            self._known[key] = cut, element
            self._bytes += len(cut.raw)

    def find_run(self, file: str, start: int, raws: list[bytes]) -> list[UsualUpdate] | None:
        """The usual updates at the front of a run of entries; None where it is not known."""
        known = self._runs.get((file, start))
        return known[1] if known is not None and known[0] == raws else None

    def put_run(self, file: str, start: int, raws: list[bytes], updates: list[UsualUpdate]) -> None:
        """Remember the usual updates of a run, if there is room for it."""
        if self._bytes < _MOST_BYTES:
            self._runs[file, start] = raws, updates
            self._bytes += sum(map(len, raws))
