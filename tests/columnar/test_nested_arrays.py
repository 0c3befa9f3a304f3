"""Arrays in arrays, as in GeoJSON, stay in columns for whoever copies them, reads around them, or takes paths there."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from columnar.streams import Stream, check_by_law, item_queries

LOOP = 'for $o in stream("s")/root/item '
QUERIES = {
    "item": f"{LOOP}where $o.area.size > 50 return $o",
    "around": f'{LOOP}where $o.area.size > 50 return {{ "id": $o.id }}',
    "object": f'{LOOP}return {{ "a": $o.area }}',
    "array": f'{LOOP}return {{ "p": $o.area.points }}',
    "paths": f"{LOOP}where $o/area/points/member > 170 return <i>{{ $o/id, $o/area/points[member > 170] }}</i>",
}


def points(random: Random) -> list[list[float]]:
    return [[random.randrange(1800) / 10 for _ in range(random.choice((0, 2, 2, 3)))] for _ in range(4)]


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in records).encode()


def answered(data: bytes, name: str) -> tuple[str, int]:
    """What a query answers, by columns as by the law, and how many items were left to the law."""
    stream = Stream(item_queries({name: QUERIES[name]}), "json")
    answers, _ = check_by_law(stream, data, Random(1))
    left = stream.left_to_law
    return stream.by_columns([data], answers)[0].texts[name], left


@pytest.mark.parametrize("name", QUERIES)
def test_nothing_is_left_to_the_law(name: str) -> None:
    """Columns answer all items, and what Python finds in the lines is what comes out."""
    random = Random(7)
    records: list[dict[str, Any]] = [
        {"id": n, "area": {"size": random.randrange(100), "points": points(random)}} for n in range(60)
    ]
    text, left = answered(lines(records), name)
    assert left == 0
    large = [each for each in records if each["area"]["size"] > 50]
    match name:
        case "item":
            assert text == lines(large).decode()
        case "around":
            assert text == lines([{"id": each["id"]} for each in large]).decode()
        case "object":
            assert text == lines([{"a": each["area"]} for each in records]).decode()
        case "array":
            assert text == lines([{"p": each["area"]["points"]} for each in records]).decode()
        case "paths":
            far = [each for each in records if any(max(point, default=0) > 170 for point in each["area"]["points"])]
            assert text.count("<i>") == len(far) > 0


@pytest.mark.parametrize("name", ["item", "around", "object", "array"])
def test_items_with_numbers_stay_in_columns(name: str) -> None:
    """Where arrays in arrays are the exception, their items alone are left to the law."""
    random = Random(8)
    records: list[dict[str, Any]] = []
    for number in range(100):
        some = points(random)
        records.append({"id": number, "area": {"size": 60, "points": some if number % 10 == 5 else some[0]}})
    assert answered(lines(records), name)[1] <= 10
