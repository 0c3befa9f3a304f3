"""What is kept up to date over the entries of a document: aggregates, whether there are any, and quantifiers."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.folds import CountFold, EntryOrder, EntryShare, FailingEntries, Fold, Share
from anabranch.errors import DynamicError
from anabranch.values.sequences import Values

FOLDS = frozenset((*AGGREGATES, "exists", "empty"))
"""The functions that are kept up to date from what each entry gives."""


def fold(function: str, entries: EntryOrder) -> Fold:
    """The function of this name as a state; `entries` is the order of the entries."""
    match function:
        case "exists":
            return CountFold(lambda count: count > 0)
        case "empty":
            return CountFold(lambda count: count == 0)
        case "some" | "every":
            return _Quantifier(entries, decides=function == "some")
        case _:
            return AGGREGATES[function].fold(entries)


class _Quantifier(Fold):
    """`some` and `every`, each entry judged by itself: what decides, and where nothing does, an error (LAWS 2.4)."""

    def __init__(self, entries: EntryOrder, *, decides: bool) -> None:
        """`decides` is the truth of one entry that is that of all together."""
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
        """What decides, or else the first error."""
        deciding = [each for each in shares if not isinstance(each[1], list)]
        return (deciding or shares)[:1]
