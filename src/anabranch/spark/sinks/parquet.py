"""Tables: a folder of Parquet files, one for each epoch that adds rows, each written whole and exactly once.

An epoch's file is called after it (`epoch-00000012.parquet`), so an epoch that is delivered again after a kill puts the
same rows into the same place.
All columns are text, as it is spelled in the answer, and null where a row has none.
The columns that the query tells of are in every file (`tables.py`); one that only the answers tell of is in the files
from its first row on, and readers put the files together by name.

A piece that is no row, since what was a leaf until now has elements or comes twice, must neither stop the trunk nor get
lost: it goes into `_set_aside.jsonl` in the same folder, with epoch and reason, where readers of Parquet do not look.
When a query is changed, the folder of the old one is moved aside (`vela.3`, after the old subscription's number).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.algebra.written import is_plan
from anabranch.errors import StateError, UsageError
from anabranch.language import parse
from anabranch.spark import durable
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.plan import Subscription
from anabranch.spark.sinks.alike import rows_alike
from anabranch.spark.sinks.growing import GrowingFile, move_aside
from anabranch.spark.sinks.pieces import Row, take_apart
from anabranch.spark.sinks.tables import columns
from anabranch.visible import visible_json

SET_ASIDE = "_set_aside.jsonl"


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a folder has come: whose answer it holds, the epoch that comes next, the columns until then."""

    owner: int
    next: int
    columns: tuple[str, ...]


class ParquetFolder:
    """A folder that gets a file for each epoch with rows; only the trunk delivers."""

    def __init__(self, path: Path, checkpoint: Checkpoint, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        self._record = checkpoint.sink(path).with_suffix(".parquet")
        fields = durable.unsealed(self._record) if self._record.exists() else None
        self._reached = Reached(fields["owner"], fields["next"], tuple(fields["columns"])) if fields else None
        if self._reached is None and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StateError(f"'{path}' exists, and another checkpoint or program wrote it", hint="name a new folder")
        self._set_aside = GrowingFile(path / SET_ASIDE, checkpoint.sink(path / SET_ASIDE))
        self.next = self._reached.next if self._reached else 0
        with durable.writing(path):
            durable.sweep(path)

    def take(self, subscription: Subscription, epoch: int, texts: Iterable[str]) -> None:
        """Write what an epoch adds to the answer of a subscription."""
        try:
            reached = self._prepared(subscription, epoch)
        except UsageError:
            return  # an earlier query under this name, from before the sink was asked for, whose answer is no table
        if not self._path.exists():
            with durable.writing(self._path):
                self._path.mkdir(parents=True)
                durable.sync(self._path.parent)
        others: list[str] = []
        tables = [pa.schema([(name, pa.string()) for name in reached.columns]).empty_table()]
        for text in texts:
            found: Mapping[str, Sequence[str | None]] | None = rows_alike(text)
            if found is None:
                found, misfits = _rows(text, reached.columns)
                others += (visible_json({"epoch": epoch, **misfit}) for misfit in misfits)
            tables.append(pa.table({name: pa.array(values, pa.string()) for name, values in found.items()}))
        table = pa.concat_tables(tables, promote_options="default")
        if table.num_rows:
            durable.replace(self._path / f"epoch-{epoch:08}.parquet", _written(table))
        if others and self._set_aside.next <= epoch:
            self._set_aside.append(subscription.id, epoch, (f"{line}\n" for line in others))
            where = self._set_aside.path
            self._warn(f"subscription '{subscription.name}': {len(others)} results are no rows, see '{where}'")
        self._move(Reached(subscription.id, epoch + 1, tuple(table.column_names)))

    def _prepared(self, subscription: Subscription, epoch: int) -> Reached:
        """Where the folder stands, and that it is ready for the answer of this subscription."""
        before = self._reached
        if before is not None and before.owner == subscription.id:
            return before
        # what the builder made has the columns that its items turn out to have
        known = () if is_plan(subscription.text) else columns(parse(subscription.text))
        fresh = Reached(subscription.id, epoch, known)
        with durable.writing(self._path):
            if before is not None:
                move_aside(self._path, before.owner)
            self._move(fresh)  # from here on the folder is known as ours
        return fresh

    def _move(self, reached: Reached) -> None:
        durable.replace(self._record, durable.sealed(asdict(reached)))
        self._reached = reached


def _rows(text: str, known: Sequence[str]) -> tuple[dict[str, list[str | None]], list[dict[str, str]]]:
    """The rows of an answer by column, and what is no row, with the reason; `known` are the columns until now."""
    rows: list[Mapping[str, str]] = []
    misfits: list[dict[str, str]] = []
    for piece in take_apart(text):
        match piece.row:
            case Row(name, values, str(own)) if own or name in known or not known:
                rows.append({**values, name: own})  # empty, it is a column if the query says so or there is no other
            case Row(_, values):
                rows.append(values)
            case reason:
                misfits.append({"reason": reason, "raw": piece.text})
    names = dict.fromkeys([*known, *(name for row in rows for name in row)])
    return {name: [row.get(name) for row in rows] for name in names}, misfits


def _written(table: pa.Table) -> bytes:
    """A table as a Parquet file."""
    out = pa.BufferOutputStream()
    pq.write_table(table.combine_chunks(), out)
    return bytes(out.getvalue())
