"""Expressions over columns are what the law says they are, for random queries and items of every form and format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from xml.sax.saxutils import escape

import pytest

from anabranch.columnar.items.query import CompiledQuery, compile_query
from anabranch.columnar.scan.look import Look
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.parse import parse_item
from columnar.expression_cases import PLAIN, STYLES, ItemMaker, Style, is_attribute
from columnar.random_cases import ODDITIES, Shares, random_lines, random_query
from columnar.streams import ItemQuery, Stream, check_by_law, item_queries
from mass import Mass, some


def stream_of(queries: dict[str, ItemQuery], style: Style) -> Stream:
    return Stream(queries, "json" if style == "json" else "lines", root="<r>")


def joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


# --- random queries ---------------------------------------------------------------------------------------


def check_case(number: int, shares: Shares) -> None:
    """A few queries over a few dozen items are answered as by law."""
    random = Random(number)
    style = random.choice(STYLES)
    queries = dict(random_query(random, style) for _ in range(3))
    lines, unusual = random_lines(random, style)
    if random.randrange(4) == 0:  # kinds of events that have nothing in common
        lines = [each for line in lines for each in (line, unusual.event()) if each is line or random.randrange(2)]
    is_document = style != "json" and random.randrange(4) == 0
    stream = Stream(queries, "document" if is_document else "json" if style == "json" else "lines", root="<r>")
    data = b"<r>" + joined(lines) + b"</r>" if is_document else joined(lines)
    shares.cover(stream, *check_by_law(stream, data, random))


@pytest.mark.mass
def test_some_random_queries_are_answered_as_by_law() -> None:
    """The same cases each time."""
    shares = Shares()
    for number in range(10_000, 10_016):
        check_case(number, shares)
    shares.check()


def test_random_queries_are_answered_as_by_law(mass: Mass) -> None:
    """Queries of all forms over items of all kinds."""
    shares = Shares()
    for number in mass.cases(10_000):
        check_case(number, shares)
    if mass.done >= 100:  # of few cases nothing is certain
        shares.check()


# --- corners ----------------------------------------------------------------------------------------------

CORNERS = {
    "predicates behind each other": "return <a>{ $p/v[. > 5][. < 60] }</a>",
    "a predicate that fails": "where $p/line[q > 3]/sku = 'gold' return $p/d",
    "a predicate that fails, in a let": "let $x := $p/line[q * 2 > 3] return <a/>",
    "a predicate on what is missing": "return <a>{ $p/f[not(g)]/h, $p/o[. = 1]/.. }</a>",
    "a predicate with what is around": "return <a>{ for $l in $p/line return $l/w[. > $l/q] }</a>",
    "the sum of nothing": "return <a>{ sum($p/v) }</a>",
    "computing with the sum of nothing": "return <a>{ sum($p/v) + 1000000, sum($p/v) * 1.5 }</a>",
    "dividing by the sum of nothing": "return <a>{ 5 div sum($p/v) }</a>",
    "exact sums": "return <a>{ sum($p/v), avg($p/v), sum($p/line/w), avg($p/line/w) }</a>",
    "medians": "return <a>{ median($p/v), median($p/line/w), median(($p/v, $p/d/t)) }</a>",
    "medians of doubles": "return <a>{ median(for $v in $p/v return $v * 0.1), median(($p/d/t * 3, $p/d/u * 1)) }</a>",
    "standard deviations": "return <a>{ stddev($p/v), stddev($p/line/w), stddev(($p/v, $p/d/t, 2)) }</a>",
    "standard deviations of doubles": "return <a>{ stddev(for $v in $p/v return $v * 0.1), stddev($p/d/t * 2) }</a>",
    "distinct values": "return <a k='{ distinct-values($p/line/sku) }'>{ count(distinct-values($p/line/w)) }</a>",
    "distinct values of some": "where count(distinct-values($p/line[q > 5]/sku)) > 1 return <a>{ $p/d }</a>",
    "distinct values in rows": "for $l in $p/line return <a>{ distinct-values($l/w), count(distinct-values($l)) }</a>",
    "distinct numbers": "return <a>{ distinct-values(for $v in $p/v return $v * 1) }</a>",
    "distinct values of several parts": "return <a>{ distinct-values(($p/v, $p/o)) }</a>",
    "in order": "return <a>{ for $v in $p/v order by $v return $v }</a>",
    "in descending order": "return <a>{ for $v in $p/v order by $v descending return $v }</a>",
    "in order of texts": "return <a>{ for $l in $p/line order by string($l/sku), $l/q descending return $l/q }</a>",
    "in order of what is computed": "return <a>{ for $l in $p/line let $n := count($l/w) where $l/q > 3"
    " order by $n descending, $l/q * 2, $l/q > 10 return <l k='{ $n }'>{ $l/sku }</l> }</a>",
    "in order of several": "return <a>{ for $l in $p/line order by $l/w return $l/q }</a>",
    "values in order": "return <a>{ for $v in $p/v order by $v return $v * 2 }</a>",
    "one in order": "return <a>{ for $d in $p/d order by $d/t * 1 return $d }</a>",
    "large sums": "return <a>{ sum(for $v in $p/v return $v * 1e14), avg(($p/v, 999999999999999, 1)) }</a>",
    "sums of doubles": "return <a>{ sum(for $v in $p/v return $v * 0.1), avg(for $v in $p/v return $v div 3) }</a>",
    "extremes": "return <a k='{ min($p/v) }' l='{ max($p/line/w) }'>{ max(($p/d/t, $p/d/u)) }</a>",
    "extremes of doubles and decimals": "return <a>{ max((2.5e-1, $p/d/t)), min(($p/v, $p/d/u * 1, 3)) }</a>",
    "zeros": "return <a>{ max($p/v[. = 0]), min(($p/d/t[. = 0], 0)) }</a>",
    "counts": "return <a>{ count($p/*), count($p//w), count($p/o), count($p/line[w]) }</a>",
    "in a list": "where $p/name = ('gold', 'iron') or $p/d/t = (5, 12, 60) or $p/v = (1, '7') return $p/d",
    "not in a list": "where not($p/name = ('gold', 'iron')) and $p/d/t != (5, 5) return $p/d",
    "less than one of a list": "where $p/d/t < (5, 20) and ('gold', 'h') >= $p/name return $p/d",
    "a list of paths": "where ($p/d/t, $p/v, $p/line/q) = 12 return $p/d",
    "texts joined": "return <a>{ string-join($p/v, ', '), string-join(($p/line/sku, 'x'), '&lt;') }</a>",
    "several values": "return <a k='{ $p/v }'>{ $p/d/t * 2, $p/name, 'a &amp; b', $p/line/q * 1 }</a>",
    "values of rounds": "return <a>{ for $l in $p/line return string($l/sku) }</a>",
    "values of rounds with a condition": "return <a>{ for $v in $p/v where $v > 5 return $v + 1 }</a>",
    "values beside nodes": "return <a>{ ($p/o, 1), 2, if ($p/o) then $p/o else 'x', ($p/d, (3, $p/f)) }</a>",
    "rounds of values and nodes": "return <a>{ for $l in $p/line return if ($l/w) then $l/w else 'none' }</a>",
    "all parts in order": "return <a>{ $p/* }{ $p//w }{ $p/line/* }</a>",
    "names": "return <a>{ name($p/d), local-name($p), name($p/o) }</a>",
    "texts of the query": "return <a k='{ if ($p/o) then '&lt;' else 'b' }'>{ concat('&lt;', $p/name, '&amp;') }</a>",
    "case beyond ASCII": "return <a>{ upper-case($p/name), lower-case($p/note), translate($p/name, 'é', 'e') }</a>",
    "nodes that are chosen": "let $x := if ($p/o) then $p/o else $p/name return <a k='{ $x }'>{ $x, $x/text() }</a>",
    "values of chosen nodes": "let $x := if ($p/o) then $p/o else $p/d/t where $x > 5 return <a>{ $x * 2 }</a>",
    "counts of chosen nodes": "let $x := if ($p/o) then $p/o else $p/d/t return <a>{ count($x), exists($x) }</a>",
    "whether there are chosen nodes": "let $x := if ($p/o) then $p/f else $p/name where $x return <a/>",
    "the truth of a choice": "where not(if ($p/f) then $p/note else 0) return <a/>",
    "chosen rows": "for $l in $p/line let $x := if ($l/q > 5) then $l/w else $l/sku where $x return <a>{ $x }</a>",
    "positions behind predicates": "return <a>{ $p/line[q > 3][2], $p/v[. > 5][last()], $p/line[w][last() - 1] }</a>",
    "positions through": "return <a>{ ($p/line/w)[3], ($p/v)[last()], ($p/line)[2]/w[1], ($p/line/q)[2] }</a>",
    "positions of one": "return <a>{ $p/d[1]/t[last()], $p/d[2], $p/o[position() = 1], $p/f/g[last() > 1] }</a>",
    "positions of several parts": "return <a>{ $p/*[2], $p//w[1], ($p/v, $p/o)[2], $p/line/*[1] }</a>",
    "positions in rows": "for $l in $p/line[position() < 3] return <a>{ $l/w[2], $l[1]/q, $l/w[last()] }</a>",
    "positions that are computed": "return <a>{ $p/v[count($p/line)], $p/v[$p/d/t], $p/v[. * 1], $p/line[q] }</a>",
    "positions of what is computed with": "return <a>{ $p/v[1] * 2, string($p/line[last()]/sku) }</a>",
    "parts of what is around": "return <a>{ for $l in $p/line return <l n='{ count($l/w) }' m='{ $p/d/t }'/> }</a>",
}


@pytest.mark.mass
@pytest.mark.parametrize("style", some(["elements", "json"]))
def test_corners_are_answered_as_by_law(style: Style) -> None:
    """Where columns and law could part ways."""
    for oddity in ODDITIES:
        check_corners(style, ItemMaker(Random(3), style, oddity), 16)


def test_corners_of_many_items_are_answered_as_by_law(mass: Mass) -> None:
    """The same for many items of any kind."""
    for number in mass.cases(100):
        random = Random(number)
        style = random.choice(STYLES[::3])
        check_corners(style, ItemMaker(random, style, random.choice(ODDITIES)), 150)


def check_corners(style: Style, maker: ItemMaker, count: int) -> None:
    """The corners over so many items are answered as by law."""
    texts = {
        name: text if text.startswith("stream") else f'for $p in stream("s")/r/p {text}'
        for name, text in CORNERS.items()
    }
    if style == "json":
        texts = {name: text.replace("/r/p", "/r/item") for name, text in texts.items()}
    data = joined([maker.line() for _ in range(count)])
    stream = stream_of(item_queries(texts), style)
    answers = stream.answers()
    stream.by_columns([data], answers)
    found, _ = stream.by_columns([data], answers)
    law = stream.by_law(data)
    for name in texts:
        assert found.texts[name] == law.texts[name], name
    assert found == law


@pytest.mark.mass
def test_texts_that_must_be_escaped_are_copied_in_columns() -> None:
    """An item with references or escapes in it is the law's only for queries that take it and such a text."""
    queries = {
        "copies": 'for $p in stream("s")/r/item where $p/t >= 20 return <a>{ $p/name, $p/t }</a>',
        "looks": 'for $p in stream("s")/r/item where contains($p/name, "&amp;") return <a k="{ $p/name }"/>',
    }
    odd = ["a & b", 'say "a"', "a\nb\tc", "<&>", "plain"]
    records = [{"t": number, "name": odd[number % 5]} for number in range(1_000)]
    xml = [f"<item><t>{each['t']}</t><name>{escape(str(each['name']))}</name></item>" for each in records]
    document = "<r>" + "".join(xml) + "</r>"
    for form, data in (("json", joined(list(map(json.dumps, records)))), ("document", document.encode())):
        for name in queries:
            stream = Stream(item_queries({name: queries[name]}), "json" if form == "json" else "document", root="<r>")
            found, read = stream.by_columns([data])
            assert found == stream.by_law(data)
            assert read <= 50 if name == "copies" else 400 <= read <= 450, (form, name, read)


def test_an_empty_element_behind_another_is_where_it_is() -> None:
    """The usual item has an empty element whose text is looked at, behind one that is not."""
    line = "<p><name>gold</name><o/><f>1</f></p>"
    stream = stream_of(
        item_queries({"q": 'for $p in stream("s")/r/p where $p/o = "" return <a>{ $p/f }</a>'}), "elements"
    )
    found, read = stream.by_columns([joined([line] * 40)])
    assert found == stream.by_law(joined([line] * 40))
    assert found.counts == {"q": 40}
    assert read == 0


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
    "spread": "where stddev({v}) > 2 return <a k='{{ stddev($p/line/{q}) }}'/>",
    "distinct": "where count(distinct-values($p/line/{sku})) > 1 return <a>{{ distinct-values({v}) }}</a>",
    "aggregate of a loop": "return <a>{{ min(for $l in $p/line where $l/{q} > 2 return $l/{q} * 2) }}</a>",
    "repeated": "where {v} > 50 and $p/line/{q} != 3 return $p/d",
    "deep": "where $p//{h} > 20 return <a>{{ $p//g }}</a>",
    "any": "where $p/*/{t1} > 20 return <a>{{ $p/*/g }}</a>",
    "text node": "return <a>{{ for $l in $p/line return $l/w/text() }}</a>",
    "attributes": 'return <a k="{{ {t} }}" l="x{{ {t} * 2 }}y">{{ string({name}) }}<b/></a>',
    "nested for": "return <a>{{ for $l in $p/line return <l>{{ string($l/{q}) }}{{ $l/w }}</l> }}</a>",
    "nested for where": "return <a>{{ for $l in $p/line where $l/{q} > {t} return <l k='{{ $l/{sku} }}'/> }}</a>",
    "for of for": "return <a>{{ for $l in $p/line, $w in $l/w where $w > 5 return <l>{{ $w * 2 }}</l> }}</a>",
    "for in order": "return <a>{{ for $l in $p/line order by $l/{q} descending return <l>{{ $l/{sku} }}</l> }}</a>",
    "for with let": "return <a>{{ for $l in $p/line let $x := $l/{q} * 2 where $x > 9 return <l>{{ $x }}</l> }}</a>",
    "copies": "return ($p/d, $p/line, <e/>, $p)",
    "positions": "where $p/line[1]/{q} > 2 return <a k='{{ $p/line[last()]/{sku} }}'>{{ $p/line[2] }}</a>",
    "positions in parts": "where count($p/line/w[1]) > 1 return <a>{{ $p/line/w[last()], $p/line[w][2] }}</a>",
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


@pytest.mark.mass
@pytest.mark.parametrize("style", some(STYLES))
def test_plain_forms_go_through_columns(style: Style) -> None:
    """Each form compiles, and where items are plain, the parser reads next to none and the answer is the law's.

    An item of JSON as it is, beside elements, is an error in each item (LAWS 7.3), which the law tells.
    """
    maker = ItemMaker(Random(5), style, PLAIN)
    lines = [maker.line() for _ in range(60)]
    look = look_of_lines(lines[:20], style)
    for name in FORMS:
        queries = item_queries({name: form_query(name, style)})
        hole = queries[name].expanded_hole
        assert hole is not None
        found = compile_query(hole, "r", look)
        is_mixed = style == "json" and name == "copies"
        assert isinstance(found, CompiledQuery) != is_mixed, (name, found)
        stream = stream_of(queries, style)
        answered, read = stream.by_columns([joined(lines)])
        assert answered == stream.by_law(joined(lines)), name
        assert read <= 1 or is_mixed, (name, read)
