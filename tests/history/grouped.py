"""Random queries that look at a document as a whole: its groups, its different values, and some results by places."""

from __future__ import annotations

import re
from random import Random

PATHS = ("i", "i", "i", "i[v > 0]", "i/p", "*", "i[t < 12]")
AGGREGATES = (
    *("count($o)", "sum($o/v)", "avg($o/t)", "min($o/v)", "max($o/t)", "median($o/v)", "count($o/v[. > 3])"),
    *("exists($o/p)", "distinct-values($o/t)", "string-join(distinct-values($o/k), '-')", "$o/v = 3", "$k"),
)
KEYS = ("$o/k", "$o/k", "$o/v", "$o/t idiv 5", "$o/v > 3", "string($o/t)", "count($o/p)")
VALUES = ("i/v", "i/k", "i/t", "i//k", "i/v[. > 2]", "i/p/v", "i", "i/@x")
PLACES = ("[1]", "[3]", "[position() <= 3]", "[last()]", "[position() > last() - 2]", "[position() = 2]", "[. = 3][2]")


QUALIFIERS = ("#0", "#1", "#1", "#[1]", "#[2]", "?1", "?[2]", "?[4]")
_PATHS = re.compile(r"\$o/[a-z]|\$o(?=[,)])|root/i(?= )")
"""What may look back in a query."""


class GroupAsker:
    """Writes queries about one stream `s`."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def query(self) -> str:
        """A query, which may look back."""
        written = self._written()
        return _PATHS.sub(self._back, written) if self._random.random() < 0.3 else written

    def _back(self, path: re.Match[str]) -> str:
        return path[0] + (self._random.choice(QUALIFIERS) if self._random.random() < 0.4 else "")

    def _written(self) -> str:
        """A query, or one with something around it."""
        one = self._random.choice
        asked = one((self._groups, self._groups, self._distinct, self._places))()
        match self._random.randint(0, 9):
            case 0:
                return f"<all>{{ {asked} }}{{ count(stream('s')/root/i) }}</all>"
            case 1 | 2:
                return f"{one(('count', 'exists', 'empty', 'sum', 'max'))}({asked})"
            case 3:
                return f"let $n := 2 return (<in><x>{{ {asked} }}</x></in>, count({asked}) > $n)"
            case _:
                return asked

    def _groups(self) -> str:
        random = self._random
        name = "$k"
        keys = f"group by {name} := {random.choice(KEYS)}"
        if random.random() < 0.2:
            keys += f", $l := {random.choice(KEYS)}"
        where = random.choice(("", "", "where $o/v > 1 ", "let $w := $o/v where count($w) < 2 "))
        behind = random.choice(("", "", "where count($o) > 1 ", "let $n := sum($o/v) where $n > 3 "))
        order = random.choice(
            ("", "order by $k ", "order by count($o) descending ", "order by max($o/v), $k descending ")
        )
        result = f"<g k='{{ $k }}'>{{ {', '.join(random.sample(AGGREGATES, random.randint(1, 2)))} }}</g>"
        if random.random() < 0.2:
            result = random.choice(("$k", "count($o)", "sum($o/v)", "<g>{ $o/v }</g>"))
        loop = f'for $o in stream("s")/root/{random.choice(PATHS)} {where}{keys} {behind}{order}return {result}'
        return f"({loop}){random.choice(PLACES)}" if random.random() < 0.3 else f"({loop})"

    def _distinct(self) -> str:
        random = self._random
        over = f'stream("s")/root/{random.choice(VALUES)}'
        if random.random() < 0.3:
            over = f"for $o in {over} where $o < 6 return {random.choice(('$o + 1', '$o', '($o, 1.0, 1)'))}"
        found = f"distinct-values({over})"
        return f"{found}{random.choice(('[1]', '[position() < 4]', '[last()]'))}" if random.random() < 0.3 else found

    def _places(self) -> str:
        random = self._random
        path = f'stream("s")/root/{random.choice(PATHS)}'
        order = random.choice(("", "order by $o/t[1] ", "order by $o/v[1] descending, $o/k[1] "))
        result = random.choice(("$o/v", "<o>{ $o/v, $o/k }</o>", "($o/k, count($o/p))", "sum($o/v)"))
        found = path if random.random() < 0.2 else f"for $o in {path} {order}return {result}"
        match random.randint(0, 3):
            case 0:
                return f"subsequence(({found}), {random.choice((1, 2, 4))}, {random.choice((1, 2, 3))})"
            case 1:
                return f"{random.choice(('head', 'tail'))}(({found}))"
            case _:
                return f"({found}){random.choice(PLACES)}"
