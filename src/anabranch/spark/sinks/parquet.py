"""Tables: a folder of Parquet files, one for each epoch that adds rows, each written whole and exactly once.

An epoch's file is called after it (`epoch-00000012.parquet`), so an epoch that is delivered again after a kill puts the
same rows into the same place.
Columns have the types that the query gives them (`tables.py`): 64-bit integers, doubles, booleans, and text as it is
spelled in the answer; null where a row has none.
The columns that the query tells of are in every file (`tables.py`); one that only the answers tell of is in the files
from its first row on, and readers put the files together by name.

A piece that is no row, since what was a leaf until now has elements or comes twice, must neither stop the trunk nor get
lost: it goes into `_set_aside.jsonl` in the same folder, with epoch and reason, where readers of Parquet do not look.
When a query is changed, the folder of the old one is moved aside (`vela.3`, after the old subscription's number).
So is a folder whose columns have other types than the query gives them, as all had that were written before columns had
types; the answer is then delivered again from its beginning, as far as it is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.algebra.plans.written import read_plan
from anabranch.errors import StateError, UsageError
from anabranch.language import parse
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.operators import PlanKind
from anabranch.spark.sinks.growing import GrowingFile, move_aside
from anabranch.spark.sinks.pieces import TableRow, rows_alike, take_apart
from anabranch.spark.sinks.tables import ColumnType, columns, computed_columns
from anabranch.visible import visible_json

SET_ASIDE = "_set_aside.jsonl"

_Columns: TypeAlias = Mapping[str, ColumnType]
"""Columns by name, in their order."""
_ARROW: Mapping[ColumnType, pa.DataType] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
}
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(E-?[0-9]+)?")
_SPECIAL = {"INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class FolderPosition:
    """How far a folder has come: whose answer it holds, the epoch that comes next, the columns until then."""

    owner: int
    next: int
    columns: _Columns
    moved: int = 0
    """How often the folder was moved aside though it is the same subscription's."""

    @staticmethod
    def load(record: Path) -> FolderPosition:
        """What was noted; columns that have no types there are text."""
        fields = durable.unsealed(record)
        given = fields["columns"]
        text: ColumnType = "text"
        columns = given if isinstance(given, dict) else dict.fromkeys(given, text)
        return FolderPosition(fields["owner"], fields["next"], columns, fields.get("moved", 0))


class ParquetFolder:
    """A folder that gets a file for each epoch with rows; only the trunk delivers.

    `at_work` is the subscription whose answer it has got until now, if it is known.
    """

    def __init__(
        self,
        path: Path,
        checkpoint: Checkpoint,
        warn: Callable[[str], None],
        at_work: Registration | None = None,
    ) -> None:
        self._path = path
        self._warn = warn
        self._checkpoint = checkpoint
        self._record = checkpoint.sink(path).with_suffix(".parquet")
        self._reached = FolderPosition.load(self._record) if self._record.exists() else None
        if self._reached is None and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StateError(f"'{path}' exists, and another checkpoint or program wrote it", hint="name a new folder")
        self._checked: int | None = None
        """The subscription for which the types in the folder are known to be right."""
        if at_work is not None and self._reached is not None and at_work.id == self._reached.owner:
            self._check_types(at_work, self._reached)
        self._set_aside = self._opened_set_aside()
        self.next = self._reached.next if self._reached else 0
        with durable.writing(path):
            durable.sweep(path)

    def take(self, subscription: Registration, epoch: int, texts: Iterable[str]) -> None:
        """Write what an epoch adds to the answer of a subscription."""
        if self._reached is not None and subscription.id < self._reached.owner:
            return  # an earlier query under this name, whose answer was moved aside long ago
        try:
            reached = self._prepared(subscription, epoch)
        except UsageError:
            return  # an earlier query under this name, from before the sink was asked for, whose answer is no table
        if not self._path.exists():
            with durable.writing(self._path):
                self._path.mkdir(parents=True)
                durable.sync(self._path.parent)
        others: list[str] = []
        tables = [_schema(reached.columns).empty_table()]
        for text in texts:
            found = _alike(text, reached.columns)
            if found is None:
                found, misfits = _rows(text, reached.columns)
                others += (visible_json({"epoch": epoch, **misfit}) for misfit in misfits)
            tables.append(found)
        table = pa.concat_tables(tables, promote_options="default")
        if table.num_rows:
            durable.replace(self._path / f"epoch-{epoch:08}.parquet", _written(table))
        if others and self._set_aside.next <= epoch:
            self._set_aside.append(subscription.id, epoch, (f"{line}\n" for line in others))
            where = self._set_aside.path
            self._warn(f"subscription '{subscription.name}': {len(others)} results are no rows, see '{where}'")
        fresh = {name: reached.columns.get(name, "text") for name in table.column_names}
        self._move(FolderPosition(subscription.id, epoch + 1, fresh, reached.moved))

    def _prepared(self, subscription: Registration, epoch: int) -> FolderPosition:
        """Where the folder stands, and that it is ready for the answer of this subscription."""
        before = self._reached
        if before is not None and before.owner == subscription.id:
            if self._checked != subscription.id and self._check_types(subscription, before):
                self._set_aside = self._opened_set_aside()
            return self._reached or before
        fresh = FolderPosition(subscription.id, epoch, _columns(subscription))
        with durable.writing(self._path):
            if before is not None:
                move_aside(self._path, before.owner, before.moved)
            self._move(fresh)  # from here on the folder is known as ours
        self._checked = subscription.id
        return fresh

    def _check_types(self, subscription: Registration, reached: FolderPosition) -> bool:
        """Begin anew where the files have other types than the query gives their columns; whether that was so."""
        self._checked = subscription.id
        known = _columns(subscription)
        held = {**reached.columns, **_types_in(self._path)}
        if all(held.get(name, given) == given for name, given in known.items()):
            return False
        with durable.writing(self._path):
            aside = move_aside(self._path, reached.owner, reached.moved)
            self._checkpoint.sink(self._path / SET_ASIDE).unlink(missing_ok=True)
            self._move(FolderPosition(reached.owner, 0, known, reached.moved + 1))
        self._warn(
            f"subscription '{subscription.name}': the columns of '{self._path}' have other types now, "
            f"so it is written again; what was there is in '{aside}'"
        )
        return True

    def _opened_set_aside(self) -> GrowingFile:
        path = self._path / SET_ASIDE
        return GrowingFile(path, self._checkpoint.sink(path))

    def _move(self, reached: FolderPosition) -> None:
        durable.write_record(self._record, reached)
        self._reached = reached


def _columns(subscription: Registration) -> _Columns:
    """The columns that a query tells of, or a plan of operators."""
    text = subscription.text
    if subscription.kind != PlanKind.name:
        return columns(parse(text))
    return {name: given for name, given in computed_columns(read_plan(text)).items() if "/" not in name}


def _schema(known: _Columns) -> pa.Schema:
    return pa.schema([(name, _ARROW[given]) for name, given in known.items()])


def _types_in(folder: Path) -> dict[str, ColumnType | None]:
    """The types of the columns in the newest file of a folder; None for one that we do not write."""
    files = sorted(folder.glob("epoch-*.parquet"))
    ours = {arrow: given for given, arrow in _ARROW.items()}
    try:
        return {each.name: ours.get(each.type) for each in pq.read_schema(files[-1])} if files else {}
    except pa.ArrowInvalid:
        return {}  # whatever it is, we did not write it


def _alike(text: str, known: _Columns) -> pa.Table | None:
    """The rows of an answer that all look like the first; None if they do not."""
    found = rows_alike(text)
    if found is None:
        return None
    try:
        return pa.table(
            {
                name: _array([_read(each, known.get(name)) for each in values], known.get(name))
                for name, values in found.items()
            }
        )
    except ValueError:
        return None  # `_rows` finds out which of them has what is none


def _rows(text: str, known: _Columns) -> tuple[pa.Table, list[dict[str, str]]]:
    """The rows of an answer, and what is no row, with the reason; `known` are the columns until now."""
    rows: list[Mapping[str, Any]] = []
    misfits: list[dict[str, str]] = []
    for piece in take_apart(text):
        match piece.row:
            case TableRow(name, values, str(own)) if own or name in known or not known:
                given = {**values, name: own}  # empty, it is a column if the query says so or there is no other
            case TableRow(_, values):
                given = dict(values)
            case reason:
                misfits.append({"reason": reason, "raw": piece.text})
                continue
        try:
            rows.append({name: _read(value, known.get(name)) for name, value in given.items()})
        except ValueError as error:
            misfits.append({"reason": str(error), "raw": piece.text})
    names = dict.fromkeys([*known, *(name for row in rows for name in row)])
    return pa.table({name: _array([row.get(name) for row in rows], known.get(name)) for name in names}), misfits


def _array(values: Sequence[Any], given: ColumnType | None) -> pa.Array:
    return pa.array(values, _ARROW[given or "text"])


def _read(text: str, given: ColumnType | None) -> str | int | float | bool | None:
    """The value that is spelled in an answer; a value that is not text and is not there has no spelling."""
    match given:
        case None | "text":
            return text
        case _ if not text:
            return None
        case "boolean" if text in _BOOLEANS:
            return _BOOLEANS[text]
        case "number" if text in _SPECIAL:
            return _SPECIAL[text]
        case "number" if _NUMBER.fullmatch(text):
            return float(text)
        case "integer" if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
            return int(text)
    raise ValueError(f"'{text[:100]}' is no {given}")


def _written(table: pa.Table) -> bytes:
    """A table as a Parquet file."""
    out = pa.BufferOutputStream()
    pq.write_table(table.combine_chunks(), out)
    return bytes(out.getvalue())
