"""The next entries of one input of a join, in columns: what each is to the join, and when it arrives.

Entries that fit the template are never read one by one.
The others are, by the reader and the law; one that columns cannot show at all is a *barrier*: the batch ends before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.branch.backlog import Backlog
from anabranch.branch.entries import Entry, Origin, cuts
from anabranch.branch.keeping import Held
from anabranch.branch.ports import InputStream
from anabranch.columnar.condition import UNCLEAR, YES, judge
from anabranch.columnar.joining_entries import Decimals, shred_entries
from anabranch.columnar.kernels_joins import SELECTED, SHOWN, VOID
from anabranch.columnar.pairs import CompiledSide
from anabranch.columnar.shred import Shredded
from anabranch.columnar.template import Template
from anabranch.errors import DynamicError, StreamError
from anabranch.reference.inputs import element_time, refuse_regions
from anabranch.reference.units import Units
from anabranch.stream.elements import DeadLetter, Item, StreamElement
from anabranch.stream.limits import Limits

_NO_TIME = Fraction(-1)  # known by identity
_LIMITS = Limits()  # of a template's items all are within their limits, or none is; what is too long has a reason


class Entries:
    """Some entries of one input, in order, as they lie."""

    def __init__(self, tables: Sequence[tuple[Origin, pa.Table]], *, complete: bool) -> None:
        self._tables = tables
        self._firsts: list[int] = list(accumulate((table.num_rows for _, table in tables), initial=0))
        self.complete = complete
        """Whether there are no others yet."""

    @staticmethod
    def ahead(backlog: Backlog, most: int) -> Entries:
        """What comes next in a backlog, about `most` bytes of it."""
        found: list[tuple[Origin, pa.Table]] = []
        for origin, table in backlog.ahead(most):
            rows = min(table.num_rows, 1 + most * table.num_rows // (1 + table.nbytes))
            found.append((origin, table.slice(0, rows)))
            most -= table.nbytes
            if most <= 0:
                break
        return Entries(found, complete=sum(table.num_rows for _, table in found) == len(backlog))

    def __len__(self) -> int:
        return self._firsts[-1]

    @property
    def origins(self) -> list[tuple[Origin, int]]:
        """Where they come from, and how many from there."""
        return [(origin, table.num_rows) for origin, table in self._tables]

    def first(self, count: int) -> list[Entry]:
        """Some to learn from."""
        return [self.entry(number) for number in range(min(count, len(self)))]

    def entry(self, number: int) -> Entry:
        """One of them."""
        place = bisect_right(self._firsts, number) - 1
        origin, table = self._tables[place]
        return Entry(origin, next(cuts(table.slice(number - self._firsts[place], 1))))

    @property
    def good(self) -> NDArray[np.bool_]:
        """Which of them may be good: those that have not been set aside."""
        found = [table.column("reason").is_null().to_numpy() for _, table in self._tables]
        return np.concatenate([np.empty(0, np.bool_), *found])

    @property
    def plain(self) -> bool:
        """Whether nothing around them changes what their bytes mean."""
        for _, table in self._tables:
            roots, encodings = (table.column(name).unique().to_pylist() for name in ("root", "encoding"))
            if not all(_is_plain(*each) for each in product(roots, encodings)):
                return False
        return True

    def raw(self) -> tuple[list[bytes], list[NDArray[np.int64]]]:
        """Their bytes one behind the other, in parts, and the length of each."""
        parts: list[bytes] = []
        lengths: list[NDArray[np.int64]] = []
        for _, table in self._tables:
            for chunk in filter(len, table.column("raw").chunks):
                _, places, data = chunk.buffers()
                ends = np.frombuffer(places, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
                if data is not None:
                    parts.append(data[ends[0] : ends[-1]].to_pybytes())
                lengths.append(np.diff(ends))
        return parts, lengths


def _is_plain(root: bytes | None, encoding: str) -> bool:
    return encoding == "utf-8" and b"xmlns" not in (root or b"")


@dataclass(frozen=True, slots=True)
class Batch:
    """One side's items, numbered as `columnar.joining.Lane` has them: those it had before, then its next entries."""

    shredded: Shredded
    before: int
    """How many it had before."""
    status: NDArray[np.uint8]
    values: Decimals
    times: Decimals
    timed: NDArray[np.bool_]
    """Which items have a time of their own."""
    complete: bool
    """Whether there are no other entries yet; False at a barrier."""
    errors: Mapping[int, DynamicError]
    """What is set aside when an item arrives."""

    def __len__(self) -> int:
        return len(self.status)


class BatchReader:
    """Takes the entries of one side of a join apart."""

    def __init__(self, stream: InputStream, clause: int, units: Units) -> None:
        self._stream = stream
        self._clause = clause
        self._units = units
        self._reader = stream.reader()

    def learn(self, entries: Iterable[Entry]) -> Template | None:
        """The template that most of some entries fit."""
        read = ((entry.cut.raw, self._read(entry)) for entry in entries)
        return Template.learn((raw, element.tree) for raw, element in read if isinstance(element, Item))

    def batch(self, side: CompiledSide, held: Sequence[Held], entries: Entries) -> Batch:
        """Take apart what a side holds, and its next entries."""
        before = len(held)
        parts, lengths = entries.raw()
        old = [each.kept.entry.cut.raw for each in held]
        ends = np.cumsum(np.concatenate([np.array([len(raw) for raw in old], np.int64), *lengths]))
        shredded = shred_entries(b"".join((*old, *parts)), ends, side.wanted, _LIMITS)
        around = ((each.kept.entry.cut.root, each.kept.entry.cut.encoding) for each in held)
        shredded.fits[:before] &= np.fromiter((_is_plain(*each) for each in around), np.bool_, before)
        shredded.fits[before:] &= entries.good
        verdicts = judge(side.condition, shredded)
        numbers = [leaf for leaf in (side.reference, side.time) if leaf is not None]
        unclear = ~shredded.fits | (verdicts == UNCLEAR)
        for leaf in numbers:
            unclear |= np.isnan(shredded.values[side.wanted.leaves.index(leaf)])
        status = np.where(verdicts == YES, np.uint8(SELECTED), np.uint8(SHOWN))
        timed = np.full(len(status), side.time is not None)
        values = {
            number: held[number].value + self._stream.origin for number in np.flatnonzero(unclear[:before]).tolist()
        }
        times: dict[int, Fraction] = {}
        errors: dict[int, DynamicError] = {}
        stop = len(status)
        for number in map(int, before + np.flatnonzero(unclear[before:])):
            look = self._look(entries.entry(number - before))
            if look is None:
                stop = number
                break
            status[number] = look.status
            timed[number] = look.time is not None
            if look.value is not None:
                values[number] = look.value
            if look.time is not None:
                times[number] = look.time
            if look.error is not None:
                errors[number] = look.error
        return Batch(
            shredded,
            before,
            status[:stop],
            Decimals.read(shredded, side.reference, values, stop),
            Decimals.read(shredded, side.time, times, stop),
            timed[:stop],
            entries.complete and stop == len(unclear),
            errors,
        )

    def _look(self, entry: Entry) -> _Look | None:
        """What the law makes of one entry; None where that is not for columns."""
        element = self._read(entry)
        if isinstance(element, DeadLetter):  # set aside by whoever cut it out
            return _Look(VOID)
        if not isinstance(element, Item):
            return None
        element.tree.parent = self._stream.root
        try:
            refuse_regions(element.tree, element.place)
            found = self._units.candidates(self._clause, self._stream.root, element, self._stream.origin)
        except StreamError:  # the operator raises it when the entry's turn has come
            return None
        if len(found.nodes) > 1:
            return None
        time = element_time(element, self._stream.time, _NO_TIME)
        own = None if time is _NO_TIME else time
        for node in found.nodes:
            if node.value is not None:
                status = SELECTED if node.selected else SHOWN
                return _Look(status, node.value + self._stream.origin, own, found.error)
            return _Look(VOID, None, own, found.error or (node.error if node.selected else None))
        return _Look(VOID, None, own, found.error)

    def _read(self, entry: Entry) -> StreamElement | DeadLetter:
        (element,) = self._reader.elements([entry.cut], entry.origin.file)
        return element


@dataclass(frozen=True, slots=True)
class _Look:
    """What one entry is to the join; the value is the reference's own, not counted from the stream's origin."""

    status: int
    value: Fraction | None = None
    time: Fraction | None = None
    error: DynamicError | None = None
