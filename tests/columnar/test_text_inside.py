"""The texts of elements with elements in them, in columns: computed and written as by the law."""

from __future__ import annotations

from random import Random

import pytest

from columnar.streams import Stream, check_by_law, item_queries
from mass import Mass, some

FORMS = [
    each.strip()
    for each in """
    return <x>{ string($p/c) }</x>
    return <x a="{ $p/c }" b="{ string($p/c) }-{ $p/n }">{ $p/c, $p/n }</x>
    return <x a="{ $p/l }"/>
    return <x>{ string($p) }</x>
    where $p/c = "12" return <x/>
    where $p/c = "A&amp;T 5" return $p/n
    where $p/c != "12" return $p/n
    where $p/c eq "12" return <x/>
    where $p/c = 12 return <x/>
    where $p/c > 11 return $p/n
    where 11 < $p/c return $p/n
    where $p/c * 2 > 22 return $p/c
    where number($p/c) > 11 return <x/>
    where $p/c = $p/n return <x/>
    where exists($p/c) and $p/c = ("12", "1") return <x/>
    where not($p/c = "1") return <x/>
    where contains($p/c, "1") return <x>{ $p/@id }</x>
    where starts-with($p/c, "A") return <x>{ $p/c/d }</x>
    where matches($p/c, "[0-9]") return <x>{ replace($p/c, "1", "2") }</x>
    where $p/l = "a1" return <x/>
    where $p/l > 3 return <x/>
    where some $l in $p/l satisfies contains($l, "a") return <x/>
    return <x>{ $p/c + 1 }</x>
    return <x y="{ normalize-space($p/c) }">{ normalize-space($p/c), upper-case($p/c) }</x>
    return <x y="{ concat("&lt;", $p/c, "&amp;", $p/n) }">{ concat("&lt;", $p/c, "&amp;", $p/n) }</x>
    return <x y="{ string-join($p/l, "&lt;") }">{ string-join($p/l, "&lt;") }</x>
    return <x>{ string-length($p/c), tokenize($p/c, " ")[1] }</x>
    return <x>{ distinct-values($p/l), count(distinct-values($p/l)) }</x>
    return <x>{ for $l in $p/l return string($l) }</x>
    return <x>{ for $l in $p/l where $l = "a1" return <y z="{ $l }">{ string($l) }</y> }</x>
    return <x>{ for $l in $p/l order by $l return <y>{ string($l) }</y> }</x>
    return <x>{ $p/l[. = "a1"]/n }</x>
    return <x>{ if ($p/c = "13") then $p/c else string($p/c) }</x>
    return <x>{ if ($p/c = "13") then "&lt;" else string($p/c) }</x>
    return <x>{ (string($p/c), "none")[1], string-join(($p/c, $p/n), "|") }</x>
    return <x>{ data($p/c), substring($p/c, 2) || "&lt;" }</x>
    return <x>{ max($p/l), sum($p/l) }</x>
    let $t := string($p/c) where $t != "" return <x a="{ $t }">{ $t }</x>
    """.strip().splitlines()
]
_SIGNS = [
    "A&amp;T ",
    "&lt;",
    '"',
    "'",
    ">",
    "\t",
    "é",
    "&gt;",
    "&quot;",
    "&apos;",
    "&#x9;",
    "  ",
    "&#xA;",
    "𝄞",
    "<!--1-->",
]


def _item(random: Random, odd: float) -> str:
    def text() -> str:
        return random.choice(_SIGNS) if random.random() < odd else random.choice(["1", "", "a", "5 ", "x y"])

    def line() -> str:
        number, name = random.randint(1, 5), random.choice("abc")
        key = random.choice(["1", ">", "&quot;"])
        return f'<l k="{key}">{random.choice(["", "a", text()])}<n>{name}</n><q>{number}</q>{text()}</l>'

    inside = f"<c>{text()}<d><e>{random.randint(1, 3)}</e>{text()}</d>{text()}</c>"
    if random.random() < 0.2:
        inside = random.choice(["", "<c>7</c>", "<c/>", "<c></c>", "<c><d/></c>", "<c><d ></d></c>"])
    name, lines = random.choice(["gold", "a", "13", text()]), "".join(line() for _ in range(random.randrange(4)))
    return f'<item id="{random.randrange(9)}"><n>{name}</n>{inside}{lines}</item>'


def check_forms(number: int) -> None:
    """Some forms over some items; all of them compile, whatever stands between the elements."""
    random = Random(number)
    forms = random.sample(FORMS, 6)
    queries = item_queries({form: f'for $p in stream("s")/r/item {form}' for form in forms})
    odd = random.choice([0, 0.1, 0.5])
    lines = [_item(random, odd) for _ in range(40)]
    answers, _ = check_by_law(Stream(queries, "lines", root="<r>"), "\n".join([*lines, ""]).encode(), random)
    assert answers.coverage.in_columns == len(forms)


@pytest.mark.parametrize("number", some(range(30)))
def test_some_texts_are_those_of_the_law(number: int) -> None:
    """A few cases, the same each time."""
    check_forms(number)


def test_texts_are_those_of_the_law(mass: Mass) -> None:
    """The same for very many."""
    for number in mass.cases(2_000):
        check_forms(number)
