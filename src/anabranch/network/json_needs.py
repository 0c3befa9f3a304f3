"""Queries over streams of JSON as what they need of these is derived from, by the rules for XML (`sharing/rules`).

* All items of a stream of JSON have the same root and name: `stream("s")/*/*` is `stream("s")/root/item`.
* What a lookup finds is below the path of its keys: `$o.a.b` reads at most `data($o/a/b)`, and looks at nothing else of
  the objects around it (LAWS 7.1).
  As the argument of a function it is no part of a condition that the rules understand.
  A key with `@` in front is an attribute, and what has it is needed whole.
* A comparison of what is looked up in an item with a constant is one of typed values, and fails where these are of
  another type; it becomes one of paths that fail likewise (`values/objects/by_type.py`).
  So what the rules find of these conditions is exact: an item for which somebody's query fails is sent.

The rewritten query is only looked at, and never answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.language import ast
from anabranch.language.objects import LOOKUP, step_to
from anabranch.language.rewrite import bindings_in, parts, rebuild
from anabranch.logic import MIRRORED
from anabranch.sharing.tree import ITEM
from anabranch.values.objects.by_type import NUMBERS, OTHERS, STRINGS

_ANY = ast.NameTest("*")


def with_members(query: ast.Query, names: Mapping[str, tuple[str, str]]) -> ast.Query:
    """A checked query over streams of JSON, with names and paths; `names` are those of root and items, by stream."""
    bound = bindings_in(query)
    for function in query.functions:
        bound.update(function.parameters)
    loops = [part for part in parts(query) if isinstance(part, ast.For) and part.window is None]
    items = {each.variable for each in loops if _is_items(each.source) and bound[each.variable] == 1}
    rewritten: ast.Query = _Rewriting(names, frozenset(items)).visit(query)
    return rewritten


def _is_items(source: ast.Expression) -> bool:
    """Whether a loop runs over the items of a stream."""
    match source:
        case ast.Path(ast.Source("stream"), steps):
            return len(steps) == ITEM and all(each.axis == "child" and not each.deep for each in steps)
        case _:
            return False


@dataclass(frozen=True)
class _Rewriting:
    names: Mapping[str, tuple[str, str]]
    items: frozenset[str]
    """The variables that stand for one item, wherever they are named."""

    def visit(self, node: Any) -> Any:
        match node:
            case ast.Path(ast.Source("stream", name), (root, item, *_)) if name in self.names:
                found: ast.Path = rebuild(node, self.visit)
                if not (_is_any_child(root) and _is_any_child(item)):
                    return found
                first, second, *more = found.steps
                tests = map(ast.NameTest, self.names[name])
                named = [replace(each, test=test) for each, test in zip((first, second), tests, strict=True)]
                return replace(found, steps=(*named, *more))
            case ast.Comparison(operator, left, right):
                compared = self._compared(left, operator, right) or self._compared(right, MIRRORED[operator], left)
                return compared or rebuild(node, self.visit)
            case ast.Call(name) if name == LOOKUP:
                base, steps = _keys(node)
                if not steps:
                    return rebuild(node, self.visit)
                return ast.Call("data", (ast.Path(self.visit(base), steps),))
            case _:
                return rebuild(node, self.visit)

    def _compared(self, looked: ast.Expression, operator: Any, constant: ast.Expression) -> ast.Expression | None:
        """The comparison of what is looked up in an item with a constant; None for any other."""
        base, steps = _keys(looked)
        is_child = all(each.axis == "child" for each in steps)
        if not (isinstance(base, ast.Variable) and base.name in self.items and steps and is_child):
            return None

        def typed(kind: str) -> ast.Path:
            return ast.Path(base, (ast.Step("child", ast.NameTest(kind)), *steps))

        match constant:
            case ast.Number() | ast.Negation(ast.Number()):
                return ast.Comparison(operator, typed(NUMBERS), constant)
            case ast.String():
                fails = ast.Comparison("=", typed(OTHERS), ast.Number("0"))
                return ast.Or((ast.Comparison(operator, typed(STRINGS), constant), fails))
            case _:
                return None


def _is_any_child(step: ast.Step) -> bool:
    return step.axis == "child" and step.test == _ANY and not step.deep


def _keys(expression: ast.Expression) -> tuple[ast.Expression, tuple[ast.Step, ...]]:
    """What is looked into, and the steps to what its keys lead to; without any for what is no lookup."""
    steps: list[ast.Step] = []
    while isinstance(expression, ast.Call) and expression.name == LOOKUP:
        base, key = expression.arguments
        if not isinstance(key, ast.String):
            break
        steps.append(step_to(key.value))
        expression = base
    return expression, tuple(reversed(steps))
