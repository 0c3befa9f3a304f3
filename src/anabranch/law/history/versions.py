"""Which versions of a path's results a qualifier gives (LAWS 5.2 and 5.4).

A qualifier stands behind a step and speaks of that step's results.
It looks at the chains that stand between where the step starts and what it reaches:

* A node that the step reaches counts as a result in every version of the chains directly around it, up to its parent.
  A version is seen through the step and its predicates; what in it is no result does not show.
* `#v`: each of these chains gives its version `v`.
  Where chains stand directly around one another each one gives it for itself, all others showing their newest: the
  qualifier goes to every replacement at nesting level zero (history paper, 7), and a region that has only one version
  does not hide what happens inside it.
* `?t`, `?[t]`: what lived then; lives inside one another are cut, so there is nothing to choose.
* A result outside of any chain has version 0 only, and lives since it came.
* A result inside another result goes with it, and chains in there do not count.
* Chains around an ancestor of a result that the step does not reach do not count either: what they hold is not whole
  results (so `./a/b#1` in the history paper's section 3 is cleared at t4).

`$x#1`, `.#1`, and steps along `self` and `parent` speak of a node that is there already: its versions are the elements
of the same name, or nodes of the same kind, in the other versions of the chain directly around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.language import ast
from anabranch.law.history.view import Lives, NodeVersion
from anabranch.law.paths import Namespaces, fulfils, step
from anabranch.law.slices import Slice, WholeNeeded
from anabranch.stream.tree import (
    Attribute,
    Child,
    Comment,
    Document,
    Element,
    Instruction,
    Node,
    Text,
    descendants,
    in_document_order,
)
from anabranch.values.sequences import NODES, Value, Values

Holds = Callable[[Value], bool]
"""Whether a node fulfils the predicates between step and qualifier."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A qualifier that is evaluated at a moment."""

    qualifier: ast.Qualifier
    now: Fraction
    lives: Lives

    def gives(self, node: Value) -> bool:
        """Whether a node is in a version asked for."""
        standing = self._standing(node)
        if self.qualifier.kind == "version":
            return self._counted([] if standing is None else [each for each in standing.levels if each])
        return standing is None or self._lived(standing)

    def _standing(self, node: Value) -> NodeVersion | None:
        """None for what was always there: roots, documents, and what a query has made."""
        match node:
            case Attribute(parent=Element() as owner) if owner in self.lives.origin:
                # it came with its element, and stands in no chain of its own
                return NodeVersion((), None, self.lives.origin[owner].start, self.lives.standing[owner].end)
            case Element() | Text() | Comment() | Instruction():
                return self.lives.standing.get(node)
            case _:
                return None

    def _counted(self, replaced: Sequence[int]) -> bool:
        """Whether a version is asked for; `replaced` are its numbers in the chains where it is not the newest."""
        most = int(self.qualifier.amount.text)
        if not replaced:
            return most == 0 or self.qualifier.window
        return len(replaced) == 1 and (replaced[0] <= most if self.qualifier.window else replaced[0] == most)

    def _lived(self, standing: NodeVersion) -> bool:
        then = self.now - self.qualifier.amount.exact
        ended = standing.end is not None and standing.end <= then
        return not ended and (self.qualifier.window or standing.start <= then)

    # --- steps --------------------------------------------------------------------------------------------

    def step(self, starts: Sequence[Node], taken: ast.Step, namespaces: Namespaces, holds: Holds) -> list[Node]:
        """What a step with a qualifier reaches, in document order."""
        if taken.axis in ("child", "descendant"):
            return list(in_document_order(list(_Reach(self, taken, namespaces, holds).of(starts))))
        reached = [each for start in starts for each in step(start, taken, namespaces)]
        return [each for each in self.nodes(reached) if holds(each)]

    def versions(self, values: Sequence[Value]) -> Values:
        """The versions of values that are there already; nodes come in document order."""
        nodes = [each for each in values if isinstance(each, NODES)]
        return [each for each in values if self.gives(each)] if len(nodes) < len(values) else list(self.nodes(nodes))

    def nodes(self, nodes: Sequence[Node]) -> list[Node]:
        return in_document_order([each for node in nodes for each in self._versions(node)])

    def _versions(self, node: Node) -> Iterator[Node]:
        standing = self._standing(node)
        if standing is None or standing.chain is None:
            if self.gives(node):
                yield node
            return
        assert isinstance(node.parent, Element)
        for each in self.lives.everything[node.parent]:
            other = self.lives.standing[each]
            elsewhere = other.chain is standing.chain and other.levels != standing.levels and _alike(each, node)
            if (each is node or elsewhere) and self.gives(each):
                yield each


def _alike(one: Node, other: Node) -> bool:
    if isinstance(one, Element) and isinstance(other, Element):
        return one.name == other.name
    return type(one) is type(other)


@dataclass(slots=True)
class _Reach:
    """Goes down from where a step starts."""

    asked: Asked
    taken: ast.Step
    namespaces: Namespaces
    holds: Holds

    def of(self, starts: Sequence[Node]) -> dict[Node, None]:
        found: dict[Node, None] = {}
        tops: dict[Node, bool] = {}
        for start in in_document_order(starts):
            if (top := _inside(start, tops)) is None:
                self.look(start, found, tops)
            elif tops[top]:
                found.update(dict.fromkeys(self.plainly(start)))
        return found

    def look(self, host: Node, found: dict[Node, None], tops: dict[Node, bool]) -> None:
        """Collect results from all versions of a node's content; descend into a node that is none only if it shows."""
        for each in self.standing_in(host):
            shown = self.asked.lives.standing[each].shown if each in self.asked.lives.standing else True
            given = self.asked.gives(each)
            if (shown or given) and self.fits(each):
                tops[each] = given
                if given:
                    found[each] = None
                    found.update(dict.fromkeys(self.plainly(each) if self.deep else ()))
            elif shown and self.deep:
                self.look(each, found, tops)

    @property
    def deep(self) -> bool:
        return self.taken.deep or self.taken.axis == "descendant"

    def standing_in(self, host: Node) -> Sequence[Child]:
        match host:
            case Element():
                return self.asked.lives.everything.get(host, host.children)
            case Document():
                return host.children
            case _:
                return ()

    def plainly(self, start: Node) -> Iterator[Node]:
        """The nodes that the step reaches inside a result, in the versions that show."""
        if isinstance(start, Element | Document):
            below = descendants(start) if self.deep else iter(start.children)
            yield from (each for each in below if self.fits(each))

    def fits(self, node: Node) -> bool:
        return fulfils(node, self.taken.test, self.taken.axis, self.namespaces) and self.holds(node)


def _inside(node: Node, tops: dict[Node, bool]) -> Node | None:
    """The outermost result that a node is in, or is."""
    found: Node | None = None
    at: Node | None = node
    while at is not None:
        found = at if at in tops else found
        at = at.parent
    return found


def cut(
    tail: Sequence[ast.Tail],
) -> tuple[tuple[ast.Predicate, ...], ast.Qualifier | None, tuple[ast.Predicate, ...]]:
    """The predicates before the qualifier, the qualifier, and those behind it; a step has one at most."""
    predicates = [each for each in tail if isinstance(each, ast.Predicate)]
    for place, each in enumerate(tail):
        if isinstance(each, ast.Qualifier):
            return tuple(predicates[:place]), each, tuple(predicates[place:])
    return tuple(predicates), None, ()


def within(part: Slice | None, reached: Sequence[Value]) -> Values:
    """What a qualifier gives in one entry.

    Other versions of the entry itself are entries, too, so a result among these needs the whole stream.
    """
    if part is not None:
        for each in reached:
            if isinstance(each, NODES) and each.parent is part.item.parent and each is not part.item:
                raise WholeNeeded
    return list(reached)
