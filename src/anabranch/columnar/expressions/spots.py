"""Spots: the parts of items that paths lead to, as they are reached from somewhere, and what does not compile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anabranch.columnar.expressions.tree import (
    ConstantValue,
    ContentOf,
    Expression,
    FunctionCall,
    Junction,
    Kind,
    PartText,
    Presence,
    RowQuantifier,
    Taken,
)
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.language import ast
from anabranch.stream.reading.json_names import key_of_step

_KINDS: Mapping[str, Kind] = {
    "string": Kind.STRING,
    "number": Kind.NUMBER,
    "boolean": Kind.FLAG,
    "object": Kind.CONTENT,
}
"""By type of JSON."""
TEXT_INSIDE = "text-inside"
"""The text of an element with elements in it, as a function of the whole element (`functions/markup.py`)."""


class NotColumnar(Exception):
    """An expression does not compile to columns; the text names the construct."""

    def __init__(self, construct: str, hint: str | None = None) -> None:
        super().__init__(construct)
        self.construct = construct
        """The construct, in words that fit all queries."""
        self.hint = hint
        """An expression of the same or nearly the same meaning that compiles."""
        self.expression: ast.Expression | None = None
        """The innermost expression of the query with the construct."""

    def blame(self, expression: ast.Expression) -> NotColumnar:
        """The error with its expression, unless an inner expression is known already."""
        self.expression = self.expression or expression
        return self


@dataclass(frozen=True, slots=True)
class Spot:
    """A part of all items of a look, as it is reached from somewhere; part -1 is the root around items."""

    look: Look
    part: int
    bound: int = -1
    """The frame whose row it is reached from, -1 for an item."""
    side: int = 0
    condition: Expression | None = None
    """The condition of the predicates on the way there, in the rows of its frame; None where there are none."""
    asked: tuple[tuple[int, Expression], ...] = ()
    """The same of each place on the way, in the rows of that one's frame: there may be such without this part."""
    is_chosen: bool = False
    """Whether the condition holds for at most one of the rows."""

    @property
    def bare(self) -> Spot:
        """The spot without any conditions."""
        return replace(self, condition=None, asked=())

    @property
    def is_single(self) -> bool:
        """Whether there is at most one such node for each row that it is reached from."""
        return self.look.frames[self.part] == self.bound

    @property
    def parent_frame(self) -> int:
        """The frame in whose rows there is at most one parent of it, -1 for items."""
        parent = self.look.parts[self.part].parent
        return self.look.frames[parent] if parent >= 0 else -1

    @property
    def is_attribute(self) -> bool:
        """Whether it is an attribute, and no element."""
        return self.part >= 0 and self.look.parts[self.part].name.startswith("@")

    @property
    def is_typed(self) -> bool:
        """Whether a lookup leads here: to values of JSON, and not to nodes."""
        return self.part >= 0 and self.look.parts[self.part].is_typed

    @property
    def is_array(self) -> bool:
        """Whether it is an array of JSON, which stands for its members where values are meant."""
        return self.is_typed and self.look.shown(self.part) != self.look.parts[self.part].parent

    @property
    def kind(self) -> Kind:
        """The type of its text."""
        return _KINDS[self.look.parts[self.look.shown(self.part)].json_type] if self.is_typed else Kind.UNTYPED

    @property
    def name(self) -> str:
        """The name of the element or attribute, as it is written."""
        return self.look.parts[self.part].name.removeprefix("@")

    def called(self, *, local: bool) -> str:
        """What `name()` and `local-name()` give: the key of JSON that it was read from, or else its name."""
        part = self.look.parts[self.part]
        key = key_of_step(part.name)
        if self.part >= len(self.look.of_items.parts) and key not in (None, part.name):
            raise NotColumnar("the name of what may be a key in a document of JSON, and is no name of XML")
        if key is not None and part.json_type:
            return key.removeprefix("@")
        return self.name.rpartition(":")[2] if local else self.name

    @property
    def text(self) -> PartColumn:
        """The column of its text; only what holds nothing else has one."""
        if self.is_typed and not self.look.parts[self.part].has_text:
            raise NotColumnar("an object or array that is computed with", "the keys whose values are meant")
        if not self.look.parts[self.part].has_text:
            raise NotColumnar(
                "the text of an element with elements in it", "name the element inside whose text is meant"
            )
        return self.part

    @property
    def string_value(self) -> Expression:
        """Its text; that of an element of XML with elements in it is all texts inside, one behind the other."""
        part = self.look.parts[self.part]
        if part.has_text or self.part < 0 or self.look.is_json or self.part >= len(self.look.of_items.parts):
            return PartText(self.text, self.side, self.kind)
        inside = FunctionCall(TEXT_INSIDE, (ContentOf((Taken(self.whole, self.side),)),), Kind.UNTYPED)
        return FunctionCall("where", (Presence(self.presence, self.side), inside), Kind.UNTYPED)

    @property
    def whole(self) -> PartColumn:
        """The column of the whole part."""
        if self.is_attribute:
            raise NotColumnar("an attribute that is copied", "string(...) gives its text")
        return ~self.part

    @property
    def presence(self) -> PartColumn:
        """A column that is there where the part is."""
        return self.look.presence(self.part)

    def _refuse_records(self) -> None:
        """Refuse to lead to items of JSON by other steps than down, for they would be XML then (LAWS 7.3)."""
        if self.look.is_json and self.part in self.look.own:
            raise NotColumnar("a step from an item of JSON to itself")

    def _parent(self) -> Spot:
        """The spot of the elements around, of those that have such a part inside."""
        look, parent = self.look, self.look.parts[self.part].parent if self.part >= 0 else -1
        if parent < 0 or self.part >= len(look.of_items.parts):
            raise NotColumnar("a step out of the item")
        if look.is_json and parent in look.own:
            raise NotColumnar("a step up to an item of JSON")
        inner, around = look.frames[self.part], look.frames[parent]
        found = replace(self, part=parent, is_chosen=False)
        if inner == around:
            here = Presence(self.presence, self.side)
            both = here if self.condition is None else Junction(True, (self.condition, here))
            return replace(found, condition=both)
        if self.bound == inner:
            if self.condition is not None:
                raise NotColumnar("a step up from what a predicate selects in a loop")
            return replace(found, bound=around)
        holds = self.condition or ConstantValue(True)
        return replace(found, condition=RowQuantifier(inner, True, holds, around, self.side))

    def steps(self, step: ast.Step) -> list[Spot]:
        """The spots that a step leads to, without its predicates."""
        match step:
            case ast.Step("child" | "attribute" as axis, ast.NameTest() as test, _, deep):
                pass
            case ast.Step("descendant", ast.NameTest() as test, _, False):
                axis, deep = "child", True
            case ast.Step("self", ast.KindTest("node"), _, False):
                return [self]
            case ast.Step("self", ast.NameTest() as test, _, False):
                self._refuse_records()
                is_element = self.part >= 0 and not self.is_attribute
                return [self] if is_element and is_named(self.look.parts[self.part].expanded, test) else []
            case ast.Step("parent", ast.NameTest() | ast.KindTest("node" | "element", None) as test, _, False):
                above = self._parent()
                name = above.look.parts[above.part].expanded
                return [above] if isinstance(test, ast.KindTest) or is_named(name, test) else []
            case ast.Step("child", ast.KindTest("element", None), _, deep):
                return self.steps(ast.Step("child", ast.NameTest("*"), (), deep))
            case ast.Step("child" | "attribute" | "descendant", ast.KindTest()):
                raise NotColumnar("a step to nodes of one kind, whatever their name")
            case ast.Step(axis):
                raise NotColumnar(f"a step along the {axis} axis")
        starts = (self.part, *self.look.descendants(self.part)) if deep else (self.part,)
        found = []
        for child in (child for start in starts for child in self.look.children(start)):
            part = self.look.parts[child]
            if part.name.startswith("@") == (axis == "attribute") and is_named(part.expanded, test):
                found.append(replace(self, part=child))
        return found


def is_named(name: str, test: ast.NameTest) -> bool:
    """Whether an expanded name passes a test whose name is expanded, too (`with_expanded_names`)."""
    match test:
        case ast.NameTest("*", None | "*"):
            return True
        case ast.NameTest(local, None):
            space, _, last = local.rpartition("}")
            return name == local or (last == "*" and name.rpartition("}")[0] == space)
        case ast.NameTest(local, "*"):
            return name.rpartition("}")[2] == local
        case _:
            raise NotColumnar("a name in a namespace")
