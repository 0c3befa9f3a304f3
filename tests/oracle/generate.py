"""Random streams and random queries over them: a case is a function of its family and its number.

An item `i` has leaves `a` (anything), `n` and `t` (numbers, `t` mostly rising), `s` (mixed content), an attribute
`id`, and inner elements `c` with leaves and an attribute of their own; everything may repeat or be missing.
Queries are written as text, so that the parser takes part, and are well formed by construction.
What XQuery leaves to the processor is not generated: a value that may fail and need not be looked at, arithmetic
between literals only, attributes at the top of an answer.
Decisions come from a plain generator of random numbers, because hypothesis prefers variations of what it has drawn
before: of 500 queries drawn with it, 130 were different.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from oracle.everyday import everyday_query

NUMBERS = ("0", "1", "2", "5", "7.5", "10", "-3", "-0", "1.3", "1.30", "0.1", "0.2", "007", " 5 ", "+4", "99", "100")
LONG = (
    *("1.00000000000000000001", "4.99999999999999999999", "1.3000000000000000001", "0.3333333333333333333333"),
    *("12345678901234567890.5", "1e3", "1.5E2", "2e-1"),
)
TEXTS = ("", "x", "abc", "b", "10 apples", "Wiley", "1,5", "é", "<&>", "NaN", "INF", "-INF", "inf")
LITERALS = ("0", "1", "1", "1.3", "1.3e0", "2", "-3", "5", "5.0", "7.5", "10", "1e1", "1.30", "99.5")
WORDS = ('"x"', '"abc"', "'5'", '"1.3"', '""', '"Wiley"', '"é"')
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")

Kind: TypeAlias = Literal["item", "inner", "leaf"]
"""What a path starts from."""

PATHS: dict[Kind, tuple[str, ...]] = {
    "item": (
        *("a", "n", "t", "s", "@id", "c/a", "c/n", "c/@k", "//a", "//n", "//@k", "*/a", "c/*", "a/text()", "s//text()"),
        *("c/../n", "c/a/../@k", "descendant::n", "self::i/a", "missing", "c/missing"),
    ),
    "inner": ("a", "n", "@k", "../n", "../@id", "parent::i/a", "*", "node()", "//a", "a/text()"),
    "leaf": ("text()", "../a", "../n", "self::a", "self::node()"),
}
SINGLE: dict[Kind, tuple[str, ...]] = {
    "item": ("t", "t", "@id", "s", "s/e", "self::node()"),
    "inner": ("@k", "a", "../t", "parent::i/@id"),
    "leaf": ("self::node()", "../t", "self::n"),
}
"""Paths that mostly give one node, for where more than one is an error."""


@dataclass(frozen=True)
class Case:
    """A query with its inputs; `timed` streams have the time path `t`."""

    query: str
    inputs: dict[str, str]
    timed: bool = False

    def __str__(self) -> str:
        inputs = "".join(f"\n{name}{' (timed)' if self.timed else ''}: {text}" for name, text in self.inputs.items())
        return f"{self.query}{inputs}"


class Writer:
    """Writes streams and queries, one random decision after the other."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.aggregates = True  # a join is refused if it has some

    def one(self, *choices: str | Callable[[], str]) -> str:
        chosen = self.random.choice(choices)
        return chosen if isinstance(chosen, str) else chosen()

    def upto(self, most: int) -> range:
        return range(self.random.randint(0, most))

    # --- streams ------------------------------------------------------------------------------------------

    def leaf(self, name: str, *values: str) -> str:
        return f"<{name}>{escape(self.one(*values))}</{name}>"

    def inner(self) -> str:
        leaves = [
            self.one(lambda: self.leaf("a", *NUMBERS, *TEXTS), lambda: self.leaf("n", *NUMBERS)) for _ in self.upto(3)
        ]
        return f"<c k={quoteattr(self.one('x', '5', *TEXTS))}>{''.join(leaves)}</c>"

    def item(self, time: str) -> str:
        parts = [self.leaf("a", *NUMBERS, *LONG, *TEXTS) for _ in self.upto(2)]
        parts += [self.leaf("n", *NUMBERS, *LONG) for _ in self.upto(2)]
        parts += [f"<t>{time}</t>"] if time else []
        parts += [self.one("<s/>", "<s>x<e>5</e>y</s>", "<s><e>1</e><e>2</e></s>", "<s>abc</s>") for _ in self.upto(1)]
        parts += [self.inner() for _ in self.upto(2)]
        return f"<i id={quoteattr(self.one('1', '2', 'x'))}>{''.join(parts)}</i>"

    def stream(self, most: int = 6) -> str:
        time, items = 0.0, ""
        for _ in self.upto(most):
            time += self.random.choice((0.5, 0, 1, 2.5, 3, 7, 12, -2))
            items += self.item(self.one(*[f"{time:g}"] * 12, "", "x"))
        return f"<r>{items}</r>"

    # --- paths and values ---------------------------------------------------------------------------------

    def path(self, base: str, kind: Kind, depth: int = 1) -> str:
        """A path from `base` (nothing: from the context item) to leaves."""
        path = self.one(*PATHS[kind])
        if depth and kind == "item":
            path = self.one(
                path,
                lambda: f"c[{self.condition('', 'inner', depth - 1)}]/{self.one('a', 'n', '@k')}",
                lambda: f"{self.one('a', 'n', '*', '//a')}[{self.condition('', 'leaf', depth - 1)}]",
                lambda: f"c/a[{self.condition('', 'leaf', 0)}][{self.condition('', 'leaf', 0)}]",
                lambda: f"self::i[{self.condition('', 'item', depth - 1)}]/n",
            )
        if path.startswith("//"):
            return f"{base or '.'}{path}"
        return f"{base}/{path}" if base else path

    def single(self, base: str, kind: Kind) -> str:
        path = self.one(*SINGLE[kind])
        return self.one(*[f"{base}/{path}" if base else path] * 5, lambda: self.path(base, kind))

    def number(self, base: str, kind: Kind, depth: int = 1) -> str:
        """A computed number, or nothing, or an error."""
        single, operator, literal = self.single(base, kind), self.one("+", "-", "*", "div", "mod"), self.one(*LITERALS)
        plain = (
            lambda: f"{self.one('number', 'string-length')}({single})",
            lambda: f"({single} {operator} {literal})",
            lambda: f"({single} * {single} - {literal})",
            lambda: f"{self.one('abs', 'floor', 'ceiling', 'round')}({single} - {literal})",
            lambda: f"-{single}",
        )
        if not self.aggregates:
            return self.one(*plain)
        path = self.path(base, kind, depth)
        return self.one(
            *plain,
            f"count({path})",
            f"(count({path}) {operator} {self.one('4', '0.5')})",
            f"{self.one('sum', 'avg', 'min', 'max')}({path})",
            f"{self.one('sum', 'avg', 'median', 'stddev')}({path})",
        )

    def text(self, base: str, kind: Kind) -> str:
        single = self.single(base, kind)
        return self.one(
            lambda: f"string({single})",
            lambda: f"concat({single}, {self.one(*WORDS)}, {self.number(base, kind, 0)})",
            lambda: f"{self.one('upper-case', 'normalize-space', 'name', 'local-name')}({single})",
            lambda: f"{self.one('substring-before', 'substring-after')}({single}, {self.one(*WORDS)})",
            lambda: f"substring({single}, {self.one('0', '2', '1.5')}, {self.one('1', '2')})",
            lambda: f"translate({single}, 'abx5', '1-')",
            lambda: f"string-join({self.path(base, kind)}, {self.one(*WORDS)})",
            lambda: self.one(*WORDS),
        )

    # --- conditions ---------------------------------------------------------------------------------------

    def condition(self, base: str, kind: Kind, depth: int = 2) -> str:
        simple: tuple[Callable[[], str], ...] = (
            lambda: f"{self.path(base, kind, depth)} {self.one(*COMPARISONS)} {self.one(*LITERALS)}",
            lambda: f"{self.one(*LITERALS)} {self.one(*COMPARISONS)} {self.path(base, kind, depth)}",
            lambda: f"{self.path(base, kind, depth)} {self.one(*COMPARISONS)} {self.path(base, kind, 0)}",
            lambda: f"{self.path(base, kind, depth)} {self.one(*COMPARISONS)} {self.one(*WORDS)}",
            lambda: f"{self.number(base, kind, 0)} {self.one(*COMPARISONS)} {self.one(*LITERALS)}",
            lambda: f"{self.number(base, kind, 0)} {self.one(*COMPARISONS)} {self.path(base, kind, 0)}",
            lambda: f"{self.one('exists', 'empty', 'not')}({self.path(base, kind, depth)})",
            lambda: (
                f"{self.one('contains', 'starts-with', 'ends-with')}({self.single(base, kind)}, {self.one(*WORDS)})"
            ),
            lambda: self.path(base, kind, depth),
        )
        if kind == "leaf" and not base:
            here = self.one(". > 1", "string-length() > 1", "string() != 'x'", "name() = 'a'", "number() >= 5", ". = 5")
            simple = (*simple, lambda: here)
        if not depth:
            return self.one(*simple)
        less = depth - 1
        both = (
            lambda: f"({self.condition(base, kind, less)} and {self.condition(base, kind, less)})",
            lambda: f"({self.condition(base, kind, less)} or {self.condition(base, kind, less)})",
            lambda: f"not({self.condition(base, kind, less)})",
        )
        if kind != "item":
            return self.one(*simple, *both)
        inner = f"{base}/c" if base else "c"
        return self.one(
            *simple,
            *both,
            lambda: f"({self.one('some', 'every')} $q in {inner} satisfies {self.condition('$q', 'inner', less)})",
            lambda: f"({self.one('some', 'every')} $q in {inner}, $v in $q/n satisfies $v {self.one('<', '=')} $q/a)",
        )

    # --- results ------------------------------------------------------------------------------------------

    def content(self, base: str, kind: Kind, depth: int = 2) -> str:
        """What stands between the braces of a constructor."""
        simple = (
            lambda: self.path(base, kind),
            lambda: self.number(base, kind),
            lambda: self.text(base, kind),
            lambda: f"boolean({self.condition(base, kind)})",
            lambda: f"boolean({self.condition(base, kind)})",
            lambda: f"distinct-values({self.path(base, kind)})",
            lambda: f"({self.path(base, kind, 0)}, {self.path(base, kind, 0)})[{self.condition('', 'leaf', 1)}]",
            lambda: base,
        )
        if not depth:
            return self.one(*simple)
        less = depth - 1
        nested = (
            lambda: self.element(base, kind, less),
            lambda: f"({self.content(base, kind, less)}, {self.content(base, kind, less)})",
            lambda: (
                f"if ({self.condition(base, kind, 1)}) then {self.content(base, kind, less)} "
                f"else {self.content(base, kind, less)}"
            ),
            lambda: "()",
        )
        if kind != "item":
            return self.one(*simple, *nested)
        return self.one(
            *simple,
            *nested,
            lambda: (
                f"for $d in {base}/c {self.where('$d', 'inner')}{self.order('$d', 'inner')}"
                f"return {self.content('$d', 'inner', less)}"
            ),
            lambda: f"for $d in {base}/c, $e in $d/* return {self.element('$e', 'leaf', 0)}",
            lambda: (
                f"for $d in {base}/c let $e := {self.path('$d', 'inner')} return ($e, {self.content('$d', 'inner', 0)})"
            ),
        )

    def element(self, base: str, kind: Kind, depth: int = 2) -> str:
        attributes = self.one(
            "",
            lambda: f' k="{{{self.text(base, kind)}}}"',
            lambda: f' k="x{{{self.path(base, kind)}}}&lt;" l="1"',
        )
        parts = [
            self.one(
                "text &amp; {{}} ",
                "<e/>",
                lambda: f"{{ {self.content(base, kind, depth)} }}",
                lambda: f"{{ {self.content(base, kind, depth)} }}",
            )
            for _ in self.upto(3)
        ]
        return f"<o{attributes}>{''.join(parts)}</o>"

    # --- clauses ------------------------------------------------------------------------------------------

    def where(self, base: str, kind: Kind) -> str:
        return self.one("", lambda: f"where {self.condition(base, kind)} ")

    def order(self, base: str, kind: Kind) -> str:
        def key() -> str:
            value = self.one(lambda: self.single(base, kind), lambda: self.number(base, kind))
            return f"{value}{self.one('', ' descending')}"

        return self.one("", lambda: f"order by {key()} ", lambda: f"order by {key()}, {key()} ")

    def window(self) -> str:
        reference = self.one("t", "/r/i/t", "./t")
        size, step = self.one("10", "5", "20", "2.5", "0.3"), self.one("5", "1", "4", "0.5", "12")
        count, by = self.one("1", "2", "3"), self.one("1", "2", "3", "4")
        return self.one(
            f"|{reference} diff {size}|",
            f"|{reference} diff {size} step {step}|",
            f"|count {count}|",
            f"|count {count} step {by}|",
        )

    def chosen(self) -> str:
        return self.one("", "", "", lambda: f"[{self.condition('', 'item', 1)}]")

    def framed(self, body: str) -> str:
        return self.one(body, f"<out>{{ {body} }}</out>", f"<out><head/>{{ {body} }}</out>")


# --- families of queries --------------------------------------------------------------------------------------


def item_queries(write: Writer) -> Case:
    """Selection, projection and restructuring, item by item, also against a document; and streams taken as a whole."""
    source = f'stream("s"){write.one("/r/i", "//i", "/*/i", "/r/*")}{write.chosen()}'
    where, order, result = write.where("$x", "item"), write.order("$x", "item"), write.element("$x", "item")
    plain = write.one("$x", "$x/a", "count($x/*)", "$x/s/text()", "string($x/s)", "('a', $x/n)")
    body = write.one(
        f"for $x in {source} {where}{order}return {result}",
        f"for $x in {source} {where}{order}return ({result}, {write.number('$x', 'item')})",
        f"for $x in {source} {where}{order}return {plain}",
        lambda: f"for $x in {source} return <o>{{ $x/t, boolean({write.condition('$x', 'item', 3)}) }}</o>",
        lambda: f"for $x in {source} where not({write.condition('$x', 'item', 3)}) return <o>{{ $x/t }}</o>",
        lambda: f"for $x in {source} let $v := {write.path('$x', 'item')} {where}{order}return <o>{{ $v }}{result}</o>",
        lambda: f"for $x in {source}, $y in $x/c {write.where('$y', 'inner')}return {write.element('$y', 'inner')}",
        lambda: f"for $x in {source}/{write.one('a', 'n', 'c/a', '*')} return <o>{{ $x, $x/../@id }}</o>",
        lambda: f"for $x in {source} {where}return <o>{{ local:f($x, {write.one(*LITERALS)}) }}</o>",
        lambda: f'let $v := doc("d")/r/i/n for $x in {source} where $x/n = $v {order}return {result}',
        lambda: f'for $x in {source}, $y in doc("d")/r/i where $x/n < $y/n return <o>{{ $x/n, $y/t }}</o>',
        lambda: f'for $x in {source}, $y in doc("d")/r/i where $y/n = $x/n return <o>{{ $x/t, $y/s }}{{ $y/c }}</o>',
        lambda: f'for $x in {source} let $y := doc("d")/r/i[@id = $x/@id] {where}return <o>{{ $y/n, count($y/c) }}</o>',
        lambda: f'for $x in {source} where exists(doc("d")/r/i[s = $x/s and n < 9]) return {result}',
        'for $x in doc("d")/r/i where $x/n < 5 order by $x/t return $x/n',
        f"(count({source}), sum({source}/n), {source}/c/n, some $x in {source} satisfies $x/a = 'x')",
    )
    function = f"declare function local:f($v, $u) {{ ({write.content('$v', 'item')}, $u) }};\n"
    query = f"{function if 'local:f' in body else ''}{write.framed(body)}"
    return Case(query, {"s": write.stream(), "d": write.stream(3)})


def window_queries(write: Writer) -> Case:
    """One windowed `for`, with and without aggregates."""
    aggregate = f"{write.one('count', 'sum', 'avg', 'min', 'max', 'median', 'stddev')}({write.path('$w', 'item')})"
    where = write.one(
        "", f"where $a {write.one(*COMPARISONS)} {write.one(*LITERALS)} ", lambda: write.where("$w", "item")
    )
    result = write.one(
        "<o>{ $a }</o>",
        "<o n='{count($w)}'>{ $a, $w/t }</o>",
        lambda: f"<o>{{ $a }}{write.element('$w', 'item')}</o>",
        lambda: f"<o>{{ $a, for $x in $w {write.where('$x', 'item')}{write.order('$x', 'item')}return $x/t }}</o>",
        lambda: f"<o>{{ $a, $w[{write.condition('', 'item')}]/n }}</o>",
        lambda: f"<o>{{ $a, some $x in $w satisfies {write.condition('$x', 'item')} }}</o>",
    )
    source = f'stream("s")/r/i{write.chosen()}'
    order = write.one("", "", "order by $a ", "order by count($w) descending, $a descending ")
    body = f"for $w in {source} {write.window()} let $a := {aggregate} {where}{order}return {result}"
    return Case(write.framed(body), {"s": write.stream(12)})


def group_queries(write: Writer) -> Case:
    """Groups of what windows hold, of a whole stream and inside items; what may fail is a key, or inside a window."""
    key = write.one(
        *("$x/a", "$x/n", "$x/n + 0", "$x/@id", "number($x/t)", "$x/n > 5", "string($x/s)", "$x/c/@k", "count($x/*)"),
        *("$x/t + 1", "$x/missing", "name($x/*[1])", "$x/n[1]", "round($x/t div 5, 1)"),
    )
    keys = write.one(f"$k := {key}", f"$k := {key}", f"$k := {key}, $l := $x/@id", "$v", f"$v, $k := {key}")
    names = [each for each in ("$k", "$l", "$v") if each in keys]
    shown = "".join(f" {each[1:]}='{{ {each} }}'" for each in names)
    where = write.one("", "", "where $x/n ", "where exists($x/c) or count($x/a) = 1 ")
    behind = write.one(
        "",
        "let $m := count($x) where $m > 1 ",
        f"order by count($x) descending, {names[0]} ",
        f"order by {names[0]} count $i where $i <= 2 ",
        "count $i where $i > 1 ",
    )
    number = " i='{ $i }'" if "count $i" in behind else ""
    result = write.one(
        f"<g{shown}{number} m='{{ count($x) }}'>{{ sum($x/n), $x/t }}</g>",
        f"<g{shown}{number}>{{ $x[1]/@id, ($x/t)[last()], $v }}</g>",
        f"<g{shown}{number}>{{ {write.one('max', 'min', 'avg')}($x/n), count($v), reverse($x/t) }}</g>",
    )
    groups = f"let $v := string($x/@id) {where}group by {keys} {behind}return {result}"
    if "$v" not in names:
        groups = groups.replace("{ $v }", "{ distinct-values($v) }")
    source = f'stream("s")/r/i{write.one("", "", "[n]")}'
    body = write.one(
        f"for $w in {source} {write.window()} for $x in $w {groups}",
        f"for $w in {source} {write.window()} where count($w) > 1 for $x in $w {groups}",
        f"for $w in {source} {write.window()} return <w>{{ for $x in $w {groups} }}</w>",
        f"for $x in {source} {groups}",
        f"for $y in {source} return <y>{{ for $x in $y/c {groups.replace('@id', '@k')} }}</y>",
        f"<all>{{ (for $x in {source} {groups})[position() <= {write.one('1', '2')}] }}</all>",
    )
    return Case(write.framed(body), {"s": write.stream(12)})


def position_queries(write: Writer) -> Case:
    """Positions inside items, windows and what loops give."""

    def place() -> str:
        return write.one(
            *("1", "2", "last()", "position() <= 2", "last() - 1", "position() = last()", "position() mod 2 = 1"),
            *("position() > 1", "1.5", "position() = (1, 3)", "self::a and position() = 1", "count(*) + 1"),
        )

    def inside(base: str) -> str:
        """Some of what an item holds."""
        return write.one(
            lambda: f"{base}/a[{place()}]",
            lambda: f"{base}/*[{place()}]",
            lambda: f"{base}//a[{place()}]",
            lambda: f"{base}/c[{place()}]/a[{place()}]",
            lambda: f"({base}/c/*)[{place()}]",
            lambda: f"({base}/a, {base}/n)[{place()}]",
            lambda: f"{base}/*[{place()}][{place()}]",
            lambda: f"{base}/c/a/..[{place()}]/@k",
            lambda: f"{write.one('head', 'tail', 'reverse')}({base}/*)",
            lambda: f"subsequence({base}/*, {write.one('0', '2', '1.5', '-1')}, {write.one('1', '2', '2.5', '3')})",
            lambda: f"subsequence({base}/c/*, {write.one('1', '2')})",
            lambda: f"(for $d at $i in {base}/* where $i > {write.one('1', '2')} return <d i='{{ $i }}'>{{ $d }}</d>)",
            lambda: f"(for $d in {base}/* count $i order by $i descending return $d)[{place()}]",
            lambda: f"(for $d in {base}/* order by name($d) return $d)[{place()}]",
            lambda: f"{base}/*[{write.one('name()', 'a', 'not(a)', '.')}][{place()}]",
            lambda: f"{write.one('round', 'round-half-to-even')}(count({base}/*) div 4, {write.one('0', '1', '-1')})",
        )

    def held(base: str) -> str:
        """Some of what a window holds."""
        return write.one(
            lambda: f"{base}[{place()}]/t",
            lambda: f"{base}/n[{place()}]",
            lambda: f"({base}/n)[{place()}]",
            lambda: f"(for $x in {base} order by $x/t descending return $x/t)[{place()}]",
            lambda: f"(for $x in {base} order by count($x/*), $x/@id descending return $x/t)[{place()}]",
            lambda: f"(for $x in {base} order by $x/t count $i where $i <= 2 return <x i='{{ $i }}'>{{ $x/t }}</x>)",
            lambda: f"(for $x at $i in {base} return <x i='{{ $i }}'>{{ $x/@id }}</x>)",
            lambda: f"{write.one('head', 'tail', 'reverse')}({base})/t",
            lambda: f"subsequence({base}, 2, {write.one('1', '2')})/@id/..",
            lambda: inside(base),
        )

    source = f'stream("s")/r/i{write.one("", "", "[a]", "[a[1]]", "[c[last()]/n]", "[*[2]]")}'
    where = write.one("", "", "where $x/*[2] ", f"where count($x/*[{place()}]) > 0 ", "where $x/a[1] = $x/a[last()] ")
    body = write.one(
        f"for $x in {source} {where}return <o>{{ {inside('$x')} }}</o>",
        f"for $x in {source} {where}return <o k='{{ {inside('$x')} }}'>{{ {inside('$x')} }}</o>",
        f"for $x in {source} {where}for $y at $i in $x/c return <o i='{{ $i }}'>{{ {inside('$y')} }}</o>",
        f"{source}/{write.one('a', 'c/n', '*', 'c/*')}[{place()}]",
        f"for $w in {source} {write.window()} return <w>{{ {held('$w')} }}</w>",
        f"for $w in {source} {write.window()} return <w>{{ {held('$w')}, {held('$w')} }}</w>",
        f"for $w in {source} {write.window()} where $w[2] let $l := $w[last()] return <w>{{ $l/t, {held('$w')} }}</w>",
        f"(for $x in {source} {where}order by count($x/*) descending return <o>{{ $x/t }}</o>)[{place()}]",
    )
    return Case(write.framed(body), {"s": write.stream(10)})


def join_queries(write: Writer) -> Case:
    """Step joins of two and three windows, self-joins among them, and interval joins."""
    write.aggregates = False
    op = write.one(*COMPARISONS)
    where = write.one(
        "",
        "",
        f"where $x/n {op} $y/n ",
        f"where $x/a {op} $y/a ",
        f"where $x/n {op} $y/n + 0.5 ",
        lambda: f"where {write.condition('$x', 'item', 1)} and {write.condition('$y', 'item', 1)} ",
    )
    result = write.one("<p>{ $x/t, $y/t }</p>", lambda: f"<p>{{ $x/t, $y/t }}{write.element('$y', 'item')}</p>")
    first, second, third = (f'stream("{name}")/r/i{write.chosen()}' for name in write.one("ppp", "pqp", "pqq", "pqr"))
    windows = [write.window() for _ in range(3)]
    size = write.one("1", "5", "2.5")
    body = write.one(
        f"for $x in {first} {windows[0]} for $y in {second} {windows[1]} {where}return {result}",
        f"for $x in {first} {windows[0]}, $y in {second} {windows[1]}, $z in {third} {windows[2]} {where}"
        f"return <p>{{ $x/t, $y/t, $z/t }}</p>",
        f"for $x in {first} for $y in {second} where $x/t >= $y/t - {size} and $x/t <= $y/t + {size} return {result}",
    )
    inputs = {name: write.stream(7) for name in "pqr"}
    return Case(write.framed(body), inputs, timed=write.random.random() < 0.5)


def partition_queries(write: Writer) -> Case:
    """Windows and joins over streams of several partitions, which may be empty."""
    one = write.random.choice((window_queries, join_queries))(write)
    more = {f"{name}.{number + 1}": write.stream(5) for name in one.inputs for number in write.upto(2)}
    return Case(one.query, one.inputs | more, timed=write.random.random() < 0.8)


def everyday_queries(write: Writer) -> Case:
    """The rest of XQuery, item by item (LAWS 2.8)."""
    return Case(everyday_query(write), {"s": write.stream()})


FAMILIES: dict[str, Callable[[Writer], Case]] = {
    "items": item_queries,
    "windows": window_queries,
    "joins": join_queries,
    "partitions": partition_queries,
    "groups": group_queries,
    "positions": position_queries,
    "everyday": everyday_queries,
}


def case(family: str, number: int) -> Case:
    """One case; the same on every machine."""
    return FAMILIES[family](Writer(Random(f"{family} {number}")))
