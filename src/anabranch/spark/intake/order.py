"""The order log: in which order the files of a stream were begun, and where each of them ended.

A directory is one sequence (LAWS 1.1), but its content changes while it is read.
So the order in which files are begun is logged, append-only, before any offset refers to it: an offset is the number of
a stretch and a position in it, and the bytes between two offsets follow from them and this log alone.

A stretch is a file from a position on, usually 0; of a topic, a partition from an offset on, which is never left.
It is open until a later one is begun; then its end is fixed, and if its file grows after all, the new bytes are a
stretch of their own, with a warning.
The log also holds the format of the stream and its root element, which its first bytes have decided.

Only the intake appends; a line that a crash left incomplete is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
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

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.form: StreamForm | None = None
        self._partitions: dict[str, list[FileStretch]] = {}

    def stretches(self, partition: str) -> list[FileStretch]:
        """The stretches of a partition, by number."""
        return self._partitions.setdefault(partition, [])

    @property
    def count(self) -> int:
        """The number of partitions that were begun."""
        return sum(bool(held) for held in self._partitions.values())

    def refresh(self) -> list[FileStretch]:
        """Read what was appended; gives the new stretches."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        fresh: list[FileStretch] = []
        for line in whole.splitlines():
            try:
                record = _record(line)
            except (ValueError, TypeError):
                raise StateError(f"'{self._path}' is damaged") from None
            self._take(record)
            if isinstance(record, FileStretch):
                fresh.append(record)
        self._read += len(whole)
        return fresh

    def append(self, records: Iterable[StreamForm | FileStretch | StretchEnd]) -> None:
        """Make records durable, and apply them."""
        held = list(records)
        if held:
            self._read = durable.append(self._path, map(_line, held), self._read)
            for record in held:
                self._take(record)

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
            raise StateError(f"'{self._path}' is damaged: it ends before what was read")


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
