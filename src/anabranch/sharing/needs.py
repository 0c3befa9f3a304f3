"""Which paths of its streams a query may read, found by a walk over the query.

The result is a tree of paths for each stream (`retention.py`): sound, and never less than the query reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.language.signatures import GIVING, OF_MESSAGES, PLACES
from anabranch.language.versions import ValuePast, is_closed, value_past
from anabranch.sharing.retention import FOREVER, Lookback, Needs, PathNeed, StepAxis

_Origin: TypeAlias = tuple[PathNeed, Fraction]
"""The step that found a node, and how many seconds old the document was that the query read."""
_Places: TypeAlias = tuple[_Origin, ...]
"""The possible origins of an expression's nodes: without duplicates, in the order found."""

_COUNTING = frozenset({"count", "exists", "empty", "not", "boolean", "name", "local-name", *OF_MESSAGES})
"""Functions that read nothing below their argument nodes."""


def needs_of(query: ast.Query, retain: Fraction | None = None) -> Needs:
    """The paths of its streams that a checked query can ever need.

    `retain` is how many seconds it looks back where it does not say how far; None for all that was.
    """
    walk = _Walk({each.name: each for each in query.functions}, FOREVER if retain is None else retain)
    walk.look((query.body,), _LookScope())
    if any(_climbs(part) for each in parts(query) if isinstance(each, ast.InlineFunction) for part in parts(each)):
        for need in walk.streams.values():  # from whatever the function is called with
            _look_below(((need, Fraction(0)),), _LookScope())
    return Needs(walk.streams, walk.evaluates_back)


def _climbs(part: object) -> bool:
    match part:
        case ast.Step(axis):
            return axis in ast.CLIMBING
        case ast.Call(name):
            return name.removeprefix("fn:") in ("root", *PLACES)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _LookScope:
    """The origins of the nodes in scope, and the age of the document that is read."""

    variables: Mapping[str, _Places] = field(default_factory=dict)
    context: _Places = ()
    ago: Fraction = Fraction(0)
    """How many seconds old the document is that the expression reads."""

    def bind(self, name: str, places: _Places) -> _LookScope:
        return replace(self, variables={**self.variables, name: places})


class _Walk:
    """The walk over a query that finds the paths it may read.

    The nodes of an expression are followed as the steps they may come from.
    Where they are copied, compared or computed with, everything below them is read; where only their number or
    existence matters, only the nodes themselves are.
    Under `(e)?t`, which evaluates over the document of `t` seconds ago, everything looks so much further back.
    A function is analysed once for the origins of its arguments, so functions that call others twice cost no more.
    """

    def __init__(self, functions: Mapping[str, ast.Function], retain: Fraction) -> None:
        self._retain = retain
        self.streams: dict[str, PathNeed] = {}
        self.evaluates_back = False
        self._functions = functions
        self._calls: dict[tuple[str, tuple[_Places, ...], Fraction], _Places] = {}

    def look(self, expressions: Iterable[ast.Expression], scope: _LookScope) -> _Places:
        """Visit expressions whose nodes are read completely, and not used otherwise."""
        for each in expressions:
            _look_below(self.visit(each, scope), scope)
        return ()

    def visit(self, expression: ast.Expression, scope: _LookScope) -> _Places:
        """The possible origins of an expression's nodes; what is read on the way is added to the tree."""
        match expression:
            case ast.String() | ast.Number():
                return ()
            case ast.Variable(name):
                return scope.variables[name]
            case ast.ContextItem():
                return scope.context
            case ast.Root():
                return _united(((each.top, ago),) for each, ago in scope.context)
            case ast.Source(kind, name):
                return _touched(self._document(name, scope)) if kind == "stream" else ()
            case ast.Sequence(items):
                return _united(self.visit(each, scope) for each in items)
            case ast.Call(name, arguments):
                return self._call(name.removeprefix("fn:"), arguments, scope)
            case ast.InlineFunction(parameters, body):
                for name in parameters:  # everything below its arguments is read where the function is called
                    scope = scope.bind(name, ())
                return self.look((body,), scope)
            case ast.Filter(base, tail):
                return self._filter(base, tail, scope)
            case ast.Path(start, steps):
                places = self._start(start, scope)
                for step in steps:
                    places = self._tail(self._step(places, step, scope), step.tail, scope)
                return _touched(places)
            case ast.Arithmetic(first, rest):
                return self.look((first, *(operand for _, operand in rest)), scope)
            case ast.Negation(operand) | ast.Cast(_, operand):
                return self.look((operand,), scope)
            case ast.Comparison(_, left, right):
                return self.look((left, right), scope)
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
            case ast.Pipeline():
                return self._pipeline(expression, scope)
            case ast.ElementConstructor():
                self._constructor(expression, scope)
                return ()

    def _flwor(self, flwor: ast.Flwor, scope: _LookScope) -> _Places:
        for clause in flwor.clauses:
            source = clause.source if isinstance(clause, ast.For) else clause.value
            places = self.visit(source, scope)
            if isinstance(clause, ast.For):
                self._window(clause.window, places, scope)
            scope = scope.bind(clause.variable, places)
        if flwor.where is not None:
            self.visit(flwor.where, scope)
        self.look((key.key for key in flwor.order), scope)
        return self.visit(flwor.result, scope)

    def _pipeline(self, pipeline: ast.Pipeline, scope: _LookScope) -> _Places:
        for clause in pipeline.clauses:
            match clause:
                case ast.For(name, source) | ast.PositionalFor(name, _, source) | ast.Let(name, source):
                    places = self.visit(source, scope)
                    if isinstance(clause, ast.For):
                        self._window(clause.window, places, scope)
                    scope = scope.bind(name, places)
                    if isinstance(clause, ast.PositionalFor) and clause.position is not None:
                        scope = scope.bind(clause.position, ())
                case ast.Where(condition):
                    self.visit(condition, scope)
                case ast.OrderBy(order):
                    self.look((key.key for key in order), scope)
                case ast.Count(name):
                    scope = scope.bind(name, ())
                case ast.GroupBy(keys):
                    for each in keys:
                        self.look((each.value or ast.Variable(each.variable),), scope)
                        scope = scope.bind(each.variable, ())
        return self.visit(pipeline.result, scope)

    def _window(self, window: ast.Window | None, places: _Places, scope: _LookScope) -> None:
        """The paths by which a window places its nodes."""
        match window:
            case ast.TimeWindow(reference=reference):
                self.look((reference,), replace(scope, context=places))
            case ast.SessionWindow(reference=reference, by=by):
                self.look((reference, *((by,) if by is not None else ())), replace(scope, context=places))

    def _constructor(self, element: ast.ElementConstructor, scope: _LookScope) -> None:
        values = [each for attribute in element.attributes for each in attribute.value]
        for part in (*values, *element.content):
            match part:
                case ast.Enclosed(value):
                    self.look((value,), scope)
                case ast.ElementConstructor():
                    self._constructor(part, scope)

    def _call(self, name: str, arguments: Sequence[ast.Expression], scope: _LookScope) -> _Places:
        given = tuple(self.visit(each, scope) for each in arguments)
        if name in self._functions:
            key = name, given, scope.ago
            if key not in self._calls:
                function = self._functions[name]
                bound = dict(zip(function.parameters, given, strict=True))
                self._calls[key] = self.visit(function.body, _LookScope(bound, ago=scope.ago))
            return self._calls[key]
        if name in GIVING and name not in ("op:convert", "sort"):
            return _united(given[place] for place in GIVING[name])
        if name == "root" or name in PLACES:
            given = (_united(((each.top, ago),) for each, ago in _united(given or (scope.context,))),)
        if name == "root":
            return given[0]
        if name not in _COUNTING:
            _look_below(_united(given or (scope.context,)), scope)
        return ()

    # --- paths --------------------------------------------------------------------------------------------

    def _start(self, start: ast.Expression | None, scope: _LookScope) -> _Places:
        if start is None:
            return scope.context
        if isinstance(start, ast.Source) and start.kind == "stream":
            return self._document(start.name, scope)
        return self.visit(start, scope)

    def _document(self, stream: str, scope: _LookScope) -> _Places:
        document = self.streams.setdefault(stream, PathNeed(f'stream("{stream}")'))
        return ((document, scope.ago),)

    def _filter(self, base: ast.Expression, tail: Sequence[ast.Tail], scope: _LookScope) -> _Places:
        if isinstance(base, ast.Path | ast.Filter | ast.Variable | ast.Source | ast.ContextItem | ast.Root):
            return self._tail(self.visit(base, scope), tail, scope)
        past = value_past(ast.Filter(base, tuple(tail)))
        if past is not None and past.has_versions:
            return self._value_versions(past, scope)
        then = scope  # such a base is evaluated over the document of that time
        for each in tail:
            if isinstance(each, ast.Qualifier):
                then = replace(then, ago=then.ago + each.amount.exact)
        found = tuple((place, max(ago, then.ago)) for place, ago in self.visit(base, then))
        _reach(found)
        return self._tail(found, [each for each in tail if not isinstance(each, ast.Qualifier)], scope)

    def _value_versions(self, past: ValuePast, scope: _LookScope) -> _Places:
        """The values that an expression had; where it is closed they are remembered, and what is past is not needed."""
        then = scope
        if not is_closed(past.expression):
            self.evaluates_back = True
            is_bounded = past.qualifier.kind == "time"
            then = replace(scope, ago=scope.ago + (past.qualifier.amount.exact if is_bounded else self._retain))
        found = tuple((place, max(ago, then.ago)) for place, ago in self.visit(past.expression, then))
        _reach(found)
        _look_below(found, then)
        return self._tail((), past.behind, scope)  # what it gives are copies

    def _tail(self, places: _Places, tail: Sequence[ast.Tail], scope: _LookScope) -> _Places:
        if tail:
            _touched(places)
        for each in tail:
            match each:
                case ast.Predicate(condition) | ast.Positional(condition):
                    self.visit(condition, replace(scope, context=places))
                case ast.Qualifier("version", _, amount):
                    _reach(places, versions=int(amount.text))
                case ast.Qualifier(_, _, amount):
                    _reach(places, seconds=amount.exact)
        return places

    def _step(self, places: _Places, step: ast.Step, scope: _LookScope) -> _Places:
        label = step.test.local if isinstance(step.test, ast.NameTest) else f"{step.test.kind}()"
        places = tuple((each, max(ago, scope.ago)) for each, ago in places)
        match step.axis:
            case "child":
                return _found(places, "descendant" if step.deep else "child", label)
            case "descendant":
                return _found(places, "descendant", label)
            case "self" if not step.deep:
                return places
            case "self" | "descendant-or-self":
                return _united((places, _found(places, "descendant", label)))
            case "attribute" | "parent":
                starts = _united((places, _found(places, "descendant", "node()"))) if step.deep else places
                if step.axis == "attribute":
                    return tuple((each.step("attribute", label), ago) for each, ago in _touched(starts))
                return _touched(_united(_parents(each) for each in starts))
            case _:  # somewhere around a node, which may be anywhere in its item
                return _touched(_found(_united(((each.top, ago),) for each, ago in places), "descendant", label))


def _found(places: _Places, axis: StepAxis, label: str) -> _Places:
    found = tuple((each.step(axis, label), ago) for each, ago in places if each.axis != "attribute")
    _reach(found)
    return found


def _parents(place: _Origin) -> _Places:
    """The possible origins of parents: of what is anywhere below a step, at that step or anywhere below it."""
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
        each.reaches.add(Lookback(versions, ago + seconds))


def _look_below(places: _Places, scope: _LookScope) -> None:
    for each, ago in places:
        each.below.add(Lookback(0, max(ago, scope.ago)))


def _united(groups: Iterable[_Places]) -> _Places:
    return tuple(dict.fromkeys(each for group in groups for each in group))
