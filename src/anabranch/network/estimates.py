"""The bytes per second of a flow, estimated from samples of its streams.

A sample keeps the first items of a stream as vectors: how often each path occurs in an item, its bytes there, and the
verdict of each predicate, `no < error < yes` as 0, 1 and 2.
A comparison is judged once for every item, by the law (LAWS 2.3, 2.4); `and` is the least of its parts, `or` the
greatest, `not` the opposite.
Where items have one number each at a path, a comparison with a constant is one of the ranks of these numbers.
So dependent predicates are estimated right, as far as the sample is representative.

* Items: for each output the bytes of its elements where its condition holds, and the tags around them where anything in
them is sent.
* Windows: how often one ends, unless it is likely to be empty, times the bytes of its values; conditions on values are
assumed to hold, for a sample has too few windows.
* Tuples: how often items of the inputs meet (in a step join by the sizes of its windows, in an interval join as pairs
of the samples do), times the bytes of a tuple.

Every flow also carries its progress, a heartbeat per second.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.branch.remote.lines import Layout
from anabranch.errors import DynamicError
from anabranch.law.inputs import texts_at
from anabranch.predicate import And, Compare, Difference, Not, Or, Predicate
from anabranch.sharing.forest import PropertyForest, alone, labels, local
from anabranch.sharing.tree import ITEM, OutputAnnotation, PropertyTree, Steps
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.source import Source, read
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, string_value
from anabranch.values.atomic import Untyped, compare, finite_value, to_double
from anabranch.values.objects.by_type import is_typed, member_path, typed_texts
from anabranch.values.placing import seconds_at

Numbers: TypeAlias = npt.NDArray[np.float64]
Verdicts: TypeAlias = npt.NDArray[np.uint8]

MOST_ITEMS = 1_200
YES = 2
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Of numbers, and of arrays element by element."""


class Sample:
    """Some items of a stream, with cached results about them."""

    def __init__(
        self, stream: str, items: Sequence[Element], time: Path | None = None, rate: float | None = None, root: str = ""
    ) -> None:
        self.stream = stream
        self.items = tuple(items[:MOST_ITEMS])
        self.root = root
        """The name of the stream's root; without one, a path may begin with any."""
        self._nodes: dict[Steps, list[list[Element]]] = {}
        self._texts: dict[Steps, list[list[Untyped]]] = {}
        self._ranked: dict[Steps, _Ranks] = {}
        self._verdicts: dict[Predicate, Verdicts] = {}
        self._vectors: dict[tuple[Steps, Callable[[list[Element]], float]], Numbers] = {}
        self.bytes = np.array([len(serialize(each).encode()) for each in self.items], dtype=np.float64)
        self.rate = rate or self._rate(time)
        """Items per second; without a time, one."""

    def _rate(self, time: Path | None) -> float:
        if time is None:
            return 1.0
        texts = [text for each in self.items for text in texts_at(each, time)[:1]]
        known = [value for text in texts if (value := seconds_at(text, time)) is not None]
        span = known[-1] - known[0] if known else Fraction(0)
        return float((len(known) - 1) / span) if span > 0 else 1.0

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self.items)

    def mean(self, vector: Numbers) -> float:
        """The average per item; 0 for an empty sample."""
        return float(vector.mean()) if self.count else 0.0

    def nodes(self, steps: Steps) -> list[list[Element]]:
        """By item: the elements at a path, which begins with the root and the item's name."""
        if steps not in self._nodes:
            if len(steps) <= ITEM:
                named = steps[ITEM - 1 : ITEM]
                found = [[each] if not named or named[0] == str(each.name) else [] for each in self.items]
            else:
                above = self.nodes(steps[:-1])
                found = [[part for each in nodes for part in _children(each, steps[-1])] for nodes in above]
            self._nodes[steps] = found
        return self._nodes[steps]

    def vector(self, steps: Steps, measure: Callable[[list[Element]], float]) -> Numbers:
        """By item: a measure of the elements at a path."""
        key = steps, measure
        if key not in self._vectors:
            self._vectors[key] = np.array([measure(each) for each in self.nodes(steps)], dtype=np.float64)
        return self._vectors[key]

    def texts(self, steps: Steps) -> list[list[Untyped]]:
        """By item: the texts at a path."""
        if steps not in self._texts:
            self._texts[steps] = self._read(steps)
        return self._texts[steps]

    def _read(self, steps: Steps) -> list[list[Untyped]]:
        if is_typed(steps[ITEM:]):
            items = self.nodes(steps[:ITEM])
            return [[Untyped(text) for each in nodes for text in typed_texts(each, steps[ITEM:])] for nodes in items]
        if steps and steps[-1].startswith("@"):
            holders = self.nodes(steps[:-1])
            return [
                [Untyped(a.value) for each in nodes for a in each.attributes if str(a.name) == steps[-1][1:]]
                for nodes in holders
            ]
        return [[Untyped(string_value(each)) for each in nodes] for nodes in self.nodes(steps)]

    def sent(self, predicate: Predicate) -> npt.NDArray[np.bool_]:
        """The items for which a predicate holds."""
        found: npt.NDArray[np.bool_] = self.verdicts(predicate) == YES
        return found

    def verdicts(self, predicate: Predicate) -> Verdicts:
        """By item: the verdict of a predicate; a term that is no path of the item has no value."""
        if predicate not in self._verdicts:
            self._verdicts[predicate] = judged(predicate, (self.count,), self._compared)
        return self._verdicts[predicate]

    def _ranks(self, steps: Steps) -> _Ranks:
        if steps not in self._ranked:
            self._ranked[steps] = _Ranks.of(self.texts(steps))
        return self._ranked[steps]

    def _compared(self, atom: Compare | Difference) -> Verdicts:
        if isinstance(atom, Compare):
            steps = atom.term.path.steps
            texts = self.texts(steps) if steps else [[]] * self.count
            if not isinstance(atom.constant, str) and steps:
                return self._ranks(steps).judged(atom, texts)
            return np.array([judged_value(atom, each) for each in texts], dtype=np.uint8)
        pairs = zip(self.texts(atom.left.path.steps), self.texts(atom.right.path.steps), strict=True)
        return np.array([judged_pair(atom, *each) for each in pairs], dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The numbers at a path, by their ranks: so a comparison with a constant is one of ranks, and exact."""

    numbers: Sequence[Fraction]
    """All of them, rising."""
    ranks: npt.NDArray[np.int64]
    """By item: the place of its number among them."""
    others: Sequence[int]
    """The items that do not have exactly one number there."""

    @staticmethod
    def of(texts: Sequence[Sequence[Untyped]]) -> _Ranks:
        found = [finite_value(each[0]) if len(each) == 1 else None for each in texts]
        numbers = sorted({each for each in found if each is not None})
        places = {each: place for place, each in enumerate(numbers)}
        ranks = np.array([0 if each is None else places[each] for each in found], dtype=np.int64)
        return _Ranks(numbers, ranks, [place for place, each in enumerate(found) if each is None])

    def judged(self, atom: Compare, texts: Sequence[Sequence[Untyped]]) -> Verdicts:
        """The verdicts of a comparison with a number; `texts` are those by item."""
        assert isinstance(atom.constant, Fraction), "it is compared with a number"
        below, behind = bisect_left(self.numbers, atom.constant), bisect_right(self.numbers, atom.constant)
        sides = np.where(self.ranks < below, -1, np.where(self.ranks < behind, 0, 1))
        verdicts: Verdicts = np.where(_OPERATORS[atom.op](sides, 0), YES, 0).astype(np.uint8)
        for place in self.others:
            verdicts[place] = judged_value(atom, texts[place])
        return verdicts


def judged(
    predicate: Predicate, shape: Sequence[int], compared: Callable[[Compare | Difference], Verdicts]
) -> Verdicts:
    """The verdicts of a predicate, by those of its comparisons; `shape` is that of all of them."""

    def all_of(parts: Iterable[Predicate]) -> list[Verdicts]:
        return [judged(each, shape, compared) for each in parts]

    found: Verdicts
    match predicate:
        case And(parts):
            found = np.minimum.reduce([np.full(shape, YES, dtype=np.uint8), *all_of(parts)])
        case Or(parts):
            found = np.maximum.reduce([np.zeros(shape, dtype=np.uint8), *all_of(parts)])
        case Not(part):
            found = YES - judged(part, shape, compared)
        case _:
            found = compared(predicate)
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
        best = max(best, YES * bool(_OPERATORS[atom.op](value, atom.constant)))
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
        sides = (one - two, offset) if atom.arithmetic == "distance" else (one, two + offset)
        best = max(best, YES * bool(_OPERATORS[atom.op](*sides)))
    return best


def _children(node: Element, name: str) -> list[Element]:
    return [each for each in node.children if isinstance(each, Element) and str(each.name) == name]


def _size(nodes: list[Element]) -> float:
    """The bytes of elements, with their content."""
    return sum(len(serialize(each).encode()) for each in nodes)


def _number(nodes: list[Element]) -> float:
    """The first number among elements; NaN where there is none."""
    try:
        return to_double(Untyped(string_value(nodes[0]))) if nodes else float("nan")
    except DynamicError:
        return float("nan")


def sample_of(source: Source, rate: float | None = None) -> Sample:
    """The first items of a stream; empty if there are none yet, or its files are gone."""
    if not all(each.exists() for each in source.partitions):
        return Sample(source.name, [], source.time, rate, source.implied_root)
    reader = read(source, Limits())
    items = [each.tree for each in islice((part for part in reader if isinstance(part, Item)), MOST_ITEMS)]
    return Sample(source.name, items, source.time, rate, str(reader.root.name))


Form: TypeAlias = PropertyTree | PropertyForest
"""The content of a flow: items or windows of one stream, or the tuples of a join."""

PROGRESS = 1.0
"""Bytes per second beside the content: with each epoch the root of a document, and an item or two, or a mark of
windows, that show the stream's progress; an epoch reads some MB, if there are as many."""
_VALUE = 6.0
"""Bytes of a value: a sum, a count, a number of a window."""
_PAIRED_ITEMS = 200
"""So many items of each sample are paired, by the nearest doubles of their first values."""


class Estimates:
    """Samples by stream, and cached estimates."""

    def __init__(self, samples: Mapping[str, Sample]) -> None:
        self.samples = samples
        self._known: dict[Form, float] = {}

    def rate(self, form: Form) -> float:
        """Bytes per second of a flow."""
        if form not in self._known:
            self._known[form] = PROGRESS + (
                self._tuples(form) if isinstance(form, PropertyForest) else self._tree(form)
            )
        return self._known[form]

    def _sample(self, stream: str) -> Sample:
        return self.samples[stream] if stream in self.samples else Sample(stream, ())

    def _tree(self, tree: PropertyTree) -> float:
        sample = self._sample(tree.stream)
        if tree.window is None and not tree.aggregates:
            return sample.mean(_item_bytes(sample, tree)) * sample.rate
        return self._windows_per_second(sample, tree) * _window_bytes(tree)

    def _windows_per_second(self, sample: Sample, tree: PropertyTree) -> float:
        """The number of non-empty windows that end per second; for the whole stream one, at the end."""
        window = tree.window
        if window is None or not sample.count:
            return 0.0
        selected = float(sample.sent(window.pre).mean())
        size, step = float(window.extent.size), float(window.extent.step)
        if window.reference is None:
            return sample.rate * selected / step
        values = sample.vector(window.reference, _number)
        known = values[~np.isnan(values)]
        passing = (float(known[-1]) - float(known[0])) / len(known) * sample.rate if len(known) > 1 else 1.0
        if passing <= 0:
            return 0.0
        empty = (1 - selected) ** (sample.rate * size / passing) if selected < 1 else 0.0
        return passing / step * (1 - empty)

    def _tuples(self, forest: PropertyForest) -> float:
        """Tuples in a second times the bytes of one."""
        samples = [self._sample(tree.stream) for tree in forest.trees]
        if not all(each.count for each in samples):
            return 0.0
        meeting = self.tuples_per_second(forest)
        sizes = 0.0
        for tree, sample, label in zip(forest.trees, samples, labels(forest.trees), strict=True):
            entering = sample.sent(local(forest.guard, tree.input)) if sample.count else np.zeros(0, bool)
            sizes += 2 * len(label) + 5
            sizes += float(_item_bytes(sample, alone(tree))[entering].mean()) if entering.any() else 0.0
        return meeting * (sizes + sum(2 * len(each.item[-1]) + 2 for each in forest.trees))

    def tuples_per_second(self, forest: PropertyForest) -> float:
        """Tuples per second that are sent."""
        samples = [self._sample(tree.stream) for tree in forest.trees]
        entering = []
        for tree, sample in zip(forest.trees, samples, strict=True):
            pre = tree.window.pre if tree.window else And(())
            entering.append(sample.rate * (float(sample.sent(pre).mean()) if sample.count else 0.0))
        share = _share_of_pairs(forest, samples)
        if forest.kind == "step":
            held = []
            for tree, rate in zip(forest.trees, entering, strict=True):
                assert tree.window is not None
                size = float(tree.window.extent.size)
                held.append(size if tree.window.reference is None else size * rate)
            return share * sum(
                rate * prod(other for place, other in enumerate(held) if place != number)
                for number, rate in enumerate(entering)
            )
        # pairs of the samples are as far apart as those of the streams: their number in the time of the samples
        spans = [max(min(sample.count, _PAIRED_ITEMS) / sample.rate, 1e-9) for sample in samples]
        pairs = prod(min(sample.count, _PAIRED_ITEMS) for sample in samples)
        return share * pairs / max(spans)


def _item_bytes(sample: Sample, tree: PropertyTree) -> Numbers:
    """By item of the sample: the bytes that are sent of it."""
    total: Numbers = np.zeros(sample.count)
    around: dict[Steps, Verdicts] = {}
    for output in sent_outputs(tree):
        verdicts = sample.verdicts(output.condition)
        sent = verdicts == YES
        if output.whole:
            total += np.where(sent, sample.bytes if len(output.path) < ITEM else sample.vector(output.path, _size), 0)
        depths = range(ITEM, len(output.path) + (not output.whole))
        for path in (output.path[:depth] for depth in depths):
            around[path] = np.maximum(around[path], verdicts) if path in around else verdicts
    for path, verdicts in around.items():
        total += np.where(verdicts == YES, sample.vector(path, len) * (2 * len(path[-1]) + 5), 0)
    return total


def sent_outputs(tree: PropertyTree) -> Iterator[OutputAnnotation]:
    """What is sent of items: for what is only looked up in a condition, its members, unless these are sent anyway."""
    named = {each.path for each in tree.outputs}
    for each in tree.outputs:
        path = (*each.path[:ITEM], *member_path(each.path[ITEM:]))
        if path == each.path:
            yield each
        elif not any(path[:length] in named for length in range(len(path) + 1)):
            named.add(path)
            yield replace(each, path=path)


def _window_bytes(tree: PropertyTree) -> float:
    """The bytes of a window: `<w n="1">` around `<v c="2" s="3.4"/>` for each path (`branch/remote/lines.py`)."""
    return 13 + _VALUE + sum(4 + len(fields) * (5 + _VALUE) for fields in Layout.of(tree).fields)


def _share_of_pairs(forest: PropertyForest, samples: list[Sample]) -> float:
    """The share of the samples' tuples for which something is sent; of many inputs, the first two are tried."""
    trees = list(islice(forest.trees, 2))
    shapes = [min(sample.count, _PAIRED_ITEMS) for sample in samples[:2]]
    if not all(shapes):
        return 0.0

    everything = np.full(shapes, YES, dtype=np.uint8)
    places = {tree.input: number for number, tree in enumerate(trees)}

    def spread(vector: Any, axis: int) -> Any:
        row = vector[: shapes[axis]]
        return row[:, None] if axis == 0 else row[None, :]

    def compared(atom: Compare | Difference) -> Verdicts:
        if isinstance(atom, Compare):
            if atom.term.input not in places:
                return everything
            axis = places[atom.term.input]
            return np.broadcast_to(spread(samples[axis].verdicts(atom), axis), shapes).copy()
        if atom.left.input not in places or atom.right.input not in places:
            return everything
        one, two = (
            spread(samples[places[term.input]].vector(term.path.steps, _number), places[term.input])
            for term in (atom.left, atom.right)
        )
        return np.where(_OPERATORS[atom.op](one, two + float(atom.offset or 0)), YES, 0).astype(np.uint8)

    return float((judged(forest.guard, shapes, compared) == YES).mean())
