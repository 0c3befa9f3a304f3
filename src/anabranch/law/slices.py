"""A stream item by item: each as if it were the only one below the stream's root.

A path from the stream's root gives the same nodes item by item as over the whole, unless it looks at the root
itself: returns it, puts a condition on it, takes its attributes, or climbs from anywhere.
Then `WholeNeeded` is raised, and the path is evaluated over the whole instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.language import ast
from anabranch.law.inputs import Arrival, Input
from anabranch.law.spelling import Spelling
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Document, Element, Node


class WholeNeeded(Exception):  # a signal between two functions, not an error
    """The path looks at the stream's root, so it cannot be evaluated item by item."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A document of one item; the item's own parent stays the stream's real root."""

    document: Document
    root: Element
    item: Child
    stream: str = ""
    """The name of its stream, where paths over several streams are taken together."""

    @property
    def outside(self) -> tuple[Node, ...]:
        """What is around the item, here and in the stream, which the axes around a node do not reach (LAWS 2.8)."""
        above = self.item.parent
        return self.document, self.root, *(each for each in (above, above and above.parent) if each is not None)

    def look_at_step(self, start: object, taken: ast.Step) -> None:
        climbs = taken.axis == "parent" and taken.deep
        if climbs or (taken.axis == "attribute" and start is self.root):
            raise WholeNeeded

    def look_at_condition(self, values: Iterable[object]) -> None:
        if any(value is self.root or value is self.document for value in values):
            raise WholeNeeded

    look_at_result = look_at_condition


def slice_of(root: Element, item: Child, stream: str = "") -> Slice:
    """The slice for one item; neither the root nor the item is changed."""
    document, bare = Document(), Element(root.name, root.namespaces)
    for attribute in root.attributes:
        bare.set(attribute.name, attribute.value)
    document.append(bare)
    bare.children.append(item)
    return Slice(document, bare, item, stream)


def slices(stream: Input) -> Iterator[tuple[Arrival, Slice]]:
    """All items of a stream in their order."""
    for arrival in stream.arrivals:
        yield arrival, slice_of(stream.root, arrival.item)


def below_item(path: ast.Expression) -> bool:
    """Whether a path over a stream stays at its items and below them, as far as its text shows."""
    try:
        depth = _depth(path)
    except WholeNeeded:
        return False
    return depth is None or depth >= _ITEM


def path_in_item(source: ast.Expression, reference: ast.Path, names: Spelling) -> Path | None:
    """The path that leads from an item to a window's reference, where both are written with plain names."""
    steps = reference.steps
    if any(step.tail for step in steps):
        return None
    if not isinstance(reference.start, ast.Root):
        steps = (*_steps(source), *steps)
    found: list[str] = []
    depth = 0
    for step in steps:
        if step.deep or step.axis not in ("child", "attribute", "self"):
            return None
        depth += step.axis != "self"
        if depth > _ITEM and step.axis != "self":
            is_attribute = step.axis == "attribute"
            spelled = names.of(step.test, attribute=is_attribute) if isinstance(step.test, ast.NameTest) else ()
            if len(spelled) != 1 or "*" in spelled:
                return None
            found.append(f"@{spelled[0]}" if is_attribute else spelled[0])
    return Path(tuple(found)) if found else None


def _steps(path: ast.Expression | None) -> tuple[ast.Step, ...]:
    match path:
        case ast.Filter(base):
            return _steps(base)
        case ast.Path(start, steps):
            return (*_steps(start), *steps)
        case _:
            return ()


_ROOT, _ITEM = 1, 2
"""How deep the root element and the items stand; the document has depth 0, and None is an unknown depth."""


def _depth(path: ast.Expression | None) -> int | None:
    match path:
        case ast.Source():
            return 0
        case ast.Filter(base, tail):
            return _under_condition(_depth(base), tail)
        case ast.Path(start, steps):
            depth = _depth(start)
            for step in steps:
                depth = _under_condition(_stepped(depth, step), step.tail)
            return depth
        case _:
            return None


def _under_condition(depth: int | None, tail: tuple[object, ...]) -> int | None:
    if tail and depth is not None and depth < _ITEM:
        raise WholeNeeded
    return depth


def _stepped(depth: int | None, step: ast.Step) -> int | None:
    if step.axis == "parent" and (step.deep or (depth is not None and depth <= _ITEM)):
        raise WholeNeeded
    if depth is None or step.deep:
        return None
    match step.axis:
        case "parent":
            return depth - 1
        case "self":
            return depth
        case "attribute" if depth == _ROOT:
            raise WholeNeeded
        case "child" | "attribute":
            return depth + 1
        case _:
            return None
