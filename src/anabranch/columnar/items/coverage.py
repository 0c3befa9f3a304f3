"""Figures about columns: how items were read, and which subscriptions were left to the law, and why.

No answer depends on it; it is counted by batch, so counting costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.items.programs import ItemQueries
from anabranch.columnar.items.query import CompiledQuery

MOST_REASONS = 10


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """How the items of a stream were read."""

    items: int = 0
    by_template: int = 0
    """Items whose bytes equal the template but for their texts."""
    by_scanner: int = 0
    """Other items that have the look of the stream's items."""
    unclear: int = 0
    """Pairs of an item in columns and a query that columns could not decide, so that the law did."""
    bytes: int = 0
    """The bytes that they were read from."""

    def __add__(self, other: ReadCounts) -> ReadCounts:
        return ReadCounts(
            self.items + other.items,
            self.by_template + other.by_template,
            self.by_scanner + other.by_scanner,
            self.unclear + other.unclear,
            self.bytes + other.bytes,
        )

    @property
    def by_parser(self) -> int:
        """Items that do not have the look."""
        return max(0, self.items - self.by_template - self.by_scanner)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the subscriptions over items are answered in columns, and how many by the law."""

    in_columns: int = 0
    by_law: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    """The constructs that do not compile, and for how many subscriptions; the most frequent ones."""

    @staticmethod
    def of(queries: Sequence[ItemQueries], found: Sequence[CompiledQuery | NotColumnar]) -> Coverage:
        """The coverage, given what was compiled for each group of queries."""
        reasons: Counter[str] = Counter()
        in_columns = 0
        for group, each in zip(queries, found, strict=True):
            asked = sum(len(member.subscribers) for member in group.members)
            if isinstance(each, NotColumnar):
                reasons[each.construct] += asked
            else:
                in_columns += asked
        most = nlargest(MOST_REASONS, reasons, key=reasons.__getitem__)
        return Coverage(in_columns, reasons.total(), {each: reasons[each] for each in most})
