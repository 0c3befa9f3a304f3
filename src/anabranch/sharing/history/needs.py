"""How much of which regions a query can ever need: for each stream, a tree of the paths that it may take.

A *reach* says how far back a chain of versions is looked at: at what lived in the last so many seconds, and at so many
versions before that.
The current version is always within reach, so a query without qualifiers has the reach of no seconds and no versions;
`#1` and `#[1]` reach one version further, `?60` and `?[60]` sixty seconds.
`(e#1)?60` needs both at once: the version that was the last but one a minute ago.
A *need* is a set of reaches, none of which says less than another.

The tree is sound: what it does not reach, no moment's answer can depend on, now or later (LAWS 5.2, 5.4).
It goes by local names, whatever their namespace, and does not look at what conditions say: so it may keep too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True, order=True)
class Reach:
    """What lived in the last `seconds`, and `versions` more before that."""

    versions: int = 0
    seconds: Fraction = Fraction(0)

    def covers(self, other: Reach) -> bool:
        return self.versions >= other.versions and self.seconds >= other.seconds

    def kept(self, ends: Sequence[Fraction | None], now: Fraction) -> int:
        """How many versions of a chain are within reach, counted from the newest; `ends` are theirs, newest first.

        The newest is, even where the life of all that is around it has ended: it is what an old version shows.
        """
        if not self.seconds:  # nothing ends later than now
            return 1 + self.versions
        since = now - self.seconds
        alive = sum(1 for end in ends if end is None or end > since)
        return max(alive, 1) + self.versions


Need: TypeAlias = frozenset[Reach]
CURRENT = Reach()


def needed(reaches: Iterable[Reach]) -> Need:
    """The need of several reaches: those that no other one covers."""
    found: list[Reach] = []
    for each in sorted(set(reaches), reverse=True):
        if not any(other.covers(each) for other in found):
            found.append(each)
    return frozenset(found)


def kept(need: Need, ends: Sequence[Fraction | None], now: Fraction) -> int:
    """How many versions of a chain to keep, counted from the newest."""
    return max(each.kept(ends, now) for each in need)


def says(need: Need) -> str:
    """A need in words."""
    return "; ".join(_words(each) for each in sorted(need))


def _words(reach: Reach) -> str:
    seconds, versions = reach.seconds, reach.versions
    if not seconds:
        return f"{versions + 1} versions" if versions else "current"
    lived = f"what lived in the last {Decimal(seconds.numerator) / seconds.denominator:f} s"
    return f"{lived} and {versions} before" if versions else lived


Axis: TypeAlias = Literal["child", "descendant", "attribute"]
Label: TypeAlias = str
"""The local name of an element or attribute, `*`, `text()` or `node()`."""


@dataclass(eq=False, slots=True)
class PathNeed:
    """Where a step leads, what is needed of the chains it finds there, and the steps that go on from it.

    The document at the top of a stream is one, too; whoever derives a tree fills it, and it does not change then.
    """

    label: Label = ""
    axis: Axis = "child"
    parent: PathNeed | None = None
    reaches: set[Reach] = field(default_factory=set)
    """Of chains that this step passes through."""
    below: set[Reach] = field(default_factory=set)
    """Of chains anywhere below, where all of what the step finds is looked at: copied, or taken as text."""
    steps: dict[tuple[Axis, Label], PathNeed] = field(default_factory=dict)
    touched: bool = False
    """Whether nodes found here count as such, and not only as the way to others: see `beyond_entries`."""

    def step(self, axis: Axis, label: Label) -> PathNeed:
        """The step of this kind from here; a new one where there was none."""
        if (axis, label) not in self.steps:
            self.steps[axis, label] = PathNeed(label, axis, self)
        return self.steps[axis, label]

    def tree(self) -> Iterator[tuple[int, PathNeed]]:
        """This and all steps from here on, each with its depth; a query may have a path of any length."""
        pending = [(0, self)]
        while pending:
            depth, each = pending.pop()
            yield depth, each
            pending += [(depth + 1, step) for step in reversed(each.steps.values())]

    @property
    def words(self) -> str:
        """What is needed here."""
        if self.axis == "attribute":
            return ""
        deep = needed(self.below)
        whole = "whole" if deep == {CURRENT} else f"whole: {says(deep)}" if deep else ""
        return ", ".join(filter(None, (says(needed(self.reaches)), whole)))

    @property
    def path(self) -> str:
        """The way here from the document."""
        steps: list[str] = []
        place: PathNeed | None = self
        while place is not None and place.parent is not None:
            steps.append(f"{'//' if place.axis == 'descendant' else '/'}{place._name}")
            place = place.parent
        assert place is not None
        return "".join((place.label, *reversed(steps)))

    @property
    def _name(self) -> str:
        return f"@{self.label}" if self.axis == "attribute" else self.label

    def __str__(self) -> str:
        said = f"{':' if self.reaches else ','} {self.words}" if self.words else ""
        return f"{'//' if self.axis == 'descendant' else ''}{self._name}{said}"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a query needs of its streams."""

    streams: Mapping[str, PathNeed]

    def seconds(self, stream: str) -> tuple[Fraction, ...]:
        """How long after a change of the stream time alone may change an answer again, in increasing order."""
        found = {reach.seconds for _, each in self.streams[stream].tree() for reach in (*each.reaches, *each.below)}
        return tuple(sorted(found - {Fraction(0)}))

    def lines(self) -> Iterator[tuple[str, str]]:
        """In words, each path that is looked at with its stream: `stream("s")//a/b: 2 versions`."""
        for stream, tree in self.streams.items():
            for _, each in tree.tree():
                if each.words:
                    yield stream, f"{each.path}: {each.words}"

    def __str__(self) -> str:
        return "\n".join(f"{'  ' * depth}{each}" for tree in self.streams.values() for depth, each in tree.tree())


def beyond_entries(tree: PathNeed, root: str) -> bool:
    """Whether nodes above the entries count: the stream's root element, which has this name, or its document.

    What does not look at them gives for all entries together what it gives for each, one after another.
    """
    pending: list[tuple[PathNeed, frozenset[int]]] = [(tree, frozenset((_DOCUMENT,)))]
    while pending:
        place, levels = pending.pop()
        if place.touched and not levels.isdisjoint((_DOCUMENT, _ROOT)):
            return True
        pending += [(each, _levels(each, levels, root)) for each in place.steps.values()]
    return False


_DOCUMENT, _ROOT, _BELOW = range(3)


def _levels(step: PathNeed, start: frozenset[int], root: str) -> frozenset[int]:
    """How far down a step may lead."""
    is_root = step.label in (root, "*", "node()")
    found: set[int] = set()
    for level in start:
        if level == _DOCUMENT and is_root:
            found.add(_ROOT)
        if level > _DOCUMENT or step.axis == "descendant":
            found.add(_BELOW)
    return frozenset(found)


def looks_at(tree: PathNeed, path: Path) -> bool:
    """Whether a path of an entry, or something above or below it, may be looked at; entries stand below the root.

    As in a query's lineage, a step to any depth counts where it may lead to the path itself.
    """
    found, deep = [tree], list[PathNeed]()  # what leads to the node so far, and what may lead to any node below it
    for name in (None, None, *path.steps):
        if any(each.below for each in found):
            return True
        steps = [step for each in found for step in each.steps.values()]
        deep += [step for step in steps if step.axis == "descendant"]
        found = [step for step in (*deep, *(each for each in steps if each.axis != "descendant")) if _leads(step, name)]
    return bool(found)


def _leads(step: PathNeed, name: str | None) -> bool:
    """Whether a step leads to an element or attribute of this name; None is an element of any name."""
    if name is None:
        return step.axis != "attribute" and step.label != "text()"
    local = name.rpartition(":")[2].removeprefix("@")
    return (step.axis == "attribute") == name.startswith("@") and step.label in (local, "*", "node()")
