"""What a query gives, JSON or XML, as its writing and its streams tell (LAWS 7.3).

Objects, arrays and what a lookup finds leave as lines of JSON, and so do the values beside them; elements and what `/`
reaches below an item leave as XML.
An item as it is, `return $o`, is what its stream is; it is told from other nodes by the steps that lead to it, so what
an answer is never depends on what is in the streams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from anabranch.language import ast
from anabranch.language.objects import CALL, JSON
from anabranch.language.rewrite import bound_by
from anabranch.language.signatures import GIVING, HIGHER, SIGNATURES

AnswerForm: TypeAlias = Literal["json", "xml"]
OutputKind: TypeAlias = Literal["json", "xml", "item", "node", "value", "root", "document"]
"""Objects and what is looked up; nodes that are no items; items; nodes that may be both; other values; and what stands
above items: the root, and its document.
"""


@dataclass(frozen=True, slots=True)
class QueryOutputs:
    """What the values of an expression may be."""

    kinds: frozenset[OutputKind] = frozenset()
    sources: frozenset[tuple[str, str | None]] = frozenset()
    """Of items, the root and documents: the inputs that they belong to; with a name, items of this name only."""

    def __or__(self, other: QueryOutputs) -> QueryOutputs:
        return QueryOutputs(self.kinds | other.kinds, self.sources | other.sources)

    @property
    def may_be_items(self) -> bool:
        """Whether items as they are may be among the values."""
        return bool(self.kinds & {"item", "node"})

    def given_items(self) -> frozenset[tuple[str, str | None]]:
        """The inputs whose items are among the values as they are, as far as the steps to them tell."""
        return self.sources if "item" in self.kinds else frozenset()

    @property
    def is_json_only(self) -> bool:
        """Whether no value of an answer in JSON is anything else: all are objects and kin, or items of one stream."""
        return self.kinds == {"json"} or (self.kinds == {"item"} and len(self.sources) == 1 and None in _names(self))

    def form(self, json: Mapping[str, str]) -> AnswerForm:
        """What an answer of these is, given the inputs of JSON, each with the name of its items."""
        if "json" in self.kinds:
            return "json"
        found = ((json.get(source), name) for source, name in self.given_items())
        return "json" if any(own is not None and name in (None, own) for own, name in found) else "xml"


def _names(outputs: QueryOutputs) -> set[str | None]:
    return {name for _, name in outputs.sources}


NO_OUTPUTS = QueryOutputs()
_JSON, _XML, _NODE, _VALUE = (QueryOutputs(frozenset([each])) for each in ("json", "xml", "node", "value"))


def outputs_of(query: ast.Query) -> QueryOutputs:
    """What the results of a query may be."""
    return _Reader(query).read(query.body, {})


def may_give_items(*expressions: ast.Expression, clauses: Sequence[ast.For | ast.Let] = ()) -> bool:
    """Whether expressions, behind some clauses, may give items as they are; a variable from outside may be one."""
    reader, names = _Reader(ast.Query(ast.Sequence(()))), dict[str, QueryOutputs]()
    for clause in clauses:
        names |= reader.bound(clause, names)
    return any(reader.read(each, names).may_be_items for each in expressions)


def may_give_json(*expressions: ast.Expression) -> bool:
    """Whether expressions may give objects, arrays or what is looked up; a variable from outside gives none."""
    reader = _Reader(ast.Query(ast.Sequence(())))
    return any("json" in reader.read(each, {}).kinds for each in expressions)


class _Reader:
    """Follows what variables stand for; a call of a declared function is read once for the same arguments.

    A function that is a value stands for what its body gives.
    """

    def __init__(self, query: ast.Query) -> None:
        self._functions = {each.name: each for each in query.functions}
        self._calls: dict[tuple[str, tuple[QueryOutputs, ...]], QueryOutputs] = {}

    def read(self, expression: ast.Expression, names: Mapping[str, QueryOutputs]) -> QueryOutputs:
        """What an expression may give."""
        match expression:
            case ast.Call(name, arguments):
                return self._call(name, arguments, names)
            case ast.InlineFunction(parameters, body):
                return self.read(body, {**names, **dict.fromkeys(parameters, _NODE)})
            case ast.ElementConstructor():
                return _XML
            case ast.Flwor(clauses, _, _, result) | ast.Pipeline(clauses, result):
                for clause in clauses:
                    names = {**names, **self.bound(clause, names)}
                return self.read(result, names)
            case ast.If(_, then, otherwise):
                return self.read(then, names) | self.read(otherwise, names)
            case ast.Sequence(items):
                return self._either(items, names)
            case ast.Filter(base):
                return self.read(base, names)
            case ast.Path(start, steps):
                return _reached(_NODE if start is None else self.read(start, names), steps)
            case ast.Variable(name):
                return names.get(name, _NODE)
            case ast.Source(_, name):
                return QueryOutputs(frozenset[OutputKind](["document"]), frozenset([(name, None)]))
            case ast.Root() | ast.ContextItem():
                return _NODE
            case _:
                return _VALUE

    def _either(self, expressions: Sequence[ast.Expression], names: Mapping[str, QueryOutputs]) -> QueryOutputs:
        found = NO_OUTPUTS
        for each in expressions:
            found |= self.read(each, names)
        return found

    def _call(
        self, name: str, arguments: tuple[ast.Expression, ...], names: Mapping[str, QueryOutputs]
    ) -> QueryOutputs:
        if name in self._functions:
            return self._declared(name, arguments, names)
        short = name.removeprefix("fn:")
        if short in JSON:
            return _JSON
        if short == CALL and self.read(arguments[0], names).kinds & {"json", "item"}:
            return _JSON  # what a key has
        if short in (CALL, "op:try") or short in HIGHER:
            return self._either(arguments, names)
        if short in GIVING:
            return self._either([arguments[place] for place in GIVING[short]], names)
        if short == "root":
            return _NODE
        return _XML if short in SIGNATURES and SIGNATURES[short].makes_nodes else _VALUE

    def _declared(
        self, name: str, arguments: tuple[ast.Expression, ...], names: Mapping[str, QueryOutputs]
    ) -> QueryOutputs:
        given = tuple(self.read(each, names) for each in arguments)
        key = name, given
        if key not in self._calls:
            function = self._functions[name]
            self._calls[key] = self.read(function.body, dict(zip(function.parameters, given, strict=False)))
        return self._calls[key]

    def bound(self, clause: ast.Clause, names: Mapping[str, QueryOutputs]) -> dict[str, QueryOutputs]:
        """What the variables of a clause may be."""
        match clause:
            case ast.For(name, source) | ast.Let(name, source) | ast.PositionalFor(name, _, source):
                found = {name: self.read(source, names)}
                return dict.fromkeys(bound_by(clause), _VALUE) | found
            case ast.GroupBy(keys):
                return {each.variable: _VALUE if each.value is None else self.read(each.value, names) for each in keys}
            case _:
                return dict.fromkeys(bound_by(clause), _VALUE)


def _reached(start: QueryOutputs, steps: Sequence[ast.Step]) -> QueryOutputs:
    """What steps lead to: below an item, however deep, there are none; two lead from a document to one."""
    found = start
    for step in steps:
        found = _stepped(found, step)
    return found


def _stepped(start: QueryOutputs, step: ast.Step) -> QueryOutputs:
    if step.axis not in ("child", "attribute", "descendant"):
        return _NODE
    kinds: set[OutputKind] = set()
    sources = start.sources
    is_named = isinstance(step.test, ast.NameTest) and step.axis != "attribute"
    for kind in start.kinds:
        if kind in ("document", "root") and (step.deep or step.axis == "descendant"):
            kinds.add("item" if is_named else "xml")
            if isinstance(step.test, ast.NameTest) and step.test.local != "*":
                sources = frozenset((source, step.test.local) for source, _ in sources)
        elif kind == "document":
            kinds.add("root")
        elif kind == "root":
            kinds.add("item")
        else:
            kinds.add("xml")  # of a node that may be the root, too: whoever says so by his steps gives what it holds
    return QueryOutputs(frozenset(kinds), sources)
