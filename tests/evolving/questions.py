"""Random queries of all kinds over the streams `a` and `b`, and random accented streams with times for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Literal, TypeAlias

from algebra.accented import alter
from anabranch.stream.affine import IDENTITY
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.elements import Item, StreamElement
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, Name, Text, copy
from evolving.square import item_query

Kind: TypeAlias = Literal["items", "windows", "groups", "joins", "interval", "keyed", "sets", "chained", "whole"]

TIME = Path.parse("ts")
WINDOWS = ("ts diff 7", "ts diff 10 step 5", "ts diff 4 step 6", "count 3", "count 2 step 1", "t diff 12")
OF_WINDOWS = (
    "<w>{$w/t}</w>", "<w><a>{avg($w/t)}</a><m>{max($w/x)}</m></w>", "<w>{sum($w/x)}</w>", "<w>{count($w)}</w>",
    "<w>{for $i in $w where $i/t > 10 return $i/x}</w>", "$w", "for $i in $w return <o>{$i/t}{$i/s}</o>",
    "<w>{median($w/t)}</w>", "<w><s>{stddev($w/t)}</s>{$w/s}</w>",
    "<w n='{min($w/t)}'>{$w/c}</w>", "<w>{$w[s = 1]/p}</w>", "avg($w/t)", "if (avg($w/t) > 12) then $w/x else <no/>",
    "for $i in $w order by $i/t return <o>{$i/t * 2 - 1}</o>",
)  # fmt: skip
OF_GROUPS = (
    "for $i in $w group by $k := $i/s return <g>{$k}<a>{avg($i/t)}</a></g>",
    "for $i in $w group by $k := $i/t return <g k='{$k}'>{count($i)}</g>",
    "for $i in $w group by $k := $i/t + 0, $l := $i/s order by $k return <g><k>{$k}</k>{$i/x}</g>",
    "for $i in $w group by $k := $i/s count $n return <g n='{$n}'><m>{max($i/t)}</m><s>{sum($i/x)}</s></g>",
    "for $i in $w let $t := $i/t where $i/x > 3 group by $k := $i/s return <g>{$t}</g>",
    "(for $i in $w order by $i/t return <o>{$i/t}</o>)[position() <= 2]",
    "<w>{$w[last()]/t, $w/x[1]}</w>",
    "<w>{head($w)/t}{reverse($w/x)}</w>",
    "for $i at $n in $w return <o n='{$n}'>{$i/t}</o>",
)
OF_TUPLES = (
    "<o>{$x/t}{$y/x}</o>", "<o>{$x}</o>", "<o><d>{$x/t - $y/t}</d>{$y/s}</o>", "($x/t, $y/t)",
    "<o a='{$x/s}'><f>{$y/x * 3}</f></o>",
)  # fmt: skip
ON = ("$x/s = $y/s", "$x/t <= $y/t", "$x/x > 10 and $x/s = $y/s", "$x/t = $y/x or $x/s != $y/s")
BY_KEY = ("$x/s = $y/s", "$x/t = $y/t", "$x/x = $y/t", "$x/s = $y/s and $x/t = $y/t", "$x/c/v = $y/x")
SETS = (
    '(stream("a")/r/i union stream("b")/r/i)', '(stream("b")/r/i[t > 8] union stream("a")/r/i[s = 1])',
    '(stream("a")/r/i[t > 8] intersect stream("a")/r/i[s >= 1])', '(stream("a")/r/i except stream("a")/r/i[x > 12])',
    '(stream("a")/r/i union stream("b")/r/i except stream("b")/r/i[s = 2])',
    '(stream("a")/r/i[t > 8] union stream("a")/r/i[x < 20] union stream("b")/r/i)',
)  # fmt: skip
LOOPS = (
    'for $x in stream("a")/r/i, $y in stream("b")/r/i where $x/s = $y/s return <m>{ $x/ts, $y/x, $x/t, $x/s }</m>',
    'for $x in stream("a")/r/i, $y in stream("b")/r/i where $x/s = $y/s and $x/t > 3 return <m>{ $y/ts, $x/x }</m>',
    'for $x in stream("a")/r/i union stream("b")/r/i return <m>{ $x/ts, $x/t, $x/s, $x/x }</m>',
    'for $x in stream("a")/r/i[t > 2] return (<m>{ $x/ts, $x/t, $x/x }</m>, <m>{ $x/ts, $x/s }</m>)',
)
OVER_LOOPS = ("ts diff 5", "ts diff 6 step 2", "count 3", "ts gap 3")
OF_LOOPS = (
    "return <w>{ count($w) }</w>",
    "return <w><a>{ avg($w/t) }</a><m>{ max($w/x) }</m></w>",
    "for $m in $w group by $k := $m/s return <g>{ $k }<t>{ sum($m/t) }</t></g>",
    "for $m in $w group by $k := $m/s return <g>{ $k }<t>{ avg($m/t) }</t></g>",
    "where count($w) > 1 return $w/t",
)
"""Averages by place over the first loop: the standing query of the accents paper, joined by key and windowed."""
WHOLE = (
    'for $p in stream("a")/r/i order by $p/t, $p/x return <o>{$p/t}</o>', '<n>{sum(stream("a")/r/i/t)}</n>',
    'for $w in stream("a")/r/i |ts diff 7| order by avg($w/x) descending return <w>{$w/t}</w>',
    'for $p in stream("a")/r/i group by $k := $p/t + 0 order by $k return <o>{$k}{$p/x}</o>',
    '(for $p in stream("a")/r/i order by $p/t return <o>{$p/t}</o>)[position() <= 3]',
)  # fmt: skip


def question(random: Random, kind: Kind) -> str:
    """A random query."""
    match kind:
        case "items":
            return item_query(random)
        case "windows":
            where = random.choice(("", "", "where avg($w/x) > 8 ", "where count($w) > 1 "))
            return f'for $w in stream("a")/r/i |{random.choice(WINDOWS)}| {where}return {random.choice(OF_WINDOWS)}'
        case "groups":
            where = random.choice(("", "", "where $w[2] ", "where count($w) > 1 "))
            return f'for $w in stream("a")/r/i |{random.choice(WINDOWS)}| {where}return {random.choice(OF_GROUPS)}'
        case "joins":
            x, y = random.sample(WINDOWS[:5], 2)
            other = random.choice(("b", "b", "a"))
            fors = f'for $x in stream("a")/r/i |{x}| for $y in stream("{other}")/r/i |{y}| '
            return f"{fors}where {random.choice(ON)} return {random.choice(OF_TUPLES)}"
        case "interval":
            apart = "$x/ts >= $y/ts - 3 and $x/ts <= $y/ts + 2"
            where = random.choice(("", f"({random.choice(ON)}) and "))
            fors = 'for $x in stream("a")/r/i for $y in stream("b")/r/i '
            return f"{fors}where {where}{apart} return {random.choice(OF_TUPLES)}"
        case "keyed":
            where = random.choice(BY_KEY) + random.choice(("", "", f" and ({random.choice(ON)})"))
            other = random.choice(("b", "b", "a"))
            fors = f'for $x in stream("a")/r/i for $y in stream("{other}")/r/i '
            return f"{fors}where {where} return {random.choice(OF_TUPLES)}"
        case "sets":
            return item_query(random).replace('stream("a")/r/i', random.choice(SETS), 1)
        case "chained":
            loop, window = random.choice(LOOPS), random.choice(OVER_LOOPS)
            return f"for $w in ({loop})|{window}| {random.choice(OF_LOOPS)}"
        case "whole":
            return random.choice(WHOLE)


def timed(random: Random, elements: Sequence[StreamElement]) -> list[StreamElement]:
    """The stream with times that rise, and now and then change their unit."""
    now, by = random.randint(0, 3), IDENTITY
    found: list[StreamElement] = []
    for each in elements:
        if random.random() < 0.05:
            change = random.choice((". * 2", ". + 10"))
            found.append(alter("ts", change))
            by = by.then(parse_map(change))
        if isinstance(each, Item):
            now += random.choice((0, 1, 2, 5))
            tree = copy(each.tree)
            assert isinstance(tree, Element)
            inner = Element(Name("ts"))
            inner.append(Text(str(by(Fraction(now)))))
            tree.append(inner)
            each = replace(each, tree=tree)
        found.append(each)
    return found
