"""A window over columns: which items it takes, where the value stands that places them, and what is aggregated.

Compiled are windows over items of the usual look, reached by plain child steps, with conditions as in
`columnar/items/query.py`; the reference of a time window and the aggregated paths lead to leaves, each perhaps behind
a condition of its own (`avg($w/en[. > 1])`, `count($w[en > 1])`).
Windows of any other kind are looked at item by item.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.window import Panes
from anabranch.columnar.items.query import Other, Scope, Spot, source_spots
from anabranch.columnar.match.condition import ALWAYS, Condition, NumberTest, tests
from anabranch.columnar.scan.template import Template
from anabranch.language import ast


@dataclass(frozen=True)
class PaneQuery:
    """A windowed `for` whose window is seen through aggregates only (`language.aggregates`)."""

    clause: ast.For
    paths: tuple[ast.Expression, ...]
    """What is aggregated."""
    asked: tuple[frozenset[FunctionName], ...]
    """By path: the functions that are taken over it."""
    panes: Panes
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    plain: bool = True
    """Whether its names mean what they say: no namespace is declared around it."""
    axis: Hashable = None
    """Queries of equal axis, but for None, find the same reference values in every item."""

    @property
    def is_timed(self) -> bool:
        return isinstance(self.clause.window, ast.TimeWindow)

    @property
    def numeric(self) -> list[bool]:
        """Which paths are asked for more than the number of nodes they lead to."""
        return [any(AGGREGATES[each].takes_numbers for each in asked) for asked in self.asked]

    @property
    def ranked(self) -> list[int]:
        """Which paths are asked for their least value (1), their greatest (2), or both (3)."""
        needs = ["".join(AGGREGATES[each].needs for each in asked) for asked in self.asked]
        return [("l" in each) + 2 * ("g" in each) for each in needs]

    def ratio(self, places: int) -> tuple[int, int]:
        """Whole numbers by which a value with so many decimal places is multiplied and divided to find its pane."""
        width = self.panes.width
        unit = 10**places
        common = math.gcd(unit, width.denominator)
        return width.denominator // common, width.numerator * (unit // common)


@dataclass(frozen=True, slots=True)
class Given:
    """A place that an aggregated path leads to in each item, and the condition under which it counts."""

    leaf: int | None
    """None where nothing but the number of nodes is asked for."""
    condition: Condition


@dataclass(frozen=True, slots=True)
class CompiledPanes:
    """What a window takes from items that fit the template it was compiled for."""

    is_reached: bool
    """Whether the path leads to such items at all."""
    condition: Condition
    reference: int | None
    """The leaf that places an item in a time window."""
    paths: tuple[tuple[Given, ...], ...]

    @property
    def _given(self) -> list[Given]:
        return [each for path in self.paths for each in path]

    @property
    def numbers(self) -> set[int]:
        """The leaves whose numbers it looks at."""
        conditions = (self.condition, *(each.condition for each in self._given))
        tested = {test.leaf for each in conditions for test in tests(each) if isinstance(test, NumberTest)}
        read = (self.reference, *(each.leaf for each in self._given))
        return tested | {leaf for leaf in read if leaf is not None}

    @property
    def leaves(self) -> set[int]:
        """All leaves it looks at."""
        conditions = (self.condition, *(each.condition for each in self._given))
        return self.numbers | {test.leaf for each in conditions for test in tests(each)}


def compile_panes(query: PaneQuery, root: str, template: Template) -> CompiledPanes | None:
    """Compile a window for a template; None where it is not made for columns.

    `root` is the name of the stream's root, which stands in no namespace.
    """
    if not query.plain:
        return None
    try:
        conditions, found = source_spots(query.clause.source, root, template)
        if not found:
            return CompiledPanes(False, tuple(conditions) or ALWAYS, None, ())
        if found != [Spot(template, 0)]:
            raise Other  # the window holds parts of items
        names: Mapping[str | None, Spot] = {query.clause.variable: found[0], None: found[0]}
        window = query.clause.window
        reference = _reference(window, root, Scope({None: found[0]})) if isinstance(window, ast.TimeWindow) else None
        paths = tuple(_given(path, names, each) for path, each in zip(query.paths, query.numeric, strict=True))
        return CompiledPanes(True, tuple(conditions) or ALWAYS, reference, paths)
    except Other:
        return None


def _reference(window: ast.TimeWindow, root: str, scope: Scope) -> int:
    """The leaf at the window's reference, which must be the only one there."""
    path = window.reference
    steps = path.steps
    if isinstance(path.start, ast.Root):
        item = scope.names[None]
        above = [ast.NameTest(root), ast.NameTest(item.template.parts[item.number].name)]
        if [step.test for step in steps[:2]] != above or len(steps) == 2:
            raise Other
        path = ast.Path(None, steps[2:])
    elif path.start is not None and not isinstance(path.start, ast.ContextItem):
        raise Other
    found = scope.spots(path)
    if len(found) != 1:
        raise Other  # every item that is selected fails
    return found[0].leaf


def _given(path: ast.Expression, names: Mapping[str | None, Spot], numeric: bool) -> tuple[Given, ...]:
    """Where a path leads, with the one predicate that it may have."""
    start, steps = (path.start, path.steps) if isinstance(path, ast.Path) else (path, ())
    item = names[None]
    condition = ALWAYS
    if isinstance(start, ast.Filter):
        condition = _condition(item, start.tail)
        start = start.base
    found = Scope(names).spots(start) if start is not None else [item]
    given = [(each, condition) for each in found]
    for step in steps:
        given = [(child, so_far) for spot, so_far in given for child in spot.children(step)]
        if step.tail:
            given = [(spot, _condition(spot, step.tail)) for spot, _ in given]
    return tuple(Given(spot.leaf if numeric else None, each) for spot, each in given)


def _condition(spot: Spot, tail: Sequence[ast.Predicate | ast.Qualifier]) -> Condition:
    """What a predicate asks of a place; that there is only one keeps errors in their order."""
    (predicate,) = tail
    assert isinstance(predicate, ast.Predicate)
    return (Scope({None: spot}).condition(predicate.condition),)


@dataclass(frozen=True)
class CompiledMany:
    """What several windows take from items that fit a template; None for those that are not made for columns."""

    members: tuple[CompiledPanes | None, ...]

    @property
    def leaves(self) -> set[int]:
        """All leaves that one of them looks at."""
        return set().union(*(each.leaves for each in self.members if each))

    @property
    def numbers(self) -> set[int]:
        """The leaves whose numbers one of them looks at."""
        return set().union(*(each.numbers for each in self.members if each))

    @cached_property
    def matched(self) -> tuple[int, ...]:
        """The members that take items by a condition, in the order of `conditions`."""
        return tuple(number for number, each in enumerate(self.members) if each and each.is_reached)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What is to be matched for them."""
        return tuple(each.condition for number in self.matched if (each := self.members[number]))


def compile_many(queries: Sequence[PaneQuery], root: str, template: Template) -> CompiledMany:
    """Compile several windows for a template."""
    return CompiledMany(tuple(compile_panes(each, root, template) for each in queries))
