"""A window compiled for columns: the condition of its items, the column of its reference, and the aggregated columns.

Windows over items that are reached by plain child steps compile, with conditions as in `columnar/items/query.py`; the
reference of a time window and the aggregated paths lead to leaves, each perhaps with a condition of its own
(`avg($w/en[. > 1])`, `count($w[en > 1])`).
The keys of windows that are grouped lead to leaves, or are texts that are computed for each item.
Other windows are counted item by item, by the law.

Windows over the same items with the same reference and the same aggregated paths can all be put together from panes as
wide as the greatest common divisor of theirs (the sharing paper's section 4.3, *relaxed* windows).
Only the count of a range is shared: a branch keeps panes of its own width, into which it merges the relaxed ones.
So windows do not change when other subscriptions come or go.
Relaxed panes may be many: the common divisor of 20 and 21 is 1.
Windows are counted together where that makes no more panes than they have apart, and none has to merge too many.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.window import Panes
from anabranch.columnar.expressions.compiling import LookScope
from anabranch.columnar.expressions.objects.lookups import as_text, there
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    Choice,
    Column,
    ConstantValue,
    Expression,
    FunctionCall,
    JsonText,
    Junction,
    Kind,
    PartText,
    Presence,
    read_columns,
    read_numbers,
)
from anabranch.columnar.items.query import below_spot, reference_column, single_spot
from anabranch.columnar.match.condition import ALWAYS, Condition, NumberTest, PresenceTest, columns_of, numbers_of
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.language.signatures import SIGNATURES
from anabranch.language.windows.aggregates import NON_NULL
from anabranch.stream.path import PLAIN, TimeScale


@dataclass(frozen=True)
class PaneQuery:
    """A windowed `for` whose window is seen through aggregates only (`language.aggregates`)."""

    clause: ast.For
    paths: tuple[ast.Expression, ...]
    """The aggregated expressions."""
    asked: tuple[frozenset[FunctionName], ...]
    """By path: the functions that are applied to it.

    Where it matters which windows hold times (LAWS 3.1), these are counted as the values of one more path.
    Sessions count them, and have behind that a path for the offsets of their items in a pane (`sessions.py`).
    """
    panes: Panes
    scale: TimeScale = PLAIN
    """Origin, slack and time unit of the reference of a time window."""
    early: Fraction = Fraction(0)
    """Times below this are in windows that begin before those of plain numbers do (LAWS 3.1)."""
    plain: bool = True
    """Whether no namespace is declared around it, so that names need not be expanded."""
    axis: Hashable = None
    """Queries of equal axis, but for None, find the same reference values in every item."""
    keys: tuple[ast.Expression, ...] = ()
    """The expressions by which items are grouped in each window, if they are."""
    where: ast.Expression | None = None
    """The condition on items of a time window before they are grouped."""

    @cached_property
    def is_timed(self) -> bool:
        return isinstance(self.clause.window, ast.TimeWindow | ast.SessionWindow)

    @cached_property
    def is_session(self) -> bool:
        return isinstance(self.clause.window, ast.SessionWindow)

    @property
    def counts_times(self) -> bool:
        return len(self.asked) > len(self.paths)

    @cached_property
    def numeric(self) -> list[bool]:
        """Which paths are needed for more than the number of their values."""
        return [any(AGGREGATES[each].takes_numbers for each in asked) for asked in self.asked]

    @cached_property
    def ranked(self) -> list[int]:
        """Of which paths the least value (1), the greatest (2), or both (3) are needed."""
        needs = ["".join(AGGREGATES[each].needs for each in asked) for asked in self.asked]
        return [("l" in each) + 2 * ("g" in each) for each in needs]

    def ratio(self, places: int) -> tuple[int, int]:
        """Whole numbers by which a value with `places` decimal places is multiplied and divided to find its pane."""
        if places not in self._ratios:
            width, unit = self.panes.width, 10**places
            common = math.gcd(unit, width.denominator)
            self._ratios[places] = width.denominator // common, width.numerator * (unit // common)
        return self._ratios[places]

    @cached_property
    def _ratios(self) -> dict[int, tuple[int, int]]:
        """A cache, by decimal places."""
        return {}


@dataclass(frozen=True, slots=True)
class Given:
    """A place that an aggregated path leads to in each item, and the condition under which it counts."""

    column: Column | None
    """The column that is read or computed; None where only the number of values is needed."""
    condition: Condition
    """The condition on the value, which includes its presence where items may lack it."""


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The rows of a repeated part that an aggregated path leads to in each item."""

    frame: int
    """The repeated part."""
    column: Expression
    """The value that is read or computed there; a row that has none does not count."""
    rows: Expression
    """Which of the rows count."""
    condition: Condition
    """The condition on the item around them."""
    is_counted: bool = False
    """Whether only the number of the values is needed."""


Aggregand: TypeAlias = Given | GivenRows
"""The values of a path in an item: those of one place, or of the rows of a repeated part."""


@dataclass(frozen=True, slots=True)
class CompiledPanes:
    """A window, compiled for the look of its items."""

    is_reached: bool
    """Whether the path leads to such items at all."""
    condition: Condition
    reference: PartColumn | None
    """The column that places an item in a time window."""
    paths: tuple[tuple[Aggregand, ...], ...]
    keys: tuple[Expression | None, ...] = ()
    """The parts of the key that items are grouped by; None for one that no item of the look has."""

    @property
    def _given(self) -> list[Aggregand]:
        return [each for path in self.paths for each in path]

    @property
    def repeated(self) -> list[Expression]:
        """The expressions that it evaluates for the rows of repeated parts."""
        found = [each for each in self._given if isinstance(each, GivenRows)]
        return [part for each in found for part in (each.column, each.rows)]

    @property
    def computed(self) -> list[Expression]:
        """The aggregated expressions that are computed for each item."""
        found = [each.column for each in self._given if isinstance(each, Given)]
        return [each for each in found if each is not None and not isinstance(each, int)]

    @property
    def looked_at(self) -> list[Expression]:
        """The texts that items are grouped by, and the strings that are aggregated."""
        strings = [each for each in self.computed if isinstance(each, PartText)]
        return [*(each for each in self.keys if each is not None), *strings]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions on items, and on the values that are aggregated."""
        return (self.condition, *(each.condition for each in self._given))

    @property
    def numbers(self) -> set[Column]:
        """The columns whose numbers it reads."""
        read = (self.reference, *(each.column for each in self._given if isinstance(each, Given)))
        found: set[Column] = {each for each in read if each is not None and not isinstance(each, PartText)}
        computed = [each for each in self.looked_at if not isinstance(each, PartText)]
        return found.union(*map(numbers_of, self.conditions), *map(read_numbers, (*self.repeated, *computed)))

    @property
    def columns(self) -> set[Column]:
        """All columns that it reads."""
        read = map(read_columns, (*self.repeated, *self.looked_at))
        return self.numbers.union(*map(columns_of, self.conditions), *read)


def compile_panes(query: PaneQuery, root: str, look: Look) -> CompiledPanes | None:
    """Compile a window for a look; None where it does not compile.

    `root` is the name of the stream's root, which is in no namespace.
    """
    if not query.plain:
        return None
    try:
        conditions, spot = single_spot(query.clause.source, root, look)
        if spot is None:
            return CompiledPanes(False, tuple(conditions) or ALWAYS, None, ())
        if look.own != (spot.part,):
            raise NotColumnar("a window over parts of items")
        window = query.clause.window
        reference = None if isinstance(window, ast.CountWindow) else _reference(window, root, spot)
        scope = LookScope({query.clause.variable: spot, None: spot})
        paths = tuple(_given(path, scope, each) for path, each in zip(query.paths, query.numeric, strict=False))
        keys = tuple(_key_part(each, scope) for each in query.keys)
        if isinstance(window, ast.SessionWindow) and window.by is not None:
            keys = (_key_part(below_spot(window.by, root, spot), scope),)
        if query.where is not None:
            conditions = [*conditions, scope.condition(query.where)]
        return CompiledPanes(True, tuple(conditions) or ALWAYS, reference, paths, keys)
    except NotColumnar:
        return None


def _reference(window: ast.Window | None, root: str, spot: Spot) -> PartColumn:
    """The column at the window's reference, which must be the only one there."""
    assert isinstance(window, ast.TimeWindow | ast.SessionWindow), "only these have a reference"
    start = window.reference.start
    if start is not None and not isinstance(start, ast.ContextItem | ast.Root):
        raise NotColumnar("a reference that is no path from an item")
    return reference_column(window, root, spot)


def _key_part(key: ast.Expression, scope: LookScope) -> Expression | None:
    """What a part of a key is in each item: a text, of which there is one at most."""
    match key:
        case ast.Call(name, (inner,)) if name.removeprefix("fn:") == NON_NULL:
            return _json_key(scope.filtered_spots(inner), leaves_null=True)
        case _ if scope.is_typed(key):
            return _json_key(scope.filtered_spots(key))
    if not scope.is_path(key):
        found = as_text(scope.value(key))
        if found.kind is Kind.BOOLEAN:
            return Choice(found, ConstantValue("true"), ConstantValue("false"))
        if found.kind not in (Kind.UNTYPED, Kind.STRING):
            raise NotColumnar("groups by what is no text")
        return found
    spots = scope.spots(key)
    if len(spots) > 1 or not all(each.is_single for each in spots):
        raise NotColumnar("groups by a part that may be there several times")
    return PartText(spots[0].text) if spots else None


def _json_key(spots: Sequence[Spot], *, leaves_null: bool = False) -> Expression | None:
    """What a lookup finds as JSON writes it, `null` too unless that is left out; none where there is nothing."""
    if not spots:
        return None
    (spot,) = spots
    text = JsonText(PartText(spot.text, spot.side, spot.kind))
    asked = Presence(spot.presence, spot.side) if leaves_null else there(spot)
    return FunctionCall("where", (asked, text), Kind.CONTENT)


def _given(path: ast.Expression, scope: LookScope, numeric: bool) -> tuple[Aggregand, ...]:
    """Where a path leads, with the one predicate that it may have, or what a loop or a lookup gives."""
    if isinstance(path, ast.Flwor):
        return _rounds(path, scope, numeric)
    if isinstance(path, ast.Call):
        return _looked_up(path, scope, numeric)
    start, steps = (path.start, path.steps) if isinstance(path, ast.Path) else (path, ())
    item = scope.names[None]
    assert isinstance(item, Spot)
    tail: _Tail = ()
    if isinstance(start, ast.Filter):
        tail, start = start.tail, start.base
    found = scope.spots(start) if start is not None else [item]
    given = [(each, each if tail else None) for each in found]
    for step in steps:
        given = [(child, judged) for spot, judged in given for child in spot.steps(step)]
        if step.tail:
            tail, given = step.tail, [(spot, spot) for spot, _ in given]
    return tuple(_aggregand(spot, judged, tail, scope, numeric) for spot, judged in given)


_Tail: TypeAlias = Sequence[ast.Tail]


def _looked_up(lookup: ast.Call, scope: LookScope, numeric: bool) -> tuple[Aggregand, ...]:
    """What keys lead to in each item, `null` left out or not."""
    match lookup:
        case ast.Call(_, (ast.Call("data", (inner,)) | inner,)):
            spots, leaves_null = scope.filtered_spots(inner), True
        case _:
            spots, leaves_null = scope.filtered_spots(lookup), False
    if not spots:
        return ()
    (spot,) = spots
    if spot.is_array or (numeric and spot.kind not in (Kind.NUMBER, Kind.STRING)):
        raise NotColumnar("an aggregate over what is neither a number nor a string")
    if leaves_null:
        column = PartText(spot.text, spot.side, spot.kind) if spot.kind is Kind.STRING else spot.text
        return (Given(column if numeric else None, (PresenceTest(spot.presence),)),)
    return (Given(None, (NumberTest(there(spot), "=", 1.0),)),)


def _aggregand(spot: Spot, judged: Spot | None, tail: _Tail, scope: LookScope, numeric: bool) -> Aggregand:
    """The values at a place; the predicate is evaluated for the spot `judged` on the way there.

    It may raise in items that have no value at the place itself.
    """
    around = () if judged is None or not judged.is_single else (*_there(judged), *_condition(judged, tail))
    if spot.is_single:
        return Given(spot.text if numeric else None, tuple(dict.fromkeys((*around, *_there(spot)))) or ALWAYS)
    frame = scope.inner_frame(spot)
    value: Expression = PartText(spot.text) if numeric else Presence(spot.presence)
    taken: Expression = Presence(spot.presence)
    if judged is not None and not judged.is_single:
        inside = LookScope({None: replace(judged, bound=frame)}, frame=frame)
        taken = Junction(True, (inside.truth(_predicate(tail)), taken))
    return GivenRows(frame, value, taken, around or ALWAYS, is_counted=not numeric)


def _rounds(loop: ast.Flwor, scope: LookScope, numeric: bool) -> tuple[Aggregand, ...]:
    """The values of the rounds of a loop, whose path leads to one part of items."""
    (clause,) = loop.clauses
    assert isinstance(clause, ast.For)
    found: list[Aggregand] = []
    for spot in scope.spots(clause.source):
        if spot.is_single:
            inside = scope.bind(clause.variable, spot)
            conditions = list(_there(spot))
            if loop.where is not None:
                conditions.append(inside.condition(loop.where))
            value = _summand(inside, loop.result)
            column = value.column if isinstance(value, PartText) else value
            given = (*conditions, PresenceTest(column))
            found.append(Given(column if numeric else None, given))
            continue
        frame = scope.inner_frame(spot)
        inside = scope.bind_row(clause.variable, spot, frame)
        there: Expression = Presence(spot.presence)
        if loop.where is not None:
            there = Junction(True, (there, inside.truth(loop.where)))
        value = _summand(inside, loop.result)
        found.append(GivenRows(frame, value, there, ALWAYS, is_counted=not numeric))
    return tuple(found)


def _summand(scope: LookScope, result: ast.Expression) -> Expression:
    """The value of a round: a text, or a computed number."""
    found = scope.value(result)
    if isinstance(found, PartText) or found.kind in (Kind.DOUBLE, Kind.INTEGER):
        return found
    raise NotColumnar("an aggregate over what is no number")


def is_computed(column: Column) -> bool:
    """Whether the numbers of a column are doubles that were computed, and not decimals that stand in items."""
    return not isinstance(column, int | PartText)


def is_string(given: Aggregand) -> bool:
    """Whether it is a string, of which there are ranks and no numbers."""
    return isinstance(given, Given) and isinstance(given.column, PartText)


def _there(spot: Spot) -> Condition:
    return () if spot.part in spot.look.own else (PresenceTest(spot.presence),)


def _condition(spot: Spot, tail: _Tail) -> Condition:
    """The condition of a predicate at a place; there is only one predicate, so errors keep their order."""
    return (LookScope({None: spot}).condition(_predicate(tail)),)


def _predicate(tail: _Tail) -> ast.Expression:
    (predicate,) = tail
    if not isinstance(predicate, ast.Predicate):
        raise NotColumnar("a step into the past")
    return predicate.condition


@dataclass(frozen=True)
class CompiledMany:
    """Several windows, compiled for a look; None for those that do not compile."""

    members: tuple[CompiledPanes | None, ...]

    @property
    def columns(self) -> set[Column]:
        """All columns that the windows read."""
        return set().union(*(each.columns for each in self.members if each))

    @property
    def numbers(self) -> set[Column]:
        """The columns whose numbers the windows read."""
        return set().union(*(each.numbers for each in self.members if each))

    @cached_property
    def matched(self) -> tuple[int, ...]:
        """The members with a condition, in the order of `conditions`."""
        return tuple(number for number, each in enumerate(self.members) if each and each.is_reached)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the windows, to be matched together."""
        return tuple(each.condition for number in self.matched if (each := self.members[number]))

    @property
    def missing(self) -> int:
        """How many of the windows do not compile."""
        return self.members.count(None)


def compile_many(queries: Sequence[PaneQuery], root: str, look: Look) -> CompiledMany:
    """Compile several windows for a look; equal aggregated paths become one object, which is compared by identity."""
    known: dict[tuple[Aggregand, ...], tuple[Aggregand, ...]] = {}
    found: list[CompiledPanes | None] = []
    for query in queries:
        each = compile_panes(query, root, look)
        if each is not None:
            each = replace(each, paths=tuple(known.setdefault(path, path) for path in each.paths))
        found.append(each)
    return CompiledMany(tuple(found))


_MOST = 8
"""The number of relaxed panes that a pane may be made of, at most."""


def shared(queries: Sequence[PaneQuery]) -> list[list[int]]:
    """The numbers of queries that are counted together, each once."""
    alike: dict[Hashable, list[int]] = {}
    for number, query in enumerate(queries):
        key = _key(query)
        alike.setdefault(number if key is None else key, []).append(number)
    found: list[list[int]] = []
    for numbers in alike.values():
        groups: list[list[int]] = []
        for number in sorted(numbers, key=lambda each: queries[each].panes.width):
            joined = next((each for each in groups if _is_worth_it([queries[n] for n in (*each, number)])), None)
            if joined is None:
                groups.append([number])
            else:
                joined.append(number)
        found += groups
    return found


def _is_worth_it(queries: Sequence[PaneQuery]) -> bool:
    """Whether relaxed panes are no more than those of all queries apart, and not too many for any of them."""
    widths = [each.panes.width for each in queries]
    common = reduce(_common, widths)
    if queries[0].is_session:  # a pane is within one session only where it is as wide as the gap
        return len(set(widths)) == 1
    return not queries[0].is_timed or (1 / common <= sum(1 / each for each in widths) and max(widths) <= _MOST * common)


def relaxed(queries: Sequence[PaneQuery]) -> PaneQuery:
    """The query that is counted for queries that are counted together."""
    first = queries[0]
    if len(queries) == 1:
        return first
    width = reduce(_common, (each.panes.width for each in queries))
    asked = tuple(frozenset().union(*each) for each in zip(*(each.asked for each in queries), strict=True))
    return replace(first, asked=asked, panes=Panes(width, 1, 1), early=max(each.early for each in queries))


def _key(query: PaneQuery) -> Hashable:
    """The key that queries share which may be counted together; None for one that is counted alone."""
    window = query.clause.window
    reference = window.reference if isinstance(window, ast.TimeWindow | ast.SessionWindow) else None
    looked_at = (query.clause.source, reference, query.paths, query.keys, query.where)
    if not query.plain or any(_looks_out(each, query.clause.variable) for each in parts(looked_at)):
        return None
    return query.clause.variable, *looked_at, query.scale, query.counts_times, query.is_session


def _looks_out(part: object, window: str) -> bool:
    """Whether a part may mean something else in another query."""
    match part:
        case ast.Variable(name):
            return name != window
        case ast.Call(name):
            return name.removeprefix("fn:") not in SIGNATURES
        case _:
            return False


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The greatest common divisor of two widths."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
