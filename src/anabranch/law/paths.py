"""Paths and inputs: how an evaluation gets at nodes, step by step, and what it does when that fails.

A path over a stream is taken item by item, so that an error in a predicate sets one item aside (LAWS 2.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import TypeVar, assert_never

from anabranch.errors import DynamicError, UsageError
from anabranch.language import ast
from anabranch.language.checks.unbounded import SETS, set_streams
from anabranch.language.rewrite import parts
from anabranch.law.env import Env
from anabranch.law.inputs import Arrival, Input, in_order
from anabranch.law.library.operators import OPERATOR_FUNCTIONS
from anabranch.law.slices import Slice, WholeNeeded, slice_of, slices
from anabranch.law.steps import Counting
from anabranch.stream.culprits import letter_for
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.reading.json_items import item_text
from anabranch.stream.reading.json_names import is_spelled
from anabranch.stream.tree import (
    Attribute,
    Comment,
    Document,
    Element,
    Instruction,
    Node,
    Text,
    descendants,
    in_document_order,
)
from anabranch.values.atomic import JsonNumber, as_number
from anabranch.values.sequences import NODES, Value, Values, atom, truth

Namespaces = Mapping[str, str]
_PARENTS = Element, Document  # no union, which would be made anew for every node


def step(node: Node, taken: ast.Step, namespaces: Namespaces, outside: Sequence[Node] = ()) -> Iterator[Node]:
    """The nodes that a step reaches from `node`, its predicates not yet looked at; perhaps with duplicates.

    They come in the order of the axis; what is `outside` of items is not reached by the axes around a node.
    """
    starts: Iterator[Node] = _with_descendants(node) if taken.deep else iter((node,))
    for start in starts:
        for reached in _along(taken.axis, start, outside):
            if fulfils(reached, taken.test, taken.axis, namespaces):
                yield reached


def _with_descendants(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, _PARENTS):
        yield from descendants(node)


def _along(axis: ast.Axis, node: Node, outside: Sequence[Node]) -> Iterator[Node]:
    match axis:
        case "child":
            if isinstance(node, _PARENTS):
                yield from node.children
        case "attribute":
            if isinstance(node, Element):
                yield from node.attributes
        case "parent":
            yield from islice(_above(node, outside), 1)
        case "self":
            yield node
        case "descendant":
            if isinstance(node, _PARENTS):
                yield from descendants(node)
        case "descendant-or-self":
            yield from _with_descendants(node)
        case "ancestor":
            yield from _above(node, outside)
        case "ancestor-or-self":
            yield node
            yield from _above(node, outside)
        case "following-sibling" | "preceding-sibling":
            yield from _beside(node, outside, follows=axis == "following-sibling")
        case "following":
            yield from _following(node, outside)
        case "preceding":
            above = list(_above(node, outside))
            for each in (node, *above):
                for sibling in _beside(each, outside, follows=False):
                    yield from reversed(list(_with_descendants(sibling)))
        case _:
            assert_never(axis)


def _above(node: Node, outside: Sequence[Node]) -> Iterator[Node]:
    """The nodes around one, from the inside out."""
    at = node.parent
    while at is not None and not any(at is each for each in outside):
        yield at
        at = at.parent


def _beside(node: Node, outside: Sequence[Node], *, follows: bool) -> Iterator[Node]:
    """The siblings behind a node, or in front of it, the nearest first."""
    parent = node.parent
    if parent is None or isinstance(node, Attribute) or any(parent is each for each in outside):
        return
    place = next((place for place, each in enumerate(parent.children) if each is node), None)
    if place is not None:
        yield from parent.children[place + 1 :] if follows else reversed(parent.children[:place])


def _following(node: Node, outside: Sequence[Node]) -> Iterator[Node]:
    if isinstance(node, Attribute) and node.parent is not None:
        node = node.parent
        assert isinstance(node, Element)
        yield from descendants(node)
    for each in (node, *_above(node, outside)):
        for sibling in _beside(each, outside, follows=True):
            yield from _with_descendants(sibling)


_KINDS: Mapping[ast.NodeKind, tuple[type, ...]] = {
    "text": (Text,),
    "node": NODES,
    "comment": (Comment,),
    "processing-instruction": (Instruction,),
    "document-node": (Document,),
    "element": (Element,),
    "attribute": (Attribute,),
}


def fulfils(node: Node, test: ast.NameTest | ast.KindTest, axis: ast.Axis, namespaces: Namespaces) -> bool:
    """Whether a node passes a name or kind test."""
    match test:
        case ast.KindTest(kind, name):
            if name is not None and (not isinstance(node, Instruction) or node.target != name):
                return False
            return kind == "node" or isinstance(node, _KINDS[kind])
        case ast.NameTest(local, prefix):
            principal = Attribute if axis == "attribute" else Element
            if not isinstance(node, principal):
                return False
            if local not in ("*", node.name.local) and not is_spelled(local, node.name.local):
                return False
            if prefix is None:
                return local == "*" or node.name.uri == ("" if axis == "attribute" else namespaces.get("", ""))
            return prefix == "*" or node.name.uri == namespaces[prefix]


T = TypeVar("T")


class Walker(Counting):
    """Walks paths over the inputs of one query and collects its dead letters; `Evaluator` adds the rest."""

    def __init__(self, query: ast.Query, inputs: Mapping[str, Input], name: str | None = None) -> None:
        super().__init__()
        self.query = query
        self.inputs = inputs
        self.name = name
        self.as_they_come = False
        """Whether joins are answered as over streams that do not end: their results are in windows (LAWS 3.13)."""
        self.dead: list[DeadLetter] = []
        self.late: dict[Arrival, None] = {}
        streams = [part.name for part in parts(query) if isinstance(part, ast.Source) and part.kind == "stream"]
        self._named = tuple(dict.fromkeys(streams))
        """The streams in the order in which the query names them first, which decides ties (LAWS 1.2)."""
        self.outside: Sequence[Node] = [
            node for name, each in inputs.items() if name in streams for node in (each.root, each.document)
        ]
        """What is around the items of streams, which the axes around a node do not reach (LAWS 2.8)."""

    def alone(self, expression: ast.Expression, env: Env) -> Values:
        """The value of an expression that is evaluated apart."""
        return self.apart(partial(self.value, expression, env))

    def value(self, expression: ast.Expression, env: Env) -> Values:
        """The value of an expression."""
        raise AssertionError("the evaluator gives this")

    def context(self, env: Env) -> Value:
        """The context item, which must be there."""
        if env.context is None:
            raise DynamicError("'.' means nothing here", code="XPDY0002")
        return env.context

    # --- paths --------------------------------------------------------------------------------------------

    def path(self, expression: ast.Expression, env: Env) -> Values:
        """A path; over a stream it is taken item by item, so that an error concerns one item."""
        source = base_of(expression)
        if isinstance(source, ast.Source) and source.kind == "stream":
            self.grant_items(expression, len(self.input(source).arrivals))
            return [value for _, value in self.arrivals(expression, env)]
        if streams := self._set_streams(expression):
            self.grant_items(expression, sum(len(self.inputs[each].arrivals) for each in streams))
            return [value for _, value in self.arrivals(expression, env)]
        return self.walk(expression, env)

    def _set_streams(self, expression: ast.Expression) -> tuple[str, ...]:
        """The streams that a set is made of, which is taken item by item; none for what is no such set."""
        found = set_streams(expression)
        return found if all(each in self.inputs for each in found) else ()

    def arrivals(self, expression: ast.Expression, env: Env) -> list[tuple[Arrival | None, Value]]:
        """The values of an expression that flows, each with the item it comes from."""
        source = base_of(expression)
        if isinstance(source, ast.Source) and source.kind == "stream":
            given = slices(self.input(source))
        elif streams := self._set_streams(expression):
            given = self._merged_slices(streams)
        else:
            return [(self._arrival(value), value) for value in self.value(expression, env)]
        mark = len(self.dead)
        found: list[tuple[Arrival | None, Value]] = []
        try:
            for arrival, part in given:
                reached = self.guarded(arrival, partial(self.walk, expression, env, part))
                part.look_at_result(reached)
                found.extend((arrival, value) for value in reached)
        except WholeNeeded:
            del self.dead[mark:]
            return [(self._arrival(value), value) for value in self.over_whole(expression, env)]
        return found

    def _merged_slices(self, streams: Sequence[str]) -> Iterator[tuple[Arrival, Slice]]:
        """All items of several streams in the order of LAWS 1.2."""
        ranked = [each for each in self._named if each in streams]
        names = {id(self.inputs[each]): each for each in ranked}
        for element, stream in in_order([self.inputs[each] for each in ranked]):
            if isinstance(element, Arrival):
                yield element, slice_of(stream.root, element.item, names[id(stream)])

    def over_whole(self, expression: ast.Expression, env: Env) -> Values:
        """A path over all of a stream at once."""
        return self.walk(expression, env)

    def walk(self, expression: ast.Expression, env: Env, part: Slice | None = None) -> Values:
        """A path, step by step; with `part`, over one item as if it were all of its stream."""
        match expression:
            case ast.Source() if part is not None:
                return [part.document] if part.stream in ("", expression.name) else []
            case ast.Call(name, operands) if name in SETS:
                each_set = self.value if part is None else partial(self.walk, part=part)
                sets = [each_set(each, env) for each in operands]
                values = OPERATOR_FUNCTIONS[name](*sets)
                self.spend(len(values) + sum(map(len, sets)))
                return values
            case ast.Source():
                document = self.input(expression).document
                if expression.kind == "doc":
                    self.grant_document(document)
                return [document]
            case ast.Root():
                top = _root(self.context(env))
                self.look_at([top])
                return [top]
            case ast.Filter(base, tail):
                inner = base_of(base) is not base or isinstance(base, ast.Source)
                values = self.walk(base, env, part) if inner else self.value(base, env)
                return self._filter(values, tail, env, part)
            case ast.Path(start, steps):
                values = [self.context(env)] if start is None else self.walk(start, env, part)
                for each in steps:
                    values = self._step(values, each, env, part)
                return values
            case _:
                return self.value(expression, env)

    def _step(self, values: Values, taken: ast.Step, env: Env, part: Slice | None) -> Values:
        counted = any(isinstance(each, ast.Positional) for each in taken.tail)
        outside = self._outside(part)
        reached: list[Node] = []
        for value in values:
            if not isinstance(value, NODES):
                raise DynamicError("a step needs a node to start from", code="XPTY0019")
            if part is not None:
                part.look_at_step(value, taken)
            if counted:
                reached.extend(self._counted_step(value, taken, env, part))
            else:
                reached.extend(step(value, taken, env.namespaces, outside))
        if counted:
            return list(in_document_order(reached))
        self.look_at(reached)
        return self._filter(list(in_document_order(reached)), taken.tail, env, part)

    def _outside(self, part: Slice | None) -> Sequence[Node]:
        return self.outside if part is None else (*self.outside, *part.outside)

    def _counted_step(self, start: Node, taken: ast.Step, env: Env, part: Slice | None) -> Iterator[Node]:
        """The nodes of a step whose predicates ask for positions, which are counted anew from each starting node."""
        plain, outside = replace(taken, deep=False), self._outside(part)
        for node in _with_descendants(start) if taken.deep else (start,):
            reached = list(step(node, plain, env.namespaces, outside))
            self.look_at(reached)
            yield from (each for each in self._filter(list(reached), taken.tail, env, part) if isinstance(each, NODES))

    def look_at(self, nodes: Sequence[Node]) -> None:
        """Called with the nodes that each step reaches; subclasses may count or check them."""

    def _filter(self, values: Values, tail: Sequence[ast.Tail], env: Env, part: Slice | None) -> Values:
        for each in tail:
            assert not isinstance(each, ast.Qualifier)  # a query with qualifiers does not get here
            if part is not None:
                part.look_at_condition(values)
            if isinstance(each, ast.Positional):
                self.spend(len(values))
                places = enumerate(values, 1)
                values = [value for at, value in places if self._is_at(each.condition, env.at(value, at, len(values)))]
                continue
            if self._tests_apart:
                values = self.chosen_apart(values, partial(self._holds_at, each.condition, env))
                continue
            self.spend(len(values))
            values = [value for value in values if self._holds(each.condition, env.at(value))]
        return values

    def _holds_at(self, condition: ast.Expression, env: Env, value: Value) -> bool:
        return self._holds(condition, env.at(value))

    def _holds(self, condition: ast.Expression, env: Env) -> bool:
        try:
            return self._condition(condition, env)
        except DynamicError as error:
            raise error.given([env.context]) from None

    def _is_at(self, condition: ast.Expression, env: Env) -> bool:
        """Whether a predicate holds at a place: a number is the place that it asks for."""
        try:
            values = self.value(condition, env)
            return as_number(atom(values[0])) == env.position if _is_number(values) else truth(values)
        except DynamicError as error:
            raise error.given([env.context]) from None

    def _condition(self, condition: ast.Expression, env: Env) -> bool:
        values = self.value(condition, env)
        if _is_number(values):
            raise DynamicError(
                "a number as a predicate would be a position, which streams do not have", code="FORG0006"
            )
        return truth(values)

    # --- inputs, places and errors ------------------------------------------------------------------------

    def input(self, source: ast.Source) -> Input:
        if source.name not in self.inputs:
            known = ", ".join(f"'{name}'" for name in self.inputs) or "none"
            raise UsageError(f"no input is called '{source.name}'", hint=f"the inputs given are: {known}")
        return self.inputs[source.name]

    def input_of(self, expression: ast.Expression) -> Input | None:
        """The stream that an expression's nodes come from, where it is a path over one."""
        source = base_of(expression)
        return self.input(source) if isinstance(source, ast.Source) else None

    def input_with(self, arrivals: Sequence[Arrival | None]) -> Input | None:
        """The stream that all these items come from, where it is one: a variable may stand for it."""
        for each in self.inputs.values():
            if arrivals and all(arrival is not None and arrival.item in each.by_item for arrival in arrivals):
                return each
        return None

    def _arrival(self, value: Value) -> Arrival | None:
        """The item that a node is part of."""
        node = value if isinstance(value, NODES) else None
        while node is not None:
            for each in self.inputs.values():
                if isinstance(node, Element) and node in each.by_item:
                    return each.by_item[node]
            node = node.parent
        return None

    def guarded(self, arrival: Arrival | None, body: Callable[[], list[T]]) -> list[T]:
        """Run the round of one item; where it fails, it is set aside and gives nothing."""
        try:
            return self.apart(body)
        except DynamicError as error:
            self.set_aside(arrival, error)
            return []

    def set_aside(
        self, arrival: Arrival | None, error: DynamicError, held: Sequence[tuple[Arrival | None, Value]] = ()
    ) -> None:
        """Put a failed round among the dead letters, under the items at fault, or else the one it is named by."""
        items = [(each, node) for each, node in held if each is not None]
        self.dead.append(letter_for(error, items, shown, self.name, arrival))

    def note_late(self, arrival: Arrival | None) -> None:
        """Note an item that came too late for a time window."""
        if arrival is not None:
            self.late.setdefault(arrival)


def shown(arrival: Arrival) -> tuple[Place, str]:
    """An item as a dead letter shows it."""
    return arrival.place, item_text(arrival.item)


def base_of(expression: ast.Expression) -> ast.Expression | None:
    """What a path starts from, predicates and steps taken away; None for the context item."""
    match expression:
        case ast.Path(start):
            return None if start is None else base_of(start)
        case ast.Filter(base):
            return base_of(base)
        case _:
            return expression


def _is_number(values: Values) -> bool:
    """Whether a predicate's value is one number."""
    if len(values) != 1 or isinstance(values[0], bool):
        return False
    return isinstance(values[0], int | float | Decimal | JsonNumber)


def _root(value: Value) -> Node:
    if not isinstance(value, NODES):
        raise DynamicError("'/' needs a node", code="XPTY0020")
    node: Node = value
    while node.parent is not None:
        node = node.parent
    return node
