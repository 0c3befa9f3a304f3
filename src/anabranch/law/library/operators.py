"""Operators as functions: value comparisons, nodes compared and united, ranges, whole division (LAWS 2.8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal

from anabranch.errors import DynamicError
from anabranch.language.operators import VALUE_COMPARISONS
from anabranch.law.library.arguments import is_nan
from anabranch.stream.tree import Node, in_document_order
from anabranch.values.arithmetic import calculate
from anabranch.values.atomic import Atomic, JsonNumber, Untyped, as_number, compare
from anabranch.values.objects.json_text import json_lines
from anabranch.values.operators import ComparisonOperator
from anabranch.values.sequences import NODES, Values, at_most_one, key_of

_GENERAL: Mapping[str, ComparisonOperator] = dict(
    zip(VALUE_COMPARISONS, ("=", "!=", "<", "<=", ">", ">="), strict=True)
)


def value_compared(word: str, left: Atomic, right: Atomic) -> bool:
    """`left eq right` and kin: untyped text is a string, whatever it spells; a number of JSON is a number."""
    a, b = (
        str(each) if isinstance(each, Untyped) and not isinstance(each, JsonNumber) else each for each in (left, right)
    )
    try:
        return compare(_GENERAL[word], a, b)
    except DynamicError as error:
        if error.code == "XPTY0004" and any(isinstance(each, Untyped) for each in (left, right)):
            error.hint = "the text of items has no type: write '=', '<' and kin, or cast it, as in number(...)"
        raise


def _value_comparison(word: str) -> Callable[[Values, Values], Values]:
    def body(left: Values, right: Values) -> Values:
        a, b = (at_most_one(each, f"'{word}'") for each in (left, right))
        return [] if a is None or b is None else [value_compared(word, a, b)]

    return body


def _whole_quotient(left: Values, right: Values) -> Values:
    a, b = at_most_one(left, "'idiv'"), at_most_one(right, "'idiv'")
    if a is None or b is None:
        return []
    x, y = as_number(a), as_number(b)
    if y == 0:
        raise DynamicError("division by zero", code="FOAR0001")
    if any(isinstance(each, float) and not math.isfinite(each) for each in (x, y)):
        if is_nan(x) or is_nan(y) or (isinstance(x, float) and math.isinf(x)):
            raise DynamicError("no whole number comes of that", code="FOAR0002")
        return [0]
    if isinstance(x, float) or isinstance(y, float):
        quotient = calculate("div", float(x), float(y))
        assert isinstance(quotient, float)
        if not math.isfinite(quotient):
            raise DynamicError("the number is too large", code="FOAR0002")
        return [int(quotient)]
    p, q = (Decimal(each).as_integer_ratio() for each in (x, y))
    above, below = p[0] * q[1], p[1] * q[0]
    found = abs(above) // abs(below)
    return [found if (above < 0) == (below < 0) else -found]


# --- nodes ------------------------------------------------------------------------------------------------


def nodes_of(values: Values, what: str) -> list[Node]:
    """An argument that is nodes only."""
    found: list[Node] = []
    for each in values:
        if not isinstance(each, NODES):
            raise DynamicError(f"{what} takes nodes", code="XPTY0004")
        found.append(each)
    return found


def _node_comparison(word: str, holds: Callable[[Node, Node], bool]) -> Callable[[Values, Values], Values]:
    def body(left: Values, right: Values) -> Values:
        sides = nodes_of(left, f"'{word}'"), nodes_of(right, f"'{word}'")
        if any(len(each) > 1 for each in sides):
            raise DynamicError(f"'{word}' takes one node on each side", code="XPTY0004")
        return [holds(a, b) for a in sides[0] for b in sides[1]]

    return body


def _union(left: Values, right: Values) -> Values:
    return list(in_document_order([*nodes_of(left, "'union'"), *nodes_of(right, "'union'")]))


def _chosen(word: str, *, among: bool) -> Callable[[Values, Values], Values]:
    def body(left: Values, right: Values) -> Values:
        others = {id(each) for each in nodes_of(right, f"'{word}'")}
        kept = [each for each in nodes_of(left, f"'{word}'") if (id(each) in others) == among]
        return list(in_document_order(kept))

    return body


def _in_order(values: Values) -> Values:
    """What a path gives: nodes in document order, each once, or values as they come."""
    nodes = sum(isinstance(each, NODES) for each in values)
    if not nodes:
        return values
    if nodes < len(values):
        raise DynamicError("a step gives nodes and values", code="XPTY0018")
    return list(in_document_order(nodes_of(values, "a path")))


def _starts(values: Values) -> Values:
    """What a step starts from."""
    if not all(isinstance(each, NODES) for each in values):
        raise DynamicError("a step needs a node to start from", code="XPTY0019")
    return values


def _empty_rank(values: Values) -> Values:
    """Where a key sorts that is nothing or NaN, where these are the greatest."""
    value = key_of(values, "'order by'")
    if value is None:
        return [2]
    return [1 if is_nan(value) or (isinstance(value, Untyped) and value.strip(" \t\r\n") == "NaN") else 0]


def _json_results(values: Values) -> Values:
    """What a round gives to an answer in JSON; an error where it cannot be written there (LAWS 7.3)."""
    json_lines(values)
    return values


OPERATOR_FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    **{f"op:{word}": _value_comparison(word) for word in VALUE_COMPARISONS},
    "op:is": _node_comparison("is", lambda a, b: a is b),
    "op:precedes": _node_comparison("<<", lambda a, b: a.order < b.order),
    "op:follows": _node_comparison(">>", lambda a, b: a.order > b.order),
    "op:idiv": _whole_quotient,
    "op:union": _union,
    "op:intersect": _chosen("intersect", among=True),
    "op:except": _chosen("except", among=False),
    "op:in-order": _in_order,
    "op:nodes": _starts,
    "op:empty-rank": _empty_rank,
    "op:json-results": _json_results,
}
