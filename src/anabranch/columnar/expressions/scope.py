"""Where paths lead: the bindings of names while an expression is compiled, and the parts that steps reach.

A part that is repeated makes a *frame*: its occurrences are rows, as items are.
A part in an inner frame is a sequence for an expression that is evaluated in an outer one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, Self, TypeAlias, TypeVar

from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import Constant, ConstantValue, Expression
from anabranch.columnar.scan.look import Look
from anabranch.language import ast
from anabranch.language.lookups import Steps
from anabranch.language.objects import CALL, POSTFIX

MOST_NODES = 2_000
MOST_LOOKUPS = 4
"""The number of lookups in one document that a query may have: for each, the law scans all rows (LAWS 2.6)."""
_MOST_PREDICATES = 10
"""Along one path: each condition refers twice to those before it, so to compare them takes twice as long with each."""
CHECKED = frozenset(("zero-or-one", "exactly-one", "one-or-more"))
"""Functions that give what they are given, if it is as many values as they say."""
_SETS = ("op:union", "op:intersect", "op:except")
_ANY = ConstantValue(True)
"""Stands for a value that is not looked at."""


_Scope = TypeVar("_Scope", bound="PathScope")
_Options = ParamSpec("_Options")
_Compiled = TypeVar("_Compiled")


def blaming(
    compile_one: Callable[Concatenate[_Scope, ast.Expression, _Options], _Compiled],
) -> Callable[Concatenate[_Scope, ast.Expression, _Options], _Compiled]:
    """Decorate a compiling method: it takes names for what they stand for, and a `NotColumnar` has its expression."""

    @wraps(compile_one)
    def compiled(
        scope: _Scope, expression: ast.Expression, /, *args: _Options.args, **options: _Options.kwargs
    ) -> _Compiled:
        try:
            return compile_one(*scope.meant(expression), *args, **options)
        except NotColumnar as reason:
            raise reason.blame(expression) from None

    return compiled


class LookupTables(Protocol):
    """The tables in documents that queries may look rows up in (`tables/joined_look.py`)."""

    look: Look
    """The look of items, with the rows that are looked up for them so far."""

    def rows(
        self,
        document: str,
        steps: Steps,
        key: Steps | None,
        sought: Expression | None,
        measured: tuple[Expression, ...],
        bound: tuple[int, int],
    ) -> Spot | None:
        """The spot of the rows of a lookup."""

    def has_one_parent(self, spot: Spot) -> bool:
        """Whether positions of the rows of a lookup are counted among all of them."""


class NodeBudget:
    """Counts the nodes that are made for one query; has its marks, which stand for constants (`runtime/shapes.py`)."""

    def __init__(self, marks: Container[Constant] = (), tables: LookupTables | None = None) -> None:
        self.marks = marks
        self.tables = tables
        self._left = MOST_NODES
        self._lookups: dict[str, set[int]] = {}

    def spend(self, nodes: int = 1) -> None:
        """Count `nodes` more nodes; `NotColumnar` where there are too many."""
        self._left -= nodes
        if self._left < 0:
            raise NotColumnar(f"a query of more than {MOST_NODES:,} parts")

    def look_up(self, document: str, path: ast.Path) -> None:
        """Count a lookup in a document; `NotColumnar` where a query has too many."""
        found = self._lookups.setdefault(document, set())
        found.add(id(path))
        if len(found) > MOST_LOOKUPS or sum(map(len, self._lookups.values())) > 2 * MOST_LOOKUPS:
            raise NotColumnar(f"more than {MOST_LOOKUPS} lookups in one document, or twice as many in several")


@dataclass(frozen=True, slots=True)
class ChosenNodes:
    """Nodes that an `if` chooses: their value is known, but not their spot."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Meant:
    """What a name stands for that has several values, or elements: the expression itself, and the names in it.

    It is compiled wherever the name is used, as if it stood there.
    """

    expression: ast.Expression
    names: Mapping[str | None, Binding]


Binding: TypeAlias = Spot | tuple[Spot, ...] | ChosenNodes | Meant | Expression


@dataclass(frozen=True, slots=True)
class PathScope:
    """The bindings of names; None is the name of the context item."""

    names: Mapping[str | None, Binding]
    work: NodeBudget = field(default_factory=NodeBudget)
    frame: int = -1
    """The frame of the current rows, -1 for items."""
    side: int = 0
    """In a join: the number of the tuple's item that those rows lie in."""

    def bind(self, name: str | None, value: Binding) -> Self:
        """The scope with one more name."""
        return replace(self, names={**self.names, name: value})

    def bind_row(self, name: str | None, spot: Spot, frame: int) -> Self:
        """The scope inside an inner frame, with one more name, for the node of its row."""
        names = {**self.names, name: replace(spot, bound=frame)}
        return replace(self, names=names, frame=frame, side=spot.side)

    def meant(self, expression: ast.Expression) -> tuple[Self, ast.Expression]:
        """An expression, or what it is a name for, and the scope in which that is compiled."""
        scope = self
        while isinstance(expression, ast.Variable):
            found = scope.names.get(expression.name)
            if not isinstance(found, Meant):
                break
            scope, expression = replace(scope, names=found.names), found.expression
            scope.work.spend()
        return scope, expression

    # --- paths --------------------------------------------------------------------------------------------

    def spots(self, expression: ast.Expression) -> list[Spot]:
        """The spots of a path without predicates."""
        found = self.filtered_spots(expression)
        if any(each.condition is not None for each in found):
            raise NotColumnar("a predicate inside an item", "`some $x in ... satisfies`, or a loop with `where`")
        return found

    @blaming
    def filtered_spots(self, expression: ast.Expression) -> list[Spot]:
        """The spots of a path, with the conditions of its predicates."""
        match expression:
            case ast.Variable(name) if name in self.names:
                return self._bound(name)
            case ast.ContextItem() if None in self.names:
                return self._bound(None)
            case ast.Filter(base, tail):
                found = self.filtered_spots(base)
                return [self._judged(each, tail, self.frame if len(found) == 1 else None) for each in found]
            case ast.Call(name) if name in POSTFIX or (name == CALL and self.is_path(expression)):
                return self.looked_up(expression)
            case ast.Call(name, (left, right)) if name in _SETS:
                return self._together(name, self.filtered_spots(left), self.filtered_spots(right))
            case ast.Path(ast.Source("doc")):
                return self.table_spots(expression)
            case ast.Path(start, steps):
                return self._stepped(self.filtered_spots(ast.ContextItem() if start is None else start), steps)
            case _:
                raise NotColumnar("a path that starts from something computed")

    def _together(self, name: str, left: Sequence[Spot], right: Sequence[Spot]) -> list[Spot]:
        """The spots of a set of nodes, each part of which is there as a whole or not at all."""
        if any(each.condition is not None or each.asked or each.is_typed for each in (*left, *right)):
            raise NotColumnar(f"'{name.removeprefix('op:')}' of nodes that predicates choose")
        if len({(id(each.look), each.bound, each.side) for each in (*left, *right)}) > 1:
            raise NotColumnar(f"'{name.removeprefix('op:')}' of nodes of different rows")
        if name == "op:union":
            return list(dict.fromkeys((*left, *right)))
        return [each for each in left if (each in right) == (name == "op:intersect")]

    def looked_up(self, lookup: ast.Call) -> list[Spot]:
        """What a lookup in objects or arrays leads to."""
        raise NotColumnar("a lookup")

    def _stepped(self, found: list[Spot], steps: Sequence[ast.Step]) -> list[Spot]:
        """What steps lead to from some spots."""
        if any(each.is_typed for each in found):
            raise NotColumnar("a path from what a lookup has found")
        for step in steps:
            reached = dict.fromkeys(each for spot in found for each in spot.steps(step))
            if len({each.part for each in reached}) < len(reached):
                raise NotColumnar("a path that leads to the same parts by different predicates")
            alone = len(reached) == 1 and not step.deep and step.axis in ("child", "attribute")
            found = [self._judged(each, step.tail, each.parent_frame if alone else None) for each in reached]
            self.work.spend(1 + len(found))
        return found

    def is_looked_up(self, spot: Spot) -> bool:
        """Whether a spot lies in rows that are looked up, with no other repeated part between."""
        return self.work.tables is not None and spot.look.frames[spot.part] >= len(spot.look.of_items.parts)

    def table_spots(self, path: ast.Path) -> list[Spot]:
        """The spots of a path from a document."""
        raise NotColumnar("a document beside the stream")

    def _judged(self, spot: Spot, tail: Sequence[ast.Tail], counted: int | None) -> Spot:
        """A spot with the conditions of predicates, which are tested only where the part is there.

        Positions are counted in each row of the frame `counted`; None where other parts are counted along.
        """
        for each in tail:
            if len(spot.asked) == _MOST_PREDICATES:
                raise NotColumnar(f"more than {_MOST_PREDICATES} predicates along one path")
            match each:
                case ast.Predicate(asked):
                    condition = self.predicate(spot, asked)
                case ast.Positional() if spot.is_typed and spot.is_single and not spot.is_array:
                    raise NotColumnar("a position of a value that may be null", "non-null(...)")
                case ast.Positional(asked) if counted is not None:
                    condition = self.position(spot, asked, counted)
                case ast.Positional():
                    raise NotColumnar("a position among parts of several names, or at any depth")
                case _:
                    raise NotColumnar("a step into the past")
            frame = spot.bound if spot.is_single else spot.look.frames[spot.part]
            is_chosen = spot.is_chosen or (counted == spot.bound and _is_one_place(each))
            spot = replace(spot, condition=condition, asked=(*spot.asked, (frame, condition)), is_chosen=is_chosen)
        return spot

    def predicate(self, spot: Spot, condition: ast.Expression) -> Expression:
        """The condition of a predicate on a spot, behind earlier conditions."""
        raise NotColumnar("a predicate inside an item")

    def position(self, spot: Spot, condition: ast.Expression, counted: int) -> Expression:
        """The condition of a predicate that may be a position, which is counted in each row of the frame `counted`."""
        raise NotColumnar("a position inside an item")

    def with_text_nodes(self, start: ast.Expression | None, steps: Sequence[ast.Step]) -> list[Spot]:
        """The elements that a path leads to; attributes have no text nodes."""
        found = [each for each in self.filtered_spots(ast.Path(start, tuple(steps))) if not each.is_attribute]
        if any(each.part >= 0 and not each.look.parts[each.part].has_text for each in found):
            raise NotColumnar("text beside elements, by itself", "the whole text of the element")
        return found

    def _bound(self, name: str | None) -> list[Spot]:
        self.work.spend()
        match self.names[name]:
            case Spot() as spot:
                return [spot]
            case tuple() as spots:
                return list(spots)
            case _:
                raise NotColumnar("a path that starts from something computed")

    def is_path(self, expression: ast.Expression) -> bool:
        """Whether nodes are meant, or what lookups lead to, and not a value that is computed."""
        match expression:
            case ast.Variable(name):
                return name in self.names and isinstance(self.names[name], Spot | tuple)
            case ast.Path() | ast.ContextItem():
                return True
            case ast.Filter(base):
                return self.is_path(base)
            case ast.Call(name, (left, right)) if name in _SETS:
                return self.is_path(left) and self.is_path(right)
            case ast.Call(name, (base, ast.Number() | ast.String())) if name == CALL:
                return self.is_path(base)
            case ast.Call(name):
                return name in POSTFIX
            case _:
                return False

    def is_typed(self, expression: ast.Expression) -> bool:
        """Whether a path is a lookup, so that values are meant, and no nodes."""
        match expression:
            case ast.Variable(name) | ast.Filter(ast.Variable(name)):
                found = self.names.get(name)
                spots = found if isinstance(found, tuple) else (found,)
                return any(isinstance(each, Spot) and each.is_typed for each in spots)
            case ast.Filter(base):
                return self.is_typed(base)
            case ast.Call(name):
                return name in POSTFIX or (name == CALL and self.is_path(expression))
            case _:
                return False

    def may_be_null(self, expression: ast.Expression) -> bool:
        """Whether a value may be JSON's `null`, which columns do not tell from no value where they compute."""
        match expression:
            case ast.Variable(name) if isinstance(found := self.names.get(name), Meant):
                return replace(self, names=found.names).may_be_null(found.expression)
            case ast.Sequence(items) | ast.Filter(ast.Sequence(items)):
                return any(map(self.may_be_null, items))
            case ast.If(_, then, otherwise):
                return self.may_be_null(then) or self.may_be_null(otherwise)
            case ast.Flwor(clauses, _, _, result):
                bound = (each.source if isinstance(each, ast.For) else each.value for each in clauses)
                return self.may_be_null(result) or any(map(self.may_be_null, bound))
            case ast.Call(name, (operand,)) if name.removeprefix("fn:") in ("data", *CHECKED):
                return self.may_be_null(operand)
            case _:
                return self.is_path(expression) and self.is_typed(expression)

    def gives_nodes(self, expression: ast.Expression, *, some: bool = False) -> bool:
        """Whether an expression gives nodes and no values, or else whether it may give some nodes."""
        both = any if some else all
        match expression:
            case ast.ElementConstructor():
                return True
            case ast.Variable(name) if isinstance(found := self.names.get(name), Meant):
                return replace(self, names=found.names).gives_nodes(found.expression, some=some)
            case ast.Filter(ast.Sequence() as base, _) | ast.Call(_, (base,)) if _gives_what_it_is_given(expression):
                return self.gives_nodes(base, some=some)
            case ast.Variable(name) if isinstance(self.names.get(name), ChosenNodes):
                return True
            case ast.Sequence(items):
                return both(self.gives_nodes(each, some=some) for each in items)
            case ast.Flwor(clauses, _, _, result):
                scope = self
                for clause in clauses:
                    bound = clause.source if isinstance(clause, ast.For) else clause.value
                    chosen = ChosenNodes(_ANY) if scope.gives_nodes(bound, some=True) else _ANY
                    leads = scope.is_path(bound) and not scope.is_typed(bound)
                    scope = scope.bind(clause.variable, () if leads else chosen)
                return scope.gives_nodes(result, some=some)
            case ast.If(_, then, otherwise):
                return both(self.gives_nodes(each, some=some) for each in (then, otherwise))
            case _:
                return self.is_path(expression) and not self.is_typed(expression)

    def frame_of(self, spot: Spot) -> int:
        """The frame of a spot that is reached from the current rows."""
        if spot.bound != self.frame:
            raise NotColumnar("a path through repeated parts inside of repeated parts")
        return spot.look.frames[spot.part]

    def inner_frame(self, spot: Spot) -> int:
        """The frame of a spot, which is directly inside the one that it is reached from."""
        frame = spot.look.frames[spot.part]
        parent = spot.look.parts[frame].parent
        around = spot.look.frames[parent] if parent >= 0 else -1
        if around != spot.bound or spot.bound != self.frame:
            raise NotColumnar("a path through repeated parts inside of repeated parts")
        return frame


def behind_first(loop: ast.Flwor) -> ast.Expression:
    """What a loop gives in each round of its first clause."""
    _, *others = loop.clauses
    if others:
        return replace(loop, clauses=tuple(others))
    return loop.result if loop.where is None else ast.If(loop.where, loop.result, ast.Sequence(()))


def _is_one_place(predicate: ast.Tail) -> bool:
    """Whether a predicate holds for one place at most, whatever is there."""
    match predicate:
        case ast.Positional(ast.Number() | ast.Call("last" | "fn:last", ())):
            return True
        case _:
            return False


def _gives_what_it_is_given(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.Filter) or (isinstance(expression, ast.Call) and expression.name in CHECKED)


_WORDS: Mapping[type, str] = {
    ast.Pipeline: "a loop with `group by`, or with an `order by` in front of other clauses",
    ast.InlineFunction: "a function that is a value",
    ast.Flwor: "the values of a loop",
    ast.ElementConstructor: "an element made by the query that is computed with",
    ast.Sequence: "several values, or none, that are computed with",
    ast.Filter: "a predicate on something computed",
    ast.Source: "a second stream or a document",
    ast.Root: "a path from the root",
    ast.Cast: "a cast",
}


def words_for(expression: ast.Expression) -> str:
    """The name, for users, of an expression that does not compile to columns."""
    if isinstance(expression, ast.Flwor) and expression.order:
        return "a loop with `order by`"
    return _WORDS.get(type(expression), "something else than a value of one item")
