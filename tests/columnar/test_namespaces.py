"""Items and queries with names in namespaces are answered as by law, and in columns."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from anabranch.errors import QueryError
from columnar.expression_cases import PLAIN, ItemMaker, Oddity, QueryMaker, Style
from columnar.namespaced_cases import Naming
from columnar.streams import ItemQuery, Stream, check_by_law, item_queries
from mass import Mass

_STYLES: tuple[Style, ...] = ("elements", "attributes", "mixed")
_ODDITIES = (PLAIN, Oddity(5, 2), Oddity(20, 8))


@dataclass
class Shares:
    """What the cases have covered: pairs of an item and a query, what of these the law was left, and queries."""

    pairs: int = 0
    left_to_law: int = 0
    queries: int = 0
    compiled: int = 0


def random_query(random: Random, style: Style, naming: Naming) -> tuple[str, ItemQuery]:
    """A query that passes the checks and answers item by item."""
    while True:
        try:
            text = naming.query(QueryMaker(random, style).query(random.choice([1, 2, 2, 3])))
            return text, item_queries({"q": text})["q"]
        except (QueryError, AssertionError):
            continue


def check_case(number: int, shares: Shares) -> None:
    """A few queries over a few dozen items."""
    random = Random(number)
    style, naming = random.choice(_STYLES), Naming.draw(random)
    queries = dict(random_query(random, style, naming) for _ in range(3))
    usual = ItemMaker(random, style, random.choice(_ODDITIES))
    unusual = ItemMaker(random, style, random.choice(_ODDITIES))
    lines = [*(usual.line() for _ in range(20)), *(unusual.line() for _ in range(12))]
    lines = [naming.item(line) for line in lines]
    is_document = naming.place == "root" or random.randrange(4) == 0
    stream = Stream(queries, "document" if is_document else "lines", root=naming.root)
    data = "".join(f"{line}\n" for line in lines)
    answers, items = check_by_law(stream, (f"{naming.root}{data}</r>" if is_document else data).encode(), random)
    shares.pairs += items * len(queries)
    shares.left_to_law += stream.left_to_law
    shares.queries += len(queries)
    shares.compiled += answers.coverage.in_columns


def test_some_random_names_are_answered_as_by_law() -> None:
    """The same cases each time; a good part of them is answered in columns."""
    shares = Shares()
    for number in range(20_000, 20_200):
        check_case(number, shares)
    assert shares.compiled >= 0.4 * shares.queries, shares
    assert shares.left_to_law <= 0.8 * shares.pairs, shares


def test_random_names_are_answered_as_by_law(mass: Mass) -> None:
    """Namespaces of all kinds in items of all kinds."""
    for number in mass.cases(10_000):
        check_case(number, Shares())
