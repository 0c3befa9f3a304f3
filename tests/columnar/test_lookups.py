"""Lookups with dots, objects and arrays over columns are what the law says they are (LAWS 7)."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.errors import AnabranchError
from columnar.lookup_cases import CONDITIONS, SOURCE, VALUES, WHOLES, RecordMaker, random_query
from columnar.streams import ItemQuery, Stream, check_by_law, item_queries
from mass import Mass, some


def records(random: Random, odd: int, count: int) -> bytes:
    maker = RecordMaker(random, odd)
    return "".join(f"{maker.line()}\n" for _ in range(count)).encode()


def check_case(number: int) -> None:
    """A few queries over a few dozen records are answered as by law."""
    random = Random(number)
    queries: dict[str, ItemQuery] = {}
    while len(queries) < 4:
        text = random_query(random)
        try:
            queries[text] = item_queries({text: text})[text]
        except AnabranchError:
            continue  # JSON beside XML
    data = records(random, random.choice([0, 0, 5, 20]), 40)
    check_by_law(Stream(queries, "json"), data, random)


def test_random_lookups_are_answered_as_by_law(mass: Mass) -> None:
    """Queries of all forms over records with types that hold always, mostly or seldom."""
    for number in mass.cases(10_000):
        check_case(number)


@pytest.mark.parametrize("number", range(1_000_000, 1_000_008))
def test_some_random_lookups_are_answered_as_by_law(number: int) -> None:
    """The same cases each time."""
    check_case(number)


@pytest.mark.parametrize("odd", [0, 10])
@pytest.mark.parametrize("part", some(range(4)))
def test_each_value_is_written_as_by_law(odd: int, part: int) -> None:
    """Each kind of value in an object, alone, and in a condition."""
    random = Random(part)
    values = (VALUES + WHOLES)[part::4]
    texts = {f"in {each}": f'for $o in {SOURCE} return {{ "v": {each} }}' for each in values}
    texts |= {f"if {each}": f'for $o in {SOURCE} where {each} return {{ "v": $o.id }}' for each in CONDITIONS[part::4]}
    check_by_law(Stream(item_queries(texts), "json"), records(random, odd, len(some(range(120)))), random)
