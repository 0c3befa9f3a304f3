"""Expressions over columns are what the law says they are, for random queries and items of every form and format."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from anabranch.columnar.items.query import CompiledQuery, compile_query
from anabranch.columnar.scan.look import Look
from anabranch.errors import QueryError
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.parse import parse_item
from columnar.expression_cases import PLAIN, STYLES, ItemMaker, Oddity, QueryMaker, Style, is_attribute
from columnar.streams import ItemQuery, Stream, item_queries
from mass import Mass

_ODDITIES = (PLAIN, Oddity(5, 2), Oddity(20, 8))


def stream_of(queries: dict[str, ItemQuery], style: Style) -> Stream:
    return Stream(queries, "json" if style == "json" else "lines", root="<r>")


def joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


# --- random queries ---------------------------------------------------------------------------------------


def random_query(random: Random, style: Style) -> tuple[str, ItemQuery]:
    """A query that passes the checks and answers item by item."""
    while True:
        text = QueryMaker(random, style).query(random.choice([1, 2, 2, 3]))
        try:
            return text, item_queries({"q": text})["q"]
        except (QueryError, AssertionError):
            continue


def check_case(number: int) -> None:
    """A few queries over a few dozen items: answers, dead letters, their order and counts are those of the law.

    They are fed twice, since more may be known of their look the second time.
    """
    random = Random(number)
    style = random.choice(STYLES)
    queries = dict(random_query(random, style) for _ in range(3))
    usual = ItemMaker(random, style, random.choice(_ODDITIES))
    unusual = ItemMaker(random, style, random.choice(_ODDITIES))
    data = joined([*(usual.line() for _ in range(20)), *(unusual.line() for _ in range(12))])
    stream = stream_of(queries, style)
    law = stream.by_law(data)
    answers = stream.answers()
    assert stream.by_columns([data], answers)[0] == law
    assert stream.by_columns([data], answers)[0] == law


def test_some_random_queries_are_answered_as_by_law() -> None:
    """The same cases each time."""
    for number in range(10_000, 10_200):
        check_case(number)


def test_random_queries_are_answered_as_by_law(mass: Mass) -> None:
    """Queries of all forms over items of all kinds."""
    for number in mass.cases(10_000):
        check_case(number)


# --- plain forms ------------------------------------------------------------------------------------------

FORMS = {
    "literal": "where {t} >= 20 return <a>{{ {name} }}</a>",
    "flipped": "where 20 < {t} return <a>{{ {name} }}</a>",
    "text literal": 'where {name} = "gold" return $p/d',
    "not equal": 'where {name} != "gold" and {t} != 20 return $p/d',
    "long literal": "where {id} < 1700000000000000000 return $p/d",
    "paths": "where {t} >= {u} return $p/d",
    "equal paths": "where {t} = {u} or {t} != {u} return $p/d",
    "computed": "where {t} * 2 - 1 >= {u} + 10 return $p/d",
    "arithmetic": "return <a>{{ ({t} - 32) * 5 div 9 }}</a>",
    "mod and minus": "return <a>{{ -{t} mod 7 }}</a>",
    "and or not": 'where ({t} > 20 and not({u} > 50)) or {name} = "gold" return $p/d',
    "if": 'return if ({t} > 20) then <hot>{{ string({t}) }}</hot> else <cold k="{{ {u} }}"/>',
    "if with values": 'return <a>{{ if ({t} > 20) then string({name}) else "none" }}</a>',
    "let": "let $x := {t} * 2 let $y := {u} where $x >= 40 return <a k='{{ $y }}'>{{ $x }}</a>",
    "unused let": "let $x := {t} * 2 return $p/d",
    "let of a condition": "let $x := {t} > 20 where $x return <a>{{ $x }}</a>",
    "some": "where some $v in {v} satisfies $v >= 50 return $p/d",
    "every": "where every $v in {v} satisfies $v >= 2 and $v < {t} return $p/d",
    "some of some": "where some $l in $p/line, $w in $l/w satisfies $w > 10 return $p/d",
    "lines": "where some $l in $p/line satisfies $l/{q} > 10 and $l/{sku} = 'gold' return $p/d",
    "exists": "where exists({o}) and empty({note}) return $p/d",
    "presence": "where {o} and $p/f/g return $p/f",
    "count": "where count($p/line) > 2 return <a>{{ count({v}) }}</a>",
    "aggregates": "where max({v}) > 2 return <a k='{{ avg({v}) }}' l='{{ median($p/line/{q}) }}'>{{ sum({v}) }}</a>",
    "aggregate of a loop": "return <a>{{ min(for $l in $p/line where $l/{q} > 2 return $l/{q} * 2) }}</a>",
    "repeated": "where {v} > 50 and $p/line/{q} != 3 return $p/d",
    "deep": "where $p//{h} > 20 return <a>{{ $p//g }}</a>",
    "any": "where $p/*/{t1} > 20 return <a>{{ $p/*/g }}</a>",
    "text node": "return <a>{{ for $l in $p/line return $l/w/text() }}</a>",
    "attributes": 'return <a k="{{ {t} }}" l="x{{ {t} * 2 }}y">{{ string({name}) }}<b/></a>',
    "nested for": "return <a>{{ for $l in $p/line return <l>{{ string($l/{q}) }}{{ $l/w }}</l> }}</a>",
    "nested for where": "return <a>{{ for $l in $p/line where $l/{q} > {t} return <l k='{{ $l/{sku} }}'/> }}</a>",
    "for of for": "return <a>{{ for $l in $p/line, $w in $l/w where $w > 5 return <l>{{ $w * 2 }}</l> }}</a>",
    "for with let": "return <a>{{ for $l in $p/line let $x := $l/{q} * 2 where $x > 9 return <l>{{ $x }}</l> }}</a>",
    "copies": "return ($p/d, $p/line, <e/>, $p)",
    "string": "return <a>{{ string({t} * 2) }}</a>",
    "number": "where number({name}) > 5 return $p/d",
    "concat": 'return <a>{{ concat({name}, "-", {t}, {t} > 5) }}</a>',
    "contains": 'where contains({name}, "old") return $p/d',
    "starts-with": 'where starts-with({name}, "go") return $p/d',
    "ends-with": 'where ends-with({name}, "d") return $p/d',
    "substring": "where substring({name}, 1, 4) = 'gold' and string-length({name}) > 3 return $p/d",
    "substring-before": "return <a>{{ substring-before({name}, 'l') }}{{ substring-after({name}, 'l') }}</a>",
    "normalize-space": "return <a>{{ normalize-space({name}) }}</a>",
    "case": "return <a k='{{ upper-case({name}) }}'>{{ lower-case({name}) }}</a>",
    "translate": "return <a>{{ translate({name}, 'go', 'x') }}</a>",
    "rounding": "return <a>{{ round({t}) }}<b/>{{ floor({t}) }}<b/>{{ ceiling({t}) }}<b/>{{ abs({t}) }}</a>",
}


def form_query(name: str, style: Style) -> str:
    """A query of a form, over items of a style."""

    def at(field: str) -> str:
        return f"@{field}" if is_attribute(style, field) else field

    paths = {field: f"$p/{at(field)}" for field in ("id", "name", "o", "note")}
    paths |= {
        "t": f"$p/d/{at('t')}",
        "u": f"$p/d/{at('u')}",
        "h": at("h"),
        "t1": at("t"),
        "q": at("q"),
        "sku": at("sku"),
    }
    paths["v"] = "$p/v/@x" if style == "attributes" else "$p/v"
    form = FORMS[name]
    return f'for $p in stream("s")/r/{"item" if style == "json" else "p"} ' + form.format(**paths)


def look_of_lines(lines: Sequence[str], style: Style) -> Look:
    """The look of items in lines."""
    found = []
    for line in lines:
        if style != "json":
            found.append((line.encode(), parse_item(line.encode(), Limits())))
            continue
        element = parse_line(line.encode(), Place("", "", 0), Limits(), "item")
        assert isinstance(element, Item)
        found.append((line.encode(), element.tree))
    look = Look.learn(found, is_json=style == "json")
    assert look is not None
    return look


@pytest.mark.parametrize("style", STYLES)
def test_plain_forms_go_through_columns(style: Style) -> None:
    """Each form compiles, and where items are plain, the parser reads next to none and the answer is the law's."""
    maker = ItemMaker(Random(5), style, PLAIN)
    lines = [maker.line() for _ in range(60)]
    look = look_of_lines(lines[:20], style)
    for name in FORMS:
        queries = item_queries({name: form_query(name, style)})
        hole = queries[name].plain_hole
        assert hole is not None
        found = compile_query(hole, "r", look)
        assert isinstance(found, CompiledQuery), (name, found)
        stream = stream_of(queries, style)
        answered, read = stream.by_columns([joined(lines)])
        assert answered == stream.by_law(joined(lines)), name
        assert read <= 1, (name, read)
