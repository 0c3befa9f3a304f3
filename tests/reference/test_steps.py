"""LAWS 2.6: one evaluation takes a bounded number of steps, whatever a query multiplies."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import pytest

from anabranch.errors import UsageError
from anabranch.law.answer import NoAnswer
from anabranch.law.inputs import document_input
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_document
from mass import some
from reference.asking import ask
from reference.few_steps import allowing, doubling

FEW = 20_000
REASON = "the evaluation takes more than 20,000 steps for each item in it; 'max_steps' allows more"
WIDE = "".join(f"<a>{number}</a><b>{number + 5_000}</b>" for number in range(300))
DEEP = f"{'<d>' * 40}{'<a/>' * 20}{'</d>' * 40}"


def lets(first: str, body: str, result: str) -> str:
    """Thirty `let`s, each made of the one before, which is `{v}`; the result is made of the last."""
    made = " ".join(f"let $v{number} := {body.replace('{v}', f'$v{number - 1}')}" for number in range(1, 30))
    return f"let $v0 := {first} {made} return {result.replace('{v}', '$v29')}"


SUM = doubling(24, "{f}($x) + {f}($x)", "1")
EVERYTHING = {
    "calls": (SUM, "return <n>{ local:f23(1) }</n>", ""),
    "calls in a condition": (SUM, "where local:f23(1) > 0 return <n/>", ""),
    "calls that make a sequence": (doubling(24, "({f}($x), {f}($x))", "$x"), "return count(local:f23($p))", ""),
    "calls that make a text": (doubling(24, "concat({f}($x), {f}($x))", "'ab'"), "return local:f23(1)", ""),
    "calls that make an element": (doubling(20, "<e>{ {f}($x), {f}($x) }</e>", "$x"), "return local:f19($p)", ""),
    "a sequence": ("", lets("$p", "({v}, {v})", "count({v})"), ""),
    "an element": ("", lets("$p", "<e>{ {v}, {v} }</e>", "count({v})"), ""),
    "a text": ("", lets("'ab'", "concat({v}, {v})", "string-length({v})"), ""),
    "a joined text": ("", lets("'ab'", "string-join(({v}, {v}))", "string-length({v})"), ""),
    "a translated text": ("", lets("'ab'", "concat(upper-case({v}), {v})", "contains({v}, 'x')"), ""),
    "an attribute": ("", lets("<e k='ab'/>", "<e k='{ {v}/@k }{ {v}/@k }'/>", "string-length({v}/@k)"), ""),
    "a text in an element": ("", lets("<e>ab</e>", "<e>{ string({v}) }{ string({v}) }</e>", "count({v})"), ""),
    "clauses": ("", "return count(for $a in $p/a for $b in $p/b for $c in $p/a return 1)", WIDE),
    "clauses that give much": ("", "return count(for $a in $p/a return $p/b)", WIDE),
    "loops": ("", "return count(for $a in $p/a return for $b in $p/b return ())", WIDE),
    "ordered": ("", "return count(for $a in $p/a, $b in $p/b order by $a, $b return 1)", WIDE),
    "some": ("", "where some $a in $p/a, $b in $p/b satisfies $a = $b return <n/>", WIDE),
    "every": ("", "where every $a in $p/a, $b in $p/b satisfies $a != $b return <n/>", WIDE),
    "pairs": ("", "where $p/a = $p/b return <n/>", WIDE),
    "predicates": ("", "return count($p/a[count($p/b[. > 1]) = 7])", WIDE),
    "predicates inside one another": ("", "return count($p//*[.//*[.//*[.//*[.//zzz]]]])", DEEP),
    "windows": ("", "for $w in $p/a|count 200 step 1| return <n>{ count(($w, $w)) }</n>", WIDE),
    "a function in Python": ("", "return count(for $a in $p/a, $b in $p/b return python($a))", WIDE),
}


@pytest.fixture(autouse=True)
def _few() -> Iterator[None]:
    with allowing(FEW):
        yield


@pytest.mark.mass
@pytest.mark.parametrize(("functions", "rest", "item"), some([*EVERYTHING.values()]), ids=some([*EVERYTHING]))
def test_everything_that_multiplies_is_bounded(functions: str, rest: str, item: str) -> None:
    """The item is set aside with the reason and its code, in a time that shows the bound; the others are answered."""
    begun = process_time()
    found = ask(
        f"{functions} for $p in stream('s')/r/p let $ok := <ok/> return if ($p/ok) then $ok else for $p in $p {rest}",
        {"s": f"<r><p>{item}</p><p><ok/></p></r>"},
        functions={"python": lambda value: [value] * 3},
    )
    assert found.text == "<ok/>"
    assert [(each.reason, each.code, each.subscription) for each in found.dead] == [(REASON, "XPDY0130", "q")]
    assert process_time() - begun < 10


@pytest.mark.mass
@pytest.mark.parametrize(
    "query",
    [
        f"{SUM} stream('s')/r/p[ok or local:f23(1)]/ok",
        "stream('s')/r/p[ok or a = b]/ok",
        "for $w in stream('s')/r/p[ok or a = b]|count 1| return $w/ok",
        f"{SUM} for $p in stream('s')/r/p[ok or local:f23(1)] return $p/ok",
    ],
)
def test_a_path_over_a_stream_is_bounded_in_each_item(query: str) -> None:
    """A predicate on a stream concerns one item, and so does its failure."""
    found = ask(query, {"s": f"<r><p>{WIDE}</p><p><ok/><a>7</a></p></r>"})
    assert found.text == "<ok/>"
    assert [each.code for each in found.dead] == ["XPDY0130"]


@pytest.mark.mass
def test_many_items_have_many_steps() -> None:
    """What is counted for one item does not add up over a stream, nor over what is made of all of it."""
    for query, count in (
        ("<all>{ for $p in stream('s')/r/p return <e>{ $p/a, $p/a, $p/a }</e> }</all>", 3_000),
        ("for $p in stream('s')/r/p order by $p/a descending return <e>{ $p/a, $p/a, $p/a }</e>", 3_000),
        ("let $all := stream('s')/r/p return count(for $v in distinct-values($all/a) return $all[a = $v])", 200),
        ("count(for $v in distinct-values(stream('s')/r/p/a) return stream('s')/r/p[a = $v][a < 3])", 200),
    ):
        items = "".join(f"<p><a>{number}</a></p>" for number in range(count))
        found = ask(query, {"s": f"<r>{items}</r>"})
        assert found.dead == []
        assert found.text


@pytest.mark.mass
def test_a_window_has_the_steps_of_its_items() -> None:
    """A loop over the items of a large window is no more than a loop over items."""
    items = "".join(f"<p><a>{number}</a></p>" for number in range(3_000))
    query = "for $w in stream('s')/r/p|count 3000| return <w>{ for $x in $w return ($x/a, $x/a, $x/a) }</w>"
    assert ask(query, {"s": f"<r>{items}</r>"}).text.count("<a>") == 9_000
    few = "for $w in stream('s')/r/p|count 3000| return for $x in (1, 2, 3, 4, 5) return for $y in $w/a return ()"
    assert ask(few, {"s": f"<r>{items}</r>"}).dead == []


@pytest.mark.mass
def test_an_aggregate_is_part_of_the_step_that_asks_for_it() -> None:
    """A window that is seen through aggregates needs no more steps the more items it holds."""
    items = "".join(f"<p><a>{number}</a></p>" for number in range(3_000))
    with allowing(20):
        query = "for $w in stream('s')/r/p|count 3000| let $v := $w/a return <w>{ avg($v), count($w/a[. > 9]) }</w>"
        assert ask(query, {"s": f"<r>{items}</r>"}).text == "<w>1499.5 2990</w>"


def test_the_predicate_of_an_aggregate_is_bounded_for_each_node() -> None:
    """Otherwise the aggregate fails, and with it the window."""
    query = "for $w in stream('s')/r/p|count 1| return <n>{ count($w[a = b]) }</n>"
    found = ask(query, {"s": f"<r><p>{WIDE}</p><p><a>1</a><b>1</b></p></r>"})
    assert found.text == "<n>1</n>"
    assert [each.code for each in found.dead] == ["XPDY0130"]


def test_a_document_brings_steps_along() -> None:
    """To go through a large document takes many steps, and so it may."""
    document = document_input(parse_document(f"<d>{'<row><k>1</k></row>' * 10_000}</d>".encode()))
    query = "for $p in stream('s')/r/p return count(for $row in doc('d')/d/row where $row/k = $p/k return $row)"
    assert ask(query, {"s": "<r><p><k>1</k></p></r>", "d": document}).text == "10000"


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("local:f23(1) = 1 and $p/no", ""),
        ("$p/no and local:f23(1) = 1", ""),
        ("local:f23(1) = 1 or $p/yes", "<yes/>"),
        ("$p/yes or local:f23(1) = 1", "<yes/>"),
    ],
)
def test_the_other_side_settles_a_condition(condition: str, answer: str) -> None:
    """LAWS 2.4: `and` is false and `or` true by one side, also where the other takes too many steps."""
    found = ask(f"{SUM} for $p in stream('s')/r/p where {condition} return $p/yes", {"s": "<r><p><yes/></p></r>"})
    assert (found.text, found.dead) == (answer, [])


def test_neither_side_settles_it() -> None:
    """Where both sides matter, the item is set aside."""
    found = ask(
        f"{SUM} for $p in stream('s')/r/p where local:f23(1) = 1 and $p/yes return $p", {"s": "<r><p><yes/></p></r>"}
    )
    assert [each.code for each in found.dead] == ["XPDY0130"]


@pytest.mark.mass
def test_what_belongs_to_no_item_fails_by_itself() -> None:
    """Without an item around it, the query has no answer."""
    with pytest.raises(NoAnswer) as caught:
        ask(f"{SUM} <n>{{ local:f23(1) }}{{ stream('s')/r/p }}</n>", {"s": "<r><p/></r>"})
    assert (caught.value.message, caught.value.code) == (REASON, "XPDY0130")


def test_the_limit_can_only_be_raised() -> None:
    """With fewer steps, what is answered in columns could differ."""
    assert Limits(steps=5_000_000).steps == 5_000_000
    with pytest.raises(UsageError, match="the limit 'steps' must be at least 1,000,000"):
        Limits(steps=999_999)
