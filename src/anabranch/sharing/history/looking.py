"""The walk over a query that finds out where it may look: the tree of its paths, with what each may ask of the past.

An expression's nodes are followed as the places of the tree that they may come from.
Where they are copied, compared or computed with, all below them is looked at; where only their number or existence
counts, they alone.
Under `(e)?t`, which evaluates over the document of `t` seconds ago, everything reaches so much further back.

Functions are read once per places of their arguments, so functions that call others twice cost no more than others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from anabranch.language import ast
from anabranch.sharing.history.needs import Axis, Needs, PathNeed, Reach

_Place: TypeAlias = tuple[PathNeed, Fraction]
"""Where a node comes from, and how many seconds back the document is that it was found in."""
_Places: TypeAlias = tuple[_Place, ...]
"""Without duplicates, in the order found."""

_COUNTING = frozenset({"count", "exists", "empty", "not", "boolean", "name", "local-name"})
"""Functions that look at nothing below the nodes they are given."""


def needs_of(query: ast.Query) -> Needs:
    """What a checked query can ever need of its streams."""
    walk = _Walk({each.name: each for each in query.functions})
    walk.look(query.body, _Scope())
    return Needs(walk.streams)


@dataclass(frozen=True, slots=True)
class _Scope:
    variables: Mapping[str, _Places] = field(default_factory=dict)
    context: _Places = ()
    ago: Fraction = Fraction(0)
    """How many seconds back the document is that is looked at."""

    def bind(self, name: str, places: _Places) -> _Scope:
        return replace(self, variables={**self.variables, name: places})


class _Walk:
    def __init__(self, functions: Mapping[str, ast.Function]) -> None:
        self.streams: dict[str, PathNeed] = {}
        self._functions = functions
        self._calls: dict[tuple[str, tuple[_Places, ...], Fraction], _Places] = {}

    def look(self, expression: ast.Expression, scope: _Scope) -> None:
        """All of what the expression finds is looked at."""
        _look_below(self.visit(expression, scope), scope)

    def visit(self, expression: ast.Expression, scope: _Scope) -> _Places:
        """Where the nodes of an expression may come from; what is looked at on the way is noted."""
        match expression:
            case ast.String() | ast.Number():
                return ()
            case ast.Variable(name):
                return scope.variables[name]
            case ast.ContextItem():
                return scope.context
            case ast.Root():
                return _united(((_top(each), ago),) for each, ago in scope.context)
            case ast.Source(kind, name):
                return _touched(self._document(name, scope)) if kind == "stream" else ()
            case ast.Sequence(items):
                return _united(self.visit(each, scope) for each in items)
            case ast.Call(name, arguments):
                return self._call(name.removeprefix("fn:"), arguments, scope)
            case ast.Filter(base, tail):
                return self._filter(base, tail, scope)
            case ast.Path(start, steps):
                places = self._start(start, scope)
                for step in steps:
                    places = self._tail(self._step(places, step, scope), step.tail, scope)
                return _touched(places)
            case ast.Arithmetic(first, rest):
                for each in (first, *(operand for _, operand in rest)):
                    self.look(each, scope)
                return ()
            case ast.Negation(operand):
                self.look(operand, scope)
                return ()
            case ast.Comparison(_, left, right):
                self.look(left, scope)
                self.look(right, scope)
                return ()
            case ast.And(operands) | ast.Or(operands):
                for each in operands:
                    self.visit(each, scope)
                return ()
            case ast.If(condition, then, otherwise):
                self.visit(condition, scope)
                return _united((self.visit(then, scope), self.visit(otherwise, scope)))
            case ast.Quantified(_, bindings, condition):
                for name, source in bindings:
                    scope = scope.bind(name, self.visit(source, scope))
                self.visit(condition, scope)
                return ()
            case ast.Flwor():
                return self._flwor(expression, scope)
            case ast.ElementConstructor():
                self._constructor(expression, scope)
                return ()

    def _flwor(self, flwor: ast.Flwor, scope: _Scope) -> _Places:
        for clause in flwor.clauses:
            source = clause.source if isinstance(clause, ast.For) else clause.value
            scope = scope.bind(clause.variable, self.visit(source, scope))
        if flwor.where is not None:
            self.visit(flwor.where, scope)
        for key in flwor.order:
            self.look(key.key, scope)
        return self.visit(flwor.result, scope)

    def _constructor(self, element: ast.ElementConstructor, scope: _Scope) -> None:
        values = [each for attribute in element.attributes for each in attribute.value]
        for part in (*values, *element.content):
            match part:
                case ast.Enclosed(value):
                    self.look(value, scope)
                case ast.ElementConstructor():
                    self._constructor(part, scope)

    def _call(self, name: str, arguments: Sequence[ast.Expression], scope: _Scope) -> _Places:
        given = tuple(self.visit(each, scope) for each in arguments)
        if name in self._functions:
            key = name, given, scope.ago
            if key not in self._calls:
                function = self._functions[name]
                bound = dict(zip(function.parameters, given, strict=True))
                self._calls[key] = self.visit(function.body, _Scope(bound, ago=scope.ago))
            return self._calls[key]
        if name not in _COUNTING:
            _look_below(_united(given or (scope.context,)), scope)
        return ()

    # --- paths --------------------------------------------------------------------------------------------

    def _start(self, start: ast.Expression | None, scope: _Scope) -> _Places:
        match start:
            case None:
                return scope.context
            case ast.Source("stream", name):
                return self._document(name, scope)
            case _:
                return self.visit(start, scope)

    def _document(self, stream: str, scope: _Scope) -> _Places:
        document = self.streams.setdefault(stream, PathNeed(f'stream("{stream}")'))
        return ((document, scope.ago),)

    def _filter(self, base: ast.Expression, tail: Sequence[ast.Predicate | ast.Qualifier], scope: _Scope) -> _Places:
        if isinstance(base, ast.Path | ast.Filter | ast.Variable | ast.Source | ast.ContextItem | ast.Root):
            return self._tail(self.visit(base, scope), tail, scope)
        then = scope  # such a base is evaluated over the document of then
        for each in tail:
            if isinstance(each, ast.Qualifier):
                then = replace(then, ago=then.ago + Fraction(each.amount.text))
        found = tuple((place, max(ago, then.ago)) for place, ago in self.visit(base, then))
        _reach(found)
        return self._tail(found, [each for each in tail if isinstance(each, ast.Predicate)], scope)

    def _tail(self, places: _Places, tail: Sequence[ast.Predicate | ast.Qualifier], scope: _Scope) -> _Places:
        if tail:
            _touched(places)
        for each in tail:
            match each:
                case ast.Predicate(condition):
                    self.visit(condition, replace(scope, context=places))
                case ast.Qualifier("version", _, amount):
                    _reach(places, versions=int(amount.text))
                case ast.Qualifier(_, _, amount):
                    _reach(places, seconds=Fraction(amount.text))
        return places

    def _step(self, places: _Places, step: ast.Step, scope: _Scope) -> _Places:
        label = step.test.local if isinstance(step.test, ast.NameTest) else f"{step.test.kind}()"
        places = tuple((each, max(ago, scope.ago)) for each, ago in places)
        match step.axis:
            case "child":
                return _found(places, "descendant" if step.deep else "child", label)
            case "descendant":
                return _found(places, "descendant", label)
            case "descendant-or-self":
                return _united((places, _found(places, "descendant", label)))
            case "self" if step.deep:
                return _united((places, _found(places, "descendant", label)))
            case "self":
                return places
            case "attribute" | "parent":
                starts = _united((places, _found(places, "descendant", "node()"))) if step.deep else places
                if step.axis == "attribute":
                    return tuple((each.step("attribute", label), ago) for each, ago in _touched(starts))
                return _touched(_united(_parents(each) for each in starts))


def _found(places: _Places, axis: Axis, label: str) -> _Places:
    found = tuple((each.step(axis, label), ago) for each, ago in places if each.axis != "attribute")
    _reach(found)
    return found


def _parents(place: _Place) -> _Places:
    """Where the parents of nodes may stand; of what is somewhere below something, there or somewhere below it."""
    node, ago = place
    if node.parent is None:
        return ()
    above = ((node.parent, ago),)
    return above if node.axis != "descendant" else (*above, *_found(above, "descendant", "node()"))


def _touched(places: _Places) -> _Places:
    for each, _ in places:
        each.touched = True
    return places


def _reach(places: _Places, versions: int = 0, seconds: Fraction = Fraction(0)) -> None:
    for each, ago in places:
        each.reaches.add(Reach(versions, ago + seconds))


def _look_below(places: _Places, scope: _Scope) -> None:
    for each, ago in places:
        each.below.add(Reach(0, max(ago, scope.ago)))


def _top(place: PathNeed) -> PathNeed:
    while place.parent is not None:
        place = place.parent
    return place


def _united(groups: Iterable[_Places]) -> _Places:
    return tuple(dict.fromkeys(each for group in groups for each in group))
