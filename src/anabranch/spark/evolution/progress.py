"""The progress of a stream: how far each of its ranges has come, for peers that send only a part of its items
(`peers/`).

Items that no query selects still show how far a stream is, and which items behind them are late (LAWS 3.2).
A peer that sends only selected items adds the few others that show the same: the first of an epoch, and those with the
largest value of each *axis*, a path by which a query measures the stream.
That is enough as long as no item is below the largest value before it by more than the axis bears, no item has a time
of its own, and there are only items.
A range with anything else is *odd*, and all items of its epoch are sent.

The values of usual items are taken from columns; a range costs one number for each item and axis.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.tree import Column
from anabranch.columnar.items.answering import Shown
from anabranch.columnar.items.programs import Compile
from anabranch.columnar.match.condition import Condition
from anabranch.columnar.match.index import Matches
from anabranch.columnar.scan.kernels import Flags
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.stream.elements import Item
from anabranch.stream.path import TimeScale
from anabranch.stream.plain import from_plain, to_plain
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, string_value
from anabranch.values.atomic import Untyped
from anabranch.values.placing import place_of

Numbers = TypeVar("Numbers", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class ProgressAxis:
    """A path whose values show how far a stream is, and by how much a value may be below those before it."""

    path: str
    """It begins with the name of the items that have it, `*` for all: `photon/det_time`."""
    bears: str = "0"
    """In the unit of its numbers, as all values of the axis are."""
    per_second: int = 1
    """How many of its numbers are a second, for values that are dateTimes."""
    every: bool = False
    """Whether each item is expected to have one value: one without has the time of the item before it (LAWS 1.3)."""


@dataclass(frozen=True, slots=True)
class Top:
    """The largest value of an axis, and its item."""

    value: float
    item: str


@dataclass(frozen=True, slots=True)
class RangeProgress:
    """The progress of a range, or of several consecutive ones."""

    stream: str
    first: str | None = None
    """The first item; None where there is none."""
    tops: tuple[Top | None, ...] = ()
    """By axis."""
    lows: tuple[float | None, ...] = ()
    """By axis: the least value."""
    odd: bool = False
    partition: int = 0

    @staticmethod
    def stamped(stream: str, largest: int) -> RangeProgress:
        """The progress of messages, by the largest of their timestamps in milliseconds."""
        return RangeProgress(stream, tops=(Top(largest / 1_000, ""),))

    def to_json(self) -> str:
        return json.dumps(to_plain(self))

    @staticmethod
    def from_json(text: str) -> RangeProgress:
        """The progress that `to_json` gave this text for."""
        return from_plain(RangeProgress, json.loads(text))

    def then(self, later: RangeProgress, axes: Sequence[ProgressAxis]) -> RangeProgress:
        """Both together; odd if a value of the later one is below what the earlier one has reached."""
        odd = self.odd or later.odd
        for axis, top, low in zip(axes, self.tops, later.lows, strict=True):
            odd = odd or (top is not None and low is not None and bool(low < _bound(top.value, axis.bears)))
        tops = tuple(_higher(*each) for each in zip(self.tops, later.tops, strict=True))
        lows = tuple(_lower(*each) for each in zip(self.lows, later.lows, strict=True))
        return RangeProgress(self.stream, self.first or later.first, tops, lows, odd, self.partition)


def _bound(top: Numbers, bears: str) -> Numbers:
    """A value below this bound is below what was reached; rounded so that doubtful values are."""
    slack = float(Fraction(bears))
    return np.nextafter(top - slack, math.inf) if slack else top


def _higher(first: Top | None, second: Top | None) -> Top | None:
    if first is None or second is None:
        return first or second
    return second if second.value > first.value else first


def _lower(first: float | None, second: float | None) -> float | None:
    return min((each for each in (first, second) if each is not None), default=None)


@dataclass(frozen=True)
class ProgressColumns:
    """By axis: the columns of its values in items of a look."""

    axes: tuple[tuple[PartColumn, ...], ...]
    conditions: tuple[Condition, ...] = ()
    columns: set[Column] = field(default_factory=set)
    numbers: set[Column] = field(default_factory=set)
    missing: int = 0


def progress_columns(axes: Sequence[ProgressAxis]) -> Compile:
    """A compiler of the columns for some axes."""

    def compile_columns(root: str, look: Look) -> ProgressColumns | None:
        found: list[tuple[PartColumn, ...]] = []
        for axis in axes:
            item, *steps = axis.path.split("/")
            parts = [each for each in look.own if item in ("*", look.parts[each].name)]
            for step in steps:
                inner = (child for part in parts for child in look.children(part))
                parts = [child for child in inner if look.parts[child].name == step and not look.parts[child].uri]
            if not all(look.parts[each].has_text and look.frames[each] < 0 for each in parts):
                return None
            found.append(tuple(parts))
        every: set[Column] = {column for each in found for column in each}
        return ProgressColumns(tuple(found), (), every, every)

    return compile_columns


class ProgressTaker:
    """Follows one range, as a taker (`columnar/items/answering.py`)."""

    def __init__(self, stream: str, axes: Sequence[ProgressAxis], partition: int = 0) -> None:
        self._stream, self._partition = stream, partition
        self._paths = [each.path.split("/") for each in axes]
        self._bears = [each.bears for each in axes]
        self._scales = [TimeScale(each.per_second) for each in axes]
        self._every = [each.every for each in axes]
        self._first: str | None = None
        self._tops: list[Top | None] = [None] * len(axes)
        self._lows: list[float | None] = [None] * len(axes)
        self._odd = False

    def judge(self, compiled: ProgressColumns | None, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        self._shredded, self._shown = shredded, dict[int, str]()
        self._values: list[NDArray[np.float64]] = []
        self._others: list[dict[int, list[float]]] = [{} for _ in self._paths]
        self._known = known
        unclear = ~(known & shredded.fits)
        if compiled is None or shredded.wanted is None:
            self._values = [np.empty((len(known), 0)) for _ in self._paths]
            return np.ones(len(known), np.bool_) if self._paths else unclear
        for columns in compiled.axes:
            values = shredded.values[[shredded.row(column) for column in columns]].T
            unclear |= np.isnan(values).any(axis=1)
            self._values.append(values)
        return unclear

    def show(self, entry: int, element: Shown) -> None:
        if not isinstance(element, Item):
            self._odd = True
            return
        self._odd = self._odd or element.at is not None
        for others, path, scale, every in zip(self._others, self._paths, self._scales, self._every, strict=True):
            exact = list(numbers_at(element.tree, path, scale))
            others[entry] = list(map(float, exact))
            spelled = [Fraction(repr(each)) for each in others[entry]]  # the decimal that a double stands for
            self._odd = self._odd or spelled != exact or (every and len(exact) != 1)
        self._shown[entry] = serialize(element.tree)

    def take(self) -> None:
        items = np.flatnonzero(self._known & self._shredded.fits)
        first = min([*items[:1].tolist(), *self._shown], default=None)
        if first is not None and self._first is None:
            self._first = self._item(first)
        for axis, values in enumerate(self._values):
            self._take_axis(axis, values)

    def _take_axis(self, axis: int, values: NDArray[np.float64]) -> None:
        """Apply the values of a batch in order."""
        others = self._others[axis]
        if others:
            width = max(values.shape[1], *(len(each) for each in others.values()))
            wider = np.full((len(values), width), np.nan)
            wider[:, : values.shape[1]] = values
            for entry, found in others.items():
                wider[entry] = np.nan
                wider[entry, : len(found)] = found
            values = wider
        flat = values.ravel()
        given = np.flatnonzero(~np.isnan(flat))
        if not len(given):
            return
        numbers = flat[given]
        top = self._tops[axis]
        before = np.maximum.accumulate(np.concatenate(([-math.inf if top is None else top.value], numbers)))[:-1]
        self._odd = self._odd or bool((numbers < _bound(before, self._bears[axis])).any())
        low, at = float(numbers.min()), int(numbers.argmax())
        held = self._lows[axis]
        self._lows[axis] = low if held is None else min(held, low)
        if top is None or numbers[at] > top.value:
            self._tops[axis] = Top(float(numbers[at]), self._item(int(given[at]) // values.shape[1]))

    def _item(self, entry: int) -> str:
        """An item as text; a JSON item is sent as XML."""
        if entry in self._shown:
            return self._shown[entry]
        wanted = self._shredded.wanted
        if wanted is not None and wanted.look.is_json:
            return serialize(self._shredded.tree(entry))
        return self._shredded.cut(entry).raw.decode()

    def progress(self) -> RangeProgress:
        """The progress of the range."""
        found = self._first, tuple(self._tops), tuple(self._lows), self._odd
        return RangeProgress(self._stream, *found, self._partition)


def numbers_at(item: Element, path: Sequence[str], scale: TimeScale) -> Iterator[Fraction]:
    """The values at a path of an item, in order; the path begins with the item's name, or `*`."""
    found: Iterable[Element] = (item,) if path[0] in ("*", str(item.name)) else ()
    attribute = path[-1][1:] if path[-1].startswith("@") else None
    for step in path[1:] if attribute is None else path[1:-1]:
        found = [
            child
            for each in found
            for child in each.children
            if isinstance(child, Element) and child.name.local == step and not child.name.uri
        ]
    for each in found:
        text = string_value(each) if attribute is None else each.get(attribute)
        value = None if text is None else place_of(Untyped(text), scale)
        if value is not None:
            yield value
