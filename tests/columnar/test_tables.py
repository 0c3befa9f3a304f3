"""Rows of documents are looked up in columns as the law looks them up, for random tables, queries and items."""

from __future__ import annotations

from random import Random
from unittest import mock

import pytest

from anabranch.columnar.tables import joined_look
from anabranch.columnar.tables.joined_look import RowLookup
from columnar.random_cases import Shares
from columnar.streams import Stream, check_by_law, item_queries
from columnar.table_cases import item, odd_document, query, small_document
from mass import Mass, some

# --- random tables and queries ------------------------------------------------------------------------------


def check_case(number: int, shares: Shares) -> None:
    """A few queries over a few dozen items are answered as by law, errors too."""
    random = Random(number)
    document, prefix = odd_document(random)
    texts = {f"q{each}": query(random, prefix) for each in range(3)}
    queries = item_queries(texts, {"t": document, "u": small_document(random)})
    odd = random.choice([0, 0, 10])
    data = "".join(f"{item(random, odd)}\n" for _ in range(random.choice([5, 40, 120]))).encode()
    stream = Stream(queries, "lines", root="<r>")
    shares.cover(stream, *check_by_law(stream, data, random))


@pytest.mark.mass
def test_some_random_lookups_are_answered_as_by_law() -> None:
    """The same cases each time; most queries compile, and most of their items are left to nobody else."""
    shares = Shares()
    for number in range(10_000, 10_008):
        check_case(number, shares)
    shares.check()


def test_random_lookups_are_answered_as_by_law(mass: Mass) -> None:
    """Lookups of all forms in tables of all kinds."""
    shares = Shares()
    for number in mass.cases(10_000):
        check_case(number, shares)
    if mass.done >= 100:  # of few cases nothing is certain
        shares.check()


# --- what is left to the law --------------------------------------------------------------------------------

JOINED = 'for $o in stream("s")/r/o, $c in doc("t")/t/row where $c/@id = $o/k return <r>{ $c/v }</r>'
LINES = 'for $o in stream("s")/r/o return <r>{ for $l in $o/l return doc("t")/t/row[@id = $l]/v }</r>'


def table(keys: list[str], value: str = "1") -> bytes:
    rows = "".join(f'<row id="{key}"><v>{value}</v></row>' for key in keys)
    return f"<t>{rows}</t>".encode()


def left_to_law(text: str, document: bytes, items: list[str]) -> int:
    """How many of some items are left to the law, which answers all of them alike."""
    stream = Stream(item_queries({"q": text}, {"t": document}), "lines", root="<r>")
    check_by_law(stream, "".join(f"{each}\n" for each in items).encode(), Random(1))
    return stream.left_to_law


def test_an_item_that_finds_too_much_is_left_to_the_law() -> None:
    """Of rows, of bytes, or in one batch; others are not."""
    document = table([*("many" for _ in range(1_001)), "one", "two", "two"])
    items = [f"<o><k>{key}</k></o>" for key in ("one", "many", "two", "none", "many")]
    assert left_to_law(JOINED, document, items) == 2
    long = table(["one", "long", "long", "long"], "x" * 30_000)
    assert left_to_law(JOINED, long, ["<o><k>one</k></o>", "<o><k>long</k></o>"]) == 1
    with mock.patch.object(joined_look, "_MOST_BATCH_ROWS", 3):
        assert 0 < left_to_law(JOINED, document, ["<o><k>two</k></o>"] * 5) < 5


def test_an_item_that_asks_too_often_is_left_to_the_law() -> None:
    """Each time the law looks at all rows, and no more steps are taken than a part of what it may take."""
    document = table([str(each) for each in range(10_000)])
    often = "".join(f"<l>{each}</l>" for each in range(20))
    assert left_to_law(LINES, document, [f"<o>{often}</o>", "<o><l>7</l><l>8</l></o>", "<o><l>7</l><l>7</l></o>"]) == 1


@pytest.mark.parametrize(
    ("key", "left"),
    [("$o/k", 0), ("$o/k + 0", 3), ("string($o/k)", 0), ("$o/n + 1", 0), ("$o/n * 1e0 - 1", 0)],
)
def test_a_number_is_found_by_its_value_and_a_text_by_its_characters(key: str, left: int) -> None:
    """`01` and `1.0` are the number 1 and three texts; what is no number fails, and is the law's."""
    text = f'for $o in stream("s")/r/o return <r>{{ doc("t")/t/row[@id = {key}]/v }}</r>'
    items = [f"<o><k>{k}</k><n>{n}</n></o>" for k in ("a", "1", "01") for n in ("0", "1", "-0.0")]
    assert left_to_law(text, table(["1", "01", "1.0", "2", "-1", "1"]), items) == left


def test_a_table_whose_keys_are_not_all_numbers() -> None:
    """It has no index by numbers: the comparison fails for some row, and only the law says for which."""
    text = 'for $o in stream("s")/r/o return <r>{ doc("t")/t/row[@id = $o/k + 0]/v }</r>'
    assert left_to_law(text, table(["1", "x"]), ["<o><k>1</k></o>", "<o><k>2</k></o>"]) == 2


@pytest.mark.parametrize(
    "condition",
    some(
        [
            '$c/v = "{n}" and $c/@id = $o/k',
            '"{n}" = $c/v and $o/k = $c/@id',
            '$c/@id = $o/k and $c/v = "{n}"',
            "$c/v = {n} and $c/v > 1 and $c/@id = $o/k",
            '$c/v = "{n}" and $c/@id = $o/k and $c/v != "7"',
            "$c/v != -1 and ($c/v = {n} and ($c/@id = $o/k and $c/v > 1))",
        ]
    ),
)
@pytest.mark.parametrize(
    "form",
    some(
        [
            'for $c in doc("t")/t/row where {condition} return <r>{{ $c/v }}{{ $o/k }}</r>',
            'let $c := doc("t")/t/row[{inner}] where $c return <r>{{ $c/v }}{{ $o/k }}</r>',
            'where some $c in doc("t")/t/row satisfies ({condition}) return <r>{{ $o/k }}</r>',
        ]
    ),
)
def test_a_row_is_compared_with_a_constant_besides_its_key(condition: str, form: str) -> None:
    """Before the key or behind it: that of the item is looked up, once for all queries, and nothing is the law's."""
    rows = "".join(f'<row id="{each // 2}"><v>{each % 9}</v></row>' for each in range(100))
    texts = {}
    for number in range(9):
        asked = condition.format(n=number)
        body = form.format(condition=asked, inner=asked.replace("$c/", ""))
        texts[f"q{number}"] = f'for $o in stream("s")/r/o {body}'
    stream = Stream(item_queries(texts, {"t": f"<t>{rows}</t>".encode()}), "lines", root="<r>")
    data = "".join(f"<o><k>{each % 60}</k></o>\n" for each in range(120)).encode()
    answers = stream.answers()
    found = stream.by_columns([data], answers)[0]
    assert found == stream.by_law(data)
    assert sum(found.counts.values()) >= 100
    assert (answers.coverage.in_columns, stream.left_to_law) == (len(texts), 0)


def test_queries_that_look_the_same_up_share_it() -> None:
    """Queries of many forms have one lookup, which is made for a batch as often as it is asked for at most."""
    bodies = [
        "where $c/v > 1 return <a>{ $c/v }</a>",
        "return <b>{ $c }</b>",
        "where exists($c) return $o",
        "return <d>{ count($c) }</d>",
    ]
    texts = {
        f"q{number}": f'for $o in stream("s")/r/o let $c := doc("t")/t/row[@id = $o/k] {body}'
        for number, body in enumerate(bodies)
    }
    stream = Stream(item_queries(texts, {"t": table(["1", "2"])}), "lines", root="<r>")
    data = b"<o><k>1</k></o>\n<o><k>3</k></o>\n" * 50
    found: set[RowLookup] = set()

    def find(lookup: RowLookup, *given: object) -> joined_look.FoundRows:
        found.add(lookup)
        return real(lookup, *given)  # type: ignore[arg-type]

    real = RowLookup.find
    with mock.patch.object(RowLookup, "find", find):
        answers = stream.answers()
        assert stream.by_columns([data], answers)[0] == stream.by_law(data)
    assert len(found) == 1
    assert answers.coverage.in_columns == len(texts)
