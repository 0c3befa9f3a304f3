from __future__ import annotations

import pytest

from anabranch.errors import DynamicError
from reference.asking import ask, value

ITEM = "<r><i id='1' k='2'><a>1</a><!-- c --><![CDATA[<x>]]>t</i></r>"

CONTENT = (
    ("<a/>", "<a/>"),
    ("<a></a>", "<a/>"),
    ("<a>x</a>", "<a>x</a>"),
    ("<a>{ 1, 2 }</a>", "<a>1 2</a>"),
    ("<a>{ 1 }{ 2 }</a>", "<a>12</a>"),
    ("<a>{ 1, 'x', 2.50, 1e7, true() }</a>", "<a>1 x 2.5 1.0E7 true</a>"),
    ("<a>{ 1, <b/>, 2, 3 }</a>", "<a>1<b/>2 3</a>"),
    ("<a>{ () }</a>", "<a/>"),
    ("<a>{ '' }</a>", "<a/>"),
    ("<a>{ '', '' }</a>", "<a> </a>"),
    ("<a>x{ 1 }y</a>", "<a>x1y</a>"),
    ("<a>{ '<&amp;>' }</a>", "<a>&lt;&amp;&gt;</a>"),
    ("<a>&lt;{{ }}</a>", "<a>&lt;{ }</a>"),
    ("<a><![CDATA[<b>&]]></a>", "<a>&lt;b&gt;&amp;</a>"),
    ("<a><!-- x --></a>", "<a><!-- x --></a>"),
    ("<a> <b/> </a>", "<a><b/></a>"),
    ("<a>&#32;<b/></a>", "<a> <b/></a>"),
    ("<a>{ <b>{ <c/> }</b> }</a>", "<a><b><c/></b></a>"),
    ("count(<a>{ 1 }{ 2 }</a>/text())", "1"),
    ("count(<a>x{ '' }y</a>/text())", "1"),
    # attributes
    ("<a b='x'/>", '<a b="x"/>'),
    ("<a b='{ 1, 2 }'/>", '<a b="1 2"/>'),
    ("<a b='{ 1 }{ 2 }-{ () }'/>", '<a b="12-"/>'),
    ("<a b='{ <c>x</c> }'/>", '<a b="x"/>'),
    ("<a b='&quot;&lt;&amp;'/>", '<a b="&quot;&lt;&amp;"/>'),
    ("<a b='&#10;'/>", '<a b="&#xA;"/>'),
    ("<a>{ <b c='1'/>/@c }</a>", '<a c="1"/>'),
    ("<a x='1'>{ <b c='1'/>/@c, 't' }</a>", '<a x="1" c="1">t</a>'),
    ("<a xml:lang='en'/>", '<a xml:lang="en"/>'),
    # namespaces
    ("<a xmlns='u'><b/></a>", '<a xmlns="u"><b/></a>'),
    ("<a xmlns='u'><b xmlns=''/></a>", '<a xmlns="u"><b xmlns=""/></a>'),
    ("<p:a xmlns:p='u'><p:b p:c=''/></p:a>", '<p:a xmlns:p="u"><p:b p:c=""/></p:a>'),
    ("declare namespace p = 'u'; <p:a/>", '<p:a xmlns:p="u"/>'),
    ("declare namespace p = 'u'; <a p:b='1'/>", '<a xmlns:p="u" p:b="1"/>'),
    ("declare default element namespace 'u'; <a b=''/>", '<a xmlns="u" b=""/>'),
    ("<a xmlns='u'>{ <b/> }</a>", '<a xmlns="u"><b/></a>'),
    ("let $b := <b/> return <a xmlns='u'>{ $b }</a>", '<a xmlns="u"><b xmlns=""/></a>'),
    ("<p:a xmlns:p='u'>{ <p:b xmlns:p='v'/> }</p:a>", '<p:a xmlns:p="u"><p:b xmlns:p="v"/></p:a>'),
    ("<a xmlns:s='urn:anabranch:stream' xmlns:p='u'><b>{ <c/> }</b></a>", '<a xmlns:p="u"><b><c/></b></a>'),
    ("<local:a/>", '<local:a xmlns:local="http://www.w3.org/2005/xquery-local-functions"/>'),
    # sequences as an answer
    ("1, 2, <a/>, 3, 'x'", "1 2<a/>3 x"),
    ("'a<b'", "a&lt;b"),
    ("(<a/>, <b/>)", "<a/><b/>"),
    ("()", ""),
)


@pytest.mark.parametrize(("query", "answer"), CONTENT)
def test_constructors(query: str, answer: str) -> None:
    """Values become text with spaces between them, nodes are copied, and names keep their namespaces."""
    assert value(query) == answer


COPIES = (
    ("<o>{ stream('s')/r/i }</o>", '<o><i id="1" k="2"><a>1</a><!-- c -->&lt;x&gt;t</i></o>'),
    ("<o>{ stream('s')/r/i/@* }</o>", '<o id="1" k="2"/>'),
    ("<o>{ stream('s')/r/i/node() }</o>", "<o><a>1</a><!-- c -->&lt;x&gt;t</o>"),
    ("<o>{ stream('s')/r/i/text(), 1 }</o>", "<o>&lt;x&gt;t1</o>"),
    ("<o n='{ stream('s')/r/i/@id }{ stream('s')/r/i/@k }'/>", '<o n="12"/>'),
    ("for $i in stream('s')/r/i return <o>{ $i/a }{ $i/a }</o>", "<o><a>1</a><a>1</a></o>"),
    (
        "for $i in stream('s')/r/i let $o := <o>{ $i/a }</o> return ($o/a, count($o/a/..), $i/a/../@id = 1)",
        "<a>1</a>1 true",
    ),
    ("<o>{ doc('s') }</o>", '<o><r><i id="1" k="2"><a>1</a><!-- c -->&lt;x&gt;t</i></r></o>'),
)


@pytest.mark.parametrize(("query", "answer"), COPIES)
def test_nodes_are_copied_as_they_are(query: str, answer: str) -> None:
    """Comments and attributes come along, CDATA is text; the original stays where it is."""
    assert ask(query, {"s": ITEM}).text == answer


def test_copied_text_keeps_its_spelling() -> None:
    """A number from an item is copied as it was written, a computed one is a double (LAWS 2.1)."""
    query = "for $i in stream('s')/r/i return <o>{ $i/a, string($i/a), $i/a + 0, max($i/a) }</o>"
    assert ask(query, {"s": "<r><i><a> 1.30</a></i></r>"}).text == "<o><a> 1.30</a> 1.30 1.3 1.3</o>"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("<a>{ 1, <b c=''/>/@c }</a>", "XQTY0024"),
        ("<a>x{ <b c=''/>/@c }</a>", "XQTY0024"),
        ("<a c='1'>{ <b c=''/>/@c }</a>", "XQDY0025"),
        ("<a>{ <b c=''/>/@c, <b c=''/>/@c }</a>", "XQDY0025"),
        ("<b c=''/>/@c", "SENR0001"),
    ],
)
def test_attributes_in_the_wrong_place(query: str, code: str) -> None:
    """An attribute comes before other content, once, and inside an element."""
    with pytest.raises(DynamicError) as caught:
        value(query)
    assert caught.value.code == code
