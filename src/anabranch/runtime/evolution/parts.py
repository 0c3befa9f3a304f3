"""Parts: abstract values for tracing a query's lineage (`tracing.py`).

A part is a sequence of nodes at one path, a number computed from one path, a constructed element, a constant, or
anything else; all know the paths that they depend on.
This module gives their meaning: at the top of a piece, inside an element, along the steps of a path, and in arithmetic,
which is affine in one path or unknown (LAWS 4.7).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Literal, TypeAlias

from anabranch.language import ast
from anabranch.law.spelling import Namespaces, Spelling
from anabranch.runtime.evolution.lineage import ANY, DEEP, Look, Origin, Site
from anabranch.stream.path import Path
from anabranch.values.operators import ArithmeticOperator

ITSELF = Path(())
MOST_PARTS = 1_000
"""The most parts of a sequence, and sites of an element; a query that makes more, by nested calls, is not analysed."""


@dataclass(frozen=True, slots=True)
class NodesPart:
    """Nodes of an input, all at one path; texts are those in the elements there."""

    input: int
    path: Path
    kind: Literal["element", "attribute", "text"] = "element"
    name: str | None = None
    """The name of an element."""
    level: int = 0
    """-2 for the stream's document, -1 for its root, which are above all items."""
    many: bool = False
    """Whether it covers all items of a window."""
    always: bool = True

    @property
    def of(self) -> frozenset[Look]:
        return frozenset(((self.input, self.path),)) if not self.level else frozenset()

    @property
    def is_known(self) -> bool:
        return not self.level and not {ANY, DEEP} & {*self.path.steps}


@dataclass(frozen=True, slots=True)
class NumberPart:
    """A number that is computed from the values at one path."""

    origin: Origin

    @property
    def of(self) -> frozenset[Look]:
        return frozenset(((self.origin.input, self.origin.path),))


@dataclass(frozen=True, slots=True)
class MadePart:
    """A constructed element, with the sites in it."""

    name: str
    sites: tuple[Site, ...]
    of: frozenset[Look]
    always: bool = True


@dataclass(frozen=True, slots=True)
class ConstantPart:
    """A number written in the query."""

    value: Fraction
    of: frozenset[Look] = frozenset()


@dataclass(frozen=True, slots=True)
class OtherPart:
    """Anything else, with the paths that it depends on."""

    of: frozenset[Look] = frozenset()
    nodes: bool = False


Part: TypeAlias = NodesPart | NumberPart | MadePart | ConstantPart | OtherPart
Parts: TypeAlias = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class TraceScope:
    """The variables and prefixes in scope at a place in a query."""

    variables: Mapping[str, Parts]
    namespaces: Namespaces

    def of(self, name: str) -> Parts:
        return self.variables.get(name, ())

    def bind(self, name: str, parts: Parts) -> TraceScope:
        """The scope with a variable bound."""
        return replace(self, variables={**self.variables, name: parts})

    def within(self, namespaces: Iterable[tuple[str, str]]) -> TraceScope:
        """The scope with some prefixes declared."""
        return replace(self, namespaces={**self.namespaces, **dict(namespaces)})


def looks_of(parts: Iterable[Part]) -> frozenset[Look]:
    """The paths that some parts depend on."""
    return frozenset(look for part in parts for look in part.of)


def maybe(parts: Parts) -> Parts:
    """The same parts, each optional."""
    return tuple(replace(each, always=False) if isinstance(each, NodesPart | MadePart) else each for each in parts)


def side_by_side(parts: Parts) -> Parts:
    """The same parts, several times: nodes stay apart, and values are one text, which is no number."""
    return tuple(each if is_node(each) else OtherPart(each.of) for each in parts)


def few(parts: Parts) -> Parts:
    """The same parts, or where there are too many, only the paths they depend on."""
    return parts if len(parts) <= MOST_PARTS else (OtherPart(looks_of(parts), nodes=True),)


def bound(part: Part, from_stream: bool, many: bool) -> Part:
    """The part that a loop variable stands for."""
    always = from_stream and not many and isinstance(part, NodesPart) and part.path == ITSELF
    return replace(part, always=always, many=many) if isinstance(part, NodesPart) else part


def is_node(part: Part) -> bool:
    """Whether a part remains a node of its own inside an element."""
    match part:
        case MadePart() | OtherPart(nodes=True):
            return True
        case NodesPart(kind=kind):
            return kind != "text"
        case _:
            return False


def is_element(part: Part) -> bool:
    """Whether a node may stand beside texts, and so make its element's content mixed."""
    return not (isinstance(part, NodesPart) and part.kind == "attribute")


def at_top(part: Part) -> tuple[Site, ...] | None:
    """The sites of an output item that is a part at the top; None for a text or value, which is no item."""
    match part:
        case MadePart(_, sites):
            return sites
        case NodesPart(kind="element") if part.is_known:
            always = part.path == ITSELF and not part.many
            return (Site(ITSELF, Origin(part.input, part.path), "tree", always),)
        case NodesPart(kind="element") | OtherPart(nodes=True):
            return (Site(ITSELF, None, "tree"),)
        case _:
            return None


def value_site(at: Path, parts: Collection[Part]) -> Site:
    """The site of a value that consists of these parts."""
    match tuple(parts):
        case (NumberPart(origin),):
            return Site(at, origin)  # a number is no copy of its text, so descriptions cannot name it
        case (NodesPart() as only,) if only.is_known and not only.many and only.path.steps:
            return Site(at, Origin(only.input, only.path), always=only.always)
        case _:
            return Site(at, None)


def inside(part: Part) -> Iterator[Site]:
    """The sites of a node inside the element that contains it."""
    match part:
        case MadePart(name, sites):
            yield from (each.under(name, part.always) for each in sites)
        case NodesPart() if part.is_known and (called := _name(part)):
            yield Site(Path((called,)), Origin(part.input, part.path), "tree", part.always and not part.many)
        case NodesPart(kind="element", path=Path((*above, last))) if last == ANY and not {ANY, DEEP} & {*above}:
            always = part.always and not part.many
            yield Site(ITSELF, Origin(part.input, Path(tuple(above))), "inside", always)
        case _:
            yield Site(ITSELF, None, "tree")


def _name(part: NodesPart) -> str | None:
    return part.path.steps[-1] if part.path.steps else part.name


def stepped(part: Part, step: ast.Step, names: Spelling) -> Parts:
    """The parts that a step reaches, without its predicates: several, if a name has several spellings."""
    if not isinstance(part, NodesPart) or part.kind == "text":
        return (OtherPart(part.of, nodes=True),)
    if part.level < 0:
        return (_from_above(part, step, names),)
    way = (*part.path.steps, DEEP) if step.deep else part.path.steps
    match step.axis, step.test:
        case "child", ast.NameTest() as test:
            return _to(replace(part, name=None), way, names.of(test))
        case "child", ast.KindTest("text"):
            return (replace(part, path=Path(way), kind="text"),)
        case "attribute", ast.NameTest() as test:
            spelled = names.of(test, attribute=True)
            return _to(replace(part, kind="attribute"), way, [ANY if each == ANY else f"@{each}" for each in spelled])
        case "self", _:
            return (replace(part, path=Path(way), always=part.always and isinstance(step.test, ast.KindTest)),)
        case "descendant", ast.NameTest() as test:
            return _to(replace(part, name=None), (*way, DEEP), names.of(test))
        case "descendant-or-self", _:
            return (replace(part, path=Path((*way, DEEP)), name=None),)
        case "parent", _ if part.is_known and part.path.steps and not step.deep:
            return (replace(part, path=Path(way[:-1]), kind="element", name=None, always=False),)
        case axis, _ if axis in ast.CLIMBING and axis != "parent":
            return (anywhere((part,)),)
        case _:
            return (OtherPart(part.of, nodes=True),)


def anywhere(found: Iterable[Part]) -> OtherPart:
    """Nodes that may stand anywhere in the items that some parts are of."""
    return OtherPart(frozenset((input, Path((DEEP,))) for input, _ in looks_of(found)), nodes=True)


def _to(part: NodesPart, way: tuple[str, ...], names: Collection[str]) -> Parts:
    """A part for each of some names, behind the way; with several names, each is optional."""
    return tuple(replace(part, path=Path((*way, each)), always=part.always and len(names) == 1) for each in names)


def _from_above(part: NodesPart, step: ast.Step, names: Spelling) -> Part:
    """A step from a stream's document or root, whatever its name."""
    match step:
        case ast.Step("child", ast.NameTest() as test, deep=False):
            spelled = names.of(test)
            return replace(part, level=part.level + 1, name=None if ANY in spelled or len(spelled) > 1 else spelled[0])
        case ast.Step("child" | "descendant", ast.NameTest()):
            return replace(part, level=0, path=Path((DEEP,)), always=False)
        case ast.Step("self", ast.KindTest("node"), deep=False):
            return part
        case _:
            return OtherPart(frozenset(((part.input, Path((DEEP,))),)), nodes=True)


_NUMBERS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul, "div": truediv}
MOST_DIGITS = 100
"""The most digits of a constant in affine arithmetic."""


def operand(found: Parts) -> Part:
    """The part of an operand of arithmetic."""
    match found:
        case (ConstantPart() | NumberPart() as only,):
            return only
        case (NodesPart() as only,) if only.is_known and not only.many and only.path.steps:
            return NumberPart(Origin(only.input, only.path))
        case _:
            return OtherPart(looks_of(found))


def calculated(operator: ArithmeticOperator, left: Part, right: Part) -> Part:
    """The result of an operation, as long as it is affine in one path."""
    match left, operator, right:
        case ConstantPart(x), "+" | "-" | "*" | "div", ConstantPart(y) if operator != "div" or y:
            return _bounded(ConstantPart(_NUMBERS[operator](x, y)))
        case NumberPart(origin), "+" | "-", ConstantPart(y):
            return _bounded(replace(left, origin=replace(origin, b=_NUMBERS[operator](origin.b, y))))
        case (NumberPart() as of, "+", ConstantPart(x)) | (ConstantPart(x), "+", NumberPart() as of):
            return _bounded(replace(of, origin=replace(of.origin, b=of.origin.b + x)))
        case ConstantPart(x), "-", NumberPart(origin):
            return _bounded(replace(right, origin=replace(origin, a=-origin.a, b=x - origin.b)))
        case (NumberPart() as of, "*", ConstantPart(x)) | (ConstantPart(x), "*", NumberPart() as of) if x:
            return _bounded(replace(of, origin=replace(of.origin, a=of.origin.a * x, b=of.origin.b * x)))
        case NumberPart(origin), "+" | "-", NumberPart(other) if _alike(origin, other):
            a, b = _NUMBERS[operator](origin.a, other.a), _NUMBERS[operator](origin.b, other.b)
            return _bounded(replace(left, origin=replace(origin, a=a, b=b))) if a else OtherPart(left.of)
        case NumberPart(origin), "div", ConstantPart(y) if y:
            return _bounded(replace(left, origin=replace(origin, a=origin.a / y, b=origin.b / y)))
        case _:
            return OtherPart(left.of | right.of)


def _alike(origin: Origin, other: Origin) -> bool:
    """Whether two numbers are computed from the same values."""
    return replace(origin, a=other.a, b=other.b) == other


def _bounded(part: ConstantPart | NumberPart) -> Part:
    """The part, unless its numbers have become too long."""
    numbers = (part.value,) if isinstance(part, ConstantPart) else (part.origin.a, part.origin.b)
    longest = max(max(abs(each.numerator), each.denominator) for each in numbers)
    return part if longest < 10 ** (2 * MOST_DIGITS) else OtherPart(part.of)
