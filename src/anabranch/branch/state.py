"""The state of a branch between two epochs, and its format.

A state is a small JSON value and some Arrow tables: nothing in it is executed when it is read.
It is written as one blob: a line of JSON with the kind, version and sizes, then the tables as Arrow streams.
A release reads its own version and refuses others by name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from anabranch.errors import StateError
from anabranch.law.rounds.windows import Reach

KIND = "anabranch branch"
VERSION = 7


@dataclass(frozen=True, slots=True)
class BranchState:
    """The state of one branch; `meta["operator"]` names its operator."""

    meta: dict[str, Any]
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The state as one blob."""
        blobs = {name: table_bytes(table, "zstd") for name, table in self.tables.items()}
        head = {
            "kind": KIND,
            "version": VERSION,
            "meta": self.meta,
            "tables": [[name, len(blob)] for name, blob in blobs.items()],
        }
        return b"".join((json.dumps(head).encode(), b"\n", *blobs.values()))

    @staticmethod
    def from_bytes(data: bytes) -> BranchState:
        """The state from a blob of `to_bytes`; `StateError` where it is of another kind or version."""
        line, _, rest = data.partition(b"\n")
        try:
            head = json.loads(line)
            kind, version = head["kind"], head["version"]
        except (ValueError, TypeError, KeyError):
            raise StateError("the state of a branch is damaged") from None
        if kind != KIND:
            raise StateError(f"this is '{kind}', not the state of a branch")
        if version != VERSION:
            raise StateError(
                f"the state of a branch is of version {version}, and this release reads version {VERSION}",
                hint="use the release that wrote it, or begin with a new checkpoint",
            )
        try:
            if sum(length for _, length in head["tables"]) != len(rest):
                raise ValueError("bytes are missing, or too many")
            tables: dict[str, pa.Table] = {}
            at = 0
            for name, length in head["tables"]:
                tables[name] = read_table(rest[at : at + length])
                tables[name].validate(full=True)  # texts may end before they begin, which Arrow does not look at
                at += length
            return BranchState(head["meta"], tables)
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
            raise StateError("the state of a branch is damaged") from None


def table_bytes(table: pa.Table, compression: str | None = None) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def read_table(data: bytes) -> pa.Table:
    """The table in an Arrow stream."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def written(value: Reach | None) -> str | None:
    """A value as text, without loss."""
    return None if value is None else str(value)


def reach(text: str | None) -> Reach | None:
    """The value from a text of `written`."""
    return None if text is None else float(text) if text == "inf" else Fraction(text)


def fraction(text: str | None) -> Fraction | None:
    """The same for a finite value."""
    return None if text is None else Fraction(text)
