"""Expressions that are no path and are asked for their past: what has versions of its own (LAWS 5.4).

A path has the versions of what it reaches.
Any other expression has values, one after another; it is *closed* where it has one value at each moment, whatever
stands around it, so that its versions can be remembered once for the whole query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import bound_by, children, parts


def is_path(expression: ast.Expression) -> bool:
    """Whether an expression is a path, so that its versions are those of what it reaches."""
    while isinstance(expression, ast.Filter):
        expression = expression.base
    return isinstance(expression, ast.Path | ast.Variable | ast.Source | ast.ContextItem | ast.Root)


@dataclass(frozen=True, slots=True)
class ValuePast:
    """`(e)#v`, or another qualifier, behind an expression that is no path."""

    expression: ast.Expression
    """The expression, with the predicates before the qualifier."""
    qualifier: ast.Qualifier
    behind: tuple[ast.Tail, ...]
    """The predicates behind the qualifier."""

    @property
    def has_versions(self) -> bool:
        """Whether versions are asked for; `(e)?t` is evaluated over the document of then."""
        return self.qualifier.kind == "version" or self.qualifier.window


def value_past(expression: object) -> ValuePast | None:
    """An expression as a question about the past of what is no path; None for any other."""
    if not isinstance(expression, ast.Filter) or is_path(expression.base):
        return None
    for place, each in enumerate(expression.tail):
        if isinstance(each, ast.Qualifier):
            before = expression.tail[:place]
            base = ast.Filter(expression.base, before, span=expression.span) if before else expression.base
            return ValuePast(base, each, expression.tail[place + 1 :])
    return None


def remembered_in(node: Any) -> Iterator[ValuePast]:
    """The closed expressions in a part of a query whose versions are asked for, inner ones first."""
    for each in children(node):
        yield from remembered_in(each)
    found = value_past(node)
    if found is not None and found.has_versions and is_closed(found.expression):
        yield found


def asks_otherwise(node: Any) -> bool:
    """Whether a part of a query asks for the past of something else than closed expressions that are no path."""
    match node:
        case ast.Filter() if (
            (past := value_past(node)) is not None and past.has_versions and is_closed(past.expression)
        ):
            return asks_otherwise(past.expression) or asks_otherwise(past.behind)
        case ast.Qualifier():
            return True
        case _:
            return any(map(asks_otherwise, children(node)))


def outside_values(node: Any) -> Iterator[Any]:
    """All nodes of a part of a query, but for closed expressions that ask for no other past and are remembered."""
    past = value_past(node)
    if past is not None and past.has_versions and is_closed(past.expression):
        if asks_otherwise(past.expression):
            yield from outside_values(past.expression)
        yield from outside_values(past.behind)
        return
    if not isinstance(node, tuple):
        yield node
    for each in children(node):
        yield from outside_values(each)


def moves_inside(query: ast.Query) -> ast.Qualifier | None:
    """A question about values of an expression with variables that may change as time passes, whatever comes.

    Such an expression looks back by time itself, or to values of another one.
    """
    called = {each.name for each in query.functions if _moves(each.body)}
    while more := {each.name for each in query.functions if each.name not in called and _calls(each.body, called)}:
        called |= more
    for each in parts(query):
        past = value_past(each)
        if past is None or not past.has_versions or is_closed(past.expression):
            continue
        if _moves(past.expression) or _calls(past.expression, called):
            return past.qualifier
    return None


def _moves(node: Any) -> bool:
    return any(
        (isinstance(each, ast.Qualifier) and each.kind == "time") or value_past(each) is not None
        for each in parts(node)
    )


def _calls(node: Any, names: Collection[str]) -> bool:
    return any(isinstance(each, ast.Call) and each.name in names for each in parts(node))


def is_closed(node: Any) -> bool:
    """Whether a part of a query has the same value wherever it stands: it uses no variable or context around it."""
    return not uses_variables(node) and not _uses_context(node)


def uses_variables(node: Any, bound: frozenset[str] = frozenset()) -> bool:
    """Whether a variable in a part of a query is bound outside of it."""
    match node:
        case ast.Variable(name):
            return name not in bound
        case ast.Flwor(clauses, where, order, result):
            for clause in clauses:
                if uses_variables(clause.source if isinstance(clause, ast.For) else clause.value, bound):
                    return True
                bound |= {clause.variable}
            return uses_variables((where, order, result), bound)
        case ast.Pipeline(clauses, result):
            for each in clauses:
                if uses_variables(children(each), bound):
                    return True
                bound |= {*bound_by(each)}
            return uses_variables(result, bound)
        case ast.Quantified(_, bindings, condition):
            for name, source in bindings:
                if uses_variables(source, bound):
                    return True
                bound |= {name}
            return uses_variables(condition, bound)
        case ast.InlineFunction(parameters, body):
            return uses_variables(body, bound | {*parameters})
        case _:
            return any(uses_variables(each, bound) for each in children(node))


def _uses_context(node: Any) -> bool:
    """Whether a part of a query uses the context item around it; predicates and windows in it have their own."""
    match node:
        case ast.Call("true" | "false" | "fn:true" | "fn:false", ()):
            return False
        case ast.ContextItem() | ast.Root() | ast.Path(None) | ast.Call(_, ()):
            return True
        case ast.Predicate() | ast.Positional() | ast.TimeWindow() | ast.SessionWindow():
            return False
        case _:
            return any(map(_uses_context, children(node)))
