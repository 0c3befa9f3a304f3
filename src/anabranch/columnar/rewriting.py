"""Expressions that mean what another construct means, as that construct: what remains to be compiled is less.

    for $x at $i in $p/a return ...     for $x in $p/a let $i := the place of $x return ...
    for $x in ($p/a, 5) return ...      (for $x in $p/a return ..., let $x := 5 return ...)
    let $f := function($x) { $x + 1 } return $f(2)      let $x := 2 return $x + 1
    $p/(a, b)                           $p/a union $p/b

Where an error is caught, columns compute what would be tried: they raise no errors, and leave an item whose value they
cannot tell to the law, which knows what catches what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from anabranch.columnar.expressions.functions.operators import spread
from anabranch.columnar.expressions.sequences import PLACE, SAME
from anabranch.language import ast
from anabranch.language.objects import CALL
from anabranch.language.rewrite import bindings_in, free_variables, parts, rebuild, substituted

_POSITION = ast.Call("position", ())
_TRUTHS = ("not", "exists", "empty", "contains", "starts-with", "ends-with", "matches", "boolean", "true", "false")
_MOST_CALLS = 100
"""So many calls of functions that are values are replaced in one query: they may call each other without end."""


def in_usual_forms(node: Any) -> Any:
    """The node with such expressions replaced."""
    return _usual(_Inlined.of(node).visit(node))


def _usual(node: Any) -> Any:
    match rebuild(node, _usual):
        case ast.Call("op:try", (ast.InlineFunction(_, body), *_)):
            return body
        case ast.Call("for-each" | "fn:for-each", (source, ast.InlineFunction((name,), body))) as call:
            return _over_each(ast.Flwor((ast.For(name, source, None),), None, (), body, span=call.span))
        case ast.Call("filter" | "fn:filter", (source, ast.InlineFunction((name,), body))) as call if _is_truth(body):
            return ast.Flwor((ast.For(name, source, None),), body, (), ast.Variable(name), span=call.span)
        case ast.Call("head" | "fn:head", (source,)) as call:
            return ast.Filter(source, (ast.Positional(ast.Number("1")),), span=call.span)
        case ast.Call("tail" | "fn:tail", (source,)) as call:
            later = ast.Comparison(">", _POSITION, ast.Number("1"))
            return ast.Filter(source, (ast.Positional(later),), span=call.span)
        case ast.Call("subsequence" | "fn:subsequence", (source, *places)) as call if all(map(_is_whole, places)):
            first, *behind = (int(each.text) for each in places if isinstance(each, ast.Number))
            asked: list[ast.Expression] = [ast.Comparison(">=", _POSITION, ast.Number(str(first)))]
            asked += [ast.Comparison("<", _POSITION, ast.Number(str(first + length))) for length in behind]
            condition = asked[0] if len(asked) == 1 else ast.And(tuple(asked))
            return ast.Filter(source, (ast.Positional(condition),), span=call.span)
        case ast.Call("unordered" | "fn:unordered", (source,)):
            return source
        case ast.Call("reverse" | "fn:reverse", (source,)) as call:
            return _reversed(source, call)
        case ast.Call("index-of" | "fn:index-of", (source, ast.String() | ast.Number() as sought)) as call:
            return _loop_with_places(ast.Call("data", (source,)), call, lambda name: ast.Call(SAME, (name, sought)))
        case ast.Call("op:in-order", (ast.Flwor((ast.For(name, source, None),), None, (), result),)) as call:
            return _united([_continued(each, name, source) for each in _steps_of(result)]) or call
        case ast.Pipeline() as pipeline:
            found = _as_loop(pipeline)
            return pipeline if found is None else _over_each(found)
        case ast.Flwor() as loop:
            return _over_each(loop)
        case ast.Quantified(kind, ((name, source), *others), condition) as asked_of if isinstance(
            spread(source), ast.Sequence
        ):
            rest = replace(asked_of, bindings=tuple(others)) if others else condition
            return _of_each(kind == "some", name, spread(source), rest)
        case found:
            return found


def _is_whole(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.Number) and expression.text.isdigit()


def _is_truth(expression: ast.Expression) -> bool:
    """Whether an expression gives a boolean, as `filter` asks for."""
    match expression:
        case ast.Comparison() | ast.And() | ast.Or() | ast.Quantified():
            return True
        case ast.Call(name):
            return name.removeprefix("fn:") in _TRUTHS
        case _:
            return False


# --- loops ------------------------------------------------------------------------------------------------


def _over_each(loop: ast.Flwor) -> ast.Expression:
    """A loop over several expressions as a loop over each of them, one behind the other."""
    for place, clause in enumerate(loop.clauses):
        if loop.order or not isinstance(clause, ast.For) or clause.window is not None:
            continue
        source, rest = spread(clause.source), loop.clauses[place + 1 :]
        if not isinstance(source, ast.Sequence) or _is_counted(clause.variable, rest):
            continue
        rounds = tuple(
            _over_each(replace(loop, clauses=(_bound_to(clause.variable, each), *rest))) for each in source.items
        )
        inside = ast.Sequence(rounds, span=loop.span)
        return inside if not place else ast.Flwor(loop.clauses[:place], None, (), inside, span=loop.span)
    return loop


def _of_each(is_some: bool, name: str, source: ast.Expression, condition: ast.Expression) -> ast.Expression:
    """A quantifier over several expressions as one over each of them."""
    assert isinstance(source, ast.Sequence)
    found: list[ast.Expression] = []
    for each in source.items:
        match _bound_to(name, each):
            case ast.Let() as clause:
                found.append(ast.Call("boolean", (ast.Flwor((clause,), None, (), condition, span=each.span),)))
            case _:
                kind: Literal["some", "every"] = "some" if is_some else "every"
                found.append(_usual(ast.Quantified(kind, ((name, each),), condition, span=each.span)))
    if not found:
        return ast.Call("false" if is_some else "true", ())
    return ast.Or(tuple(found)) if is_some else ast.And(tuple(found))


def _bound_to(name: str, item: ast.Expression) -> ast.For | ast.Let:
    if isinstance(item, ast.Number | ast.String):
        return ast.Let(name, item, span=item.span)
    return ast.For(name, item, None, span=item.span)


def _is_counted(name: str, clauses: Sequence[ast.For | ast.Let]) -> bool:
    """Whether clauses ask for the place of a variable."""
    calls = (each for each in parts(clauses) if isinstance(each, ast.Call) and each.name == PLACE)
    return any(each.arguments[0] == ast.Variable(name) for each in calls)


def _as_loop(pipeline: ast.Pipeline) -> ast.Flwor | None:
    """A loop with positions, counts or several conditions; None where its clauses act on groups, or in another order.

    What is bound behind a condition is bound for all rows then, so it may fail more often, which the law finds out.
    """
    clauses: list[ast.For | ast.Let] = []
    where: ast.Expression | None = None
    order: tuple[ast.OrderKey, ...] = ()
    for number, clause in enumerate(pipeline.clauses):
        match clause:
            case ast.Let():
                clauses.append(clause)
            case ast.For() | ast.PositionalFor() if where is not None:
                rest = pipeline.clauses[number:]
                inside = None if any(map(_is_of_all, rest)) else _as_loop(replace(pipeline, clauses=rest))
                return inside and ast.Flwor(tuple(clauses), where, (), inside, span=pipeline.span)
            case ast.For(_, _, None) if not order:
                clauses.append(clause)
            case ast.PositionalFor(name, place, source, False) if not order:
                clauses.append(ast.For(name, source, None, span=clause.span))
                if place is not None:
                    clauses.append(ast.Let(place, ast.Call(PLACE, (ast.Variable(name),)), span=clause.span))
            case ast.Where(condition) if not order:
                where = condition if where is None else ast.If(where, condition, ast.Call("false", ()))
            case ast.OrderBy(keys) if not order:
                order = keys
            case ast.Count(name) if not order:
                looped = [ast.Variable(each.variable) for each in clauses if isinstance(each, ast.For)]
                if len(looped) != 1:
                    return None
                asked = (*looped, *(() if where is None else (where,)))
                clauses.append(ast.Let(name, ast.Call(PLACE, asked), span=clause.span))
            case _:
                return None
    return ast.Flwor(tuple(clauses), where, order, pipeline.result, span=pipeline.span)


def _is_of_all(clause: ast.Clause) -> bool:
    """Whether a clause looks at all rows that come to it."""
    return isinstance(clause, ast.OrderBy | ast.Count | ast.GroupBy)


def _reversed(source: ast.Expression, call: ast.Call) -> ast.Expression:
    """A sequence from its end on."""
    if isinstance(source, ast.Sequence):
        return ast.Sequence(tuple(_reversed(each, call) for each in reversed(source.items)), span=call.span)
    if isinstance(source, ast.Number | ast.String):
        return source
    loop = _loop_with_places(source, call, None)
    return replace(loop, order=(ast.OrderKey(loop.result, True),), result=ast.Variable(loop.clauses[0].variable))


def _loop_with_places(
    source: ast.Expression, call: ast.Call, holds: Callable[[ast.Variable], ast.Expression] | None
) -> ast.Flwor:
    """The places of some values among all of them."""
    each, place = ast.Variable("each of all"), ast.Variable("place of each")  # no variable is called so
    clauses = (ast.For(each.name, source, None, span=call.span), ast.Let(place.name, ast.Call(PLACE, (each,))))
    return ast.Flwor(clauses, holds and holds(each), (), place, span=call.span)


# --- paths ------------------------------------------------------------------------------------------------


def _steps_of(result: ast.Expression) -> Sequence[ast.Expression]:
    """The paths whose nodes a step gives together."""
    match result:
        case ast.Sequence(items):
            return [each for item in items for each in _steps_of(item)]
        case ast.Call("op:union", (left, right)):
            return [*_steps_of(left), *_steps_of(right)]
        case _:
            return [result]


def _continued(step: ast.Expression, name: str, source: ast.Expression) -> ast.Expression | None:
    """A path from a variable as one from what the variable runs over; None for anything else."""
    match source, step:
        case _, ast.Variable(found) if found == name:
            return source
        case ast.Path(start, first), ast.Path(ast.Variable(found), behind) if found == name:
            return ast.Path(start, (*first, *behind), span=step.span)
        case ast.Variable() | ast.ContextItem(), ast.Path(ast.Variable(found), behind) if found == name:
            return ast.Path(source, behind, span=step.span)
        case _:
            return None


def _united(paths: Sequence[ast.Expression | None]) -> ast.Expression | None:
    found: ast.Expression | None = None
    for each in paths:
        if each is None:
            return None
        found = each if found is None else ast.Call("op:union", (found, each), span=each.span)
    return found


# --- functions that are values ----------------------------------------------------------------------------


@dataclass
class _Inlined:
    """Puts the bodies of functions in the place of their calls, where it is known which function is called."""

    once: frozenset[str]
    """The names that are bound once, and not inside of a function: they mean the same wherever that is called."""
    calls: int = 0

    @staticmethod
    def of(query: Any) -> _Inlined:
        inside = bindings_in(tuple(each for each in parts(query) if isinstance(each, ast.InlineFunction)))
        return _Inlined(frozenset(name for name, times in bindings_in(query).items() if times == 1) - {*inside})

    def visit(self, node: Any) -> Any:
        match node:
            case ast.Flwor(clauses):
                for place, clause in enumerate(clauses):
                    if isinstance(clause, ast.Let) and self._is_everywhere(clause.value):
                        rest = replace(node, clauses=clauses[place + 1 :])
                        rest = substituted(rest, clause.variable, clause.value)
                        return self.visit(_behind(clauses[:place], rest))
                return rebuild(node, self.visit)
            case ast.Call(name, (ast.InlineFunction(parameters, body), *given)) if (
                name == CALL and len(parameters) == len(given) and self.calls < _MOST_CALLS
            ):
                self.calls += 1
                names = [f"{each} of call {self.calls}" for each in parameters]  # no variable is called so
                for old, new in zip(parameters, names, strict=True):
                    body = substituted(body, old, ast.Variable(new))
                lets = tuple(map(ast.Let, names, given))
                return self.visit(_behind(lets, ast.Flwor((), None, (), body, span=node.span)))
            case _:
                return rebuild(node, self.visit)

    def _is_everywhere(self, value: ast.Expression) -> bool:
        """Whether an expression is a function whose variables mean the same wherever it is called."""
        if not isinstance(value, ast.InlineFunction):
            return False
        return free_variables(value) <= self.once


def _behind(clauses: Sequence[ast.For | ast.Let], rest: ast.Flwor) -> ast.Expression:
    """A loop with further clauses in front."""
    if not clauses and not rest.clauses and rest.where is None:
        return rest.result
    return replace(rest, clauses=(*clauses, *rest.clauses))
