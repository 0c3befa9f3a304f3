"""The least and the greatest of what lookups find, by panes: numbers, strings and booleans, as the law has them.

Windows, groups and sessions over records whose values are of one type, or mostly, or of any (LAWS 2.1, 7.1), in ranges
and epochs of random lengths, so what panes know of texts is merged, sent and saved.
"""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random

import pytest

from branch.counting import Stream, one_clock
from mass import some

NUMBERS = ("0", "-0", "1", "1.0", "2.50", "-3", "1e1", "12345678901234567890.5", "0.1", "1e400")
STRINGS = ("x", "X", "", "é", "\U0001f600", "\uffee", "10", "9", "2026-01-01T00:00:00Z", "a<b&", 'say "a"')
TYPES = {
    "number": NUMBERS,
    "string": tuple(json.dumps(each, ensure_ascii=False) for each in STRINGS),
    "boolean": ("true", "false"),
    "odd": ("null", "null", '{"v": 1}', "[]", "[1, 2]", '["a", 1]', "[true, null]"),
}


def one_stream(random: Random) -> Stream:
    """Records whose values are mostly of a type of their own."""
    usual = {key: random.choice(("number", "number", "string", "boolean")) for key in "vw"}
    odd = random.choice((0.0, 0.0, 0.03, 0.3))
    clock = one_clock(random)
    items: list[str] = []
    time = 0
    for _ in range(random.randint(0, 60)):
        time += random.choice((0, 1, 2, 5, 12, -2))
        at = clock(Fraction(time))
        record = {"t": json.dumps(at) if ":" in at else at, "k": random.choice(('"a"', '"b"', "1", "true"))}
        for key, kind in usual.items():
            kind = random.choice((*TYPES, "number")) if random.random() < odd else kind
            if random.random() >= odd / 2:
                record[key] = random.choice(TYPES[kind])
        items.append("{" + ", ".join(f'"{key}": {value}' for key, value in record.items()) + "}")
    return Stream(items, random.choice(("0", "3")), time=random.choice((None, "t")), form="json")


def one_query(random: Random) -> str:
    """Windows, groups or sessions that are seen through extremes, and sums beside them."""
    variable = random.choice("wwo")
    paths = (f"${variable}.v", f"${variable}.v", f"non-null(${variable}.w)", f"${variable}.w", f"${variable}.v.v")
    calls = [f"{random.choice(('min', 'max', 'min', 'max', 'sum', 'count'))}({random.choice(paths)})" for _ in range(3)]
    size, step = random.choice(("1", "5", "20")), random.choice(("", "", " step 2", " step 7"))
    windows = [f"t diff {size}{step}", f"count {random.choice('137')}", "t diff 10"]
    windows += ["t gap 3", "t gap 4 by k"] if variable == "w" else []
    loop = f'for $w in stream("s")/r/i |{random.choice(windows)}| '
    if variable == "w":
        where = random.choice(("", "", f"where {calls[0]} > 1 or count($w) > 1 "))
        return f'{loop}{where}return <w a="{{ {calls[0]} }}">{{ {calls[1]}, {calls[2]} }}</w>'
    order = random.choice(("", "", f"order by {calls[1]} descending, $k ", f"let $m := {calls[2]} order by $m "))
    key = random.choice(("$o.k", "$o/k"))
    return f'{loop}for $o in $w group by $k := {key} {order}return <g k="{{ $k, {calls[0]} }}">{{ {calls[1]} }}</g>'


def is_the_law(name: str) -> None:
    """Compare one case; all of these queries are counted by panes."""
    random = Random(name)
    stream, query = one_stream(random), one_query(random)
    plan = stream.plan(query)
    assert plan is not None, query
    law = stream.by_law(query)
    text, found = stream.by_panes(query, plan, random)
    shown = f"case {name}\n{query}\n{stream}"
    assert text == law.text, shown
    # the reference does not know whose a value is that was looked up
    assert sorted((each.code, each.reason) for each in found.dead) == sorted(
        (each.code, each.reason) for each in law.dead
    ), shown
    assert list(dict.fromkeys(found.places)) == law.late, shown


@pytest.mark.parametrize("family", some(range(6)))
def test_extremes_by_panes_are_the_law(family: int) -> None:
    """However a stream is cut into ranges and epochs, and of whichever types its values are."""
    for number in some(range(25)):
        is_the_law(f"extremes {family} {number}")


def records(*values: str) -> Stream:
    """Records with these values, one in each unit of time."""
    return Stream([f'{{"t": {at}, "v": {value}}}' for at, value in enumerate(values)], form="json")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("10", "9.50", "9.5"), "<w>9.5 10</w>"),
        (('"10"', '"9"', "null", '"é"'), "<w>10 é</w>"),
        (("true", "null", "true"), "<w>true true</w>"),
        (("true", "false"), "<w>false true</w>"),
        (("null", "null"), "<w/>"),
        (('["b", "a"]', '"c"'), "<w>a c</w>"),
        (("1", '"2"'), ""),
        (('"1"', "true"), ""),
    ],
)
def test_the_type_of_an_extreme_is_that_of_its_values(values: tuple[str, ...], expected: str) -> None:
    """LAWS 2.1: numbers give a double, strings a string, booleans a boolean; `null` is left out, and a mix fails."""
    stream = records(*values)
    query = 'for $w in stream("s")/r/i |t diff 100| return <w>{ min($w.v), max($w.v) }</w>'
    plan = stream.plan(query)
    assert plan is not None
    assert {stream.by_panes(query, plan, Random(seed))[0] for seed in range(5)} == {expected}
    assert stream.by_law(query).text == expected


def test_a_mix_names_the_items_that_have_no_numbers() -> None:
    """LAWS 2.4: one dead letter, with the code of the law, that names the strings in whichever epochs they came."""
    stream = records("1", '"a"', "2", "3", '"b"', "null", "true")
    query = 'for $w in stream("s")/r/i |t diff 100| return <w>{ max($w.v) }</w>'
    plan = stream.plan(query)
    assert plan is not None
    for seed in range(5):
        _, found = stream.by_panes(query, plan, Random(seed))
        (letter,) = found.dead
        offsets = [letter.place.offset, *(place.offset for place, _ in letter.others)]
        lines = [stream.data[offset:].split(b"\n")[0].decode() for offset in offsets]
        assert letter.code == "FORG0006"
        assert lines == ['{"t": 1, "v": "a"}', '{"t": 4, "v": "b"}', '{"t": 6, "v": true}']


def test_strings_that_are_usual_are_counted_in_columns_and_named_as_the_others() -> None:
    """A window of strings is shown to nobody; where a number comes later, its dead letter names the first strings."""
    strings = [f'"s{number % 5}"' for number in range(30)]
    query = 'for $w in stream("s")/r/i |t diff 100| return <w>{ min($w.v), max($w.v) }</w>'
    stream = records(*strings)
    plan = stream.plan(query)
    assert plan is not None
    for seed in range(5):
        text, found = stream.by_panes(query, plan, Random(seed))
        assert (text, found.dead, found.shown) == ("<w>s0 s4</w>", [], 0)
        mixed = records(*strings, "1")
        _, found = mixed.by_panes(query, plan, Random(seed))
        (letter,) = found.dead
        assert (letter.code, letter.values, letter.place.offset) == ("FORG0006", 30, 0)
        lines = [mixed.data[place.offset :].split(b"\n")[0].decode() for place, _ in letter.others]
        assert lines == [f'{{"t": {at}, "v": "s{at % 5}"}}' for at in range(1, 10)]
