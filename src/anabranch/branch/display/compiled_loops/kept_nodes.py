"""What is kept of an entry, read directly: children by name, versions by number, text and markup; and values of it.

What only the law's evaluator can answer raises `Unusual` (`loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from anabranch.algebra.display.display import Piece
from anabranch.law.history.chains import Chain, Content, Lived, Version
from anabranch.logic import COMPARES
from anabranch.stream.limits import LEAST_STEPS
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.stream.tree import LETTERS, Attribute, Comment, Element, Instruction, Text
from anabranch.values.arithmetic import calculate, calculate_doubles
from anabranch.values.atomic import NULL, Atomic, JsonNumber, Untyped, compare, spell, to_double
from anabranch.values.sequences import truth

MOST_WORK = LEAST_STEPS // 4
"""The work that is done without counting steps as the law does; each unit of it is a few steps at most."""


class Unusual(Exception):  # a signal to ask the law, not an error
    """Something that only the law's evaluator can answer."""


class Markup(str):
    """The text of an element that a query has made."""

    __slots__ = ()


KeptValues: TypeAlias = list[Any]
"""Nodes as they are kept (`Lived`), attributes, atomic values and markup."""
Names: TypeAlias = dict[str, KeptValues]
"""The variables of a round; the context item is under an empty name."""
Closure: TypeAlias = Callable[[Names], KeptValues]


def collect(content: Sequence[Content], name: str, found: list[Lived]) -> None:
    """Add the shown children of a name."""
    for each in content:
        if isinstance(each, Lived):
            node = each.node
            if type(node) is Element and node.name.local == name and not node.name.uri:
                if each.namespaces or node.mark is not None:
                    raise Unusual
                found.append(each)
        elif each.versions:
            collect(each.versions[-1].content, name, found)


def collect_deep(
    content: Sequence[Content], name: str, found: list[Lived], *, is_last: bool, is_inside: bool = False
) -> None:
    """Add the shown elements of a name at any depth, in document order."""
    for each in content:
        if isinstance(each, Lived):
            node = each.node
            if type(node) is not Element:
                continue
            if each.namespaces or node.mark is not None:
                raise Unusual
            is_one = node.name.local == name and not node.name.uri
            if is_one:
                if is_inside and not is_last:
                    raise Unusual  # what follows from nested nodes is not in document order
                found.append(each)
            collect_deep(each.content, name, found, is_last=is_last, is_inside=is_inside or is_one)
        elif each.versions:
            collect_deep(each.versions[-1].content, name, found, is_last=is_last, is_inside=is_inside)


def collect_versions(content: Sequence[Content], name: str, most: int, window: bool, found: list[Lived]) -> None:
    """Add the children of a name in the versions that `#most` or `#[most]` asks for (`law/history/versions.py`)."""
    for each in content:
        if isinstance(each, Lived):
            if window or not most:
                collect((each,), name, found)
            continue
        for level, version in enumerate(reversed(each.versions)):
            _refuse_chains(version.content)
            if level <= most if window else level == most:
                start = len(found)
                collect(version.content, name, found)
                if level:
                    for old in found[start:]:
                        _refuse_regions(old)


def collect_lived(content: Sequence[Content], name: str, then: Fraction, window: bool, found: list[Lived]) -> None:
    """Add the children of a name in the versions that lived at a time, or with `window` since then."""
    for each in content:
        if isinstance(each, Lived):
            if window or each.start <= then:
                collect((each,), name, found)
            continue
        for level, version in enumerate(reversed(each.versions)):
            began = version.start <= then
            if window or began:
                _refuse_chains(version.content)
                start = len(found)
                collect(version.content if window else _come(version, then), name, found)
                if level:
                    for old in found[start:]:
                        _refuse_regions(old)
            if began:
                break  # all before it had ended by then


def _come(version: Version, then: Fraction) -> list[Lived]:
    """What had come of a version at a time at which it lived."""
    starts = version.start
    nodes = [each for each in version.content if isinstance(each, Lived)]
    return [each for each in nodes if each.start is starts or each.start <= then]


def _refuse_chains(content: Sequence[Content]) -> None:
    """What a version with regions directly in it shows is found by the law."""
    for each in content:
        if isinstance(each, Chain):
            raise Unusual


def _refuse_regions(lived: Lived) -> None:
    """What shows in a version that was replaced is found by the law, where regions are in it."""
    for each in lived.content:
        if isinstance(each, Chain):
            raise Unusual
        _refuse_regions(each)


def text_of(lived: Lived) -> str:
    """The shown text of a node."""
    node = lived.node
    if type(node) is Text:
        return _plain_text(node)
    content = lived.content
    if len(content) == 1 and isinstance(content[0], Lived) and type(content[0].node) is Text:
        return _plain_text(content[0].node)
    parts: list[str] = []
    _add_texts(content, parts)
    return "".join(parts)


def _plain_text(node: Text) -> str:
    if node.measure is not None:
        raise Unusual
    return node.value


def _add_texts(content: Sequence[Content], parts: list[str]) -> None:
    for each in content:
        if isinstance(each, Chain):
            if each.versions:
                _add_texts(each.versions[-1].content, parts)
        elif type(each.node) is Text:
            parts.append(_plain_text(each.node))
        elif type(each.node) is Element:
            _add_texts(each.content, parts)


def write(lived: Lived, out: list[str], work: list[int]) -> None:
    """Write a node as a copy of it is written."""
    work[0] += 1
    simple = _simple_text(lived)
    if simple is not None:
        work[0] += 1 + (len(simple) >> LETTERS)
        name = lived.node.name.local  # type: ignore[union-attr]  # it is an element
        out.append(f"<{name}>{escape_text(simple)}</{name}>")
        if work[0] > MOST_WORK:
            raise Unusual
        return
    match lived.node:
        case Text() as node:
            text = _plain_text(node)
            work[0] += len(text) >> LETTERS
            out.append(escape_text(text))
        case Element() as node:
            if lived.namespaces or node.name.uri or node.mark is not None:
                raise Unusual
            start = node.name.local
            for attribute in node.attributes:
                if attribute.name.uri:
                    raise Unusual
                work[0] += 1 + (len(attribute.value) >> LETTERS)
                start += f' {attribute.name.local}="{escape_attribute(attribute.value)}"'
            before = len(out)
            out.append(f"<{start}>")
            _write_all(lived.content, out, work)
            if len(out) == before + 1:
                out[before] = f"<{start}/>"
            else:
                out.append(f"</{node.name.local}>")
        case Comment() as node:
            out.append(f"<!--{node.value}-->")
        case Instruction() as node:
            out.append(f"<?{node.target} {node.value}?>" if node.value else f"<?{node.target}?>")
    if work[0] > MOST_WORK:
        raise Unusual


def _simple_text(lived: Lived) -> str | None:
    """The text of an element with nothing else in it, and nothing unusual; None for other nodes."""
    node, content = lived.node, lived.content
    if type(node) is not Element or node.attributes or len(content) != 1 or lived.namespaces or node.name.uri:
        return None
    (inner,) = content
    if type(inner) is not Lived or type(inner.node) is not Text or node.mark is not None:
        return None
    return _plain_text(inner.node)


def _write_all(content: Sequence[Content], out: list[str], work: list[int]) -> None:
    for each in content:
        if isinstance(each, Lived):
            write(each, out, work)
        elif each.versions:
            _write_all(each.versions[-1].content, out, work)


def collect_texts(content: Sequence[Content], found: KeptValues) -> None:
    """Add the shown texts."""
    for each in content:
        if isinstance(each, Lived):
            if type(each.node) is Text:
                found.append(each)
        elif each.versions:
            collect_texts(each.versions[-1].content, found)


def collect_attribute(lived: Lived, name: str, found: KeptValues) -> None:
    """Add an attribute of a node."""
    if isinstance(lived.node, Element):
        found += [each for each in lived.node.attributes if each.name.local == name and not each.name.uri]


# --- values -------------------------------------------------------------------------------------------------------


def atoms(values: KeptValues) -> list[Atomic]:
    """The values of nodes, as operators compute with them."""
    found: list[Atomic] = []
    for each in values:
        if type(each) is Lived:
            found.append(Untyped(text_of(each)))
        elif type(each) is Attribute:
            if each.measure is not None:
                raise Unusual
            found.append(Untyped(each.value))
        elif type(each) is Markup or each is NULL:
            raise Unusual
        else:
            found.append(each)
    return found


def single(found: Sequence[Atomic]) -> Atomic | None:
    """The one value of an operand, None for none."""
    if len(found) > 1:
        raise Unusual
    return found[0] if found else None


def is_true(values: KeptValues) -> bool:
    """Whether a predicate holds."""
    if not values:
        return False
    first = values[0]
    if type(first) in _NODES:
        return True
    if len(values) == 1 and not isinstance(first, bool) and isinstance(first, int | float | Decimal | JsonNumber):
        raise Unusual  # in a predicate it would be a position
    return truth(values)


_NODES = (Lived, Attribute, Markup)


def piece_of(values: KeptValues) -> Piece | None:
    """Values as they are written in an answer; None for nothing at all."""
    if not values:
        return None
    out: list[str] = []
    pending: list[str] = []
    work = [0]
    for each in values:
        kind = type(each)
        if kind in _NODES:
            if pending:
                out.append(escape_text(" ".join(pending)))
                pending = []
            if kind is Attribute:
                raise Unusual
            out.append(each) if kind is Markup else write(each, out, work)
        elif each is NULL:
            raise Unusual
        else:
            pending.append(spell(each))
    if pending:
        out.append(escape_text(" ".join(pending)))
    return Piece("".join(out), type(values[0]) not in _NODES, type(values[-1]) not in _NODES)


def constant(value: Atomic) -> Closure:
    """A literal."""
    return lambda names: [value]


def constant_text(text: str) -> Callable[[Names], str]:
    """Text that a query says."""
    return lambda names: text


def spelled(values: Closure) -> Callable[[Names], str]:
    """Atomic values side by side as text, with spaces between."""
    return lambda names: " ".join([spell(each) for each in values(names)])


def no_nulls(values: KeptValues) -> KeptValues:
    """Values among which is no `null`."""
    if any(each is NULL for each in values):
        raise Unusual
    return values


def holds(values: KeptValues) -> bool:
    """XQuery's effective boolean value."""
    return bool(values) and (type(values[0]) in _NODES or truth(values))


def comparison(operator: Any, left: Closure, right: Closure) -> Closure:
    """A general comparison of atomic values."""
    compares = COMPARES[operator]

    def compared(names: Names) -> KeptValues:
        lefts, rights = left(names), right(names)
        if len(lefts) == 1 and len(rights) == 1:
            one, other = lefts[0], rights[0]
            if type(one) is Untyped and type(other) is float:  # mostly; it is what `compare` does with them
                return [compares(to_double(one), other)]
            return [compare(operator, one, other)]
        if len(lefts) > 1 and len(rights) > 1:
            raise Unusual  # the law counts the pairs
        found = [compare(operator, one, other) for one in lefts for other in rights]  # each, for its errors
        return [any(found)]

    return compared


def arithmetic(first: Closure, rest: Sequence[tuple[Any, Closure]]) -> Closure:
    """A chain of arithmetic operations on atomic values."""

    def computed(names: Names) -> KeptValues:
        result = single(first(names))
        for operator, operand in rest:
            right = single(operand(names))
            if result is None or right is None:
                result = None
            elif _are_doubles(type(result), type(right)):  # mostly; it is what `calculate` does with them
                result = calculate_doubles(operator, to_double(result), to_double(right))
            else:
                result = calculate(operator, result, right)
        return [] if result is None else [result]

    return computed


_DOUBLES = frozenset((Untyped, float))
_NUMBERS = frozenset((Untyped, float, int, Decimal))


def _are_doubles(one: type, other: type) -> bool:
    """Whether an operation on values of these types is one on doubles."""
    return other in _NUMBERS if one in _DOUBLES else other in _DOUBLES and one in _NUMBERS


def _truths(operands: Sequence[Closure], names: Names) -> list[bool]:
    """The truth of all operands, whatever some of them decide: an error in one is the law's business."""
    return [holds(each(names)) for each in operands]


def all_of(operands: Sequence[Closure]) -> Closure:
    """`and`"""
    return lambda names: [all(_truths(operands, names))]


def any_of(operands: Sequence[Closure]) -> Closure:
    """`or`"""
    return lambda names: [any(_truths(operands, names))]
