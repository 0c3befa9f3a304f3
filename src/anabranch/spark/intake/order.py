"""The order log: in which order the files of a stream were begun, and where each of them ended.

A directory is one sequence (LAWS 1.1), but its content changes while it is read.
So the order in which files are begun is logged, append-only, before any offset refers to it: an offset is the number of
a stretch and a position in it, and the bytes between two offsets follow from them and this log alone.

A stretch is a file from a position on, usually 0; of a topic, a partition from an offset on, which is never left.
It is open until a later one is begun; then its end is fixed, and if its file grows after all, the new bytes are a
stretch of their own, with a warning.
The log also holds the format of the stream and its root element, which its first bytes have decided.

Only the intake appends, to a file in the scratch folder of its run, where the driver reads it.
With the epoch it becomes durable: the driver adds what the log has gained as a part (`spark/checkpoint/parts.py`), and
the manifest names it.
So what was begun by an epoch that was never committed is forgotten with its run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.parts import LogPart, Parts, read_parts
from anabranch.storage import Location
from anabranch.stream.reading.source import StreamForm

Note = Literal["late", "grown"]
_CHECKSUM_LENGTH = 16


@dataclass(frozen=True, slots=True)
class FileStretch:
    """A file of a partition, or a partition of a topic, from `start` on; `end` is None while it is open."""

    partition: str
    file: str
    start: int
    packed: bool
    head: str
    """A digest of the file's first bytes, to detect that it was overwritten; a topic's id; empty for a spool."""
    note: Note | None = None
    """Why the user is warned: the file came late under a smaller name, or grew after it had ended."""
    end: int | None = None


@dataclass(frozen=True, slots=True)
class StretchEnd:
    """The record that closes a partition's last stretch."""

    partition: str
    end: int


class OrderLog:
    """The log of one stream; one process appends, others `refresh`."""

    def __init__(self, folder: Location, parts: Parts, gained: Path | None = None) -> None:
        """The committed parts in a folder, and the file with what the log has gained in the run at work."""
        self._folder = folder
        self._parts: Parts | None = parts
        """The parts, until they are read."""
        self._gained = gained
        self.read = 0
        """How many bytes of the gained were read."""
        self.form: StreamForm | None = None
        self._partitions: dict[str, list[FileStretch]] = {}

    @staticmethod
    def of(checkpoint: Checkpoint, stream: str) -> OrderLog:
        """The log of a stream in the run at work."""
        known = durable.unsealed(checkpoint.orders) if checkpoint.orders.exists() else {}
        parts = tuple(LogPart(*each) for each in known.get(stream, ()))
        return OrderLog(checkpoint.order(stream), parts, checkpoint.gained(stream))

    def stretches(self, partition: str) -> list[FileStretch]:
        """The stretches of a partition, by number."""
        return self._partitions.setdefault(partition, [])

    @property
    def count(self) -> int:
        """The number of partitions that were begun."""
        return sum(bool(held) for held in self._partitions.values())

    def refresh(self) -> list[FileStretch]:
        """Read what is new; gives the new stretches."""
        fresh: list[FileStretch] = []
        if self._parts is not None:
            fresh += self._applied(read_parts(self._folder, self._parts), self._folder)
            self._parts = None
        if self._gained is not None:
            data = self.gained(self.read)
            whole = data[: data.rfind(b"\n") + 1]
            fresh += self._applied(whole, self._gained)
            self.read += len(whole)
        return fresh

    def gained(self, start: int, end: int | None = None) -> bytes:
        """What the log has gained in this run, from a byte on."""
        if self._gained is None or not self._gained.exists():
            return b""
        return durable.read(self._gained, start, None if end is None else end - start)

    def append(self, records: Iterable[StreamForm | FileStretch | StretchEnd]) -> None:
        """Write records down for the driver, and apply them."""
        held = list(records)
        if held:
            assert self._gained is not None, "only the intake of a run appends"
            self.read = durable.append(self._gained, map(_line, held), self.read, synced=False)
            for record in held:
                self._take(record)

    def _applied(self, lines: bytes, where: Location | Path) -> list[FileStretch]:
        """Apply the records in some lines; gives the stretches among them."""
        fresh: list[FileStretch] = []
        for line in lines.splitlines():
            try:
                record = _record(line)
            except (ValueError, TypeError):
                raise StateError(f"'{where}' is damaged") from None
            self._take(record)
            if isinstance(record, FileStretch):
                fresh.append(record)
        return fresh

    def _take(self, record: StreamForm | FileStretch | StretchEnd) -> None:
        match record:
            case StreamForm():
                self.form = record
            case FileStretch(partition):
                self.stretches(partition).append(record)
            case StretchEnd(partition, end):
                held = self.stretches(partition)
                held[-1] = replace(held[-1], end=end)

    def check(self, partition: str, file: int, position: int) -> None:
        """Check that the log covers a read position; lost records cannot be recovered."""
        known = len(self.stretches(partition))
        if file > known or (file == known and position):
            raise StateError(f"'{self._folder}' is damaged: it ends before what was read")


def _line(record: StreamForm | FileStretch | StretchEnd) -> bytes:
    """A record as JSON, after its checksum."""
    data = json.dumps(asdict(record)).encode()
    return durable.digest(data)[:_CHECKSUM_LENGTH].encode() + b" " + data + b"\n"


def _record(line: bytes) -> StreamForm | FileStretch | StretchEnd:
    check, _, data = line.partition(b" ")
    if durable.digest(data)[:_CHECKSUM_LENGTH].encode() != check:
        raise ValueError("another checksum")
    fields = json.loads(data)
    if "format" in fields:
        return StreamForm(**fields)
    return FileStretch(**fields) if "file" in fields else StretchEnd(**fields)
