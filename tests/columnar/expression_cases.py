"""Random queries over one stream and random items for them, in XML elements, XML attributes, both mixed, and JSON.

Queries are made of all forms that compile to columns, and now and then of one that does not.
Items mostly have one look; some miss parts, have them twice or in another order, or texts that are seldom met.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

Style: TypeAlias = Literal["elements", "attributes", "mixed", "json"]
STYLES: tuple[Style, ...] = ("elements", "attributes", "mixed", "json")

# --- items ------------------------------------------------------------------------------------------------

_ODD_NUMBERS = [
    "-0", "0", "00", "-7", "+7", "5.", ".5", "1e3", "1E-7", "-2.5e2", "INF", "-INF", "+INF", "NaN", " 5 ", "\t6",
    "1e400", "1e-400", "0.1", "0.30000000000000004", "999999999999999", "123456789012.345", "1234567890123456",
    "9007199254740992", "9007199254740993", "9007199254740993.5", "1700000000000000000", "1700000000000000001",
    "1700000000000000129", "12345678901234567890123", "0.1000000000000000055511151231257827", "1e22", "1e23",
    "100000000000000000000",
]  # fmt: skip
_NO_NUMBERS = ["abc", "", " ", "1 2", "--1", "1.2.3", "0x10", "٣", "+", "nan", "true"]
_ODD_TEXTS = [
    "", " ", "  a  b ", "gold", "goldgold", "é", "straße", "ǆ", "日本", "a'b", 'say "a"', "a<b", "a&b", "a>b", "12",
    "12.0", "true", "0", "\tx", "line\nbreak", "x" * 70, "-", "old", "g", "]]>", "\u00a0", "𝄞gold",
]  # fmt: skip
_WORDS = ["gold", "silver", "golden", "iron", "a gold b", "Gold", "12", "7"]


@dataclass(frozen=True, slots=True)
class Oddity:
    """How often something unusual comes up in items, out of a hundred."""

    texts: int = 0
    shapes: int = 0


PLAIN = Oddity()
"""Items all of one look, with plain texts."""


@dataclass(frozen=True, slots=True)
class ItemMaker:
    """Makes the lines of one stream."""

    random: Random
    style: Style
    oddity: Oddity

    def line(self) -> str:
        """An item in one line."""
        fields = self._fields()
        if self.style == "json":
            return self._json(fields)
        return self._xml(fields)

    def event(self) -> str:
        """An item of another kind, with a few names in common."""
        fields: list[tuple[str, object]] = [("name", self._text()), ("level", self._number()), ("msg", self._text())]
        return self._json(fields) if self.style == "json" else self._element("event", fields)

    def _rarely(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def _number(self) -> str:
        random = self.random
        if self._rarely(self.oddity.texts):
            return random.choice(_NO_NUMBERS if self._rarely(25) else _ODD_NUMBERS)
        return random.choice(
            [str(random.randrange(100)), str(random.randrange(-40, 100) / 4), f"{random.random():.3f}"]
        )

    def _text(self) -> str:
        if self._rarely(self.oddity.texts):
            return self.random.choice(_ODD_TEXTS)
        return self.random.choice(_WORDS)

    def _times(self) -> int:
        return self.random.choice([0, 1, 2, 2, 3, 4])

    def _fields(self) -> list[tuple[str, object]]:
        """The parts of an item, in order: texts, and lists of parts for what holds others."""
        random = self.random
        lines = []
        for _ in range(self._times()):
            line: list[tuple[str, object]] = [("sku", self._text()), ("q", self._number())]
            line += [("w", self._number()) for _ in range(random.choice([0, 1, 2, 2]))]
            lines.append(("line", self._changed(line)))
        fields: list[tuple[str, object]] = [
            ("id", str(random.randrange(1000))),
            ("d", self._changed([("t", self._number()), ("u", self._number())])),
            ("name", self._text()),
            ("f", self._changed([("g", self._changed([("h", self._number())]))])),
            *([("o", self._number())] if self._rarely(60) else []),
            *([("note", self._text())] if self._rarely(60) else []),
            *(("v", self._number()) for _ in range(self._times())),
            *lines,
        ]
        return self._changed(fields)

    def _changed(self, fields: list[tuple[str, object]]) -> list[tuple[str, object]]:
        """With something missing, twice, elsewhere, or one more."""
        if not self._rarely(self.oddity.shapes):
            return fields
        fields = list(fields)
        place = self.random.randrange(len(fields) + 1)
        match self.random.randrange(5):
            case 0 if fields:
                del fields[place - 1]
            case 1 if fields:
                fields.insert(self.random.randrange(len(fields) + 1), fields[place - 1])
            case 2:
                self.random.shuffle(fields)
            case 3:
                fields.insert(place, ("extra", self._text()))
            case _ if fields:
                name, _ = fields[place - 1]
                fields[place - 1] = name, self.random.choice(["", [("t", self._number())], self._text()])
        return fields

    # --- XML ----------------------------------------------------------------------------------------------

    def _xml(self, fields: Sequence[tuple[str, object]]) -> str:
        odd = self._rarely(self.oddity.shapes)
        name = self.random.choice(["q", "p xmlns='u'", "p"]) if odd else "p"
        item = self._element(name, fields)
        if not odd:
            return item
        return self.random.choice([item, f" {item}", item.replace("><", "> <"), item.replace("><", "><!-- c --><", 1)])

    def _element(self, name: str, content: object) -> str:
        tag, attributes, inside = name, "", ""
        if isinstance(content, str):
            inside = self._escaped(content)
        else:
            assert isinstance(content, list)
            seen: set[str] = set()
            for field, value in content:
                if field == "v" and self.style == "attributes" and isinstance(value, str):
                    inside += f"<v x={_quoted(value)}/>"
                elif isinstance(value, str) and is_attribute(self.style, field) and field not in seen:
                    attributes += f" {field}={_quoted(value)}"
                    seen.add(field)
                else:
                    inside += self._element(field, value)
        if not inside and not self._rarely(self.oddity.texts):
            return f"<{tag}{attributes}/>"
        return f"<{tag}{attributes}>{inside}</{tag.split()[0]}>"

    def _escaped(self, text: str) -> str:
        if self._rarely(self.oddity.texts // 4) and "]]>" not in text:
            return f"<![CDATA[{text}]]>".replace("\n", " ")
        return escape(text).replace("\n", "&#10;").replace("]]>", "]]&gt;")

    # --- JSON ---------------------------------------------------------------------------------------------

    def _json(self, fields: Sequence[tuple[str, object]]) -> str:
        return json.dumps(self._record(fields), ensure_ascii=self._rarely(30))

    def _record(self, content: object) -> object:
        if isinstance(content, str):
            return self._json_value(content)
        assert isinstance(content, list)
        found: dict[str, object] = {}
        for field, value in content:
            read = self._record(value)
            if field in ("v", "line", "w"):
                several = found.setdefault(field, [])
                assert isinstance(several, list)
                several.append(read)
            elif field in found:
                found[field] = [found[field], read]
            else:
                found[field] = read
        if self._rarely(self.oddity.shapes) and found:
            found[self.random.choice(list(found))] = self.random.choice([None, [], {}, True, [[1], 2], 1.5])
        return found

    def _json_value(self, text: str) -> object:
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return value if isinstance(value, int | float) and self._rarely(70) else text


def _quoted(text: str) -> str:
    return quoteattr(text, {"\n": "&#10;", "\t": "&#9;"})


def is_attribute(style: Style, field: str) -> bool:
    """Whether a part that holds a text is an attribute."""
    if field in ("v", "w"):
        return False
    return style == "attributes" or (style == "mixed" and field in ("id", "u", "note", "sku"))


# --- queries ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Names:
    """What expressions may use: paths to single values, to repeated ones, and variables."""

    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    nodes: tuple[str, ...]
    repeated: tuple[str, ...] = ()
    """Paths to repeated numbers."""
    lines: tuple[str, ...] = ()
    """Paths to repeated parts with others in them."""
    booleans: tuple[str, ...] = ()


_PATTERNS = ['" "', '"o"', '"[^a-z]+"']
_TYPES = ["xs:integer", "xs:double", "xs:decimal?", "xs:boolean", "xs:date", "xs:string?"]
_REPLACEMENTS = ["'o', '0'", "'(g)(o)', '$2$1'", "'[^a-z]', ''", "'\\s+', '-'", "'G', 'x', 'i'", "'x*', 'y'"]
_PICTURES = ["'#,##0.00'", "'0'", "'0.###;(#)'", "'000.0e0'", "'#,###.##'"]
_TRANSLATIONS = ['"go", "x"', '"é", "e"', '"abc", "cab"']


_AGGREGATES = ("sum", "avg", "min", "max", "median", "stddev")


class QueryMaker:
    """Makes queries for the items of one style."""

    def __init__(self, random: Random, style: Style) -> None:
        self.random = random
        self.style = style
        self.item = "item" if style == "json" else "p"
        self._variables = 0

    def _at(self, field: str) -> str:
        return f"@{field}" if is_attribute(self.style, field) else field

    def _value(self) -> str:
        return "v/@x" if self.style == "attributes" else "v"

    def of_item(self, start: str = "$p") -> Names:
        """What an item has."""
        t, u, h, i, o, name, note = map(self._at, ("t", "u", "h", "id", "o", "name", "note"))
        return Names(
            (f"{start}/d/{t}", f"{start}/d/{u}", f"{start}/{i}", f"{start}/f/g/{h}", f"{start}/{o}", f"{start}//{t}"),
            (f"{start}/{name}", f"{start}/{note}", f"{start}/d/{t}", f"{start}/*/{u}"),
            (
                f"{start}/d",
                f"{start}/f",
                f"{start}/f/g",
                f"{start}/line",
                f"{start}/v",
                f"{start}/d/*",
                start,
                f"{start}//g",
            ),
            (
                f"{start}/{self._value()}",
                f"{start}/line/{self._at('q')}",
                f"{start}//{self._at('q')}",
                f"{start}/line/w",
            ),
            (f"{start}/line",),
        )

    def _in_line(self, names: Names, start: str) -> Names:
        return replace(
            names,
            numbers=(*names.numbers[:2], f"{start}/{self._at('q')}", f"{start}/{self._at('q')}"),
            texts=(*names.texts[:1], f"{start}/{self._at('sku')}", f"{start}/{self._at('sku')}"),
            nodes=(names.nodes[0], start, f"{start}/w", f"{start}/*"),
            repeated=(f"{start}/w", *names.repeated[:1]),
            lines=(),
        )

    def _variable(self, letter: str) -> str:
        self._variables += 1
        return f"${letter}{self._variables}"

    def _some_of(self, *makers: object) -> str:
        chosen = self.random.choice(makers)
        assert callable(chosen)
        found = chosen()
        assert isinstance(found, str)
        return found

    # --- numbers ------------------------------------------------------------------------------------------

    def number_literal(self) -> str:
        return self.random.choice(
            ["0", "1", "2", "5", "20", "50", "0.5", "12.25", "0.1", "1e1", "2.5e-1", "7", "1700000000000000000", "1e3",
             "9007199254740993", "1234567890123456", "999999999999999", "100000000000000000000", "0.3"]
        )  # fmt: skip

    def number(self, names: Names, depth: int) -> str:
        """An expression that mostly is a number."""
        random = self.random
        leaf = [lambda: random.choice(names.numbers)] * 3 + [self.number_literal]
        if depth <= 0:
            return self._some_of(*leaf)
        below = depth - 1

        def arithmetic() -> str:
            found = self.number(names, below)
            for _ in range(random.choice([1, 1, 2])):
                found += f" {random.choice(['+', '-', '*', 'div', 'mod'])} {self.number(names, below)}"
            return f"({found})"

        def whole() -> str:
            return f"({self.number(names, below)} idiv {self.number(names, 0)})"

        def call() -> str:
            name = random.choice(["abs", "floor", "ceiling", "round", "number"])
            return f"{name}({self.number(names, below)})"

        def everyday() -> str:
            inside = self.number(names, below)
            digits = random.choice(["0", "1", "2", "2", "3", "-1", "20", "30"])
            return random.choice(
                [
                    f"{random.choice(['round', 'round-half-to-even'])}({inside}, {digits})",
                    f"{random.choice(['round-half-to-even', 'math:exp', 'math:log', 'math:sin'])}({inside})",
                    f"{random.choice(['xs:integer', 'xs:double', 'xs:decimal'])}({inside})",
                    f"(xs:decimal({inside}) {random.choice(['+', '-', '*', 'div', 'mod'])} {self.number(names, 0)})",
                    f"({inside} cast as xs:integer?)",
                    f"math:pow({inside}, {random.choice(['2', '0.5', '-1'])})",
                    f"compare({self.text(names, 0)}, {self.text(names, 0)})",
                    f"(try {{ {inside} }} catch * {{ {self.number(names, 0)} }})",
                    f"({inside}, {self.number(names, 0)})[1]",
                    f"head({self.values(names, below)})",
                    f"(for $one in {inside} return $one + 1)",
                    f"(for $one in {random.choice(names.numbers)} where $one > 3 return number($one))",
                    f"(if ({self.boolean(names, 0)}) then {inside} else ())",
                    f"sum(for-each({random.choice(names.repeated or names.numbers)}, function($x) {{ $x * 2 }}))",
                    f"{random.choice(['zero-or-one', 'exactly-one'])}({inside})",
                    f"exactly-one({random.choice([*names.numbers, *names.repeated])})",
                    f"(function($x, $y) {{ $x * 2 + $y }}({inside}, {self.number(names, 0)}))",
                    f"(let $f := function($x) {{ {inside} + $x }} return $f({self.number(names, 0)}))",
                    f"{random.choice(names.repeated or names.numbers)}{random.choice(['[1]', '[2]', '[last()]'])}",
                    f"({random.choice(names.numbers)}, {random.choice(names.numbers)})[1]",
                    f"sum(for $one in {self.values(names, 0)} return string-length(string($one)))",
                    f"sum(for $one at $place in {random.choice(names.repeated or names.numbers)} return $place)",
                    f"count(index-of({random.choice(names.repeated or names.texts)}, {self.text_literal()}))",
                    f"(let $all := {self.values(names, below)} return sum($all) + count($all))",
                ]
            )

        def let() -> str:
            variable = self._variable("n")
            inside = replace(names, numbers=(*names.numbers, variable, variable))
            return f"(let {variable} := {self.number(names, below)} return {self.number(inside, below)})"

        return self._some_of(
            *leaf,
            *[arithmetic] * 4,
            *[call] * 3,
            *[everyday] * 3,
            whole,
            lambda: f"math:sqrt({self.number(names, below)})",
            lambda: f"(-{self.number(names, below)})",
            lambda: f"string-length({self.text(names, below)})",
            lambda: f"number({self.text(names, below)})",
            lambda: f"count({random.choice([*names.repeated, *names.lines, *names.nodes])})",
            lambda: f"count({self.filtered(names, below)})",
            lambda: f"{random.choice([*_AGGREGATES, 'count'])}({self.values(names, below)})",
            lambda: f"{random.choice(['sum', 'avg', 'min', 'max'])}({random.choice(names.repeated or names.numbers)})",
            lambda: self.aggregate(names, below),
            lambda: (
                f"(if ({self.boolean(names, below)}) then {self.number(names, below)} else {self.number(names, below)})"
            ),
            lambda: self.text(names, below) if random.randrange(4) == 0 else self.number(names, below),
            let,
        )

    # --- sequences ----------------------------------------------------------------------------------------

    def filtered(self, names: Names, depth: int) -> str:
        """A path with a predicate to something that may be repeated."""
        random = self.random
        if random.randrange(4) == 0:
            return self.placed(names)
        if names.lines and random.randrange(2):
            place = self.place() if random.randrange(4) == 0 else ""
            line = f"{random.choice(names.lines)}{place}[{self.boolean(self._line_context(), depth)}]"
            return line + random.choice(["", f"/{self._at('q')}", f"/{self._at('sku')}", "/w"])
        path = random.choice([*names.repeated, *names.numbers])
        test = (
            f". {self.operator()} {random.choice([self.number_literal(), self.number_literal(), self.text_literal()])}"
        )
        return f"{path}[{test}]"

    def place(self) -> str:
        """A predicate that is a position."""
        return self.random.choice(
            ["[1]", "[2]", "[last()]", "[position() <= 2]", "[position() > 1]", "[last() - 1]", "[1.0]", "[1.5]",
             "[position() = last()]", "[position() = (1, 3)]", "[position() mod 2 = 1]",
             "[position() < 3 and . != 'x']"]
        )  # fmt: skip

    def placed(self, names: Names) -> str:
        """A path with positions in it, perhaps behind a predicate that cannot fail."""
        random = self.random
        if names.lines and random.randrange(2):
            line = random.choice(names.lines) + random.choice(["", "", "[w]", f'[{self._at("sku")} != "x"]'])
            return line + self.place() + random.choice(["", f"/{self._at('q')}", "/w", f"/w{self.place()}"])
        path = random.choice([*names.repeated, *names.numbers])
        test = random.choice(["", "", "", '[. != "5"]', "[position() > 1]"])
        return f"({path}){test}{self.place()}" if random.randrange(3) == 0 else f"{path}{test}{self.place()}"

    def _line_context(self) -> Names:
        """What a predicate on a line may look at."""
        q, sku = self._at("q"), self._at("sku")
        return Names((q,), (sku, sku), ("w",), ("w",))

    def values(self, names: Names, depth: int) -> str:
        """Several values."""
        random = self.random
        below = depth - 1

        def loop() -> str:
            variable = self._variable("e")
            if names.lines and random.randrange(2):
                place = self.place() if random.randrange(4) == 0 else ""
                source, inside = random.choice(names.lines) + place, self._in_line(names, variable)
            else:
                source = random.choice([*names.repeated, *names.numbers])
                inside = replace(names, numbers=(*names.numbers[:2], variable, variable))
            where = f" where {self.boolean(inside, 0)}" if random.randrange(2) else ""
            return f"(for {variable} in {source}{where} return {self.number(inside, below)})"

        def row() -> str:
            parts = (self.number(names, below) for _ in range(random.choice([1, 2, 3])))
            return f"({', '.join(parts)})"

        def distinct() -> str:
            found = random.choice([*names.repeated, *names.numbers, self.filtered(names, below)])
            return f"distinct-values({found})"

        plain = random.choice([*names.repeated, *names.numbers])

        def placed() -> str:
            """Values by their places, in another order, or one by one."""
            several = self.values(names, below) if depth > 0 else plain
            word = random.choice(["at $place", "count $place"])
            counted = f"$one {word} in {plain}" if word.startswith("at") else f"$one in {plain} {word}"
            order = random.choice(["$one", "$one descending", "string-length(string($one))", "$one * 1 descending"])
            return random.choice(
                [
                    f"reverse({several})",
                    f"(for {counted} return $place * 2)",
                    f"(for {counted} where $place > 1 return string($one))",
                    f"(for $one in {several} where $one > {self.number_literal()} count $place return $place)",
                    f"(for $one in {several} order by {order} return string($one))",
                    f"(for $one in distinct-values({several}) return concat($one, '!'))",
                    f"(for $one in ({plain}, {self.number(names, 0)}, 'x') return concat($one, '.'))",
                    f"(for $one in 1 to {random.randrange(4)} return $one * 2)",
                    f"index-of({plain}, {random.choice([self.text_literal(), self.number_literal()])})",
                    f"one-or-more({several})",
                    f"(let $all := {several} return $all)",
                    f"max(for $one in {plain} return string($one))",
                ]
            )

        return self._some_of(lambda: plain, lambda: self.filtered(names, below), loop, row, distinct, placed)

    def aggregate(self, names: Names, depth: int) -> str:
        """An aggregate of what is repeated, or of what a loop over it computes."""
        random = self.random
        function = random.choice(_AGGREGATES)
        path = random.choice(names.repeated or names.numbers)
        if random.randrange(2):
            return f"{function}({path})"
        variable = self._variable("g")
        inside = Names((variable, variable, *names.numbers[:1]), names.texts[:1], names.nodes[:1])
        where = f" where {self.boolean(inside, 0)}" if random.randrange(2) else ""
        return f"{function}(for {variable} in {path}{where} return {self.number(inside, min(depth, 1))})"

    # --- texts --------------------------------------------------------------------------------------------

    def text_literal(self) -> str:
        return self.random.choice(
            [
                '"gold"',
                '"g"',
                '""',
                '"12"',
                '"old"',
                '"é"',
                "'x'",
                '" "',
                '"7"',
                '"a gold b"',
                '"straße"',
                '"a &lt; &amp;"',
            ]
        )

    def text(self, names: Names, depth: int) -> str:
        """An expression that mostly is a text."""
        random = self.random
        leaf = [lambda: random.choice(names.texts)] * 3 + [self.text_literal]
        if depth <= 0:
            return self._some_of(*leaf)
        below = depth - 1

        def places() -> str:
            found = f"{self.number(names, below)}"
            return found if random.randrange(2) else f"{found}, {self.number(names, 0)}"

        def simple_places() -> str:
            return random.choice(["1, 4", "2", "0, 3", "3, 1", "2, 2", "1.5, 2", "-1, 4"])

        return self._some_of(
            *leaf,
            lambda: f"string({self.number(names, below)})",
            lambda: f"string({self.text(names, below)})",
            lambda: f"concat({self.text(names, below)}, {self.number(names, below)}, {self.text(names, 0)})",
            lambda: f"concat({self.boolean(names, 0)}, {self.text(names, below)})",
            lambda: f"substring({self.text(names, below)}, {simple_places()})",
            lambda: f"substring({self.text(names, below)}, {places()})",
            lambda: f"substring-before({self.text(names, below)}, {self.text(names, 0)})",
            lambda: f"substring-after({self.text(names, below)}, {self.text(names, 0)})",
            lambda: f"normalize-space({self.text(names, below)})",
            lambda: f"upper-case({self.text(names, below)})",
            lambda: f"lower-case({self.text(names, below)})",
            lambda: f"translate({self.text(names, below)}, {random.choice(_TRANSLATIONS)})",
            lambda: f"({self.text(names, below)} || {self.number(names, 0)})",
            lambda: f"replace({self.text(names, below)}, {random.choice(_REPLACEMENTS)})",
            lambda: f"encode-for-uri({self.text(names, below)})",
            lambda: f"xs:string({random.choice([self.text, self.number])(names, below)})",
            lambda: f"tokenize({self.text(names, below)}, {random.choice(_PATTERNS)})[{random.choice('123')}]",
            lambda: f"tokenize({self.text(names, below)})[1]",
            lambda: f"({self.text(names, below)}, {self.text_literal()})[1]",
            lambda: f"(for $one in {random.choice(names.texts)} return upper-case($one))",
            lambda: f"(try {{ {self.text(names, below)} }} catch * {{ 'caught' }})",
            lambda: f"string({self.text(names, below)} {random.choice(['eq', 'gt'])} {self.text_literal()})",
            lambda: f"format-integer(count({random.choice(names.repeated or names.texts)}), '001')",
            lambda: f"format-number({self.number(names, below)}, {random.choice(_PICTURES)})",
            lambda: (
                f"(switch ({self.text(names, 0)}) case {self.text_literal()} case {self.text(names, 0)} "
                f"return {self.text(names, below)} default return {self.text(names, 0)})"
            ),
            lambda: f"{random.choice(names.texts)}/string()",
            lambda: (
                f"(if ({self.boolean(names, below)}) then {self.text(names, below)} else {self.text(names, below)})"
            ),
            lambda: f"data({random.choice(names.texts)})",
            lambda: f"string-join({self.values(names, below)}, {self.text_literal()})",
            lambda: f"string-join({random.choice(names.repeated or names.texts)})",
            lambda: f"{random.choice(['name', 'local-name'])}({random.choice(names.nodes)})",
            lambda: self._text_node(random.choice(names.texts)),
        )

    def _text_node(self, path: str) -> str:
        return f"string({path})" if "@" in path or "/" not in path else f"{path}/text()"

    # --- conditions ---------------------------------------------------------------------------------------

    def operator(self) -> str:
        return self.random.choice(["=", "!=", "<", "<=", ">", ">="])

    def boolean(self, names: Names, depth: int) -> str:
        """A condition."""
        random = self.random

        def leaf() -> str:
            return f"{random.choice([*names.numbers, *names.repeated])} {self.operator()} {self.number_literal()}"

        def text_leaf() -> str:
            sides = [random.choice(names.texts), random.choice([self.text_literal(), random.choice(names.texts)])]
            random.shuffle(sides)
            return f"{sides[0]} {self.operator()} {sides[1]}"

        def paths() -> str:
            return (
                f"{random.choice(names.numbers)} {self.operator()} {random.choice([*names.numbers, *names.repeated])}"
            )

        def listed() -> str:
            kinds = random.choice([(names.numbers, self.number_literal), (names.texts, self.text_literal)])
            path = random.choice([*kinds[0], *names.repeated])
            several = ", ".join(kinds[1]() for _ in range(random.choice([1, 2, 3])))
            return f"{path} {random.choice(['=', '=', self.operator()])} ({several})"

        if depth <= 0:
            return self._some_of(leaf, leaf, text_leaf, paths, listed)
        below = depth - 1

        def quantified() -> str:
            variable = self._variable("s")
            kind = random.choice(["some", "every"])
            if names.lines and random.randrange(2):
                source = random.choice(names.lines)
                inside = self._in_line(names, variable)
                if random.randrange(3) == 0:
                    other = self._variable("s")
                    deepest = replace(inside, numbers=(*inside.numbers, other, other, other))
                    return (
                        f"({kind} {variable} in {source}, {other} in {variable}/w "
                        f"satisfies {self.boolean(deepest, below)})"
                    )
            else:
                source = random.choice([*names.repeated, *names.numbers, self.filtered(names, below)])
                inside = replace(names, numbers=(*names.numbers[:2], variable, variable))
            return f"({kind} {variable} in {source} satisfies {self.boolean(inside, below)})"

        def logical() -> str:
            word = random.choice([" and ", " or "])
            return "(" + word.join(self.boolean(names, below) for _ in range(random.choice([2, 2, 3]))) + ")"

        def compared() -> str:
            return f"{self.number(names, below)} {self.operator()} {self.number(names, below)}"

        def tested() -> str:
            name = random.choice(["contains", "starts-with", "ends-with"])
            return f"{name}({self.text(names, below)}, {self.text(names, 0)})"

        def everyday() -> str:
            word = random.choice(["eq", "ne", "lt", "le", "gt", "ge"])
            pattern = random.choice(["'^g'", "'o.d'", "'[0-9]+$'", "'G', 'i'", "'\\s'", "'é|日'", "'(a*)*b'"])
            return random.choice(
                [
                    f"({self.text(names, below)} {word} {self.text(names, 0)})",
                    f"({random.choice(names.texts)} {word} {self.text_literal()})",
                    f"({random.choice(names.texts)} {word} {random.choice(names.texts)})",
                    f"(number({self.number(names, 0)}) {word} {self.number_literal()})",
                    f"matches({self.text(names, below)}, {pattern})",
                    f"({self.number(names, below)} = (1 to {random.randrange(12)}))",
                    f"deep-equal({self.text(names, 0)}, {self.text(names, 0)})",
                    f"({random.choice([*names.texts, *names.numbers])} castable as {random.choice(_TYPES)})",
                    f"contains-token({self.text(names, below)}, {self.text_literal()})",
                    f"xs:boolean({random.choice([*names.texts, *names.numbers])})",
                    f"exists(filter({random.choice(names.repeated or names.numbers)}, function($x) {{ $x > 5 }}))",
                    f"(try {{ {self.boolean(names, below)} }} catch * {{ false() }})",
                ]
            )

        def there() -> str:
            path = random.choice(
                [*names.numbers, *names.texts, *names.nodes, *names.repeated, *names.lines, self.filtered(names, below)]
            )
            return random.choice([f"exists({path})", f"empty({path})", path, f"not({path})", f"boolean({path})"])

        return self._some_of(
            leaf,
            text_leaf,
            paths,
            compared,
            compared,
            everyday,
            tested,
            there,
            quantified,
            quantified,
            logical,
            logical,
            lambda: f"not({self.boolean(names, below)})",
            lambda: f"({self.text(names, below)} {self.operator()} {self.text(names, below)})",
            lambda: f"({self.boolean(names, below)}) = ({self.boolean(names, 0)})",
            lambda: f"{self.values(names, below)} {self.operator()} {self.number(names, 0)}",
            lambda: f"{self.filtered(names, below)} {self.operator()} {self.number_literal()}",
            lambda: f"{self.filtered(names, below)} {self.operator()} {self.text_literal()}",
            listed,
            lambda: f"boolean({self.number(names, below)})",
            lambda: random.choice(["true()", "false()", *names.booleans]),
        )

    # --- results ------------------------------------------------------------------------------------------

    def nodes(self, names: Names, depth: int) -> str:
        """A result that is elements."""
        random = self.random
        if depth <= 0:
            return self._some_of(lambda: random.choice(names.nodes), lambda: self.constructor(names, 0))
        below = depth - 1

        def loop() -> str:
            variable = self._variable("r")
            if names.lines and random.randrange(2):
                source, inside = random.choice(names.lines), self._in_line(names, variable)
            else:
                source = random.choice([*names.repeated, names.nodes[0]])
                inside = replace(names, numbers=(*names.numbers[:2], variable, variable))
            where = f" where {self.boolean(inside, below)}" if random.randrange(2) else ""
            lets = ""
            if random.randrange(4) == 0:
                bound = self._variable("n")
                lets = f" let {bound} := {self.number(inside, below)}"
                inside = replace(inside, numbers=(*inside.numbers, bound))
            order = self.order(inside, below) if random.randrange(3) == 0 else ""
            return f"(for {variable} in {source}{lets}{where}{order} return {self.nodes(inside, below)})"

        return self._some_of(
            lambda: random.choice(names.nodes),
            lambda: self.constructor(names, depth),
            lambda: self.constructor(names, depth),
            lambda: f"({self.nodes(names, below)}, {self.nodes(names, below)})",
            lambda: (
                f"(if ({self.boolean(names, below)}) then {self.nodes(names, below)} else {self.nodes(names, below)})"
            ),
            lambda: f"(if ({self.boolean(names, below)}) then {self.nodes(names, below)} else ())",
            lambda: f"{random.choice([*names.lines, *names.nodes])}{self.place()}",
            lambda: (
                f"({random.choice([*names.nodes, *names.lines])} {random.choice(['union', 'intersect', 'except'])} "
                f"{random.choice([*names.nodes, *names.repeated])})"
            ),
            lambda: f"({random.choice(['$p/*', '$p//w', '$p/line'])} except {random.choice(names.nodes)})",
            lambda: (
                f"{random.choice([*names.nodes, *names.lines])}/{random.choice(['..', 'self::d', '../name', '(d, w)'])}"
            ),
            lambda: f"reverse({random.choice([*names.nodes, *names.lines])})",
            lambda: f"({random.choice(names.nodes)}, {self.nodes(names, 0)})[1]",
            lambda: f"(let $made := {self.nodes(names, below)} return ($made, $made))",
            lambda: (
                f"(for $one at $place in {random.choice([*names.lines, *names.nodes])} "
                f"return <n at='{{ $place }}'>{{ {self.nodes(names, 0)} }}</n>)"
            ),
            loop,
            loop,
        )

    def order(self, names: Names, depth: int) -> str:
        """Keys of all kinds."""
        makers = (self.number, self.number, self.text, self.boolean)
        keys = [self.random.choice(makers)(names, depth - 1) for _ in range(self.random.choice([1, 1, 2]))]
        return f" order by {', '.join(key + self.random.choice(['', ' descending']) for key in keys)}"

    def constructor(self, names: Names, depth: int) -> str:
        """An element with computed text and attributes."""
        random = self.random
        below = depth - 1
        attributes = ""
        for name in random.sample(["k", "l", "m"], random.choice([0, 0, 1, 2])):
            value = random.choice([self.text, self.number, self.values])(names, below)
            attributes += f' {name}="{random.choice(["", "a ", "&lt;"])}{{ {value} }}{random.choice(["", "!"])}"'

        def enclosed() -> str:
            kinds = [self.nodes, self.text, self.number, self.boolean, self.values, self.filtered, self._in_a_row]
            return "{ " + random.choice(kinds)(names, below) + " }"

        content = "".join(
            self._some_of(enclosed, enclosed, lambda: "x &amp; y", lambda: "<b/>")
            for _ in range(random.choice([0, 1, 1, 1, 2, 3]))
        )
        return f"<a{attributes}>{content}</a>" if content else f"<a{attributes}/>"

    def _in_a_row(self, names: Names, depth: int) -> str:
        kinds = [self.nodes, self.text, self.number, self.values]
        parts = (self.random.choice(kinds)(names, depth - 1) for _ in range(self.random.choice([2, 3])))
        return ", ".join(parts)

    def of_window(self) -> Names:
        """What a window `$w` of items has."""
        items = self.of_item("$w")
        repeated = *items.numbers, *items.repeated
        numbers = tuple(f"{each}($w/d/{self._at('t')})" for each in ("sum", "avg", "min", "max", "median"))
        return Names(
            ("count($w)", *numbers), ("string(count($w))",), ("$w/d", "$w/line", "$w", "$w//g"), repeated, ("$w/line",)
        )

    def window_query(self, depth: int = 2) -> str:
        """A query over windows of the stream's items, by their number or their `id`."""
        random = self.random
        size, step = random.choice([(1, 1), (3, 3), (4, 2), (7, 1), (2, 5), (10, 4)])
        window = f"count {size} step {step}"
        if random.randrange(2):
            window = f"{self._at('id')} diff {30 * size} step {30 * step}"
        names, item = self.of_window(), self.of_item()
        looped = f"for $p in $w where {self.boolean(item, depth - 1)} return {self.nodes(item, depth - 1)}"
        made = self.nodes(names, depth)
        result = random.choice([made, made, f"<w>{{ {looped} }}</w>", f"<w>{{ $w }}{{ {looped} }}</w>"])
        where = f" where {self.boolean(names, depth - 1)}" if random.randrange(3) == 0 else ""
        return f'for $w in stream("s")/r/{self.item}|{window}|{where} return {result}'

    def query(self, depth: int = 2) -> str:
        """A query over the items of the stream."""
        random = self.random
        names = self.of_item()
        context = Names(
            *(tuple(each.removeprefix("$p/") for each in some if each.startswith("$p/") and "//" not in each)
              for some in (names.numbers, names.texts, names.nodes, names.repeated, names.lines)),
        )  # fmt: skip
        predicate = f"[{self.boolean(context, depth - 1)}]" if random.randrange(3) == 0 else ""
        path = f'stream("s")/r/{self.item}{predicate}'
        if random.randrange(12) == 0:
            return path + random.choice(["", "/d", "/line", "/f/g"])
        lets = ""
        for _ in range(random.choice([0, 0, 0, 1, 2])):
            variable = self._variable("x")
            match random.randrange(4):
                case 0:
                    lets += f" let {variable} := {self.text(names, depth - 1)}"
                    names = replace(names, texts=(*names.texts, variable, variable))
                case 1:
                    lets += f" let {variable} := {self.boolean(names, depth - 1)}"
                    names = replace(names, booleans=(*names.booleans, variable, variable))
                case _:
                    lets += f" let {variable} := {self.number(names, depth - 1)}"
                    names = replace(names, numbers=(*names.numbers, variable, variable))
        where = f" where {self.boolean(names, depth)}" if random.randrange(3) else ""
        found = f"for $p in {path}{lets}{where} return {self.nodes(names, depth)}"
        return f"<out>{{ {found} }}</out>" if random.randrange(6) == 0 else found
