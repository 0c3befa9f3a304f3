"""Random records of JSON with types that hold mostly, and queries that look keys up in them with dots."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from anabranch.stream.reading.json_names import step_of_key
from odd_keys import quoted

KEYS = [
    *("id", "name", "amount", "limit", "ok", "customer", "tags", "lines", "scores", "note", "zip", "floor", "country"),
    *("vip", "address", "sku", "qty", "@kind", "rows"),
]
"""The keys of records."""

_TEXTS = [
    "gold",
    "silver",
    "a gold b",
    "",
    " ",
    "12",
    "true",
    "null",
    "é",
    "𝄞",
    "日本",
    'say \\"x\\"',
    "a\\\\b",
    "a/b",
    "a<b>&c",
    "\\u0041",
    "\\u00e9",
    "\\n\\t",
    "\\/",
    "x" * 40,
    "\\u2028",
    "\x7f",
    "DE",
    "FR",
]
_NUMBERS = [
    "1",
    "1.0",
    "1.50",
    "-0",
    "0",
    "7",
    "12",
    "1e3",
    "1E+2",
    "-2.5e-3",
    "100000000000000000000",
    "9007199254740993",
    "0.1",
    "0.30000000000000004",
    "1e400",
    "123456789012345678",
    "5",
    "50",
    "49.99",
]


@dataclass(frozen=True, slots=True)
class RecordMaker:
    """Makes the lines of one stream; of a hundred values so many are `odd`: of another type, `null`, or missing."""

    random: Random
    odd: int
    keys: Mapping[str, str] = field(default_factory=dict)
    """Other keys in the place of some."""

    def line(self) -> str:
        """A record."""
        entries = [
            ("id", str(self.random.randrange(100))),
            ("name", self._text()),
            ("amount", self._number()),
            ("limit", self._number()),
            ("ok", self._flag()),
            ("customer", self._customer()),
            ("tags", self._array([self._text, self._text])),
            ("lines", self._array([self._line])),
            ("scores", self._array([self._number])),
            ("rows", self._array([self._row, self._row, self._row, self._deep_row])),
            ("note", "null" if self.random.randrange(3) else self._text()),
        ]
        if self.random.randrange(4) == 0:
            entries.insert(0, ("@kind", self._text()))
        if self.odd and self.random.randrange(20) == 0:
            self.random.shuffle(entries)
        return self._object(entries)

    def _object(self, entries: list[tuple[str, str]]) -> str:
        odd = [(key, self._odd(value)) for key, value in entries]
        space = self.random.choice(["", " ", " "])
        keys = {key: json.dumps(self.keys.get(key, key), ensure_ascii=False) for key, _ in entries}
        written = (f"{keys[key]}:{space}{value}" for key, value in odd if value is not None)
        return "{" + f",{space}".join(written) + "}"

    def _odd(self, value: str) -> str | None:
        if self.random.randrange(100) >= self.odd:
            return value
        others = [
            "null",
            "null",
            "null",
            None,
            None,
            self._text(),
            self._number(),
            self._flag(),
            "[]",
            f"[{value}]",
            "{}",
            '{"k": 1}',
        ]
        return self.random.choice(others)

    def _text(self) -> str:
        plain = self.random.randrange(3)
        return f'"{self.random.choice(_TEXTS if not plain else _TEXTS[:3])}"'

    def _number(self) -> str:
        plain = self.random.randrange(3)
        return self.random.choice(_NUMBERS) if not plain else f"{self.random.randrange(1000) / 10}"

    def _flag(self) -> str:
        return self.random.choice(["true", "false"])

    def _array(self, makers: list) -> str:  # type: ignore[type-arg]
        size = self.random.choice([0, 1, 2, 2, 3])
        members = [self._odd(self.random.choice(makers)()) for _ in range(size)]
        return f"[{', '.join(each for each in members if each is not None)}]"

    def _row(self) -> str:
        return self._array([self._number])

    def _deep_row(self) -> str:
        return self._array([self._number, self._row, self._line]) if not self.random.randrange(5) else self._row()

    def _customer(self) -> str:
        address = self._object([("zip", self._text()), ("floor", self._number())])
        return self._object([("country", self._text()), ("vip", self._flag()), ("address", address)])

    def _line(self) -> str:
        tags = self._array([self._text])
        return self._object([("sku", self._text()), ("qty", self._number()), ("tags", tags)])


VALUES = [
    "$o.id",
    "$o.name",
    "$o.amount",
    "$o.ok",
    "$o.customer.country",
    "$o.customer.vip",
    "$o.customer.address.floor",
    "$o.note",
    "$o.missing",
    "$o.tags[[1]]",
    "$o.tags[[2]]",
    "$o.lines[[1]].sku",
    "$o.scores[[1]]",
    '$o."@kind"',
    "$o.amount * 2",
    "$o.amount + $o.limit",
    "$o.amount div 4 - 1",
    "-$o.amount",
    "upper-case($o.name)",
    "$o.amount mod 7",
    "concat($o.name, '-', $o.customer.country)",
    "string-length($o.name)",
    "string($o.amount)",
    "string($o.ok)",
    "substring($o.name, 2, 3)",
    "count($o.tags[])",
    "count($o.tags)",
    "count($o.note)",
    "count($o.lines[].sku)",
    "sum($o.scores[])",
    "avg($o.scores[])",
    "min($o.scores[])",
    "max($o.scores)",
    "sum($o.lines[].qty)",
    "round($o.amount)",
    "number($o.amount)",
    "floor($o.limit)",
    "exists($o.note)",
    "empty($o.tags[])",
    "exists($o.customer)",
    "exists($o.tags)",
    "if ($o.ok) then $o.name else $o.customer.country",
    "if ($o.amount > 50) then 'high' else 'low'",
    "not($o.ok)",
    "$o.amount > 50",
    "$o.name = 'gold'",
    "$o.ok = true()",
    "5",
    "'a\"b'",
    "1.5",
    "()",
    "string-join($o.tags[], ',')",
    "some $t in $o.tags[] satisfies $t = 'gold'",
    "count(for $l in $o.lines[] where $l.qty > 5 return $l.sku)",
    "non-null($o.note)",
    "contains($o.name, 'o')",
    "$o.amount idiv 2",
    "abs($o.amount)",
    "count(non-null($o.scores[]))",
    "data($o.name)",
    "boolean($o.amount)",
    "boolean($o.name)",
    "$o/amount",
    "$o/name",
    "$o/customer/country",
    "count($o.rows[])",
    "count($o.rows[][])",
    "$o.rows[[1]][[2]]",
    "sum($o.rows)",
    "count($o/rows/member)",
    "count($o/rows[member > 50])",
    "sum($o/rows/member[1])",
    "count($o.rows[].sku)",
    "exists($o.rows[[2]])",
    "array { $o.tags[] }",
    "array { $o.scores[], $o.id }",
    "array { for $l in $o.lines[] return { 's': $l.sku, 't': $l.tags } }",
    "array { for $l in $o.lines[] order by $l.qty return $l.sku }",
    "array { distinct-values($o.tags[]) }",
    "array { reverse($o.scores[]) }",
    "array { for $t at $i in $o.tags[] return $i }",
    "array { $o.note, $o.name }",
    "$o.tags[][1]",
    "$o.scores[][last()]",
    "$o.tags(1)",
    "$o.scores(2)",
    "$o.lines[][1].sku",
    "exactly-one($o.name)",
    "count(distinct-values($o.tags[]))",
    "count(index-of($o.tags[], 'gold'))",
    "max($o.tags[])",
    "sum(for $l in $o.lines[] return string-length($l.sku))",
    "(let $x := { 'n': $o.name, 'm': $o.amount } return $x)",
    "(let $x := ($o.id, $o.scores[]) return sum($x))",
    "(let $f := function($x) { $x * 2 } return $f($o.amount))",
    "($o.note, $o.name)[1]",
    "(for $i in 1 to 2 return $o.id)[1]",
]
WHOLES = [
    "$o.rows",
    "$o.rows[[1]]",
    "array { $o/rows }",
    "$o.customer",
    "$o.customer.address",
    "$o.tags",
    "$o.lines",
    "$o.scores",
    "$o/customer",
    "$o.lines[[1]]",
    "$o",
    "array { $o.lines[] }",
    "array { $o }",
    "$o.lines[][1]",
]
CONDITIONS = [
    "$o.amount > 50",
    "$o.amount = 1",
    "$o.amount != 1",
    "$o.amount <= $o.limit",
    "$o.amount = $o.limit",
    "5 < $o.amount",
    "$o.name = 'gold'",
    "$o.name != 'gold'",
    "$o.name < 'h'",
    "$o.name >= $o.customer.country",
    "contains($o.name, 'gold')",
    "starts-with($o.name, 'g')",
    "ends-with($o.name, 'd')",
    "$o.ok",
    "not($o.ok)",
    "$o.ok = false()",
    "$o.ok != true()",
    "$o.customer.vip = $o.ok",
    "$o.customer.vip",
    "$o.amount",
    "$o.name",
    "$o.note",
    "$o.missing",
    "exists($o.note)",
    "empty($o.note)",
    "exists($o.customer)",
    "exists($o.tags[])",
    "empty($o.tags)",
    "exists($o.missing)",
    "$o.tags = 'gold'",
    "$o.tags[] = 'gold'",
    "$o.scores > 50",
    "$o.scores[] < 1",
    "$o.lines[].sku = 'gold'",
    "$o.tags[[1]] = 'gold'",
    "$o.lines[[1]].qty > 10",
    "some $t in $o.tags[] satisfies starts-with($t, 'g')",
    "$o.amount eq 1",
    "$o.name eq 'gold'",
    "every $l in $o.lines[] satisfies $l.qty > 1",
    "some $l in $o.lines[] satisfies $l.qty > 10 and $l.sku = 'gold'",
    "$o.amount + 1 > $o.limit",
    "$o.amount * 2 > 100",
    "$o.name = ('gold', 'silver')",
    "$o.amount = (1, 7)",
    "$o.name = $o/name",
    "$o.amount > 5 and $o.ok",
    "$o.amount > 5 or $o.name = 'gold'",
    "$o.customer.country = 'DE' and $o.amount > 1",
    "$o.amount = $o/amount",
    "$o.name > 5",
    "$o.amount = 'gold'",
    "string-length($o.name) > 3",
    "$o.customer.address.floor > 1",
    "count($o.tags[]) > 1",
    "sum($o.scores[]) > 50",
    "$o.\"@kind\" = 'gold'",
    "$o.note = 'gold'",
    "$o/name = 'gold'",
    "some $l in $o.lines[] satisfies (some $t in $l.tags[] satisfies $t = 'gold')",
    "$o.amount lt $o.limit",
    "boolean($o.ok)",
    "$o.rows > 50",
    "$o.rows[] > 50",
    "$o/rows/member > 50",
    "$o/rows/member/member = 5",
    "exists($o.rows[])",
    "some $r in $o.rows[] satisfies $r > 50",
    "$o.rows[].sku = 'gold'",
    "$o.rows[[1]][[1]] = 1",
]
SOURCE = 'stream("s")/root/item'
_LOOKED_UP = re.compile(r"\.([a-z]+)\b|\.\"(@kind)\"|(?<=\$o)((?:/[a-z]+)+)")


def renamed(query: str, keys: Mapping[str, str]) -> str:
    """The query with other keys, in its lookups and in its paths."""

    def other(found: re.Match[str]) -> str:
        if found[3]:
            names = found[3][1:].split("/")
            return "".join(f"/{step_of_key(keys.get(name, name))}" for name in names)
        key = found[1] or found[2]
        return f".{quoted(keys.get(key, key))}"

    return _LOOKED_UP.sub(other, query)


def random_query(random: Random) -> str:
    """A query over such records; some of them fail for all of these, or are not made for columns."""

    def value(depth: int = 0) -> str:
        kind = random.randrange(12)
        if kind == 0 and depth < 2:
            return "{ " + ", ".join(f'"k{n}": {value(depth + 1)}' for n in range(random.choice([0, 1, 2]))) + " }"
        if kind == 1 and depth < 2:
            return f"[{', '.join(value(depth + 1) for _ in range(random.choice([0, 1, 2])))}]"
        return random.choice(WHOLES) if kind == 2 else random.choice(VALUES)

    def given() -> str:
        match random.randrange(10):
            case 0:
                return f"($o.id, {value()})"
            case 1:
                return random.choice(VALUES[:14])
            case 2:
                return f"if ({random.choice(CONDITIONS)}) then {{ 'a': {value()} }} else {{ 'b': {value()} }}"
            case 3:
                return (
                    f"for $l in $o.lines[] where $l.qty > 5 return {{ 'sku': $l.sku, 'of': {value()}, 't': $l.tags }}"
                )
            case 4:
                loop = random.choice(
                    ["$l in $o.lines[] order by $l.qty", "$l in $o.lines[] order by $l.sku descending"]
                )
                return f"for {loop} return {{ 't': $l.qty, 'n': {value()} }}"
            case 6:
                return random.choice(
                    [
                        f"for $t at $i in $o.tags[] return {{ 't': $t, 'i': $i, 'v': {value()} }}",
                        "for $t in distinct-values($o.tags[]) return { 't': $t }",
                        f"for $i in 1 to 2 return {{ 'i': $i, 'v': {value()} }}",
                        random.choice(["$o.tags[]", "$o.lines[]", "$o.scores[]", "$o.lines[].sku"]),
                        f"let $x := {{ 'v': {value()} }} return {{ 'x': $x, 'y': [$x] }}",
                    ]
                )
            case 5:
                return f"<a k='{{ $o.name }}'>{{ {random.choice(VALUES)} }}<b>{{ $o.amount }}</b></a>"
            case _:
                return "{ " + ", ".join(f'"k{n}": {value()}' for n in range(random.choice([1, 2, 3]))) + " }"

    let = random.choice(["", "", "let $a := $o.amount let $c := $o.customer "])
    where = f"where {random.choice(CONDITIONS)} " if random.randrange(4) else ""
    body = given()
    if let:
        body = body.replace("$o.amount", "$a").replace("$o.customer", "$c")
        where = where.replace("$o.amount", "$a").replace("$o.customer", "$c")
    return f"for $o in {SOURCE} {let}{where}return {body}"
