"""Warns of silence: a stream, or a subscription, whose items were all set aside so far in this run.

Each is reported once, and watched until it answers or was reported.
A subscription that has not answered when the first items of its streams have come is checked again: a path whose root
or item name a stream does not have is reported with the right one (LAWS 1.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import QueryError
from anabranch.language import check, parse
from anabranch.language.checks.check import ItemNames
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.reading.names import first_names
from anabranch.visible import visible

_MOST_REPORTED = 20
"""The number of subscriptions that are reported at most; a site may have thousands that fail alike."""
_MOST_CHECKED = 100
"""The number of subscriptions that are checked again behind an epoch, at most."""
_MOST_PLACES = 10_000
"""The number of items set aside, but not all, from which on a subscription is no longer watched."""


@dataclass(slots=True)
class _Failing:
    """A subscription that has not answered in this run."""

    before: Counter[str]
    """How many items each stream had when the subscription was first watched."""
    places: set[Place] = field(default_factory=set)
    """The items that were set aside for it."""


class SilentSubscriptions:
    """Follows the epochs of one run; only the trunk's thread changes it."""

    def __init__(self, warn: Callable[[str], None], functions: Collection[str] = ()) -> None:
        self._warn = warn
        self._functions = functions
        self._items: Counter[str] = Counter()
        """By stream: the number of good items in this run."""
        self._plan: Plan | None = None
        """The plan of the latest epoch."""
        self._failing: dict[int, _Failing] = {}
        """The watched subscriptions of the plan."""
        self._settled: set[int] = set()
        """The subscriptions that are no longer watched."""
        self._reported: set[str] = set()
        """The streams that were reported."""
        self._warnings = 0
        self._names: dict[str, ItemNames] = {}
        """By stream that has had items: the names of its root and items, where they are known."""
        self._checked: set[int] = set()
        """The subscriptions whose paths were checked again."""

    def take(
        self,
        plan: Plan,
        items: Mapping[str, int],
        answered: NDArray[np.int64],
        letters: Callable[[], Iterable[DeadLetter]],
    ) -> None:
        """Take an epoch: the items of each stream, the subscriptions that answered, and the dead letters."""
        if plan is not self._plan:
            self._plan = plan
            known, before = self._failing, self._items.copy()
            wanted = (each.id for each in plan.subscriptions if each.id not in self._settled)
            self._failing = {number: known.get(number) or _Failing(before) for number in wanted}
        if self._failing:
            for number in self._failing.keys() & set(answered.tolist()):
                self._settle(number)
        self._items.update(items)
        self._check_names(plan)
        if not self._failing and all(self._items[each.name] or each.name in self._reported for each in plan.streams):
            return
        for letter in letters():
            if letter.subscription is None:
                self._warn_of_stream(letter)
            elif letter.subscription in plan.by_name and plan.by_name[letter.subscription].id in self._failing:
                self._warn_of_subscription(plan.by_name[letter.subscription].id, letter)

    def _check_names(self, plan: Plan) -> None:
        """Warn of paths that lead nowhere, for some subscriptions that have not answered; the others come later."""
        waiting = [each for number in self._failing if number not in self._checked and (each := plan.by_id.get(number))]
        for each in [each for each in waiting if all(self._items[name] for name in each.streams)][:_MOST_CHECKED]:
            self._checked.add(each.id)
            for name in each.streams:
                if name not in self._names and (found := first_names(plan.stream(name).source)) is not None:
                    self._names[name] = ItemNames(found.root, found.items, agreed=False)
            for message in self._lost_paths(each):
                if self._warnings < _MOST_REPORTED:
                    self._warnings += 1
                    self._warn(f"the subscription '{each.name}': {message}")

    def _lost_paths(self, subscription: Registration) -> list[str]:
        """Warnings about the paths of a query whose streams have items; none for a plan of operators."""
        if subscription.text.startswith("{") or not self._names.keys() & set(subscription.streams):
            return []
        try:
            query = parse(subscription.text)
            found = check(query, subscription.text, functions=self._functions, names=self._names, finite=True)
        except QueryError:
            return []  # it was checked with more knowledge of its inputs, and may be wrong without
        return [each.message for each in found.warnings]

    def _settle(self, number: int) -> None:
        """Stop watching a subscription."""
        self._settled.add(number)
        del self._failing[number]

    def _warn_of_stream(self, letter: DeadLetter) -> None:
        """Warn of a stream without a good item so far, once."""
        name = letter.place.stream
        if name not in self._reported and not self._items[name]:
            self._reported.add(name)
            self._warn(f"all items of stream '{name}' so far were set aside, as here: {_reason(letter)}")

    def _warn_of_subscription(self, number: int, letter: DeadLetter) -> None:
        """Warn of a subscription for which all items so far were set aside; this letter is its latest."""
        failing = self._failing[number]
        failing.places.update((letter.place, *(place for place, _ in letter.others)))
        streams = {each.stream for each in failing.places}
        total = sum(self._items[each] - failing.before[each] for each in streams)
        if len(failing.places) >= total > 0 and self._warnings < _MOST_REPORTED:
            self._warnings += 1
            self._warn(
                f"the subscription '{letter.subscription}' answers nothing so far: "
                f"all {total:,} items were set aside, as here: {_reason(letter)}"
            )
        elif len(failing.places) < _MOST_PLACES:
            return
        self._settle(number)


def _reason(letter: DeadLetter) -> str:
    code = f" [{letter.code}]" if letter.code else ""
    return f"{visible(letter.reason)}{code} ({letter.place})"
