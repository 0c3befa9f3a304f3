"""Crowds of queries that have much in common: the same, nearly the same, and others.

A query is written by a grammar, whose symbols are words behind a `%`, over the items of `oracle.generate`.
A *theme* decides every choice on the way by its place in the query, and a variation of the theme decides a few of them
anew: so two variations differ in a constant, the step of a window, one condition or what they return, or in nothing.
Beside them stand queries of `oracle.generate`, which keep to no theme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from oracle.generate import Writer, item_queries, join_queries, window_queries

Kind: TypeAlias = Literal["selection", "window", "join", "interval", "whole"]

_SYMBOL = re.compile("%([a-z]+)")

GRAMMAR: dict[str, tuple[str, ...]] = {
    # --- queries ---
    "selection": (
        *('for $x in stream("%stream")/r/i%chosen %where return %result',) * 6,
        'for $x in stream("%stream")/r/i%chosen let $v := $x/n where $v %order %number return <v>{ $v, $x/t }</v>',
        'for $x in stream("%stream")/r/i%chosen, $c in $x/c where $c/n %order %number return <c>{ $c, $x/t }</c>',
        'for $x in stream("%stream")/r/i%chosen/%leaf return $x',
        'stream("%stream")/r/i%chosen/%leaf',
    ),
    "window": ('for $w in stream("%stream")/r/i%chosen %panes %answer',),
    "join": (
        *('for $x in stream("%stream")/r/i%chosen %moving for $y in stream("%other")/r/i%chosen %moving %on',) * 4,
        'for $x in stream("%stream")/r/i %moving, $y in stream("%other")/r/i %moving, $z in stream("s")/r/i|count 1| '
        "where $x/n = $z/n return <p>{ $x/t, $y/t, $z/t }</p>",
    ),
    "interval": (
        'for $x in stream("%stream")/r/i%chosen for $y in stream("%other")/r/i%chosen '
        "where $x/t >= $y/t - %near and $x/t <= $y/t + %near %further return %pair",
    ),
    "whole": (
        'count(stream("%stream")/r/i%chosen)',
        'for $x in stream("%stream")/r/i%chosen %where order by $x/t descending return %result',
    ),
    "frame": ("%body", "<out>{ %body }</out>", "<out>{ %body }</out>", "<out><head/>{ %body }</out>"),
    "stream": ("s", "s", "s", "u"),
    "other": ("u", "u", "s"),
    "leaf": ("n", "s", "c/n", "a", "c"),
    # --- conditions ---
    "chosen": (
        *("", "", ""),
        *("[n %order %number]", "[n >= %number and c/n <= %number]", "[s = %word or n > %number]", "[c/a = %number]"),
    ),
    "where": ("", "where %condition", "where %condition", "where %condition", "where %box"),
    "condition": (
        *("%test", "%test", "%test and %test", "%test and %test", "(%test or %test)", "not(%test)"),
        *("%test and (%test or %test)", "(%test and %test or %test)", "not(%test or %test)"),
    ),
    "box": ("$x/n >= %number and $x/n <= %number and $x/c/n >= %number and $x/c/n <= %number",),
    "test": (
        *("$x/n %order %number", "$x/n %order %number", "$x/a %order %number", "$x/c/n %order %number"),
        *("$x/s %equals %word", "$x/s %order %word", "$x/@id = %word", "$x/a %equals %word", "$x/c/@k = %word"),
        *("some $c in $x/c satisfies $c/n > %number and $c/a > %number", "exists($x/c/a)", "empty($x/n)"),
        *("(exists($x/n) and $x/n >= $x/c/n + %number)", "$x/n < $x/a", "contains($x/s, %word)", "$x/n * 2 > %number"),
    ),
    "order": ("<", "<=", ">", ">=", ">=", "=", "!="),
    "equals": ("=", "=", "!="),
    "number": ("0", "1", "1.3", "2", "5", "5.0", "7.5", "10", "-3"),
    "word": ('"abc"', '"x"', '"5"', '"b"', '"1.3"', '""'),
    # --- results ---
    "result": (
        *("<hit/>", "$x", "$x/n", "<o>{ $x/n, $x/s }</o>", "<o>{ $x/n, $x/s, $x/t }</o>", "<o>{ $x/c/a }{ $x/t }</o>"),
        *('<o k="{ $x/@id }">{ $x/c }</o>', "if (%test) then <hi/> else $x/n", "<o>{ $x/n + %number }</o>"),
        "for $c in $x/c where $c/n > %number return <c>{ $c/a }</c>",
        "<o>{ for $c in $x/c return <in>{ $c/n, $x/t }</in> }{ $x/s/text() }</o>",
        "<o>{ count($x/c), sum($x/c/n) }</o>",
    ),
    # --- windows ---
    "panes": ("|t diff %size|", *("|t diff %size step %step|",) * 3, "|count %count|", "|count %count step %by|"),
    "moving": (
        "|t diff %short|",
        "|t diff %short step %step|",
        "|t diff %short step %step|",
        "|count %count step %by|",
    ),
    "size": ("10", "20", "40", "5", "2.5", "0.3"),
    "short": ("5", "10", "2.5"),
    "step": ("5", "10", "2.5", "4", "20"),
    "count": ("2", "3", "4"),
    "by": ("1", "2", "3"),
    "answer": (
        *("let $a := %aggregate %having return <w>{ $a }</w>",) * 5,
        *("let $a := %aggregate let $b := %aggregate %having return <w><a>{ $a }</a>{ $b }</w>",) * 2,
        "return <w>{ $w/t }</w>",
        "where $w/s = %word return <w>{ $w/n }</w>",
        "return <w>{ for $x in $w %where return %result }</w>",
        "let $a := %aggregate %having return <w>{ $a, $w[n > %number]/t }</w>",
    ),
    "aggregate": (
        *("avg($w/n)", "sum($w/n)", "count($w)", "count($w/n)", "min($w/n)", "max($w/c/n)", "sum($w/a)"),
        *("median($w/n)", "stddev($w/n)", "median($w/n[. > %number])"),
        *("avg($w/n[. > %number])", "count($w[s = %word])", "avg($w/n) - avg($w/c/n)"),
    ),
    "having": (
        "",
        "",
        "where $a >= %number",
        "where $a >= %number and $a <= %number",
        "where $a > 0 and $w/a = %number",
    ),
    # --- joins ---
    "on": ("%joined return %pair",),
    "joined": (
        *("", "where $x/n >= $y/n", "where $x/n >= $y/n + %number", "where $x/n >= $y/n + 0.5 and $x/n <= $y/n + 2"),
        *("where $x/s = $y/s", "where $x/n > %number and $y/n < %number", "where $x/a %order $y/a and %test"),
    ),
    "further": ("", "", "and $x/n >= $y/n", "and $x/n > %number"),
    "near": ("1", "2.5", "5"),
    "pair": ("<p>{ $x/t, $y/t }</p>", "<p>{ $x/n, $y/n }</p>", "<p>{ $x/s }{ $y/c/n }</p>", "<p>{ $x, $y/t }</p>"),
}

_KINDS: tuple[Kind, ...] = ("selection",) * 4 + ("window",) * 4 + ("join",) * 2 + ("interval",)
_ODDS = (0.0, 0.03, 0.08, 0.08, 0.2)
"""How much of its theme a variation gives up."""


@dataclass(frozen=True, slots=True)
class Theme:
    """What its variations have in common."""

    kind: Kind
    seed: int

    def vary(self, random: Random, odds: float) -> str:
        """One query on the theme."""
        body = self._written(f"%{self.kind}", "body", random, odds)
        frame = self._written("%frame", "frame", random, odds)
        return frame.replace("%body", body)

    def _written(self, text: str, place: str, random: Random, odds: float) -> str:
        numbers = iter(range(len(text)))

        def chosen(symbol: re.Match[str]) -> str:
            if symbol[1] not in GRAMMAR:
                return symbol[0]
            here = f"{place}.{next(numbers)}"
            by = random if random.random() < odds else Random(f"{self.seed} {here} {symbol[1]}")
            return self._written(by.choice(GRAMMAR[symbol[1]]), here, random, odds)

        return _SYMBOL.sub(chosen, text)


def crowd_of_queries(random: Random, count: int, *, finite: bool) -> list[str]:
    """So many queries over the streams `s` and `u`; those that wait for an end are among them where there is one."""
    themes = [Theme(random.choice(_KINDS), random.randrange(1 << 30)) for _ in range(random.randint(1, 1 + count // 3))]
    if finite and random.random() < 0.3:
        themes.append(Theme("whole", random.randrange(1 << 30)))
    found: list[str] = []
    while len(found) < count:
        if random.random() < 0.1:
            found.append(_other(random))
        else:
            found.append(random.choice(themes).vary(random, random.choice(_ODDS)))
    return found


def _other(random: Random) -> str:
    """A query of `oracle.generate`, its streams called as here."""
    case = random.choice((item_queries, window_queries, join_queries))(Writer(random))
    return re.sub(r'stream\("([pqr])"\)', lambda found: f'stream("{"s" if found[1] == "p" else "u"}")', case.query)
