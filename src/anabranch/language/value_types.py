"""The types of expressions, derived from the text of a query alone: a table of results needs its columns beforehand.

The text of items has no type (LAWS 2.3), so a type comes from what a query computes: counts are integers, other
numbers are doubles (LAWS 2.1), conditions are booleans, and times are made by functions.
Data play no part; where the text leaves several kinds open, the kind is mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.language import ast
from anabranch.language.objects import JSON
from anabranch.language.operators import VALUE_COMPARISONS
from anabranch.language.rewrite import bound_by
from anabranch.language.signatures import (
    BOUNDS,
    COMPONENTS,
    GIVING,
    HIGHER,
    MATH,
    OF_MESSAGES,
    PLACES,
    SIGNATURES,
    ZONED,
)
from anabranch.values.casts import CASTS

Kind: TypeAlias = Literal[
    "nothing",
    "integer",
    "number",
    "boolean",
    "number or boolean",
    "string",
    "untyped",
    "untyped or number",
    "time",
    "mixed",
    "mixed or time",
]
"""Durations count as times."""

_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ValueType:
    """The kind of the values that an expression gives, as it would be written into a result."""

    kind: Kind
    many: bool = False
    """There may be several."""
    nodes: bool = False
    """They may be nodes."""

    def __or__(self, other: ValueType) -> ValueType:
        """One or the other."""
        return ValueType(_either(self.kind, other.kind), self.many or other.many, self.nodes or other.nodes)


NOTHING = ValueType("nothing")
_ANYTHING = ValueType("mixed", many=True, nodes=True)
_NODES = ValueType("untyped", many=True, nodes=True)
_CALLS: Mapping[str, Kind] = {
    **{name: each.kind for name, each in AGGREGATES.items() if each.kind != "extreme"},
    **dict.fromkeys(("string-length", "position", "last"), "integer"),
    **dict.fromkeys(("number", "abs", "floor", "ceiling", "round", "round-half-to-even"), "number"),
    **dict.fromkeys(("not", "boolean", "true", "false", "empty", "exists"), "boolean"),
    **dict.fromkeys(("contains", "starts-with", "ends-with"), "boolean"),
    **dict.fromkeys(("string", "normalize-space", "name", "local-name", "upper-case", "lower-case"), "string"),
    **dict.fromkeys(("substring-before", "substring-after", "substring", "translate"), "string"),
    **dict.fromkeys(("concat", "string-join"), "string"),
    **dict.fromkeys((*CASTS, "dateTime", "implicit-timezone"), "time"),
    "xs:string": "string",
    **dict.fromkeys((*OF_MESSAGES, "xs:untypedAtomic"), "untyped"),
    "xs:boolean": "boolean",
    "xs:integer": "integer",
    "xs:decimal": "number",
    "xs:double": "number",
    **{f"{part}-from-{kind}": "integer" for kind, names in COMPONENTS.items() for part in names},
    **{f"seconds-from-{kind}": "number" for kind in ("dateTime", "time", "duration")},
    **{name: "time" for kind in ZONED for name in (f"timezone-from-{kind}", f"adjust-{kind}-to-timezone")},
    **dict.fromkeys(BOUNDS, "mixed or time"),
    **dict.fromkeys((f"op:{word}" for word in VALUE_COMPARISONS), "boolean"),
    **dict.fromkeys(("op:is", "op:precedes", "op:follows", "op:instance", "deep-equal", "has-children"), "boolean"),
    **dict.fromkeys(("codepoint-equal", "contains-token", "matches"), "boolean"),
    **dict.fromkeys(("op:idiv", "op:empty-rank", "compare"), "integer"),
    **dict.fromkeys(("codepoints-to-string", "encode-for-uri", "iri-to-uri", "escape-html-uri"), "string"),
    **dict.fromkeys(("normalize-unicode", "replace", "namespace-uri", "default-collation"), "string"),
    **dict.fromkeys(("format-integer", "format-number", *(f"format-{kind}" for kind in ZONED), *PLACES), "string"),
    "parse-ietf-date": "time",
    **dict.fromkeys((*(f"math:{name}" for name in MATH), "math:pow", "math:atan2", "math:pi"), "number"),
    "error": "nothing",
}
_MANY: Mapping[str, Kind] = {
    **dict.fromkeys(("op:to", "string-to-codepoints", "index-of"), "integer"),
    "tokenize": "string",
}
"""Functions that give several values."""
_MADE = tuple(name for name, each in SIGNATURES.items() if each.makes_nodes)
_OPEN = ("op:call", "op:try", *HIGHER, "root")
"""Functions whose type depends on the data."""
_AS_GIVEN = ("data", "distinct-values")
_EXTREMES = tuple(name for name, each in AGGREGATES.items() if each.kind == "extreme")
assert SIGNATURES.keys() == {*_CALLS, *_MANY, *_MADE, *_OPEN, *_AS_GIVEN, *GIVING, *_EXTREMES, *JSON}


def _either(one: Kind, other: Kind) -> Kind:
    match {one, other}:
        case kinds if len(kinds) == 1:
            return one
        case kinds if "nothing" in kinds:
            return one if other == "nothing" else other
        case kinds if kinds == {"integer", "number"}:
            return "number"
        case kinds if kinds <= {"integer", "number", "boolean", "number or boolean"}:
            return "number or boolean"
        case kinds if kinds <= {"integer", "number", "untyped", "untyped or number"}:
            return "untyped or number"
        case kinds if kinds & {"time", "mixed or time"}:
            return "mixed or time"
        case _:
            return "mixed"


class ValueTypes:
    """Derives the types of expressions of one query; a declared function is read once per types of its arguments."""

    def __init__(self, functions: Mapping[str, ast.Function]) -> None:
        self._functions = functions
        self._calls: dict[tuple[str, tuple[ValueType, ...]], ValueType] = {}

    def of(self, expression: ast.Expression, names: Mapping[str, ValueType]) -> ValueType:
        """The type of an expression; `names` are the types of the variables that it uses."""
        match expression:
            case ast.String():
                return ValueType("string")
            case ast.Number(text):
                return ValueType("integer" if text.isdigit() and int(text) <= _MOST else "number")
            case ast.Variable(name):
                return names.get(name, _ANYTHING)
            case ast.ContextItem() | ast.Source() | ast.Root():
                return _NODES
            case ast.Path(_, steps):
                return (
                    _NODES if isinstance(steps[-1].test, ast.NameTest) or steps[-1].test.kind == "text" else _ANYTHING
                )
            case ast.Filter(base):
                return self.of(base, names)
            case ast.Sequence(items):
                found = [each for each in (self.of(item, names) for item in items) if each != NOTHING]
                several = NOTHING
                for each in found:
                    several |= each
                return replace(several, many=several.many or len(found) > 1)
            case ast.If(_, then, otherwise):
                return self.of(then, names) | self.of(otherwise, names)
            case ast.Flwor(clauses, _, _, result):
                given = self.of(result, self.within(clauses, names))
                return replace(given, many=given.many or any(isinstance(each, ast.For) for each in clauses))
            case ast.Pipeline(pipeline, result):
                return replace(self.of(result, self.within(pipeline, names)), many=True)
            case ast.ElementConstructor():
                return ValueType("untyped", nodes=True)
            case ast.Arithmetic(first, rest):
                kinds = {self.of(each, names).kind for each in (first, *(operand for _, operand in rest))}
                return ValueType("mixed or time" if kinds & {"time", "mixed or time"} else "number")
            case ast.Negation():
                return ValueType("number")
            case ast.Cast(kind, _, name):
                return ValueType(_CALLS[name] if kind == "cast" else "boolean")
            case ast.Comparison() | ast.And() | ast.Or() | ast.Quantified():
                return ValueType("boolean")
            case ast.InlineFunction():
                return _ANYTHING
            case ast.Call(name, arguments):
                return self._call(name, tuple(self.of(each, names) for each in arguments))

    def within(self, clauses: tuple[ast.Clause, ...], names: Mapping[str, ValueType]) -> dict[str, ValueType]:
        """The types of the variables behind some clauses: those around them, and their own."""
        found = dict(names)
        own: dict[str, None] = {}
        for clause in clauses:
            match clause:
                case ast.Let(variable, value):
                    found[variable] = self.of(value, found)
                case ast.For(variable, source, window):
                    found[variable] = replace(self.of(source, found), many=window is not None)
                case ast.PositionalFor(variable, position, source):
                    found[variable] = replace(self.of(source, found), many=False)
                    found |= {} if position is None else {position: ValueType("integer")}
                case ast.Count(variable):
                    found[variable] = ValueType("integer")
                case ast.GroupBy(keys):
                    given = {key.variable: self._key(key, found) for key in keys}
                    found |= {name: replace(found[name], many=True) for name in own}
                    found |= given
                case ast.Where() | ast.OrderBy():
                    pass
            own |= dict.fromkeys(bound_by(clause))
        return found

    def _key(self, key: ast.GroupKey, names: Mapping[str, ValueType]) -> ValueType:
        """The type of a key: of nodes, that of their values."""
        value = self.of(ast.Variable(key.variable) if key.value is None else key.value, names)
        return replace(value, many=False, nodes=False)

    def _call(self, name: str, arguments: tuple[ValueType, ...]) -> ValueType:
        function = self._functions.get(name)
        if function is not None:
            key = name, arguments
            if key not in self._calls:
                self._calls[key] = self.of(function.body, dict(zip(function.parameters, arguments, strict=True)))
            return self._calls[key]
        if name in _AS_GIVEN:
            return replace(arguments[0], nodes=False) if arguments else ValueType("untyped", many=True)
        if name in GIVING:
            found = [arguments[place] for place in GIVING[name]]
            single = name in ("head", "zero-or-one", "exactly-one")
            given = found[0] if len(found) == 1 else replace(found[0] | found[1], many=True)
            given = given | ValueType("mixed or time") if name == "op:convert" else given
            return replace(given, many=given.many and not single)
        if name in _MANY:
            return ValueType(_MANY[name], many=True)
        if name in _MADE:
            return ValueType("untyped", nodes=True)
        if name in ("sum", "avg") and arguments[0].kind in ("time", "mixed or time"):
            return ValueType("mixed or time")
        if name in _CALLS:
            return ValueType(_CALLS[name])
        if name in _EXTREMES:  # of strings, a string; the text of items is taken for numbers
            match arguments[0].kind:
                case "time" | "mixed or time" | "boolean" | "number or boolean" as kind:
                    return ValueType(kind)
                case "untyped" | "integer" | "number" | "untyped or number" | "nothing":
                    return ValueType("number")
                case kind:
                    return ValueType("string" if kind == "string" else "mixed")
        return _ANYTHING  # a lookup, or a function in Python
