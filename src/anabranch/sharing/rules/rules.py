"""The inference rules of the sharing paper, (1) to (10) for trees (3.2.4) and (11) to (20) for forests (appendix A).

Each rule is one function, and `RULES` and `clause` say which one is for which kind of expression.
One walk serves trees and forests: rule (10 + n) is rule (n) with each path and each condition given to the input it
belongs to, and a condition that names several inputs is the join annotation.
The example in a rule's docstring is a query, and behind the arrow the tree that comes out of it; a test runs them all.

The rules walk through what a query returns and carry along the condition under which it is returned: conditions on the
way to one occurrence of a path are joined by *and*, occurrences by *or*.
(As printed, the rules unite both alike, and the branches of an `if` would contradict each other.)

What the subscriber looks at again when it runs the query over what it is sent is an output too, and here the rules need
care that the paper does not take:

* the printed plain form marks the path of a `for` whole, and with it all of each item; what it needs is the element
  itself, and only where its round gives something that does not come from that element, as `<hit/>` does (`rounds`);
* elements that a condition looks at may be missing where it does not hold, unless a `not` or an `else` would turn their
  absence into a yes (`tree.looked_at`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, TypeVar

from anabranch.language import ast
from anabranch.language.checks.unbounded import SETS
from anabranch.language.rewrite import conjuncts
from anabranch.sharing.rules.clauses import clause, is_over_stream, where
from anabranch.sharing.rules.conditions import Meaning, OpaqueValue, StreamNodes, locate, understand
from anabranch.sharing.rules.findings import Environment, Findings, along, rounds, touch, under
from anabranch.sharing.tree import ITEM

_Clauses = TypeVar("_Clauses", ast.Flwor, ast.Pipeline)
_MOST_WAYS = 64
"""With more paths in the place of loops, sets of them have no rule."""


def translate(expression: ast.Expression, env: Environment, found: Findings) -> None:
    """Add what an expression returns, by the rule for its kind."""
    for each in rounds(expression, env):
        found.output(each.path, env.when, whole=False, input=each.input)
    RULES.get(type(expression), touch)(expression, env, found)


# --- what is returned -----------------------------------------------------------------------------------------


def constructor(element: ast.ElementConstructor, env: Environment, found: Findings) -> None:
    """Rules (1) and (2): a constructor returns what the expressions in it return, in attributes too.

    for $p in stream("s")/r/i return <o k="{ $p/k }">{ $p/a }</o>
    ->
    r
      i
        a •
        k •
    """
    for part in (*(each for attribute in element.attributes for each in attribute.value), *element.content):
        match part:
            case ast.Enclosed(value):
                translate(value, env, found)
            case ast.ElementConstructor():
                translate(part, env, found)


def conditional(expression: ast.If, env: Environment, found: Findings) -> None:
    """Rule (7): the first branch is returned under the condition, the second under its negation.

    for $p in stream("s")/r/i return if ($p/a > 1) then $p/b else $p/c
    ->
    r
      i
        a •
        b •  σ a > 1
        c •  σ not(a > 1)
    """
    holds = understand(expression.condition, env.names, found.aggregate)
    translate(expression.then, under(holds, env, found), found)
    if expression.otherwise != ast.Sequence(()):
        fails = understand(ast.Call("not", (expression.condition,)), env.names, found.aggregate)
        translate(expression.otherwise, under(fails, env, found), found)


def path(expression: ast.Path | ast.Filter | ast.Variable, env: Environment, found: Findings) -> None:
    """Rule (8): a path returns the elements it leads to, under the conditions of its predicates.

    for $p in stream("s")/r/i return $p[b > 1]/a
    ->
    r
      i  σ b > 1
        a •
        b •
    """
    at = locate(expression, env.names)
    if at is None:
        return touch(expression, env, found)
    if at.from_stream:  # a loop over the stream that is not written out
        found.stream_loops += 1
        found.unfit(unless=found.window is None and not found.values)
        if env.loops or len(at.path) < ITEM:  # it is about other items than the loops, or about no item
            return touch(expression, env, found)
    if not at.complete:
        return touch(expression, env, found)
    found.output(at.path, along(at, env, found).when, input=at.base.input)


def variable(expression: ast.Variable, env: Environment, found: Findings) -> None:
    """Rule (9): a variable returns the elements it is bound to, or the value of its aggregate.

    for $p in stream("s")/r/i for $c in $p/c return $c
    ->
    r
      i
        c •
    """
    value = found.aggregate(expression, env.names)
    if value is not None:
        found.select(value, env.when)
    else:
        path(expression, env, found)


def sequence(expression: ast.Sequence, env: Environment, found: Findings) -> None:
    """Rule (10): a sequence returns what its parts return.

    for $p in stream("s")/r/i return ($p/a, $p/b)
    ->
    r
      i
        a •
        b •
    """
    for item in expression.items:
        translate(item, env, found)


def flwor(expression: ast.Flwor, env: Environment, found: Findings) -> None:
    """Rules (3) to (6) in combination: the clauses one after another, the `where`, and what is returned under them.

    for $p in stream("s")/r/i let $c := $p/c where $c/x > 1 order by $p/k return $p/a
    ->
    r
      i  σ c/x > 1
        a •
        c
          x •
        k •
    """
    if _has_no_rule(expression, env):
        touch(expression, env, found)
        return found.unfit()
    for one_way in _one_by_one(expression):
        _flwor(one_way, env, found)


def _flwor(expression: ast.Flwor, env: Environment, found: Findings) -> None:
    before, around = found.window, env.loops
    loops: list[StreamNodes] = []
    for place, each in enumerate(expression.clauses):
        rest = (expression.clauses[place + 1 :], expression.where, expression.result, expression.order)
        env = _clause(each, rest, env, found)
        meaning = env.names[each.variable]
        if isinstance(each, ast.For) and isinstance(meaning, StreamNodes):
            loops.append(meaning)
    if expression.where is not None:
        _touch_keys(expression.where, env, found)
        env = where(expression.where, env, found, of_window=found.window is not before)
    for key in expression.order:
        touch(key.key, env, found)
    translate(expression.result, replace(env, loops=(*around, *loops)), found)


def pipeline(expression: ast.Pipeline, env: Environment, found: Findings) -> None:
    """Rules (3) to (6) for clauses one after another; behind a `group by` a condition is about no single item.

    for $w in stream("s")/r/i[b > 1]|count 4| for $p in $w group by $k := $p/k return <g>{ $k, sum($p/a) }</g>
    ->
    r
      i  σ b > 1
        a •
        b •
        k •
    """
    if _has_no_rule(expression, env):
        touch(expression, env, found)
        return found.unfit()
    found.unfit(unless=not found.windows)  # no tree has groups
    for one_way in _one_by_one(expression):
        _pipeline(one_way, env, found)


def _clause(each: ast.For | ast.Let, rest: Any, env: Environment, found: Findings) -> Environment:
    if isinstance(each, ast.For) and isinstance(each.source, ast.Flwor):
        return for_results(each, each.source, env, found)
    return clause(each, rest, env, found)


def _pipeline(expression: ast.Pipeline, env: Environment, found: Findings) -> None:
    loops = list(env.loops)
    for place, each in enumerate(expression.clauses):
        match each:
            case ast.For() | ast.Let():
                env = _clause(each, (expression.clauses[place + 1 :], expression.result), env, found)
                meaning = env.names[each.variable]
                if isinstance(each, ast.For) and isinstance(meaning, StreamNodes):
                    loops.append(meaning)
            case ast.Where(condition):
                _touch_keys(condition, env, found)
                env = where(condition, env, found, of_window=False)
            case ast.GroupBy(keys):
                for key in keys:
                    touch(key.value or ast.Variable(key.variable), env, found)
                env = replace(env, names={name: _grouped(meaning) for name, meaning in env.names.items()})
                for key in keys:
                    env = env.bind(key.variable, OpaqueValue())
            case _:
                touch(each, env, found)
    translate(expression.result, replace(env, loops=tuple(loops)), found)


def for_results(each: ast.For, loop: ast.Flwor, env: Environment, found: Findings) -> Environment:
    """Rule (3) for what another loop gives (LAWS 3.13): what that one needs is all that is needed of the stream.

    for $w in (for $p in stream("s")/r/i where $p/a > 1 return <m>{ $p/t }</m>)|t diff 4| return <o>{ $w/t }</o>
    ->
    r
      i  σ a > 1
        a •
        t •
    """
    found.unfit(unless=not found.windows)  # no tree has two windows
    translate(loop, env, found)
    return env.bind(each.variable, OpaqueValue())


def _grouped(meaning: Meaning) -> Meaning:
    """What a variable stands for behind a `group by`: nodes of several items, of which no condition says all."""
    if isinstance(meaning, StreamNodes) and meaning.path:
        return replace(meaning, exact=False, usable=False)
    return meaning


def chosen(expression: ast.Call, env: Environment, found: Findings) -> None:
    """Rule (10) for `union`, `intersect` and `except`: whether an item is in one of the paths, each of them decides.

    for $p in stream("s")/r/i[b > 1] except stream("s")/r/i[c > 2] return $p/a
    ->
    r
      i  σ b > 1 or c > 2
        a •
        b •
        c •
    """
    if expression.name not in SETS:
        return touch(expression, env, found)
    for each in expression.arguments:
        translate(each, env, found)


def _operands(source: ast.Expression) -> tuple[ast.Expression, ...]:
    """The paths of `union`, `intersect` and `except`; any other expression is its own."""
    if isinstance(source, ast.Call) and source.name in SETS:
        return tuple(path for each in source.arguments for path in _operands(each))
    return (source,)


def _one_by_one(expression: _Clauses) -> Iterator[_Clauses]:
    """The expression with each of the paths of a set in place of it: what is needed for any of them is needed."""
    ways: list[list[Any]] = [
        [replace(each, source=path) for path in _operands(each.source)] if isinstance(each, ast.For) else [each]
        for each in expression.clauses
    ]
    if prod(map(len, ways)) > _MOST_WAYS:
        yield expression
    else:
        yield from (replace(expression, clauses=one_way) for one_way in product(*ways))


# --- several loops and several paths -----------------------------------------------------------------------------


def _has_no_rule(expression: ast.Flwor | ast.Pipeline, env: Environment) -> bool:
    """Whether an expression loops over streams more than once, and is not looked at as a join."""
    if env.apart or expression is env.join:
        return False
    return sum(isinstance(each, ast.For) and is_over_stream(each, env.names) for each in expression.clauses) > 1


def _touch_keys(condition: ast.Expression, env: Environment, found: Findings) -> None:
    """Touch what may be the keys of a join, where that may raise: it does so whatever else is asked (LAWS 3.5)."""
    for each in conjuncts(condition) if env.apart else ():
        if isinstance(each, ast.Comparison) and each.operator == "=":
            touch(tuple(side for side in (each.left, each.right) if not _is_plain(side)), env, found)


def _is_plain(expression: ast.Expression) -> bool:
    """Whether an expression is a path without predicates, or the values at one."""
    match expression:
        case ast.Call("data" | "fn:data", (argument,)):
            return _is_plain(argument)
        case ast.Path(start, steps):
            return (start is None or _is_plain(start)) and not any(each.tail for each in steps)
        case _:
            return isinstance(expression, ast.Variable | ast.String | ast.Number)


Rule = Callable[[Any, Environment, Findings], None]

RULES: Mapping[type, Rule] = {
    ast.ElementConstructor: constructor,  # rules (1) and (2)
    ast.Flwor: flwor,  # rules (3) to (6)
    ast.Pipeline: pipeline,
    ast.If: conditional,  # rule (7)
    ast.Path: path,  # rule (8)
    ast.Filter: path,
    ast.Variable: variable,  # rule (9)
    ast.Sequence: sequence,  # rule (10)
    ast.Call: chosen,
}
"""The rule for each kind of expression; all others are touched."""
