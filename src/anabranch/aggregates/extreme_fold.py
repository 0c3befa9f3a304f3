"""`min` and `max` of edited values: a multiset, because the extreme value may be removed (LAWS 5.6)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from anabranch.aggregates.exact import extreme_number, of_several_kinds
from anabranch.aggregates.folds import EntryOrder, EntryShare, Fold, Rising, Share, first_entry
from anabranch.values.atomic import (
    MOMENT,
    NOT_A_NUMBER,
    NUMBER,
    Atomic,
    OrderRank,
    Untyped,
    order_rank,
    to_double,
)
from anabranch.values.numbers import no_number
from anabranch.values.sequences import Values, operands
from anabranch.values.times import TIMES, DateTime, TimeValue
from anabranch.values.written import read_atom, write_atom

_ZERO = order_rank(0)
_MOMENT = "moment"
"""Text that is a dateTime."""
_TIME_KINDS = frozenset((_MOMENT, *(each.name for each in TIMES)))


class ExtremeFold(Fold):
    """The least or greatest value; the share is all values, each by its kind and text."""

    def __init__(self, entries: EntryOrder, greatest: bool) -> None:
        self._entries = entries
        self._greatest = greatest
        self._ranks: Rising[OrderRank] = Rising()
        self._kinds: Counter[str] = Counter()
        self._times: dict[OrderRank, dict[int, TimeValue]] = {}
        """By rank and entry: the first time or duration; equal ones differ in spelling, and the earlier counts."""
        self._failing: dict[int, Atomic] = {}
        """By entry: the first value that is not comparable with numbers."""
        self._zeros: dict[int, float] = {}
        """By entry: the first of its zeros, for -0 and 0 are equal, and the earlier one counts."""
        self._negative = 0  # the number of these that are -0

    def share(self, values: Values) -> Share:
        return [write_atom(each) for each in operands(values)]

    def put(self, entry: int, share: Share) -> None:
        for atom in map(read_atom, share):
            rank, kind = order_rank(atom), _kind(atom)
            self._ranks.put(rank)
            self._kinds[kind] += 1
            if kind in ("text", _MOMENT):
                self._failing.setdefault(entry, atom)
            if kind in _TIME_KINDS:
                time = DateTime.read(atom) if isinstance(atom, Untyped) else atom
                assert isinstance(time, TIMES)
                self._times.setdefault(rank, {}).setdefault(entry, time)
            elif rank == _ZERO and kind == "number" and entry not in self._zeros:
                self._zeros[entry] = to_double(atom)
                self._negative += str(self._zeros[entry]) == "-0.0"

    def remove(self, entry: int, share: Share) -> None:
        for atom in map(read_atom, share):
            rank = order_rank(atom)
            self._ranks.remove(rank)
            self._kinds[_kind(atom)] -= 1
            if entry in self._times.get(rank, ()):
                del self._times[rank][entry]
                if not self._times[rank]:
                    del self._times[rank]
        self._failing.pop(entry, None)
        self._negative -= str(self._zeros.pop(entry, None)) == "-0.0"

    def value(self) -> Values:
        """By the law's function, over the decisive values: any NaN, any of the wrong kind, or the extreme."""
        ranks, kinds = self._ranks.all(), set(+self._kinds)
        if not ranks:
            return []
        last = ranks[-1 if self._greatest else 0]
        if kinds <= {_MOMENT, DateTime.name} or (len(kinds) == 1 and kinds <= _TIME_KINDS):
            return [self._times[last][first_entry(self._times[last], self._entries)]]
        _, end = last
        if kinds == {"boolean"}:
            return [bool(end)]
        if kinds == {"string"}:
            assert isinstance(end, str)
            return [end]
        if kinds & (_TIME_KINDS - {_MOMENT} | {"boolean", "string"}):
            raise of_several_kinds()
        if self._failing:
            raise no_number(str(self._failing[first_entry(self._failing, self._entries)]))
        if "nan" in kinds:
            return [math.nan]
        assert not isinstance(end, str)
        if end == 0:
            end = Decimal(self._zeros[first_entry(self._zeros, self._entries)] if self._negative else 0)
        return [extreme_number(end)]

    def reduced(self, shares: Sequence[EntryShare]) -> Sequence[EntryShare]:
        """The first value of each kind, the first zero, and the extreme value."""
        first: dict[Any, tuple[int, Sequence[str]]] = {}
        end: tuple[OrderRank, int, Sequence[str]] | None = None
        for entry, share in shares:
            for written in share:
                atom = read_atom(written)
                rank = order_rank(atom)
                first.setdefault(_kind(atom), (entry, written))
                if rank == _ZERO:
                    first.setdefault(_ZERO, (entry, written))
                if end is None or (end[0] < rank if self._greatest else rank < end[0]):
                    end = rank, entry, written
        found = [*first.values(), *(() if end is None else (end[1:],))]
        return [(entry, [written]) for entry, written in sorted(found, key=lambda each: each[0])]


def _kind(atom: Atomic) -> str:
    """The kind of a value for `min` and `max`; `text` is untyped text that is neither a number nor a dateTime."""
    if isinstance(atom, TIMES):
        return atom.name
    if isinstance(atom, bool):
        return "boolean"
    if isinstance(atom, str) and not isinstance(atom, Untyped):
        return "string"
    return {NOT_A_NUMBER: "nan", NUMBER: "number", MOMENT: _MOMENT}.get(order_rank(atom)[0], "text")
