"""What the variables of a query mean, and where its paths lead in the stream.

A path is followed as long as its steps are child steps by name; predicates on the way are noted with their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.language import ast
from anabranch.sharing.tree import AggregateAnnotation, Steps


@dataclass(frozen=True, slots=True)
class StreamNodes:
    """A variable that stands for nodes of the stream, all at one path.

    `exact`: a condition on them is exactly the same condition on the item, or on the window.
    `usable`: a condition on them implies a condition on the item at all.
    `window`: they are all items of a window together.
    """

    path: Steps
    exact: bool = True
    usable: bool = True
    window: bool = False
    input: str = ""
    """The tree of a forest that they belong to."""


@dataclass(frozen=True, slots=True)
class OpaqueValue:
    """A variable that stands for a computed value, or for nodes that are sent whole already."""


Meaning: TypeAlias = StreamNodes | AggregateAnnotation | OpaqueValue
Names: TypeAlias = Mapping[str, Meaning]
"""The meaning of each variable in scope."""
CONTEXT = "."
"""The name under which the node that a predicate looks at stands among the variables."""


def stream_name(name: str) -> str:
    """The name under which a stream as a whole may be given a meaning, where a query reads several."""
    return f"stream({name})"


@dataclass(frozen=True, slots=True)
class LocatedPath:
    """A path of child steps from nodes of the stream: where it leads, and the predicates on the way."""

    path: Steps
    base: StreamNodes
    """Where it starts: at a variable's nodes, or at the stream itself, whose path has no steps."""
    tails: tuple[tuple[int, tuple[ast.Expression, ...]], ...] = ()
    """Predicates, each with the number of steps it stands behind."""
    complete: bool = True
    """False where a step without a rule ends what is known; `path` then leads to the element above it."""

    @property
    def from_stream(self) -> bool:
        """Whether the path starts at the stream itself, and not at nodes of a variable."""
        return not self.base.path


def locate(expression: ast.Expression, names: Names) -> LocatedPath | None:
    """Where a path leads; None for what is no path from the stream."""
    match expression:
        case ast.Variable(name):
            meaning = names.get(name)
            return LocatedPath(meaning.path, meaning) if isinstance(meaning, StreamNodes) else None
        case ast.ContextItem():
            return locate(ast.Variable(CONTEXT), names)
        case ast.Source("stream", name):
            stream = names.get(stream_name(name), StreamNodes(()))
            return LocatedPath((), stream) if isinstance(stream, StreamNodes) else None
        case ast.Filter(base, tail):
            filtered = locate(base, names)
            return None if filtered is None else _with_tail(filtered, tail)
        case ast.Path(start, steps):
            found = locate(ast.ContextItem() if start is None else start, names)
            for step in steps:
                if found is None or not found.complete:
                    break
                found = _step(found, step)
            return found
        case _:
            return None


def _step(found: LocatedPath, step: ast.Step) -> LocatedPath:
    match step:
        case ast.Step("child", ast.NameTest(name, None), tail, False) if name != "*":
            longer = LocatedPath((*found.path, name), found.base, found.tails)
            return _with_tail(longer, tail)
        case ast.Step("self", ast.KindTest("node"), tail, False):
            return _with_tail(found, tail)
        case _:
            return LocatedPath(found.path, found.base, found.tails, complete=False)


def _with_tail(found: LocatedPath, tail: tuple[ast.Predicate | ast.Qualifier, ...]) -> LocatedPath:
    if not tail:
        return found
    conditions = tuple(each.condition for each in tail if isinstance(each, ast.Predicate))
    complete = found.complete and len(conditions) == len(tail)
    return LocatedPath(found.path, found.base, (*found.tails, (len(found.path), conditions)), complete)
