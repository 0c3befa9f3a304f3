"""Which windows need not be held: those that a query only looks at through aggregates.

    for $w in stream("s")/r/i |t diff 20 step 10| let $a := avg($w/en) return <o n="{count($w)}">{ $a }</o>

reads of `$w` nothing but `avg($w/en)` and `count($w)`.
Such calls can be made of parts of a window (aggregates/partial.py), so the items themselves may be forgotten.
`aggregated` finds the calls and puts a variable in the place of each; the name has a `#` in it, which no query can
write, so it hides nothing.

What a call looks at must follow from each item alone, in the order of the items:

* the path goes down from the window's nodes, which themselves are reached by plain child steps: then no two of them
  share a node, and what is reached stands in the order of the stream;
* it holds at most one predicate: with two, all items would have to pass the first before one is shown to the second,
  and an error in the first, however late in the window, would be the one to report;
* the predicate looks at nothing outside: no variable, no input, no function but the built-in ones;
* it ends in elements, attributes or text, never in comments, which are strings and not numbers;
* its names mean everywhere in the expression what they mean at its beginning: no constructor declares a namespace.

A loop over such a path without predicates may stand in its place, if each of its rounds looks at its own node only:

    sum(for $i in $w where $i/kind = "sold" return $i/price * $i/quantity)

What it gives is a path or arithmetic, so it is a number or fails, and is nothing where a path in it leads nowhere.

A `let` that only names a path without predicates, which cannot fail, is as good as the path itself.

What a lookup finds in each item, `sum($w.amount)` (LAWS 7.1), is aggregated as well.
`null` is a value to `count` and nothing to all else, and an array is one value to `count` and its members to all else,
so these are taken over `non-null(data($w.amount))`.

The bounds of the window, `window-start($w)` and `window-end($w)` (LAWS 3.1), are no matter of its items, but for one
thing: whether a time is among them.
A variable stands for each of them, too (`with_bounds`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from anabranch.aggregates import BY_PANES
from anabranch.aggregates.function import FunctionName
from anabranch.language import ast
from anabranch.language.objects import LOOKUP
from anabranch.language.rewrite import bindings_in, parts, rebuild
from anabranch.language.signatures import BOUNDS, SIGNATURES


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate: the variable that stands for it, its function, and which of the paths it is taken over."""

    variable: str
    function: FunctionName
    path: int


@dataclass(frozen=True, slots=True)
class Aggregated:
    """A FLWR expression that sees its window through aggregates only."""

    flwor: ast.Flwor
    """The expression with the variables in the place of the calls."""
    calls: tuple[AggregateCall, ...]
    paths: tuple[ast.Expression, ...]
    """The aggregated paths, each once, from the window's variable on."""
    names: frozenset[str] = field(compare=False)
    """The window's variable, and those that only name a path from it."""
    asks_bounds: bool = False
    """Whether it asks for the bounds of the window."""


def aggregated(flwor: ast.Flwor, clause: ast.For, registered: Collection[str] = ()) -> Aggregated | None:
    """Take the aggregates out of an expression; None where it needs the items of the window `clause` themselves.

    `registered` are the functions of the user, which go before built-in ones of the same name.
    """
    if not SIGNATURES.keys().isdisjoint(registered):
        return None
    if any(isinstance(part, ast.ElementConstructor) and part.namespaces for part in parts(flwor)):
        return None
    window = clause.variable
    bound = bindings_in(flwor)
    if bound[window] > 1 or not _is_plain(clause.source):
        return None
    flwor, names = _without_names(flwor, clause, {name for name, times in bound.items() if times == 1})
    calls: dict[tuple[FunctionName, ast.Expression], AggregateCall] = {}
    paths: list[ast.Expression] = []

    def visit(node: Any) -> Any:
        match node:
            case ast.Call(name, (argument,)) if function := _function(name, argument, window):
                if isinstance(argument, ast.Call) and function != "count":
                    argument = _summed(argument)
                if argument not in paths:
                    paths.append(argument)
                call = AggregateCall(f"{function}#{len(calls)}", function, paths.index(argument))
                return ast.Variable(calls.setdefault((function, argument), call).variable, span=node.span)
            case ast.For() if node is clause:
                return node
            case _:
                return rebuild(node, visit)

    rewritten: ast.Flwor = visit(with_bounds(flwor, window))
    others = [each for each in rewritten.clauses if each is not clause]
    looked_at = [*parts((*others, replace(rewritten, clauses=())))]
    if any(part == ast.Variable(window) for part in looked_at):
        return None
    asks_bounds = any(isinstance(part, ast.Variable) and part.name in BOUND_VARIABLES for part in looked_at)
    return Aggregated(rewritten, tuple(calls.values()), tuple(paths), names | {window}, asks_bounds)


NON_NULL = "non-null"

BOUND_VARIABLES: Mapping[str, str] = {f"#{name}": name for name in BOUNDS}
"""The variables that stand for the bounds of a window, with the functions that give them."""


def with_bounds(node: Any, window: str) -> Any:
    """A part of a query with variables in the place of the bounds of a window."""
    match node:
        case ast.Call(name, (ast.Variable(variable),)) if variable == window and name.removeprefix("fn:") in BOUNDS:
            return ast.Variable(f"#{name.removeprefix('fn:')}", span=node.span)
        case _:
            return rebuild(node, partial(with_bounds, window=window))


def _without_names(flwor: ast.Flwor, clause: ast.For, once: set[str]) -> tuple[ast.Flwor, frozenset[str]]:
    """The expression without each `let` that names a path from the window, the path put for the name; and these names.

    `once` are the variables that are bound in one place only.
    """
    paths: dict[str, ast.Path | ast.Variable] = {}
    visit = partial(with_paths, paths=paths)
    clauses: list[ast.For | ast.Let] = []
    for each in flwor.clauses:
        each = each if each is clause else visit(each)
        match each:
            case ast.Let(name, ast.Path() | ast.Variable() as value) if name in once and is_bare(
                value, clause.variable
            ):
                paths[name] = value
            case _:
                clauses.append(each)
    if not paths:
        return flwor, frozenset()
    return replace(visit(replace(flwor, clauses=())), clauses=tuple(clauses)), frozenset(paths)


def with_paths(node: Any, paths: Mapping[str, ast.Path | ast.Variable]) -> Any:
    """A part of a query with paths in the place of the variables that name them."""
    visit = partial(with_paths, paths=paths)
    match node:
        case ast.Variable(name) if name in paths:
            return paths[name]
        case ast.Path(ast.Variable(name), steps) if name in paths:
            return _longer(paths[name], visit(steps))
        case ast.Filter(ast.Variable(name), tail) if name in paths:
            return _filtered(paths[name], visit(tail))
        case _:
            return rebuild(node, visit)


def is_bare(path: ast.Expression, window: str) -> bool:
    """Whether it is a path from the window without predicates."""
    return is_ours(path, window) and not (isinstance(path, ast.Path) and any(step.tail for step in path.steps))


def _longer(path: ast.Path | ast.Variable, steps: tuple[ast.Step, ...]) -> ast.Path:
    return replace(path, steps=(*path.steps, *steps)) if isinstance(path, ast.Path) else ast.Path(path, steps)


def _filtered(path: ast.Path | ast.Variable, tail: tuple[ast.Tail, ...]) -> ast.Path | ast.Filter:
    if not isinstance(path, ast.Path):
        return ast.Filter(path, tail)
    *steps, last = path.steps
    return replace(path, steps=(*steps, replace(last, tail=tail)))


def _function(name: str, argument: ast.Expression, window: str) -> FunctionName | None:
    """The function of a call that can be made of parts of a window."""
    function = BY_PANES.get(name.removeprefix("fn:"))
    if function is None:
        return None
    match argument:
        case ast.Flwor((ast.For(variable, source, None),), where, (), result):
            reads = ast.Variable(variable) in parts(result)  # else it may be an integer, and so their sum
            is_made = _is_round(variable, where, result) and is_bare(source, window)
            is_made = is_made and (reads or not function.takes_numbers)
        case ast.Call(given, (inner,)) if given.removeprefix("fn:") == NON_NULL:
            is_made = is_lookup(inner, window)
        case ast.Call():
            is_made = is_lookup(argument, window)
        case _:
            is_made = is_ours(argument, window) and not (function.takes_numbers and not _is_valued(argument))
    return function.name if is_made else None


def _summed(argument: ast.Call) -> ast.Call:
    """What is summed of what a lookup finds, `null` left out or not."""
    inner = argument.arguments[0] if argument.name.removeprefix("fn:") == NON_NULL else argument
    return ast.Call(NON_NULL, (ast.Call("data", (inner,), span=inner.span),), span=inner.span)


def is_lookup(expression: ast.Expression, window: str) -> bool:
    """Whether it is what keys lead to from the items of a window."""
    match expression:
        case ast.Call(name, (ast.Variable(variable), ast.String())) if name == LOOKUP:
            return variable == window
        case ast.Call(name, (base, ast.String())) if name == LOOKUP:
            return is_lookup(base, window)
        case _:
            return False


def _is_round(variable: str, where: ast.Expression | None, result: ast.Expression) -> bool:
    """Whether a round of a loop looks at its own node only, and gives a number or nothing."""
    return looks_at_own((where, result), variable) and _is_number(result, variable)


def looks_at_own(part: Any, variable: str) -> bool:
    """Whether a part of a query looks at the node of a variable only, and at nothing above it."""
    looked_at = [each for each in parts(part) if each != ast.Variable(variable)]
    return not any(map(_looks_out, looked_at)) and not bindings_in(part)


def _is_number(result: ast.Expression, variable: str) -> bool:
    """Whether it is a path without predicates from the variable, or arithmetic with such paths, lookups and numbers."""
    match result:
        case ast.Number():
            return True
        case ast.Negation(operand):
            return _is_number(operand, variable)
        case ast.Arithmetic(first, rest):
            operands = (first, *(operand for _, operand in rest))
            return all(is_lookup(each, variable) or _is_number(each, variable) for each in operands)
        case _:
            return is_bare(result, variable) and _is_valued(result)


def _is_plain(source: ast.Expression) -> bool:
    """Whether a path takes child steps by name only from a stream, whatever its predicates are."""
    match source:
        case ast.Path(ast.Source("stream"), steps):
            return all(each.axis == "child" and not each.deep and isinstance(each.test, ast.NameTest) for each in steps)
        case _:
            return False


def is_ours(path: ast.Expression, window: str) -> bool:
    """Whether a path starts from the window and stays inside its items."""
    match path:
        case ast.Variable(name):
            return name == window
        case ast.Filter(ast.Variable(name), tail):
            return name == window and len(tail) == 1 and _is_closed(tail[0])
        case ast.Path(ast.Variable() | ast.Filter() as start, steps):
            tails = [*(start.tail if isinstance(start, ast.Filter) else ()), *(t for step in steps for t in step.tail)]
            goes_down = all(step.axis != "parent" for step in steps)
            return is_ours(start, window) and goes_down and len(tails) <= 1 and all(map(_is_closed, tails))
        case _:
            return False


def _is_valued(path: ast.Expression) -> bool:
    """Whether a path ends in what is read as a number, where it is one."""
    match path:
        case ast.Path(_, (*_, ast.Step(test=ast.KindTest("node")))):
            return False
        case _:
            return True


def _is_closed(tail: ast.Tail) -> bool:
    """Whether a predicate looks at nothing outside the node it is put to, nor above it."""
    return isinstance(tail, ast.Predicate) and not any(map(_looks_out, parts(tail)))


def _looks_out(part: Any) -> bool:
    match part:
        case ast.Variable() | ast.Source() | ast.Root() | ast.Qualifier():
            return True
        case ast.Call(name):
            return name.removeprefix("fn:") not in SIGNATURES
        case ast.Step(axis):
            return axis in ast.CLIMBING
        case _:
            return False
