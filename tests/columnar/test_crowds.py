"""Many queries of a few forms at once, over a stream whose units change: each is answered as by the law alone."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.items import learned_program
from anabranch.columnar.items.programs import ItemQueries
from anabranch.columnar.scan.look import Look
from anabranch.language import check, parse
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from columnar.expression_cases import PLAIN, STYLES, ItemMaker, Oddity, Style, is_attribute
from mass import Mass, some
from spark.bare import BareTrunk
from spark.law import law_of

FORMS = [
    "where {t} >= {n} return <a>{{ {t} }}</a>",
    "where {t} = {n} or {u} != {m} return $p/d",
    'where {name} = "{w}" return <a k="{{ {t} }}">{{ {name} }}</a>',
    'where {name} = ("{w}", "{x}", "none") and {t} < {n} return $p/d',
    "where {t} = ({n}, {m}, 7) return $p/d",
    'where not({name} = ("{w}", "{x}")) return <a>{{ {t} * 2 }}</a>',
    'where starts-with({name}, "{w}") and not({t} > {n}) return $p/d',
    'where contains({name}, "{w}") or ends-with({name}, "{x}") return $p/d',
    "where {t} * 2 >= {n} return <a>{{ {t} + {m} }}</a>",
    "where {t} - {u} > {n} return $p/d",
    "where {t} >= {u} + {n} and {t} <= {u} + {m} return <a>{{ {u} }}</a>",
    "where {n} < {t} * {u} return <a>{{ {t} * {u} - {n} }}</a>",
    "where some $v in {v} satisfies $v = {n} return $p/d",
    "where some $v in {v} satisfies ($v >= {n} and $v < {m}) return <a>{{ {t} }}</a>",
    "where every $v in {v} satisfies ($v * 2 < {n} or not($v > {t} + {m})) return $p/d",
    "for $l in $p/line where $l/{q} >= {n} and $l/{q} < {m} return <l>{{ $l/{q} * {c} }}{{ {t} }}</l>",
    "for $l in $p/line where $l/{q} >= {n} or {t} < {m} return $l",
    "for $d in $p/d where $d/{x_t} < {n} return <l>{{ $d }}</l>",
    "where some $l in $p/line satisfies ($l/{q} > {n} and {t} < {m}) return <a>{{ {u} - {n} }}</a>",
    "where {v} > {n} and count({v}) != {c} return <a>{{ count($p/line) + {c} }}</a>",
    "where sum({v}) > {n} return <a>{{ sum({v}) }}</a>",
    "where string-length({name}) > {c} return <a>{{ substring({name}, {c}) }}</a>",
    'return if ({t} > {n}) then <hot w="{w}">{{ {t} }}</hot> else <cold/>',
    "let $x := {t} * {m} where $x > {n} return <a>{{ $x }}</a>",
    "where $p/line[{q} > {n}] return <a>{{ for $l in $p/line where $l/{q} < {m} return <l k='{{ $l/{q} }}'/> }}</a>",
    'where exists({o}) and not({name} = "{w}") and {t} < {n} return $p/d',
    'where ends-with({name}, "{w}") return <a>{{ {t} }}</a>',
    'where not(ends-with({name}, "{w}")) and {t} > {n} return $p/d',
    'where ends-with(upper-case({name}), "{w}") or ends-with({name}, "{x}") return $p/d',
    'where some $l in $p/line satisfies ends-with($l/{sku}, "{w}") return <a>{{ {t} }}</a>',
    "return <a>{{ for $v at $i in {v} where $v > {n} return <b n='{{ $i }}'>{{ $v * {m} }}</b> }}</a>",
    "let $x := ({t}, {n}) where sum($x) > {m} return <a>{{ for $y in (for $v in {v} return $v + {n}) return $y }}</a>",
    "let $f := function($x) {{ $x * {n} }} where $f({t}) > {m} return <a>{{ $f({u}) }}</a>",
    "return <a>{{ for $l in $p/line order by $l/{q} * {n} return $l/{q} + {m} }}</a>",
    "let $x := <b>{{ {t} + {n} }}</b> where {t} < {m} return <a>{{ $x, $x }}</a>",
]
LOOKUPS = [
    'for $c in doc("c")/c/row where $c/@name = {name} and $c/rate > {n} return <a>{{ $c/label }}{{ {t} }}</a>',
    'for $c in doc("c")/c/row where $c/label = "{w}" and $c/@name = {name} return <a>{{ $c/rate }}{{ {t} }}</a>',
    'for $c in doc("c")/c/row where $c/rate = {n} and ($c/label = "{w}" and {name} = $c/@name) return <a>{{ $c }}</a>',
    'let $c := doc("c")/c/row["{w}" = label and @name = {name}] where $c return <a k="{{ $c[1]/rate }}">{{ {t} }}</a>',
    'for $c in doc("c")/c/row where $c/@name = {name} and {t} > {n} return <a>{{ $c/rate * {m} }}</a>',
    'let $c := doc("c")/c/row[@name = {name}] where $c/rate > {n} return <a>{{ {t} * {m} }}{{ $c }}</a>',
    'let $c := doc("c")/c/row[@name = {name}] where $c/label = "{w}" return <a k="{{ $c/rate }}">{{ $p/d }}</a>',
    'where doc("c")/c/row[@name = {name}]/rate > {n} and {t} < {m} return $p/d',
    'where doc("c")/c/row[rate = {t} + 0]/label = "{w}" return <a>{{ {t} }}</a>',
    'where some $c in doc("c")/c/row satisfies $c/@name = {name} and $c/rate < {t} + {n} return $p/d',
    'return <a>{{ doc("c")/c/row[@name = {name} and rate > {n}]/label, count(doc("c")/c/row) }}</a>',
]
_ROWS = 60
_WORDS = ["gold", "silver", "g", "ir", "old", "a", "Gold", "12", "7", "ilv", "é", "a gold b"]
_NAMES = ["gold", "silver", "iron", "Gold", "12", "7", "none"]
_ALTERS = [". * 2", "(. - 32) * 5 div 9", ". + 10", ". div 4"]


def queries_of(random: Random, style: Style, count: int) -> dict[str, str]:
    """Queries of a few forms, each with its own constants."""

    def at(field: str) -> str:
        return f"@{field}" if is_attribute(style, field) else field

    paths = {field: f"$p/{at(field)}" for field in ("name", "o")}
    paths |= {field: f"$p/d/{at(field)}" for field in ("t", "u")}
    paths |= {"q": at("q"), "sku": at("sku"), "v": "$p/v/@x" if style == "attributes" else "$p/v", "x_t": at("t")}
    forms = random.sample(FORMS, random.choice([1, 3, 6])) + random.sample(LOOKUPS, random.choice([0, 0, 1, 3]))
    item = "item" if style == "json" else "p"
    found = {}
    for number in range(count):
        n, m = (random.choice([random.randrange(-10, 120), random.randrange(400) / 4]) for _ in range(2))
        words = random.sample(_WORDS, 2)
        constants = {"n": n, "m": m, "c": random.randrange(5), "w": words[0], "x": words[1]}
        found[f"q{number}"] = f'for $p in stream("s")/root/{item} {random.choice(forms).format(**paths, **constants)}'
    return found


def table(random: Random) -> str:
    """Rows for some of the names that items have."""
    rows = (
        f'<row name="{random.choice(_NAMES)}"><rate>{random.randrange(-10, 120)}</rate>'
        f"<label>{random.choice(_WORDS)}</label></row>"
        for _ in range(_ROWS)
    )
    return f"<c>{''.join(rows)}</c>"


def accent(random: Random, style: Style) -> str:
    """A change of unit, of all items or of some."""
    field = random.choice(["t", "u"])
    path = f"d/@{field}" if is_attribute(style, field) else f"d/{field}"
    name = "@name" if is_attribute(style, "name") else "name"
    where = random.choice(["", "", f""" where="{name} = 'gold'" """])
    alter = f'<s:alter path="{path}" by="{random.choice(_ALTERS)}"/>'
    return f'<s:accent xmlns:s="urn:anabranch:stream"{where}>{alter}</s:accent>'


def check_crowd(number: int, folder: Path) -> None:
    """A few dozen queries over a few dozen items, in epochs of any size.

    Where units change, an answer is told from that of the same run without columns; the law has it in other units.
    """
    random = Random(number)
    style = random.choice(STYLES)
    maker = ItemMaker(random, style, random.choice([PLAIN, PLAIN, Oddity(4, 2)]))
    lines = [maker.line() for _ in range(50)]
    changes = 0 if style == "json" else random.choice([0, 1, 3])
    for _ in range(changes):
        lines.insert(random.randrange(5, len(lines)), accent(random, style))
    queries = queries_of(random, style, random.choice([10, 40]))
    data = folder / "in"
    data.mkdir()
    (data / "a").write_text("".join(f"{line}\n" for line in lines))
    (folder / "c.xml").write_text(table(random))
    documents = {"c": DocumentSource(folder / "c.xml")}
    source = Source("s", data, "json" if style == "json" else "lines")
    found = answered(folder / "columns", source, queries, random, documents)
    if changes or any("doc(" in text for text in queries.values()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(learned_program, "compiled_queries", _nothing_compiles)
            assert found == answered(folder / "law", source, queries, random, documents), number
    if changes:
        return
    for name, text in queries.items():
        if "doc(" in text:
            continue  # the law with documents is in test_tables.py
        law = law_of(check(parse(text), text, inputs={"s": None}).query, [source], endless=False, name=name)
        assert found.texts[name] == law.text, (number, text)
        dead = Counter(each for each in found.dead.elements() if each.subscription in (None, name))
        assert dead == law.dead, (number, text)


@dataclass(frozen=True)
class Found:
    """What came of a run."""

    texts: dict[str, str]
    dead: Counter[DeadLetter]


def answered(
    folder: Path,
    source: Source,
    queries: dict[str, str],
    random: Random,
    documents: Mapping[str, DocumentSource] | None = None,
) -> Found:
    """What a trunk answers."""
    trunk = BareTrunk(folder, [source], random, finite=True)
    trunk.documents = documents or {}
    trunk.run(queries, (300, 3_000, 1 << 20), (1,))
    return Found({name: trunk.answer(name) for name in queries}, Counter(trunk.log.dead_letters()))


def _nothing_compiles(queries: Sequence[ItemQueries], root: str, look: Look) -> tuple[list[NotColumnar], Look]:
    return [NotColumnar("columns that are switched off")] * len(queries), look


@pytest.mark.mass
def test_some_crowds() -> None:
    """The same each time."""
    for number in some(range(6)):
        with tempfile.TemporaryDirectory() as folder:
            check_crowd(number, Path(folder))


def test_crowds(mass: Mass) -> None:
    """Forms, constants, formats, changes of units and sizes of epochs at random."""
    for number in mass.cases(1_000):
        with tempfile.TemporaryDirectory() as folder:
            check_crowd(1_000 + number, Path(folder))
