"""How much of the past of its streams a query can ever need: what must be retained, and what may be forgotten.

For each stream there is a tree of the paths that the query may take (`PathNeed`), and for each path how far back it
looks (`Lookback`): at the versions that lived in the last `seconds`, and at `versions` before these.
The current version is always within reach, so a query without qualifiers looks back no seconds and no versions; `#1`
and `#[1]` look one version further back, `?60` and `?[60]` sixty seconds.
`(e#1)?60` needs both at once: the version that was the last but one a minute ago.

The tree is sound: no answer, now or later, can depend on what it does not reach (LAWS 5.2, 5.4).
It goes by local names, whatever their namespace, and does not look at what conditions say, so it may retain too much.
This is what the history paper calls short history lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.stream.tree import Child, Element, Text

FOREVER = Fraction(10**18)
"""More seconds than any stream lasts: all versions are looked at."""


@dataclass(frozen=True, slots=True, order=True)
class Lookback:
    """How far back a chain of versions is looked at: what lived in the last `seconds`, and `versions` before that."""

    versions: int = 0
    seconds: Fraction = Fraction(0)

    def covers(self, other: Lookback) -> bool:
        """Whether nothing within reach of the other is out of reach of this one."""
        return self.versions >= other.versions and self.seconds >= other.seconds

    def kept(self, ends: Sequence[Fraction | None], now: Fraction) -> int:
        """How many versions of a chain are within reach, counted from the newest; `ends` are theirs, newest first.

        The newest version always is, even where the life of everything around it has ended: an old version of its
        surroundings shows it.
        """
        if not self.seconds:  # nothing ends later than now
            return 1 + self.versions
        since = now - self.seconds
        alive = sum(1 for end in ends if end is None or end > since)
        return max(alive, 1) + self.versions

    @property
    def words(self) -> str:
        if not self.seconds:
            return f"{self.versions + 1} versions" if self.versions else "current"
        if self.seconds >= FOREVER:
            return "all versions"
        lived = f"what lived in the last {Decimal(self.seconds.numerator) / self.seconds.denominator:f} s"
        return f"{lived} and {self.versions} before" if self.versions else lived


Lookbacks: TypeAlias = frozenset[Lookback]
"""Several of them, none covered by another; without any, nothing is needed."""
CURRENT = Lookback()


def needed(lookbacks: Iterable[Lookback]) -> Lookbacks:
    """The lookbacks that no other one covers."""
    found: list[Lookback] = []
    for each in sorted(set(lookbacks), reverse=True):
        if not any(other.covers(each) for other in found):
            found.append(each)
    return frozenset(found)


def kept(lookbacks: Lookbacks, ends: Sequence[Fraction | None], now: Fraction) -> int:
    """How many versions of a chain to retain, counted from the newest."""
    return max(each.kept(ends, now) for each in lookbacks)


def says(lookbacks: Lookbacks) -> str:
    """Lookbacks in words."""
    return "; ".join(each.words for each in sorted(lookbacks))


StepAxis: TypeAlias = Literal["child", "descendant", "attribute"]


@dataclass(eq=False, slots=True)
class PathNeed:
    """A step of a query's paths: how far back the chains that it finds are looked at, and the steps that follow it.

    The tree's root is the document of a stream.
    A tree is filled while it is derived (`needs_of`), and does not change afterwards.
    """

    label: str = ""
    """The local name of an element or attribute, `*`, `text()` or `node()`."""
    axis: StepAxis = "child"
    parent: PathNeed | None = None
    reaches: set[Lookback] = field(default_factory=set)
    """Lookbacks at the chains that this step passes through."""
    below: set[Lookback] = field(default_factory=set)
    """Lookbacks at chains anywhere below, where all content of what the step finds is copied, or taken as text."""
    steps: dict[tuple[StepAxis, str], PathNeed] = field(default_factory=dict)
    touched: bool = False
    """Whether an answer depends on the nodes found here, and not only on nodes below them: see `beyond_entries`."""

    def step(self, axis: StepAxis, label: str) -> PathNeed:
        """The step of this kind that follows; a new one where there was none."""
        if (axis, label) not in self.steps:
            self.steps[axis, label] = PathNeed(label, axis, self)
        return self.steps[axis, label]

    def tree(self) -> Iterator[tuple[int, PathNeed]]:
        """This and all steps that follow, each with its depth; iterative, because a path may have any length."""
        pending = [(0, self)]
        while pending:
            depth, each = pending.pop()
            yield depth, each
            pending += [(depth + 1, step) for step in reversed(each.steps.values())]

    @property
    def words(self) -> str:
        """What is retained here, in words."""
        if self.axis == "attribute":
            return ""
        deep = needed(self.below)
        whole = "whole" if deep == {CURRENT} else f"whole: {says(deep)}" if deep else ""
        return ", ".join(filter(None, (says(needed(self.reaches)), whole)))

    @property
    def top(self) -> PathNeed:
        """The document."""
        place = self
        while place.parent is not None:
            place = place.parent
        return place

    @property
    def path(self) -> str:
        """The path from the document to here."""
        steps: list[str] = []
        place = self
        while place.parent is not None:
            name = f"@{place.label}" if place.axis == "attribute" else place.label
            steps.append(f"{'//' if place.axis == 'descendant' else '/'}{name}")
            place = place.parent
        return "".join((place.label, *reversed(steps)))


@dataclass(frozen=True, slots=True)
class Needs:
    """What a query needs of its streams."""

    streams: Mapping[str, PathNeed]
    evaluates_back: bool = False
    """Whether an expression with variables is evaluated again at earlier moments, which must then be known apart."""

    def seconds(self, stream: str) -> tuple[Fraction, ...]:
        """After how many seconds a change of the stream may change an answer once more, by time alone; ascending."""
        found = {reach.seconds for _, each in self.streams[stream].tree() for reach in (*each.reaches, *each.below)}
        return tuple(sorted(each for each in found if 0 < each < FOREVER))

    def lines(self) -> Iterator[tuple[str, str]]:
        """Each stream with a line in words for each path that is looked at: `stream("s")//a/b: 2 versions`."""
        for stream, tree in self.streams.items():
            for _, each in tree.tree():
                if each.words:
                    yield stream, f"{each.path}: {each.words}"


def beyond_entries(tree: PathNeed, root: str) -> bool:
    """Whether an answer depends on nodes above the stream's entries: its root element, named `root`, or its document.

    If not, the answer for all entries together is the sequence of the answers for each entry.
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
    """The levels at which the nodes of a step may stand."""
    is_root = step.label in (root, "*", "node()")
    found: set[int] = set()
    for level in start:
        if level == _DOCUMENT and is_root:
            found.add(_ROOT)
        if level > _DOCUMENT or step.axis == "descendant":
            found.add(_BELOW)
    return frozenset(found)


# --- following a document down the tree -----------------------------------------------------------------------


class Visibility:
    """What a query can see of an element and of its content; `of` gives the visibility of a stream's document.

    It is a state of the automaton whose letters are local names; states are made when first asked for, and cached.
    They follow from the query and the names from the root down, so no checkpoint needs to hold them.
    """

    __slots__ = ("_children", "_nodes", "_passing", "_table", "chains", "seen", "whole")

    def __init__(
        self, nodes: frozenset[PathNeed], passing: frozenset[PathNeed], around: Lookbacks, table: _Table
    ) -> None:
        self._nodes, self._passing, self._table = nodes, passing, table
        self._children: dict[str, Visibility] = {}
        self.whole: Lookbacks = needed((*around, *(each for node in nodes for each in node.below)))
        """How far back everything below the element is looked at; nothing where only parts of it are."""
        self.chains: Lookbacks = needed((*self.whole, *(each for step in self._steps() for each in step.reaches)))
        """How far back a chain that stands in the element is looked at; nothing where the query cannot see it."""
        self.seen: bool = bool(nodes or around)
        """Whether the query can find the element itself, and not only what is below it."""

    @staticmethod
    def of(tree: PathNeed) -> Visibility:
        """The visibility of the document of a stream, of which a query needs this much."""
        return Visibility(frozenset((tree,)), frozenset(), frozenset(), {})

    @property
    def blind(self) -> bool:
        """Whether the query can find nothing in the element, now or later."""
        return not self.chains

    def into(self, name: str) -> Visibility:
        """The visibility of a child element with this local name."""
        if name not in self._children:
            found = frozenset(step for step in self._steps() if step.label in (name, "*", "node()"))
            passing = self._passing | {
                step for node in self._nodes for step in node.steps.values() if step.axis == "descendant"
            }
            key = found, passing, self.whole
            if key not in self._table:
                self._table[key] = Visibility(*key, self._table)
            self._children[name] = self._table[key]
        return self._children[name]

    def finds(self, child: Child) -> bool:
        """Whether the query can find a child that is no element."""
        assert not isinstance(child, Element)
        labels = ("text()", "node()") if isinstance(child, Text) else ("node()",)
        return bool(self.whole) or any(step.label in labels for step in self._steps())

    def _steps(self) -> Iterable[PathNeed]:
        for node in self._nodes:
            yield from (each for each in node.steps.values() if each.axis != "attribute")
        yield from self._passing


_Table = dict[tuple[frozenset[PathNeed], frozenset[PathNeed], Lookbacks], Visibility]
