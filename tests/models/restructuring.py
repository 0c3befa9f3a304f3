"""The optimised form over items (sharing paper, 3.2.3): a stream that was selected for a query, and what is left to do.

Production keeps the plain form over items, because a stream is shared by several queries; over windows it has the
optimised one (`sharing/restructure.py`).

A condition is left out where this does not change the answer, for one of two reasons:

* every item that is sent fulfils it (a `where`, a predicate of the loop);
* the expression under it returns nothing where it does not hold: `if ($p/b > 1) then $p/a else ()` is `$p/a` if `a` is
  sent only where `b > 1`.

Both are proven by an *anchor*, an element without which the expression returns nothing: wherever the anchor is sent,
the condition holds. The anchor of `<hit/>` is the item itself.
Only conditions that are understood exactly are left out; conditions on elements inside an item never are, for elements
are sent by what holds for the item as a whole (LAWS, case 4).

First all such conditions are left out, which decides what is sent and so where anchors are; those that cannot be proven
are put back, until all others are proven.
A query of any other form than one loop over the items is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import rebuild
from anabranch.predicate import Predicate, implies, not_
from anabranch.sharing.loops import (
    Loop,
    conjunction,
    conjuncts_of,
    loop_of,
    names_of,
    predicates,
    split,
    with_predicates,
)
from anabranch.sharing.match import matches
from anabranch.sharing.normalize import settled, unwindowed
from anabranch.sharing.restructure import over_windows
from anabranch.sharing.rules.conditions import CONTEXT, Names, StreamNodes, locate
from anabranch.sharing.rules.derive import derive
from anabranch.sharing.tree import ITEM, OutputAnnotation, PropertyTree, Steps, both, union_of
from anabranch.stream.schema import Schema

_MOST_ATTEMPTS = 8
"""After so many attempts to put conditions back, a query is left as it is."""


@dataclass(frozen=True, slots=True)
class Restructured:
    """What is sent to a subscriber, and the query that makes its answer from that."""

    tree: PropertyTree
    query: ast.Query


def restructure(query: ast.Query, schema: Schema | None = None) -> Restructured:
    """The optimised form of a checked query over one stream; the plain one where nothing can be left out."""
    plain = derive(query, schema)
    loop = loop_of(query)
    if plain.window or plain.aggregates:
        read = over_windows(query, plain)
        return Restructured(*read) if read else Restructured(unwindowed(plain), query)
    read = _over_items(loop, plain) if loop and all(each.path for each in plain.outputs) else None
    return Restructured(*read) if read and matches(plain, read[0]) else Restructured(plain, query)


def _over_items(loop: Loop, plain: PropertyTree) -> tuple[PropertyTree, ast.Query] | None:
    """The optimised tree of a query over items, and the restructuring query."""
    asked_again: list[ast.If] = []
    for _ in range(_MOST_ATTEMPTS):
        attempt = _Attempt(plain, loop, asked_again)
        outputs = attempt.outputs()
        if outputs is None or not _is_proven(outputs, [item_of(loop)], attempt.selection):
            return None
        needed = [each for each, anchors, gone in attempt.gone if not _is_proven(outputs, anchors, gone)]
        if not needed:
            return replace(plain, outputs=outputs), attempt.query
        asked_again += needed
    return None


def item_of(loop: Loop) -> Steps:
    """The path of the items that a loop runs over."""
    return tuple(step.test.local for step in loop.source.steps if isinstance(step.test, ast.NameTest))


def _is_proven(outputs: Iterable[OutputAnnotation], anchors: Iterable[Steps], condition: Predicate) -> bool:
    """Whether the condition holds wherever one of the anchors is sent."""
    return all(implies(_sent(outputs, anchor), condition) for anchor in anchors)


def _sent(outputs: Iterable[OutputAnnotation], path: Steps) -> Predicate:
    """The condition under which an element is sent: with anything below it, or within an element that is sent whole."""
    return union_of(
        each.condition
        for each in outputs
        if each.path[: len(path)] == path or (each.whole and path[: len(each.path)] == each.path)
    )


class _Attempt:
    """A restructuring query without all conditions that may be left out, except those of some branches."""

    def __init__(self, plain: PropertyTree, loop: Loop, asked_again: list[ast.If]) -> None:
        self.plain = plain
        self.item = item_of(loop)
        self.asked_again = asked_again
        self.pieces: list[tuple[ast.Expression, Predicate]] = []
        """The expressions that it consists of, each with the conditions under which it stands in the original."""
        self.gone: list[tuple[ast.If, list[Steps], Predicate]] = []
        """Conditions of branches that were left out, with the anchors of what stands under them."""
        here = StreamNodes(self.item)
        of_items, tail = split(predicates(loop.source), {CONTEXT: here})
        self.names: Names = names_of(loop.flwor.clauses[1:], {loop.first.variable: here}, {})
        of_rounds, where = split(loop.where(), self.names)
        self.selection = both(of_items, of_rounds)
        """The conditions on the loop that were left out."""
        first = replace(loop.first, source=with_predicates(loop.source, tail))
        clauses = (first, *loop.flwor.clauses[1:])
        self.loop = replace(loop.flwor, clauses=clauses, where=conjunction(where))
        self.query = loop.replaced(replace(self.loop, result=self.result(loop.flwor.result, self.selection)))

    # --- what is returned ---------------------------------------------------------------------------------

    def result(self, expression: ast.Expression, when: Predicate) -> ast.Expression:
        """An expression that returns the same where `when` holds; its pieces are noted."""
        match expression:
            case ast.ElementConstructor():
                self.pieces.append((ast.ElementConstructor(expression.name), when))
                visited: ast.Expression = rebuild(expression, lambda part: self.content(part, when))
                return visited
            case ast.Sequence(items):
                return replace(expression, items=tuple(self.result(each, when) for each in items))
            case ast.If(condition, then, otherwise) if expression not in self.asked_again:
                known, others = split(conjuncts_of(condition), self.names)
                if not others and implies(when, known):
                    return self.result(then, when)
                if not others and implies(when, not_(known)):
                    return self.result(otherwise, when)
                if not others and otherwise == ast.Sequence(()):
                    inner = self.result(then, both(when, known))
                    self.gone.append((expression, list(self.anchors(inner)), known))
                    return inner
            case _:
                pass
        self.pieces.append((expression, when))
        return expression

    def content(self, part: Any, when: Predicate) -> Any:
        """A part of a constructor."""
        match part:
            case ast.Enclosed(value):
                return replace(part, value=self.result(value, when))
            case ast.ElementConstructor():
                return self.result(part, when)
            case _:
                return rebuild(part, lambda inner: self.content(inner, when))

    def anchors(self, expression: ast.Expression) -> Iterator[Steps]:
        """The anchors: elements such that nothing is returned, nor looked at, where none of them is sent."""
        match expression:
            case ast.Sequence(items):
                for each in items:
                    yield from self.anchors(each)
            case ast.Flwor((ast.For(_, source), *_)):
                yield from self.anchors(source)
            case ast.Path() | ast.Variable() if found := locate(expression, self.names):
                yield found.path[: min((depth for depth, _ in found.tails), default=len(found.path))]
            case _:
                yield self.item

    # --- what is sent -------------------------------------------------------------------------------------

    def outputs(self) -> tuple[OutputAnnotation, ...] | None:
        """What the pieces need, each under its conditions; None where that is more than items."""
        found: list[OutputAnnotation] = []
        for piece, when in self.pieces:
            part = derive(replace(self.query, body=replace(self.loop, result=piece)), self.plain.schema)
            if part.window or part.aggregates or any(each.path[:ITEM] != self.item for each in part.outputs):
                return None
            found += [replace(each, condition=both(when, each.condition)) for each in part.outputs]
        return settled(found, self.plain.schema)
