"""The rows that pass from the tasks that read ranges to those that have the branches of a shard, and on from strands.

Raw items travel once to each shard that needs them, in feeds; so do partial panes, those of all its branches together.
Reports take the same way to the driver, as the rows of a shard that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pyarrow as pa

ROWS = "shard int, sequence long, kind string, branch long, payload binary"
REPORTS = "sequence long, report string"
"""What comes back: the number of the task's first range, and a `Report` as JSON."""
DRIVER = -1
"""The shard of the reports."""
ALL = -1
"""Stands for the branch where a row concerns all branches of a shard."""

Kind: TypeAlias = Literal["report", "feed", "panes", "ended", "passed", "told", "finished"]
_TYPES = pa.schema(
    [
        ("shard", pa.int32()),
        ("sequence", pa.int64()),
        ("kind", pa.string()),
        ("branch", pa.int64()),
        ("payload", pa.binary()),
    ]
)
_BATCH = 8 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `sequence` is the number of the range it comes from."""

    shard: int
    sequence: int
    kind: Kind
    branch: int
    payload: bytes


@dataclass(slots=True)
class Outbox:
    """Rows that are ready; whoever drains it sends them."""

    rows: list[Row] = field(default_factory=list)

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Everything that is there, in batches of bounded size."""
        held: list[Row] = []
        size = 0
        for row in self.rows:
            held.append(row)
            size += len(row.payload)
            if size > _BATCH:
                yield _batch(held)
                held, size = [], 0
        if held:
            yield _batch(held)
        self.rows = []


def _batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{name: getattr(row, name) for name in _TYPES.names} for row in rows], _TYPES)


def read_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of batches, as they come."""
    return (Row(**each) for batch in batches for each in batch.to_pylist())
