"""Queries that answer item by item: selection, projection and restructuring of one stream.

Such a query is a frame with one hole: what stands around the stream's `for` is fixed, and each item adds its own
piece to the hole, in stream order.
`opening + pieces + closing` is the answer that evaluating the query whole would give, to the byte.
Queries of other shapes are refused here with the construct named; their state is another engine's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch.errors import DynamicError, Span, StreamError, Unsupported
from anabranch.language import ast
from anabranch.language.printer import print_query
from anabranch.language.rewrite import parts, rebuild
from anabranch.language.unbounded import flowing_fors, flows, readers
from anabranch.reference.calls import PythonFunction
from anabranch.reference.construct import append_values, content_text
from anabranch.reference.env import Env
from anabranch.reference.evaluate import Evaluator, evaluate, refuse_qualifiers
from anabranch.reference.inputs import Arrival, Input
from anabranch.reference.paths import base_of
from anabranch.reference.sequences import Values
from anabranch.stream.elements import Place
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Document, Element, Name, Node, descendants, namespaces_in_scope


def per_item(
    query: ast.Query, functions: Mapping[str, PythonFunction] | None = None, text: str | None = None
) -> ItemQuery:
    """Take a checked query apart into frame and hole; raises `Unsupported` where it has another shape."""
    refuse_qualifiers(query, text)
    shape = _Shape(query, text or print_query(query))
    shape.check_inputs(query)
    hole, namespaces = shape.find(query.body, {})
    shape.check_hole(hole)
    stream = shape.stream_of(hole)
    shape.check_result(hole)
    frame, scope = _frame(query, hole, functions or {}, shape.text)
    evaluator = _ItemEvaluator(query, {}, functions or {}, text=shape.text)
    start = Env.of(query)
    return ItemQuery(
        stream, *frame, evaluator, hole, replace(start, namespaces={**start.namespaces, **namespaces}), scope
    )


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """A query ready to answer one item at a time."""

    stream: str
    opening: str
    closing: str
    empty: str
    """The whole answer where no item adds a piece."""
    evaluator: _ItemEvaluator
    hole: ast.Expression
    env: Env
    scope: Mapping[str, str]
    """The namespaces declared around the hole, which pieces need not repeat."""

    @property
    def plain_hole(self) -> ast.Expression | None:
        """The hole, where no namespace around it changes what its names mean or how its pieces are written."""
        return None if self.scope or self.env.namespaces.get("") else self.hole

    def answer(self, root: Element, item: Element) -> str:
        """The piece that one item adds, "" for none; `root` is the stream's root element, without its items."""
        values = self.evaluator.answer(self.hole, self.env, self.stream, root, item)
        return _piece(values, self.scope)


class _ItemEvaluator(Evaluator):
    """Evaluates the hole over a stream of one item; what the law sets aside is raised to the caller instead."""

    _outside: tuple[Node, ...] = ()
    """The nodes above the item, which stand for all of the stream and must not be looked at."""

    def answer(self, hole: ast.Expression, env: Env, stream: str, root: Element, item: Element) -> Values:
        if root.parent is None:
            Document().append(root)
        assert isinstance(root.parent, Document)
        item.parent = root
        arrival = Arrival(item, _NO_TIME, 0, _NOWHERE)
        self.inputs = {stream: Input(root.parent, (arrival,))}
        self._outside = (root, root.parent)
        return self.value(hole, env)

    def set_aside(self, place: Place, error: DynamicError) -> None:
        raise error

    def over_whole(self, expression: ast.Expression, env: Env) -> Values:
        raise _looks_outside()

    def look_at(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node in self._outside:
                raise _looks_outside()


def _looks_outside() -> StreamError:
    return StreamError("the query looks at the stream's root element, which has no end", hint="use --engine reference")


_NO_TIME = Input(Document()).slack
_NOWHERE = Place("", "", 0)


def _piece(values: Values, scope: Mapping[str, str]) -> str:
    if not scope:
        return content_text(values)
    carrier = Element(Name("carrier", scope.get("", "")), dict(scope))
    start = len(serialize(carrier)) - len("/>") + len(">")
    append_values(carrier, values)
    return serialize(carrier)[start : -len("</carrier>")] if carrier.children else ""


def _frame(
    query: ast.Query, hole: ast.Expression, functions: Mapping[str, PythonFunction], text: str
) -> tuple[tuple[str, str, str], dict[str, str]]:
    """What stands before and after the hole, and the answer with nothing in it; and the namespaces around it."""
    mark = "hole"
    while mark in text:
        mark += "_"
    # with a namespace of its own, so that it is written alike wherever it stands
    marker = ast.ElementConstructor(f"{mark}:{mark}", namespaces=((mark, mark),))
    marked = evaluate(_with(query, hole, marker), {}, functions=functions)
    opening, _, closing = marked.text.partition(f'<{mark}:{mark} xmlns:{mark}="{mark}"/>')
    empty = evaluate(_with(query, hole, ast.Sequence(())), {}, functions=functions).text
    scope: dict[str, str] = {}
    for value in marked.values:
        if isinstance(value, Element):
            for node in descendants(value):
                if isinstance(node, Element) and node.name.uri == mark and isinstance(node.parent, Element):
                    scope = namespaces_in_scope(node.parent)
    return (opening, closing, empty), scope


def _with(query: ast.Query, hole: ast.Expression, other: ast.Expression) -> ast.Query:
    def visit(node: Any) -> Any:
        return other if node is hole else rebuild(node, visit)

    return replace(query, body=visit(query.body))


class _Shape:
    """Looks for the hole, and names what stands in the way."""

    def __init__(self, query: ast.Query, text: str) -> None:
        self.functions = {function.name: function for function in query.functions}
        self.readers = readers(self.functions)
        self.text = text

    def unsupported(self, construct: str, span: Span) -> Unsupported:
        return Unsupported(
            f"{construct} cannot run on Spark yet",
            text=self.text,
            span=span,
            hint="use --engine reference for finite inputs",
        )

    def find(self, expression: ast.Expression, scope: dict[str, str]) -> tuple[ast.Expression, dict[str, str]]:
        """The part of the query that flows, with the namespaces that hold there."""
        if flows(expression, functions=self.functions) and not isinstance(expression, ast.Sequence):
            return expression, scope
        match expression:
            case ast.ElementConstructor(_, attributes, namespaces, content):
                for attribute in attributes:
                    if self.reads(attribute):
                        raise self.unsupported("a stream inside an attribute", attribute.span)
                inner: list[Any] = [each.value if isinstance(each, ast.Enclosed) else each for each in content]
                return self.only(
                    [each for each in inner if self.reads(each)], {**scope, **dict(namespaces)}, expression.span
                )
            case ast.Sequence(items):
                return self.only([each for each in items if self.reads(each)], scope, expression.span)
            case ast.Call(name) if self.reads(expression):
                raise self.unsupported(f"'{name}()' over a whole stream", expression.span)
            case _ if self.reads(expression):
                raise self.unsupported("a stream inside this expression", expression.span)
            case _:
                raise self.unsupported("a query that reads no stream", expression.span)

    def only(self, found: list[Any], scope: dict[str, str], span: Span) -> tuple[ast.Expression, dict[str, str]]:
        if not found:
            raise self.unsupported("a query that reads no stream", span)
        if len(found) > 1:
            raise self.unsupported("reading streams in several places of a query", found[1].span)
        return self.find(found[0], scope)

    def check_hole(self, hole: ast.Expression) -> None:
        """Refuse what needs more than one item at a time."""
        if isinstance(hole, ast.Flwor):
            places = flowing_fors(hole, functions=self.functions)
            if not places:
                raise self.unsupported("a 'let' that holds a whole stream", hole.span)
            clause = hole.clauses[places[0]]
            assert isinstance(clause, ast.For)
            if len(places) > 1:
                raise self.unsupported("a join of several streams", hole.clauses[places[1]].span)
            if clause.window:
                raise self.unsupported("a window", clause.window.span)
            if hole.order:
                raise self.unsupported("'order by' over a stream", hole.order[0].span)
            for before in hole.clauses[: places[0]]:
                if isinstance(before, ast.For) or self.reads(before):
                    raise self.unsupported("a clause like this before the stream's 'for'", before.span)

    def stream_of(self, hole: ast.Expression) -> str:
        found = hole
        if isinstance(hole, ast.Flwor):
            clause = hole.clauses[flowing_fors(hole, functions=self.functions)[0]]
            assert isinstance(clause, ast.For)
            found = clause.source
        source = base_of(found)
        if not isinstance(source, ast.Source):
            raise self.unsupported("a stream that is not named by its path", found.span)
        return source.name

    def check_result(self, hole: ast.Expression) -> None:
        if isinstance(hole, ast.Source):
            raise self.unsupported("a stream without a path", hole.span)
        if other := _no_content(hole, frozenset()):
            raise self.unsupported("a result that is no element", other.span)

    def reads(self, node: Any) -> bool:
        """Whether a stream is read anywhere in a part of a query, or by a function that it calls."""
        return any(
            (isinstance(part, ast.Source) and part.kind == "stream")
            or (isinstance(part, ast.Call) and part.name in self.readers)
            for part in parts(node)
        )

    def check_inputs(self, query: ast.Query) -> None:
        for part in parts(query):
            if isinstance(part, ast.Source) and part.kind == "doc":
                raise self.unsupported("doc()", part.span)


def _no_content(expression: ast.Expression, nodes: frozenset[str]) -> ast.Expression | None:
    """The part of a result that may give values or attributes, if there is one; `nodes` are variables that do not.

    Pieces must be content: values of two items would have to be told apart by a space.
    """
    match expression:
        case ast.Flwor(clauses, _, _, result):
            for clause in clauses:
                bound = clause.source if isinstance(clause, ast.For) else clause.value
                name = frozenset((clause.variable,))
                nodes = nodes - name if _no_content(bound, nodes) else nodes | name
            return _no_content(result, nodes)
        case ast.If(_, then, otherwise):
            return _no_content(then, nodes) or _no_content(otherwise, nodes)
        case ast.Sequence(items):
            return next((found for each in items if (found := _no_content(each, nodes))), None)
        case ast.Filter(base):
            return _no_content(base, nodes)
        case ast.Path(start, steps):
            ends = [step.axis for step in steps if step.axis not in ("self", "descendant-or-self")]
            if ends:
                return expression if ends[-1] == "attribute" else None
            return None if start is None else _no_content(start, nodes)
        case ast.Variable(name) if name in nodes:
            return None
        case ast.ElementConstructor() | ast.Source():
            return None
        case _:
            return expression
