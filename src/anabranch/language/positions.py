"""Which predicates are positions (LAWS 3.10), decided from their text alone.

A predicate whose value is a number asks for the node at that place, and `position()` and `last()` ask for places, too.
Such a predicate depends on what stands beside a node, which matters to code that takes nodes one by one.
So it is an `ast.Positional`, and every other is an `ast.Predicate`, which looks at one node at a time.

The text of items has no type, so no path is ever a number.
The value of a variable, of a key of JSON or of a user's function is known only with the data: there a predicate is
positional, and decides for each value.
The items of a stream have no positions; on them such a predicate stays plain, and a number is an error of its item.

A stream of updates is a document, and versions are finite, so `(stream("u")//i)[1]` means what XQuery says.
It is read as `(for $each in stream("u")//i return $each)[1]`, because the results of loops have places everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from anabranch.language import ast
from anabranch.language.objects import POSTFIX
from anabranch.language.rewrite import children, parts, rebuild
from anabranch.language.signatures import GIVING, HIGHER, SIGNATURES

_Numeric: TypeAlias = Literal["never", "perhaps", "surely"]

_ITEM = 2
"""How many steps below a stream an item stands; what is deeper counts as an item."""
_THROUGH: Mapping[str, tuple[int, ...]] = {**dict.fromkeys(("data", "distinct-values"), (0,)), **GIVING}
"""Functions whose result is made of values of their arguments: by name, the places of these arguments."""
_ANYTHING = ("op:call", "op:try", "op:convert", *POSTFIX, *HIGHER)
"""Functions whose value may be whatever another function gives, or what stands in JSON."""

_COUNTED = ("head", "tail", "subsequence", "remove", "insert-before")
"""The functions that look at the places of their first argument."""
_EACH = "each"
"""The variable of such a loop; what it runs over is outside of its scope, so it may have the same name as another."""


def with_positions(query: ast.Query) -> ast.Query:
    """The query with each predicate as an `ast.Positional` or an `ast.Predicate`."""
    if not any(isinstance(part, ast.Predicate | ast.Positional) for part in parts(query)):
        return query
    marked: ast.Query = _Marking(query).visit(query)
    return marked


def asks_position(node: Any) -> bool:
    """Whether a condition asks for the place of the node it is put to; predicates inside it have nodes of their own."""
    match node:
        case ast.Call(name, ()) if name.removeprefix("fn:") in ("position", "last"):
            return True
        case ast.Predicate() | ast.Positional():
            return False
        case _:
            return any(map(asks_position, children(node)))


def in_loops(query: ast.Query, edited: Collection[str]) -> ast.Query:
    """The query with loops over the paths whose nodes are counted; `edited` are the streams of updates."""

    def counted(expression: ast.Expression) -> ast.Expression:
        if not _has_places(expression, edited):
            return expression
        each = ast.Variable(_EACH, span=expression.span)
        return ast.Flwor((ast.For(_EACH, expression, span=expression.span),), None, (), each, span=expression.span)

    def visit(node: Any) -> Any:
        match rebuild(node, visit):
            case ast.Filter(base, tail) as found if any(isinstance(each, ast.Positional) for each in tail):
                looks_back = any(isinstance(each, ast.Qualifier) for each in tail)
                return found if looks_back else replace(found, base=counted(base))
            case ast.PositionalFor(source=source) as found:
                return replace(found, source=counted(source))
            case ast.Call(name, (first, *others)) as found if name.removeprefix("fn:") in _COUNTED:
                return replace(found, arguments=(counted(first), *others))
            case found:
                return found

    made: ast.Query = visit(query)
    return made


def _has_places(expression: ast.Expression, edited: Collection[str]) -> bool:
    """Whether an expression is a path over a stream of updates, or one that gives versions."""
    at: ast.Expression | None = expression
    if not isinstance(at, ast.Path | ast.Filter):
        return False
    while isinstance(at, ast.Path | ast.Filter):
        tails = [at.tail] if isinstance(at, ast.Filter) else [each.tail for each in at.steps]
        if any(isinstance(each, ast.Qualifier) for tail in tails for each in tail):
            return True
        at = at.base if isinstance(at, ast.Filter) else at.start
    return isinstance(at, ast.Source) and at.kind == "stream" and at.name in edited


class _Marking:
    """Marks the predicates of one query."""

    def __init__(self, query: ast.Query) -> None:
        self._functions = {each.name: each for each in query.functions}
        self._bodies: dict[str, _Numeric] = {}

    def visit(self, node: Any) -> Any:
        """A part of the query with its predicates marked."""
        match node:
            case ast.Filter(base, tail):
                marked = self._tail(tail, nodes=False, plain=_level(base) is not None or _asks_past(base))
                return _with(node, base=self.visit(base), tail=marked)
            case ast.Path(start, steps):
                level = None if start is None else _level(start)
                marked_steps: list[ast.Step] = []
                for step in steps:
                    marked = self._tail(step.tail, nodes=True, plain=level is not None and level < _ITEM)
                    marked_steps.append(_with(step, tail=marked))
                    level = _stepped(level, step)
                return _with(node, start=self.visit(start), steps=_same(steps, tuple(marked_steps)))
            case _:
                return rebuild(node, self.visit)

    def _tail(self, tail: tuple[ast.Tail, ...], *, nodes: bool, plain: bool) -> tuple[ast.Tail, ...]:
        """Mark predicates; where values have no positions (`plain`), mark only those that are surely positions."""
        plain = plain or any(isinstance(each, ast.Qualifier) for each in tail)
        found: list[ast.Tail] = []
        for each in tail:
            if isinstance(each, ast.Qualifier):
                found.append(each)
                continue
            condition = self.visit(each.condition)
            numeric = self._numeric(condition, nodes)
            positional = numeric == "surely" or asks_position(condition) or (numeric == "perhaps" and not plain)
            kind = ast.Positional if positional else ast.Predicate
            same = isinstance(each, kind) and condition is each.condition
            found.append(each if same else kind(condition, span=each.span))
        return _same(tail, tuple(found))

    def _numeric(self, expression: ast.Expression, nodes: bool) -> _Numeric:
        """Whether an expression is a number; `nodes` says that the context item is a node."""
        match expression:
            case ast.Number() | ast.Arithmetic() | ast.Negation():
                return "surely"
            case ast.Variable() | ast.InlineFunction():
                return "perhaps"
            case ast.ContextItem():
                return "never" if nodes else "perhaps"
            case ast.Filter(base):
                return self._numeric(base, nodes)
            case ast.If(_, then, otherwise):
                both = {self._numeric(then, nodes), self._numeric(otherwise, nodes)}
                return "perhaps" if len(both) > 1 else both.pop()
            case ast.Sequence(items):
                return "never" if all(self._numeric(each, nodes) == "never" for each in items) else "perhaps"
            case ast.Flwor(result=result) | ast.Pipeline(result=result):
                return "never" if self._numeric(result, nodes) == "never" else "perhaps"
            case ast.Cast("cast", _, name):
                return "surely" if SIGNATURES[name].numeric else "never"
            case ast.Call(name, arguments):
                return self._called(name.removeprefix("fn:"), arguments, nodes)
            case _:
                return "never"

    def _called(self, name: str, arguments: tuple[ast.Expression, ...], nodes: bool) -> _Numeric:
        if name in self._functions:
            if name not in self._bodies:
                self._bodies[name] = "perhaps"  # a function that calls itself is refused elsewhere
                self._bodies[name] = self._numeric(self._functions[name].body, nodes=False)
            return self._bodies[name]
        if name in _ANYTHING:
            return "perhaps"
        if name in _THROUGH and len(arguments) > max(_THROUGH[name]):
            found = {self._numeric(arguments[place], nodes) for place in _THROUGH[name]}
            return found.pop() if len(found) == 1 else "perhaps"
        signature = SIGNATURES.get(name)
        if signature is None:
            return "perhaps"
        return "surely" if signature.numeric else "never"


def _asks_past(path: ast.Expression) -> bool:
    """Whether a path asks for versions or times, which are found one by one."""
    match path:
        case ast.Filter(base, tail):
            return any(isinstance(each, ast.Qualifier) for each in tail) or _asks_past(base)
        case ast.Path(start, steps):
            own = any(isinstance(each, ast.Qualifier) for step in steps for each in step.tail)
            return own or (start is not None and _asks_past(start))
        case _:
            return False


def _level(path: ast.Expression) -> int | None:
    """How far below a stream's document a path leads, 2 for items and below; None for what is no path over a stream."""
    match path:
        case ast.Source(kind):
            return 0 if kind == "stream" else None
        case ast.Filter(base, tail):
            return None if any(isinstance(each, ast.Qualifier) for each in tail) else _level(base)
        case ast.Path(start, steps):
            level = None if start is None else _level(start)
            for step in steps:
                level = _stepped(level, step)
            return level
        case _:
            return None


def _stepped(level: int | None, step: ast.Step) -> int | None:
    """The level that a step leads to; a step to any depth from above the items may reach the root."""
    if level is None or any(isinstance(each, ast.Qualifier) for each in step.tail):
        return None  # a bounded piece of the past
    if level >= _ITEM:
        return level
    if step.deep or step.axis in ("descendant", "descendant-or-self"):
        return _ITEM - 1
    return level + 1 if step.axis in ("child", "attribute") else level


def _with(node: Any, **fields: Any) -> Any:
    changed = {name: value for name, value in fields.items() if value is not getattr(node, name)}
    return replace(node, **changed) if changed else node


def _same(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if all(one is other for one, other in zip(old, new, strict=True)) else new
