"""How a standing query runs: as a frame with one hole that is filled piece by piece, or only at the end.

The *frame* is the fixed text around the part of a query that flows; `opening + pieces + closing` is byte for byte the
answer of the query evaluated as a whole.
The part that flows, the *hole*, determines by its `for` clauses when a piece comes:

* *items*: each item adds its own piece, without state;
* *windows*: each window adds one when it closes;
* *step join*, *interval join*, *keyed join*: each tuple adds one;
* *whole*: nothing can be answered before the streams end, and the query is evaluated then, over everything.

The last kind is for all queries that the others cannot run, and names the construct that has to wait.
`units.py` computes the pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, TypeAlias

from anabranch.errors import Span, Unsupported
from anabranch.language import ast
from anabranch.language.checks.outputs import NO_OUTPUTS, QueryOutputs, outputs_of
from anabranch.language.checks.unbounded import (
    flowing_fors,
    flows,
    qualified,
    readers,
    readings,
    set_paths,
    set_streams,
)
from anabranch.language.equalities import KeyPair, join_keys, tied_by_keys
from anabranch.language.intervals import Bound, bounded
from anabranch.language.operators import shown_call
from anabranch.language.printer import print_query
from anabranch.language.rewrite import bound_by, children, parts, with_expanded_names, with_part
from anabranch.language.signatures import GIVING, HIGHER, SIGNATURES
from anabranch.law.answer import evaluate
from anabranch.law.calls import PythonFunction
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.paths import base_of
from anabranch.law.rounds.joins import time_bounds
from anabranch.law.slices import below_item
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, descendants, namespaces_in_scope

Result: TypeAlias = Literal["content", "value", "attribute"]
Results: TypeAlias = frozenset[Result]

_CONTENT: Results = frozenset(("content",))
_VALUE: Results = frozenset(("value",))
_ATTRIBUTE: Results = frozenset(("attribute",))


def results_of(expression: ast.Expression, functions: Mapping[str, ast.Function]) -> Results:
    """All kinds of results that an expression at the top of a query may have."""
    return _ResultTypes(functions).read(expression, {})


def _makes_nodes(name: str) -> bool:
    signature = SIGNATURES.get(name.removeprefix("fn:"))
    return signature is not None and signature.makes_nodes


class _ResultTypes:
    """Reads each function once per kinds of arguments: functions that call others twice must not cost without bound."""

    def __init__(self, functions: Mapping[str, ast.Function]) -> None:
        self._functions = functions
        self._calls: dict[tuple[str, tuple[Results, ...]], Results] = {}

    def read(self, expression: ast.Expression, names: Mapping[str, Results]) -> Results:
        match expression:
            case ast.Flwor(clauses, _, _, result):
                for clause in clauses:
                    bound = clause.source if isinstance(clause, ast.For) else clause.value
                    names = {**names, clause.variable: self.read(bound, names)}
                return self.read(result, names)
            case ast.Pipeline(clauses, result):
                for each in clauses:
                    names = {**names, **self._bound(each, names)}
                return self.read(result, names)
            case ast.Call(name, arguments) if name.removeprefix("fn:") in GIVING and name not in self._functions:
                places = GIVING[name.removeprefix("fn:")]
                given = frozenset[Result]().union(*(self.read(arguments[each], names) for each in places))
                return given | _VALUE if name == "op:convert" else given
            case ast.Call("op:attribute"):
                return _ATTRIBUTE
            case ast.Call(name) if name not in self._functions and _makes_nodes(name):
                return _CONTENT
            case ast.Call(name) if name.removeprefix("fn:") in ("op:call", "op:try", "root", *HIGHER):
                return _CONTENT | _VALUE | _ATTRIBUTE
            case ast.If(_, then, otherwise):
                return self.read(then, names) | self.read(otherwise, names)
            case ast.Sequence(items):
                return frozenset[Result]().union(*(self.read(each, names) for each in items))
            case ast.Filter(base):
                return self.read(base, names)
            case ast.Path(start, steps):
                reached = _CONTENT if start is None else self.read(start, names)
                for step in steps:
                    reached = _along(reached, step)
                return reached
            case ast.Variable(name):
                return names[name]
            case ast.Call(name, arguments) if name in self._functions:
                return self._call(self._functions[name], tuple(self.read(each, names) for each in arguments))
            case ast.ElementConstructor() | ast.Source() | ast.Root() | ast.ContextItem():
                return _CONTENT
            case _:
                return _VALUE

    def _bound(self, clause: ast.Clause, names: Mapping[str, Results]) -> dict[str, Results]:
        """The results of the variables that a clause of a pipeline binds."""
        match clause:
            case ast.For(name, source) | ast.Let(name, source):
                return {name: self.read(source, names)}
            case ast.PositionalFor(name, position, source):
                found = {name: self.read(source, names)}
                return found if position is None else found | {position: _VALUE}
            case _:
                return dict.fromkeys(bound_by(clause), _VALUE)

    def _call(self, function: ast.Function, arguments: tuple[Results, ...]) -> Results:
        key = function.name, arguments
        if key not in self._calls:
            names = dict(zip(function.parameters, arguments, strict=True))
            self._calls[key] = self.read(function.body, names)
        return self._calls[key]


def _along(start: Results, step: ast.Step) -> Results:
    match step.axis:
        case "attribute":
            return _ATTRIBUTE
        case "self" | "descendant-or-self":
            return (start - _VALUE) | (_CONTENT if step.deep else frozenset())
        case _:
            return _CONTENT


WAITS = " has to wait for the end of the input"

Kind: TypeAlias = Literal["items", "windows", "step join", "interval join", "keyed join", "whole"]


@dataclass(frozen=True, slots=True)
class Standing:
    """A checked query, analysed into frame and hole."""

    kind: Kind
    query: ast.Query
    text: str
    streams: tuple[str, ...]
    """Every stream it reads, in the order of first mention, which decides ties between them (LAWS 1.2)."""
    documents: tuple[str, ...]
    opening: str
    closing: str
    empty: str
    """The whole answer where the pieces are empty."""
    separate: bool
    """Whether pieces can be concatenated; else adjacent values need a space between them (`AnswerPiece`)."""
    reason: Unsupported | None
    """For the kind *whole*: the construct that has to wait."""
    hole: ast.Expression | None
    env: Env
    """The variables in scope at the hole."""
    scope: Mapping[str, str]
    """The namespaces declared around the hole, which pieces need not repeat."""
    outputs: QueryOutputs = NO_OUTPUTS
    """What its results may be."""

    @property
    def json(self) -> bool:
        """Whether its pieces are lines of JSON whatever its streams are (LAWS 7.3)."""
        return self.at_top and "json" in self.outputs.kinds

    @property
    def at_top(self) -> bool:
        """Whether nothing stands around the pieces, so that they may be JSON."""
        return not self.opening and not self.closing

    @property
    def plain_hole(self) -> ast.Expression | None:
        """The hole, where no namespace around it changes the meaning of its names or the text of its pieces."""
        return None if self.scope or self.env.namespaces.get("") else self.hole

    @property
    def expanded_hole(self) -> ast.Expression | None:
        """The hole, with names that need no declaration; its pieces are still written within the `scope`."""
        return None if self.hole is None else with_expanded_names(self.hole, self.env.namespaces)

    @property
    def flwor(self) -> ast.Flwor:
        """The hole of a window query or a join."""
        assert isinstance(self.hole, ast.Flwor)
        return self.hole

    @property
    def before(self) -> tuple[ast.For | ast.Let, ...]:
        """The clauses before all streams; only in the last kind do they read one."""
        return self.flwor.clauses[: self._places[0]]

    @property
    def fors(self) -> tuple[ast.For, ...]:
        """The clauses over streams, in order."""
        found = (self.flwor.clauses[place] for place in self._places)
        return tuple(each for each in found if isinstance(each, ast.For))

    @property
    def others(self) -> tuple[ast.For | ast.Let, ...]:
        """The clauses after the first of those that are not over streams."""
        behind = enumerate(self.flwor.clauses)
        return tuple(clause for place, clause in behind if place > self._places[0] and place not in self._places)

    @property
    def _places(self) -> tuple[int, ...]:
        return flowing_fors(self.flwor, functions={each.name: each for each in self.query.functions})


def standing(
    query: ast.Query,
    functions: Mapping[str, PythonFunction] | None = None,
    text: str | None = None,
    *,
    past: bool = False,
) -> Standing:
    """Analyse a checked query; with `past`, also one that asks for the past (`branch/past/`).

    `DynamicError` where the frame fails, for then the query has no answer at all.
    """
    text = text or print_query(query)
    sources = [part for part in parts(query) if isinstance(part, ast.Source)]
    streams, documents = (
        tuple(dict.fromkeys(each.name for each in sources if each.kind == kind)) for kind in ("stream", "doc")
    )
    start = Env.of(query)
    shape = _Shape(query, functions or {}, text)
    try:
        if not past:
            shape.check_present()
        hole, namespaces = shape.find(query.body, {})
        kind = shape.kind_of(hole)
        separate = shape.separate(hole)
        shape.check_documents(hole)
        frame = _frame(query, hole, functions or {}, text)
        outputs = outputs_of(query)
        at_top = not frame.opening and not frame.closing
        if not at_top and "xml" not in outputs.kinds and ("json" in outputs.kinds or outputs.given_items()):
            shape.wait("a value beside results that may be JSON", hole.span)
        separate = separate or (at_top and "json" in outputs.kinds)
        if not separate and not frame.stands_off(query, hole, functions or {}):
            shape.wait("a value beside the values of a stream", hole.span)
    except Unsupported as reason:
        outputs = outputs_of(query)
        return Standing("whole", query, text, streams, documents, "", "", "", True, reason, None, start, {}, outputs)
    env = replace(start, namespaces={**start.namespaces, **namespaces})
    shape.try_before(hole, env)
    around = frame.opening, frame.closing, frame.empty
    return Standing(kind, query, text, streams, documents, *around, separate, None, hole, env, frame.scope, outputs)


def ordered_by_time(query: Standing, times: Mapping[str, Path | None]) -> bool:
    """Whether an interval join compares its streams' declared times, and so need not wait for their end."""
    return bool(declared_bounds(query, times))


def declared_bounds(query: Standing, times: Mapping[str, Path | None]) -> tuple[Bound, ...]:
    """The bounds that an interval join sets between its streams' times, given by stream name."""
    by_variable = {
        clause.variable: times.get(source.name)
        for clause in query.fors
        if isinstance(source := base_of(clause.source), ast.Source)
    }
    return time_bounds(query.fors, query.flwor.where, by_variable)


def keys_of(query: Standing) -> tuple[KeyPair, ...]:
    """The keys of a join whose streams are all tied together by equalities; none for others."""
    names = [clause.variable for clause in query.fors]
    return join_keys(query.flwor.where, names) if tied_by_keys(query.flwor, names) else ()


# --- the frame --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Frame:
    opening: str
    closing: str
    empty: str
    scope: Mapping[str, str]

    def stands_off(self, query: ast.Query, hole: ast.Expression, functions: Mapping[str, PythonFunction]) -> bool:
        """Whether a value in the hole needs no space: no value of the frame is adjacent."""
        value = evaluate(with_part(query, hole, ast.String("value")), {}, functions=functions).text
        return value == f"{self.opening}value{self.closing}"


def _frame(query: ast.Query, hole: ast.Expression, functions: Mapping[str, PythonFunction], text: str) -> _Frame:
    """The text before and after the hole, the answer with an empty hole, and the namespaces around it."""
    mark = "hole"
    while mark in text:
        mark += "_"
    # with a namespace of its own, so that its text is the same everywhere
    marker = ast.ElementConstructor(f"{mark}:{mark}", namespaces=((mark, mark),))
    marked = evaluate(with_part(query, hole, marker), {}, functions=functions)
    opening, _, closing = marked.text.partition(f'<{mark}:{mark} xmlns:{mark}="{mark}"/>')
    empty = evaluate(with_part(query, hole, ast.Sequence(())), {}, functions=functions).text
    scope: dict[str, str] = {}
    for value in marked.values:
        if isinstance(value, Element):
            for node in descendants(value):
                if isinstance(node, Element) and node.name.uri == mark and isinstance(node.parent, Element):
                    scope = namespaces_in_scope(node.parent)
    return _Frame(opening, closing, empty, scope)


# --- the hole ---------------------------------------------------------------------------------------------


class _Shape:
    """Finds the hole, and the construct that makes a query wait for the end."""

    def __init__(self, query: ast.Query, registered: Mapping[str, PythonFunction], text: str) -> None:
        self.query = query
        self.registered = registered
        self.functions = {function.name: function for function in query.functions}
        self.readers = readers(self.functions)
        self.text = text

    def wait(self, construct: str, span: Span) -> NoReturn:
        raise Unsupported(
            f"{construct}{WAITS}",
            text=self.text,
            span=span,
            hint="'anabranch query' answers it over finite inputs",
        )

    def check_present(self) -> None:
        """A query about the past is no frame with one hole."""
        for part in parts(self.query):
            if self.sorts(part) and any(isinstance(each, ast.Qualifier) for each in parts(part)):
                raise Unsupported(
                    "what is sorted, numbered or grouped of items cannot look back before they end",
                    text=self.text,
                    span=part.span,
                    hint="register what a 'for' gives of them as a stream; 'anabranch query' answers this one",
                )
        for part in parts(self.query):
            if isinstance(part, ast.Qualifier):
                raise Unsupported(
                    "a question about the past needs a path whose reach is known before the stream ends",
                    text=self.text,
                    span=part.span,
                    hint="put '#' or '?' behind a path over the stream itself; 'anabranch query' answers this one",
                )

    def sorts(self, part: Any) -> bool:
        """Whether a part of the query is a loop over a stream whose tuples are sorted, numbered or grouped."""
        if not isinstance(part, ast.Pipeline) and not (isinstance(part, ast.Flwor) and part.order):
            return False
        return any(isinstance(each, ast.For) and self.reads(each.source) for each in part.clauses)

    def find(self, expression: ast.Expression, scope: dict[str, str]) -> tuple[ast.Expression, dict[str, str]]:
        """The part of the query that flows, with the namespaces in scope there."""
        if flows(expression, functions=self.functions) and not isinstance(expression, ast.Sequence):
            return expression, scope
        match expression:
            case ast.ElementConstructor(_, attributes, namespaces, content):
                for attribute in attributes:
                    if self.reads(attribute):
                        self.wait("a stream inside an attribute", attribute.span)
                inner: list[Any] = [each.value if isinstance(each, ast.Enclosed) else each for each in content]
                return self.only(
                    [each for each in inner if self.reads(each)], {**scope, **dict(namespaces)}, expression.span
                )
            case ast.Sequence(items):
                return self.only([each for each in items if self.reads(each)], scope, expression.span)
            case ast.Pipeline(clauses) if self.reads(expression):
                clause = next((each for each in clauses if isinstance(each, ast.GroupBy | ast.OrderBy)), clauses[0])
                match clause:
                    case ast.GroupBy():
                        self.wait("'group by' over a stream", clause.span)
                    case ast.OrderBy():
                        self.wait("'order by' over a stream", clause.span)
                    case _:
                        self.wait("a position in what comes of a stream", clause.span)
            case ast.Filter() if self.reads(expression):
                self.wait("a position in what comes of a stream", expression.span)
            case ast.Call(name) if self.reads(expression):
                self.wait(f"{shown_call(name)} over a whole stream", expression.span)
            case _ if self.reads(expression):
                self.wait("a stream inside this expression", expression.span)
            case _:
                self.wait("a query that reads no stream", expression.span)

    def only(self, found: list[Any], scope: dict[str, str], span: Span) -> tuple[ast.Expression, dict[str, str]]:
        if not found:
            self.wait("a query that reads no stream", span)
        if len(found) > 1:
            self.wait("reading streams in several places of a query", found[1].span)
        return self.find(found[0], scope)

    def kind_of(self, hole: ast.Expression) -> Kind:
        """The kind of pieces that fill the hole."""
        if not isinstance(hole, ast.Flwor):
            self.check_source(hole)
            return "items"
        places = flowing_fors(hole, functions=self.functions)
        if not places:
            self.wait("a 'let' that holds a whole stream", hole.span)
        fors = [clause for place in places if isinstance(clause := hole.clauses[place], ast.For)]
        if hole.order:
            self.wait("'order by' over a stream", hole.order[0].span)
        for before in hole.clauses[: places[0]]:
            if isinstance(before, ast.For) or self.reads(before):
                self.wait("a clause like this before the stream's 'for'", before.span)
        for each in fors:
            self.check_source(each.source)
            if set_streams(each.source) and (each.window or len(fors) > 1):
                self.wait("a window or a join over a set of several paths", each.source.span)
        if self.loops_over(hole) > sum(len(set_paths(each.source)) for each in fors):
            self.wait("a stream inside the round of another", hole.span)
        if len(fors) == 1:
            return "windows" if fors[0].window else "items"
        if fors[0].window:
            return "step join"
        names = [each.variable for each in fors]
        if bounded(hole.where, names):
            return "interval join"
        if not tied_by_keys(hole, names):
            self.wait("a second loop over a stream", fors[1].span)
        return "keyed join"

    def check_source(self, source: ast.Expression) -> None:
        """The source must be a path that names its stream, and stays below the stream's root, or a set of such."""
        if isinstance(source, ast.Call) and set_streams(source):
            for each in set_paths(source):
                self.check_source(each)
            return
        if not isinstance(base_of(source), ast.Source):
            self.wait("a stream that is not named by its path", source.span)
        if isinstance(source, ast.Source):
            self.wait("a stream without a path", source.span)
        if not below_item(source):
            self.wait("a look at the stream's root element", source.span)
        if len(readings(source, self.readers)) > 1:
            self.wait("a stream inside a predicate", source.span)

    def separate(self, hole: ast.Expression) -> bool:
        """Whether the pieces are nodes only, which can be concatenated."""
        results = results_of(hole, self.functions)
        if "attribute" in results:
            self.wait("a result that may be an attribute", hole.span)
        return results <= {"content"}

    def check_documents(self, hole: ast.Expression) -> None:
        """The frame must not read documents, for it is computed before they are read."""
        frame = list(parts(with_part(self.query, hole, ast.Sequence(())).body))
        in_functions = any(isinstance(part, ast.Source) for part in parts(self.query.functions))
        for part in frame:
            if isinstance(part, ast.Source) or (in_functions and isinstance(part, ast.Call)):
                self.wait("doc() outside of what flows", part.span)

    def try_before(self, hole: ast.Expression, env: Env) -> None:
        """Evaluate what a query binds before its first round, which belongs to no item: a failure leaves no answer."""
        if isinstance(hole, ast.Flwor):
            before = hole.clauses[: flowing_fors(hole, functions=self.functions)[0]]
            if not any(isinstance(part, ast.Source) for part in (*parts(before), *parts(self.query.functions))):
                Evaluator(self.query, {}, self.registered).bound(before, env)

    def loops_over(self, node: Any) -> int:
        """The number of places in a part of a query that read a stream as a whole; its past is bounded."""
        if isinstance(node, ast.Path | ast.Filter) and qualified(node):
            return 0
        return self.reads_itself(node) + sum(map(self.loops_over, children(node)))

    def reads_itself(self, node: Any) -> bool:
        """Whether a node of a query is a stream, or a call of a function that reads one."""
        if isinstance(node, ast.Call):
            return node.name in self.readers
        return isinstance(node, ast.Source) and node.kind == "stream"

    def reads(self, node: Any) -> bool:
        """Whether a part of a query reads a stream, itself or by a function that it calls."""
        return bool(readings(node, self.readers))
