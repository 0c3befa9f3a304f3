"""Expressions over columns are what the law says they are, for random queries and items of every form and format."""

from __future__ import annotations

from random import Random

from anabranch.errors import QueryError
from columnar.expression_cases import PLAIN, STYLES, ItemMaker, Oddity, QueryMaker, Style
from columnar.streams import ItemQuery, Stream, item_queries
from mass import Mass

_ODDITIES = (PLAIN, Oddity(5, 2), Oddity(20, 8))


def random_query(random: Random, style: Style) -> tuple[str, ItemQuery]:
    """A query that passes the checks and answers item by item."""
    while True:
        text = QueryMaker(random, style).query(random.choice([1, 2, 2, 3]))
        try:
            return text, item_queries({"q": text})["q"]
        except (QueryError, AssertionError):
            continue


def check_case(number: int) -> None:
    """A few queries over a few dozen items: answers, dead letters, their order and counts are those of the law."""
    random = Random(number)
    style = random.choice(STYLES)
    queries = dict(random_query(random, style) for _ in range(3))
    usual = ItemMaker(random, style, random.choice(_ODDITIES))
    unusual = ItemMaker(random, style, random.choice(_ODDITIES))
    lines = [*(usual.line() for _ in range(20)), *(unusual.line() for _ in range(12))]
    stream = Stream(queries, "json" if style == "json" else "lines", root="<r>")
    data = "".join(f"{line}\n" for line in lines).encode()
    law = stream.by_law(data)
    assert stream.by_columns([data])[0] == law


def test_random_queries_are_answered_as_by_law(mass: Mass) -> None:
    """Queries of all forms over items of all kinds."""
    for number in mass.cases(10_000):
        check_case(number)
