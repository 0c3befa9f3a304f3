"""Aggregates over all entries, kept up to date from what each of them gives.

What an entry gives to an aggregate is its *share*, plain data: for `count` a number, for `sum` and `avg` a number of
values and their exact sum, for `min` and `max` the values themselves.
Sums are a group, so a share that changes is taken out and put in again (history paper, section 6: `adjust`); least and
greatest values are those of a multiset (LAWS 5.6).
The value is what the law's own functions give for all values together, errors included: which one of several, the
order of the entries decides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from anabranch.algebra.history.ordered import Ordered
from anabranch.branch.display.sorted import ResultId, SortedResults
from anabranch.branch.document.state import read_fraction, write_fraction
from anabranch.errors import DynamicError
from anabranch.law.aggregates import exact_sum, extreme, rounded
from anabranch.values.atomic import Atomic, Untyped, order_rank
from anabranch.values.sequences import Values, atomize

Share: TypeAlias = Any
"""Plain data: numbers, texts and lists."""


class Fold(ABC):
    """An aggregate over entries; `entries` is their order."""

    @abstractmethod
    def share(self, values: Values) -> Share:
        """What an entry with these values gives; None for nothing."""

    def failed(self, error: DynamicError) -> Share:
        """What an entry gives that fails; for those that can bear it."""
        raise error

    @abstractmethod
    def put(self, entry: int, share: Share) -> None:
        """An entry that gives something, and has given nothing so far."""

    @abstractmethod
    def remove(self, entry: int, share: Share) -> None:
        """An entry that has given something gives nothing any more."""

    @abstractmethod
    def value(self) -> Values:
        """The aggregate of all values; raises what the law's function would."""


def fold(function: str, entries: Ordered[int, int]) -> Fold:
    """The aggregate of this name."""
    match function:
        case "count" | "exists" | "empty":
            return _Count(function)
        case "sum" | "avg":
            return _Sum(function, entries)
        case "min" | "max":
            return _Extreme(function, entries)
        case "some" | "every":
            return _Quantifier(function, entries)
        case _:
            raise AssertionError(f"'{function}' is no aggregate")


class _Count(Fold):
    def __init__(self, function: str) -> None:
        self._function = function
        self._count = 0

    def share(self, values: Values) -> Share:
        return len(values)

    def put(self, entry: int, share: Share) -> None:
        self._count += share

    def remove(self, entry: int, share: Share) -> None:
        self._count -= share

    def value(self) -> Values:
        match self._function:
            case "count":
                return [self._count]
            case "exists":
                return [self._count > 0]
            case _:
                return [self._count == 0]


class _Sum(Fold):
    """The share is the number of values, and their sum: a fraction, INF, -INF or NaN, or the error instead of it."""

    def __init__(self, function: str, entries: Ordered[int, int]) -> None:
        self._function = function
        self._entries = entries
        self._count = 0
        self._total = Fraction(0)
        self._special: Counter[str] = Counter()
        self._failing: dict[int, tuple[str, str | None]] = {}

    def share(self, values: Values) -> Share:
        atoms = atomize(values)
        try:
            total = exact_sum(atoms)
        except DynamicError as error:
            return [len(atoms), error.message, error.code]
        return [len(atoms), write_fraction(total) if isinstance(total, Fraction) else str(total)]

    def put(self, entry: int, share: Share) -> None:
        self._add(entry, share, 1)

    def remove(self, entry: int, share: Share) -> None:
        self._failing.pop(entry, None)
        self._add(entry, share, -1)

    def _add(self, entry: int, share: Share, sign: int) -> None:
        match share:
            case [count, message, code]:
                if sign > 0:
                    self._failing[entry] = message, code
            case [count, ("inf" | "-inf" | "nan") as special]:
                self._special[special] += sign
            case [count, total]:
                self._total += sign * read_fraction(total)
        self._count += sign * count

    def value(self) -> Values:
        if self._failing:
            message, code = self._failing[_first(self._failing, self._entries)]
            raise DynamicError(message, code=code)
        if not self._count:
            return [0] if self._function == "sum" else []
        exact: Fraction | float = self._total
        if special := +self._special:
            exact = sum(float(each) for each in special)
        return [rounded(exact if self._function == "sum" else exact / self._count)]


def _first(among: dict[int, Any], entries: Ordered[int, int]) -> int:
    found: int | None = None
    for each in among:
        if found is None or entries.precedes(each, found):
            found = each
    assert found is not None
    return found


class _Extreme(Fold):
    """The share is all values, each by its kind and text."""

    def __init__(self, function: str, entries: Ordered[int, int]) -> None:
        self._greatest = function == "max"
        self._entries = entries
        self._values = SortedResults(entries, (False,))
        self._atoms: dict[ResultId, Atomic] = {}
        self._kinds: Counter[str] = Counter()
        self._failing: dict[int, Atomic] = {}
        """By entry, the first value that has no place among numbers."""

    def share(self, values: Values) -> Share:
        return [_encode(each) for each in atomize(values)]

    def put(self, entry: int, share: Share) -> None:
        for number, each in enumerate(share):
            atom = _decode(each)
            self._atoms[entry, number] = atom
            self._values.put((entry, number), (order_rank(atom),))
            kind = _kind(atom)
            self._kinds[kind] += 1
            if kind == "text":
                self._failing.setdefault(entry, atom)

    def remove(self, entry: int, share: Share) -> None:
        for number in range(len(share)):
            self._values.remove((entry, number))
            self._kinds[_kind(self._atoms.pop((entry, number)))] -= 1
        self._failing.pop(entry, None)

    def value(self) -> Values:
        """By the law's function, over values that decide: any NaN, any of the wrong kind, or the one at the end."""
        end = self._values.last if self._greatest else self._values.first
        if end is None:
            return []
        kinds = +self._kinds
        if "text" in kinds and not {"boolean", "string"} & set(kinds):
            return _given(extreme([self._failing[_first(self._failing, self._entries)]], self._greatest))
        if len(kinds) > 1 and {"boolean", "string"} & set(kinds):
            return _given(extreme(["", True], self._greatest))  # values of several kinds
        if "nan" in kinds:
            return [math.nan]
        return _given(extreme([self._atoms[end]], self._greatest))


class _Quantifier(Fold):
    """`some` and `every`, each entry judged by itself: what decides, and where nothing does, an error (LAWS 2.4)."""

    def __init__(self, function: str, entries: Ordered[int, int]) -> None:
        self._some = function == "some"
        self._entries = entries
        self._deciding = 0
        self._failing: dict[int, tuple[str, str | None]] = {}

    def share(self, values: Values) -> Share:
        return 1 if values == [self._some] else None

    def failed(self, error: DynamicError) -> Share:
        return [error.message, error.code]

    def put(self, entry: int, share: Share) -> None:
        match share:
            case [message, code]:
                self._failing[entry] = message, code
            case _:
                self._deciding += 1

    def remove(self, entry: int, share: Share) -> None:
        if self._failing.pop(entry, None) is None:
            self._deciding -= 1

    def value(self) -> Values:
        if self._failing and not self._deciding:
            message, code = self._failing[_first(self._failing, self._entries)]
            raise DynamicError(message, code=code)
        return [self._some if self._deciding else not self._some]


def _given(found: Atomic | None) -> Values:
    return [] if found is None else [found]


def _kind(atom: Atomic) -> str:
    """How a value counts for `min` and `max`; `text` is untyped text that is no number."""
    if isinstance(atom, bool):
        return "boolean"
    if isinstance(atom, str) and not isinstance(atom, Untyped):
        return "string"
    return {1: "nan", 2: "number"}.get(order_rank(atom)[0], "text")


def _encode(atom: Atomic) -> list[str]:
    match atom:
        case bool():
            return ["boolean", str(int(atom))]
        case Untyped():
            return ["untyped", str(atom)]
        case str():
            return ["string", atom]
        case int():
            return ["integer", f"{atom:x}"]
        case Decimal():
            return ["decimal", str(atom)]
        case float():
            return ["double", repr(float(atom))]


def _decode(data: Sequence[str]) -> Atomic:
    kind, text = data
    match kind:
        case "boolean":
            return text == "1"
        case "untyped":
            return Untyped(text)
        case "string":
            return text
        case "integer":
            return int(text, 16)
        case "decimal":
            return Decimal(text)
        case _:
            return float(text)
