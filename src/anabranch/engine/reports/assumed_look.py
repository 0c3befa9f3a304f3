"""The look that a query's own paths suggest, where nothing else is known of the items.

A path that is looped over inside an item, quantified or counted is assumed to repeat, any other to occur once; an
element without a path below it is assumed to be text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, TypeAlias

from anabranch.columnar.scan.look import Look, LookPart
from anabranch.language import ast
from anabranch.language.rewrite import rebuild
from anabranch.stream.tree import Document, Element, Name, Text, renumber

_ABOVE = -2
"""The level where a path over the stream begins: above the root, which is -1."""
_Places: TypeAlias = tuple[int, ...]
_Names: TypeAlias = Mapping[str | None, _Places]


def assumed_look(body: ast.Expression, stream: str) -> tuple[str, Look]:
    """The name of a stream's root and the look of its items, as assumed by a query with expanded names.

    In the same way a document has a root, and elements in it.
    """
    found = _Assuming(stream)
    found.walk(body, {})
    parents = {part.parent for part in found.parts if not part.name.startswith("@")}
    parts = (replace(part, has_text=number not in parents) for number, part in enumerate(found.parts))
    return found.root, Look(tuple(parts))


def assumed_document(body: ast.Expression, name: str) -> Document:
    """A document in which each path of a query finds something, in more rows than would be looked at without a key."""
    root, look = assumed_look(body, name)
    document, top = Document(), Element(_name_of(root))
    document.append(top)
    for own in [own for own in look.own if not look.parts[own].name.startswith("@")] * _ROWS:
        top.append(_element(look, own))
    renumber(document)
    return document


_ROWS = 100


def _name_of(expanded: str) -> Name:
    space, _, local = expanded.rpartition("}")
    return Name(local, space.removeprefix("Q{"))


def _element(look: Look, part: int) -> Element:
    found = Element(_name_of(look.parts[part].expanded))
    inside = look.children(part)
    for each in inside:
        if look.parts[each].name.startswith("@"):
            found.set(_name_of(look.parts[each].expanded), "1")
    for each in inside:
        if not look.parts[each].name.startswith("@"):
            for _ in range(2 if look.parts[each].repeated else 1):
                found.append(_element(look, each))
    if look.parts[part].has_text:
        found.append(Text("1"))
    return found


@dataclass(slots=True)
class _Assuming:
    """A look under construction."""

    stream: str
    root: str = "root"
    parts: list[LookPart] = field(default_factory=list)
    numbers: dict[tuple[int, str], int] = field(default_factory=dict)

    def walk(self, expression: Any, names: _Names) -> _Places:
        """Add the paths of an expression, or of any part of a query; gives the parts that it leads to."""
        match expression:
            case ast.Variable(name):
                return names.get(name, ())
            case ast.ContextItem():
                return names.get(None, ())
            case ast.Source(_, name):
                return (_ABOVE,) if name == self.stream else ()
            case ast.Path(start, steps):
                found = names.get(None, ()) if start is None else self.walk(start, names)
                for step in steps:
                    found = self._step(found, step)
                    self._inside(step.tail, {**names, None: found})
                return found
            case ast.Filter(base, tail):
                found = self.walk(base, names)
                self._inside(tail, {**names, None: found})
                return found
            case ast.Flwor(clauses, where, order, result):
                for clause in clauses:
                    found = self.walk(clause.source if isinstance(clause, ast.For) else clause.value, names)
                    if isinstance(clause, ast.For):
                        self._repeat(found)
                        self._inside(clause.window, {**names, None: found})
                    names = {**names, clause.variable: found}
                self._inside((where, order), names)
                return self.walk(result, names)
            case ast.Pipeline(pipeline, result):
                for each in pipeline:
                    match each:
                        case ast.For(name, source) | ast.PositionalFor(name, _, source) | ast.Let(name, source):
                            found = self.walk(source, names)
                            if not isinstance(each, ast.Let):
                                self._repeat(found)
                            names = {**names, name: found}
                        case _:
                            self._inside(each, names)
                return self.walk(result, names)
            case ast.Quantified(_, bindings, condition):
                for name, source in bindings:
                    found = self.walk(source, names)
                    self._repeat(found)
                    names = {**names, name: found}
                return self.walk(condition, names)
            case ast.If(condition, then, otherwise):
                self.walk(condition, names)
                return (*self.walk(then, names), *self.walk(otherwise, names))
            case ast.Call("count" | "fn:count", (operand,)):
                self._repeat(self.walk(operand, names))
                return ()
            case _:
                self._inside(expression, names)
                return ()

    def _inside(self, node: Any, names: _Names) -> None:
        """Add the paths in a part that leads nowhere itself."""

        def visit(part: Any) -> Any:
            self.walk(part, names)
            return part

        if isinstance(node, tuple) or is_dataclass(node):
            rebuild(node, visit)

    def _step(self, start: _Places, step: ast.Step) -> _Places:
        match step:
            case ast.Step("child" | "attribute" | "descendant" as axis, ast.NameTest(test)):
                space, _, local = test.rpartition("}")
                name = Name("any" if local == "*" else local, space.removeprefix("Q{"))
                if start == (_ABOVE,) and not step.deep:
                    self.root = name.expanded
                    return (-1,)
                found = (max(each, -1) for each in start)
                return tuple(self._part(each, name, "@" if axis == "attribute" else "") for each in found)
            case ast.Step("child" | "self", ast.KindTest()):
                return start
            case _:
                return ()

    def _part(self, parent: int, name: Name, mark: str) -> int:
        key = parent, f"{mark}{name.expanded}"
        if key not in self.numbers:
            self.numbers[key] = len(self.parts)
            part = LookPart(f"{mark}{name.local}", parent, has_text=True, optional=parent >= 0, uri=name.uri)
            self.parts.append(part)
        return self.numbers[key]

    def _repeat(self, places: _Places) -> None:
        """Mark parts inside items as repeated."""
        for number in places:
            if number >= 0 and self.parts[number].parent >= 0:
                self.parts[number] = replace(self.parts[number], repeated=True)
