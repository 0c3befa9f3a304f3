"""Aggregate: a function of the registry, such as `avg`, of every path, group by group.

Law (accents 4): items with the same canonical values at the paths `by` are a group; it comes out as one item with these
paths and, at every other path that is not excluded, the aggregate over all values there (LAWS 2.2).
So an added path is aggregated from then on, unless it was excluded.
Some paths may have a function of their own; without a function for the others, these are excluded.
A group comes out when it is complete: by a punctuation, or at the end.
A value that is no number drops its group with a failure (LAWS 2.4); a count takes any value.
A path without an aggregate, as one value has no `stddev`, is left out.

Signature (accents 6.2): the paths `by` are foundation, all others accumulators, and the excluded ones ignored.
Items: aggregated in canonical values, in exact fractions, and written in the unit of the output.
Accents: come out with descriptions over `by`; the function determines the effect of an alter, if there is one
(LAWS 4.2 a).
A drop that comes out purges the path from open groups (LAWS 4.2 g; the square is not claimed there).
Punctuations: come out, after the groups that they close.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import AggregateFunction, FunctionName
from anabranch.aggregates.partial import Partial
from anabranch.aggregates.written import partial_from_json, partial_to_json
from anabranch.algebra.accents.items import leaves, nodes, number
from anabranch.algebra.accents.sets import below
from anabranch.algebra.operators.operator import Ended, Work
from anabranch.algebra.operators.state import name_to_json, reading_from_json, reading_to_json
from anabranch.algebra.reactions.readings import Node, Reading, holds, led_to, rebuilt
from anabranch.algebra.reactions.signature import AccentSignature, Paths
from anabranch.errors import DynamicError
from anabranch.predicate import Predicate
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Document, Element, Name, Text, renumber
from anabranch.values.atomic import Rounded, spell
from anabranch.values.sequences import atomize


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The `function` of all paths except excluded ones, over the items that agree in `by`."""

    function: FunctionName | None
    by: tuple[Path, ...]
    exclude: frozenset[Path] = frozenset()
    named: tuple[tuple[Path, FunctionName], ...] = ()
    """Paths with a function of their own."""
    arity: int = 1

    @property
    def signature(self) -> AccentSignature:
        by = Paths.of(self.by)
        return AccentSignature(
            foundation=by,
            accumulator=by.others(),
            ignored=self.excluded,
            computes=self.excluded.others(),
            follows=self._follows,
        )

    def __str__(self) -> str:
        asked = [f"{function} of {path}" for path, function in self.named]
        if self.function is not None:
            but = f" but {', '.join(map(str, sorted(self.exclude)))}" if self.exclude else ""
            asked.append(f"{self.function} of all{' others' if asked else ''}{but}")
        by = f" by {', '.join(map(str, self.by))}" if self.by else ""
        return f"aggregate{by}: {', '.join(asked)}"

    @property
    def excluded(self) -> Paths:
        """The paths that are not read."""
        if self.function is not None:
            return Paths.of(self.exclude)
        return Paths.of((*self.by, *(path for path, _ in self.named))).others()

    def of(self, path: Path) -> AggregateFunction:
        """The function of a path that is not excluded."""
        own = next((function for each, function in self.named if below(path, each)), self.function)
        assert own is not None, "a path without a function is excluded"
        return AGGREGATES[own]

    def start(self) -> Work:
        return _Groups(self)

    def _follows(self, path: Path, by: Affine) -> Affine | None:
        return by if path in Paths.of(self.by) else self.of(path).follows(by)


@dataclass(slots=True)
class _Group:
    """The grouping paths of a group, and the partial aggregates of all others."""

    head: Reading
    partials: dict[Path, Partial] = field(default_factory=dict)
    names: dict[Path, tuple[Name, ...]] = field(default_factory=dict)

    def take(self, path: Path, texts: Iterable[str], needs: str) -> None:
        """Add values at a path."""
        known = self.partials.get(path, Partial())
        for text in texts:
            known = known.merge(_partial(text, known.count, needs))
        self.partials[path] = known


class _Groups:
    """The open groups, in the order of their first items."""

    def __init__(self, operator: Aggregate) -> None:
        self.failures: list[DynamicError] = []
        self._operator = operator
        self._by = Paths.of(operator.by)
        self._excluded = operator.excluded
        self._open: dict[tuple[tuple[str, ...], ...], _Group] = {}

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        key = self._key(reading)
        group = self._open.get(key)
        if group is None:
            group = self._open[key] = _Group(Reading(rebuilt(reading.tree, self._is_by), reading.maps))
        for path in leaves(reading.tree):
            if path not in self._by and path not in self._excluded:
                group.take(path, reading.texts(path), self._operator.of(path).needs)
                group.names.setdefault(path, _names(next(nodes(reading.tree, path))))
        return ()

    def forget(self, input: int, path: Path, where: Predicate) -> None:
        gone = Paths.of((path,))
        for group in self._open.values():
            if holds(where, group.head):
                group.partials = {each: known for each, known in group.partials.items() if each not in gone}

    def close(self, closed: Predicate, has_ended: Ended) -> Iterable[Reading]:
        done = [key for key, group in self._open.items() if holds(closed, group.head)]
        results = map(self._result, (self._open.pop(key) for key in done))
        return [each for each in results if each is not None]

    def save(self) -> list[Any]:
        return [
            [
                reading_to_json(group.head),
                [[list(path.steps), partial_to_json(known)] for path, known in group.partials.items()],
                [[list(path.steps), *map(name_to_json, names)] for path, names in group.names.items()],
            ]
            for group in self._open.values()
        ]

    def restore(self, rows: Iterable[Any]) -> None:
        for head, partials, names in rows:
            reading = reading_from_json(head)
            self._open[self._key(reading)] = _Group(
                reading,
                {Path(tuple(steps)): partial_from_json(known) for steps, known in partials},
                {Path(tuple(steps)): tuple(Name(*each) for each in found) for steps, *found in names},
            )

    def _key(self, reading: Reading) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(reading.texts(path)) for path in self._operator.by)

    def _is_by(self, steps: tuple[str, ...], node: Node) -> bool | None:
        path = Path(steps)
        return True if path in self._by else None if isinstance(node, Element) and self._by.meets(path) else False

    def _result(self, group: _Group) -> Reading | None:
        tree, maps = rebuilt(group.head.tree, lambda *_: True), dict(group.head.maps)
        for path, known in group.partials.items():
            try:
                found = self._operator.of(path).value(known)
            except DynamicError as error:
                self.failures.append(error)
                return None
            maps.pop(path, None)
            for value in atomize(found):
                text = spell(value)
                if isinstance(value, Rounded):
                    text, maps[path] = "0", Affine(Fraction(1), value.exact)  # not rounded before it leaves
                _place(tree, group.names[path], path.steps[-1].startswith("@"), text)
        renumber(tree)
        return Reading(tree, maps)


def _partial(text: str, order: int, needs: str) -> Partial:
    """The partial aggregate of one value, which is a quotient after some unit changes."""
    value = number(text)
    return Partial.of(value if isinstance(value, Fraction) else text, order, needs=needs)


def _names(node: Node) -> tuple[Name, ...]:
    """The names from just below the item down to a node."""
    names: list[Name] = []
    at: Node | Document | None = node
    while at is not None and not isinstance(at, Document) and at.parent is not None:
        names.append(at.name)
        at = at.parent
    return tuple(reversed(names))


def _place(tree: Element, names: Sequence[Name], is_attribute: bool, text: str) -> None:
    """Put a value into a tree, creating missing elements on the way."""
    *above, last = names
    at = led_to(tree, above)
    if is_attribute:
        at.set(last, text)
    else:
        leaf = Element(last)
        leaf.append(Text(text))
        at.append(leaf)
