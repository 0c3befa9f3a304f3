"""Forms of everyday queries, each of which compiles to columns, and is answered as the law answers it."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.columnar.items.query import CompiledQuery, compile_query
from columnar.expression_cases import PLAIN, ItemMaker, Style
from columnar.random_cases import ODDITIES
from columnar.streams import ItemQuery, check_by_law, item_queries
from columnar.test_expressions import joined, look_of_lines, stream_of
from mass import Mass, some

STYLES: tuple[Style, ...] = ("elements", "json")

LOOPS = """
return <a>{ for $v at $i in $p/v return <b n='{ $i }'>{ $v }</b> }</a>
return <a>{ for $v at $i in $p/v where $i > 1 return string($v) }</a>
return <a>{ for $v in $p/v count $i return <b n='{ $i }'>{ $v }</b> }</a>
return <a>{ for $v in $p/v where $v > 20 count $i return <b n='{ $i }'>{ $v }</b> }</a>
return <a>{ for $v in $p/v let $w := $v * 2 where $w > 20 count $i where $i != 2 return <b n='{ $i }'>{ $w }</b> }</a>
return <a>{ for $l at $i in $p/line where $l/q > 3 order by $l/q return <b n='{ $i }'>{ $l }</b> }</a>
return <a>{ for $l at $i in $p/line return for $w at $j in $l/w return <b n='{ $i }' m='{ $j }'>{ $w }</b> }</a>
return <a>{ for $l at $i in $p/line for $w at $j in $l/w return <b n='{ $i }' m='{ $j }'>{ $w }</b> }</a>
return <a>{ for $w at $i in $p/line/w return <b n='{ $i }'>{ $w }</b> }</a>
return <a>{ for $l at $i in $p/line[q > 5] return <b n='{ $i }'>{ $l/sku }</b> }</a>
return <a>{ for $o at $i in $p/o return <b n='{ $i }'>{ $o }</b> }</a>
return <a>{ sum(for $v at $i in $p/v return $v * $i) }</a>
for $v at $i in $p/v return <b n='{ $i }'>{ $v }</b>
for $l in $p/line where $l/q > 3 for $w at $i in $l/w return <b n='{ $i }'>{ $w }</b>
for $l in $p/line where $l/q > 3 where $l/w > 2 let $x := $l/sku where $x != '' return <b>{ $x }</b>
return <a>{ for $v in ($p/v, $p/o) return <b>{ $v }</b> }</a>
return <a>{ for $v in ($p/v, $p/o, 5, 'x') return <b>{ $v }</b> }</a>
return <a>{ for $i in 1 to 3 return <b>{ $i }</b> }</a>
return <a>{ for $i in 1 to 3 return $p/v[$i] }</a>
return <a>{ for $i in (1, 5), $j in (2, 3) return <b>{ $i * $j }</b> }</a>
for $i in 1 to 2 return <b n='{ $i }'>{ $p/d }</b>
where some $x in ($p/v, $p/d/t) satisfies $x > 50 return $p/name
where every $x in ($p/v, $p/d/t) satisfies $x > 5 return $p/name
where some $x in (1, 2, 20) satisfies $p/d/t < $x return $p/name
where every $x in 1 to 3, $y in $p/v satisfies $x < $y return $p/name
"""

FUNCTIONS = """
let $f := function($x) { $x * 2 } return <a>{ $f($p/d/t) }</a>
let $f := function($x, $y) { $x + $y } where $f($p/d/t, 2) > 5 return <a>{ $f(1, $f(2, $p/d/u)) }</a>
let $f := function($x) { $x + $p/d/t } let $g := function($x) { $f($x) * $f($x) } return <a>{ $g($p/d/u) }</a>
let $g := function($k, $x) { $k($x) + 1 } return <a>{ $g(function($x) { $x * 2 }, $p/d/t) }</a>
return <a>{ function($x) { $x * 2 }($p/d/t) }</a>
"""

PATHS = """
return <a>{ $p/(name, o) }</a>
return <a>{ $p/d/(t, u) }</a>
return <a>{ $p/(name | o) }</a>
return <a>{ $p/(name, line/w, o) }</a>
return <a>{ $p/line/(w, q) }</a>
return <a>{ count($p/(name, o)), sum($p/d/(t, u)) }</a>
return <a>{ for $l in $p/line return <b>{ $l/(q, w) }</b> }</a>
"""

FORMS = [each for form in (LOOPS, FUNCTIONS, PATHS) for each in form.strip().splitlines()]

LEFT_TO_THE_LAW = """
let $g := function($k) { for $y in $p/v return $k(function($x) { $x + $y }) }
 return <a>{ $g(function($f) { $g(function($h) { $f(1) + $h(1) }) }) }</a>
return <a>{ for $v at $i in ($p/v, $p/o) return <b n='{ $i }'>{ $v }</b> }</a>
return <a>{ for $v in $p/v order by $v count $i return <b n='{ $i }'>{ $v }</b> }</a>
let $f := function($g) { $g($g) } return <a>{ $f($f) }</a>
"""
"""What would be answered wrongly, or never, if it were rewritten as other queries are."""


def queries_of(forms: list[str], style: Style) -> dict[str, ItemQuery]:
    items = 'for $p in stream("s")/r/' + ("item" if style == "json" else "p")
    return item_queries({each: f"{items} {each}" for each in forms})


@pytest.mark.parametrize("style", STYLES)
def test_each_form_compiles(style: Style) -> None:
    """No form is left to the law as a whole."""
    maker = ItemMaker(Random(5), style, PLAIN)
    look = look_of_lines([maker.line() for _ in range(20)], style)
    for name, query in queries_of(FORMS, style).items():
        found = compile_query(query.expanded_hole, "r", look)
        assert isinstance(found, CompiledQuery), (name, found)


def check_forms(number: int, forms: list[str]) -> None:
    """Some forms over a few dozen items of any kind are answered as by law."""
    random = Random(number)
    style = random.choice(STYLES)
    maker = ItemMaker(random, style, random.choice(ODDITIES))
    data = joined([maker.line() for _ in range(40)])
    check_by_law(stream_of(queries_of(random.sample(forms, min(8, len(forms))), style), style), data, random)


@pytest.mark.mass
@pytest.mark.parametrize("number", some(range(20)))
def test_some_forms_are_answered_as_by_law(number: int) -> None:
    """The same cases each time."""
    check_forms(number, FORMS)


def test_forms_are_answered_as_by_law(mass: Mass) -> None:
    """Very many of them."""
    for number in mass.cases(5_000):
        check_forms(number, FORMS)


@pytest.mark.mass
@pytest.mark.parametrize("style", STYLES)
def test_what_cannot_be_rewritten_is_answered_by_the_law(style: Style) -> None:
    """Such a query is answered all the same; a function that calls itself without end is an error of each item."""
    forms = LEFT_TO_THE_LAW.strip().replace("\n return", " return").splitlines()
    maker = ItemMaker(Random(7), style, PLAIN)
    check_by_law(stream_of(queries_of(forms, style), style), joined([maker.line() for _ in range(20)]), Random(7))
