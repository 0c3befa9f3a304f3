"""Random tables, and queries that look rows of them up for the items of a stream.

Most rows have one look and a key of their own; others have no key, several, that of another, numbers for texts,
comments, references, elements nobody else has, or text between their elements.
"""

from __future__ import annotations

from random import Random
from xml.sax.saxutils import escape, quoteattr

KEYS = ["a", "b", "c", "d", "e f", "é", "1", "01", "1.0", "2", " 2 ", "", "x&y"]
NUMBERS = ["1", "1.0", "01", "2", "-3", "0.5", "1e1", "7", "-0", "0"]
_ODD = [
    "",
    " ",
    "x&y",
    "a<b",
    'say "a"',
    "it's",
    "NaN",
    "1e400",
    "123456789012345678",
    "x" * 300,
    "line\nbreak",
    "日本",
]
_NAMES = ["Norway", "Sweden", "Peru", "Chad", "a b"]


def odd_document(random: Random) -> tuple[bytes, str]:
    """A table, and how names in it are written in a query: with a prefix where it has a namespace."""
    odd = random.choice([0, 0, 5, 30])
    are_numbers = random.randrange(3) == 0
    rows = [_row(random, odd, are_numbers=are_numbers) for _ in range(random.choice([0, 1, 3, 8, 20, 60]))]
    between = random.choice(["", "\n  ", "<!-- c -->", "<other><k>a</k></other>", "text"])
    spaced = random.randrange(4) == 0
    text = between.join(each.replace("><", ">\n    <") if spaced else each for each in rows)
    declared, prefix = random.choice([("", ""), ("", ""), ("", ""), (' xmlns="urn:t"', "t:"), (' xmlns:z="urn:z"', "")])
    return f"<t{declared}>{text}</t>".encode(), prefix


def _row(random: Random, odd: int, *, are_numbers: bool) -> str:
    def text(usual: list[str]) -> str:
        return escape(random.choice(_ODD if random.randrange(100) < odd else usual))

    keys = NUMBERS if are_numbers else [*KEYS, *NUMBERS]
    parts = [f"<k>{escape(random.choice(keys))}</k>" for _ in range(random.choice([0, 1, 1, 1, 1, 1, 2]))]
    parts.append(f"<name>{text(_NAMES)}</name>")
    parts.append(f"<rate>{text(NUMBERS)}</rate>")
    if random.randrange(2):
        parts += [f"<alias>{text(_NAMES)}</alias>" for _ in range(random.randrange(4))]
    if random.randrange(3) == 0:
        parts.append(f"<more><code>{text(keys)}</code></more>")
    if random.randrange(100) < odd:
        parts.insert(random.randrange(len(parts)), random.choice(["<!-- c -->", "text", "<new/>", "<k/>", "<?i?>"]))
    own = f" id={quoteattr(random.choice(keys))}" if random.randrange(8) else ""
    return f"<row{own} n='{random.choice(NUMBERS)}'>{''.join(parts)}</row>"


def item(random: Random, odd: int) -> str:
    """An item that asks for rows."""

    def key() -> str:
        return escape(random.choice(_ODD if random.randrange(100) < odd else [*KEYS, *NUMBERS]))

    parts = [f"<k>{key()}</k>", f"<v>{random.choice(['x'] * (odd > 0) + NUMBERS)}</v>"]
    parts += [
        f"<line><sku>{key()}</sku><q>{random.choice(NUMBERS)}</q></line>" for _ in range(random.choice([0, 1, 2, 2, 5]))
    ]
    if random.randrange(100) < odd:
        parts.insert(0, random.choice(["<k>a</k>", "<!-- c -->", "<odd/>"]))
    if random.randrange(20) == 0:
        parts.pop(0)
    return f"<o>{''.join(parts)}</o>"


def query(random: Random, prefix: str) -> str:
    """A query that looks something up."""
    p = prefix
    rows = f'doc("t")/{p}t/{p}row'
    key = random.choice(["@id", "@id", f"{p}k", f"{p}k", f"{p}more/{p}code", f"{p}name", "@n"])
    sought = random.choice(
        ["$o/k"] * 6 + ["string($o/k)", "$o/v", "$o/v + 1", "$o/line/sku", "concat('', $o/k)", "$o/v * 1", "'a'", "1"]
    )
    value = random.choice([f"{p}name", f"{p}rate", f"{p}alias", f"{p}more/{p}code", "@n", "@id", f"{p}k"])
    element = random.choice([f"{p}name", f"{p}rate", f"{p}alias", f"{p}more", f"{p}k", "*"])
    asked = random.choice(
        ["", "", f" and $c/{p}rate > 1", f" and $c/{value} = '1'", " and $o/v < 2", f" and $c/{p}alias"]
    )
    inner = asked.replace("$c/", "")
    chosen = f"{rows}[{key} = {sought}{inner}]"
    constant = random.choice(["'1'", "'Peru'", "1", "2.0", '""'])
    before = random.choice([f"$c/{value} = {constant} and", f"{constant} = $c/{value} and", f"$c/{p}rate > 1 and"])
    either = random.choice([f"$c/{key} = {sought}", f"{sought} = $c/{key}"])
    first = f"{rows}[{before} {either}]".replace("$c/", "")
    turned = f"{rows}[{sought} = {key}]" + random.choice(["", "[1]", "[last()]", f"[{p}rate > 1]"])
    forms = [
        f"for $c in {rows} where $c/{key} = {sought}{asked} return <r>{{ $c/{element} }}{{ $o/v }}</r>",
        f"for $c in {rows} where $c/{key} = {sought}{asked} return <r n='{{ $c/{value} }}'>{{ $c }}</r>",
        f"for $c in {rows} where {before} {either}{asked} return <r n='{{ $c/{value} }}'>{{ $c/{element} }}</r>",
        f"let $c := {first} return <r>{{ $c/{element} }}{{ count($c) }}</r>",
        f"where some $c in {rows} satisfies {before} {either} return <r>{{ $o/v }}</r>",
        f"for $c in {rows} let $n := $c/{value} where $c/{key} = {sought}{asked} return <r>{{ string($n[1]) }}</r>",
        f"for $c in {chosen} return <r>{{ count($c/*), $c/@n * 2 }}</r>",
        f"let $c := {chosen} return <r n='{{ $c/{value} }}'>{{ $c/{element} }}</r>",
        f"let $c := {chosen} return <r>{{ $o/v * $c/{p}rate }}</r>",
        f"let $c := {chosen} where $c return <r>{{ $c/{value}/text() }}</r>",
        f"let $c := {chosen} where $c/{p}rate > 1 return <r>{{ $o/v }}</r>",
        f"let $c := {turned} return <r>{{ $c }}{{ count($c) }}</r>",
        f"let $k := {sought} let $c := {rows}[{key} = $k] return <r>{{ $c/{element} }}</r>",
        f"where {chosen}/{value} = '1' return <r>{{ $o/k }}</r>",
        f"where exists({chosen}) return $o",
        f"where empty({chosen}/{p}alias) and $o/v > 0 return <r>{{ $o/line }}</r>",
        f"where some $c in {rows} satisfies $c/{key} = {sought}{asked} return <r>{{ $o/v }}</r>",
        f"where not(some $c in {rows} satisfies $c/{key} = {sought}{asked}) return <r>{{ $o/v }}</r>",
        f"where every $c in {chosen} satisfies $c/{p}rate > 1 return <r>{{ $o/v }}</r>",
        f"where every $c in {rows} satisfies $c/{key} = {sought} return <r>{{ $o/v }}</r>",
        f"return <r>{{ sum({chosen}/{p}rate), max({chosen}/@n), string-join({chosen}/{p}name, ', ') }}</r>",
        f"return <r>{{ {turned}/{element} }}</r>",
        f"return <r>{{ if ({chosen}) then {chosen}/{element} else 'none' }}</r>",
        f"return <r k='{{ {chosen}/{value} }}'>{{ concat('n ', {chosen}/{p}name) }}</r>",
        f"return <r>{{ for $c in {rows} where $c/{key} = {sought}{asked} order by $c/{p}rate, $c/@n "
        f"return $c/{p}name }}</r>",
        f"return <r>{{ for $c in {chosen} return string($c/{p}name) }}</r>",
        f"return <r>{{ for $l in $o/line return <l>{{ {rows}[{key} = $l/sku]/{element} }}{{ $l/q }}</l> }}</r>",
        f"for $l in $o/line, $c in {rows} where $c/{key} = $l/sku{asked} return <r>{{ $l/q, $c/{p}name }}</r>",
        f"return <r>{{ sum(for $l in $o/line return $l/q * {rows}[{key} = $l/sku]/{p}rate) }}</r>",
        f'for $c in {chosen}, $d in doc("u")/u/row where $d/k = $c/{p}k return <r>{{ $d/v }}{{ $c/{p}name }}</r>',
        f"for $c in {rows}, $d in {rows} where $c/{key} = {sought} and $d/@id = $c/@id return <r>{{ $d/{p}name }}</r>",
        'where $o/v > doc("u")/u/limit return <r>{ doc("u")/u/limit }</r>',
        f"return <r>{{ doc('t')//{p}row[{key} = {sought}]/{p}name, count(doc('t')/{p}t/*[@id = {sought}]) }}</r>",
        f"return <r>{{ {rows}/{p}alias[. = {sought}] }}{{ {rows}/{key}[. = $o/k] }}</r>",
    ]
    form = random.choice(forms)
    path = random.choice(["stream('s')/r/o", "stream('s')/r/o", "stream('s')/r/o[v > 0]"])
    prolog = 'declare namespace t = "urn:t"; ' if prefix else ""
    return f"{prolog}for $o in {path} {form}"


def small_document(random: Random) -> bytes:
    """A second table, of few rows."""
    rows = "".join(
        f"<row><k>{escape(random.choice([*KEYS, *NUMBERS]))}</k><v>{random.choice(NUMBERS)}</v></row>"
        for _ in range(random.randrange(9))
    )
    limit = f"<limit>{random.choice(NUMBERS)}</limit>" * random.choice([0, 1, 1, 2])
    return f"<u>{limit}{rows}</u>".encode()
