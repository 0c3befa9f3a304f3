"""How many answers subscriptions get: totals by kind, and rates of any groups of them.

Counts are arrays beside the numbers of the plan's subscriptions, so an epoch with answers to ten thousand of them is
added within a millisecond.
Every two seconds the totals are noted; a rate is what has come since the note of ten seconds ago.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.spark.answers.segments import AnswerCounts
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds import KINDS

Numbers: TypeAlias = NDArray[np.int64]

_NOTE_SECONDS, _RATE_SECONDS = 2.0, 10.0
_NOTES = 7


def label_of(subscription: Registration) -> str:
    """The kind of a subscription, for people."""
    return "display" if subscription.shows else KINDS[subscription.kind].label


def numbers_of(plan: Plan) -> Numbers:
    """The numbers of the plan's subscriptions, which are in ascending order."""
    return np.fromiter((each.id for each in plan.subscriptions), np.int64, len(plan.subscriptions))


class AnswerTotals:
    """The answers to the subscriptions of a plan that changes; its owner lets one thread at a time call it."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._numbers = np.empty(0, np.int64)
        self._codes = np.empty(0, np.int64)
        """By subscription: its kind, as a place in `_kinds`."""
        self._kinds: list[str] = []
        self._totals = np.empty(0, np.int64)
        self._notes: deque[tuple[float, Numbers]] = deque(maxlen=_NOTES)
        """Totals at earlier moments."""
        self.by_kind: Counter[str] = Counter()

    def add(self, plan: Plan, answers: AnswerCounts | None, at: float) -> None:
        """Add the answers of an epoch that was committed at a moment."""
        if not self._notes:
            self._notes.append((at - _NOTE_SECONDS, self._totals))
        if plan is not self._plan:
            self._follow(plan)
        if answers is not None and len(answers.numbers) and len(self._numbers):
            places = np.searchsorted(self._numbers, answers.numbers).clip(max=len(self._numbers) - 1)
            known = self._numbers[places] == answers.numbers
            self._totals[places[known]] += answers.counts[known]
            sums = np.bincount(self._codes[places[known]], answers.counts[known], len(self._kinds))
            self.by_kind.update({self._kinds[code]: int(sums[code]) for code in np.flatnonzero(sums).tolist()})
        if at - self._notes[-1][0] >= _NOTE_SECONDS:
            self._notes.append((at, self._totals.copy()))

    def _follow(self, plan: Plan) -> None:
        """Have the subscriptions of another plan; totals of those that stay are kept."""
        before, self._numbers = self._numbers, numbers_of(plan)
        self._plan = plan
        codes: dict[tuple[str, bool], int] = {}
        given = (codes.setdefault((each.kind, each.shows), len(codes)) for each in plan.subscriptions)
        self._codes = np.fromiter(given, np.int64, len(plan.subscriptions))
        self._kinds = ["display" if shows else KINDS[kind].label for kind, shows in codes]
        self._totals = _moved(self._totals, before, self._numbers)
        self._notes = deque(((at, _moved(each, before, self._numbers)) for at, each in self._notes), maxlen=_NOTES)

    def per_second(self, numbers: Numbers, codes: Numbers, count: int, now: float) -> NDArray[np.float64]:
        """The rates of so many groups, given by a code for each of some subscriptions."""
        if not self._notes or not len(self._numbers) or not len(numbers):
            return np.zeros(count)
        at, then = next((each for each in reversed(self._notes) if now - each[0] >= _RATE_SECONDS), self._notes[0])
        come = _moved(self._totals - then, self._numbers, numbers)
        return np.bincount(codes, come, count) / max(1.0, now - at)


def _moved(values: Numbers, before: Numbers, after: Numbers) -> Numbers:
    """Values of some numbers as those of others, 0 for new ones; both are ascending."""
    if before is after:
        return values
    found = np.zeros(len(after), np.int64)
    if len(before) and len(after):
        places = np.searchsorted(before, after).clip(max=len(before) - 1)
        known = before[places] == after
        found[known] = values[places[known]]
    return found
