"""Queries over streams of JSON as what they need of these is derived from, by the rules for XML (`sharing/rules`).

* All items of a stream of JSON have the same root and name: `stream("s")/*/*` is `stream("s")/root/item`.
* What a lookup finds is below the path of its keys: `$o.a.b` reads at most `data($o/a/b)`, and looks at nothing else of
  the objects around it (LAWS 7.1). As the argument of a function it is no part of a condition that the rules
  understand: a lookup compares typed values, and fails where they are of different types, so no item is left out for it.
  A key with `@` in front is an attribute, and what has it is needed whole.

The rewritten query is only looked at, and never answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anabranch.language import ast
from anabranch.language.objects import LOOKUP, step_to
from anabranch.language.rewrite import rebuild

_ANY = ast.NameTest("*")


def with_members(query: ast.Query, names: Mapping[str, tuple[str, str]]) -> ast.Query:
    """A checked query over streams of JSON, with names and paths; `names` are those of root and items, by stream."""

    def visit(node: Any) -> Any:
        match node:
            case ast.Path(ast.Source("stream", name), (root, item, *_)) if name in names:
                found: ast.Path = rebuild(node, visit)
                if not (_is_any_child(root) and _is_any_child(item)):
                    return found
                first, second, *more = found.steps
                tests = map(ast.NameTest, names[name])
                named = [replace(each, test=test) for each, test in zip((first, second), tests, strict=True)]
                return replace(found, steps=(*named, *more))
            case ast.Call(name) if name == LOOKUP:
                return _looked_up(node, visit)
            case _:
                return rebuild(node, visit)

    visited: ast.Query = visit(query)
    return visited


def _is_any_child(step: ast.Step) -> bool:
    return step.axis == "child" and step.test == _ANY and not step.deep


def _looked_up(call: ast.Call, visit: Any) -> Any:
    """A lookup as the value of a path; one of a key that is computed stays as it is."""
    steps: list[ast.Step] = []
    at: ast.Expression = call
    while isinstance(at, ast.Call) and at.name == LOOKUP and isinstance(at.arguments[1], ast.String):
        steps.append(step_to(at.arguments[1].value))
        at = at.arguments[0]
    if not steps:
        return rebuild(call, visit)
    return ast.Call("data", (ast.Path(visit(at), tuple(reversed(steps))),))
