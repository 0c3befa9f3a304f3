"""The time of the newest item that was read of a partition, from its last line before the offset.

Only for files of lines on a disk: of a document the items before a byte cannot be told without reading it from its
front, and other sources are not asked for what they have given already.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from anabranch.spark.evolution.progress import numbers_at
from anabranch.spark.intake.folders import PartitionFiles
from anabranch.spark.intake.order import FileStretch
from anabranch.spark.intake.ranges import Position
from anabranch.spark.intake.storage import is_address, open_file
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source, StreamForm
from anabranch.values.placing import Moment

_TAIL = 1 << 16
"""The bytes that are read."""


def newest_time(
    source: Source, form: StreamForm, partition: int, at: Position, held: Sequence[FileStretch]
) -> Fraction | None:
    """The seconds since 1970 of the newest item before a position; None where it has no such time."""
    where = str(source.partitions[partition])
    if source.time is None or form.format == "document" or is_address(where):
        return None
    line = _last_line(where, at, held)
    if not line:
        return None
    reader = ElementReader(source.name, form.format, Limits(), parse_root(form.root.encode()), source.item_name)
    (found,) = reader.elements([Cut(0, len(line), line)], "")
    if not isinstance(found, Item):
        return None
    scale = source.scale(source.time)
    values = numbers_at(found.tree, f"*/{source.time}".split("/"), scale)
    return max((Fraction(each) / scale.per_second for each in values if isinstance(each, Moment)), default=None)


def _last_line(where: str, at: Position, held: Sequence[FileStretch]) -> bytes:
    """The last line before a position, empty where there is none that can be read."""
    if at.file < len(held) and at.position > held[at.file].start:
        stretch, end = held[at.file], at.position
    elif 0 < at.file <= len(held):
        stretch, end = held[at.file - 1], held[at.file - 1].end or 0
    else:
        return b""
    if stretch.packed:
        return b""
    begin = max(stretch.start, end - _TAIL)
    try:
        with open_file(PartitionFiles(where, document=False).path(stretch.file)) as file:
            file.seek(begin)
            data: bytes = file.read(end - begin)
    except OSError:
        return b""  # it was taken away meanwhile
    lines = data.rstrip().rsplit(b"\n", 1)
    return lines[-1] if len(lines) > 1 or begin == stretch.start else b""
