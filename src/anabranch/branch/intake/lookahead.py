"""Batches of the next entries of inputs, and their arrival order (LAWS 1.2), as far as it is known.

Times are integers of one unit; larger ones raise OverflowError, and are left to the operator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise, product
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.branch.intake.backlog import Backlog
from anabranch.branch.intake.entries import MILLISECONDS, FeedOrigin, RawEntry, cuts
from anabranch.branch.intake.merge import Merge, MergeInput
from anabranch.columnar.joins.kernels import merged
from anabranch.columnar.scan.entries import Decimals, common_unit, in_unit
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.template import is_plain_around
from anabranch.law.inputs import element_time
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.path import Path

MAX_BYTES, MIN_BYTES, MAX_TOTAL_BYTES = 4 << 20, 64 << 10, 32 << 20
"""The bytes of an input that are read at a time: at most, at least, and at most of all inputs together."""
SAMPLE = 5
"""The number of entries from which a template is learned."""
_ROWS_AT_A_TIME = 256


class NextEntries:
    """Some entries of one input, in order."""

    def __init__(self, tables: Sequence[tuple[FeedOrigin, pa.Table]], *, complete: bool) -> None:
        self._tables = tables
        self._firsts: list[int] = list(accumulate((table.num_rows for _, table in tables), initial=0))
        self.complete = complete
        """Whether there are no other entries yet."""

    @staticmethod
    def ahead(backlog: Backlog, most: int) -> NextEntries:
        """The next entries of a backlog, about `most` bytes."""
        found: list[tuple[FeedOrigin, pa.Table]] = []
        for origin, table in backlog.ahead(most):
            rows = min(table.num_rows, 1 + most * table.num_rows // (1 + table.nbytes))
            found.append((origin, table.slice(0, rows)))
            most -= table.nbytes
            if most <= 0:
                break
        return NextEntries(found, complete=sum(table.num_rows for _, table in found) == len(backlog))

    def __len__(self) -> int:
        return self._firsts[-1]

    @property
    def origins(self) -> list[tuple[FeedOrigin, int]]:
        """The origins of the entries, with their counts."""
        return [(origin, table.num_rows) for origin, table in self._tables]

    def first(self, count: int) -> list[RawEntry]:
        """The first entries, to learn from."""
        return list(self.some(range(min(count, len(self)))))

    def some(self, numbers: Sequence[int] | Indices) -> Iterator[RawEntry]:
        """The entries of these ascending numbers; they are read lazily."""
        chosen = np.asarray(numbers, np.int64)
        places = np.searchsorted(chosen, self._firsts)
        for (origin, table), first, low, high in zip(
            self._tables, self._firsts[:-1], places[:-1], places[1:], strict=True
        ):
            for start in range(low, high, _ROWS_AT_A_TIME):
                rows = table.take(pa.array(chosen[start : min(high, start + _ROWS_AT_A_TIME)] - first))
                yield from (RawEntry(origin, cut) for cut in cuts(rows))

    @property
    def good(self) -> Flags:
        """Entries that were not set aside."""
        found = [table.column("reason").is_null().to_numpy() for _, table in self._tables]
        return np.concatenate([np.empty(0, np.bool_), *found])

    @cached_property
    def stamps(self) -> Indices | None:
        """The timestamps of the messages that entries came in, in milliseconds; None where they count for nothing."""
        found = [
            table.column("stamp").fill_null(0).to_numpy()
            if "stamp" in table.schema.names and table.column("stamp").null_count < table.num_rows
            else None
            for _, table in self._tables
        ]
        if all(each is None for each in found):
            return None
        # a heartbeat of the run has none, but a time of its own
        counted = zip(found, (table.num_rows for _, table in self._tables), strict=True)
        return np.concatenate([np.zeros(rows, np.int64) if each is None else each for each, rows in counted])

    @property
    def plain(self) -> bool:
        """Whether all entries have plain encoding and root, so that their bytes mean the same."""
        for _, table in self._tables:
            roots, encodings = (table.column(name).unique().to_pylist() for name in ("root", "encoding"))
            if not all(is_plain_around(*each) for each in product(roots, encodings)):
                return False
        return True

    def raw(self) -> tuple[list[bytes], list[NDArray[np.int64]]]:
        """Their bytes concatenated, in parts, and the length of each entry."""
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


class ReadAhead:
    """How many bytes of one input to read: fewer where many entries could not be taken, and must be read again."""

    def __init__(self, inputs: int = 1) -> None:
        self._farthest = max(MIN_BYTES, min(MAX_BYTES, MAX_TOTAL_BYTES // inputs))
        self.most = max(MIN_BYTES, MAX_BYTES // inputs)

    def after(self, taken: int, seen: int) -> None:
        """Adapt to a batch of `seen` entries of which `taken` were taken: next time twice as many as taken are read.

        So inputs of the same pace are read equally far; an input that waits for others is read less far.
        """
        if seen:
            self.most = min(self._farthest, max(MIN_BYTES, self.most // 4, 2 * self.most * taken // seen))


class Pause:
    """When to try columns again after an element that is not for them: less often where few elements were taken so."""

    _WORTH_IT, _LONGEST = 64, 1_023

    def __init__(self) -> None:
        self._pause = self._rest = 0

    def is_over(self) -> bool:
        """Whether to try; to be called once per element."""
        self._rest -= 1
        return self._rest < 0

    def after(self, taken: int) -> None:
        """Adapt to the number of elements taken by the last try."""
        self._pause = 0 if taken >= self._WORTH_IT else min(2 * self._pause + 1, self._LONGEST)
        self._rest = self._pause


T = TypeVar("T", bound=np.generic)
NOWHERE, FOREVER = -(1 << 62), 1 << 62
_NO_TIME = Fraction(-1)  # known by identity


def own_time(element: Item | Punctuation, path: Path | None) -> Fraction | None:
    """An element's own time, by the declared time `path`."""
    time = element_time(element, path, _NO_TIME)
    return None if time is _NO_TIME else time


@dataclass(frozen=True, slots=True)
class EntryTimes:
    """The known times of an input's next entries."""

    entries: NextEntries
    times: Decimals
    """Their own times."""
    timed: Flags
    """Entries with a time of their own."""
    bad: Sequence[int]
    """Entries that are no elements at all."""
    complete: bool
    """Whether there are no other entries yet."""


@dataclass(frozen=True, slots=True)
class ArrivalOrder:
    """The input of each arrival; by input, which arrivals are its entries, and the time of the last."""

    inputs: Indices
    places: list[Indices]
    now: list[Fraction]

    def spread(self, known: Sequence[NDArray[T]]) -> NDArray[T]:
        """Values by input, reordered by arrival."""
        found = np.empty(len(self.inputs), known[0].dtype)
        for mine, each in zip(self.places, known, strict=True):
            found[mine] = each[: len(mine)]
        return found


def order_of(merge: Merge, sources: Sequence[MergeInput], inputs: Sequence[EntryTimes]) -> ArrivalOrder:
    """The arrival order of entries."""
    arrived = [origin.arrived for each in inputs for origin, _ in each.entries.origins if origin.arrived is not None]
    arrived += [Fraction(1, MILLISECONDS)] * any(each.entries.stamps is not None for each in inputs)
    unit = common_unit([each.times for each in inputs], [*arrived, *(source.now for source in sources)])
    times = [_times(each, source, unit) for each, source in zip(inputs, sources, strict=True)]
    heads = [each.copy() for each in times]
    for mine, each in zip(heads, inputs, strict=True):
        mine[np.array(each.bad, np.int64)] = NOWHERE  # a bad entry holds nothing back
    limits = [
        limit(merge, source, unit) if each.complete else NOWHERE for source, each in zip(sources, inputs, strict=True)
    ]
    found = merged(heads, limits)
    places = [np.flatnonzero(found == number) for number in range(len(inputs))]
    now = [
        Fraction(int(mine[len(taken) - 1]), unit) if len(taken) else source.now
        for source, mine, taken in zip(sources, times, places, strict=True)
    ]
    return ArrivalOrder(found, places, now)


class MergeAhead:
    """The next entries of all inputs of a merge."""

    def __init__(self, merge: Merge) -> None:
        self.inputs = list(merge.sources.values())
        self._merge = merge
        self._read_aheads = [ReadAhead(len(self.inputs)) for _ in self.inputs]

    def entries(self) -> list[NextEntries] | None:
        """The next entries of each input; None where nothing is released, or something is not for columns."""
        silent = [each for each in self.inputs if not each.backlog]
        if len(silent) == len(self.inputs) or any(limit(self._merge, each, 1) == NOWHERE for each in silent):
            return None
        seen = zip(self.inputs, self._read_aheads, strict=True)
        found = [NextEntries.ahead(each.backlog, read_ahead.most) for each, read_ahead in seen]
        return found if all(each.plain for each in found) else None

    def order(self, moments: Sequence[EntryTimes], entries: Sequence[NextEntries]) -> ArrivalOrder | None:
        """The arrival order of entries; adapts how far to read next; None if nothing arrives."""
        found = order_of(self._merge, self.inputs, moments)
        for read_ahead, taken, given in zip(self._read_aheads, found.places, entries, strict=True):
            read_ahead.after(len(taken), len(given))
        return found if len(found.inputs) else None

    def skip(self, order: ArrivalOrder) -> None:
        """Advance the inputs behind the arrivals."""
        for each, taken, now in zip(self.inputs, order.places, order.now, strict=True):
            each.skip(len(taken), now)


def first_entries(entries: Sequence[NextEntries]) -> Iterator[RawEntry]:
    """Some entries of all inputs, to learn from."""
    sample = SAMPLE if len(entries) < SAMPLE else 1
    return (entry for each in entries for entry in each.first(sample))


def limit(merge: Merge, source: MergeInput, unit: int) -> int:
    """The time before which an input brings nothing more behind its known entries."""
    known = merge.known_until(source.key)
    if known is None:
        return NOWHERE
    return FOREVER if known == math.inf else in_unit(Fraction(known), unit)


def _times(moments: EntryTimes, source: MergeInput, unit: int) -> Indices:
    """The times of entries: their own, else the time of arrival, else that of the element before (LAWS 1.3)."""
    times, known = moments.times.in_units(unit), moments.timed.copy()
    if moments.entries.stamps is not None:
        return _stamped_times(moments, times, in_unit(source.now, unit), unit)
    first = 0
    for origin, rows in moments.entries.origins:
        span = slice(first, first + rows)
        if origin.arrived is not None:
            times[span][~known[span]] = in_unit(origin.arrived, unit)
            known[span] = True
        first += rows
    last = np.maximum.accumulate(np.where(known, np.arange(len(times)), -1))
    return np.where(last >= 0, times[last], in_unit(source.now, unit))


def _stamped_times(moments: EntryTimes, times: Indices, now: int, unit: int) -> Indices:
    """The times of entries that came in messages with timestamps, which do not run backwards (LAWS 1.3)."""
    assert moments.entries.stamps is not None
    stamps = moments.entries.stamps[: len(times)] * (unit // MILLISECONDS)
    stamps[np.array(moments.bad, np.int64)] = NOWHERE
    found = times.copy()
    own = np.flatnonzero(moments.timed)
    for first, last in pairwise([-1, *own.tolist(), len(times)]):
        now = now if first < 0 else int(times[first])
        span = slice(first + 1, last)
        found[span] = np.maximum.accumulate(np.maximum(stamps[span], now))
    return found
