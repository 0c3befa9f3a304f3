"""Random queries and items, and what cases made of them have covered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from anabranch.columnar.items.answering import StreamAnswers
from anabranch.errors import QueryError
from columnar.expression_cases import PLAIN, ItemMaker, Oddity, QueryMaker, Style
from columnar.streams import ItemQuery, Stream, item_queries

ODDITIES = (PLAIN, Oddity(5, 2), Oddity(20, 8))


def random_query(random: Random, style: Style, named: Callable[[str], str] = str) -> tuple[str, ItemQuery]:
    """A query that passes the checks and answers item by item; `named` puts its names into namespaces."""
    while True:
        text = QueryMaker(random, style).query(random.choice([1, 2, 2, 3]))
        try:
            text = named(text)
            return text, item_queries({"q": text})["q"]
        except (QueryError, AssertionError):
            continue


def random_lines(random: Random, style: Style) -> tuple[list[str], ItemMaker]:
    """A few dozen items, the later ones perhaps of another oddity, and who has made those."""
    usual = ItemMaker(random, style, random.choice(ODDITIES))
    unusual = ItemMaker(random, style, random.choice(ODDITIES))
    return [*(usual.line() for _ in range(20)), *(unusual.line() for _ in range(12))], unusual


@dataclass
class Shares:
    """What the cases of a test have covered: pairs of an item and a query, and of these what the law was left."""

    pairs: int = 0
    left_to_law: int = 0
    queries: int = 0
    compiled: int = 0

    def cover(self, stream: Stream, answers: StreamAnswers, items: int) -> None:
        """Take note of a stream of so many items that was answered."""
        self.pairs += items * len(stream.queries)
        self.left_to_law += stream.left_to_law
        self.queries += len(stream.queries)
        self.compiled += answers.coverage.in_columns

    def check(self, *, compiled: float = 0.55, left_to_law: float = 0.7) -> None:
        """Check that the cases test something: a good part of what they ask is answered in columns.

        Much is not: items are odd on purpose, and what looks at them may fail.
        """
        assert self.compiled >= compiled * self.queries, self
        assert self.left_to_law <= left_to_law * self.pairs, self
