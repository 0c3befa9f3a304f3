"""Static checks of the streams, windows and joins in one FLWR expression (LAWS 3.4, 3.5).

`Known` and `Scope` are what all checks know of variables and the context item before any data is seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.errors import QueryError, Span
from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.checks.unbounded import set_streams
from anabranch.language.equalities import tied_by_keys
from anabranch.language.intervals import bounded
from anabranch.language.rewrite import parts
from anabranch.stream.path import PER_SECOND

Position: TypeAlias = tuple[str, ...]
"""Names from the root element down to a node; the document itself is the empty position."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value.

    `source` is the input that nodes come from, and `position` their place in it, as far as it is known; `missing` is
    where a path was written that the schema lacks; `flowing` says that the value is all of a stream.
    """

    source: ast.Source | None = None
    position: Position | None = None
    missing: Span | None = None
    flowing: bool = False
    numeric: bool = False
    inside: bool = False
    """Reached from an item, or from below one."""
    looped: bool = False
    """Whether it is the result of a loop over a stream, in which positions have a meaning."""
    has_bounds: bool = False
    """Whether it is the whole of a window over reference values."""


UNKNOWN = Known()


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place in a query, and which rules hold there."""

    variables: Mapping[str, Known] = field(default_factory=dict)
    context: Known | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """The namespaces that are declared."""
    in_round: bool = False
    """Inside the round of a stream's `for`, where no other stream may be read."""
    condition: bool = False
    """Inside a condition, where a path that the schema lacks is an error."""
    counted: bool = False
    """Inside a predicate, where position() and last() mean something."""

    def bind(self, name: str, known: Known) -> Scope:
        return replace(self, variables={**self.variables, name: known})

    def within(self, context: Known) -> Scope:
        """Inside a predicate on nodes of which `context` is known."""
        in_round = self.in_round or context.source is not None
        return replace(self, context=context, condition=True, counted=True, in_round=in_round)

    def asking(self) -> Scope:
        return replace(self, condition=True)

    def remembered(self) -> Scope:
        """Under a temporal qualifier, where another stream may be read: its past is bounded."""
        return replace(self, in_round=False)

    def round(self) -> Scope:
        return replace(self, in_round=True)

    @property
    def flowing(self) -> frozenset[str]:
        return frozenset(name for name, known in self.variables.items() if known.flowing)


def check_pipeline(pipeline: ast.Pipeline, flowing: Sequence[int], growing: Sequence[int], text: str) -> None:
    """Refuse groups and numbers that have no meaning; `flowing` are the places of the `for`s over streams.

    The `growing` among them are over items, which have no numbers.
    """
    clauses = pipeline.clauses
    grouped = [each for each in clauses if isinstance(each, ast.GroupBy)]
    windowed = [each for each in clauses if isinstance(each, ast.For) and each.window]
    if grouped and len(windowed) == 1:
        raise refuse("group by without a loop over the window", text, grouped[0].span)
    if grouped and windowed:
        raise refuse("group by or count over a join", text, windowed[-1].span)
    for place, clause in enumerate(clauses):
        if isinstance(clause, ast.For) and clause.window:
            _check_window(clause, clause.window, place in flowing, text)
    for clause in clauses:
        match clause:
            case ast.Count() if growing:
                raise refuse("count clause", text, clause.span)
            case ast.GroupBy() | ast.OrderBy():
                return


MAX_OVERLAP = 10_000
"""How many windows may hold one item; more would let one short query cost without bound."""


def check_streams(
    flwor: ast.Flwor, flowing: Sequence[int], growing: Sequence[int], text: str, *, finite: bool = False
) -> None:
    """Refuse what cannot be answered without end; `flowing` are the places of the clauses over streams.

    The `growing` among them are over items, the others over updates: those are documents, which are there as a whole.
    """
    for place, clause in enumerate(flwor.clauses):
        if isinstance(clause, ast.For) and clause.window:
            _check_window(clause, clause.window, place in flowing, text)
    fors = [clause for place in flowing if isinstance(clause := flwor.clauses[place], ast.For)]
    if len(fors) < 2:
        return
    items = [clause for place in growing if isinstance(clause := flwor.clauses[place], ast.For)]
    _check_independence(flwor, flowing[0], items, text)
    windowed = [clause for clause in fors if clause.window]
    if not windowed:
        beside = [flwor.clauses[place] for place in flowing[1:] if place in growing]
        names = [clause.variable for clause in fors]
        if beside and not finite and not bounded(flwor.where, names) and not tied_by_keys(flwor, names):
            raise refuse("unbounded second stream", text, beside[0].span)
        return
    if len(windowed) < len(fors):
        bare = next(clause for clause in fors if not clause.window)
        raise refuse("window beside a stream without one", text, bare.span)
    _check_step_join(flwor, fors, text)


def is_edited(source: ast.Expression | None, edited: Collection[str]) -> bool:
    """Whether an expression is a stream of updates; `edited` has the names of these."""
    return isinstance(source, ast.Source) and source.kind == "stream" and source.name in edited


def over_updates(clause: ast.For | ast.Let, scope: Scope, edited: Collection[str]) -> bool:
    """Whether a `for` runs over a stream of updates, or over several."""
    if isinstance(clause, ast.For) and (streams := set_streams(clause.source)):
        return all(each in edited for each in streams)
    at: ast.Expression | None = clause.source if isinstance(clause, ast.For) else None
    while isinstance(at, ast.Path | ast.Filter):
        at = at.start if isinstance(at, ast.Path) else at.base
    if isinstance(at, ast.Variable) and at.name in scope.variables:
        at = scope.variables[at.name].source
    return is_edited(at, edited)


def _check_window(clause: ast.For, window: ast.Window, flowing: bool, text: str) -> None:
    allowed = (ast.Path, ast.Filter, ast.Source, ast.Flwor if flowing else ast.Variable)
    if not isinstance(clause.source, allowed):
        raise refuse("window on what is no path", text, clause.source.span)
    sizes: tuple[ast.Amount, ast.Amount | None] = (
        (window.gap, None) if isinstance(window, ast.SessionWindow) else (window.size, window.step)
    )
    for amount in (each for each in sizes if each is not None):
        if isinstance(window, ast.CountWindow) and not amount.text.isdigit():
            raise QueryError(f"'{amount.text}' is no whole number of items", text=text, span=amount.span)
        if (isinstance(amount, ast.Number) and "e" in amount.text.lower()) or amount.exact <= 0:
            message, hint = f"'{amount.text}' is no size of a window", "write a number above 0, without an exponent"
            raise QueryError(message, text=text, span=amount.span, hint=hint)
    size, step = sizes
    if step is None:
        return
    hint = "make the step larger or the window smaller"
    overlap = size.exact / step.exact
    if isinstance(size, ast.Duration) and isinstance(step, ast.Number):
        overlap *= max(PER_SECOND.values())  # the unit of the step depends on the stream: assume the finest
        hint = "write the step as a duration, too"
    if overlap > MAX_OVERLAP:
        message = f"each item would be in more than {MAX_OVERLAP:,} windows"
        raise QueryError(message, text=text, span=window.span, hint=hint)


def _check_independence(flwor: ast.Flwor, first: int, fors: Sequence[ast.For], text: str) -> None:
    """Refuse a join input whose path uses variables of the same join: that condition belongs into 'where'."""
    names = {clause.variable for clause in flwor.clauses[first:]}
    for clause in fors:
        for part in parts(clause.source):
            if isinstance(part, ast.Variable) and part.name in names:
                raise refuse("join input that depends on another", text, part.span)


def _check_step_join(flwor: ast.Flwor, fors: Sequence[ast.For], text: str) -> None:
    for clause in fors:
        if isinstance(clause.window, ast.SessionWindow):
            raise refuse("session in a join", text, clause.window.span)
    names = {clause.variable for clause in fors}
    for other in flwor.clauses:
        if isinstance(other, ast.Let) and _mentions(other.value, names):
            names.add(other.variable)
    for part in parts(flwor):
        if isinstance(part, ast.Call) and part.name.removeprefix("fn:") in AGGREGATES and _mentions(part, names):
            raise refuse("aggregate over a join", text, part.span)


def _mentions(expression: ast.Expression, names: set[str]) -> bool:
    return any(isinstance(part, ast.Variable) and part.name in names for part in parts(expression))
