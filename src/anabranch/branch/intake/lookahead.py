"""The entries that come next in one input, many at a time, as they lie in its backlog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.branch.intake.backlog import Backlog
from anabranch.branch.intake.entries import Entry, Origin, cuts
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.template import is_plain_around

AHEAD, LEAST, TOGETHER = 4 << 20, 64 << 10, 32 << 20
"""How many bytes of an input are looked at at a time: at most, at least, and at most of all inputs together."""
SAMPLE = 5
"""How many entries a template is learned from."""
_SOME = 256


class Entries:
    """Some entries of one input, in order."""

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
        return list(self.some(range(min(count, len(self)))))

    def some(self, numbers: Sequence[int] | Indices) -> Iterator[Entry]:
        """Those with these numbers, which rise; they are read as they are asked for."""
        chosen = np.asarray(numbers, np.int64)
        places = np.searchsorted(chosen, self._firsts)
        for (origin, table), first, low, high in zip(
            self._tables, self._firsts[:-1], places[:-1], places[1:], strict=True
        ):
            for start in range(low, high, _SOME):
                rows = table.take(pa.array(chosen[start : min(high, start + _SOME)] - first))
                yield from (Entry(origin, cut) for cut in cuts(rows))

    @property
    def good(self) -> Flags:
        """Which of them may be good: those that have not been set aside."""
        found = [table.column("reason").is_null().to_numpy() for _, table in self._tables]
        return np.concatenate([np.empty(0, np.bool_), *found])

    @property
    def plain(self) -> bool:
        """Whether nothing around them changes what their bytes mean."""
        for _, table in self._tables:
            roots, encodings = (table.column(name).unique().to_pylist() for name in ("root", "encoding"))
            if not all(is_plain_around(*each) for each in product(roots, encodings)):
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


class Sight:
    """How many bytes of one input to look at: fewer where much of it could not be taken, and is looked at again."""

    def __init__(self, inputs: int = 1) -> None:
        self._farthest = max(LEAST, min(AHEAD, TOGETHER // inputs))
        self.most = max(LEAST, AHEAD // inputs)

    def after(self, taken: int, seen: int) -> None:
        """Of so many entries that were seen, so many were taken."""
        if taken == seen:
            self.most = min(self._farthest, 2 * self.most)
        elif 2 * taken < seen:
            self.most = max(LEAST, self.most // 4)


class Pause:
    """When to try columns again behind an element that was not for them: less often where that is hardly worth it."""

    _WORTH_IT, _LONGEST = 64, 1_023

    def __init__(self) -> None:
        self._pause = self._rest = 0

    def is_over(self) -> bool:
        """Whether to try; to be asked once per element."""
        self._rest -= 1
        return self._rest < 0

    def after(self, taken: int) -> None:
        """So many were taken by trying."""
        self._pause = 0 if taken >= self._WORTH_IT else min(2 * self._pause + 1, self._LONGEST)
        self._rest = self._pause
