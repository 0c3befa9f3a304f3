"""Constructs without an inference rule: `//`, `*`, attributes, functions, quantifiers, orders, positions.

Everything that such an expression may look at is returned: sharing may lose by it, answers may not.
"""

from __future__ import annotations

from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import rebuild
from anabranch.predicate import EVERYTHING
from anabranch.sharing.rules.findings import Environment, Findings
from anabranch.sharing.rules.paths import CONTEXT, OpaqueValue, StreamNodes, locate


def touch(node: Any, env: Environment, found: Findings) -> None:
    """Add everything that an expression may look at, under the condition of its environment.

    Paths are taken as far as they lead by plain steps, those inside predicates too, and aggregates as such.

    for $p in stream("s")/r/i where contains($p/k, "u") and $p/b > 1 return $p/c/@id
    ->
    r
      i  σ b > 1
        b •
        c •
        k •
    """
    match node:
        case ast.Call() if value := found.aggregate(node, env.names):
            found.select(value, env.when)
        case ast.Path() | ast.Variable() | ast.Filter() | ast.ContextItem() | ast.Source():
            _touch_path(node, env, found)
        case ast.Flwor(clauses, condition, order, result):
            for each in clauses:
                touch(each.source if isinstance(each, ast.For) else each.value, env, found)
                env = env.bind(each.variable, OpaqueValue())
            touch((condition, order, result), env, found)
        case ast.Quantified(_, bindings, condition):
            for name, source in bindings:
                touch(source, env, found)
                env = env.bind(name, OpaqueValue())
            touch(condition, env, found)
        case _:
            _touch_parts(node, env, found)


def _touch_parts(node: Any, env: Environment, found: Findings) -> None:
    def visit(part: Any) -> Any:
        touch(part, env, found)
        return part

    rebuild(node, visit)


def _touch_path(expression: Any, env: Environment, found: Findings) -> None:
    at = locate(expression, env.names)
    if at is None:
        if isinstance(expression, ast.Path | ast.Filter):
            _touch_parts(expression, env.bind(CONTEXT, OpaqueValue()), found)
        elif isinstance(expression, ast.Variable) and (value := found.aggregate(expression, env.names)):
            found.select(value, env.when)
        return
    if at.from_stream:  # a look at the stream, whatever item or window it is taken for
        env = env.under(EVERYTHING)
        found.unfit()
    found.output(at.path, env.when, input=at.base.input)
    for depth, conditions in at.tails:
        here = StreamNodes(at.path[:depth], usable=False, input=at.base.input)
        touch(conditions, env.bind(CONTEXT, here), found)
    if not at.complete and isinstance(expression, ast.Path):
        touch(tuple(step.tail for step in expression.steps), env.bind(CONTEXT, OpaqueValue()), found)
