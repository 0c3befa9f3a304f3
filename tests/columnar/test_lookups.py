"""Lookups with dots, objects and arrays over columns are what the law says they are (LAWS 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random

import pytest

from anabranch.errors import AnabranchError
from anabranch.stream.reading.json_names import step_of_key
from columnar.lookup_cases import CONDITIONS, KEYS, SOURCE, VALUES, WHOLES, RecordMaker, random_query, renamed
from columnar.streams import ItemQuery, Stream, check_by_law, item_queries
from mass import Mass, some
from odd_keys import random_keys


def records(random: Random, odd: int, count: int, keys: Mapping[str, str] | None = None) -> bytes:
    maker = RecordMaker(random, odd, keys or {})
    return "".join(f"{maker.line()}\n" for _ in range(count)).encode()


def check_case(number: int) -> None:
    """A few queries over a few dozen records, every other time with odd keys, are answered as by law."""
    random = Random(number)
    keys = other_keys(random) if number % 2 else {}
    queries = some_queries(random, keys)
    data = records(random, random.choice([0, 0, 5, 20]), 40, keys)
    check_by_law(Stream(queries, "json"), data, random)


def other_keys(random: Random) -> dict[str, str]:
    """Other keys than the usual ones, nearly all of them odd."""
    found = random_keys(random, [key.removeprefix("@") for key in KEYS])
    return {key: f"@{found['kind']}" if key == "@kind" else found[key] for key in KEYS}


def some_queries(random: Random, keys: Mapping[str, str]) -> dict[str, ItemQuery]:
    queries: dict[str, ItemQuery] = {}
    while len(queries) < 4:
        text = renamed(random_query(random), keys)
        try:
            queries[text] = item_queries({text: text})[text]
        except (AnabranchError, AssertionError):
            continue  # JSON beside XML, or no query of single items
    return queries


def plain_again(text: str, keys: Mapping[str, str]) -> object:
    """An answer with the usual keys in the place of the others; JSON as Python reads it."""
    if text.startswith("<"):
        for key, other in keys.items():
            text = re.sub(rf"(?<=[</])({re.escape(step_of_key(other))})(?=[ />])", key, text)
        return text
    back = {other: key for key, other in keys.items()}

    def pairs(found: list[tuple[str, object]]) -> object:
        return [(back.get(key, key), value) for key, value in found]

    return [json.loads(line, object_pairs_hook=pairs, parse_float=str) for line in text.split("\n") if line]


def check_renaming(number: int) -> None:
    """Queries with odd keys answer what they answer with plain ones, but for the keys: by law and in columns."""
    keys = other_keys(Random(number))
    answers = []
    for given in ({}, keys):
        random = Random(number)
        stream = Stream(some_queries(random, given), "json")
        data = records(random, random.choice([0, 0, 5, 20]), 40, given)
        by_law, by_columns = stream.by_law(data), stream.by_columns([data])[0]
        assert by_law.texts == by_columns.texts
        codes = [(each.code, each.subscription is None, each.reason) for each in by_law.dead]
        answers.append(([plain_again(text, given) for text in by_law.texts.values()], len(codes)))
    assert answers[0] == answers[1]


def test_random_lookups_are_answered_as_by_law(mass: Mass) -> None:
    """Queries of all forms over records with types that hold always, mostly or seldom."""
    for number in mass.cases(10_000):
        check_case(number)


def test_random_keys_make_no_difference(mass: Mass) -> None:
    """Odd keys answer as plain ones do."""
    for number in mass.cases(5_000):
        check_renaming(number)


@pytest.mark.parametrize("number", range(4))
def test_some_random_keys_make_no_difference(number: int) -> None:
    """The same cases each time."""
    check_renaming(number)


@pytest.mark.mass
@pytest.mark.parametrize("number", range(1_000_000, 1_000_008))
def test_some_random_lookups_are_answered_as_by_law(number: int) -> None:
    """The same cases each time."""
    check_case(number)


@pytest.mark.mass
@pytest.mark.parametrize("odd", [0, 10])
@pytest.mark.parametrize("part", some(range(4)))
def test_each_value_is_written_as_by_law(odd: int, part: int) -> None:
    """Each kind of value in an object, alone, and in a condition."""
    random = Random(part)
    values = (VALUES + WHOLES)[part::4]
    texts = {f"in {each}": f'for $o in {SOURCE} return {{ "v": {each} }}' for each in values}
    texts |= {f"if {each}": f'for $o in {SOURCE} where {each} return {{ "v": $o.id }}' for each in CONDITIONS[part::4]}
    check_by_law(Stream(item_queries(texts), "json"), records(random, odd, len(some(range(120)))), random)
