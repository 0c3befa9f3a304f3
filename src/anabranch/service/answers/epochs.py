"""Which epochs of the log have something of a subscription, so that the others cost nothing.

The index of an epoch is read once and only the numbers of those with answers in it are kept, within a bound; for who
is asked for, the epochs with answers are listed, as far as they were looked through, from both ends or anywhere.
Both grow when they are asked for, so an epoch costs nothing while nobody reads, and a reader pays for the epochs that
are new to it.

Dead letters and late items have numbers, too (`spark/answers/segments.py`).
Retention drops the oldest epochs; what is asked for in front of them begins with the first that is kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import StateError
from anabranch.service.answers.shared_cache import SharedCache
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import DEAD_LETTERS, LATE_ITEMS, Chunk
from anabranch.spark.checkpoint.manifest import Manifest

Numbers: TypeAlias = NDArray[np.signedinteger[Any]]

_NUMBERS_BYTES = 32 << 20
_LISTED = 2_000_000
"""Epochs in all lists together."""
_MOST_LISTS = 32
"""Of one subscription; who reads here and there begins anew."""
_OVERHEAD = 200
"""Bytes of a value in a cache besides its own."""


@dataclass(slots=True, eq=False)
class EpochList:
    """The epochs with answers of one subscription, from `low` to before `high`."""

    low: int
    high: int
    found: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.found) + 1


class EpochIndex:
    """The epochs of a log; any thread may ask."""

    def __init__(self, log: AnswerLog, last: Callable[[], int]) -> None:
        """`last` is the newest epoch that readers may see."""
        self._log = log
        self._last = last
        self._numbers: SharedCache[int, Numbers] = SharedCache(_NUMBERS_BYTES, lambda each: each.nbytes + _OVERHEAD)
        self._lock = Lock()
        self._lists: OrderedDict[int, list[EpochList]] = OrderedDict()
        """By number: lists that neither overlap nor touch."""
        self._listed = 0
        self.known_first = 0
        """The oldest epoch that was kept when somebody last looked; to ask for it costs nothing."""
        self._checked = -1
        """The newest epoch when `first` was looked up."""

    @property
    def last(self) -> int:
        """The newest epoch, -1 if there is none."""
        return self._last()

    @property
    def first(self) -> int:
        """The oldest epoch that is kept."""
        last = self.last
        if last > self._checked:
            self._look(last)
        return self.known_first

    def _look(self, last: int) -> None:
        """Look up the oldest epoch; epochs are dropped from the oldest on."""
        try:
            self._log.manifests.load(self.known_first)
        except StateError:
            kept = self._log.manifests.epochs()
            self.known_first = kept[0] if kept else 0
        self._checked = last

    def manifest(self, epoch: int) -> Manifest | None:
        """The manifest of an epoch; None where retention has dropped it."""
        try:
            return self._log.manifests.load(epoch)
        except StateError:
            self._look(self.last)
            if epoch < self.known_first:
                return None
            raise

    def chunks(self, epoch: int, number: int) -> list[Chunk]:
        """The chunks of a subscription in an epoch; none where it was dropped."""
        manifest = self.manifest(epoch)
        try:
            return [] if manifest is None else self._log.chunks(manifest, number)
        except StateError:
            if self.manifest(epoch) is None:
                return []
            raise

    def numbers(self, epoch: int) -> Numbers:
        """Who has answers in an epoch, in ascending order."""
        return self._numbers.get(epoch, lambda: self._read(epoch))

    def _read(self, epoch: int) -> Numbers:
        manifest = self.manifest(epoch)
        if manifest is None or not manifest.segments:
            return np.empty(0, np.int32)
        try:
            found = self._log.index(manifest).entries().numbers
        except StateError:
            if self.manifest(epoch) is None:
                return np.empty(0, np.int32)
            raise
        aside = [
            number
            for number, count in ((LATE_ITEMS, "late"), (DEAD_LETTERS, "letters"))
            if any(getattr(each, count) for each in manifest.segments)
        ]
        whole = np.concatenate([np.array(aside, np.int64), found])
        return whole.astype(np.int32) if not len(whole) or whole[-1] < 1 << 31 else whole

    def has(self, epoch: int, number: int) -> bool:
        """Whether an epoch has answers of a subscription."""
        numbers = self.numbers(epoch)
        at = int(np.searchsorted(numbers, number))
        return at < len(numbers) and int(numbers[at]) == number

    # --- epochs of one subscription -------------------------------------------------------------------------

    def behind(self, number: int, epoch: int) -> int | None:
        """The first epoch from this one on that has answers of a subscription."""
        epoch, last = max(epoch, self.first), self.last
        while epoch <= last:
            with self._lock:
                known = self._around(number, epoch)
                at = bisect_left(known.found, epoch)
                if at < len(known.found):
                    return known.found[at]
                following = known.high
            if following > last:
                return None
            self._extend(number, following, upwards=True)
        return None

    def before(self, number: int, epoch: int) -> int | None:
        """The last epoch in front of this one that has answers of a subscription."""
        epoch, first = min(epoch, self.last + 1), self.first
        while epoch > first:
            with self._lock:
                known = self._around(number, epoch)
                at = bisect_left(known.found, epoch)
                if at > 0:
                    return known.found[at - 1] if known.found[at - 1] >= first else None
                following = known.low - 1
            if following < first:
                return None
            self._extend(number, following, upwards=False)
        return None

    def _around(self, number: int, epoch: int) -> EpochList:
        """The list that an epoch lies in or beside, which may be a new one; the caller holds the lock."""
        lists = self._lists.get(number)
        if lists is None or len(lists) > _MOST_LISTS:
            self._listed -= sum(map(len, lists or ()))
            lists = self._lists[number] = []
        self._lists.move_to_end(number)
        found = next((each for each in lists if each.low <= epoch <= each.high), None)
        if found is None:
            found = EpochList(epoch, epoch)
            lists.append(found)
            self._listed += len(found)
        while self._listed > _LISTED and len(self._lists) > 1:
            _, dropped = self._lists.popitem(last=False)
            self._listed -= sum(map(len, dropped))
        return found

    def _extend(self, number: int, epoch: int, *, upwards: bool) -> None:
        """Look through one epoch more, which lies beside those that a list knows."""
        has = self.has(epoch, number)
        with self._lock:
            lists = self._lists.get(number, [])
            known = next((each for each in lists if epoch == (each.high if upwards else each.low - 1)), None)
            if known is None:
                return  # another thread was here
            if upwards:
                known.high += 1
            else:
                known.low -= 1
            if has:
                known.found.insert(len(known.found) if upwards else 0, epoch)
                self._listed += 1
            self._merge(lists, known)

    def _merge(self, lists: list[EpochList], known: EpochList) -> None:
        """Make one list of two that touch; the caller holds the lock."""
        other = next(
            (each for each in lists if each is not known and (each.low == known.high or each.high == known.low)), None
        )
        if other is not None:
            lower, upper = sorted((known, other), key=lambda each: each.low)
            lists.remove(upper)
            lower.found += upper.found
            lower.high = upper.high
            self._listed -= 1
