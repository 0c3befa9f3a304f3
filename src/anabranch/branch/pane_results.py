"""What a query makes of a window's aggregates, without the evaluator where that is plain to see.

    let $a := avg($w/en) where $a >= 1.3 return <avg_en>{ $a }</avg_en>

Made for this are names for aggregates, conditions of `and`, `or` and comparisons between them and numbers, and
constructors with them in braces.
Any other query, and every window in which an aggregate fails, is the evaluator's; which way a window takes never shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from anabranch.language import ast
from anabranch.reference.evaluate import number
from anabranch.reference.sequences import Values, atomize
from anabranch.reference.standing import Standing
from anabranch.reference.values import compare, negate, spell
from anabranch.stream.serialize import escape_attribute, escape_text

Known: TypeAlias = Mapping[str, Values]
_Value: TypeAlias = Callable[[Known], Values]
_Test: TypeAlias = Callable[[Known], bool]
_Text: TypeAlias = Callable[[Known], str]


def window_result(standing: Standing) -> _Text | None:
    """The text that a window adds, given its aggregates by variable; None for a query that is not made for this."""
    if standing.plain_hole is None or standing.before:
        return None
    names: dict[str, _Value] = {}
    try:
        for clause in standing.others:
            if isinstance(clause, ast.For):
                return None
            names[clause.variable] = _value(clause.value, names)
        where = standing.flwor.where
        test = _always if where is None else _test(where, names)
        if not isinstance(standing.flwor.result, ast.ElementConstructor):
            return None
        text = _element(standing.flwor.result, names)
    except _Other:
        return None
    return lambda known: text(known) if test(known) else ""


class _Other(Exception):
    """The query is the evaluator's."""


def _always(_: Known) -> bool:
    return True


def _value(expression: ast.Expression, names: Mapping[str, _Value]) -> _Value:
    """An aggregate or a number."""
    match expression:
        case ast.Variable(name) if name in names:
            return names[name]
        case ast.Variable(name) if "#" in name:
            return lambda known: known[name]
        case ast.Number(text):
            written: Values = [number(text)]
            return lambda _: written
        case ast.Negation(ast.Number(text)):
            negative: Values = [negate(each) for each in atomize([number(text)])]
            return lambda _: negative
        case _:
            raise _Other


def _test(expression: ast.Expression, names: Mapping[str, _Value]) -> _Test:
    match expression:
        case ast.And(operands):
            each_of = [_test(each, names) for each in operands]
            return lambda known: all(test(known) for test in each_of)
        case ast.Or(operands):
            one_of = [_test(each, names) for each in operands]
            return lambda known: any(test(known) for test in one_of)
        case ast.Comparison(operator, left, right):
            a, b = _value(left, names), _value(right, names)
            return lambda known: any(compare(operator, x, y) for x, y in product(atomize(a(known)), atomize(b(known))))
        case _:
            raise _Other


def _element(constructor: ast.ElementConstructor, names: Mapping[str, _Value]) -> _Text:
    attributes = [each.name for each in constructor.attributes]
    plain = not constructor.namespaces and ":" not in "".join((constructor.name, *attributes))
    if not plain or len(set(attributes)) < len(attributes):
        raise _Other
    tag: list[_Text] = [_fixed(f"<{constructor.name}")]
    for attribute in constructor.attributes:
        inside = [_attribute_part(each, names) for each in attribute.value]
        tag += [_fixed(f' {attribute.name}="'), *inside, _fixed('"')]
    start, inner = _joined(tag), _joined([_content(each, names) for each in constructor.content])
    end = f"</{constructor.name}>"

    def text(known: Known) -> str:
        content = inner(known)
        return f"{start(known)}>{content}{end}" if content else f"{start(known)}/>"

    return text


def _attribute_part(part: ast.Characters | ast.Enclosed, names: Mapping[str, _Value]) -> _Text:
    return _fixed(escape_attribute(part.value)) if isinstance(part, ast.Characters) else _enclosed(part.value, names)


def _content(part: ast.Content, names: Mapping[str, _Value]) -> _Text:
    match part:
        case ast.Characters(value):
            return _fixed(escape_text(value))
        case ast.CommentConstructor(value):
            return _fixed(f"<!--{value}-->")
        case ast.ElementConstructor():
            return _element(part, names)
        case ast.Enclosed(ast.ElementConstructor() as inner):
            return _element(inner, names)
        case ast.Enclosed(expression):
            return _enclosed(expression, names)


def _enclosed(expression: ast.Expression, names: Mapping[str, _Value]) -> _Text:
    """Numbers in one pair of braces, which have a space between them and nothing that must be escaped."""
    items: Sequence[ast.Expression] = expression.items if isinstance(expression, ast.Sequence) else (expression,)
    values = [_value(each, names) for each in items]
    return lambda known: " ".join(spell(each) for value in values for each in atomize(value(known)))


def _fixed(text: str) -> _Text:
    return lambda _: text


def _joined(parts: Iterable[_Text]) -> _Text:
    each_of = tuple(parts)
    return lambda known: "".join([part(known) for part in each_of])
