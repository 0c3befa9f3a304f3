"""Which displays over items of the past change item by item: loops over paths that ask for the last seconds (LAWS 5.5).

    for $r in stream("radar1")//event?[1], $s in stream("radar2")//event?[1]
    where $r/frequency = $s/frequency
    return <position>{ $r/angle, $s/angle }</position>

Each tuple of items stands or falls by itself (LAWS 2.4), and nothing but the time decides which items take part.
So a tuple is evaluated once, when the last of its items comes, and is gone with the first of them that is too old.
That is so where nothing else in the loop depends on the moment: no other path asks for the past, and nothing reads a
stream or a document.

`sides_of` takes such a loop apart, or such a path alone; the conditions by which two of its streams meet are those of
`branch/display/joins/`, and `RecalledSplitter` finds the loops in a query.
What is of another shape is evaluated anew with each element (`recalling.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from anabranch.branch.display.joins.keys import JoinKey, binds_nodes, key_between
from anabranch.branch.display.joins.ranges import JoinRange, ranges_between
from anabranch.branch.display.parts import EachPart, ElementPart, FixedPart, Part, SequencePart
from anabranch.branch.display.split import Splitter
from anabranch.language import ast
from anabranch.language.rewrite import bindings_in, conjuncts, parts
from anabranch.law.arrivals.qualified import qualified
from anabranch.law.paths import base_of
from anabranch.runtime.past.recollection import PastPath


@dataclass(frozen=True, slots=True)
class PastSide:
    """One stream of a loop: its path, as a whole and up to the qualifier, and how many seconds the loop looks back."""

    stream: str
    source: ast.Expression
    path: ast.Expression
    seconds: Fraction


@dataclass(frozen=True, slots=True)
class SideMeeting:
    """Two sides of a loop, by their places, and what items of both have in common where its condition can hold.

    Two sides may have several.
    """

    one: int
    other: int
    key: JoinKey | JoinRange


@dataclass(frozen=True, slots=True)
class SideCondition:
    """A condition of a loop on some of its sides, by their places: without it, their items give nothing with any other.

    `test` is a loop over these sides alone, which gives something where the condition holds.
    """

    sides: frozenset[int]
    test: ast.Flwor


@dataclass(frozen=True, slots=True)
class PastLoop:
    """A loop over items of the past, or one path."""

    expression: ast.Expression
    sides: tuple[PastSide, ...]
    meetings: tuple[SideMeeting, ...] = ()
    conditions: tuple[SideCondition, ...] = ()


def sides_of(expression: ast.Expression, asked: Collection[PastPath]) -> tuple[PastSide, ...] | None:
    """The streams of an expression whose value changes item by item; None for any other expression."""
    sources: list[ast.Expression] = [expression]
    rest: tuple[Any, ...] = ()
    match expression:
        case ast.Flwor(clauses):
            fors = list(_first_fors(clauses))
            sources = [each.source for each in fors]
            rest = clauses[len(fors) :], expression.where, expression.order, expression.result
            names = bindings_in(expression)
            if any(names[each.variable] != 1 for each in fors):
                return None
    if not sources or any(isinstance(each, ast.Qualifier | ast.Source) for each in parts(rest)):
        return None
    known = {each.path for each in asked if each.alone}
    found: list[PastSide] = []
    for place, source in enumerate(sources):
        side = _side(source, is_last=place == len(sources) - 1)
        if side is None or side.path not in known:
            return None
        found.append(side)
    is_apart = len({each.stream for each in found}) == len(found)
    return tuple(found) if is_apart else None  # an item that meets itself stands and falls with all that it meets


def _first_fors(clauses: Sequence[ast.For | ast.Let]) -> Iterator[ast.For]:
    """The clauses in front that run over streams."""
    for each in clauses:
        if not isinstance(each, ast.For) or each.window or not isinstance(base_of(each.source), ast.Source):
            return
        yield each


def _with_two(flwor: ast.Flwor, sides: Sequence[PastSide], one: int, other: int) -> ast.Flwor:
    """A loop with two of its sides in front.

    The paths of the others have no part in what a tuple gives: an item in which one fails is set aside by itself.
    """
    fors, rest = flwor.clauses[: len(sides)], flwor.clauses[len(sides) :]
    others = [
        ast.For(clause.variable, ast.Source("stream", side.stream))
        for place, (clause, side) in enumerate(zip(fors, sides, strict=True))
        if place not in (one, other)
    ]
    return replace(flwor, clauses=(fors[one], fors[other], *others, *rest))


def _conditions(flwor: ast.Flwor, sides: int) -> Iterator[SideCondition]:
    """The conditions on some of the sides of a loop, but not all, that can be asked before the others are looked at."""
    fors, rest = flwor.clauses[:sides], flwor.clauses[sides:]
    names = [each.variable for each in fors]
    if not binds_nodes(names, rest):
        return  # what fails there would be missed
    for condition in conjuncts(flwor.where):
        used = {part.name for part in parts(condition) if isinstance(part, ast.Variable)} - bindings_in(
            condition
        ).keys()
        own = frozenset(place for place, name in enumerate(names) if name in used)
        if own and len(own) < sides and used <= set(names):
            tested = tuple(each for place, each in enumerate(fors) if place in own)
            yield SideCondition(own, ast.Flwor(tested, condition, (), ast.String("")))


def _side(source: ast.Expression, *, is_last: bool) -> PastSide | None:
    """A path over a stream that asks for the last seconds; plain steps may follow in the last `for` only."""
    found, base = qualified(source), base_of(source)
    if found is None or not isinstance(base, ast.Source) or base.kind != "stream":
        return None
    if found.qualifier.kind != "time" or not found.qualifier.window or qualified(found.base) is not None:
        return None
    if found.behind and not (is_last and all(isinstance(each, ast.Step) and not each.tail for each in found.behind)):
        return None
    return PastSide(base.name, source, found.base, found.qualifier.amount.exact)


class RecalledSplitter(Splitter):
    """Splits a query about the past of items; `asked` are the paths whose past it asks for."""

    def __init__(
        self,
        query: ast.Query,
        roots: Mapping[str, str],
        asked: Collection[PastPath],
        functions: Collection[str] = (),
    ) -> None:
        super().__init__(query, roots, functions)
        self._asked = asked

    def whole(self) -> Part | None:
        """How the query splits, where all of it that depends on items changes item by item; None for any other."""
        query = self._query
        if any(isinstance(each, ast.Qualifier | ast.Source) for each in parts(query.functions)):
            return None
        if any(isinstance(each, ast.Source) and each.kind == "doc" for each in parts(query)):
            return None
        found = self.part(query.body)
        return found if self._changes_by_items(found) else None

    def loop(self, part: EachPart) -> PastLoop:
        """A part that changes item by item, with the ways in which its sides meet."""
        expression = part.expression
        sides = sides_of(expression, self._asked)
        assert sides is not None, "it was split so"
        meetings: list[SideMeeting] = []
        for one, other in combinations(range(len(sides)), 2):
            assert isinstance(expression, ast.Flwor)
            given = _with_two(expression, sides, one, other), sides[one].stream, sides[other].stream
            key, ranges = key_between(*given), ranges_between(*given, self._functions, self._user_functions)
            meetings += [SideMeeting(one, other, each) for each in (key, *ranges) if each is not None]
        conditions = _conditions(expression, len(sides)) if isinstance(expression, ast.Flwor) else ()
        return PastLoop(expression, sides, tuple(meetings), tuple(conditions))

    def _entries(self, expression: ast.Expression, is_shown: bool = True) -> EachPart | None:
        sides = sides_of(expression, self._asked)
        if sides is None or self._gives_attributes(expression):
            return None
        first, *others = (each.stream for each in sides)
        if any(self._looks_beyond(expression, each) for each in (first, *others)):
            return None
        return EachPart(first, expression, tuple(others))

    def _edited_windows(self, flwor: ast.Flwor) -> None:
        """Windows beside questions about the past are evaluated as a whole."""

    def _changes_by_items(self, part: Part) -> bool:
        match part:
            case EachPart():
                return True
            case FixedPart(expression):
                return not self._calls_user(expression)
            case SequencePart(inner):
                return all(map(self._changes_by_items, inner))
            case ElementPart(constructor, content):
                inside = [each for each in content if not isinstance(each, ast.Characters | ast.CommentConstructor)]
                return not self._calls_user(constructor.attributes) and all(map(self._changes_by_items, inside))
            case _:
                return False

    def _calls_user(self, node: object) -> bool:
        """Whether a function that the user registered may be called: what it gives may be another thing tomorrow."""
        inside = (*parts(node), *parts(self._query.functions))
        return any(isinstance(each, ast.Call) and each.name in self._user_functions for each in inside)
