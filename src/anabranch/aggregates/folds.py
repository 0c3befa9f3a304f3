"""Aggregates as states: values are added and removed, and the aggregate is always that of the present values.

An entry of a document contributes its *share* to an aggregate, plain data that can be saved; when an entry changes,
its old share is removed and its new one added (history paper, section 6: `adjust`).
Sums are a group, so a removed share is subtracted; aggregates that depend on the order of values keep all of them
(LAWS 5.6).
The value is that of the function's law over all values, errors included: of several errors, the order of the entries
decides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from anabranch.aggregates.exact import (
    durations_in,
    exact_numbers,
    exact_sum,
    integers_in,
    of_several_kinds,
)
from anabranch.aggregates.written import number_text, read_number_text
from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic
from anabranch.values.numbers import read_fraction, write_fraction
from anabranch.values.sequences import Value, Values, operands
from anabranch.values.times import (
    DURATIONS,
    TIMES,
    DayTimeDuration,
    Duration,
    YearMonthDuration,
    within_limits,
)

Share: TypeAlias = Any
"""Plain data: numbers, texts, lists and dicts."""
EntryShare: TypeAlias = tuple[int, Share]
"""An entry and its share."""
T = TypeVar("T", bound=Any)


class EntryOrder(Protocol):
    """The order of the entries, maintained elsewhere."""

    def precedes(self, one: int, other: int) -> bool: ...


class Fold(ABC):
    """An aggregate over entries."""

    @abstractmethod
    def share(self, values: Values) -> Share:
        """The share of an entry with these values; None for an empty one."""

    def failed(self, error: DynamicError) -> Share:
        """The share of an entry that fails; for folds that accept errors."""
        raise error

    @abstractmethod
    def put(self, entry: int, share: Share) -> None:
        """Add the share of an entry that has none so far."""

    @abstractmethod
    def remove(self, entry: int, share: Share) -> None:
        """Remove the share of an entry."""

    @abstractmethod
    def value(self) -> Values:
        """The aggregate of all values; raises what the law's function would."""

    def reduced(self, shares: Sequence[EntryShare]) -> Sequence[EntryShare]:
        """A few shares with the same value together as all of these, which are in the order of their entries.

        Only for entries that are never removed.
        """
        return shares

    is_small: ClassVar[bool] = True
    """Whether shares can be `reduced` to a few, however many there are."""


class CountFold(Fold):
    """Aggregates of the number of values; the share is the number."""

    def __init__(self, finish: Callable[[int], Value]) -> None:
        self._finish = finish
        self._count = 0

    def share(self, values: Values) -> Share:
        return len(values)

    def put(self, entry: int, share: Share) -> None:
        self._count += share

    def remove(self, entry: int, share: Share) -> None:
        self._count -= share

    def value(self) -> Values:
        return [self._finish(self._count)]

    def reduced(self, shares: Sequence[EntryShare]) -> Sequence[EntryShare]:
        return [(0, sum(share for _, share in shares))]


class FailingEntries:
    """The errors of entries; the one reported is that of the first entry."""

    def __init__(self, entries: EntryOrder) -> None:
        self._entries = entries
        self._errors: dict[int, tuple[str, str | None]] = {}

    def put(self, entry: int, message: str, code: str | None) -> None:
        self._errors[entry] = message, code

    def remove(self, entry: int) -> bool:
        """Remove the error of an entry; whether there was one."""
        return self._errors.pop(entry, None) is not None

    def tell(self) -> None:
        """Raise the first error, if there is one."""
        if self._errors:
            message, code = self._errors[first_entry(self._errors, self._entries)]
            raise DynamicError(message, code=code)


_DURATION_TYPES = frozenset(each.name for each in DURATIONS)


class SumFold(Fold):
    """Aggregates of the number of values, their sum, and possibly the sum of their squares.

    The share is the number and a text: the sums as fractions, or INF, -INF or NaN; or the number and an error.
    Of durations it is their number, their type, and their sum as one of them; without a type where they are among
    values that cannot be summed with them; of integers their number, and their sum, where it is one.
    """

    def __init__(
        self,
        entries: EntryOrder,
        finish: Callable[[int, Fraction | float, Fraction], Atomic | None],
        *,
        squares: bool = False,
        durations: Callable[[Duration, int], Duration] | None = None,
        integers: bool = False,
    ) -> None:
        """`finish` computes the aggregate from a count, a sum and a sum of squares, `durations` from a sum and a count.

        With `integers`, the sum of integers only is an integer.
        """
        self._finish = finish
        self._finish_durations = durations
        self._durations: Counter[str] = Counter()
        self._duration_totals: dict[str, Fraction] = {}
        self._squared = squares
        self._keeps_integers = integers
        self._integers = 0
        """The number of values that are integers, where that matters."""
        self._count = 0
        self._total, self._squares = Fraction(0), Fraction(0)
        self._special: Counter[str] = Counter()
        self._failing = FailingEntries(entries)

    def share(self, values: Values) -> Share:
        atoms = operands(values)
        if self._finish_durations is not None and any(isinstance(each, TIMES) for each in atoms):
            return _share_of_durations(atoms)
        if self._keeps_integers and (integers := integers_in(atoms)):
            return {"integers": len(integers), "sum": write_fraction(Fraction(sum(integers)))}
        try:
            total = exact_sum(atoms)
        except DynamicError as error:
            return [len(atoms), error.message, error.code]
        if isinstance(total, float):
            return [len(atoms), str(total)]
        sums = [total, exact_sum(each**2 for each in exact_numbers(atoms))] if self._squared else [total]
        return [len(atoms), " ".join(write_fraction(Fraction(each)) for each in sums)]

    def put(self, entry: int, share: Share) -> None:
        if isinstance(share, list) and len(share) > 2:
            self._failing.put(entry, *share[1:])
        self._add(share, 1)

    def remove(self, entry: int, share: Share) -> None:
        self._failing.remove(entry)
        self._add(share, -1)

    def _add(self, share: Share, sign: int) -> None:
        match share:
            case {"count": count, "type": kind, "sum": total}:
                self._durations[kind] += sign * count
                self._duration_totals[kind] = self._duration_totals.get(kind, Fraction(0)) + sign * read_fraction(total)
                self._count += sign * count
                return
            case {"integers": count, "sum": total}:
                self._integers += sign * count
                self._total += sign * read_fraction(total)
                self._count += sign * count
                return
            case [_, ("inf" | "-inf" | "nan") as special]:
                self._special[special] += sign
            case [_, str(sums)]:
                total, *squares = map(read_fraction, sums.split())
                self._total += sign * total
                self._squares += sign * sum(squares)
        self._count += sign * share[0]

    def value(self) -> Values:
        if durations := +self._durations:
            return [self._of_durations(durations)]
        self._failing.tell()
        special = +self._special
        if self._integers and self._integers == self._count:
            return [int(self._total)]
        total = sum(map(float, special)) if special else self._total
        return _given(self._finish(self._count, total, self._squares))

    def _of_durations(self, counts: Counter[str]) -> Duration:
        """The aggregate where there are durations, which must all be of one type."""
        (kind, count), *others = counts.items()
        if others or kind not in _DURATION_TYPES or count < self._count:
            raise of_several_kinds()
        number = self._duration_totals[kind]
        total = DayTimeDuration(number) if kind == DayTimeDuration.name else YearMonthDuration(int(number))
        assert self._finish_durations is not None
        return self._finish_durations(within_limits(total), count)

    def reduced(self, shares: Sequence[EntryShare]) -> Sequence[EntryShare]:
        """One share each for numbers, integers, durations of a type, INF, -INF and NaN, and the first error."""
        counts: Counter[str] = Counter()
        sums: list[Fraction] = []
        integers: list[Share] = []
        durations: dict[str, list[Share]] = {}
        failing: list[EntryShare] = []
        for entry, share in shares:
            match share:
                case {"integers": _}:
                    integers.append(share)
                case {"type": kind}:
                    durations.setdefault(kind, []).append(share)
                case [count, ("inf" | "-inf" | "nan") as special]:
                    counts[special] += count
                case [count, str(text)]:
                    counts[""] += count
                    more = list(map(read_fraction, text.split()))
                    sums = [one + other for one, other in zip(sums, more, strict=True)] if sums else more
                case _:
                    failing.append((entry, share))
        written = " ".join(map(write_fraction, sums))
        plain: list[Share] = [[count, special or written] for special, count in counts.items()]
        if integers:
            plain.append({"integers": sum(each["integers"] for each in integers), "sum": _sum_of(integers)})
        for kind, several in durations.items():
            plain.append({"count": sum(each["count"] for each in several), "type": kind, "sum": _sum_of(several)})
        return [*((0, each) for each in plain), *failing[:1]]


def _sum_of(shares: Sequence[Share]) -> str:
    """The sum in some shares, in the form of a share."""
    return write_fraction(sum((read_fraction(each["sum"]) for each in shares), Fraction(0)))


def _share_of_durations(atoms: Sequence[Atomic]) -> Share:
    try:
        found = durations_in(atoms)
        assert found is not None, "there is a time among them"
    except DynamicError:
        return {"count": len(atoms), "type": "", "sum": "0/1"}
    total = sum((each.number for each in found), Fraction(0))
    return {"count": len(found), "type": found[0].name, "sum": write_fraction(total)}


class Rising(Generic[T]):
    """Values in ascending order, with multiplicity; many are added at first, and few at a time later."""

    def __init__(self) -> None:
        self._values: list[T] = []
        self._fresh: list[T] = []

    def put(self, value: T) -> None:
        self._fresh.append(value)

    def remove(self, value: T) -> None:
        values = self.all()
        del values[bisect_left(values, value)]

    def all(self) -> list[T]:
        """The values, read only."""
        if len(self._fresh) > len(self._values) // 16:
            self._values += self._fresh
            self._values.sort()
        else:
            for each in self._fresh:
                insort(self._values, each)
        self._fresh.clear()
        return self._values


class NumbersFold(Fold):
    """Aggregates of numbers in ascending order; the share is all of them, or an error."""

    is_small = False

    def __init__(self, entries: EntryOrder, finish: Callable[[Sequence[Fraction | float]], Atomic]) -> None:
        self._finish = finish
        self._numbers: Rising[Fraction | float] = Rising()
        self._nans = 0
        self._failing = FailingEntries(entries)

    def share(self, values: Values) -> Share:
        try:
            numbers = exact_numbers(operands(values))
        except DynamicError as error:
            return {"message": error.message, "code": error.code}
        return list(map(number_text, numbers))

    def put(self, entry: int, share: Share) -> None:
        if isinstance(share, dict):
            self._failing.put(entry, share["message"], share["code"])
        for each in self._read(share):
            self._numbers.put(each)

    def remove(self, entry: int, share: Share) -> None:
        self._failing.remove(entry)
        for each in self._read(share, -1):
            self._numbers.remove(each)

    def _read(self, share: Share, sign: int = 1) -> list[Fraction | float]:
        """The ordered numbers of a share; NaN is only counted."""
        texts = [] if isinstance(share, dict) else share
        self._nans += sign * texts.count("nan")
        return [read_number_text(each) for each in texts if each != "nan"]

    def value(self) -> Values:
        self._failing.tell()
        if self._nans:
            return [math.nan]
        numbers = self._numbers.all()
        return [self._finish(numbers)] if numbers else []


def _given(found: Atomic | None) -> Values:
    return [] if found is None else [found]


def first_entry(among: Iterable[int], entries: EntryOrder) -> int:
    """The first of some entries."""
    found: int | None = None
    for each in among:
        if found is None or entries.precedes(each, found):
            found = each
    assert found is not None
    return found
