"""The parts that a query on display splits into (`split.py` says how).

* `FixedPart`: reads no stream, and no document behind `doc()`, which may change between epochs (LAWS 3.12);
* `EachPart`: distributes over the entries of a stream, in the order of the document or, with `order by`, of its keys;
* `Folded`: an aggregate over a part that gives results entry by entry;
* `ComputedPart`: an expression whose streams are all inside aggregates, if it reads any; it is evaluated anew from
  their values;
* `SequencePart`, `ElementPart`: a sequence of parts, and an element constructor around them;
* `WholePart`: an expression that does not split; it is evaluated anew as a whole, exact and slow.
* `EditedWindowPart`: a loop over windows of a stream (LAWS 5.10), each of which is corrected by itself;

Streams that only grow (`branch/growing/`) have more, since items that have come stay:

* `WindowPart`: a loop over windows, whose results stand when one closes;
* `GroupPart`: groups of items, each of which is an entry that its items edit;
* `DistinctPart`: the different values among those of entries;
* `SlicePart`: some values of these, by their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from anabranch.branch.display.joins.keys import JoinKey
from anabranch.branch.display.joins.ranges import JoinRange
from anabranch.language import ast
from anabranch.language.windows.aggregates import AggregateCall
from anabranch.runtime.standing import Standing


@dataclass(frozen=True, slots=True)
class FixedPart:
    """An expression that reads no stream or document, and so never changes."""

    expression: ast.Expression


@dataclass(frozen=True, slots=True)
class EachPart:
    """An expression that distributes over the entries of a stream."""

    stream: str
    expression: ast.Expression
    beside: tuple[str, ...] = ()
    """Streams that it reads as a whole."""
    keys: tuple[tuple[str, JoinKey | JoinRange], ...] = ()
    """For some of these, what an entry has in common with those entries that it meets: a key, or a range."""

    @property
    def order(self) -> tuple[ast.OrderKey, ...]:
        """The keys by which all results of all entries are ordered."""
        return self.expression.order if isinstance(self.expression, ast.Flwor) else ()

    @property
    def first(self) -> ast.Expression:
        """What is evaluated before any entry is looked at, for the errors that it may raise: the first `let`s."""
        return _first_lets(self.expression.clauses if isinstance(self.expression, ast.Flwor) else ())


@dataclass(frozen=True, slots=True)
class WindowPart:
    """A loop over windows of streams that only grow, whose results stand when a window closes."""

    flwor: ast.Flwor
    standing: Standing
    """The loop, taken apart as if it were a query of its own."""


@dataclass(frozen=True, slots=True)
class EditedWindowPart:
    """A loop over windows of a stream of updates, which depends on nothing around it (`window_split.py`)."""

    stream: str
    flwor: ast.Flwor
    clause: ast.For
    """Its loop over windows."""
    before: tuple[ast.For | ast.Let, ...]
    """The clauses in front of that, which read no stream."""
    seen: ast.Flwor
    """The loop with variables for the aggregates of a window, or of a group in it; the same where it has none."""
    behind: tuple[ast.For | ast.Let, ...] = ()
    """The clauses in it behind the loop over windows."""
    is_folded: bool = False
    """Whether windows, or their groups, are seen through aggregates only."""
    calls: tuple[AggregateCall, ...] = ()
    paths: tuple[ast.Expression, ...] = ()
    """What they are taken over, from `variable` on."""
    variable: str = ""
    """The window, or the item of a group, in `paths`, `where` and `keys`."""
    where: ast.Expression | None = None
    """The condition that an item must fulfil to be in a group."""
    names: tuple[str, ...] = ()
    keys: tuple[ast.Expression, ...] = ()
    """The variables of the keys of groups, and what they are in each item; nothing where there are no groups."""

    @property
    def first(self) -> ast.Expression:
        """What is evaluated before any entry is looked at, for the errors that it may raise: the first `let`s."""
        return _first_lets(self.flwor.clauses)


@dataclass(frozen=True, slots=True)
class GroupFold:
    """An aggregate over the items of a group: the variable that stands for it, its function, and its argument.

    The argument can be evaluated for each item by itself; its values for a group are those of the items one by one.
    """

    variable: str
    function: str
    argument: ast.Expression


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Groups of the items of a stream that only grows (LAWS 3.8), and what is computed from each."""

    stream: str
    pipeline: ast.Pipeline
    """The whole pipeline, as it is written."""
    ahead: tuple[ast.Clause, ...]
    """The clauses in front of the `group by`, which make tuples of an item."""
    keys: tuple[ast.GroupKey, ...]
    behind: tuple[ast.Clause, ...]
    """The clauses behind the `group by`, up to a `count`, if there is one; variables stand for aggregates."""
    result: ast.Expression
    folds: tuple[GroupFold, ...]
    held: tuple[str, ...] = ()
    """The variables of which a group holds all values, where aggregates do not suffice."""
    count: GroupCount | None = None

    @property
    def first(self) -> ast.Expression:
        """What is evaluated before any item is looked at, for the errors that it may raise: the first `let`s."""
        return _first_lets(self.ahead)

    @property
    def order(self) -> tuple[ast.OrderKey, ...]:
        """The keys by which tuples are ordered, the last `order by` first."""
        orders = [each.keys for each in self.behind if isinstance(each, ast.OrderBy)]
        return tuple(key for keys in reversed(orders) for key in keys)


@dataclass(frozen=True, slots=True)
class GroupCount:
    """`count $variable` behind groups, and the clauses behind that; numbers above `limit` have no results."""

    variable: str
    behind: tuple[ast.Clause, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class DistinctPart:
    """The different values of a part that distributes, in the order of their first entries."""

    over: EachPart | WindowPart


@dataclass(frozen=True, slots=True)
class PlaceInterval:
    """Places in a sequence, counted from 0: from `first` on, and before `end` where there is one.

    They are counted from the front, or from the back.
    """

    first: int
    end: int | None
    is_from_back: bool = False

    def of(self, length: int) -> tuple[int, int]:
        """The same places in a sequence of this length, counted from the front."""
        first = min(self.first, length)
        end = length if self.end is None else max(first, min(self.end, length))
        return (length - end, length - first) if self.is_from_back else (first, end)

    def within(self, other: PlaceInterval) -> PlaceInterval | None:
        """The places among those of another interval; None where they are counted from the other side."""
        if self.is_from_back != other.is_from_back:
            return None
        ends = [each for each in (other.end, None if self.end is None else other.first + self.end) if each is not None]
        return PlaceInterval(other.first + self.first, min(ends) if ends else None, self.is_from_back)


@dataclass(frozen=True, slots=True)
class SlicePart:
    """Some of the values of a part, by their places (LAWS 3.10)."""

    over: EachPart | WindowPart | GroupPart | DistinctPart
    interval: PlaceInterval

    @property
    def is_bounded(self) -> bool:
        """Whether only the results in the interval are kept: those outside never come back into it."""
        return self.interval.end is not None and not isinstance(self.over, GroupPart)


EntriesPart: TypeAlias = EachPart | WindowPart | GroupPart | DistinctPart | SlicePart
"""A part that gives results entry by entry."""


def order_of(part: EntriesPart) -> tuple[ast.OrderKey, ...]:
    """The keys by which the results of all entries are ordered."""
    match part:
        case EachPart():
            return part.order
        case WindowPart(flwor):
            return flwor.order
        case GroupPart(count=None):
            return part.order
        case SlicePart(over):
            return order_of(over)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class Folded:
    """An aggregate over a part that gives results entry by entry."""

    function: str
    over: EntriesPart


@dataclass(frozen=True, slots=True)
class ComputedPart:
    """An expression over the values of aggregates, each under the name of a variable."""

    expression: ast.Expression
    names: tuple[tuple[str, Folded], ...]


@dataclass(frozen=True, slots=True)
class WholePart:
    """An expression that does not split."""

    expression: ast.Expression
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SequencePart:
    """Parts one after another."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ElementPart:
    """An element constructor, and what stands in it."""

    constructor: ast.ElementConstructor
    content: tuple[ast.Characters | ast.CommentConstructor | Part, ...]


Part: TypeAlias = FixedPart | EntriesPart | EditedWindowPart | ComputedPart | WholePart | SequencePart | ElementPart


def _first_lets(clauses: tuple[ast.Clause, ...]) -> ast.Expression:
    """The `let`s that clauses begin with, and nothing else."""
    lets: list[ast.For | ast.Let] = []
    for each in clauses:
        if not isinstance(each, ast.Let):
            break
        lets.append(each)
    return ast.Flwor(tuple(lets), None, (), ast.Sequence(())) if lets else ast.Sequence(())


def splits(part: Part) -> bool:
    """Whether no part of it is evaluated anew as a whole."""
    match part:
        case WholePart():
            return False
        case SequencePart(inner):
            return all(splits(each) for each in inner)
        case ElementPart(_, content):
            return all(
                splits(each) for each in content if not isinstance(each, ast.Characters | ast.CommentConstructor)
            )
        case _:
            return True
