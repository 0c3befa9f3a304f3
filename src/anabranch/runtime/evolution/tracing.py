"""Tracing: the lineage of a query from its text.

A query is evaluated abstractly, with *parts* for values: the result of an expression is a sequence of parts, each with
the paths that it depends on.
A construct that is not understood (a path of any depth, a function, two paths in one number) gives a part that only
knows its paths; so lineage never claims too much; where it claims too little, an accent is absorbed.

A part is *always* there if each output item has it once, provided that the input item has its path: not behind `if`, a
predicate, or a loop inside an item, and not in a window, where it covers many items.

The whole text of a query is traced for its display over edited streams (LAWS 4.9 e): a stream that no loop runs over
covers many items there, and the values of a loop's rounds that stand side by side are not one value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from anabranch.aggregates import AGGREGATES
from anabranch.language import ast
from anabranch.language.checks.unbounded import SETS, set_paths, set_streams
from anabranch.language.operators import VALUE_COMPARISONS
from anabranch.language.rewrite import bound_by
from anabranch.language.signatures import BOUNDS, GIVING, HIGHER, OF_MESSAGES, PLACES, SIGNATURES
from anabranch.law.env import Env
from anabranch.law.paths import base_of
from anabranch.law.spelling import Namespaces, Spelling
from anabranch.runtime.evolution.lineage import Lineage, Look, Need, Origin, Site
from anabranch.runtime.evolution.parts import (
    ITSELF,
    MOST_DIGITS,
    MOST_PARTS,
    ConstantPart,
    MadePart,
    NodesPart,
    NumberPart,
    OtherPart,
    Part,
    Parts,
    TraceScope,
    anywhere,
    at_top,
    bound,
    calculated,
    few,
    inside,
    is_element,
    is_node,
    looks_of,
    maybe,
    operand,
    side_by_side,
    stepped,
    value_site,
)
from anabranch.runtime.standing import Standing
from anabranch.stream.path import Path

_COMPARING = frozenset(f"op:{word}" for word in VALUE_COMPARISONS)
_CONTEXT = "."
"""The name of the context item of a predicate."""

_UNDECLARED: Mapping[str, Namespaces] = {}


def lineage_of(
    standing: Standing,
    registered: Collection[str] = (),
    roots: Mapping[str, Namespaces] = _UNDECLARED,
    *,
    is_display: bool = False,
) -> Lineage:
    """The lineage of a query; `registered` are the functions of the user, of which nothing is known.

    `roots` are the prefixes that the streams' roots declare: lineage names paths as the items write them.
    A query that is answered only at the end has no sites: its output stays in the units of query start.
    With `is_display` the lineage is that of its display over edited streams.
    """
    tracer = _Tracer(standing, registered, roots, is_display=is_display)
    top = TraceScope({}, Env.of(standing.query).namespaces if is_display else standing.env.namespaces)
    items: tuple[tuple[Site, ...], ...] = ()
    result = tracer.trace(standing.query.body if is_display or standing.hole is None else standing.hole, top)
    if is_display or standing.hole is not None:
        items = tuple(found for part in result if (found := at_top(part)) is not None)
    looks = looks_of(result) | {(each.input, each.path) for each in tracer.needs}
    kinds = tuple(dict.fromkeys(items))
    inputs, needs, groups = tuple(tracer.streams), tuple(tracer.needs), tuple(tracer.groups())
    return Lineage(inputs, needs, groups, kinds, looks, standing.outputs, is_display)


def _is_stream(source: ast.Expression) -> bool:
    """Whether a loop runs over the items of a stream, or of several."""
    base = base_of(source)
    return (isinstance(base, ast.Source) and base.kind == "stream") or bool(set_streams(source))


class _Tracer:
    """Traces one query; collects its inputs and the paths in its conditions."""

    def __init__(
        self, standing: Standing, registered: Collection[str], roots: Mapping[str, Namespaces], *, is_display: bool
    ) -> None:
        self._is_display = is_display
        self._whole = is_display or standing.hole is None
        self.streams: list[tuple[str, ...]] = [(each,) for each in standing.streams] if self._whole else []
        self._union: int | None = None
        """The input that all paths of a set of paths over streams are about, while they are traced."""
        self._windowed = is_display or standing.kind == "windows"
        self._hole = standing.hole
        self._declared = {each.name: each for each in standing.query.functions}
        self._registered = registered
        self._roots = roots
        self._prolog = Env.of(standing.query).namespaces
        self._known: dict[tuple[str, tuple[Parts, ...], bool], Parts] = {}
        self._needs: dict[Look, str] = {}
        self._compared: list[frozenset[Look]] = []
        self._in_condition = False

    @property
    def needs(self) -> list[Need]:
        """The foundation paths, in the order in which they were found."""
        return [Need(input, path, word) for (input, path), word in self._needs.items()]

    def groups(self) -> Iterator[tuple[Look, ...]]:
        """The groups of paths that are compared with each other, directly or through others."""
        left = [set(each) for each in self._compared]
        while left:
            group = left.pop(0)
            while meeting := [each for each in left if each & group]:
                group.update(*meeting)
                left = [each for each in left if each not in meeting]
            yield tuple(sorted(group))

    def trace(self, expression: ast.Expression, scope: TraceScope) -> Parts:
        """The parts that are the result of an expression."""
        match expression:
            case ast.Number(text):
                number = Decimal(text)
                small = not number or abs(number.adjusted()) < MOST_DIGITS
                return (ConstantPart(Fraction(number)) if small and len(text) < MOST_DIGITS else OtherPart(),)
            case ast.String():
                return (OtherPart(),)
            case ast.Variable(name):
                return scope.of(name)
            case ast.ContextItem():
                return scope.of(_CONTEXT)
            case ast.Source("stream", name):
                return (NodesPart(self._input(name), ITSELF, level=-2, many=self._is_display),)
            case ast.Source() | ast.Root():
                return (OtherPart(nodes=True),)
            case ast.Sequence(items):
                return few(tuple(part for each in items for part in self.trace(each, scope)))
            case ast.Path(start, steps):
                found = scope.of(_CONTEXT) if start is None else self.trace(start, scope)
                for step in steps:
                    reached = tuple(part for each in found for part in stepped(each, step, self._spelling(each, scope)))
                    found = self._tail(few(reached), step.tail, scope)
                return found
            case ast.Filter(base, tail):
                return self._tail(self.trace(base, scope), tail, scope)
            case ast.Call(name) if name in SETS and self._is_union(expression):
                return self._set(expression, scope)
            case ast.Call(name, (left, right)) if name in _COMPARING:
                return self._comparison(left, right, scope)
            case ast.Call():
                return self._call(expression, scope)
            case ast.InlineFunction(parameters, body):
                around = anywhere(part for parts in scope.variables.values() for part in parts)
                for name in parameters:
                    scope = scope.bind(name, (around,))
                return (anywhere((around, *self._trace_condition("function", body, scope))),)
            case ast.Arithmetic(first, rest):
                result = operand(self.trace(first, scope))
                for operator, each in rest:
                    result = calculated(operator, result, operand(self.trace(each, scope)))
                return (result,)
            case ast.Negation(negated):
                return (calculated("*", ConstantPart(Fraction(-1)), operand(self.trace(negated, scope))),)
            case ast.If(condition, then, otherwise):
                self._trace_condition("if", condition, scope)
                one, other = self.trace(then, scope), self.trace(otherwise, scope)
                return one if one == other else maybe((*one, *other))
            case ast.Flwor():
                return self._flwor(expression, scope)
            case ast.Pipeline():
                return self._pipeline(expression, scope)
            case ast.ElementConstructor():
                return (self._made(expression, scope),)
            case ast.Quantified(_, bindings, condition):
                looked: Parts = ()
                for name, source in bindings:
                    found = self._trace_condition("satisfies", source, scope)
                    scope, looked = scope.bind(name, maybe(found)), (*looked, *found)
                return (OtherPart(looks_of((*looked, *self._trace_condition("satisfies", condition, scope)))),)
            case ast.Comparison(_, left, right):
                return self._comparison(left, right, scope)
            case ast.Cast(_, cast):
                return (OtherPart(looks_of(self.trace(cast, scope))),)
            case ast.And(operands) | ast.Or(operands):
                return (OtherPart(looks_of(part for each in operands for part in self.trace(each, scope))),)

    def _comparison(self, left: ast.Expression, right: ast.Expression, scope: TraceScope) -> Parts:
        both = looks_of((*self.trace(left, scope), *self.trace(right, scope)))
        if self._in_condition and len({input for input, _ in both}) > 1:
            self._compared.append(both)
            self._need("join", both)
        return (OtherPart(both),)

    # --- conditions -------------------------------------------------------------------------------------------

    def _trace_condition(self, word: str, condition: ast.Expression, scope: TraceScope) -> Parts:
        """Trace a condition: all paths that it reads are foundation."""
        before, self._in_condition = self._in_condition, True
        found = self.trace(condition, scope)
        self._in_condition = before
        self._need(word, looks_of(found))
        return found

    def _need(self, word: str, looks: Collection[Look]) -> None:
        """Add foundation paths; items as such cannot be dropped, so they are none."""
        for look in sorted(looks):
            if look[1].steps:
                self._needs.setdefault(look, word)

    def _tail(self, found: Parts, tail: tuple[ast.Tail, ...], scope: TraceScope) -> Parts:
        for each in tail:
            if not isinstance(each, ast.Qualifier):
                self._trace_condition("[...]", each.condition, scope.bind(_CONTEXT, maybe(found)))
            elif each.window and self._is_display:
                found = side_by_side(found)
        return maybe(found) if tail else found

    def _spelling(self, part: Part, scope: TraceScope) -> Spelling:
        """How the items of a part spell the names of the query."""
        root = self._roots.get(self.streams[part.input][-1], {}) if isinstance(part, NodesPart) else {}
        return Spelling(scope.namespaces, root)

    # --- loops ------------------------------------------------------------------------------------------------

    def _input(self, stream: str) -> int:
        """The number of an input; each reading of a stream is one, unless the query is answered as a whole."""
        if self._whole:
            return self.streams.index((stream,))
        if self._union is not None:
            names = self.streams[self._union]
            self.streams[self._union] = names if stream in names else (*names, stream)
            return self._union
        self.streams.append((stream,))
        return len(self.streams) - 1

    def _is_union(self, expression: ast.Expression) -> bool:
        """Whether a set is traced as one input: its streams must spell names alike."""
        roots = [self._roots.get(each, {}) for each in set_streams(expression)]
        return not self._whole and self._union is None and bool(roots) and all(each == roots[0] for each in roots)

    def _set(self, expression: ast.Call, scope: TraceScope) -> Parts:
        """A set of paths over streams: one input, the Union of their streams (LAWS 4.2 d)."""
        self.streams.append(())
        self._union = len(self.streams) - 1
        found = tuple(part for each in set_paths(expression) for part in self.trace(each, scope))
        self._union = None
        return tuple(dict.fromkeys(maybe(few(found))))

    def _flwor(self, flwor: ast.Flwor, scope: TraceScope) -> Parts:
        sure = flwor is self._hole or flwor.where is None
        for clause in flwor.clauses:
            match clause:
                case ast.Let(variable, value):
                    scope = scope.bind(variable, self.trace(value, scope))
                case ast.For(variable, source, window):
                    found = self.trace(source, scope)
                    self._window(window, found, scope)
                    from_stream = _is_stream(source)
                    sure = sure and from_stream
                    many = window is not None and (self._windowed or not from_stream)
                    scope = scope.bind(variable, tuple(bound(each, from_stream, many) for each in found))
        if flwor.where is not None:
            self._trace_condition("where", flwor.where, scope)
        for key in flwor.order:
            self._trace_condition("order by", key.key, scope)
        result = self._side_by_side(flwor.clauses, self.trace(flwor.result, scope))
        return result if sure else maybe(result)

    def _pipeline(self, pipeline: ast.Pipeline, scope: TraceScope) -> Parts:
        own: dict[str, None] = {}
        for clause in pipeline.clauses:
            match clause:
                case ast.Let(variable, value):
                    scope = scope.bind(variable, self.trace(value, scope))
                case ast.For(variable, source) | ast.PositionalFor(variable, _, source):
                    found = self.trace(source, scope)
                    if isinstance(clause, ast.For):
                        self._window(clause.window, found, scope)
                    from_stream = _is_stream(source)
                    many = isinstance(clause, ast.For) and clause.window is not None
                    scope = scope.bind(variable, maybe(tuple(bound(each, from_stream, many) for each in found)))
                    if isinstance(clause, ast.PositionalFor) and clause.position is not None:
                        scope = scope.bind(clause.position, (OtherPart(),))
                case ast.Where(condition):
                    self._trace_condition("where", condition, scope)
                case ast.OrderBy(order):
                    for key in order:
                        self._trace_condition("order by", key.key, scope)
                case ast.Count(variable):
                    scope = scope.bind(variable, (OtherPart(),))
                case ast.GroupBy(keys):
                    scope = self._grouped(keys, own, scope)
            own |= dict.fromkeys(bound_by(clause))
        return maybe(self._side_by_side(pipeline.clauses, self.trace(pipeline.result, scope)))

    def _side_by_side(self, clauses: Collection[ast.Clause], result: Parts) -> Parts:
        """The results of all rounds of a loop: on display, values of several rounds have no unit together."""
        if not self._is_display or all(isinstance(each, ast.Let) for each in clauses):
            return result
        return side_by_side(result)

    def _grouped(self, keys: tuple[ast.GroupKey, ...], own: Collection[str], scope: TraceScope) -> TraceScope:
        """The scope after a `group by`: a key is a computed value, and other variables are sequences of values."""
        given = {}
        for key in keys:
            found = self._trace_condition("group by", key.value or ast.Variable(key.variable), scope)
            scope = scope.bind(key.variable, found)
            given[key.variable] = (OtherPart(looks_of(found)),)
        for name in own:
            scope = scope.bind(name, maybe(tuple(bound(each, False, True) for each in scope.of(name))))
        for name, part in given.items():
            scope = scope.bind(name, part)
        return scope

    def _window(self, window: ast.Window | None, found: Parts, scope: TraceScope) -> None:
        match window:
            case ast.TimeWindow(reference):
                self._reference(reference, found, scope)
            case ast.SessionWindow(reference, _, by):
                for path in (reference, by):
                    if path is not None:
                        self._reference(path, found, scope)

    def _reference(self, path: ast.Path, found: Parts, scope: TraceScope) -> None:
        """The reference path of a window, or of a session, is foundation (LAWS 4.6)."""
        if isinstance(path.start, ast.Root):
            document = tuple(replace(each, path=ITSELF, level=-2) for each in found if isinstance(each, NodesPart))
            self._trace_condition("|window|", replace(path, start=None), scope.bind(_CONTEXT, document))
        else:
            self._trace_condition("|window|", path, scope.bind(_CONTEXT, found))

    # --- constructors -----------------------------------------------------------------------------------------

    def _made(self, constructor: ast.ElementConstructor, scope: TraceScope) -> MadePart:
        scope = scope.within(constructor.namespaces)
        attributes = {each.name: self._content(each.value, scope) for each in constructor.attributes}
        content = self._content(constructor.content, scope)
        looks = looks_of((*content, *(part for parts in attributes.values() for part in parts)))
        sites = [value_site(Path((f"@{name}",)), parts) for name, parts in attributes.items() if parts]
        values = [each for each in content if not is_node(each)]
        nodes = [each for each in content if is_node(each)]
        if values:
            sites.append(Site(ITSELF, None) if any(map(is_element, nodes)) else value_site(ITSELF, values))
        for part in nodes:
            sites += inside(part)
        if len(sites) > MOST_PARTS:
            sites = [Site(ITSELF, None, "tree")]
        return MadePart(constructor.name, tuple(sites), looks)

    def _content(self, content: tuple[ast.Content, ...], scope: TraceScope) -> Parts:
        found: list[Part] = []
        for each in content:
            match each:
                case ast.Characters(value):
                    found += [OtherPart()] if value else []
                case ast.Enclosed(value):
                    found += self.trace(value, scope)
                case ast.ElementConstructor():
                    found.append(self._made(each, scope))
                case ast.CommentConstructor():
                    pass
        return few(tuple(found))

    # --- functions --------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call, scope: TraceScope) -> Parts:
        name = call.name.removeprefix("fn:")
        if name == "op:try":
            return self._tried(call, scope)
        arguments = tuple(self.trace(each, scope) for each in call.arguments)
        if name in self._declared:
            return self._declared_call(self._declared[name], arguments)
        builtin = name not in self._registered
        if builtin and name in BOUNDS:
            return (OtherPart(),)  # window bounds depend on no path of an item
        if builtin and not arguments and name in SIGNATURES and SIGNATURES[name].context:
            arguments = (scope.of(_CONTEXT),)
        match arguments:
            case ((NodesPart() as only,),) if builtin and only.is_known and only.path.steps:
                if name in AGGREGATES:
                    return (NumberPart(Origin(only.input, only.path, name)),)
                if name in ("data", "string"):
                    return (replace(only, kind="text"),)
                if name == "number" and not only.many:
                    return (NumberPart(Origin(only.input, only.path)),)
        if builtin and name in ("op:call", "sort", "root", *HIGHER):
            around = anywhere(part for each in arguments for part in each)
            self._need("function", around.of)
            return (around,)
        if builtin and name in PLACES:  # they look at all that is around a node
            arguments = ((anywhere(part for each in arguments for part in each),),)
        if builtin and name in GIVING and name != "op:convert":
            return maybe(few(tuple(part for place in GIVING[name] for part in arguments[place])))
        looks = looks_of(part for each in arguments for part in each)
        if builtin and name in ("count", "exists", "empty", *OF_MESSAGES):  # the values of the items do not matter
            looks = frozenset(look for look in looks if look[1] != ITSELF)
        return (OtherPart(looks, nodes=builtin and name in SIGNATURES and SIGNATURES[name].makes_nodes),)

    def _tried(self, call: ast.Call, scope: TraceScope) -> Parts:
        """`try`: whether an evaluation fails decides the result, so all paths that it reads are foundation."""
        found: Parts = ()
        for each in call.arguments:
            if isinstance(each, ast.InlineFunction):
                inner = scope
                for name in each.parameters:
                    inner = inner.bind(name, (OtherPart(),))
                found = (*found, *self._trace_condition("try", each.body, inner))
        return maybe(few(found))

    def _declared_call(self, function: ast.Function, arguments: tuple[Parts, ...]) -> Parts:
        """Trace a function once per kinds of arguments: nested calls must not cost without bound."""
        key = function.name, arguments, self._in_condition
        if key not in self._known:
            bound = TraceScope(dict(zip(function.parameters, arguments, strict=True)), self._prolog)
            self._known[key] = self.trace(function.body, bound)
        return self._known[key]
