"""Random streams of updates and random queries about them: a case is a function of its number.

Streams have entries `a` and `b` that hold one another, numbers as text, and an attribute `k`; regions stand around
entries, inside them, around text, around nothing and around one another; updates stand between entries and inside them,
name any id of a chain, also of what is gone, and come at times that often are equal.
All of it is good input, and queries raise no errors.
"""

from __future__ import annotations

from random import Random

DURATIONS = ("0", "0.5", "0.5", "1", "1", "1.5", "2", "4")


class Writer:
    """Writes one stream and one query, one random decision after the other."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0
        self.ids = 0
        self.chains: dict[str, int] = {}
        """What the ids mean."""
        self.open_ids: list[str] = []
        self.open_chains: list[int] = []

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def likely(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- streams ------------------------------------------------------------------------------------------

    def stream(self, length: int) -> str:
        """The content of a stream's root."""
        return "".join(self.between() for _ in range(length))

    def between(self) -> str:
        kind = self.one("item", "region", "region", "update", "update", "update", "update", "heartbeat")
        match kind:
            case "item":
                return self.element(2, self.at("s:at"))
            case "heartbeat":
                return f"<s:punctuation{self.at('at', 1)}/>"
            case "region":
                return self.region(2)
            case _:
                return self.update(2) or self.region(2)

    def at(self, name: str, probability: float = 0.6) -> str:
        """Perhaps a time, perhaps a later one."""
        if not self.likely(probability):
            return ""
        self.now += self.random.choice((0, 0, 1, 1, 2, 5))
        return f' {name}="{self.now / 2:g}"'

    def element(self, depth: int, attributes: str = "") -> str:
        name = self.one("a", "a", "b")
        if self.likely(0.4):
            attributes += f' k="{self.number()}"'
        return f"<{name}{attributes}>{self.content(depth)}</{name}>"

    def content(self, depth: int) -> str:
        parts: list[str] = []
        for _ in range(self.random.choice((0, 1, 2, 2, 3))):
            kind = self.one("text", "element", "element", "region", "update")
            if kind == "text":
                parts.append(self.number())
            elif kind == "region" and depth > -2:
                parts.append(self.region(depth - 1))
            elif kind == "update" and self.likely(0.3):
                parts.append(self.update(depth - 1))
            elif depth > 0:
                parts.append(self.element(depth - 1))
        return "".join(parts)

    def number(self) -> str:
        return self.one("1", "1", "2", "3")

    def word(self) -> str:
        return f"'{self.number()}'"

    def region(self, depth: int) -> str:
        self.ids += 1
        return self.wrapped("mutable", str(self.ids), "", depth, self.ids)

    def update(self, depth: int) -> str:
        """An update of something, or nothing where there is nothing to update."""
        kind = self.one("replace", "replace", "replace", "before", "after")
        targets = [
            each
            for each, chain in self.chains.items()
            if kind == "before" or (each not in self.open_ids and (kind == "after" or chain not in self.open_chains))
        ]
        if not targets:
            return ""
        target = self.random.choice(targets[-6:])
        self.ids += 1
        chain = self.chains[target] if kind == "replace" else self.ids
        taken = [each for each in self.chains if each.startswith("u") and each not in self.open_ids]
        own = "" if self.likely(0.4) else self.one(*taken) if taken and self.likely(0.2) else f"u{self.ids}"
        return self.wrapped(kind, own, f' target="{target}"', -9 if self.likely(0.15) else depth, chain)

    def wrapped(self, kind: str, own: str, attributes: str, depth: int, chain: int) -> str:
        """A region or update; one that is very deep is empty."""
        attributes += (f' id="{own}"' if own else "") + self.at("at", 0.4)
        if own:
            self.chains[own] = chain
            self.open_ids.append(own)
        self.open_chains.append(chain)
        content = self.content(depth) if depth > -9 else ""
        self.open_chains.pop()
        if own:
            self.open_ids.remove(own)
        return f"<s:{kind}{attributes}>{content}</s:{kind}>"

    # --- queries ------------------------------------------------------------------------------------------

    def query(self, *streams: str) -> str:
        """A query over some streams."""
        stream = self.one(*streams)
        path = self.path(stream)
        kinds = "path", "path", "aggregate", "flwor", "flwor", "flwor", "grouped", "if", "then", "join", "made"
        match self.one(*kinds):
            case "aggregate":
                return self.one(f"count({path})", f"sum({path}/@k)", f"max({path}/@k)", f"avg({path}//@k)")
            case "flwor":
                return self.flwor(path)
            case "grouped":
                return self.grouped(path)
            case "if":
                return f"if ({self.condition(path)}) then {self.path(stream)} else <no>{{ count({path}) }}</no>"
            case "then":
                return f"({self.one(f'count({path})', f'({path}, {self.path(stream)})')})?{self.one(*DURATIONS)}"
            case "join":
                path, other = (self.path(self.one(*streams), qualified=True) for _ in range(2))
                return f"for $x in {path}, $y in {other} where $x = $y return <p>{{ $x, $y }}</p>"
            case "made":
                return f"<all n='{{ count({path}) }}'>{{ {path} }}</all>"
            case _:
                return path

    def flwor(self, path: str) -> str:
        where = f" where {self.condition('$x' + self.steps(1))}" if self.likely(0.4) else ""
        let = f" let $z := $x{self.steps(1)}" if self.likely(0.3) else ""
        order = " order by count($x" + self.steps(1) + ")" + self.one("", " descending") if self.likely(0.3) else ""
        inner = ", ".join(
            self.one(f"$x{self.steps(1)}", f"count($x{self.steps(1)})", f"$x{self.qualifier()}", "string($x)")
            for _ in range(self.random.choice((1, 1, 2)))
        )
        return f"for $x in {path}{let}{where}{order} return <r>{{ {inner}{', $z' if let else ''} }}</r>"

    def grouped(self, path: str) -> str:
        """A query whose groups look back, whose tuples do, or both."""
        key = self.one(
            f"count($x{self.steps(1)})", f"string($x{self.qualifier()}[. = {self.word()}])", "name($x)", "string($x)"
        )
        let = f" let $z := $x{self.one(self.steps(1), self.qualifier())}" if self.likely(0.3) else ""
        behind = self.one("", f" where count($x{self.steps(1)}) > 0", " order by count($x) descending", " count $n")
        shown = [self.one(f"$x{self.steps(1)}", f"count($x{self.qualifier()})", f"$x{self.qualifier()}", "count($x)")]
        shown += ["$z"] * bool(let) + ["$n"] * (behind == " count $n")
        return f"for $x in {path}{let} group by $k := {key}{behind} return <g k='{{ $k }}'>{{ {', '.join(shown)} }}</g>"

    def condition(self, path: str) -> str:
        return self.one(
            f"{path} = {self.word()}",
            f"exists({path})",
            f"count({path}) > 1",
            f"some $s in {path} satisfies $s = {self.word()}",
            f"every $s in {path} satisfies $s/@k = '1' or $s = {self.word()}",
            f"not({path})",
        )

    def path(self, stream: str, qualified: bool = False) -> str:
        start = f'stream("{stream}")' + self.one("/root", "/root", "")
        if start.endswith(")"):
            back = "/.." + self.qualifier() if self.likely(0.1) else ""
            return f"{start}//{self.test()}{self.tail(qualified)}{back}{self.steps(1) if self.likely(0.3) else ''}"
        return start + "/" + self.test() + self.tail(qualified) + (self.steps(1) if self.likely(0.6) else "")

    def steps(self, most: int) -> str:
        return "".join(self.step() for _ in range(self.random.randint(1, most)))

    def step(self) -> str:
        last = self.one("text()", "text()" + self.qualifier(), "node()" + self.tail())
        step = self.one(last, *(self.test() + self.tail() for _ in range(4)), f"self::{self.test()}{self.tail()}")
        return self.one("/", "/", "/", "//") + step

    def test(self) -> str:
        return self.one("a", "a", "b", "*", "*")

    def tail(self, qualified: bool = False) -> str:
        predicate = self.predicate() if self.likely(0.12) else ""
        qualifier = self.qualifier() if qualified or self.likely(0.55) else ""
        return predicate + qualifier + (self.predicate() if self.likely(0.08) else "")

    def predicate(self) -> str:
        return (
            "["
            + self.one(
                f". = {self.word()}",
                f"{self.test()}",
                f"{self.test()}{self.qualifier()} = {self.word()}",
                f"count({self.test()}{self.qualifier()}) >= 1",
                f"text() = {self.word()}",
                f"@k{self.qualifier()} = {self.word()}",
            )
            + "]"
        )

    def qualifier(self) -> str:
        version = self.one("0", "1", "1", "1", "2")
        return self.one(f"#{version}", f"#[{version}]", f"?{self.one(*DURATIONS)}", f"?[{self.one(*DURATIONS)}]")
