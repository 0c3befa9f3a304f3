"""Aggregates over a stream's results: `count`, `sum`, `avg`, `min`, `max`, unblocked (history paper, sections 4 and 6).

Law (LAWS 2.1, 2.2): the aggregate of all results that show, exactly; as soon as it differs a replacement of the one
region comes out that holds it, so the answer is there at once and is corrected later.

What results come to is put in and taken out (`results.py`).
For `count`, `sum` and `avg` that is an element of a group, `Sums`; `min` and `max` cannot be adjusted from their values
(LAWS 5.6): their state is a multiset, kept in order of value.

As a state transformer over content without regions: `Fold`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from anabranch.aggregates.function import FunctionName
from anabranch.errors import DynamicError
from anabranch.values.numbers import exact_number, nearest_double, no_number, spell_double, summand
from models.pipeline.bodies import Frame
from models.pipeline.events import (
    Characters,
    Content,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Id,
    Kind,
    StartElement,
    StartRegion,
    StartStream,
)
from models.pipeline.results import Arranged, ByResult
from models.pipeline.transformer import State
from models.pipeline.wrapper import Place


@dataclass(frozen=True, slots=True)
class Sums:
    """What values come to: how many, their exact sum, and how many of them have no place in one."""

    count: int = 0
    total: Fraction = Fraction(0)
    positive: int = 0
    """INF"""
    negative: int = 0
    nan: int = 0
    words: int = 0
    """Texts that are no numbers."""

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Sums)))

    def __sub__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, each.name) - getattr(other, each.name) for each in fields(Sums)))

    @staticmethod
    def of(text: str) -> Sums:
        """What one value comes to."""
        number = exact_number(text)
        if number is None:
            return Sums(1, words=1)
        added = summand(number)
        if isinstance(added, Decimal):
            return Sums(1, Fraction(added))
        return Sums(1, positive=int(added > 0), negative=int(added < 0), nan=int(math.isnan(added)))

    def divided(self, by: int) -> float:
        """The double nearest to a part of the sum."""
        if self.nan or (self.positive and self.negative):
            return math.nan
        return math.inf if self.positive else -math.inf if self.negative else nearest_double(self.total / by)


_NOTHING = Sums()


@dataclass(frozen=True, slots=True)
class Bag:
    """Values with how often they occur: the state of `min` and `max`."""

    counts: frozenset[tuple[str, int]] = frozenset()

    def __add__(self, other: Bag) -> Bag:
        return self._with(other, 1)

    def __sub__(self, other: Bag) -> Bag:
        return self._with(other, -1)

    def _with(self, other: Bag, sign: int) -> Bag:
        mine = dict(self.counts)
        for value, count in other.counts:
            mine[value] = mine.get(value, 0) + sign * count
        return Bag(frozenset((value, count) for value, count in mine.items() if count))


@dataclass(frozen=True, slots=True)
class Fold:
    """An aggregate as a state transformer: what the results so far come to."""

    function: FunctionName

    @property
    def initial(self) -> State:
        return State((0,), Bag() if self.function in ("min", "max") else Sums())

    def step(self, event: Content, state: State) -> tuple[tuple[Content, ...], State]:
        (depth,) = state.mode
        text = state.text
        match event:
            case StartElement():
                depth += 1
            case EndElement():
                depth -= 1
            case Characters():
                text += event.text
            case _:
                return (), state
        if depth:
            return (), State((depth,), state.amount, text)
        amount = Bag(frozenset([(text, 1)])) if self.function in ("min", "max") else Sums.of(text)
        return (), State((0,), state.amount + amount)


class Total(ByResult):
    """An aggregate of an update stream, as an update stream."""

    def __init__(self, function: FunctionName, stream: int = 0) -> None:
        super().__init__(stream)
        self.function = function
        self.failure: DynamicError | None = None
        """Why there is no value now (LAWS 2.4)."""
        self._sums = Sums()
        self._given: dict[int, Sums] = {}
        """What each result that shows has added."""
        self._numbers = Arranged(self.results)
        self._words = Arranged(self.results)
        self._told: str | None = None

    def keeps(self, event: Content) -> bool:
        return isinstance(event, Characters)

    def passing(
        self, event: StartStream | EndStream | StartRegion | EndRegion, place: Place[Content, int]
    ) -> Iterable[Event]:
        match event:
            case StartStream(root):
                self._told = self._value()
                return [event, *self._region("mutable", root, "result")]
            case EndStream():
                return [*self.settled(), event]
            case _:
                return ()

    def settled(self) -> Iterable[Event]:
        pending = list(self.results.changed())
        for result, _ in pending:
            self._take_out(result.handle)
        for result, shows in pending:
            if shows:
                self._put_in(result.handle, self.results.text(result))
        value = self._value()
        if value == self._told:
            return ()
        self._told = value
        return self._region("replace", Id(self.stream, "result"), "value")

    def _take_out(self, handle: int) -> None:
        self._sums -= self._given.pop(handle, _NOTHING)
        self._numbers.drop(handle)
        self._words.drop(handle)

    def _put_in(self, handle: int, text: str) -> None:
        self._given[handle] = added = Sums.of(text)
        self._sums += added
        number = exact_number(text)
        if number is None:
            self._words.put(handle, 0)
        elif self.function in ("min", "max") and not number.is_nan():
            self._numbers.put(handle, number)

    def _region(self, kind: Kind, of: Id, name: str) -> list[Event]:
        id = Id(self.stream, name)
        content = [] if self._told is None else [Characters(id, self._told, is_value=True)]
        return [StartRegion(kind, of, id), *content, EndRegion(kind, of, id)]

    def _value(self) -> str | None:
        """The aggregate as XQuery spells it; None for the empty sequence, and where it fails."""
        self.failure = None
        if self.function == "count":
            return str(self._sums.count)
        word = self._words.order.first
        if word is not None:
            result = self.results.part(word)
            assert isinstance(result, Frame), "results are frames"
            self.failure = no_number(self.results.text(result))
            return None
        if not self._sums.count:
            return "0" if self.function == "sum" else None
        match self.function:
            case "sum":
                return spell_double(self._sums.divided(1))
            case "avg":
                return spell_double(self._sums.divided(self._sums.count))
            case _:
                return "NaN" if self._sums.nan else self._extreme()

    def _extreme(self) -> str:
        order, numbers = self._numbers.order, self._numbers.ranks
        end = order.first if self.function == "min" else order.last
        assert end is not None, "there is a value that is a number"
        first = order.search(lambda each: bool(numbers[each] >= numbers[end]))  # of equal ones (0 and -0 are) the first
        assert first is not None, "one is as great as itself"
        return spell_double(float(numbers[first]))

    def own(self) -> Any:
        return self._told

    def restore(self, own: Any) -> None:
        self._told = own
        self.settled()  # nothing comes out: what was told is what all results come to
