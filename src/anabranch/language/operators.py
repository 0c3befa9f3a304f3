"""Operators that only compute, as calls of functions: `a eq b` is `op:eq(a, b)`.

XQuery's own specification defines its operators by functions in the namespace `op:`; so does this tree.
So code that walks over a query treats them as functions of values and needs no case for each operator; the printer
gives them their own notation.
The operators that conditions and windows are derived from, `and`, `or`, `=`, `<`, `+` and kin, have nodes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["comparison", "range", "multiplicative", "union", "intersect", "instance", "treat"]

VALUE_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass(frozen=True, slots=True)
class InfixOperator:
    """An operator between two operands: how it is written, and how tightly it binds."""

    word: str
    level: Level


INFIX: Mapping[str, InfixOperator] = {
    **{f"op:{word}": InfixOperator(word, "comparison") for word in VALUE_COMPARISONS},
    "op:is": InfixOperator("is", "comparison"),
    "op:precedes": InfixOperator("<<", "comparison"),
    "op:follows": InfixOperator(">>", "comparison"),
    "op:to": InfixOperator("to", "range"),
    "op:idiv": InfixOperator("idiv", "multiplicative"),
    "op:union": InfixOperator("union", "union"),
    "op:intersect": InfixOperator("intersect", "intersect"),
    "op:except": InfixOperator("except", "intersect"),
}
"""By the name of its function."""

TYPE_OPERATORS: Mapping[str, InfixOperator] = {
    "op:instance": InfixOperator("instance of", "instance"),
    "op:treat": InfixOperator("treat as", "treat"),
}
"""The operators whose right side is a type, which is a string in the call."""

NAMED = {each.word: name for name, each in INFIX.items()} | {"|": "op:union"}
"""The function of an operator, by its word."""
_MADE = {
    **dict.fromkeys(("op:array", "op:array-of"), "an array"),
    **{f"op:{kind}": f"a computed {kind}" for kind in ("element", "attribute", "document", "text", "comment")},
    "op:object": "an object",
}
"""What the functions make that stand for constructors."""
UNWRITTEN = frozenset(("op:in-order", "op:nodes", "op:typed", "op:convert", "op:empty-rank", "op:json-results"))
"""Functions that the parser makes of other notations and that have none themselves: they are printed as calls."""


def shown_call(name: str) -> str:
    """What a call is to whoever has written it: a function by its name, an operator by its word."""
    if not name.startswith("op:"):
        return f"'{name}()'"
    operator = INFIX.get(name) or TYPE_OPERATORS.get(name)
    return _MADE.get(name, "this expression") if operator is None else f"'{operator.word}'"
