from __future__ import annotations

import pytest

from reference.asking import ask, error, value

VALUES = (
    # sequences
    ("count((1, 2, 3))", "3"),
    ("count(())", "0"),
    ("count((1, (2, ())))", "2"),
    ("empty(()), empty(1)", "true false"),
    ("exists(()), exists(1)", "false true"),
    ("data((<a>1</a>, 2))", "1 2"),
    ("distinct-values((1, 1.0, 1e0, '1', <a>1</a>))", "1 1"),
    ("count(distinct-values((number('x'), number('y'))))", "1"),
    ("distinct-values((3, 1, 3, 2))", "3 1 2"),
    ("distinct-values(())", ""),
    # booleans
    ("true(), false()", "true false"),
    ("not(1), not(0), not(''), not('x'), not(())", "false true true false true"),
    ("boolean(<a/>), boolean(()), boolean('false'), boolean(0.0), boolean(number('x'))", "true false true false false"),
    ("boolean((<a/>, 1, 2))", "true"),
    # strings
    ("string(1.50), string(1e7), string(true()), string(())", "1.5 1.0E7 true "),
    ("string(<a>x<b>y</b><!-- z --></a>)", "xy"),
    ("concat('a', 1, (), <b>c</b>, true())", "a1ctrue"),
    ("string-join(('a', 'b', 'c'), '-')", "a-b-c"),
    ("string-join(('a', 'b'))", "ab"),
    ("string-join((), '-')", ""),
    ("string-join((1, 2.5, <a>x</a>), ', ')", "1, 2.5, x"),
    (
        "contains('tattoo', 't'), contains('tattoo', 'ttt'), contains('', ''), contains('a', ()), contains((), 'a')",
        "true false true true false",
    ),
    ("starts-with('tattoo', 'tat'), starts-with('tattoo', 'att'), starts-with((), ())", "true false true"),
    ("ends-with('tattoo', 'tattoo'), ends-with('tattoo', 'atto')", "true false"),
    ("substring('motor car', 6)", " car"),
    ("substring('metadata', 4, 3)", "ada"),
    ("substring('12345', 1.5, 2.6)", "234"),
    ("substring('12345', 0, 3)", "12"),
    ("substring('12345', 5, -3)", ""),
    ("substring('12345', -3, 5)", "1"),
    ("substring('12345', number('x'), 3)", ""),
    ("substring('12345', 1, number('x'))", ""),
    ("substring((), 1, 3)", ""),
    ("substring('12345', -42, 1e0 div 0)", "12345"),
    ("substring('12345', -1e0 div 0, 1e0 div 0)", ""),
    ("substring('a😀b', 2, 1)", "😀"),
    ("substring-before('tattoo', 'attoo'), substring-before('tattoo', 'tatto'), substring-before('a', '')", "t  "),
    ("substring-after('tattoo', 'tat'), substring-after('tattoo', 'x'), substring-after('a', '')", "too  a"),
    ("string-length('Harp not on that string like a maiden.')", "38"),
    ("string-length(()), string-length('😀')", "0 1"),
    ("normalize-space(' a  b\n\tc ')", "a b c"),
    ("normalize-space('a\u00a0 b')", "a\u00a0 b"),
    ("normalize-space(())", ""),
    ("upper-case('abCd0ß')", "ABCD0SS"),
    ("lower-case('ABc!D')", "abc!d"),
    ("translate('bar', 'abc', 'AB')", "BAr"),
    ("translate('--aaa--', 'abc-', 'ABC')", "AAA"),
    ("translate('abcdabc', 'aba', 'ABX')", "ABcdABc"),
    # numbers
    ("number('15'), number(' 1e1 '), number('x'), number(()), number(true()), number(<a>2</a>)", "15 10 NaN NaN 1 2"),
    ("abs(10.5), abs(-10.5), abs(-3), abs(-0e0), abs(())", "10.5 10.5 3 0"),
    ("floor(10.5), floor(-10.5), floor(-0.5e0), floor(())", "10 -11 -1"),
    ("ceiling(10.5), ceiling(-10.5), ceiling(-0.5e0)", "11 -10 -0"),
    ("round(2.5), round(2.4999), round(-2.5), round(3), round(())", "3 2 -2 3"),
    ("round(-0.2e0), round(-7.5e0), round(1e0 div 0), round(number('x'))", "-0 -7 INF NaN"),
    ("round(0.4999999999999999999999999999999999)", "0"),
    ("round(<a>1.5</a>), floor(<a>1e300</a>)", "2 1.0E300"),
    ("round(1.125, 2), round(8452, -2), round(3.1415e0, 2), round(-1.125, 2), round((), 1)", "1.13 8500 3.14 -1.12"),
    ("round(2.5, 0), round(-2.5e0, 0), round(-0.04e0, 1), round(5, 3), round(450, -2)", "3 -2 -0 5 500"),
    ("round(1.7e308, -308), round(12.5, 5000), round(12.5e0, -5000), round(1e0 div 0, 2)", "INF 12.5 0 INF"),
    ("round-half-to-even(0.5), round-half-to-even(1.5), round-half-to-even(2.5)", "0 2 2"),
    (
        "round-half-to-even(3.567812e3, 2), round-half-to-even(4.7564e-3, 2), round-half-to-even(35612.25, -2)",
        "3567.81 0 35600",
    ),
    ("round-half-to-even(-2.5), round-half-to-even(-0.5e0), round-half-to-even(250, -2)", "-2 -0 200"),
    ("min((3, 1, 2)), max((3, 1, 2))", "1 3"),
    ("min(('b', 'a')), max(('b', 'a'))", "a b"),
    ("max((1, 2.5)), min(1000000)", "2.5 1.0E6"),
    # names
    ("name(<a/>), local-name(<a/>), name(())", "a a "),
    ("name(<p:a xmlns:p='u'/>), local-name(<p:a xmlns:p='u'/>)", "p:a a"),
    ("for $x in <a b='1'>t</a> return (name($x/@b), name($x/text()))", "b "),
    ("fn:count((1, 2))", "2"),
)


@pytest.mark.parametrize(("query", "answer"), VALUES)
def test_functions_give_what_the_w3c_says(query: str, answer: str) -> None:
    """Values are those of XPath and XQuery Functions 3.1, many from its own examples."""
    assert value(query) == answer


ERRORS = (
    ("string((1, 2))", "XPTY0004"),
    ("concat('a', (1, 2))", "XPTY0004"),
    ("contains(1, '1')", "XPTY0004"),
    ("string-length(5)", "XPTY0004"),
    ("upper-case(true())", "XPTY0004"),
    ("substring('a', ())", "XPTY0004"),
    ("substring('a', 'b')", "XPTY0004"),
    ("string-join('a', 1)", "XPTY0004"),
    ("abs('a')", "XPTY0004"),
    ("round(<a>x</a>)", "FORG0001"),
    ("floor((1, 2))", "XPTY0004"),
    ("round(1, ())", "XPTY0004"),
    ("round(1, 1.5)", "XPTY0004"),
    ("subsequence(1, ())", "XPTY0004"),
    ("number((1, 2))", "XPTY0004"),
    ("name('a')", "XPTY0004"),
    ("name((<a/>, <b/>))", "XPTY0004"),
    ("not((1, 2))", "FORG0006"),
)


@pytest.mark.parametrize(("query", "code"), ERRORS)
def test_wrong_arguments_raise(query: str, code: str) -> None:
    """An argument of the wrong kind or number raises with its W3C code."""
    assert error(query) == code


NODES = (
    ("name(.)", "i", "tgt", "", "", "x:a", "x:b"),
    ("local-name(.)", "i", "tgt", "", "", "a", "b"),
)


@pytest.mark.parametrize(("call", "names"), [(call, names) for call, *names in NODES])
def test_every_kind_of_node_has_its_name(call: str, names: list[str]) -> None:
    """An instruction's name is its target, comments and text have none, others the one they are written with."""
    given = "<r xmlns:x='u'><p><i/><?tgt some data?><!--c-->text<x:a x:b='1'/></p></r>"
    query = f"for $n in (stream('s')/r/p/node(), stream('s')/r/p/*/@*) return <n>{{ {call.replace('.', '$n')} }}</n>"
    assert ask(query, {"s": given}).text == "".join(f"<n>{each}</n>" if each else "<n/>" for each in names)


def test_an_instruction_is_found_by_its_name() -> None:
    """`name()` in a predicate sees the target; a name test asks for elements only."""
    given = {"s": "<r><p><?tgt some data?><tgt/></p></r>"}
    assert ask("stream('s')/r/p/node()[name() = 'tgt']", given).text == "<?tgt some data?><tgt/>"
    assert ask("stream('s')/r/p/tgt", given).text == "<tgt/>"


CONTEXT = (
    ("string()", "ab"),
    ("string-length()", "2"),
    ("normalize-space()", "ab"),
    ("name()", "i"),
    ("local-name()", "i"),
)


@pytest.mark.parametrize(("call", "answer"), CONTEXT)
def test_a_missing_argument_is_the_context_item(call: str, answer: str) -> None:
    """Inside a predicate, these functions look at the node in question."""
    found = ask(f"count(stream('s')/r/*[string({call}) = '{answer}'])", {"s": "<r><i>ab</i><j/></r>"})
    assert found.text == "1"


def test_number_of_the_context_item() -> None:
    """`number()` reads the context item."""
    assert ask("count(stream('s')/r/i[number() = 5])", {"s": "<r><i>5.0</i><i>x</i></r>"}).text == "1"
