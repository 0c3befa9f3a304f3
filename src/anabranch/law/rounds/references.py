"""The reference of a time window: the value that says where an item stands in it (LAWS 3.1).

It is written relative to the item, or absolute, from the stream's root down to below the item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.env import Env
from anabranch.law.paths import fulfils
from anabranch.stream.tree import Element
from anabranch.values.atomic import Untyped, finite_value, spell
from anabranch.values.sequences import Value, Values, atomize

Evaluate: TypeAlias = Callable[[ast.Expression, Env], Values]


def reference_value(window: ast.TimeWindow, node: Value, env: Env, evaluate: Evaluate) -> Fraction:
    """The value that places a node in time windows: one number, below the node."""
    path = window.reference
    steps = path.steps
    if isinstance(path.start, ast.Root):
        above = _from_root(node)
        through = zip(above, steps, strict=False)
        if len(steps) < len(above) or not all(fulfils(n, s.test, s.axis, env.namespaces) for n, s in through):
            raise DynamicError("the window's reference is not below the item", code="XPTY0004")
        steps = steps[len(above) :]
    values = atomize(evaluate(replace(path, start=None, steps=steps), env.at(node)) if steps else [node])
    if len(values) != 1:
        raise DynamicError(f"the window's reference has {len(values)} values in this item, not one", code="XPTY0004")
    (value,) = values
    number = finite_value(value if isinstance(value, Untyped) else Untyped(spell(value)))
    if number is None:
        raise DynamicError(f"the window's reference '{spell(value)[:40]}' is no number", code="FORG0001")
    return number


def _from_root(node: Value) -> list[Element]:
    found: list[Element] = []
    at = node
    while isinstance(at, Element):
        found.append(at)
        at = at.parent  # type: ignore[assignment]  # a document ends the climb
    return found[::-1]
