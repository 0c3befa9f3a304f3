"""What a query makes of a window's aggregates, where that is plain to see without the evaluator.

    let $a := avg($w/en) where $a >= 1.3 return <avg_en>{ $a }</avg_en>

Made for this are names for aggregates, conditions of `and`, `or` and comparisons between them and numbers, and
constructors with them in braces, and with the bounds of the window; where windows are grouped, also with the parts of
a group's key; and objects and arrays of all these, which are lines of JSON.
Such a result is written out for many windows at once (`columns.py`); where units have changed,
an aggregate that is an element's only content is written in that of its place (LAWS 4.3).
Any other query, and every window in which an aggregate fails, is the evaluator's; which way a window takes never shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from anabranch.language import ast
from anabranch.language.objects import ARRAY, OBJECT
from anabranch.language.windows.aggregates import BOUND_VARIABLES, AggregateCall, Aggregated
from anabranch.logic import EVERYTHING, And, Or, Tree, leaves
from anabranch.runtime.standing import Standing
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.reading.json_items import write_string
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.values.arithmetic import negate
from anabranch.values.atomic import literal
from anabranch.values.operators import ComparisonOperator
from anabranch.values.sequences import Values, atomize


@dataclass(frozen=True, slots=True)
class AggregateValue:
    variable: str
    by: Affine = IDENTITY
    """The unit that it is written in, as the map from that of query start."""
    beside: str = ""
    """Another aggregate without which it is nothing, as the sum of nothing is in SQL."""


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number that the query wrote."""

    value: Values


@dataclass(frozen=True, slots=True)
class KeyText:
    """A part of the key of a group, by its number."""

    part: int
    in_attribute: bool = False
    """Whether it is written in an attribute, where more signs are escaped."""
    as_json: bool = False
    """Whether it is written as JSON."""


@dataclass(frozen=True, slots=True)
class BoundText:
    """A bound of the window, by the variable that stands for it."""

    variable: str
    as_json: bool = False
    """Whether it is written as JSON, which has quotes around times."""


Operand: TypeAlias = AggregateValue | NumberLiteral
"""What is compared."""
Written: TypeAlias = AggregateValue | NumberLiteral | KeyText | BoundText
"""What is written into the answer."""


@dataclass(frozen=True, slots=True)
class AggregateComparison:
    operator: ComparisonOperator
    left: Operand
    right: Operand


Test: TypeAlias = Tree[AggregateComparison]


@dataclass(frozen=True, slots=True)
class Inserted:
    """Values in one pair of braces, which have a space between them."""

    operands: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Tagged:
    """An element; one without content is written as an empty tag."""

    name: str
    attributes: tuple[tuple[str, tuple[str | Inserted, ...]], ...]
    content: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A line of JSON: text, and values in it, which are `null` where there are none."""

    pieces: tuple[str | Written, ...]


Part: TypeAlias = str | Inserted | Tagged | JsonLine


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """`where`: the groups for which a test holds."""

    test: Test


@dataclass(frozen=True, slots=True)
class SortedGroups:
    """`order by`: the values that groups are sorted by, each with whether it is descending."""

    keys: tuple[tuple[Written, bool], ...]


@dataclass(frozen=True, slots=True)
class CountedGroups:
    """`count`: the variable that stands for the number of each group."""

    variable: str


GroupClause: TypeAlias = KeptGroups | SortedGroups | CountedGroups


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What each window adds to the answer, or each group of one."""

    test: Test
    element: Tagged | JsonLine
    behind: tuple[GroupClause, ...] = ()
    """The clauses that all groups of a window pass first, in order."""


def window_result(standing: Standing, known: Mapping[str, Written] = MappingProxyType({})) -> WindowResult | None:
    """What a query makes of its windows; None where the evaluator has to compute it.

    `known` has the values of variables that the query does not bind.
    """
    if standing.plain_hole is None or standing.before:
        return None
    names = dict(known)
    try:
        for clause in standing.others:
            if isinstance(clause, ast.For):
                return None
            names[clause.variable] = _written(clause.value, names)
        where = standing.flwor.where
        test: Test = EVERYTHING if where is None else _test(where, names)
        return WindowResult(test, _result(standing.flwor.result, names, standing))
    except _Other:
        return None


def group_result(standing: Standing, keys: Sequence[str]) -> WindowResult | None:
    """What a query makes of the groups of its windows, whose keys have these names; None as above."""
    behind = standing.flwor.result
    if standing.plain_hole is None or standing.before or not isinstance(behind, ast.Pipeline):
        return None
    names: dict[str, Written] = {name: KeyText(part) for part, name in enumerate(keys)}
    clauses: list[GroupClause] = []
    try:
        for clause in behind.clauses:
            match clause:
                case ast.Let(name, value):
                    names[name] = _written(value, names)
                case ast.Where(condition):
                    clauses.append(KeptGroups(_test(condition, names)))
                case ast.OrderBy(by):
                    clauses.append(SortedGroups(tuple((_written(each.key, names), each.descending) for each in by)))
                case ast.Count(name):
                    names[name] = AggregateValue(f"{name}#")
                    clauses.append(CountedGroups(f"{name}#"))
                case _:
                    return None
        return WindowResult(EVERYTHING, _result(behind.result, names, standing), tuple(clauses))
    except _Other:
        return None


def can_fail(result: WindowResult, calls: Sequence[AggregateCall]) -> bool:
    """Whether a test may raise though no aggregate has failed: the `min` and `max` of dateTimes are no numbers."""
    extremes = {each.variable for each in calls if each.function in _EXTREMES}
    tests = (result.test, *(each.test for each in result.behind if isinstance(each, KeptGroups)))
    compared = (operand for test in tests for each in leaves(test) for operand in (each.left, each.right))
    return any(isinstance(each, AggregateValue) and each.variable in extremes for each in compared)


def may_be_unsaid(result: WindowResult, seen: Aggregated) -> bool:
    """Whether JSON may not be able to say it, since the least or greatest of texts may be INF or NaN (LAWS 7.3).

    Its dead letter then names the first item of its window.
    """
    if not isinstance(result.element, JsonLine):
        return False
    of_texts = {
        each.variable
        for each in seen.calls
        if each.function in _EXTREMES and not isinstance(seen.paths[each.path], ast.Call)
    }
    return any(isinstance(each, AggregateValue) and each.variable in of_texts for each in result.element.pieces)


_EXTREMES = ("min", "max")


def _result(expression: ast.Expression, names: Mapping[str, Written], standing: Standing) -> Tagged | JsonLine:
    match expression:
        case ast.ElementConstructor():
            return _element(expression, names)
        case ast.Call(name) if name in (OBJECT, ARRAY) and standing.at_top:
            return JsonLine((*_json(expression, names), "\n"))
        case _:
            raise _Other


def _json(expression: ast.Expression, names: Mapping[str, Written]) -> list[str | Written]:
    """A value in a line of JSON."""
    match expression:
        case ast.Call(name, arguments) if name == OBJECT:
            keys = [each.value for each in arguments[::2] if isinstance(each, ast.String)]
            if 2 * len(set(keys)) < len(arguments):
                raise _Other
            entries = zip(keys, arguments[1::2], strict=True)
            return ["{", *_between([f"{write_string(key)}: ", *_json(each, names)] for key, each in entries), "}"]
        case ast.Call(name, members) if name == ARRAY:
            return ["[", *_between(_json(each, names) for each in members), "]"]
        case ast.String(text):
            return [write_string(text)]
        case ast.Sequence(()):
            return ["null"]
        case ast.If(ast.Call("exists" | "fn:exists", (ast.Variable(beside),)), then, ast.Sequence(())) if "#" in beside:
            found = _written(then, names)
            if not isinstance(found, AggregateValue):
                raise _Other
            return [replace(found, beside=beside)]
    match _written(expression, names):
        case KeyText() | BoundText() as found:
            return [replace(found, as_json=True)]
        case found:
            return [found]


def _between(pieces: Iterable[list[str | Written]]) -> list[str | Written]:
    """Pieces with commas between them."""
    return [each for number, one in enumerate(pieces) for each in ([", "] if number else []) + one]


class _Other(Exception):
    """The evaluator has to compute this result."""


def _operand(expression: ast.Expression, names: Mapping[str, Written]) -> Operand:
    found = _written(expression, names)
    if isinstance(found, KeyText | BoundText):
        raise _Other
    return found


def _written(expression: ast.Expression, names: Mapping[str, Written]) -> Written:
    match expression:
        case ast.Variable(name) if name in names:
            return names[name]
        case ast.Variable(name) if name in BOUND_VARIABLES:
            return BoundText(name)
        case ast.Variable(name) if "#" in name:
            return AggregateValue(name)
        case ast.Number(text):
            return NumberLiteral([literal(text)])
        case ast.Negation(ast.Number(text)):
            return NumberLiteral([negate(each) for each in atomize([literal(text)])])
        case _:
            raise _Other


def _test(expression: ast.Expression, names: Mapping[str, Written]) -> Test:
    match expression:
        case ast.And(operands):
            return And(tuple(_test(each, names) for each in operands))
        case ast.Or(operands):
            return Or(tuple(_test(each, names) for each in operands))
        case ast.Comparison(operator, left, right):
            return AggregateComparison(operator, _operand(left, names), _operand(right, names))
        case _:
            raise _Other


def _element(constructor: ast.ElementConstructor, names: Mapping[str, Written]) -> Tagged:
    attributes = [each.name for each in constructor.attributes]
    plain = not constructor.namespaces and ":" not in "".join((constructor.name, *attributes))
    if not plain or len(set(attributes)) < len(attributes):
        raise _Other
    values = [tuple(_attribute_part(each, names) for each in given.value) for given in constructor.attributes]
    content = tuple(_content(each, names) for each in constructor.content)
    return Tagged(constructor.name, tuple(zip(attributes, values, strict=True)), content)


def _attribute_part(part: ast.Characters | ast.Enclosed, names: Mapping[str, Written]) -> str | Inserted:
    if isinstance(part, ast.Characters):
        return escape_attribute(part.value)
    found = _inserted(part.value, names).operands
    return Inserted(tuple(KeyText(each.part, True) if isinstance(each, KeyText) else each for each in found))


def _content(part: ast.Content, names: Mapping[str, Written]) -> Part:
    match part:
        case ast.Characters(value):
            return escape_text(value)
        case ast.CommentConstructor(value):
            return f"<!--{value}-->"
        case ast.ElementConstructor():
            return _element(part, names)
        case ast.Enclosed(ast.ElementConstructor() as inner):
            return _element(inner, names)
        case ast.Enclosed(expression):
            return _inserted(expression, names)


def _inserted(expression: ast.Expression, names: Mapping[str, Written]) -> Inserted:
    items = expression.items if isinstance(expression, ast.Sequence) else (expression,)
    return Inserted(tuple(_written(each, names) for each in items))


# --- other units ------------------------------------------------------------------------------------------


def in_units(result: WindowResult, units: Mapping[Path, Affine]) -> WindowResult | None:
    """The same with what is written at some paths in other units; None where that is not an aggregate alone."""
    if isinstance(result.element, JsonLine):
        return None if units else result
    try:
        return replace(result, element=_in_units(result.element, (), units))
    except _Other:
        return None


def _in_units(element: Tagged, steps: tuple[str, ...], units: Mapping[Path, Affine]) -> Tagged:
    if any(Path((*steps, f"@{name}")) in units for name, _ in element.attributes):
        raise _Other
    inner = tuple(
        _in_units(each, (*steps, each.name), units) if isinstance(each, Tagged) else each for each in element.content
    )
    by = units.get(Path(steps), IDENTITY)
    match inner:
        case (Inserted((AggregateValue(variable),)),) if by != IDENTITY:
            inner = (Inserted((AggregateValue(variable, by),)),)
        case _ if by != IDENTITY and inner and not any(isinstance(each, Tagged) for each in inner):
            raise _Other
        case _:
            pass
    return Tagged(element.name, element.attributes, inner)
