"""The clauses of a FLWR expression in one form: a plain loop where it is one, and a `Pipeline` only where it must be.

XQuery lets clauses stand in any order; most orders say no more than loops inside one another do:

    for $p in a where b let $c := d return e        for $p in a where b return let $c := d return e

So a `Flwor` has `for`s and `let`s, then a condition, then an order, as loops over streams need it, and what is inside
another is its result.
What acts on all tuples at once, `group by`, `count` and an `order by` with something behind it, or needs the number of
a round, `at`, makes a `Pipeline`.

Groups never span windows (LAWS 3.8): with a window in front of a `group by`, the loop over what the window holds, and
all behind it, is the result of the window's own loop:

    for $w in s |count 3| for $o in $w group by $k := $o/k return $k
    for $w in s |count 3| return for $o in $w group by $k := $o/k return $k
"""

from __future__ import annotations

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.rewrite import parts

_BARRIERS = (ast.GroupBy, ast.OrderBy, ast.Count)
"""Clauses that act on all tuples at once."""


def expression_of(clauses: tuple[ast.Clause, ...], result: ast.Expression, span: Span) -> ast.Flwor | ast.Pipeline:
    """The expression that these clauses make, the first of which is a `for` or `let`."""
    split = _inside_window(clauses, result)
    if split is not None:
        inner = expression_of(clauses[split:], result, span)
        return expression_of(clauses[:split], inner, span)
    ahead = _run(clauses, ast.For, ast.Let)
    own = ahead + _run(clauses[ahead:], ast.Where)
    order = _order(clauses[own:])
    if any(isinstance(each, _BARRIERS) for each in clauses[own:]) and not (ahead and order):
        return ast.Pipeline(clauses, result, span=span)
    if not ahead:  # a numbered `for`, with its conditions
        own = 1 + _run(clauses[1:], ast.Where)
        return ast.Pipeline(clauses[:own], _behind(clauses[own:], result, span), span=span)
    loop = tuple(each for each in clauses[:ahead] if isinstance(each, ast.For | ast.Let))
    wheres = [each.condition for each in clauses[ahead:own] if isinstance(each, ast.Where)]
    condition = ast.And(tuple(wheres)) if len(wheres) > 1 else wheres[0] if wheres else None
    inside = result if order else _behind(clauses[own:], result, span)
    return ast.Flwor(loop, condition, order, inside, span=span)


def _order(clauses: tuple[ast.Clause, ...]) -> tuple[ast.OrderKey, ...]:
    """The keys of an `order by`, if nothing else is there."""
    match clauses:
        case (ast.OrderBy(keys),):
            return keys
        case _:
            return ()


def _behind(clauses: tuple[ast.Clause, ...], result: ast.Expression, span: Span) -> ast.Expression:
    return expression_of(clauses, result, span) if clauses else result


def _run(clauses: tuple[ast.Clause, ...], *kinds: type) -> int:
    """The number of clauses of these kinds in front of the first other clause."""
    return next((place for place, each in enumerate(clauses) if not isinstance(each, kinds)), len(clauses))


def _inside_window(clauses: tuple[ast.Clause, ...], result: ast.Expression) -> int | None:
    """The place of the first clause that belongs inside of a window, where the contents of a window are grouped.

    A `let` or `where` in front of the loop over the window stays with the window, unless a `let` is seen behind the
    `group by`, where it is one value for each tuple of a group.
    """
    group = next((at for at, each in enumerate(clauses) if isinstance(each, ast.GroupBy)), None)
    if group is None:
        return None
    windows = [at for at, each in enumerate(clauses[:group]) if isinstance(each, ast.For) and each.window is not None]
    if len(windows) != 1 or any(isinstance(each, _BARRIERS) for each in clauses[: windows[0]]):
        return None
    behind = (*clauses[group + 1 :], result)
    seen = {part.name for part in parts(behind) if isinstance(part, ast.Variable)}
    seen |= {part.variable for part in parts(clauses) if isinstance(part, ast.GroupKey) and part.value is None}
    split = windows[0] + 1
    while split < group:
        clause = clauses[split]
        if not isinstance(clause, ast.Where) and not (isinstance(clause, ast.Let) and clause.variable not in seen):
            break
        split += 1
    has_loop = any(isinstance(each, ast.For | ast.PositionalFor) for each in clauses[split:group])
    return split if has_loop and isinstance(clauses[split], ast.For | ast.PositionalFor | ast.Let) else None
