"""Forms of everyday queries, each of which compiles to columns, and is answered as the law answers it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from anabranch.columnar.items.query import CompiledQuery, compile_query
from anabranch.columnar.match import condition
from anabranch.columnar.match.condition import PatternTest
from anabranch.columnar.match.indexable import indexable
from columnar.expression_cases import PLAIN, ItemMaker, Style
from columnar.lookup_cases import RecordMaker
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

VALUES = """
return <a>{ zero-or-one($p/o) }</a>
return <a>{ exactly-one($p/name) }</a>
return <a>{ exactly-one($p/o) }</a>
return <a>{ one-or-more($p/v) }</a>
return <a>{ zero-or-one($p/v) }</a>
return <a>{ exactly-one($p/name) = 'gold' }</a>
where zero-or-one($p/o) > 3 return $p/d
return <a>{ count(one-or-more($p/v)), sum(one-or-more($p/line/w)) }</a>
return <a>{ exactly-one(string($p/name)), zero-or-one($p/d/t * 2) }</a>
return <a>{ reverse($p/v) }</a>
return <a>{ reverse($p/line) }</a>
return <a>{ reverse($p/line[q > 5]/w) }</a>
return <a>{ string-join(reverse($p/v), ','), count(reverse($p/v)) }</a>
return <a>{ reverse(for $v in $p/v return $v * 2) }</a>
return <a>{ reverse(distinct-values($p/line/sku)) }</a>
return <a>{ index-of($p/v, '5') }</a>
return <a>{ index-of($p/line/sku, 'gold'), index-of($p/v, 5) }</a>
where exists(index-of($p/line/sku, 'gold')) return $p/d
where index-of($p/line/sku, 'gold') = 2 return $p/d
return <a>{ ($p/note, $p/name)[1] }</a>
return <a>{ ($p/note, $p/name, 'none')[1] }</a>
return <a>{ string(($p/note, $p/name)[1]), upper-case(($p/note, $p/name)[1]) }</a>
where ($p/note, $p/name)[1] = 'gold' return $p/d
return <a>{ ($p/o, $p/d/t)[1] * 2 }</a>
return <a>{ ($p/o, 0)[1] }</a>
return <a>{ ($p/d/t * 2, 0)[1] }</a>
return <a>{ sum(for $v in $p/line return string-length($v/sku)) }</a>
return <a>{ sum((1, 2, count($p/v))), sum((1, 2)) * 2.5 }</a>
return <a>{ sum(for $v in $p/v return 1) div 2, sum(for $v in $p/v return 1) + 0.5 }</a>
where sum(for $l in $p/line return count($l/w)) > 3 return $p/name
return <a>{ max(for $v in $p/v return string-length($v)) }</a>
return <a>{ max(for $v in $p/line return string($v/sku)) }</a>
return <a>{ for $x in distinct-values($p/line/sku) return <b>{ $x }</b> }</a>
return <a>{ for $x in distinct-values($p/line/sku) return <b n='{ string-length($x) }'>{ $x }</b> }</a>
return <a>{ for $x at $i in distinct-values($p/line/sku) return <b n='{ $i }'>{ $x }</b> }</a>
return <a>{ for $x in distinct-values($p/line/sku) order by $x return <b>{ $x }</b> }</a>
return <a>{ for $x in distinct-values($p/v) where $x > 5 return $x * 2 }</a>
return <a>{ for $i in 1 to 3 where $p/d/t > $i return $i * 2 }</a>
for $x in distinct-values($p/line/sku) return <b>{ $x }</b>
let $x := <b>{ $p/d/t }</b> return <a>{ $x, $x }</a>
let $x := <b>{ $p/d/t * 2 }</b> return <a/>
let $x := <b k='{ $p/name }'><c/>{ $p/v }</b> return if ($p/o) then $x else <c>{ $x }</c>
let $x := ($p/name, $p/o) return <a>{ $x }</a>
let $x := ($p/d/t, $p/d/u) return <a>{ sum($x), count($x) }</a>
let $x := ($p/d/t, $p/d/u) where $x > 50 return <a>{ $x }</a>
let $x := for $v in $p/v return $v * 2 return <a>{ sum($x) }</a>
let $x := for $v in $p/v where $v > 20 return $v where exists($x) return <a>{ $x }</a>
let $x := for $l in $p/line return $l/q let $y := sum($x) return <a>{ $y, max($x) }</a>
let $x := () return <a>{ $x }</a>
let $x := distinct-values($p/line/sku) return <a>{ count($x) }</a>
let $x := distinct-values($p/line/sku) for $s in $x return <a>{ $s }</a>
let $f := function($x) { <b>{ $x }</b> } return <a>{ $f($p/name), $f(($p/v, $p/o)) }</a>
let $x := $p/v[. > 5] return <a>{ count($x) }{ $x }</a>
return <a>{ for $v in $p/v order by $v return $v * 2 }</a>
return <a>{ for $l in $p/line let $w := $l/q * 2 order by $w descending return $w }</a>
return <a k='{ for $v in $p/v order by $v return $v }'/>
return <a>{ string-join(for $l in $p/line order by $l/q return $l/sku, ';') }</a>
return <a>{ for $l in $p/line order by $l/q return $l/w }</a>
return <a>{ sum(for $l in $p/line order by $l/q return $l/q) }</a>
return <a>{ $p/d/t/../u }</a>
where $p/d/t/../u > 3 return $p/name
return <a>{ $p/line/w/../q }</a>
return <a>{ $p/line/w[. > 5]/../q }</a>
return <a>{ $p/line/sku[. = 'gold']/.. }</a>
return <a>{ $p/*/self::d }</a>
return <a>{ $p/line/*/self::sku, $p/d/self::d, $p/d/self::x }</a>
where exists($p/*[self::d or self::o]) return $p/name
return <a>{ $p/v[1] * 2 }</a>
return <a>{ string($p/v[1]), string-length($p/line[last()]/sku) }</a>
where $p/v[1] > 3 return <a/>
where $p/v[last()] = $p/d/t return <a/>
where $p/v[1] >= 3 and $p/v[1] <= 7 return <a/>
where $p/line[last()]/q > 2 and not($p/line[1]/w[1] < 4) return $p/d
where contains($p/line[1]/sku, 'g') return <a>{ $p/v[2] + $p/v[1] }</a>
return <a>{ for $l in $p/line return <b k='{ $l/w[1] }'>{ $l/w[1] * 2 }</b> }</a>
return <a>{ $p/line[q > 5][1]/q * 2, ($p/line)[2]/w[1] + 1 }</a>
return <a>{ $p/element() }</a>
let $x := $p/v return <a>{ for $y in $x order by $y return $y }</a>
"""

STEPS_UP = """
return <a>{ $p/v/.. }</a>
return <a>{ for $l in $p/line return <b>{ $l/../name, $l/q }</b> }</a>
return <a>{ for $w in $p/line/w return <b>{ $w/../sku, $w/../../name }</b> }</a>
return <a>{ $p/o/parent::p, $p/o/parent::q, $p/name/parent::* }</a>
"""
"""Over JSON they would lead to items, which are XML then (LAWS 7.3)."""

OBJECTS = """
return array { $o.tags[] }
return { "t": array { $o.tags[] } }
return { "t": array { $o.scores[] }, "u": $o.id }
return { "t": array { for $l in $o.lines[] return $l.sku } }
return { "t": array { for $l in $o.lines[] return { "s": $l.sku, "t": $l.tags } } }
return { "t": array { for $l in $o.lines[] where $l.qty > 5 return $l } }
return { "t": array { $o.lines[] } }
return { "t": array { $o.id, $o.name } }
return { "t": array { $o.note, 5, 'x' } }
return { "t": array { } }
return { "t": array { $o.name } }
return { "t": array { $o.customer } }
return { "t": array { $o.customer.country, $o.customer.address } }
return $o.tags[]
return $o.lines[]
return $o.lines[].sku
return $o.lines[].tags
return { "i": $o }
return [ $o ]
return { "i": $o, "x": $o.id }
return array { $o }
return { "i": array { for $l in $o.lines[] return { "o": $o, "s": $l.sku } } }
for $l in $o.lines[] return { "i": $o, "l": $l }
return array { $o.tags[][1] }
return { "x": $o.tags[][1] }
return { "x": $o.tags[][last()], "y": $o.scores[][2] }
return { "x": $o.lines[][1].sku, "y": count($o.tags[][position() > 1]) }
return { "x": $o.tags(1) }
return { "x": $o.scores(2), "y": $o.id }
where $o.tags[][1] = 'gold' return $o.id
where $o.scores[][1] > 5 return $o.id
where $o.tags(1) = 'gold' return $o.id
let $x := { "a": $o.id } return $x
let $x := { "a": $o.amount * 2 } return { "b": 1 }
let $x := { "a": $o.id } return { "x": $x, "y": $x }
let $x := [ $o.id, 2 ] return { "x": $x }
let $t := $o.tags[] return { "n": count($t) }
let $t := $o.lines[].sku return { "n": array { $t } }
let $t := for $l in $o.lines[] return { "s": $l.sku } return { "n": array { $t } }
let $t := ($o.id, $o.tags[]) return { "n": array { $t }, "c": count($t) }
return { "s": sum(for $l in $o.lines[] return string-length($l.sku)) }
return { "s": max($o.tags[]) }
return { "s": min($o.tags[]), "c": count($o.tags[]) }
return { "s": max($o.scores[]), "t": min(for $l in $o.lines[] return $l.sku) }
return { "s": array { reverse($o.tags[]) } }
return { "s": array { distinct-values($o.tags[]) } }
for $t at $i in $o.tags[] return { "t": $t, "i": $i }
for $t in distinct-values($o.tags[]) return { "t": $t }
for $i in 1 to 2 return { "i": $i, "t": $o.tags[][1] }
let $f := function($x) { $x * 2 } return { "k": $f($o.amount) }
let $f := function($x) { { "v": $x } } return { "k": $f($o.amount), "l": $f($o.tags) }
let $f := function($x) { { "v": $x.sku } } return { "k": array { for $l in $o.lines[] return $f($l) } }
return { "a": array { for $t in $o.tags[] order by $t return $t } }
return { "a": array { for $l in $o.lines[] order by $l.qty return $l.sku } }
return { "a": array { for $l in $o.lines[] order by $l.qty descending return { "s": $l.sku } } }
return { "a": array { $o.scores[], 5 } }
return { "a": array { 1 to 3 } }
return { "a": array { for $s in $o.scores[] return $s * 2 } }
return { "a": array { for $s in $o.scores[] where $s > 5 return $s } }
return ($o.id, $o.tags[])
return { "a": array { if ($o.ok) then $o.tags[] else 'none' } }
return { "a": array { $o.lines[].tags[] } }
return { "a": array { for $l in $o.lines[] return [ $l.sku, 1 ] } }
return { "a": array { non-null($o.tags[]) } }
return { "c": count($o.tags[][not(. = 'gold')]), "d": count($o.tags[][exists(.)]) }
return { "c": exists($o.tags[][. = 'gold']), "e": exactly-one($o.name) }
return { "e": zero-or-one($o.note), "f": count(exactly-one($o.note)) }
return { "e": array { index-of($o.tags[], 'gold') } }
return <a>{ for $t in $o.tags[] order by $t return <t>{ $t }</t> }</a>
return { "e": array { $o.amount, $o.amount * 2, string($o.name) } }
return array { $o.ok, not($o.ok), true() }
return { "x": $o.customer("country"), "y": $o.id }
where $o.customer("country") = "DE" return $o.id
"""

FORMS = [each for form in (LOOPS, FUNCTIONS, PATHS, VALUES) for each in form.strip().splitlines()]

LEFT_TO_THE_LAW = """
let $g := function($k) { for $y in $p/v return $k(function($x) { $x + $y }) }
 return <a>{ $g(function($f) { $g(function($h) { $f(1) + $h(1) }) }) }</a>
return <a>{ for $v at $i in ($p/v, $p/o) return <b n='{ $i }'>{ $v }</b> }</a>
return <a>{ for $v in $p/v order by $v count $i return <b n='{ $i }'>{ $v }</b> }</a>
return <a>{ ($p/d/*, $p/name)[1], ($p/name, $p/d/*)[1] }</a>
let $f := function($g) { $g($g) } return <a>{ $f($f) }</a>
return <a>{ exactly-one($p/v) * 2, zero-or-one($p/line/q) }</a>
return <a>{ reverse(($p/v, 5, $p/name)) }</a>
return <a>{ min(for $v in $p/line return string($v/sku)), min(($p/name, 'x')), min((string($p/name), 'x')) }</a>
let $x := ($p/v, 5) return <a>{ for $y in $x return <b>{ $y }</b> }</a>
return <a>{ for $l in $p/line return <b n='{ $l/../d/t }'>{ $l/../v }</b> }</a>
return <a>{ count($p/line/w/..), exists($p/o/..), $p/f/g/../../name }</a>
return <a>{ $p/line/w/..[1], $p/line/self::line[1]/q, $p/v/.[2] }</a>
return <a k='{ ($p/v)[1] }' l='{ head($p/line/sku) }'>{ subsequence($p/v, 2, 1) * 2 }</a>
"""
"""What would be answered wrongly, or never, if it were compiled as other queries are."""


def about_records(form: str) -> bool:
    """Whether a form is about records of `RecordMaker`."""
    return form in OBJECTS.splitlines()


def queries_of(forms: Sequence[str], style: Style) -> dict[str, ItemQuery]:
    items = f'stream("s")/r/{"item" if style == "json" else "p"}'
    return item_queries({each: f"for {'$o' if about_records(each) else '$p'} in {items} {each}" for each in forms})


def forms_of(style: Style) -> list[str]:
    return [*FORMS, *(STEPS_UP.strip().splitlines() if style == "elements" else OBJECTS.strip().splitlines())]


@pytest.mark.parametrize("style", STYLES)
def test_each_form_compiles(style: Style) -> None:
    """No form is left to the law as a whole."""
    plain, records = ItemMaker(Random(5), style, PLAIN), RecordMaker(Random(5), 0)
    makers: list[ItemMaker | RecordMaker] = [plain, records] if style == "json" else [plain]
    looks = [look_of_lines([maker.line() for _ in range(20)], style) for maker in makers]
    for name, query in queries_of(forms_of(style), style).items():
        found = compile_query(query.expanded_hole, "r", looks[about_records(name)])
        assert isinstance(found, CompiledQuery), (name, found)


def check_forms(number: int) -> None:
    """Some forms over a few dozen items of any kind are answered as by law."""
    random = Random(number)
    style = random.choice(STYLES)
    forms = forms_of(style)
    maker: ItemMaker | RecordMaker = ItemMaker(random, style, random.choice(ODDITIES))
    if style == "json" and random.randrange(2):
        maker = RecordMaker(random, random.choice([0, 0, 5, 20]))
    forms = [each for each in forms if about_records(each) == isinstance(maker, RecordMaker)]
    data = joined([maker.line() for _ in range(30)])
    check_by_law(stream_of(queries_of(random.sample(forms, 8), style), style), data, random)


@pytest.mark.mass
@pytest.mark.parametrize("number", some(range(20)))
def test_some_forms_are_answered_as_by_law(number: int) -> None:
    """The same cases each time."""
    check_forms(number)


def test_forms_are_answered_as_by_law(mass: Mass) -> None:
    """Very many of them."""
    for number in mass.cases(5_000):
        check_forms(number)


def test_the_ends_of_texts_are_found_by_an_index() -> None:
    """What a text ends with is a pattern in the text with a mark at its end."""
    maker = ItemMaker(Random(5), "elements", PLAIN)
    look = look_of_lines([maker.line() for _ in range(20)], "elements")
    (query,) = queries_of(["where ends-with($p/name, 'old') return $p/d"], "elements").values()
    found = compile_query(query.expanded_hole, "r", look)
    assert isinstance(found, CompiledQuery)
    assert [type(each) for each in condition.tests(indexable(found.condition, look, ()))] == [PatternTest]


@pytest.mark.mass
@pytest.mark.parametrize("style", STYLES)
def test_what_does_not_compile_is_answered_by_the_law(style: Style) -> None:
    """Such a query is answered all the same; a function that calls itself without end is an error of each item."""
    forms = LEFT_TO_THE_LAW.strip().replace("\n return", " return").splitlines()
    maker = ItemMaker(Random(7), style, PLAIN)
    answers, _ = check_by_law(
        stream_of(queries_of(forms, style), style), joined([maker.line() for _ in range(20)]), Random(7)
    )
    assert answers.coverage.by_law == len(forms)
