"""Streams that are pushed over HTTP: their spool in the checkpoint is read as one file that grows (`spark/spool/`).

Bodies of requests are whole, so a range ends behind one of them and leaves nothing over.
Where the stream declares no time, its elements have the moment at which they were accepted (LAWS 1.3), so a range has
bytes of one moment only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from anabranch.spark.intake.ranges import CLOCK, Offset, Range
from anabranch.spark.intake.sources.connector import Reason
from anabranch.spark.intake.sources.files import FilesConnector
from anabranch.spark.spool import files as spool

if TYPE_CHECKING:
    from anabranch.spark.checkpoint.manifest import Manifest

SINCE = ":since"
"""Where an offset keeps the moment of the sight before, if streams have the time of acceptance."""


def moment_before(start: Offset) -> int:
    """The moment of the last sight that was read to its end; what comes later is behind it."""
    clock = start.get(CLOCK, {"file": 1, "position": 0})
    return (clock if clock["file"] else start.get(SINCE, clock))["position"]


class HttpConnector(FilesConnector):
    """A stream that is pushed."""

    def ranges(self, key: str, start: Offset, end: Offset, cores: int | None) -> Iterator[Range]:
        found = super().ranges(key, start, end, cores)
        if not self.source.accepts or SINCE not in end:
            return found
        return (piece for each in found for piece in _by_acceptance(each, end))

    def waits(self, last: Manifest | None) -> Iterator[Reason]:
        if not any(self.log.stretches(key.rpartition("/")[2]) for key in self.keys):
            yield f"nothing was pushed into '{self.source.name}' yet", "send items to the run's endpoint"


def _by_acceptance(whole: Range, offset: Offset) -> Iterator[Range]:
    """A range as ranges whose bytes were accepted at one moment each.

    What was accepted while the survey looked is behind all that was there: else it would come too late.
    """
    least, most = offset[SINCE]["position"] + 1, offset[CLOCK]["position"]
    for start, end, accepted in spool.moments(whole.path, whole.start, whole.end):
        last = whole.last and end == whole.end
        yield replace(whole, start=start, end=end, last=last, arrived=min(max(accepted, least), most))
