"""A sample of a stream, and what it says of paths and predicates.

The first items of a stream are kept as vectors: how often each path occurs in an item, how many bytes it has there,
and the verdict of each predicate, `no < error < yes` as 0, 1 and 2.
A comparison is judged once for every item, by the law (LAWS 2.3, 2.4); `and` is the least of its parts, `or` the
greatest, `not` the opposite.
So predicates that are not independent of one another come out right, as far as the sample does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.errors import DynamicError
from anabranch.predicate import And, Compare, Difference, Not, Or, Predicate
from anabranch.sharing.tree import ITEM, Steps
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.source import Source, read
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, string_value
from anabranch.values.atomic import Untyped, compare, finite_value, to_double

Numbers: TypeAlias = npt.NDArray[np.float64]
Verdicts: TypeAlias = npt.NDArray[np.uint8]

MOST_ITEMS = 1_200
YES = 2


class Sample:
    """Some items of a stream, with what was asked of them so far."""

    def __init__(
        self, stream: str, items: Sequence[Element], time: Path | None = None, rate: float | None = None, root: str = ""
    ) -> None:
        self.stream = stream
        self.items = tuple(items[:MOST_ITEMS])
        self.root = root
        """The name of the stream's root; without one, whatever a path begins with."""
        self._nodes: dict[Steps, list[list[Element]]] = {}
        self._verdicts: dict[Predicate, Verdicts] = {}
        self._vectors: dict[tuple[Steps, str], Numbers] = {}
        self.bytes = np.array([len(serialize(each).encode()) for each in self.items], dtype=np.float64)
        self.rate = rate or self._rate(time)
        """How many items come in a second; without a time, one."""

    def _rate(self, time: Path | None) -> float:
        times = [] if time is None else [_first(each, time.steps) for each in self.items]
        known = [each for each in times if each is not None]
        span = known[-1] - known[0] if known else Fraction(0)
        return float((len(known) - 1) / span) if span > 0 else 1.0

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self.items)

    def mean(self, vector: Numbers) -> float:
        """What falls to one item; nothing is known of an empty sample, and nothing is said."""
        return float(vector.mean()) if self.count else 0.0

    def nodes(self, steps: Steps) -> list[list[Element]]:
        """For each item, the elements at a path, which begins with the root and the item's name."""
        if steps not in self._nodes:
            if len(steps) <= ITEM:
                named = steps[ITEM - 1 : ITEM]
                found = [[each] if not named or named[0] == str(each.name) else [] for each in self.items]
            else:
                above = self.nodes(steps[:-1])
                found = [[part for each in nodes for part in _children(each, steps[-1])] for nodes in above]
            self._nodes[steps] = found
        return self._nodes[steps]

    def counts(self, steps: Steps) -> Numbers:
        """For each item, how many elements are at a path."""
        return self._vector(steps, "count")

    def sizes(self, steps: Steps) -> Numbers:
        """For each item, how many bytes the elements at a path have, with all that is in them."""
        return self._vector(steps, "size")

    def values(self, steps: Steps) -> Numbers:
        """For each item, the first number at a path; NaN where there is none."""
        return self._vector(steps, "value")

    def _vector(self, steps: Steps, kind: str) -> Numbers:
        key = steps, kind
        if key not in self._vectors:
            nodes = self.nodes(steps)
            if kind == "count":
                found = [float(len(each)) for each in nodes]
            elif kind == "size":
                found = [float(sum(len(serialize(part).encode()) for part in each)) for each in nodes]
            else:
                found = [_number(each) for each in nodes]
            self._vectors[key] = np.array(found, dtype=np.float64)
        return self._vectors[key]

    def texts(self, steps: Steps) -> list[list[Untyped]]:
        """For each item, the texts at a path."""
        if steps and steps[-1].startswith("@"):
            holders = self.nodes(steps[:-1])
            return [
                [Untyped(a.value) for each in nodes for a in each.attributes if str(a.name) == steps[-1][1:]]
                for nodes in holders
            ]
        return [[Untyped(string_value(each)) for each in nodes] for nodes in self.nodes(steps)]

    def sent(self, predicate: Predicate) -> npt.NDArray[np.bool_]:
        """For which items a predicate holds."""
        found: npt.NDArray[np.bool_] = self.verdicts(predicate) == YES
        return found

    def verdicts(self, predicate: Predicate) -> Verdicts:
        """For each item the verdict of a predicate over it; a term that is no path of the item has no value."""
        if predicate not in self._verdicts:
            self._verdicts[predicate] = self._judged(predicate)
        return self._verdicts[predicate]

    def _judged(self, predicate: Predicate) -> Verdicts:
        match predicate:
            case And(parts):
                return least(self._all(YES), map(self.verdicts, parts))
            case Or(parts):
                return greatest(self._all(0), map(self.verdicts, parts))
            case Not(part):
                return opposite(self.verdicts(part))
            case Compare(term):
                texts = self.texts(term.path.steps) if term.path.steps else [[]] * self.count
                return np.array([judged_value(predicate, each) for each in texts], dtype=np.uint8)
            case Difference(left, _, right):
                pairs = zip(self.texts(left.path.steps), self.texts(right.path.steps), strict=True)
                return np.array([judged_pair(predicate, *each) for each in pairs], dtype=np.uint8)

    def _all(self, verdict: int) -> Verdicts:
        return np.full(self.count, verdict, dtype=np.uint8)


def least(first: Verdicts, others: Iterable[Verdicts]) -> Verdicts:
    """`and`"""
    found: Verdicts = np.minimum.reduce([first, *others])
    return found


def greatest(first: Verdicts, others: Iterable[Verdicts]) -> Verdicts:
    """`or`"""
    found: Verdicts = np.maximum.reduce([first, *others])
    return found


def opposite(verdicts: Verdicts) -> Verdicts:
    """`not`"""
    found: Verdicts = YES - verdicts
    return found


def judged_value(atom: Compare, texts: Iterable[Untyped]) -> int:
    """The verdict of a comparison with a constant."""
    best = 0
    for text in texts:
        if isinstance(atom.constant, str):
            best = max(best, YES * compare(atom.op, text, atom.constant))
            continue
        try:
            number = finite_value(text)
            value = to_double(text) if number is None else number
        except DynamicError:
            best = max(best, 1)
            continue
        best = max(best, YES * _stands(atom.op, value, atom.constant))
    return best


def judged_pair(atom: Difference, lefts: Sequence[Untyped], rights: Sequence[Untyped]) -> int:
    """The verdict of a comparison between two paths."""
    if atom.offset is None:
        return YES * any(compare(atom.op, *pair) for pair in product(lefts, rights))
    if (len(rights) > 1) or (atom.arithmetic == "distance" and len(lefts) > 1):
        return 1
    best = 0
    for left, right in product(lefts, rights):
        try:
            one, two = to_double(left), to_double(right)
        except DynamicError:
            best = max(best, 1)
            continue
        offset = float(atom.offset)
        holds = (
            _stands(atom.op, one - two, offset)
            if atom.arithmetic == "distance"
            else _stands(atom.op, one, two + offset)
        )
        best = max(best, YES * holds)
    return best


def _stands(op: str, left: Fraction | float, right: Fraction | float) -> bool:
    match op:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def _children(node: Element, name: str) -> list[Element]:
    return [each for each in node.children if isinstance(each, Element) and str(each.name) == name]


def _first(item: Element, steps: tuple[str, ...]) -> Fraction | None:
    nodes = [item]
    for step in steps:
        nodes = [part for each in nodes for part in _children(each, step)]
    return finite_value(Untyped(string_value(nodes[0]))) if nodes else None


def _number(nodes: list[Element]) -> float:
    try:
        return to_double(Untyped(string_value(nodes[0]))) if nodes else float("nan")
    except DynamicError:
        return float("nan")


def sample_of(source: Source, rate: float | None = None, count: int = MOST_ITEMS) -> Sample:
    """The first items of a stream; one without any yet, or whose files have gone, says nothing."""
    if not all(each.exists() for each in source.partitions):
        return Sample(source.name, [], source.time, rate, source.implied_root)
    reader = read(source, Limits())
    items = [each.tree for each in islice((part for part in reader if isinstance(part, Item)), count)]
    return Sample(source.name, items, source.time, rate, str(reader.root.name))
