"""How many bytes per second a flow has, reckoned from samples of the streams it is made of.

* Items: for each output the bytes of its elements where its condition holds, and the tags of what stands around them
  where anything in them is sent; predicates are judged item by item, so how they hang together does not matter.
* Windows: how often one ends, unless it is likely to be empty, times the bytes of its values; conditions on values are
  taken to hold, for a sample has too few windows to say.
* Tuples: how often items of the inputs meet (in a step join by the sizes of its windows, in an interval join as pairs
  of the samples do), times the bytes of a tuple.

Every flow also carries its progress, a heartbeat a second, however little else it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.branch.remote.lines import Layout
from anabranch.network.sample import YES, Numbers, Sample, Verdicts, greatest, least, opposite
from anabranch.predicate import And, Compare, Difference, Not, Or, Predicate
from anabranch.sharing.forest import PropertyForest, alone, labels, local
from anabranch.sharing.tree import ITEM, PropertyTree, Steps

Form: TypeAlias = PropertyTree | PropertyForest
"""What a flow carries: items or windows of one stream, or the tuples of a join."""

PROGRESS = 1.0
"""Bytes per second of what is sent beside what was asked for: with each epoch the root of a document, and an item or
two, or a mark of windows, that say how far the stream is; an epoch reads some MB, if there are as many."""
_VALUE = 6.0
"""Bytes of a value: a sum, a count, a number of a window."""
_PAIRS = 200
"""So many items of each sample are tried with each other, by the nearest doubles of their first values."""
_OPERATORS: dict[str, Callable[[Numbers, Numbers], npt.NDArray[np.bool_]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Estimates:
    """Samples by stream, and what was reckoned from them so far."""

    def __init__(self, samples: Mapping[str, Sample]) -> None:
        self.samples = samples
        self._known: dict[Form, float] = {}

    def shipped(self, stream: str) -> float:
        """Bytes per second of a stream as it comes in."""
        sample = self._sample(stream)
        return sample.mean(sample.bytes) * sample.rate + PROGRESS

    def rate(self, form: Form) -> float:
        """Bytes per second of a flow."""
        if form not in self._known:
            self._known[form] = PROGRESS + (
                self._tuples(form) if isinstance(form, PropertyForest) else self._tree(form)
            )
        return self._known[form]

    def _sample(self, stream: str) -> Sample:
        if stream not in self.samples:
            return Sample(stream, ())
        return self.samples[stream]

    def _tree(self, tree: PropertyTree) -> float:
        sample = self._sample(tree.stream)
        if tree.window is None and not tree.aggregates:
            return sample.mean(_item_bytes(sample, tree)) * sample.rate
        return self._windows_per_second(sample, tree) * _window_bytes(tree)

    def _windows_per_second(self, sample: Sample, tree: PropertyTree) -> float:
        """How many windows that hold something end in a second; of the whole stream one, at the end."""
        window = tree.window
        if window is None or not sample.count:
            return 0.0
        selected = float(sample.sent(window.pre).mean())
        size, step = float(window.extent.size), float(window.extent.step)
        if window.reference is None:
            return sample.rate * selected / step
        values = sample.values(window.reference)
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
        """How often items meet and are sent."""
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
        # pairs of the samples lie as far apart as those of the streams: so many pairs in the time of the samples
        spans = [max(min(sample.count, _PAIRS) / sample.rate, 1e-9) for sample in samples]
        pairs = prod(min(sample.count, _PAIRS) for sample in samples)
        return share * pairs / max(spans)


def _item_bytes(sample: Sample, tree: PropertyTree) -> Numbers:
    """For each item of the sample the bytes of what is sent of it."""
    total: Numbers = np.zeros(sample.count)
    around: dict[Steps, Verdicts] = {}
    for output in tree.outputs:
        verdicts = sample.verdicts(output.condition)
        sent = verdicts == YES
        if output.whole:
            total += np.where(sent, sample.bytes if len(output.path) < ITEM else sample.sizes(output.path), 0)
        depths = range(ITEM, len(output.path) + (not output.whole))
        for path in (output.path[:depth] for depth in depths):
            around[path] = np.maximum(around[path], verdicts) if path in around else verdicts
    for path, verdicts in around.items():
        total += np.where(verdicts == YES, sample.counts(path) * (2 * len(path[-1]) + 5), 0)
    return total


def _window_bytes(tree: PropertyTree) -> float:
    """The bytes of a window: `<w n="1">` around `<v c="2" s="3.4"/>`, what is told of each path (`branch/sent`)."""
    return 13 + _VALUE + sum(4 + len(fields) * (5 + _VALUE) for fields in Layout.of(tree).fields)


def _share_of_pairs(forest: PropertyForest, samples: list[Sample]) -> float:
    """For which share of all tuples of the samples something is sent; of many inputs, the first two are tried."""
    trees = list(islice(forest.trees, 2))
    shapes = [min(sample.count, _PAIRS) for sample in samples[:2]]
    if not all(shapes):
        return 0.0

    def judged(predicate: Predicate) -> Verdicts:
        match predicate:
            case And(parts):
                return least(np.full(shapes, YES, dtype=np.uint8), map(judged, parts))
            case Or(parts):
                return greatest(np.zeros(shapes, dtype=np.uint8), map(judged, parts))
            case Not(part):
                return opposite(judged(part))
            case Compare(term):
                for axis, (tree, sample, count) in enumerate(zip(trees, samples, shapes, strict=False)):
                    if term.input == tree.input:
                        row = sample.verdicts(predicate)[:count]
                        return np.broadcast_to(row[:, None] if axis == 0 else row[None, :], shapes).copy()
                return np.full(shapes, YES, dtype=np.uint8)
            case Difference(left, op, right, offset):
                places = {tree.input: number for number, tree in enumerate(trees)}
                if left.input not in places or right.input not in places:
                    return np.full(shapes, YES, dtype=np.uint8)
                one, two = (
                    spread(samples[places[term.input]].values(term.path.steps), places[term.input])
                    for term in (left, right)
                )
                return np.where(_OPERATORS[op](one, two + float(offset or 0)), YES, 0).astype(np.uint8)

    def spread(vector: Numbers, axis: int) -> Numbers:
        row = vector[: shapes[axis]]
        return row[:, None] if axis == 0 else row[None, :]

    return float((judged(forest.guard) == YES).mean())
