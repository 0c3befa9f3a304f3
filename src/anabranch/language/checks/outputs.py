"""What a query gives, JSON or XML, as far as its text shows (LAWS 7.3).

Objects, arrays and what a lookup finds leave as lines of JSON, and so do the values beside them; elements and what `/`
reaches below an item leave as XML.
Whether an item as it is, `return $o`, is JSON depends on the format of its stream, and is seen when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from anabranch.language import ast
from anabranch.language.objects import JSON
from anabranch.language.rewrite import bound_by

Output: TypeAlias = Literal["json", "xml", "item", "value", "root", "document"]
"""Kinds of results: `json` is objects and what a lookup finds, `xml` nodes that are no items, `item` nodes that may be
items, `value` all other values; `root` and `document` stand beside an `item` that may be one of these nodes, too.
"""
Outputs: TypeAlias = frozenset[Output]

_JSON, _XML, _ITEM, _VALUE = (frozenset[Output]([each]) for each in ("json", "xml", "item", "value"))
_ROOT, _DOCUMENT = frozenset[Output](["item", "root"]), frozenset[Output](["item", "document"])
_PASSING = ("head", "tail", "reverse", "subsequence")


def gives_json(query: ast.Query) -> bool:
    """Whether the answer of a query is JSON whatever it finds."""
    return "json" in outputs_of(query)


def outputs_of(query: ast.Query) -> Outputs:
    """What the results of a query may be."""
    return _Outputs(query).read(query.body, {})


def may_give_items(*expressions: ast.Expression, clauses: Sequence[ast.For | ast.Let] = ()) -> bool:
    """Whether expressions, behind some clauses, may give items as they are; a variable from outside may be one."""
    reader, names = _Outputs(ast.Query(ast.Sequence(()))), dict[str, Outputs]()
    for clause in clauses:
        names |= reader.bound(clause, names)
    return any("item" in reader.read(each, names) for each in expressions)


def may_give_json(*expressions: ast.Expression) -> bool:
    """Whether expressions may give objects, arrays or what is looked up; a variable from outside gives none."""
    reader = _Outputs(ast.Query(ast.Sequence(())))
    return any("json" in reader.read(each, {}) for each in expressions)


class _Outputs:
    """Follows what variables stand for; a call of a declared function is read once for the same arguments."""

    def __init__(self, query: ast.Query) -> None:
        self._functions = {each.name: each for each in query.functions}
        self._calls: dict[tuple[str, tuple[Outputs, ...]], Outputs] = {}

    def read(self, expression: ast.Expression, names: Mapping[str, Outputs]) -> Outputs:
        """What an expression may give."""
        match expression:
            case ast.Call(name, arguments):
                return self._call(name, arguments, names)
            case ast.ElementConstructor():
                return _XML
            case ast.Flwor(clauses, _, _, result) | ast.Pipeline(clauses, result):
                for clause in clauses:
                    names = {**names, **self.bound(clause, names)}
                return self.read(result, names)
            case ast.If(_, then, otherwise):
                return self.read(then, names) | self.read(otherwise, names)
            case ast.Sequence(items):
                return frozenset[Output]().union(*(self.read(each, names) for each in items))
            case ast.Filter(base):
                return self.read(base, names)
            case ast.Path(start, steps):
                return _reached(_ITEM if start is None else self.read(start, names), steps)
            case ast.Variable(name):
                return names.get(name, _ITEM)
            case ast.Source() | ast.Root():
                return _DOCUMENT
            case ast.ContextItem():
                return _ITEM
            case _:
                return _VALUE

    def _call(self, name: str, arguments: tuple[ast.Expression, ...], names: Mapping[str, Outputs]) -> Outputs:
        if name in JSON:
            return _JSON
        if name.removeprefix("fn:") in _PASSING:
            return self.read(arguments[0], names)
        if name not in self._functions:
            return _VALUE if not name.startswith("op:") else _ITEM
        given = tuple(self.read(each, names) for each in arguments)
        key = name, given
        if key not in self._calls:
            function = self._functions[name]
            self._calls[key] = self.read(function.body, dict(zip(function.parameters, given, strict=False)))
        return self._calls[key]

    def bound(self, clause: ast.Clause, names: Mapping[str, Outputs]) -> dict[str, Outputs]:
        """What the variables of a clause may be."""
        match clause:
            case ast.For(name, source) | ast.Let(name, source) | ast.PositionalFor(name, _, source):
                found = {name: self.read(source, names)}
                return dict.fromkeys(bound_by(clause), _VALUE) | found
            case ast.GroupBy(keys):
                return {each.variable: _VALUE if each.value is None else self.read(each.value, names) for each in keys}
            case _:
                return dict.fromkeys(bound_by(clause), _VALUE)


def _reached(start: Outputs, steps: Sequence[ast.Step]) -> Outputs:
    """What steps lead to: two lead from a document to its items, and nodes below an item are XML, however deep."""
    if any(step.axis not in ("child", "attribute", "descendant") for step in steps):
        return _ITEM
    above = 2 if "document" in start else 1 if "root" in start else 0
    if above and any(step.deep or step.axis == "descendant" for step in steps):
        return _ITEM
    match len(steps) - above:
        case 0:
            return _ITEM
        case below:
            return _XML if below > 0 else _ROOT
