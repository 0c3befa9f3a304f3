"""The steps of paths in compiled loops: the names they ask for, how they collect nodes, whether they look inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from anabranch.branch.display.compiled_loops.kept_nodes import (
    Closure,
    KeptValues,
    Unusual,
    collect,
    collect_attribute,
    collect_deep,
    collect_texts,
    collect_versions,
)
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.law.history.chains import Lived


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step to elements of a name: children, or with `deep` all below."""

    name: str
    deep: bool
    conditions: tuple[Closure, ...]


def separates(steps: Sequence[ast.Step]) -> bool:
    """Whether no predicate in front of the last step can look into the nodes that the path finds."""
    for step, following in pairwise(steps):
        for part in parts(step.tail):
            if isinstance(part, ast.ContextItem) or (step.tail and following.deep):
                return False
            if isinstance(part, ast.Path) and part.start is None:
                first = part.steps[0]
                if first.deep or not isinstance(first.test, ast.NameTest):
                    return False
                if first.axis == "child" and first.test.local == name_of(following):
                    return False
    return True


def collector(step: ast.Step, asked: tuple[int, bool] | None, is_last: bool) -> Callable[[Lived, KeptValues], None]:
    """The function that adds what a step reaches from a node."""
    match step.test:
        case ast.KindTest("text", None) if step.axis == "child" and not step.deep and asked is None:
            return lambda lived, found: collect_texts(lived.content, found)
        case _:
            name = name_of(step)
    if asked is not None:
        if step.deep:
            raise Unusual
        most, window = asked
        return lambda lived, found: collect_versions(lived.content, name, most, window, found)
    if step.axis == "attribute":
        if step.deep:
            raise Unusual
        return lambda lived, found: collect_attribute(lived, name, found)
    if step.deep:
        return lambda lived, found: collect_deep(lived.content, name, found, is_last=is_last)
    return lambda lived, found: collect(lived.content, name, found)


def name_of(step: ast.Step) -> str:
    """The plain name that a step asks for."""
    if step.axis not in ("child", "attribute") or not isinstance(step.test, ast.NameTest):
        raise Unusual
    if step.test.prefix is not None or step.test.local == "*" or "_x" in step.test.local:
        raise Unusual
    return step.test.local
