"""Warns of silence: a stream, or a subscription, whose items were all set aside so far in this run.

Each is reported once, and watched until it answers or was reported.
A subscription that has not answered when the first items of its streams have come is checked again: a path whose root
or item name a stream does not have is reported with the right one (LAWS 1.5).

There may be a million subscriptions of which few answer in an epoch, so an epoch costs what has answered in it and what
is checked behind it, and those that differ in their constants only are checked once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import QueryError
from anabranch.language import check, parse
from anabranch.language.checks.check import ItemNames
from anabranch.runtime.shapes import SplitText
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


class SilentSubscriptions:
    """Follows the epochs of one run; only the trunk's thread changes it."""

    def __init__(self, warn: Callable[[str], None], functions: Collection[str] = ()) -> None:
        self._warn = warn
        self._functions = functions
        self._items: Counter[str] = Counter()
        """By stream: the number of good items in this run."""
        self._plan: Plan | None = None
        """The plan of the latest epoch."""
        self._failing: dict[int, Counter[str]] = {}
        """The watched subscriptions of the plan: how many items each stream had when it was first watched."""
        self._places: dict[int, set[Place]] = {}
        """The items that were set aside for one of them, if any."""
        self._settled: set[int] = set()
        """The subscriptions that are no longer watched."""
        self._reported: set[str] = set()
        """The streams that were reported."""
        self._warnings = 0
        self._names: dict[str, ItemNames] = {}
        """By stream that has had items: the names of its root and items, where they are known."""
        self._checked: set[int] = set()
        """The subscriptions whose paths were checked again."""
        self._unchecked: dict[tuple[str, ...], deque[int]] = {}
        """By their streams: the others; some of them have answered since."""
        self._lost: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
        """The warnings about paths, by the pieces of a text around its literals, and its streams."""

    def take(
        self,
        plan: Plan,
        items: Mapping[str, int],
        answered: NDArray[np.int64],
        letters: Callable[[], Iterable[DeadLetter]],
    ) -> None:
        """Take an epoch: the items of each stream, the subscriptions that answered, and the dead letters."""
        if plan is not self._plan:
            self._watch(plan)
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

    def _watch(self, plan: Plan) -> None:
        """Watch the subscriptions of a new plan, as far as they are not settled."""
        self._plan = plan
        known, before = self._failing, self._items.copy()
        self._failing, self._unchecked = {}, {}
        for each in plan.subscriptions:
            if each.id not in self._settled:
                self._failing[each.id] = known.get(each.id, before)
                if each.id not in self._checked:
                    self._unchecked.setdefault(each.streams, deque()).append(each.id)
        self._places = {number: places for number, places in self._places.items() if number in self._failing}

    def _next_unchecked(self, plan: Plan) -> Iterator[Registration]:
        """Subscriptions that have not answered the items of their streams, and were not checked again."""
        for streams, numbers in self._unchecked.items():
            while numbers and all(self._items[name] for name in streams):
                if (number := numbers.popleft()) in self._failing:
                    yield plan.by_id[number]

    def _check_names(self, plan: Plan) -> None:
        """Warn of paths that lead nowhere, for some subscriptions that have not answered; the others come later."""
        for each in islice(self._next_unchecked(plan), _MOST_CHECKED):
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
        key = SplitText.of(subscription.text).key, subscription.streams
        if key not in self._lost:
            found = self._paths_without_items(subscription)
            if not set(subscription.streams) <= self._names.keys():
                return found  # the names of the other streams may be known later
            self._lost[key] = found
        return self._lost[key]

    def _paths_without_items(self, subscription: Registration) -> list[str]:
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
        self._places.pop(number, None)

    def _warn_of_stream(self, letter: DeadLetter) -> None:
        """Warn of a stream without a good item so far, once."""
        name = letter.place.stream
        if name not in self._reported and not self._items[name]:
            self._reported.add(name)
            self._warn(f"all items of stream '{name}' so far were set aside, as here: {_reason(letter)}")

    def _warn_of_subscription(self, number: int, letter: DeadLetter) -> None:
        """Warn of a subscription for which all items so far were set aside; this letter is its latest."""
        before, places = self._failing[number], self._places.setdefault(number, set())
        places.update((letter.place, *(place for place, _ in letter.others)))
        streams = {each.stream for each in places}
        total = sum(self._items[each] - before[each] for each in streams)
        if len(places) >= total > 0 and self._warnings < _MOST_REPORTED:
            self._warnings += 1
            self._warn(
                f"the subscription '{letter.subscription}' answers nothing so far: "
                f"all {total:,} items were set aside, as here: {_reason(letter)}"
            )
        elif len(places) < _MOST_PLACES:
            return
        self._settle(number)


def _reason(letter: DeadLetter) -> str:
    code = f" [{letter.code}]" if letter.code else ""
    return f"{visible(letter.reason)}{code} ({letter.place})"
