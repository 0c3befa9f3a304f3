"""Following a document down the tree of a query's needs: what the query can see at a place.

A *sight* belongs to an element, and says of its content what is to be kept: of chains that stand in it, how much of
their past; of elements, whether they are seen and what of their own content.
It is a state of the automaton whose letters are local names, made where it is first asked for and kept.
Sights follow from the query and the names from the root down, so no state needs to hold them.
"""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.sharing.history.needs import Need, PathNeed, needed
from anabranch.stream.tree import Child, Element, Text


class Sight:
    """What a query sees of an element and in it; `of` gives that of a stream's document."""

    __slots__ = ("_children", "_nodes", "_passing", "_table", "chains", "seen", "whole")

    def __init__(self, nodes: frozenset[PathNeed], passing: frozenset[PathNeed], around: Need, table: _Table) -> None:
        self._nodes, self._passing, self._table = nodes, passing, table
        self._children: dict[str, Sight] = {}
        self.whole: Need = needed((*around, *(each for node in nodes for each in node.below)))
        """Of all that is below, where all of it is looked at; else nothing."""
        self.chains: Need = needed((*self.whole, *(each for step in self._steps() for each in step.reaches)))
        """How much to keep of a chain that stands in the element; nothing where the query cannot see it."""
        self.seen: bool = bool(nodes or around)
        """Whether the query can find the element itself, not only what is below it."""

    @staticmethod
    def of(tree: PathNeed) -> Sight:
        """The sight of the document of a stream that a query needs this much of."""
        return Sight(frozenset((tree,)), frozenset(), frozenset(), {})

    @property
    def blind(self) -> bool:
        """Whether the query can find nothing in the element, now or later."""
        return not self.chains

    def into(self, name: str) -> Sight:
        """The sight of a child element with this local name."""
        if name not in self._children:
            found = frozenset(step for step in self._steps() if step.label in (name, "*", "node()"))
            passing = self._passing | {
                step for node in self._nodes for step in node.steps.values() if step.axis == "descendant"
            }
            key = found, passing, self.whole
            if key not in self._table:
                self._table[key] = Sight(*key, self._table)
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


_Table = dict[tuple[frozenset[PathNeed], frozenset[PathNeed], Need], Sight]
