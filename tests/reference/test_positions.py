"""Positions (LAWS 3.10): predicates that are numbers, position() and last(), numbered loops."""

from __future__ import annotations

import pytest

from anabranch.errors import QueryError
from reference.asking import ask, leaves, stream, value


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("(for $p in $w order by $p/en return $p/en)[position() <= 2]", "<en>1</en><en>2</en>"),
        ("$w[last()]/en", "<en>2</en>"),
    ],
)
def test_case_54(result: str, answer: str) -> None:
    """The first of what is sorted, and the last of a window."""
    inputs = {"s": leaves("en", 3, 1, 2)}
    assert ask(f"for $w in stream('s')/r/i|count 3| return {result}", inputs).text == answer


VALUES = (
    ("(5, 6, 7)[2]", "6"),
    ("(5, 6, 7)[2.0], (5, 6, 7)[2e0], (5, 6, 7)[1.5], (5, 6, 7)[0]", "6 6"),
    ("(5, 6, 7)[last()], (5, 6, 7)[last() - 1], ()[last()]", "7 6"),
    ("(5, 6, 7)[position() >= 2][1]", "6"),
    ("(5, 6, 7)[position() = (1, 3)]", "5 7"),
    ("(5, 6, 7)[. > 5][last()]", "7"),
    ("(1, 2, 2)[.]", "1 2"),
    ("let $n := 2 return (5, 6, 7)[$n]", "6"),
    ("let $n := 'a' return (5, 6, 7)[$n]", "5 6 7"),
    ("declare function local:f($n) { $n - 1 }; (5, 6, 7)[local:f(last())]", "6"),
    ("(5, 6, 7)[if (last() > 2) then 1 else true()]", "5"),
    ("for $x at $i in ('a', 'b') return concat($i, $x)", "1a 2b"),
    ("for $x at $i in (3, 4), $y at $j in (5, 6) where $i = $j return $x * $y", "15 24"),
    ("head((1, 2)), head(()), tail((1, 2, 3)), tail(1), reverse((1, 2)), reverse(())", "1 2 3 2 1"),
    ("subsequence((1, 2, 3, 4), 2), subsequence((1, 2, 3, 4), 2, 2), subsequence((1, 2, 3), 0, 2)", "2 3 4 2 3 1"),
    ("subsequence((1, 2, 3, 4), 1.5, 1.5), subsequence((1, 2), number('x')), subsequence((), 1)", "2 3"),
    ("for $a in <a><b>1</b><c/><b>2</b></a> return ($a/b[2], $a/*[2], $a/b[position() < 2])", "<b>2</b><c/><b>1</b>"),
    ("for $a in <a><b><c>1</c><c>2</c></b><b><c>3</c></b></a> return ($a/b/c[1], ($a/b/c)[1])",
     "<c>1</c><c>3</c><c>1</c>"),
    ("for $a in <a><c>0</c><b><c>1</c><c>2</c></b></a> return $a//c[1]", "<c>0</c><c>1</c>"),
    ("for $a in <a><c>0</c><b><c>1</c></b></a> return $a/descendant::c[2]", "<c>1</c>"),
    ("for $a in <a><b x='1' y='2'/></a> return <o>{ $a/b/@*[2] }</o>", '<o y="2"/>'),
    ("for $a in <a><b/><b n='2'/></a> return $a/b[count($a/b)]/@n/..", '<b n="2"/>'),
)  # fmt: skip


@pytest.mark.parametrize(("query", "answer"), VALUES)
def test_positions(query: str, answer: str) -> None:
    """As XQuery has them: behind a step they count anew from each node, behind parentheses through."""
    assert value(query) == answer


OVER_STREAMS = (
    ("for $p in stream('s')/r/i return $p/t[1]", "<t>1</t><t>4</t>"),
    ("stream('s')/r/i/t[last()]", "<t>2</t><t>4</t>"),
    ("stream('s')/r/i[t[2]]/t[1]", "<t>1</t>"),
    ("stream('s')/r/i//t[1]", "<t>1</t><t>4</t>"),
    ("for $p in stream('s')/r/i where $p/t[1] > 1 return $p/t", "<t>4</t>"),
    ("(for $p in stream('s')/r/i return $p/t)[3]", "<t>4</t>"),
    ("(for $p in stream('s')/r/i return $p/t, <e/>, for $p in stream('s')/r/i return $p/t)[position() > 3]",
     "<e/><t>1</t><t>2</t><t>4</t>"),
    ("for $x at $n in (for $p in stream('s')/r/i return $p/t) return <x n='{$n}'>{ $x/text() }</x>",
     '<x n="1">1</x><x n="2">2</x><x n="3">4</x>'),
    ("reverse(stream('s')/r/i/t)", "<t>4</t><t>2</t><t>1</t>"),
    ("for $w in stream('s')/r/i|count 2| return ($w/t[1], ($w/t)[2], $w[2]/t)",
     "<t>1</t><t>4</t><t>2</t><t>4</t>"),
)  # fmt: skip


@pytest.mark.parametrize(("query", "answer"), OVER_STREAMS)
def test_positions_over_streams(query: str, answer: str) -> None:
    """Inside items and windows, and in what a loop over a stream gives."""
    assert ask(query, {"s": stream("<t>1</t><t>2</t>", "<t>4</t>")}).text == answer


def test_a_number_that_nobody_foresaw() -> None:
    """On items, a predicate that turns out to be a number is an error of its item."""
    answer = ask("stream('s')/r/i[f(.)]/t", {"s": leaves("t", 1, 2)}, functions={"f": lambda value: value})
    assert (answer.text, {letter.code for letter in answer.dead}) == ("", {"FORG0006"})


def test_a_failing_position_names_its_item() -> None:
    """In a window the node that the predicate was put to is at fault."""
    inputs = {"s": leaves("t", 1, "x")}
    answer = ask("for $w in stream('s')/r/i|count 2| return $w[position() = 1 and t > 0 or t * 1 > 1]/t", inputs)
    assert [letter.raw for letter in answer.dead] == ["<i><t>x</t></i>"]


@pytest.mark.parametrize("query", ["position()", "for $x in (1, 2) return last()", "<a b='{ last() }'/>"])
def test_a_position_of_nothing(query: str) -> None:
    """Outside of predicates there is none."""
    with pytest.raises(QueryError) as caught:
        value(query)
    assert caught.value.code == "XPDY0002"
