"""How answers are written: values escaped, and start tags with their namespaces, as `serialize` writes them.

A start tag is known when a query is compiled:

    <n:d xmlns:n="urn:items" unit="K">   for   <n:d unit="K">   inside of   <n:p xmlns:n="urn:items">

A copy takes the namespaces in scope along (LAWS 2.1), and declares those that the element around it does not.
All items of a look have the same declarations, so a start tag differs from the item's own bytes only in front of the
attributes, and in the same way in all items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch.columnar.expressions.functions.function import TEXTUAL
from anabranch.columnar.expressions.functions.markup import ESCAPING
from anabranch.columnar.expressions.spots import TEXT_INSIDE, NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    Choice,
    ConstantValue,
    Expression,
    Fragment,
    FunctionCall,
    Kind,
    RowFold,
    Taken,
    walk,
)
from anabranch.columnar.scan.template import PLAIN, declaring
from anabranch.language import ast
from anabranch.stream.serialize import NOTHING, Scope, start_tag
from anabranch.stream.tree import Element, Name


def scope_within(namespaces: dict[str, str]) -> Scope:
    """The scope inside an element that declares these namespaces."""
    return start_tag(Element(Name("around", namespaces.get("", "")), namespaces), None)[2]


def constructed_tag(constructor: ast.ElementConstructor, around: Scope) -> tuple[str, Scope]:
    """The start tag of a constructor up to its attributes, with all declarations, and the scope inside.

    `around` is the scope in which it stands (`with_expanded_names`).
    """
    declared = dict(constructor.namespaces)
    prefix, _, local = constructor.name.rpartition(":")
    name, declarations, inside = start_tag(Element(Name(local, declared.get(prefix, ""), prefix), declared), around)
    return f"<{name}{declarations}", inside


def copied(spot: Spot, around: Scope = NOTHING) -> Taken:
    """A copy of an element."""
    taken = Taken(spot.whole, spot.side)
    parts = spot.look.parts_to(spot.part)
    in_scope = dict(spot.look.scope_at(spot.part))
    for each in parts:
        in_scope |= dict(each.declared)
    part = parts[-1]
    prefix, _, local = part.name.rpartition(":")
    if around[""] and "" not in in_scope and prefix and _holds_elements_without(spot):
        raise NotColumnar("a copy of elements in no namespace, where another is the default")
    name, declarations, _ = start_tag(Element(Name(local, part.uri, prefix), in_scope), around)
    own = "".join(f' {declaring(each)}="{uri}"' for each, uri in part.declared)
    written, found = (f"<{name}{each}".encode() for each in (own, declarations))
    return taken if written == found else Taken(spot.whole, spot.side, found, len(written))


def _holds_elements_without(spot: Spot) -> bool:
    """Whether an element has elements without a namespace inside; each would need a declaration of its own."""
    inside = (spot.look.parts[each] for each in spot.look.descendants(spot.part))
    return any(not each.uri and not each.name.startswith("@") for each in inside)


def escaped(expression: Expression, escape: Callable[[str], str]) -> Expression:
    """A value as it is written: texts of parts are plain, and literals are escaped if texts are only copied.

    The text of an element with elements in it need not be plain, so what is made of it is escaped as a whole.
    """
    match expression:
        case FunctionCall("behind", (clear, operand), kind):
            return FunctionCall("behind", (clear, escaped(operand, escape)), kind)
        case _ if expression.kind in TEXTUAL and any(map(_is_text_inside, walk(expression))):
            return FunctionCall(ESCAPING[escape], (expression,), Kind.STRING)
        case ConstantValue(str() as text):
            return ConstantValue(escape(text))
        case Choice(condition, then, otherwise):
            return Choice(condition, escaped(then, escape), escaped(otherwise, escape))
        case FunctionCall("concat" | "string", arguments, kind):
            return FunctionCall(expression.name, tuple(escaped(each, escape) for each in arguments), kind)
        case RowFold("string-join", sources, arguments):
            values = tuple(replace(each, value=each.value and escaped(each.value, escape)) for each in sources)
            return replace(expression, sources=values, arguments=tuple(escaped(each, escape) for each in arguments))
        case FunctionCall(_, arguments, Kind.STRING | Kind.UNTYPED) if not all(map(_is_plain, arguments)):
            raise NotColumnar("text of the query that must be escaped")
        case _:
            return expression


def _is_text_inside(node: Expression | Fragment) -> bool:
    return isinstance(node, FunctionCall) and node.name == TEXT_INSIDE


def _is_plain(expression: Expression) -> bool:
    """Whether no literal in an expression needs to be escaped anywhere."""
    literals = (each.value for each in walk(expression) if isinstance(each, ConstantValue))
    texts = (each.encode() for each in literals if isinstance(each, str))
    return all(byte >= 128 or PLAIN[byte] for text in texts for byte in text)
