"""Which items a dead letter names: those whose values failed, in a window, a pair or a whole stream (LAWS 2.4)."""

from __future__ import annotations

import json

import pytest

from anabranch.law.answer import NoAnswer
from reference.asking import ask, leaves, stream

WINDOW = "for $w in stream('s')/r/i|count 4| return "
MIXED = stream("<a>1</a><b>1</b>", "<a>n/a</a><b>2</b>", "<a>3</a><b>x</b>", "<a>bad</a><b>4</b>")


@pytest.mark.parametrize(
    ("result", "named"),
    [
        ("<o>{ sum($w/a) }</o>", ["n/a", "bad"]),
        ("<o>{ sum($w/a) + 1 }</o>", ["n/a", "bad"]),
        ("<o>{ min($w/a) }{ $w/b }</o>", ["n/a", "bad"]),
        ("<o>{ sum($w/b) }</o>", ["x"]),
        ("<o>{ count($w) }{ avg($w/b) }</o>", ["x"]),
        ("<o>{ for $i in $w return <v>{ $i/b * 2 }</v> }</o>", ["x"]),
        ("<o>{ for $i in $w let $v := -$i/a return <v>{ $v }</v> }</o>", ["n/a"]),
        ("<o>{ for $i in $w return <v>{ string($i/b) + 1 }</v> }</o>", ["1"]),
        ("<o>{ count($w[a > 5]) }</o>", ["n/a"]),
        ("<o>{ if (some $i in $w satisfies $i/a > 5) then 1 else 2 }</o>", ["n/a"]),
        ("<o>{ if (every $i in $w satisfies $i/b < 5) then 1 else 2 }</o>", ["x"]),
        ("<o>{ if ($w/a > 9) then 1 else 2 }</o>", ["n/a", "bad"]),
        ("<o>{ string($w[b = 2 or b = 4]/a) }</o>", ["x"]),
        ("<o>{ count($w) div 0 }</o>", ["1"]),
    ],
)
def test_a_window_names_the_items_at_fault(result: str, named: list[str]) -> None:
    """The values that are no numbers, in the order of the window; else what was looked at, or else its first item."""
    answer = ask(WINDOW + result, {"s": MIXED})
    assert answer.text == ""
    (letter,) = answer.dead
    raws = [letter.raw, *(raw for _, raw in letter.others)]
    assert [next(each for each in named if f">{each}<" in raw) for raw in raws] == named
    places = [letter.place, *(place for place, _ in letter.others)]
    assert [MIXED[each.offset :].startswith(raw) for each, raw in zip(places, raws, strict=True)] == [True] * len(raws)


def test_a_window_whose_values_are_good_is_answered() -> None:
    """Who asks for another path of the same window has its answer."""
    assert ask(WINDOW + "<o>{ count($w) }</o>", {"s": MIXED}).text == "<o>4</o>"


def test_ten_items_are_named() -> None:
    """Of many items the first ten are named, and how many values failed is told; one with two of them is named once."""
    values = "".join(f"<i><a>x{n}</a>{'<a>y</a>' if n == 3 else ''}</i>" for n in range(14))
    answer = ask("for $w in stream('s')/r/i|count 14| return <o>{ sum($w/a) }</o>", {"s": f"<r>{values}</r>"})
    (letter,) = answer.dead
    assert [letter.raw, *(raw for _, raw in letter.others)] == [
        f"<i><a>x{n}</a>{'<a>y</a>' if n == 3 else ''}</i>" for n in range(10)
    ]
    assert letter.values == 15
    line = json.loads(letter.to_json())
    assert (line["reason"], line["values"], len(line["others"])) == ("'x0' is no number", 15, 9)
    assert line["others"][0].keys() == {"stream", "partition", "offset", "raw"}


def test_ten_items_are_all() -> None:
    """Where all are named, nothing has to be counted."""
    answer = ask("for $w in stream('s')/r/i|count 10| return <o>{ sum($w/a) }</o>", {"s": leaves("a", *["x"] * 10)})
    (letter,) = answer.dead
    assert (len(letter.others), letter.values) == (9, None)
    assert "values" not in json.loads(letter.to_json())


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("$x/a + 1 > 0", ["x"]),
        ("$y/a + 1 > 0", ["y"]),
        ("$x/a + $y/a > 0", ["x", "y"]),
        ("1 div 0 > 0", ["x"]),
    ],
)
def test_a_pair_names_the_items_at_fault(where: str, named: list[str]) -> None:
    """One item of the pair or both, or the first where none is."""
    inputs = {"x": leaves("a", "no"), "y": leaves("a", "never")}
    query = f"for $x in stream('x')/r/i|count 1|, $y in stream('y')/r/i|count 1| where {where} return <p/>"
    answer = ask(query, inputs)
    (letter,) = answer.dead
    assert [letter.place.stream, *(place.stream for place, _ in letter.others)] == named


def test_a_query_that_fails_as_a_whole() -> None:
    """It has no answer; the error says where, and the dead letters have the items, and what failed before."""
    with pytest.raises(NoAnswer) as caught:
        ask("(stream('s')/r/i[b > 3]/a, sum(stream('s')/r/i/a))", {"s": MIXED})
    *before, last = caught.value.dead
    assert [letter.code for letter in before] == ["FORG0001"]
    assert (last.raw, [raw for _, raw in last.others]) == (
        "<i><a>n/a</a><b>2</b></i>",
        ["<i><a>bad</a><b>4</b></i>"],
    )
    assert caught.value.reason == f"'n/a' is no number [FORG0001] (s/text at byte {MIXED.index('<i><a>n/a')})"


def test_an_answer_that_cannot_be_written() -> None:
    """An attribute outside of any element is told with its code; no item is at fault."""
    with pytest.raises(NoAnswer) as caught:
        assert ask("stream('s')/r/i/@k", {"s": "<r><i k='1'/></r>"}).text
    assert caught.value.reason == "attribute 'k' stands outside of any element [SENR0001]"


def test_case_37() -> None:
    """A sum over a whole stream has no answer where an item's value is no number; a count over it has."""
    inputs = {"s": leaves("f", 1, "abc")}
    with pytest.raises(NoAnswer) as caught:
        ask("sum(stream('s')/r/i/f)", inputs)
    assert (caught.value.code, caught.value.dead[-1].raw) == ("FORG0001", "<i><f>abc</f></i>")
    assert ask("count(stream('s')/r/i)", inputs).text == "2"


def test_case_38() -> None:
    """The window gives nothing, and its dead letter names the second and the fourth item; others are answered."""
    inputs = {"s": leaves("f", 1, "n/a", 3, "bad")}
    answer = ask(WINDOW + "<o>{ sum($w/f) }</o>", inputs)
    (letter,) = answer.dead
    assert answer.text == ""
    assert [letter.raw, *(raw for _, raw in letter.others)] == ["<i><f>n/a</f></i>", "<i><f>bad</f></i>"]
    assert ask(WINDOW + "<o>{ count($w) }</o>", inputs).text == "<o>4</o>"
