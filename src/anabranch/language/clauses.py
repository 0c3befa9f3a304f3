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

from collections.abc import Iterator, Sequence

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.rewrite import parts

_BARRIERS = (ast.GroupBy, ast.OrderBy, ast.Count)
"""They act on all tuples at once."""


def expression_of(clauses: Sequence[ast.Clause], result: ast.Expression, span: Span) -> ast.Flwor | ast.Pipeline:
    """The expression that these clauses make, the first of which is a `for` or `let`."""
    split = _inside_window(clauses, result)
    if split is not None:
        inner = expression_of(clauses[split:], result, span)
        return expression_of(clauses[:split], inner, span)
    ahead = _plain(clauses)
    wheres = [each.condition for each in _taken(clauses[ahead:], ast.Where) if isinstance(each, ast.Where)]
    behind = clauses[ahead + len(wheres) :]
    condition = ast.And(tuple(wheres)) if len(wheres) > 1 else wheres[0] if wheres else None
    loop = tuple(each for each in clauses[:ahead] if isinstance(each, ast.For | ast.Let))
    match behind:
        case () | []:
            order: tuple[ast.OrderKey, ...] = ()
        case (ast.OrderBy(keys),) | [ast.OrderBy(keys)]:
            order = keys
        case _ if any(isinstance(each, _BARRIERS) for each in behind):
            return ast.Pipeline(tuple(clauses), result, span=span)
        case _ if ahead:
            return ast.Flwor(loop, condition, (), expression_of(behind, result, span), span=span)
        case _:  # a numbered `for`, with its conditions
            own = 1 + sum(1 for _ in _taken(clauses[1:], ast.Where))
            behind_it = expression_of(clauses[own:], result, span) if clauses[own:] else result
            return ast.Pipeline(tuple(clauses[:own]), behind_it, span=span)
    if not ahead:
        return ast.Pipeline(tuple(clauses), result, span=span)
    return ast.Flwor(loop, condition, order, result, span=span)


def _plain(clauses: Sequence[ast.Clause]) -> int:
    """How many `for`s and `let`s the clauses begin with."""
    return sum(1 for _ in _taken(clauses, ast.For, ast.Let))


def _taken(clauses: Sequence[ast.Clause], *kinds: type) -> Iterator[ast.Clause]:
    """The first clauses, as long as they are of some kinds."""
    for each in clauses:
        if not isinstance(each, kinds):
            return
        yield each


def _inside_window(clauses: Sequence[ast.Clause], result: ast.Expression) -> int | None:
    """Where that begins which groups what one window holds; None where nothing does.

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
