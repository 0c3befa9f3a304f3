"""Rows of documents are looked up in columns as the law looks them up, for random tables, queries and items."""

from __future__ import annotations

from random import Random

from columnar.random_cases import Shares
from columnar.streams import Stream, check_by_law, item_queries
from columnar.table_cases import item, odd_document, query, small_document
from mass import Mass


def check_case(number: int, shares: Shares) -> None:
    """A few queries over a few dozen items are answered as by law, errors too."""
    random = Random(number)
    document, prefix = odd_document(random)
    texts = {f"q{each}": query(random, prefix) for each in range(3)}
    queries = item_queries(texts, {"t": document, "u": small_document(random)})
    odd = random.choice([0, 0, 10])
    data = "".join(f"{item(random, odd)}\n" for _ in range(random.choice([5, 40, 120]))).encode()
    stream = Stream(queries, "lines", root="<r>")
    shares.cover(stream, *check_by_law(stream, data, random))


def test_some_random_lookups_are_answered_as_by_law() -> None:
    """The same cases each time."""
    shares = Shares()
    for number in range(10_000, 10_080):
        check_case(number, shares)
    print(shares)


def test_random_lookups_are_answered_as_by_law(mass: Mass) -> None:
    """Lookups of all forms in tables of all kinds."""
    shares = Shares()
    for number in mass.cases(10_000):
        check_case(number, shares)
