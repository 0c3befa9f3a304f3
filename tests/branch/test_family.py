"""Families: which queries one branch can serve, and which are the same query."""

from __future__ import annotations

import pytest

from anabranch.branch.family import family_of, operator_of, twin_of
from anabranch.language import check, parse
from anabranch.runtime.standing import Standing, standing
from anabranch.stream.path import Path

JOIN = 'for $x in stream("s")/r/i|t diff 10| for $y in stream("u")/r/i|t diff 10| where $x/a = $y/a return $x'


def standing_of(text: str) -> Standing:
    return standing(check(parse(text), text, inputs={"s": None, "u": None}).query)


@pytest.mark.parametrize(
    "other",
    [
        JOIN.replace("$x", "$left").replace("$y", "$right"),
        JOIN.replace("$x", "$z").replace("$y", "$x").replace("$z", "$y"),
        JOIN.replace(" where", "\n(: a comment :) where"),
    ],
)
def test_twins(other: str) -> None:
    """Neither what variables are called nor how a query is laid out makes it another."""
    assert twin_of(standing_of(JOIN).query) == twin_of(standing_of(other).query)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (JOIN, JOIN.replace("return $x", "return $y")),
        (JOIN, JOIN.replace("$x/a = $y/a", "$y/a = $x/a")),
        (
            'for $w in stream("s")/r/i|count 2| return some $a in $w, $b in $w satisfies $a/n = $b/m',
            'for $w in stream("s")/r/i|count 2| return some $a in $w, $a in $w satisfies $a/n = $a/m',
        ),
        (
            'declare function local:f($a, $b) { $a }; for $w in stream("s")/r/i|count 2| return local:f($w, 1)',
            'declare function local:f($b, $a) { $a }; for $w in stream("s")/r/i|count 2| return local:f($w, 1)',
        ),
    ],
)
def test_no_twins(one: str, other: str) -> None:
    """What a name stands for makes the difference."""
    assert twin_of(standing_of(one).query) != twin_of(standing_of(other).query)


FAMILY = [
    JOIN,
    JOIN.replace("diff 10", "diff 20 step 10", 1),
    '<o>{ for $a in stream("s")/r/i|t diff 3| for $b in stream("u")/r/i|t diff 7 step 2| return <p>{ $a/n }</p> }</o>',
    'for $x in stream("s")/r/i|t diff 10| for $y in stream("u")/r/i|t diff 10| let $z := $x/n where $z > 1 return $z',
]
STRANGERS = [
    JOIN.replace("/r/i|", "/r/i[n > 1]|", 1),
    JOIN.replace("|t diff", "|v diff", 1),
    JOIN.replace("|t diff 10|", "|count 10|", 1),
    'for $y in stream("u")/r/i|t diff 10| for $x in stream("s")/r/i|t diff 10| where $x/a = $y/a return $x',
    'for $x in stream("s")/r/i|t diff 10| for $y in stream("s")/r/i|t diff 10| return $y',
    'for $x in stream("s")/r/i|t diff 10| return <w>{ $x/a }</w>',
    'declare default element namespace "urn:n"; ' + JOIN,
    '<o xmlns="urn:n">{ ' + JOIN + " }</o>",
    'let $n := 1 for $x in stream("s")/r/i[n > $n]|t diff 10| for $y in stream("u")/r/i|t diff 10| return $x',
    'let $n := 2 for $x in stream("s")/r/i[n > $n]|t diff 10| for $y in stream("u")/r/i|t diff 10| return $x',
    'declare function local:f($i) { $i/n }; for $x in stream("s")/r/i[local:f(.) > 1]|t diff 10| '
    'for $y in stream("u")/r/i|t diff 10| return $x',
    'declare function local:f($i) { $i/m }; for $x in stream("s")/r/i[local:f(.) > 1]|t diff 10| '
    'for $y in stream("u")/r/i|t diff 10| return $x',
]


def families(texts: list[str], *, endless: bool = True) -> set[str]:
    times = {"s": Path.parse("t"), "u": Path.parse("t")}
    queries = [standing_of(text) for text in texts]
    return {family_of(each, operator_of(each, times, endless=endless)) for each in queries}


def test_joins_of_the_same_sources_are_a_family() -> None:
    """Sizes, steps, conditions, results and frames may differ."""
    assert len(families(FAMILY)) == 1


def test_other_sources_are_another_family() -> None:
    """Whatever changes which items are looked at, where they stand or what names mean."""
    assert len(families([*FAMILY, *STRANGERS])) == 1 + len(STRANGERS)


def test_interval_joins() -> None:
    """Those that need not wait for the end are a family whatever their reach; of those that wait only twins are."""
    texts = [
        'for $x in stream("s")/r/i for $y in stream("u")/r/i '
        f"where $y/t >= $x/t - {reach} and $y/t <= $x/t + {reach} return $x"
        for reach in (1, 5)
    ]
    assert len(families(texts)) == 1
    assert len(families(texts, endless=False)) == 2


def test_queries_that_go_item_by_item_are_a_family() -> None:
    """They have nothing in common but the merge of their stream's partitions, and that is all there is to it."""
    assert len(families(['stream("s")/r/i/n', 'for $x in stream("s")/r/i where $x/n > 3 return <o>{ $x }</o>'])) == 1
    assert len(families(['stream("s")/r/i/n', 'stream("u")/r/i/n'])) == 2
