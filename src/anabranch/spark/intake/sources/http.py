"""Streams that are pushed over HTTP: their spool in the checkpoint is one file that grows (`spark/spool/files.py`).

The spool's own files are whole: each holds bodies of requests, and no item is in two of them.
So an epoch ends where one of them ends, a range has some of them, and nothing is carried over.
Where the stream declares no time, its elements have the moment at which they were accepted (LAWS 1.3), so a range has
bytes of one moment only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from anabranch.errors import StateError
from anabranch.spark.intake.order import FileStretch
from anabranch.spark.intake.ranges import CLOCK, Move, Offset, Position, Range, share_of
from anabranch.spark.intake.sources.connector import Connector, Listing, Reason
from anabranch.spark.spool.files import PUSHED, FileName, bodies, borders, footers, names, read_footer
from anabranch.storage import Location
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import implied_root, parse_root
from anabranch.stream.reading.source import StreamForm
from anabranch.stream.reading.split import DocumentSplitter
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element

if TYPE_CHECKING:
    from anabranch.spark.checkpoint.manifest import Manifest

SINCE = ":since"
"""Where an offset keeps the moment of the sight before, if streams have the time of acceptance."""
_PARTITION = "0"


def moment_before(start: Offset) -> int:
    """The moment of the last sight that was read to its end; what comes later is behind it."""
    clock = start.get(CLOCK, {"file": 1, "position": 0})
    return (clock if clock["file"] else start.get(SINCE, clock))["position"]


class HttpConnector(Connector):
    """A stream that is pushed."""

    _newest: tuple[FileName, int] | None = None
    """The newest file of the spool when it was last looked at, and where it ends."""

    @cached_property
    def _folder(self) -> Location:
        return Location.of(self.source.path)

    @property
    def _key(self) -> str:
        return f"{self.source.name}/{_PARTITION}"

    @property
    def keys(self) -> Iterable[str]:
        return (self._key,)

    # --- planning -----------------------------------------------------------------------------------------

    def listing(self, *, patient: bool) -> Listing:
        found = names(self._folder)
        if found and (self._newest is None or self._newest[0] != found[-1]):
            self._newest = found[-1], read_footer(self._folder / str(found[-1])).end
        return {self._key: {PUSHED: self._newest[1]} if found and self._newest and self._newest[1] else {}}

    def sight(self, there: Listing, before: Listing | None) -> Listing:
        return there if before is None else {self._key: before.get(self._key, {})}

    def form(self, sight: Listing, *, decide: bool) -> StreamForm | None:
        assert self.source.format != "auto", "a pushed stream has a format"
        end = sight.get(self._key, {}).get(PUSHED, 0)
        if not end:
            return None
        root = self._first_root(end) if self.source.format == "document" else None
        return StreamForm(self.source.format, serialize(root or implied_root(self.source.implied_root)))

    def _first_root(self, end: int) -> Element | None:
        """The root of the first document; each was good when it was accepted."""
        splitter = DocumentSplitter(Limits())
        for each in bodies(self._folder / str(self._files.get(0, FileName(0))), end):
            splitter.feed(each)
            if splitter.first is not None:
                return parse_root(*splitter.first)
        return None

    def views(self, sight: Listing, start: Offset, *, finite: bool) -> Iterator[SpoolView]:
        at, end = Position.of(start, self._key).position, sight.get(self._key, {}).get(PUSHED, 0)
        if end < at:
            raise StateError(f"'{self._folder}' is damaged: it ends at byte {end:,}, and was read to {at:,}")
        if end > at:
            begun = bool(self.log.stretches(_PARTITION))
            yield SpoolView(self._key, borders(self._folder, at, end), begun)

    def ranges(self, key: str, start: Offset, end: Offset, cores: int | None) -> Iterator[Range]:
        first, last = Position.of(start, key).position, Position.of(end, key).position
        whole = ((first, last, None),)
        pieces = whole if cores is None else self._pieces(first, last, share_of(last - first, cores), end)
        files = self._files
        for begin, stop, moment in pieces:
            path = str(self._folder / str(files.get(begin, FileName(begin))))
            yield Range(self.source.name, _PARTITION, 0, PUSHED, path, begin, stop, False, False, 0, moment)

    @property
    def _files(self) -> dict[int, FileName]:
        """By its first position: each file of the spool, as it is now; of several the last, which has the bytes."""
        return {each.start: each for each in names(self._folder)}

    def _pieces(self, start: int, end: int, size: int, offset: Offset) -> Iterator[tuple[int, int, int | None]]:
        """Pieces of whole files, (start, end, moment), each of about a size or of one moment."""
        found: list[tuple[int, int | None]]
        if not self.source.accepts or SINCE not in offset:
            found = [(each, None) for each in borders(self._folder, start, end)]
        else:
            # What was accepted while the survey looked is behind all that was there: else it would come too late.
            least, most = offset[SINCE]["position"] + 1, offset[CLOCK]["position"]
            found = [(each.end, min(max(each.moment, least), most)) for each in footers(self._folder, start, end)]
        begin = start
        for number, (stop, moment) in enumerate(found):
            if stop - begin >= size or number + 1 == len(found) or found[number + 1][1] != moment:
                yield begin, stop, moment
                begin = stop

    # --- for people ---------------------------------------------------------------------------------------

    def waits(self, last: Manifest | None) -> Iterator[Reason]:
        if not self.log.stretches(_PARTITION):
            yield f"nothing was pushed into '{self.source.name}' yet", "send items to the run's endpoint"


@dataclass(frozen=True, slots=True)
class SpoolView:
    """Bytes to read, by the ends of the files that hold them."""

    key: str
    ends: Sequence[int]
    begun: bool
    """Whether something was read before."""

    def advance(self, at: Position, budget: int, stretches: int) -> Move:
        to = next(end for end in self.ends if end - at.position >= budget or end == self.ends[-1])
        records = () if self.begun else (FileStretch(_PARTITION, PUSHED, 0, False, ""),)
        return Move(Position(0, to), records, to - at.position, to == self.ends[-1])
