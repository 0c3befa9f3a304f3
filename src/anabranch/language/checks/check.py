"""Static checks: what can be said of a query before any data is seen.

Names must be bound, functions known, prefixes declared; streams, windows and joins must have a shape that can be
answered without end; with a schema, conditions may only use paths it has.
A path that the schema lacks and that is only returned is allowed, with a warning: it may be added later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch.errors import QueryError, Span, did_you_mean
from anabranch.language import ast
from anabranch.language.checks.functions import check_functions
from anabranch.language.checks.outputs import outputs_of
from anabranch.language.checks.paths import ItemNames as ItemNames
from anabranch.language.checks.paths import PathChecker
from anabranch.language.checks.paths import Warning as Warning
from anabranch.language.checks.refusals import refuse
from anabranch.language.checks.streams import (
    UNKNOWN,
    Known,
    Scope,
    check_pipeline,
    check_streams,
    is_edited,
    over_updates,
)
from anabranch.language.checks.unbounded import flowing_fors, flows, is_loop, readers
from anabranch.language.objects import step_to
from anabranch.language.positions import in_loops, with_positions
from anabranch.language.printer import print_query
from anabranch.language.rewrite import apart, bound_by, flatten, with_input, with_items
from anabranch.language.signatures import BOUNDS, SIGNATURES
from anabranch.stream.schema import Schema
from anabranch.stream.tree import STREAM_NAMESPACE

_PREDECLARED = dict.fromkeys(("xml", "local", "fn", "xs"), "")
"""Prefixes that every query may use; the checks do not need their namespaces."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A query that passed, in the form the engines take it, and what was noticed on the way."""

    query: ast.Query
    warnings: tuple[Warning, ...]
    streams: tuple[str, ...]
    documents: tuple[str, ...]


def check(
    query: ast.Query,
    text: str | None = None,
    *,
    inputs: Mapping[str, Schema | None] | None = None,
    functions: Collection[str] = (),
    name: str | None = None,
    edited: Collection[str] = (),
    finite: bool = False,
    names: Mapping[str, ItemNames] | None = None,
    json: Mapping[str, str] | None = None,
    documents: Collection[str] | None = None,
) -> Checked:
    """Check a query; `inputs` are the known inputs with their schemas, `functions` the registered ones.

    With `inputs` of None any name of a stream or document is accepted.
    `names` are those of the streams' roots and items, as far as they are known without a schema.
    `json` are the inputs that are known to be JSON, each with the name of its items.
    `edited` are streams of updates: each is a document, which any round may read (LAWS 5.1).
    `documents` are the inputs that `doc()` reads; all others are streams, unless it is None.
    Where all streams are `finite`, and waited for, a second loop over one is plain XQuery (LAWS 3.4).
    """
    source = text if text is not None else print_query(query)
    try:
        return _Checker(
            query, source, inputs, functions, edited, names or {}, json or {}, documents, finite=finite
        ).checked()
    except QueryError as error:
        error.name = name
        raise


class _Checker(PathChecker):
    def __init__(
        self,
        query: ast.Query,
        text: str,
        inputs: Mapping[str, Schema | None] | None,
        functions: Collection[str],
        edited: Collection[str],
        names: Mapping[str, ItemNames],
        json: Mapping[str, str],
        documents: Collection[str] | None,
        *,
        finite: bool,
    ) -> None:
        super().__init__(text, {name: schema for name, schema in (inputs or {}).items() if schema}, names)
        self.query = query
        self.inputs = inputs
        self.json = json
        self.documents = documents
        self.registered = functions
        self.edited = edited
        self.finite = finite
        self.declared = {function.name: function for function in query.functions}
        self.reading = readers(self.declared)
        self.sources: dict[ast.Source, None] = {}

    def checked(self) -> Checked:
        prefixes = {**_PREDECLARED, **dict(self.query.namespaces)}
        check_functions(self.query, self.text)
        for function in self.query.functions:
            self.function(function, prefixes)
        meant = in_loops(self.with_context(with_items(self.query, self.certain_names())), self.edited)
        query = apart(flatten(with_positions(meant)))
        self.visit(query.body, Scope(prefixes=prefixes))
        self.check_output(query)
        streams, documents = ([s.name for s in self.sources if s.kind == kind] for kind in ("stream", "doc"))
        return Checked(query, tuple(self.warnings), tuple(streams), tuple(documents))

    def check_output(self, query: ast.Query) -> None:
        """Refuse an answer that is JSON and XML at once, as far as the text of the query shows it (LAWS 7.3)."""
        outputs = outputs_of(query)
        if "xml" in outputs.kinds and outputs.form(self.json) == "json":
            hint = "give objects only, or elements only"
            raise self.error("an answer is JSON or XML, not both", query.body.span, "SERE0022", hint)

    def is_bounded(self, scope: Scope) -> bool:
        """Whether no stream of items may be read at a place: inside a round, unless all streams are finite."""
        return scope.in_round and not self.finite

    def certain_names(self) -> dict[str, tuple[str, str]]:
        """By stream: the names of root and items, where a convention gives all items the same name."""
        known = {name: each for name, each in self.names.items() if each.agreed and name not in self.schemas}
        return {name: (each.root, each.items[0]) for name, each in known.items() if len(each.items) == 1}

    def with_context(self, query: ast.Query) -> ast.Query:
        """The query with its own `.` and `/` replaced by its one input."""
        names = list(self.inputs or ())
        if len(names) == 1:
            return with_input(query, ast.Source("stream", names[0]))
        return query

    # --- functions ----------------------------------------------------------------------------------------

    def function(self, function: ast.Function, prefixes: Mapping[str, str]) -> None:
        if self.declared[function.name] is not function:
            raise self.error(f"function '{function.name}' is declared twice", function.span, "XQST0034")
        prefix = function.name.partition(":")[0]
        if prefix not in prefixes or prefix in ("fn", "xs", "xml"):
            raise self.error(f"prefix '{prefix}' is not declared", function.span, "XPST0081")
        scope = Scope(dict.fromkeys(function.parameters, UNKNOWN), prefixes=prefixes)
        self.visit(function.body, scope)

    def call(self, call: ast.Call, scope: Scope) -> Known:
        name, count = call.name.removeprefix("fn:"), len(call.arguments)
        if name == "op:try":
            return self.tried(call, scope)
        match call:
            case ast.Call("op:lookup", (base, ast.String(key))):
                step = step_to(key, call.span)
                if ":" in key:  # of XML it may have a prefix, and no schema knows such names
                    step = replace(step, test=ast.NameTest(key))
                return replace(self.step(self.visit(base, scope), step, scope), flowing=False)
        known = [self.visit(argument, scope) for argument in call.arguments]
        if name in ("position", "last") and not scope.counted:
            hint = "they stand in a predicate, as in $x[position() <= 3]"
            raise self.error(f"'{name}()' means nothing here", call.span, "XPDY0002", hint)
        if name in BOUNDS and name not in (*self.declared, *self.registered):
            self.check_bounds(call, scope)
        if name in self.declared:
            wanted = len(self.declared[name].parameters)
            if count != wanted:
                raise self.error(f"'{name}()' takes {wanted} arguments, not {count}", call.span, "XPST0017")
            if name in self.reading and self.is_bounded(scope):
                raise refuse("stream inside the round of another", self.text, call.span)
            flowing = flows(call, scope.flowing, self.declared)
            return Known(flowing=flowing)
        if name in self.registered:
            return UNKNOWN
        if name.startswith("xs:") and name not in SIGNATURES:
            raise refuse("type expression", self.text, call.span)
        if name not in SIGNATURES:
            names = sorted(
                each for each in (*SIGNATURES, *self.declared, *self.registered) if not each.startswith("op:")
            )
            close = did_you_mean(name, names, f"known are: {', '.join(names)}")
            raise self.error(f"no function is called '{name}()'", call.span, "XPST0017", close)
        signature = SIGNATURES[name]
        if not signature.accepts(count):
            wanted_text = f"{signature.least}" if signature.least == signature.most else f"{signature.least} or more"
            raise self.error(f"'{name}()' takes {wanted_text} arguments, not {count}", call.span, "XPST0017")
        if count == 0 and signature.context:
            self.visit(ast.ContextItem(span=call.span), scope)
        if name in ("head", "tail", "subsequence", "remove", "insert-before") and count:
            self.numbered(call.arguments[0], known[0], call.span, "positional predicate")
        return Known(numeric=signature.numeric)

    def tried(self, call: ast.Call, scope: Scope) -> Known:
        """`try`: its parts are evaluated where they stand."""
        for each in call.arguments:
            if isinstance(each, ast.InlineFunction):
                inner = scope
                for name in each.parameters:
                    inner = inner.bind(name, UNKNOWN)
                self.visit(each.body, inner)
        return UNKNOWN

    def check_bounds(self, call: ast.Call, scope: Scope) -> None:
        """Refuse `window-start` and `window-end` of anything but the variable of a window, or another name for it."""
        match call.arguments:
            case (ast.Variable(name),) if scope.variables[name].has_bounds:
                pass
            case (_,):
                raise refuse("bounds of what is no window", self.text, call.span)

    # --- expressions --------------------------------------------------------------------------------------

    def visit(self, expression: ast.Expression, scope: Scope) -> Known:
        match expression:
            case ast.String():
                return UNKNOWN
            case ast.Number():
                return Known(numeric=True)
            case ast.Variable():
                return self.variable(expression, scope)
            case ast.ContextItem() | ast.Root():
                if scope.context is None:
                    raise self.error(
                        "there is no context item here", expression.span, "XPDY0002", 'begin with stream("...")'
                    )
                if isinstance(expression, ast.ContextItem):
                    return scope.context
                if scope.context.source is not None and scope.context.source.kind == "stream":
                    raise refuse("step out of the item", self.text, expression.span)
                return Known(scope.context.source, ())
            case ast.Source():
                return self.source(expression, scope)
            case ast.Sequence(items):
                known = [self.visit(each, scope) for each in items]
                if len(known) == 1:
                    return known[0]
                flowing = [each for each in known if each.flowing]
                return Known(flowing=bool(flowing), looped=bool(flowing) and all(each.looped for each in flowing))
            case ast.Call():
                return self.call(expression, scope)
            case ast.InlineFunction(parameters, body):
                inner = replace(scope, context=None, counted=False).round()
                for name in parameters:
                    inner = inner.bind(name, UNKNOWN)
                self.visit(body, inner)
                return UNKNOWN
            case ast.Filter():
                return self.filter(expression, scope)
            case ast.Path():
                return self.path(expression, scope)
            case ast.Arithmetic(first, rest):
                for each in (first, *(operand for _, operand in rest)):
                    self.visit(each, scope)
                return Known(numeric=True)
            case ast.Negation(operand):
                self.visit(operand, scope)
                return Known(numeric=True)
            case ast.Cast(kind, operand, name):
                self.visit(operand, scope)
                return Known(numeric=kind == "cast" and SIGNATURES[name].numeric)
            case ast.Comparison(_, left, right):
                self.visit(left, scope)
                self.visit(right, scope)
                return UNKNOWN
            case ast.And(operands) | ast.Or(operands):
                for each in operands:
                    self.visit(each, scope)
                return UNKNOWN
            case ast.If(condition, then, otherwise):
                self.visit(condition, scope.asking())
                known = [self.visit(then, scope), self.visit(otherwise, scope)]
                return Known(flowing=any(k.flowing for k in known), numeric=any(k.numeric for k in known))
            case ast.Quantified(_, bindings, condition):
                inner = scope.asking()
                for name, source in bindings:
                    known_source = self.visit(source, inner)
                    inner = inner.bind(name, replace(known_source, flowing=False))
                self.visit(condition, inner)
                return UNKNOWN
            case ast.Flwor():
                return self.flwor(expression, scope)
            case ast.Pipeline():
                return self.pipeline(expression, scope)
            case ast.ElementConstructor():
                self.constructor(expression, scope)
                return UNKNOWN

    def variable(self, variable: ast.Variable, scope: Scope) -> Known:
        if variable.name not in scope.variables:
            known = [f"${name}" for name in scope.variables]
            hint = did_you_mean(f"${variable.name}", known, f"bound are: {', '.join(known) or 'none'}")
            if "." in variable.name:
                hint = (
                    f"{hint}; a dot looks up behind a variable that is bound, and the longest name that is bound wins"
                )
            raise self.error(f"no variable is called '${variable.name}'", variable.span, "XPST0008", hint)
        known_variable = scope.variables[variable.name]
        if known_variable.flowing and self.is_bounded(scope) and not is_edited(known_variable.source, self.edited):
            raise refuse("stream inside the round of another", self.text, variable.span)
        if known_variable.missing and scope.condition:
            raise self.lacking(variable.span, f"${variable.name}")
        return known_variable

    def source(self, source: ast.Source, scope: Scope) -> Known:
        if self.inputs is not None and source.name not in self.inputs:
            known = ", ".join(f"'{name}'" for name in self.inputs) or "none"
            hint = did_you_mean(source.name, self.inputs, f"the inputs given are: {known}")
            raise self.error(f"no input is called '{source.name}'", source.span, "FODC0002", hint)
        if self.documents is not None and (source.name in self.documents) != (source.kind == "doc"):
            known, kind = ("document", "doc") if source.name in self.documents else ("stream", "stream")
            message = f"'{source.name}' is a {known}"
            raise self.error(message, source.span, "FODC0002", f"write {kind}('{source.name}')")
        if source.kind == "stream" and self.is_bounded(scope) and not is_edited(source, self.edited):
            raise refuse("stream inside the round of another", self.text, source.span)
        self.sources[source] = None
        return Known(source, (), flowing=source.kind == "stream")

    def constructor(self, element: ast.ElementConstructor, scope: Scope) -> None:
        scope = replace(scope, prefixes={**scope.prefixes, **dict(element.namespaces)})
        attributes = [attribute.name for attribute in element.attributes]
        for name in (element.name, *attributes):
            self.prefix(name.rpartition(":")[0], element.span, scope)
        for name in (element.name, *(each for each in attributes if ":" in each)):
            if scope.prefixes.get(name.rpartition(":")[0]) == STREAM_NAMESPACE:
                raise refuse("control element in an answer", self.text, element.span)
        inner: list[Any] = [each for attribute in element.attributes for each in attribute.value]
        for part in (*inner, *element.content):
            match part:
                case ast.Enclosed(ast.Call("op:object") as found):
                    hint = "look its values up, as in $o.key, or give an object instead of the element"
                    raise self.error("an object cannot stand in an element", found.span, "XQTY0105", hint)
                case ast.Enclosed(value):
                    self.visit(value, scope)
                case ast.ElementConstructor():
                    self.constructor(part, scope)

    # --- FLWR ---------------------------------------------------------------------------------------------

    def flwor(self, flwor: ast.Flwor, scope: Scope) -> Known:
        places = flowing_fors(flwor, scope.flowing, self.declared)
        beside = [place for place in places if not over_updates(flwor.clauses[place], scope, self.edited)]
        if beside and self.is_bounded(scope):
            raise refuse("stream inside the round of another", self.text, flwor.clauses[beside[0]].span)
        check_streams(flwor, places, beside, self.text, finite=self.finite)
        inner = scope
        for place, clause in enumerate(flwor.clauses):
            round_started = bool(places) and place > places[0] and place not in places
            at = inner.round() if round_started else inner
            match clause:
                case ast.For(name, source, window):
                    known = self.visit(source, at)
                    if window:
                        self.window(window, known, at)
                    is_window = len(places) < 2 and isinstance(window, ast.TimeWindow | ast.SessionWindow)
                    inner = inner.bind(name, replace(known, flowing=False, numeric=False, has_bounds=is_window))
                case ast.Let(name, value):
                    inner = inner.bind(name, self.visit(value, at))
        inner = inner.round() if places else inner
        if flwor.where is not None:
            self.visit(flwor.where, inner.asking())
        for key in flwor.order:
            self.visit(key.key, inner.asking())
        known = self.visit(flwor.result, inner)
        return replace(known, flowing=bool(places) or known.flowing, looped=bool(places) or known.looped)

    def pipeline(self, pipeline: ast.Pipeline, scope: Scope) -> Known:
        places: list[int] = []
        growing: list[int] = []
        inner, own = scope, set[str]()
        for place, clause in enumerate(pipeline.clauses):
            match clause:
                case ast.For(name, source, window):
                    if flows(source, inner.flowing, self.declared):
                        if scope.in_round and not over_updates(clause, inner, self.edited):
                            raise refuse("stream inside the round of another", self.text, clause.span)
                        if places:
                            raise refuse("group by or count over a join", self.text, clause.span)
                        places.append(place)
                        if not over_updates(clause, inner, self.edited):
                            growing.append(place)
                    known = self.visit(source, inner)
                    if window:
                        self.window(window, known, inner)
                    inner = inner.bind(name, replace(known, flowing=False, numeric=False))
                    inner = inner.round() if places else inner
                case ast.PositionalFor(name, position, source):
                    known = self.visit(source, inner)
                    refusal = "allowing empty" if position is None else "positional variable"
                    self.numbered(source, known, clause.span, refusal)
                    inner = inner.bind(name, replace(known, flowing=False))
                    inner = inner if position is None else inner.bind(position, Known(numeric=True))
                case ast.Let(name, value):
                    inner = inner.bind(name, self.visit(value, inner))
                case ast.Where(condition):
                    self.visit(condition, inner.asking())
                case ast.Count(name):
                    inner = inner.bind(name, Known(numeric=True))
                case ast.OrderBy(order):
                    for key in order:
                        self.visit(key.key, inner.asking())
                case ast.GroupBy(keys):
                    inner = self.group_keys(keys, own, inner)
            own |= {*bound_by(clause)}
        check_pipeline(pipeline, places, growing, self.text)
        return replace(self.visit(pipeline.result, inner), flowing=False)

    def group_keys(self, keys: Sequence[ast.GroupKey], own: Collection[str], scope: Scope) -> Scope:
        """The keys of a `group by`; one that has no value is a variable of the same expression."""
        names = [key.variable for key in keys]
        for key in keys:
            if names.count(key.variable) > 1:
                raise self.error(f"key '${key.variable}' is named twice", key.span, "XQST0089")
            if key.value is None and key.variable not in own:
                message = f"'${key.variable}' is not bound in this expression"
                hint = f"give the key a value: 'group by ${key.variable} := ...'"
                raise self.error(message, key.span, "XQST0094", hint)
            known = self.visit(key.value or ast.Variable(key.variable, span=key.span), scope.asking())
            scope = scope.bind(key.variable, Known(numeric=known.numeric))
        return scope

    def numbered(self, source: ast.Expression, known: Known, span: Span, refusal: str) -> None:
        """Refuse positions in what is neither finite nor the result of a loop: a stream's items have no positions."""
        if known.flowing and not known.looped and not is_loop(source):
            raise refuse(refusal, self.text, span)
