"""TableRows that are looked up by a key: the values, the errors and the steps are those of looking at every row."""

from __future__ import annotations

from random import Random
from unittest import mock

import pytest

from anabranch.errors import DynamicError
from anabranch.language import check, parse
from anabranch.law import Input, document_input
from anabranch.law.paths import Walker
from anabranch.runtime import tables
from anabranch.runtime.standing import standing
from anabranch.runtime.tables import RowIndex, as_table
from anabranch.runtime.units import Units
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import implied_root, parse_document, parse_item
from anabranch.values.atomic import Untyped
from mass import some

LOOKUPS = (
    'for $x in doc("t")/t/row where $x/k = $p/k return $x/v',
    'for $x in doc("t")/t/row where $p/k = $x/k and $x/v > 3 return <r>{ $x/v, $p/n }</r>',
    'for $x in doc("t")/t/row where $x/v > 3 and $x/@n = $p/n return $x/v',
    'for $x in doc("t")/t/row where $x/k = $p/n + 0 return $x/v',
    'for $x in doc("t")/t/row where $x/k = 1.0 and $x/v + 1 > $p/n return $x/v',
    'for $x in doc("t")/t/row where $x/@n = string($p/k) return $x/v',
    'for $x in doc("t")/t/row where $x/k = ($p/k, $p/n) return $x/v',
    'for $y in doc("t")/t/row for $x in doc("t")/t/row where $x/k = $y/@n and $y/k = $p/k return <b>{ $x/v }</b>',
    'for $x in doc("t")/t/row let $v := $x/v + 1 where $x/k = $p/k return $v',
    'doc("t")/t/row[k = $p/k]/v',
    'doc("t")/t/row[@n = $p/n][v > 3]/v',
    'doc("t")/t/row[v > 3 and k = $p/k]/v/text()',
    'doc("t")/t/row/k[. = $p/k]/../v',
    'doc("t")//k[. = $p/k]',
    'doc("t")/t/row[$p/k = k and v + 1 > 3]/v',
    'doc("t")/t/row[k = doc("t")/t/row[@n = $p/n]/k]/v',
    'doc("t")/t/row[k = true()]/v',
    'doc("t")/t/none[k = $p/none/none]/v',
    'if (some $x in doc("t")/t/row satisfies $x/k = $p/k) then <y/> else <n/>',
    'if (some $x in doc("t")/t/row satisfies $x/k = $p/k and $x/v + 1 > 5) then <y/> else <n/>',
    'if (every $x in doc("t")/t/row satisfies $x/k = $p/k) then <y/> else <n/>',
    'if (some $y in doc("t")/t/row, $x in doc("t")/t/row satisfies $x/k = $y/@n and $y/k = $p/k) then <y/> else <n/>',
    'for $x in doc("t")/t/row where $x/v = 4 and $x/k = $p/k return <r>{ $x/v, $p/n }</r>',
    'for $x in doc("t")/t/row where "4" = $x/v and ($x/v != -1 and $p/k = $x/k) and $x/v + 1 > 3 return $x/v',
    'doc("t")/t/row[v = 4 and $p/k = k]/v',
    'if (some $x in doc("t")/t/row satisfies $x/v = -4 and ($x/@n = $p/n + 0)) then <y/> else <n/>',
)


def asked(query: str, document: Input) -> Units:
    """A query of one item, `$p`, that reads a document."""
    text = f'for $p in stream("s")/r/p return <a>{{ {query} }}</a>'
    return Units(standing(check(parse(text), text, inputs={"s": None, "t": None}).query), {}, {"t": document})


def outcome(units: Units, item: str) -> tuple[str, int]:
    """What an item gives, or why it fails, and how many steps are left then."""
    tree = parse_item(item.encode(), Limits())
    try:
        found = units.item(implied_root("r"), tree).text
    except DynamicError as error:
        found = f"{error.code} {error.message}"
    return found, units._evaluator.left


def row(random: Random, numbers: bool) -> str:
    """A row with a key, some or none; with `numbers`, each is one."""
    keys = ["1", "1.0", " 2", "INF", "NaN", "1e400"] + ([] if numbers else ["a", "", "true"])
    found = "".join(f"<k>{random.choice(keys)}</k>" for _ in range(random.choice((0, 1, 1, 1, 1, 2))))
    return f'<row n="{random.choice(keys)}">{found}<v>{random.choice(("1", "4", "7", "x"))}</v></row>'


@pytest.mark.parametrize("query", LOOKUPS)
def test_a_lookup_is_the_law(query: str) -> None:
    """Over random rows and items, also with few steps left, it gives and takes what looking at all rows does."""
    for number in some(range(60)):
        random = Random(number)
        rows = "".join(row(random, numbers=number % 2 == 0) for _ in range(random.randrange(9)))
        text = f"<t>{rows}</t>".encode()
        plain, table = (document_input(parse_document(text), "t") for _ in range(2))
        law, lookup = asked(query, plain), asked(query, as_table(table))
        values = ["1", "1.0", "2", "a", "INF", "NaN", "true"]
        item = "".join(f"<{name}>{random.choice(values)}</{name}>" for name in random.choices("kkn", k=3))
        limit = random.choice((1_000_000, 30, 10))
        with mock.patch("anabranch.law.steps._limit", limit), mock.patch("anabranch.law.steps._NODE", 0):
            assert outcome(lookup, f"<p>{item}</p>") == outcome(law, f"<p>{item}</p>"), (number, limit)


def test_rows_with_other_keys_are_not_looked_at() -> None:
    """Of 10,000 rows, one is asked for its key, and the index is made once."""
    rows = "".join(f"<row><k>{number}</k><v>{number}</v></row>" for number in range(10_000))
    document = as_table(document_input(parse_document(f"<t>{rows}</t>".encode()), "t"))
    for query in LOOKUPS[0], LOOKUPS[9], LOOKUPS[18]:
        units = asked(query, document)
        outcome(units, "<p><k>1</k></p>")
        with (
            mock.patch.object(tables, "_texts", side_effect=AssertionError("the index is there")),
            mock.patch.object(Walker, "_step", autospec=True, side_effect=Walker._step) as steps,
        ):
            found, _ = outcome(units, "<p><k>777</k></p>")
        assert found in ("<a><v>777</v></a>", "<a><y/></a>")
        assert steps.call_count < 20


def test_numbers_beside_text() -> None:
    """Where one key is no number, a number is compared with every row, and the comparison fails as the law has it."""
    index = RowIndex([(Untyped("1"),), (Untyped("1.0"),), (), (Untyped("x"),)])
    assert index.rows([Untyped("1")]) == [0]
    assert index.rows([1]) is None
    assert index.rows([]) == []
    numbers = RowIndex([(Untyped("1"),), (Untyped("1.0"), Untyped("1")), (Untyped("NaN"),)])
    assert numbers.rows([1]) == [0, 1]
    assert numbers.rows([1.0]) == [0, 1]
    assert numbers.rows([float("nan")]) == []
    assert numbers.rows([1, 2]) is None, "several keys beside several values take steps"
    assert numbers.rows([True]) is None
