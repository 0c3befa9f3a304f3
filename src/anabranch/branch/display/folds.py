"""The functions that are kept up to date over entries: aggregates, `exists`, `empty`, quantifiers, sets of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.folds import CountFold, EntryOrder, EntryShare, FailingEntries, Fold, Share
from anabranch.errors import DynamicError
from anabranch.values.sequences import Values, atomize
from anabranch.values.written import read_atom, read_value, write_atom, write_value

FOLDS = frozenset((*AGGREGATES, "exists", "empty"))
"""The functions that are kept up to date from the values of each entry."""
ATOMS = "atoms"
"""Not a function of the language: the different values, atomized."""
ALL = "all"
"""Not a function either: all values as they are; a node among them is the root of its tree."""


def fold(function: str, entries: EntryOrder) -> Fold:
    """The function of this name as a state; `entries` is the order of the entries."""
    match function:
        case "exists":
            return CountFold(lambda count: count > 0)
        case "empty":
            return CountFold(lambda count: count == 0)
        case "some" | "every":
            return _Quantifier(entries, decides=function == "some")
        case "atoms":
            return _Atoms()
        case "all":
            return _All()
        case _:
            return AGGREGATES[function].fold(entries)


class _Atoms(Fold):
    """The different values, in the order of their first entries; the share is all values as plain data."""

    def __init__(self) -> None:
        self._atoms: Counter[tuple[str, ...]] = Counter()

    def share(self, values: Values) -> Share:
        return [write_atom(each) for each in atomize(values)]

    def put(self, entry: int, share: Share) -> None:
        self._atoms.update(map(tuple, share))

    def remove(self, entry: int, share: Share) -> None:
        self._atoms.subtract(map(tuple, share))

    def value(self) -> Values:
        return [read_atom(each) for each, times in self._atoms.items() if times]

    def reduced(self, shares: Sequence[EntryShare]) -> Sequence[EntryShare]:
        """Each value once."""
        return [(0, [list(each) for each in dict.fromkeys(tuple(each) for _, share in shares for each in share)])]


class _All(Fold):
    """All values, in the order in which they are put; the share is plain data."""

    is_small = False

    def __init__(self) -> None:
        self._values: Values = []

    def share(self, values: Values) -> Share:
        return [write_value(each) for each in values]

    def put(self, entry: int, share: Share) -> None:
        self._values += map(read_value, share)

    def remove(self, entry: int, share: Share) -> None:
        raise AssertionError("values are put together anew")

    def value(self) -> Values:
        return self._values


class _Quantifier(Fold):
    """`some` and `every`: the entries that decide and, where none does, the first error (LAWS 2.4)."""

    def __init__(self, entries: EntryOrder, *, decides: bool) -> None:
        """`decides` is the truth value of an entry that decides the whole: true for `some`, false for `every`."""
        self._decides = decides
        self._deciding = 0
        self._failing = FailingEntries(entries)

    def share(self, values: Values) -> Share:
        return 1 if values == [self._decides] else None

    def failed(self, error: DynamicError) -> Share:
        return [error.message, error.code]

    def put(self, entry: int, share: Share) -> None:
        match share:
            case [message, code]:
                self._failing.put(entry, message, code)
            case _:
                self._deciding += 1

    def remove(self, entry: int, share: Share) -> None:
        if not self._failing.remove(entry):
            self._deciding -= 1

    def value(self) -> Values:
        if not self._deciding:
            self._failing.tell()
        return [self._decides if self._deciding else not self._decides]

    def reduced(self, shares: Sequence[EntryShare]) -> Sequence[EntryShare]:
        """An entry that decides, or else the first error."""
        deciding = [each for each in shares if not isinstance(each[1], list)]
        return (deciding or shares)[:1]
