"""The law for one unit at a time: an item, a window, or a tuple of a join.

An engine that does not hold its inputs completely asks here for the piece of a unit, and for the nodes of an item that
a windowed `for` selects from.
It is the same evaluator with the same rules (`law/rounds/rounds.py`), so the pieces are byte for byte those of the
whole answer.
A failure that the law sets aside is raised as `DynamicError`: the caller knows the place and writes the dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from anabranch.errors import DynamicError, StreamError
from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm
from anabranch.language.rewrite import parts, rebuild
from anabranch.law.bounds import WindowValues
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import append_values, content_text
from anabranch.law.env import Env
from anabranch.law.evaluate import Known, ResultRow
from anabranch.law.inputs import Arrival, Input
from anabranch.law.paths import base_of
from anabranch.law.rounds.rounds import without_predicates
from anabranch.law.rounds.windows import SessionKey, reference_value, session_key
from anabranch.law.slices import Slice, WholeNeeded, path_in_item, slice_of
from anabranch.law.spelling import Spelling
from anabranch.runtime.standing import Standing
from anabranch.runtime.tables import Lookups
from anabranch.stream.elements import Item, Place
from anabranch.stream.path import Path, TimeScale
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Document, Element, Name, Node
from anabranch.values.objects.json_text import json_lines, refuse_json
from anabranch.values.sequences import NODES, Value, Values

Forward = Callable[[Values], Values]
"""Where a stream evolves: converts a piece into the units of its place in the answer
(`runtime/evolution/outlet.py`)."""


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """The text that a unit adds to the answer. The empty piece neither begins nor ends with a value."""

    text: str
    begins: bool
    """Begins with an atomic value: after a piece that ends with one, a space is due."""
    ends: bool
    omitted: tuple[DynamicError, ...] = field(default=(), compare=False)
    """Why items of its window were left out of groups (LAWS 3.8)."""


NOTHING = AnswerPiece("", begins=False, ends=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that a `for` over a stream reaches, selected by the predicates on its path or not."""

    node: Value
    selected: bool
    value: Fraction | None
    """Its reference value in a time window, relative to the stream's origin; None without one."""
    error: DynamicError | None = None
    """Why it has no reference value; a dead letter where the node is selected, nothing where it is not."""
    key: SessionKey | DynamicError = None
    """For a node that is selected for sessions: its key, or why it has none."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that a `for` reaches in one item, in order."""

    nodes: tuple[Candidate, ...]
    error: DynamicError | None = None
    """Where a predicate failed: the item is set aside and selects nothing, but it shows the stream's progress."""


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group of a window whose items are not held: its keys by variable, and its aggregates."""

    keys: Mapping[str, Values]
    aggregates: Known


class Units:
    """Answers one query, unit by unit, without state."""

    def __init__(
        self,
        standing: Standing,
        functions: Mapping[str, PythonFunction] | None = None,
        documents: Mapping[str, Input] | None = None,
    ) -> None:
        self._standing = standing
        self._documents = documents or {}
        self._evaluator = _UnitEvaluator(standing.query, self._documents, functions or {})
        self._fors: tuple[ast.For, ...] = ()
        if standing.kind != "items":
            self._fors = standing.fors
            self._bare = [without_predicates(each.source) for each in self._fors]
            self._is_bare = [each.source == bare for each, bare in zip(self._fors, self._bare, strict=True)]
            self._others = standing.others
            self._unasked = replace(standing.flwor, where=None)
            self._bind()

    def _bind(self) -> None:
        """Bind the variables before the streams.

        That succeeded when the query was registered; but a document in them may have changed since, and change again.
        So a failure is that of each window and tuple, and paths that do not need these variables are still evaluated.
        """
        self._failure: DynamicError | None = None
        before, self._env = self._standing.before, self._standing.env
        try:
            self._env = self._evaluator.bound(before, self._env)
        except DynamicError as error:
            self._failure = error
            for each in before:
                self._env = self._env.bind(each.variable, [])

    @property
    def _outer(self) -> Env:
        """The variables in scope in a round."""
        if self._failure is not None:
            raise self._failure
        return self._env

    def item(
        self,
        root: Element,
        item: Element,
        forward: Forward | None = None,
        *,
        asked: bool = True,
        stream: str | None = None,
    ) -> AnswerPiece:
        """The piece of one item; `root` is the stream's root element, without its items.

        With `asked` false, the piece without the `where`; of a query over several streams, `stream` is the item's.
        """
        hole = self._standing.hole
        assert hole is not None
        if not asked and isinstance(hole, ast.Flwor):
            hole = replace(hole, where=None)
        document = _below(root, item)
        arrival = Arrival(item, Fraction(0), 0, _NOWHERE)
        name = self._standing.streams[0] if stream is None else stream
        others = dict.fromkeys(self._standing.streams, Input(Document()))
        given = Input(document, (arrival,), elements=(arrival,))
        self._evaluator.inputs = {**self._documents, **others, name: given}
        self._evaluator.outside = (root, document)
        self._evaluator.begin()
        values = self._evaluator.value(hole, self._standing.env)
        return standing_piece(values, self._standing, self._form([item], [name]), forward)

    def reference(self, clause: int, root: Element) -> Path | None:
        """The path from an item to the reference of one windowed `for`, where the text determines it."""
        found = self._fors[clause]
        if found.window is None or isinstance(found.window, ast.CountWindow):
            return None
        names = Spelling(self._standing.env.namespaces, root.namespaces)
        return path_in_item(found.source, found.window.reference, names)

    def candidates(self, clause: int, root: Element, item: Item, scale: TimeScale) -> Candidates:
        """The nodes that one `for` reaches in an item; `clause` is its index among those over streams.

        `scale` is the time scale of its window's reference.
        """
        source, window = self._fors[clause].source, self._fors[clause].window
        failure: DynamicError | None = None
        chosen: Values = []
        try:
            chosen = self._within(root, item, source, self._env if self._is_bare[clause] else self._outer)
        except DynamicError as error:
            failure = error
        reached = chosen if self._is_bare[clause] else self.nodes(clause, root, item)
        selected = {id(node) for node in chosen}
        nodes: list[Candidate] = []
        for node in reached:
            value: Fraction | None = None
            reason: DynamicError | None = None
            key: SessionKey | DynamicError = None
            if isinstance(window, ast.TimeWindow | ast.SessionWindow):
                try:
                    value = reference_value(window, node, self._env, self._evaluator.value, scale)
                except DynamicError as error:
                    reason = error
            if isinstance(window, ast.SessionWindow) and id(node) in selected:
                try:
                    key = session_key(window, node, self._outer, self._evaluator.value)
                except DynamicError as error:
                    key = error
            nodes.append(Candidate(node, id(node) in selected, value, reason, key))
        return Candidates(tuple(nodes), failure)

    def value(self, clause: int, node: Value, expression: ast.Expression) -> Values:
        """An expression over the variable of one `for`, for one of its nodes."""
        self._evaluator.outside, self._evaluator.known = _above_items([node]), {}
        self._evaluator.begin()
        return self._evaluator.value(expression, self._outer.bind(self._fors[clause].variable, [node]))

    def nodes(self, clause: int, root: Element, item: Item) -> Values:
        """Only the nodes that one `for` reaches in an item."""
        return self._within(root, item, self._bare[clause], self._env)

    def _within(self, root: Element, item: Item, path: ast.Expression, env: Env) -> Values:
        _below(root, item.tree)
        try:
            return self._evaluator.within(slice_of(root, item.tree), path, env)
        except WholeNeeded:
            raise _looks_outside() from None

    def window(self, nodes: Sequence[Value], known: Known | None = None, forward: Forward | None = None) -> AnswerPiece:
        """The piece of a window with this content; with its bounds where the query asks for them (`WindowValues`)."""
        return self._piece(self._rows(self._of_window(nodes), nodes, known or {}), nodes[:1], forward)

    def window_rows(self, nodes: Sequence[Value]) -> list[ResultRow]:
        """The results of a window with this content, with the ranks of an `order by`."""
        return self._rows(self._of_window(nodes), nodes, {})

    def _of_window(self, nodes: Sequence[Value]) -> Env:
        content = nodes if isinstance(nodes, WindowValues) else list(nodes)
        return self._outer.bind(self._fors[0].variable, content)

    def groups(self, groups: Sequence[KnownGroup], forward: Forward | None = None) -> AnswerPiece:
        """The piece of the groups of a window; only the clauses after its `group by` are evaluated."""
        behind = self._standing.flwor.result
        assert isinstance(behind, ast.Pipeline)
        env, tuples = self._outer, []
        for each in groups:
            tuples.append(replace(env, variables={**env.variables, **each.keys}, found=each.aggregates))
        self._evaluator.outside, self._evaluator.known = (), {}
        self._evaluator.begin(max(1, len(groups)))
        return standing_piece(self._evaluator.piped(behind, tuples), self._standing, self._form(()), forward)

    def tuple(self, nodes: Sequence[Value], forward: Forward | None = None, *, asked: bool = True) -> AnswerPiece:
        """The piece of a tuple of a join, one node for each `for`; with `asked` false, without the `where`."""
        return self._piece(self._rows(self._of_tuple(nodes), nodes, {}, asked=asked), nodes, forward)

    def tuple_rows(self, nodes: Sequence[Value]) -> list[ResultRow]:
        """The results of a tuple of a join, with the ranks of an `order by`."""
        return self._rows(self._of_tuple(nodes), nodes, {})

    def _of_tuple(self, nodes: Sequence[Value]) -> Env:
        env = self._outer
        for clause, node in zip(self._fors, nodes, strict=True):
            env = env.bind(clause.variable, [node])
        return env

    def _rows(self, env: Env, nodes: Sequence[Value], known: Known, *, asked: bool = True) -> list[ResultRow]:
        self._evaluator.outside = _above_items(nodes)
        self._evaluator.known = known
        flwor = self._standing.flwor if asked else self._unasked
        return self._evaluator.round_rows(flwor, self._others, env, len(nodes))

    def _piece(self, rows: Sequence[ResultRow], nodes: Sequence[Value], forward: Forward | None) -> AnswerPiece:
        values = [value for row in rows for value in row.values]
        piece = standing_piece(values, self._standing, self._form(nodes), forward)
        return replace(piece, omitted=tuple(self.omitted)) if self.omitted else piece

    def _form(self, nodes: Sequence[Value], names: Sequence[str] = ()) -> AnswerForm:
        """What the answer is, given a node of each `for`, which show how its stream is written.

        `names` are their streams, where the `for`s do not tell.
        """
        standing = self._standing
        if standing.json or not standing.outputs.given_items():
            return "json" if standing.json else "xml"
        streams = [_stream_of(each.source) for each in self._fors] if self._fors else names or standing.streams
        items = zip(streams, map(_item_of, nodes), strict=False)
        json = {stream: item.name.local for stream, item in items if item is not None and item.mark is not None}
        json |= {name: known for name, each in self._documents.items() if (known := each.json_item) is not None}
        return standing.outputs.form(json)

    @property
    def omitted(self) -> Sequence[DynamicError]:
        """Why items were left out of the groups of the last window or tuple (LAWS 3.8)."""
        return list(self._evaluator.omitted.values())


class _UnitEvaluator(Lookups):
    """Evaluates one unit; what the law sets aside is raised, and nothing outside the unit can be read."""

    outside: tuple[Node, ...] = ()
    """The nodes above the items, which stand for the whole stream."""

    def within(self, part: Slice, path: ast.Expression, env: Env) -> Values:
        """The nodes that a path over a stream reaches in one item."""
        self.outside = ()
        self.begin()
        reached = self.walk(path, env, part)
        part.look_at_result(reached)
        return reached

    def set_aside(
        self, arrival: Arrival | None, error: DynamicError, held: Sequence[tuple[Arrival | None, Value]] = ()
    ) -> None:
        raise error

    def over_whole(self, expression: ast.Expression, env: Env) -> Values:
        raise _looks_outside()

    def look_at(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if any(node is each for each in self.outside):
                raise _looks_outside()


def looks_outside(standing: Standing, roots: Mapping[str, Element]) -> str | None:
    """Why a query cannot be answered item by item below these roots, by stream: one of its paths reaches a root.

    A path such as `stream("s")//r` does so where the root is an `r`, whatever its items hold; None for other queries.
    """
    if standing.kind == "whole":
        return None
    evaluator = _UnitEvaluator(standing.query, {}, {})
    paths = [each for each in parts(standing.query) if isinstance(each, ast.Path | ast.Filter)]
    inner = {id(each.start if isinstance(each, ast.Path) else each.base) for each in paths}
    for path in paths:
        source = base_of(path)
        if id(path) in inner or not isinstance(source, ast.Source) or source.kind != "stream":
            continue
        try:
            evaluator.within(slice_of(roots[source.name], Element(_PROBE)), _unconditional(path), standing.env)
        except WholeNeeded:
            return _looks_outside().message
    return None


def _unconditional(path: ast.Expression) -> ast.Expression:
    """A path without the effect of its predicates; whether they are applied to a root is still detected."""

    def visit(node: Any) -> Any:
        if isinstance(node, ast.Predicate | ast.Positional):
            return ast.Predicate(ast.Call("true", ()), span=node.span)
        return rebuild(node, visit)

    found: ast.Expression = visit(path)
    return found


def _looks_outside() -> StreamError:
    return StreamError("the query looks at the stream's root element, which has no end", hint="use --engine reference")


_NOWHERE = Place("", "", 0)
_PROBE = Name("probe", "urn:anabranch:probe")
"""The name of an item that no stream has."""


def _below(root: Element, item: Element) -> Document:
    """Put an item below its stream's root, which has no children."""
    if root.parent is None:
        Document().append(root)
    assert isinstance(root.parent, Document)
    item.parent = root
    return root.parent


def _above_items(nodes: Sequence[Value]) -> tuple[Node, ...]:
    """The roots of the streams that some nodes come from, and their documents."""
    above: dict[int, Node] = {}
    for value in nodes:
        node = value if isinstance(value, NODES) else None
        while node is not None:
            if node.parent is None or isinstance(node.parent, Document):
                above[id(node)] = node
            node = node.parent
    return tuple(above.values())


def _stream_of(path: ast.Expression) -> str:
    """The stream that a `for` runs over."""
    source = base_of(path)
    return source.name if isinstance(source, ast.Source) else ""


def _item_of(value: Value) -> Element | None:
    """The item that a node is part of."""
    node: Node | None = value if isinstance(value, NODES) else None
    while node is not None and node.parent is not None and node.parent.parent is not None:
        if isinstance(node.parent.parent, Document):
            break
        node = node.parent
    return node if isinstance(node, Element) else None


def standing_piece(values: Values, standing: Standing, form: AnswerForm, forward: Forward | None = None) -> AnswerPiece:
    """Values as they are written in the hole of a query: as lines of JSON (LAWS 7.3), or as XML."""
    if forward is not None:
        values = forward(values)
    if values and standing.at_top:
        try:
            if form == "json":
                return AnswerPiece(json_lines(values), begins=False, ends=False)
            refuse_json(values)
        except DynamicError as error:
            raise error.given(values) from None
    return piece_of(values, standing.scope)


def piece_of(values: Values, scope: Mapping[str, str]) -> AnswerPiece:
    """Values as they are written where the namespaces of `scope` are declared already."""
    if not values:
        return NOTHING
    return AnswerPiece(_text(values, scope), not isinstance(values[0], NODES), not isinstance(values[-1], NODES))


def _text(values: Values, scope: Mapping[str, str]) -> str:
    if not scope:
        return content_text(values)
    carrier = Element(Name("carrier", scope.get("", "")), dict(scope))
    start = len(serialize(carrier)) - len("/>") + len(">")
    append_values(carrier, values)
    return serialize(carrier)[start : -len("</carrier>")] if carrier.children else ""
