"""Windows that are grouped and counted by panes: the answer, the dead letters and what is late are the law's."""

from __future__ import annotations

import json
from random import Random

import pytest

from branch.counting import Stream

KEYS = ("DE", "FR", "DE", "FR", "IT", "1", "1.0", "01", "", " ", "A&amp;B", "&lt;", "é", 'say "a"', "it's", "a b", "-0")
NUMBERS = ("0", "1", "2", "2.5", "-3", "-0", "0.1", "99", "7.50")
ODD = ("x", "INF", "NaN", "1e400", "", "12345678901234567890.5", " 5 ")
USUAL = (
    '<i c="{c}"><t>{t}</t><k>{k}</k><n>{n}</n><p><q>{q}</q></p></i>',
    '<i c="{c}"><t>{t}</t><n>{n}</n><p/></i>',
    "<i><t>{t}</t><k>{k}</k><n>{n}</n></i>",
    '<i c="{c}"><t>{t}</t><k/><n>{n}</n><p><q>{q}</q></p></i>',
)
SHAPES = (
    '<i c="{c}"><t>{t}</t><k>{k}</k><k>{c}</k><n>{n}</n></i>',
    "<i><t>{t}</t><k><x>{k}</x>y</k><n>{n}</n></i>",
    "<i><t>{t}</t><n>{n}</n><n>{q}</n><k>{k}</k></i>",
    "<i><k>{k}</k><n>{n}</n></i>",
    "<j><t>{t}</t><k>{k}</k></j>",
    "<i><t>{t}</t><k>{k}<!-- c --></k><n>{n}</n><p><q>{q}</q><q>{n}</q></p></i>",
    "<i><t>{t}</t><k>{k}</k>",
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="t &lt; {t}"/>',
)


def one_stream(random: Random) -> Stream:
    """A stream with mostly rising times and mostly usual items."""
    time, odd = 0, random.choice((0.0, 0.0, 0.05, 0.3))
    usual = random.choice((USUAL[:1], USUAL[2:3], USUAL[:2], USUAL))
    keys = random.sample(KEYS, random.choice((1, 3, 6, len(KEYS))))
    items: list[str] = []
    for _ in range(random.randint(0, 60)):
        time += random.choice((0, 1, 2, 3, 5, 12, -2, -7 if odd else 0, 130 if odd else 1))
        shape = random.choice(SHAPES if random.random() < odd else usual)
        number = random.choice(ODD if random.random() < odd else NUMBERS)
        key, other = random.choice(keys), random.choice(keys)
        attribute = other.replace('"', "&quot;")
        items.append(shape.format(t=f"{(time - 5) / 10:g}", k=key, c=attribute, n=number, q=other))
    slack, origin = random.choice(("0", "0", "0.3")), random.choice(("0", "0", "-2", "1.5"))
    return Stream(items, slack, origin, random.choice((None, "t")), random.random() < 0.2)


def one_json_stream(random: Random) -> Stream:
    """The same in records, whose keys are texts, numbers, nothing, or lists of them."""
    time, odd = 0, random.choice((0.0, 0.0, 0.1))
    items: list[str] = []
    for _ in range(random.randint(0, 60)):
        time += random.choice((0, 1, 2, 5, 12, -2))
        key: object = random.choice(('DE "x"', "FR", "A&B", "1", 1, 1.5, "é\n", "", "<"))
        if random.random() < odd:
            key = random.choice((None, [key, "b"], [], {"x": key}, True))
        record = {"t": time / 10, "k": key, "n": random.choice((0, 1, 2.5, -3)), "c": random.choice(("u", "v"))}
        if random.random() < odd:
            del record[random.choice(("k", "n", "c"))]
        items.append(json.dumps(record, ensure_ascii=random.random() < odd))
    return Stream(items, random.choice(("0", "0.3")), time=random.choice((None, "t")), form="json")


_ONE = (
    *("$k := $o/k", "$k := $o/k", "$k := $o/@c", "$k := $o/p/q", "$k := $o/missing", "$k := upper-case($o/k)"),
    *("$k := substring($o/k, 1, 1)", "$k := concat($o/k, '-', $o/@c)", "$k := $o/k[. != 'FR']", "$k := $o/*"),
    *("$k := string($o/@c)", "$k := $o//q", "$k := $o/k/text()"),
)


def one_query(random: Random, is_json: bool = False) -> str:
    """A window that is grouped by one key or two, and whose groups are seen through aggregates."""
    keys = [random.choice(_ONE).replace("@c", "c" if is_json else "@c")]
    if random.random() < 0.3:
        keys.append(random.choice(_ONE).replace("$k", "$l").replace("@c", "c" if is_json else "@c"))
    named = random.choice(("", "", "let $v := $o/n "))

    def call() -> str:
        paths = ("$o/n", "$o/n", "$o", "$o/p/q", "$o/t", "$o/n[. > 1]", "$o/missing", "for $i in $o return $i/n * 2")
        path = random.choice((*paths, "$v") if named else paths)
        return f"{random.choice(('min', 'max', 'sum', 'count', 'avg'))}({path})"

    first = f"let $a := {call()} " if random.random() < 0.7 else ""
    where = random.choice(("", f"where {call()} >= 1 ", "where $a >= 1 or count($o) > 2 " if first else ""))
    shown = ["$k", "$k", call(), call(), *(["$a"] if first else []), *(["$l"] if len(keys) > 1 else [])]
    one, two = ", ".join(random.sample(shown, 2)), ", ".join(random.sample(shown, random.choice((1, 2, 3))))
    result = random.choice((f'<g k="{{ {one} }}">{{ {two} }}</g>', f"<g><a>{{ {one} }}</a>{{ {two} }}</g>", "<g/>"))
    size = random.choice(("1", "0.5", "2", "0.25", "0.3", "6"))
    step = random.choice(("", "", " step 0.5", " step 0.1", " step 1.2", " step 4", " step 0.07"))
    count, by = random.choice(("1", "2", "3", "6")), random.choice(("", " step 1", " step 2", " step 4"))
    window = random.choice((f"t diff {size}{step}", f"t diff {size}{step}", f"count {count}{by}"))
    chosen = random.choice(("", "", "", "[n >= 1]", "[k]", "[not(n < 2)]"))
    loop = f'for $w in stream("s")/r/i{chosen} |{window}| '
    inner = f"for $o in $w {named}group by {', '.join(keys)} {first}{where}return {result}"
    body = f"{loop}{random.choice(('', 'return '))}{inner}"
    return random.choice((body, f"<out>{{ {body} }}</out>"))


def is_the_law(name: str) -> bool:
    """Compare one case; whether it was counted by panes."""
    random = Random(name)
    is_json = random.random() < 0.3
    stream = (one_json_stream if is_json else one_stream)(random)
    query = one_query(random, is_json)
    plan = stream.plan(query)
    if plan is None:
        return False
    law = stream.by_law(query)
    text, found = stream.by_panes(query, plan, random)
    shown = f"case {name}\n{query}\n{stream}"
    assert text == law.text, shown
    assert sorted(map(str, found.dead)) == sorted(map(str, law.dead)), shown
    assert list(dict.fromkeys(found.places)) == law.late, shown
    return True


@pytest.mark.parametrize("family", range(4))
def test_groups_by_panes_are_the_law(family: int) -> None:
    """However a stream is cut into ranges and epochs, and whatever keys and values it has."""
    counted = [is_the_law(f"groups {family} {number}") for number in range(12)]
    assert sum(counted) > 6, "most of these queries are counted by panes"
