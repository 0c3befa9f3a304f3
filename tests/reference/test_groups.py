"""Groups (LAWS 3.8): the cases, keys of all kinds, what variables are behind them, and who is set aside."""

from __future__ import annotations

import pytest

from anabranch.errors import QueryError
from anabranch.law.answer import NoAnswer
from reference.asking import ask, leaves, stream, value

WINDOW = "for $w in stream('s')/r/i|count 4| "


def test_case_48() -> None:
    """Groups come in the order of their first items, however the loop over the window is written."""
    groups = "for $o in $w group by $c := $o/c return <g c='{$c}'>{ count($o) }</g>"
    inputs = {"s": leaves("c", "DE", "FR", "DE")}
    window = "for $w in stream('s')/r/i|count 3| "
    expected = '<g c="DE">2</g><g c="FR">1</g>'
    assert ask(f"{window}{groups}", inputs).text == expected
    assert ask(f"{window} return {groups}", inputs).text == expected


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("$o/k", '<g k="1">1</g><g k="1.0">1</g><g k="">2</g>'),
        ("$o/k + 0", '<g k="1">2</g><g k="">2</g>'),
    ],
)
def test_case_49(key: str, answer: str) -> None:
    """Text is a key as it is written, a number by its value, and what is missing is a group."""
    inputs = {"s": stream("<k>1</k>", "<k>1.0</k>", "", "")}
    query = f"{WINDOW}for $o in $w group by $k := {key} return <g k='{{$k}}'>{{ count($o) }}</g>"
    assert ask(query, inputs).text == answer


@pytest.mark.parametrize("loop", ["for $w in stream('s')/r/i|count 2| for $o in $w", "for $o in stream('s')/r/i"])
def test_case_50(loop: str) -> None:
    """An item with two values at a key is set aside, alone, in a window and in a whole stream."""
    inputs = {"s": stream("<k>2</k><k>3</k>", "<k>1</k>")}
    answer = ask(f"{loop} group by $k := $o/k return <g k='{{$k}}'>{{ count($o) }}</g>", inputs)
    (letter,) = answer.dead
    assert answer.text == '<g k="1">1</g>'
    assert (letter.code, letter.raw, letter.others) == ("XPTY0004", "<i><k>2</k><k>3</k></i>", ())


KEYS = (
    ("(1, 1.0, 1e0, '1', <a>1</a>, true())", "1 3, 1 2, true 1"),
    ("(<a>x</a>, 'x', <a> x</a>)", "x 2,  x 1"),
    ("(number('a'), number('b'), 1 div 0e0, 2 div 0e0)", "NaN 2, INF 2"),
    ("(0, -0e0)", "0 2"),
    ("(0.1, 0.10)", "0.1 2"),
)


@pytest.mark.parametrize(("values", "groups"), KEYS)
def test_keys_are_equal_by_type_and_value(values: str, groups: str) -> None:
    """Untyped text is text, numbers are compared exactly whatever their type, and NaN is one key."""
    query = f"for $v in {values} group by $k := $v return concat($k, ' ', count($v))"
    assert value(f"string-join({query}, ', ')") == groups


BEHIND = (
    # other variables are all their values, in order
    ("for $v in (3, 1, 2) let $w := $v * 2 group by $k := $v mod 2 return <g>{ $k, $v, $w }</g>",
     "<g>1 3 1 6 2</g><g>0 2 4</g>"),
    # a key takes the place of a variable of its name, or is one
    ("for $v in (3, 1, 2) let $k := $v mod 2 group by $k return <g>{ $k, $v }</g>", "<g>1 3 1</g><g>0 2</g>"),
    ("for $v in (3, 1, 2) group by $v := $v mod 2 return <g>{ $v }</g>", "<g>1</g><g>0</g>"),
    # a key may use the one in front of it
    ("for $v in (1, 2, 3) group by $a := $v mod 2, $b := $a + 10 return <g>{ $a, $b }</g>",
     "<g>1 11</g><g>0 10</g>"),
    # a variable from outside stays what it is
    ("let $o := 9 return for $v in (1, 3) group by $k := 1 return <g>{ $o, $v }</g>", "<g>9 1 3</g>"),
    # but one of the same expression does not
    ("let $o := 9 for $v in (1, 3) group by $k := 1 return <g>{ $o, $v }</g>", "<g>9 9 1 3</g>"),
    # several groupings, orders and numbers
    ("for $v in (5, 4, 3, 2, 1) group by $k := $v mod 2 order by count($v) count $n return <g>{ $n, $k }</g>",
     "<g>1 0</g><g>2 1</g>"),
    ("for $v in (1, 2, 3, 4) group by $k := $v mod 2 group by $s := sum($v) > 4 return <g>{ $s, $k, $v }</g>",
     "<g>false 1 1 3</g><g>true 0 2 4</g>"),
    ("for $v in (1, 2, 3, 4) count $n where $n mod 2 = 0 for $x at $i in ($v, $v * 10) return <g>{ $n, $i, $x }</g>",
     "<g>2 1 2</g><g>2 2 20</g><g>4 1 4</g><g>4 2 40</g>"),
    ("for $v in () group by $k := $v return <g/>", ""),
)  # fmt: skip


@pytest.mark.parametrize(("query", "answer"), BEHIND)
def test_what_stands_behind_a_group(query: str, answer: str) -> None:
    """Clauses act in the order in which they stand, as XQuery has it."""
    assert value(query) == answer


def test_a_let_of_the_window() -> None:
    """One that is seen behind the groups has a value for each item of a group; `$w` stays the window."""
    inputs = {"s": leaves("k", 1, 1, 2, 1)}
    query = f"{WINDOW}let $n := count($w) where $n > 3 for $o in $w group by $k := $o/k "
    assert ask(f"{query}return <g>{{ count($w), $n }}</g>", inputs).text == "<g>4 4 4 4</g><g>4 4</g>"
    assert ask(f"{query}return <g>{{ count($w) }}</g>", inputs).text == "<g>4</g><g>4</g>"


def test_an_item_in_several_tuples_is_set_aside_as_a_whole() -> None:
    """One bad key of an item takes all that came of it out of all groups, once."""
    inputs = {"s": stream("<c><k>1</k></c><c><k>2</k><k>3</k></c>", "<c><k>1</k></c>")}
    query = "for $w in stream('s')/r/i|count 2| for $o in $w for $c in $o/c group by $k := $c/k "
    answer = ask(f"{query}return <g k='{{$k}}'>{{ count($c) }}</g>", inputs)
    assert (answer.text, len(answer.dead)) == ('<g k="1">1</g>', 1)


def test_two_groupings_of_a_window_set_an_item_aside_once() -> None:
    """What is wrong with an item is said once for a window."""
    inputs = {"s": stream("<k>2</k><k>3</k>", "<k>1</k>")}
    groups = "(for $o in $w group by $k := $o/k return <g>{ $k }</g>)"
    answer = ask(f"for $w in stream('s')/r/i|count 2| return ({groups}, {groups})", inputs)
    assert (answer.text, len(answer.dead)) == ("<g>1</g><g>1</g>", 1)


def test_a_window_that_fails_behind_its_groups() -> None:
    """It falls as a whole, and its letter is the only one."""
    inputs = {"s": stream("<k>2</k><k>3</k>", "<k>x</k>")}
    answer = ask("for $w in stream('s')/r/i|count 2| for $o in $w group by $k := $o/k return $k + 1", inputs)
    assert (answer.text, [letter.code for letter in answer.dead]) == ("", ["FORG0001"])


def test_groups_inside_an_item() -> None:
    """A key that raises there is an error of the item."""
    inputs = {"s": stream("<c k='1'/><c k='x'/>", "<c k='1'/><c k='01'/>")}
    query = "for $p in stream('s')/r/i return for $c in $p/c group by $k := $c/@k + 0 return <g>{ $k, count($c) }</g>"
    answer = ask(query, inputs)
    assert (answer.text, [letter.raw for letter in answer.dead]) == (
        "<g>1 2</g>",
        ['<i><c k="1"/><c k="x"/></i>'],
    )


def test_a_whole_stream_with_errors_before_and_behind_the_groups() -> None:
    """Before them an error is one of its item; behind them it is one of the whole."""
    inputs = {"s": leaves("v", 1, "x", 3)}
    loop = "for $o in stream('s')/r/i where $o/v + 0 > 0 group by $k := 1 "
    answer = ask(f"{loop} return <g>{{ sum($o/v) }}</g>", inputs)
    assert (answer.text, [letter.code for letter in answer.dead]) == ("<g>4</g>", ["FORG0001"])
    with pytest.raises(NoAnswer) as caught:
        ask("for $o in stream('s')/r/i group by $k := 1 return sum($o/v)", inputs)
    assert (caught.value.code, caught.value.dead[-1].raw) == ("FORG0001", "<i><v>x</v></i>")


def test_a_stream_that_a_let_names() -> None:
    """Its items are set aside one by one as well."""
    inputs = {"s": stream("<k>2</k><k>3</k>", "<k>1</k>")}
    answer = ask("let $s := stream('s')/r/i for $o in $s group by $k := $o/k return <g>{ $k }</g>", inputs)
    assert (answer.text, [letter.code for letter in answer.dead]) == ("<g>1</g>", ["XPTY0004"])


def test_what_is_sorted_keeps_its_item() -> None:
    """Behind `order by` and `count`, an error is still one of its item, and does not change the others' numbers."""
    inputs = {"s": leaves("v", 3, "x", 1)}
    query = "for $o in stream('s')/r/i order by $o/v count $n return <o n='{$n}'>{ $o/v + 0 }</o>"
    answer = ask(query, inputs)
    assert (answer.text, [letter.raw for letter in answer.dead]) == (
        '<o n="1">1</o><o n="2">3</o>',
        ["<i><v>x</v></i>"],
    )


def test_a_key_without_a_value_is_bound_in_its_expression() -> None:
    """As XQuery asks for; the message says what to write."""
    with pytest.raises(QueryError) as caught:
        value("let $a := 1 return for $v in (1, 2) group by $a return $v")
    assert (caught.value.code, caught.value.hint) == ("XQST0094", "give the key a value: 'group by $a := ...'")
