"""Functions of numbers, sequences and nodes; mathematics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from anabranch.errors import DynamicError
from anabranch.language.signatures import MATH
from anabranch.law.library.arguments import check_collation, double_of, is_nan, needed_text, needed_whole, numeric_of
from anabranch.law.library.operators import nodes_of, value_compared
from anabranch.stream.tree import (
    Attribute,
    Comment,
    Document,
    Element,
    Instruction,
    Node,
    Text,
    descendants,
    in_document_order,
)
from anabranch.values.atomic import NULL, Atomic
from anabranch.values.function_items import FunctionItem
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.sequences import NODES, Value, Values, at_most_one, atomize

# --- how many ---------------------------------------------------------------------------------------------


def _counted(name: str, least: int, most: float, code: str) -> Callable[[Values], Values]:
    def body(values: Values) -> Values:
        if not least <= len(values) <= most:
            raise DynamicError(f"{name}() is given {len(values)} values", code=code)
        return values

    return body


def _insert_before(values: Values, place: Values, more: Values) -> Values:
    at = max(needed_whole(place, "insert-before()") - 1, 0)
    return [*values[:at], *more, *values[at:]]


def _remove(values: Values, place: Values) -> Values:
    at = needed_whole(place, "remove()")
    return [each for number, each in enumerate(values, 1) if number != at]


def _index_of(values: Values, wanted: Values, collation: Values | None = None) -> Values:
    check_collation(collation)
    search = at_most_one(wanted, "index-of()")
    if search is None:
        raise DynamicError("index-of() needs a value to look for", code="XPTY0004")
    return [place for place, each in enumerate(atomize(values), 1) if _equals(each, search)]


def _equals(one: Atomic, other: Atomic) -> bool:
    """Whether two values are `eq`; those that cannot be compared are not."""
    try:
        return value_compared("eq", one, other)
    except DynamicError:
        return False


# --- deep equality ----------------------------------------------------------------------------------------


def _deep_equal(left: Values, right: Values, collation: Values | None = None) -> Values:
    check_collation(collation)
    for each in (*left, *right):
        if isinstance(each, FunctionItem):
            raise DynamicError("functions cannot be compared", code="FOTY0015")
    return [len(left) == len(right) and all(map(_deeply_equal, left, right))]


def _deeply_equal(one: Value, other: Value) -> bool:
    match one, other:
        case JsonObject(), JsonObject():
            keys = one.entries.keys() == other.entries.keys()
            return keys and all(_all_equal(found, other.entries[key]) for key, found in one.entries.items())
        case JsonArray(), JsonArray():
            return len(one.members) == len(other.members) and all(map(_all_equal, one.members, other.members))
    if isinstance(one, NODES) and isinstance(other, NODES):
        return _alike(one, other)
    apart = (*NODES, FunctionItem, JsonObject, JsonArray)
    if isinstance(one, apart) or isinstance(other, apart):
        return False
    return (is_nan(one) and is_nan(other)) or one is other is NULL or _equals(one, other)


def _all_equal(left: Values, right: Values) -> bool:
    return len(left) == len(right) and all(map(_deeply_equal, left, right))


def _alike(one: Node, other: Node) -> bool:
    match one, other:
        case Document(), Document():
            return _alike_below(one, other)
        case Element(), Element():
            attributes = [{(a.name, a.value) for a in each.attributes} for each in (one, other)]
            return one.name == other.name and attributes[0] == attributes[1] and _alike_below(one, other)
        case Attribute(), Attribute():
            return one.name == other.name and one.value == other.value
        case Instruction(), Instruction():
            return one.target == other.target and one.value == other.value
        case Text(value=mine), Text(value=theirs):
            return mine == theirs
        case Comment(value=mine), Comment(value=theirs):
            return mine == theirs
        case _:
            return False


def _alike_below(one: Document | Element, other: Document | Element) -> bool:
    mine, theirs = ([child for child in each.children if isinstance(child, Element | Text)] for each in (one, other))
    return len(mine) == len(theirs) and all(map(_alike, mine, theirs))


# --- nodes ------------------------------------------------------------------------------------------------


def _outermost(values: Values) -> Values:
    nodes = nodes_of(values, "outermost()")
    among = set(map(id, nodes))
    return list(in_document_order([each for each in nodes if not any(id(above) in among for above in _above(each))]))


def _innermost(values: Values) -> Values:
    nodes = nodes_of(values, "innermost()")
    covered = {id(above) for each in nodes for above in _above(each)}
    return list(in_document_order([each for each in nodes if id(each) not in covered]))


def _above(node: Node) -> list[Node]:
    found: list[Node] = []
    at = node.parent
    while at is not None:
        found.append(at)
        at = at.parent
    return found


def _has_children(values: Values) -> Values:
    nodes = nodes_of(values, "has-children()")
    if len(nodes) > 1:
        raise DynamicError("has-children() takes one node", code="XPTY0004")
    return [any(isinstance(each, Document | Element) and bool(each.children) for each in nodes)]


def _namespace_uri(values: Values) -> Values:
    nodes = nodes_of(values, "namespace-uri()")
    if len(nodes) > 1:
        raise DynamicError("namespace-uri() takes one node", code="XPTY0004")
    return ["".join(each.name.uri for each in nodes if isinstance(each, Element | Attribute))]


# --- mathematics ------------------------------------------------------------------------------------------


def _math(name: str) -> Callable[[Values], Values]:
    compute: Callable[[float], float] = (lambda x: 10.0**x) if name == "exp10" else getattr(math, name)

    def body(values: Values) -> Values:
        number = double_of(values, f"math:{name}()")
        return [] if number is None else [_guarded(compute, number, name)]

    return body


def _guarded(compute: Callable[[float], float], number: float, name: str) -> float:
    if name in ("log", "log10") and number == 0:
        return -math.inf
    try:
        return compute(number)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _power(base: Values, exponent: Values) -> Values:
    x, y = double_of(base, "math:pow()"), numeric_of(exponent, "math:pow()")
    if x is None:
        return []
    if y is None:
        raise DynamicError("math:pow() needs an exponent", code="XPTY0004")
    by = float(y)
    try:
        return [math.pow(x, by)]
    except OverflowError:
        return [-math.inf if x < 0 and by % 2 == 1 else math.inf]
    except ValueError:
        if x == 0:  # and a negative exponent
            return [math.copysign(math.inf, x) if by % 2 == 1 else math.inf]
        return [math.nan]


def _atan2(first: Values, second: Values) -> Values:
    y, x = double_of(first, "math:atan2()"), double_of(second, "math:atan2()")
    if y is None or x is None:
        raise DynamicError("math:atan2() needs two numbers", code="XPTY0004")
    return [math.atan2(y, x)]


def _error(code: Values | None = None, description: Values | None = None, value: Values | None = None) -> Values:
    """`error()`: codes have no namespace here; nothing stands for the code that XQuery gives."""
    given = None if not code else needed_text(code, "error()")
    text = "error() was called" if description is None else needed_text(description, "error()")
    raise DynamicError(text, code="FOER0000" if given is None else given.rpartition(":")[2])


SEQUENCE_FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    "zero-or-one": _counted("zero-or-one", 0, 1, "FORG0003"),
    "one-or-more": _counted("one-or-more", 1, math.inf, "FORG0004"),
    "exactly-one": _counted("exactly-one", 1, 1, "FORG0005"),
    "unordered": lambda values: values,
    "trace": lambda values, label=None: values,
    "insert-before": _insert_before,
    "remove": _remove,
    "index-of": _index_of,
    "deep-equal": _deep_equal,
    "outermost": _outermost,
    "innermost": _innermost,
    "has-children": _has_children,
    "namespace-uri": _namespace_uri,
    "error": _error,
    **{f"math:{name}": _math(name) for name in MATH},
    "math:pow": _power,
    "math:atan2": _atan2,
    "math:pi": lambda: [math.pi],
}


def size_of(values: Values) -> int:
    """The size of some values: each node of their trees counts, and each value."""
    return sum(1 + sum(1 for _ in descendants(each)) if isinstance(each, Element | Document) else 1 for each in values)
