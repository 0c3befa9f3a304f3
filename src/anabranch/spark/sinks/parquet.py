"""Tables: a folder of Parquet files, one for each epoch that adds rows, each written atomically and exactly once.

An epoch's file is named after it (`epoch-00000012.parquet`), so an epoch that is delivered again after a kill writes
the same rows to the same file.
Columns have the types that the query gives them (`tables.py`): 64-bit integers, doubles, booleans, and text as spelled
in the answer; null where a row has no value.
Columns that the query names are in every file; a column that only the answers show is in the files from its first row
on, and readers merge the files' columns by name.

A piece of an answer that is no row, because a former leaf has children or occurs twice, must neither stop the trunk
nor get lost: it goes into `_set_aside.jsonl` in the folder, with epoch and reason, where readers of Parquet do not
look.
Of a display the rows are its corrections (`changelog.py`).

When a query is changed, the folder of the old one is moved aside (`vela.3`, after the old subscription's number).
So is a folder whose columns have other types than the query gives them, as those written before columns had types;
the answer is then delivered again from the first retained epoch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from anabranch.spark.sinks.changelog import CHANGE_COLUMNS, ChangesForm, change_rows
from anabranch.spark.sinks.growing import Growing, growing, move_aside, numbered
from anabranch.spark.sinks.pieces import TableRow, rows_alike, take_apart
from anabranch.spark.sinks.tables import ColumnType, columns, computed_columns
from anabranch.storage import Location
from anabranch.visible import visible_json

SET_ASIDE = "_set_aside.jsonl"

_Columns: TypeAlias = Mapping[str, ColumnType]
"""Column types by name, in column order."""
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
    """The position of a folder: whose answer it holds, the next epoch, the columns so far."""

    owner: int
    next: int
    columns: _Columns
    moved: int = 0
    """How often the folder was moved aside for the same subscription."""

    @staticmethod
    def load(record: Location) -> FolderPosition:
        """Read a position; columns without types there are text."""
        fields = durable.unsealed(record)
        given = fields["columns"]
        text: ColumnType = "text"
        columns = given if isinstance(given, dict) else dict.fromkeys(given, text)
        return FolderPosition(fields["owner"], fields["next"], columns, fields.get("moved", 0))


class ParquetFolder:
    """A folder that gets a file for each epoch with rows; only the trunk writes to it.

    `at_work` is the subscription whose answer it has received so far, if known.
    """

    def __init__(
        self,
        path: Location,
        checkpoint: Checkpoint,
        warn: Callable[[str], None],
        at_work: Registration | None = None,
        changes: ChangesForm = "updates",
    ) -> None:
        """`changes` says how a display is told."""
        self._path = path
        self._changes = changes
        self._warn = warn
        self._checkpoint = checkpoint
        self._record = checkpoint.sink(path, ".parquet")
        self._reached = FolderPosition.load(self._record) if durable.exists(self._record) else None
        if self._reached is None and not _is_empty(path):
            raise StateError(f"'{path}' exists, and another checkpoint or program wrote it", hint="name a new folder")
        self._checked: int | None = None
        """The subscription whose column types were checked against the folder."""
        if at_work is not None and self._reached is not None and at_work.id == self._reached.owner:
            self._check_types(at_work, self._reached)
        self._set_aside = self._opened_set_aside()
        self.next = self._reached.next if self._reached else 0
        with durable.writing(path):
            path.sweep()

    def take(self, subscription: Registration, epoch: int, texts: Iterable[str]) -> None:
        """Write the rows of an epoch for a subscription."""
        if self._reached is not None and subscription.id < self._reached.owner:
            return  # of an earlier query of this name, whose folder was moved aside
        try:
            reached = self._prepared(subscription, epoch)
        except UsageError:
            return  # of an earlier query of this name, without a sink, whose answer is no table
        if subscription.shows:
            rows = change_rows(self._changes, texts)
            self._write(subscription, epoch, reached, pa.Table.from_pylist(rows, _schema(reached.columns)))
            return
        others: list[str] = []
        tables = [_schema(reached.columns).empty_table()]
        for text in texts:
            found = _alike(text, reached.columns)
            if found is None:
                found, misfits = _rows(text, reached.columns)
                others += (visible_json({"epoch": epoch, **misfit}) for misfit in misfits)
            tables.append(found)
        table = pa.concat_tables(tables, promote_options="default")
        if others and self._set_aside.next <= epoch:
            self._set_aside.append(subscription.id, epoch, (f"{line}\n" for line in others))
            where = self._set_aside.path
            self._warn(f"subscription '{subscription.name}': {len(others)} results are no rows, see '{where}'")
        self._write(subscription, epoch, reached, table)

    def _write(self, subscription: Registration, epoch: int, reached: FolderPosition, table: pa.Table) -> None:
        """Write the file of an epoch, if it has rows, and go on behind it."""
        if table.num_rows:
            durable.replace(self._folder(reached) / f"epoch-{epoch:08}.parquet", _written(table))
        fresh = {name: reached.columns.get(name, "text") for name in table.column_names}
        self._move(FolderPosition(subscription.id, epoch + 1, fresh, reached.moved))

    def _folder(self, reached: FolderPosition) -> Location:
        """Where the files are: in an object store, which has no rename, each subscription has a folder of its own."""
        return self._path if self._path.path is not None else self._path / numbered(reached.owner, reached.moved)

    def _prepared(self, subscription: Registration, epoch: int) -> FolderPosition:
        """The position of the folder, made ready for the answer of this subscription."""
        before = self._reached
        if before is not None and before.owner == subscription.id:
            if self._checked != subscription.id and self._check_types(subscription, before):
                self._set_aside = self._opened_set_aside()
            return self._reached or before
        fresh = FolderPosition(subscription.id, epoch, self._columns(subscription))
        with durable.writing(self._path):
            if before is not None:
                self._leave(before)
            self._move(fresh)  # from now on the folder is ours
        self._checked = subscription.id
        return fresh

    def _check_types(self, subscription: Registration, reached: FolderPosition) -> bool:
        """Move the folder aside where its files have other column types than the query; whether it was."""
        self._checked = subscription.id
        known = self._columns(subscription)
        held = {**reached.columns, **_types_in(self._folder(reached))}
        is_same = not subscription.shows or held.keys() == known.keys()
        if is_same and all(held.get(name, given) == given for name, given in known.items()):
            return False
        with durable.writing(self._path):
            aside = self._leave(reached)
            self._checkpoint.sink(self._path / SET_ASIDE).delete()
            self._move(FolderPosition(reached.owner, 0, known, reached.moved + 1))
        self._warn(
            f"subscription '{subscription.name}': the columns of '{self._path}' have other types now, "
            f"so it is written again; what was there is in '{aside}'"
        )
        return True

    def _columns(self, subscription: Registration) -> _Columns:
        """The columns of a display's changes, or those that a query, or a plan of operators, names."""
        text = subscription.text
        if subscription.shows:
            return CHANGE_COLUMNS[self._changes]
        if subscription.kind != PlanKind.name:
            return columns(parse(text))
        return {name: given for name, given in computed_columns(read_plan(text)).items() if "/" not in name}

    def _leave(self, reached: FolderPosition) -> Location:
        """Let the files of a subscription be as they are; gives where they are then."""
        if self._path.path is None:
            return self._folder(reached)
        return Location.of(move_aside(self._path.path, reached.owner, reached.moved))

    def _opened_set_aside(self) -> Growing:
        path = self._path / SET_ASIDE
        return growing(path, self._checkpoint.sink(path))

    def _move(self, reached: FolderPosition) -> None:
        durable.write_record(self._record, reached)
        self._reached = reached


def _is_empty(folder: Location) -> bool:
    """Whether nothing is there, or a folder without anything in it."""
    path = folder.path
    if path is None:
        return not durable.names(folder, below=True)
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def _schema(known: _Columns) -> pa.Schema:
    return pa.schema([(name, _ARROW[given]) for name, given in known.items()])


def _types_in(folder: Location) -> dict[str, ColumnType | None]:
    """The column types in the newest file of a folder; None for a type that we do not write."""
    files = [name for name in durable.names(folder) if name.startswith("epoch-") and name.endswith(".parquet")]
    ours = {arrow: given for given, arrow in _ARROW.items()}
    if not files:
        return {}
    try:
        with (folder / files[-1]).open() as file:
            return {each.name: ours.get(each.type) for each in pq.read_schema(file)}
    except pa.ArrowInvalid:
        return {}  # not a file of ours


def _alike(text: str, known: _Columns) -> pa.Table | None:
    """The rows of an answer that all have the form of the first; None if some do not."""
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
        return None  # a value does not parse; `_rows` finds the row


def _rows(text: str, known: _Columns) -> tuple[pa.Table, list[dict[str, str]]]:
    """The rows of an answer, and the pieces that are no rows, with the reason; `known` are the columns so far."""
    rows: list[Mapping[str, Any]] = []
    misfits: list[dict[str, str]] = []
    for piece in take_apart(text):
        match piece.row:
            case TableRow(name, values, str(own)) if own or name in known or not known:
                given = {**values, name: own}  # an empty text is a column if the query says so or it is the only one
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
    """Parse a value of an answer; an empty text of a typed column is null."""
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
