"""Item queries compiled for one look: the conditions of all of them together, and the fragments of their answers.

Queries of one shape differ in constants only: they are compiled once, with *marks* in the place of the constants, and
then each gets its own constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.expressions.tree import Column, Constant, Made, has_constant
from anabranch.columnar.items.kernels import Fragments
from anabranch.columnar.items.layout import SetConstants, fragments_of
from anabranch.columnar.items.query import CompiledQuery, compile_query, copied_by, made_in
from anabranch.columnar.match.condition import ALWAYS, Condition, columns_of, numbers_of
from anabranch.columnar.match.forms import AFTER, Alike, FormConstant, formed, gathered, has_ranks, substituted
from anabranch.columnar.match.index import Matcher
from anabranch.columnar.match.indexable import asked_by_result, indexable
from anabranch.columnar.match.substitution import fragment_with
from anabranch.columnar.scan.decoded import COPIES_NOTHING
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.columnar.tables.joined_look import TableParts
from anabranch.columnar.tables.table_columns import DocumentTables
from anabranch.language import ast
from anabranch.stream.tree import Element


class ItemEvaluator(Protocol):
    """Evaluates a query for single items."""

    def __call__(self, item: Element, forward: Callable[[list[Any]], list[Any]] | None = None) -> str:
        """The piece that an item adds; `DynamicError` where it fails (LAWS 2.4).

        Where the stream evolves, `forward` brings its values into the units of its place.
        """


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """A query that answers item by item (`runtime/standing.py`), for all its subscribers."""

    subscribers: tuple[tuple[int, str], ...]
    """The numbers and names of the subscriptions."""
    constants: tuple[Constant, ...]
    """The constants that it has in the place of its shape's marks."""
    slow: ItemEvaluator


@dataclass(frozen=True, slots=True)
class ItemQueries:
    """Queries of one shape."""

    hole: ast.Expression
    """The expression for one item, with marks in the place of constants and with expanded names."""
    marks: tuple[Constant, ...]
    members: Sequence[ItemQuery]
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """The namespaces that are declared around their results."""
    tables: Mapping[str, DocumentTables] = field(default_factory=dict)
    """The documents that they read."""
    at_top: bool = True
    """Whether their results stand at the top, without an element around them."""


class Compiled(Protocol):
    """A query, or what a taker needs, compiled for one look."""

    @property
    def columns(self) -> set[Column]:
        """The columns that it reads."""

    @property
    def numbers(self) -> set[Column]:
        """The columns whose numbers it reads."""

    @property
    def conditions(self) -> Sequence[Condition]:
        """Its conditions on items, to be matched together with those of others."""

    @property
    def missing(self) -> int:
        """How many of its queries do not compile."""


Compile: TypeAlias = Callable[[str, Look], Compiled | None]
"""Compiles for a look, given the expanded name of the stream's root; None where nothing compiles."""


@dataclass(frozen=True, slots=True)
class Program:
    """All queries and takers of a stream, compiled for one look; queries are numbered through."""

    wanted: WantedColumns
    compiled: tuple[CompiledQuery | None, ...]
    """By group of queries, with marks in the place of constants; None where they do not compile."""
    matcher: Matcher
    """Matches the conditions of the queries, then those of the takers."""
    others: tuple[int, ...]
    """Queries that do not compile."""
    sets: Indices
    """By condition: the set of fragments, one for each group of queries; an empty set for takers."""
    fragments: Fragments
    made: tuple[tuple[Made, ...], ...]
    """By set: its computed fragments."""
    constants: tuple[SetConstants | None, ...]
    """By set: the constants of its queries, where they are needed to compute."""
    copied: Indices
    """By set: what it copies of items (`scan/decoded.py`)."""
    gives: Flags
    """By set: whether it has fragments."""
    taken: tuple[Compiled | None, ...]
    """By taker, in the order of `compiles`: what was compiled for it."""
    shares: tuple[tuple[int, int], ...]
    """By taker: the range of its conditions in the matcher."""

    @property
    def missing(self) -> int:
        """How many queries, of subscriptions and takers, do not compile."""
        return len(self.others) + sum(1 if each is None else each.missing for each in self.taken)


def compiled_queries(
    queries: Sequence[ItemQueries], root: str, look: Look
) -> tuple[list[CompiledQuery | NotColumnar], Look]:
    """Each group of queries, compiled for a look, and the look with the rows that they look up."""
    tables = TableParts(look, {name: each for group in queries for name, each in group.tables.items()})
    found = [
        compile_query(each.hole, root, look, each.marks, each.namespaces, tables, at_top=each.at_top)
        for each in queries
    ]
    return found, tables.look


def program_of(
    queries: Sequence[ItemQueries],
    found: Sequence[CompiledQuery | NotColumnar],
    compiles: Sequence[Compile],
    root: str,
    look: Look,
    *,
    together: bool = True,
) -> Program | None:
    """Put together what was compiled for a look, which includes the rows that are looked up.

    None where nothing compiles.
    Conditions are matched by an index if `together`, else each by itself.
    """
    made = [
        _AlikeQueries.of(look, query, group) if isinstance(query, CompiledQuery) else None
        for group, query in zip(queries, found, strict=True)
    ]
    # takers read items without what is declared around them
    taken = tuple(None if look.scope else each(root, look.of_items) for each in compiles)
    if not any(made) and not taken:
        return None
    groups: list[Alike] = []
    single: list[tuple[int, Condition]] = []
    others: list[int] = []
    sets: list[int] = []
    constants: list[SetConstants | None] = []
    for group, alike in zip(queries, made, strict=True):
        first = len(sets)
        if alike is None:
            others += range(first, first + len(group.members))
        else:
            alike.add(first, groups, single)
        sets += [len(constants)] * len(group.members)
        constants.append(None if alike is None else alike.set_constants(first))
    fragments = [() if each is None else each.query.fragments for each in made]
    shares = []
    count = len(sets)
    for each in taken:
        asked = tuple(each.conditions) if each else ()
        shares.append((count, count + len(asked)))
        single += enumerate(asked, count)
        sets += [len(fragments)] * len(asked)
        count += len(asked)
    wanted = _wanted(look, made, taken, [condition for _, condition in single])
    more_groups, apart = gathered(single) if together else ([], single)
    return Program(
        wanted,
        tuple(None if each is None else each.query for each in made),
        Matcher(count, [*groups, *more_groups], apart, wanted),
        tuple(others),
        np.array(sets, np.int64),
        fragments_of([*fragments, ()], wanted),
        tuple(tuple(made_in(each)) for each in (*fragments, ())),
        (*constants, None),
        np.array([*map(copied_by, fragments), COPIES_NOTHING]),
        np.array([*map(bool, fragments), False]),
        taken,
        tuple(shares),
    )


def _wanted(
    look: Look,
    made: Sequence[_AlikeQueries | None],
    taken: Sequence[Compiled | None],
    conditions: Sequence[Condition],
) -> WantedColumns:
    """The columns that are needed of items: by conditions, and by the fragments of answers."""
    columns: set[Column] = set().union(*(each.columns for each in taken if each), *map(columns_of, conditions))
    numbers: set[Column] = set().union(*(each.numbers for each in taken if each), *map(numbers_of, conditions))
    for each in made:
        if each is not None:  # those with marks are among `conditions`, with constants in their place
            columns |= {column for column in columns_of(each.condition) if not has_constant(column, each.marks)}
            numbers |= {column for column in numbers_of(each.condition) if not has_constant(column, each.marks)}
    given = dict.fromkeys(fragment for each in made if each for fragment in each.query.fragments)
    return WantedColumns.of(look, columns, numbers, given)


@dataclass(frozen=True, slots=True)
class _AlikeQueries:
    """Compiled queries of one shape; where all have the same constant, it stands in the place of its mark."""

    query: CompiledQuery
    condition: Condition
    """The condition of the query, in tests that an index can find where possible, and that of a result that is not
    empty."""
    marks: tuple[Constant, ...]
    constants: Sequence[tuple[Constant, ...]]
    """By query, in the order of the marks."""

    @staticmethod
    def of(look: Look, query: CompiledQuery, group: ItemQueries) -> _AlikeQueries:
        marks, constants = group.marks, [each.constants for each in group.members]
        columns = list(zip(*constants, strict=True)) if marks else []
        common = {mark: each[0] for mark, each in zip(marks, columns, strict=True) if len(set(each)) == 1}
        if common:
            fragments = tuple(fragment_with(each, common) for each in query.fragments)
            query = CompiledQuery(substituted(query.condition, common), fragments)
        kept = [number for number, mark in enumerate(marks) if mark not in common]
        rest = [columns[number] for number in kept]
        left = tuple(marks[number] for number in kept)
        rows = list(zip(*rest, strict=True)) if rest else [()] * len(constants)
        asked = asked_by_result(query.fragments, look, left)
        if not asked or query.condition != ALWAYS:
            asked = *indexable(query.condition, look, left), *asked
        return _AlikeQueries(query, asked, left, rows)

    def set_constants(self, first: int) -> SetConstants | None:
        """The constants that are needed to compute their answers; `first` is the number of the first query."""
        if not any(has_constant(each, self.marks) for each in self.query.fragments):
            return None
        return SetConstants.of(first, self.marks, self.constants)

    def add(self, first: int, groups: list[Alike], single: list[tuple[int, Condition]]) -> None:
        """Add the conditions, each with its own constants; `first` is the number of the first query.

        Where a computed column contains a constant, each condition has columns of its own.
        """
        apart = any(has_constant(column, self.marks) for column in columns_of(self.condition))
        found = formed(self.condition) if self.marks and not apart else None
        if found is None:
            for number, each in enumerate(self.constants, first):
                single.append((number, substituted(self.condition, dict(zip(self.marks, each, strict=True)))))
            return
        form, constants = found
        places = {mark: number for number, mark in enumerate(self.marks)}
        columns = [_column(constant, places, self.constants) for constant in constants]
        rows = list(zip(*columns, strict=True)) if columns else [()] * len(self.constants)
        ranked = [number for number, each in enumerate(rows) if has_ranks(form, each)]
        groups.append(Alike(form, [first + number for number in ranked], [rows[number] for number in ranked]))
        for number in sorted({*range(len(rows))}.difference(ranked)):
            values = dict(zip(self.marks, self.constants[number], strict=True))
            single.append((first + number, substituted(self.condition, values)))


def _column(
    constant: FormConstant, places: Mapping[Constant, int], constants: Sequence[tuple[Constant, ...]]
) -> Sequence[FormConstant]:
    """By query: its value for one constant of the form."""
    if isinstance(constant, tuple):
        columns = [_column(each, places, constants) for each in constant]
        return list(zip(*columns, strict=True)) if columns else [()] * len(constants)
    if constant in places:
        place = places[constant]
        return [each[place] for each in constants]
    if isinstance(constant, float) and -constant in places:
        place = places[-constant]
        return [-float(each[place]) for each in constants]
    if isinstance(constant, bytes) and constant.endswith(AFTER):
        prefixes = _column(constant.removesuffix(AFTER), places, constants)
        return [each + AFTER for each in prefixes if isinstance(each, bytes)]
    return [constant] * len(constants)
