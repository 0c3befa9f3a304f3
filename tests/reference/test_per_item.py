from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import papers
from anabranch.errors import DynamicError, StreamError, Unsupported
from anabranch.language import check, parse
from anabranch.reference import Input, evaluate, text_input
from anabranch.reference.calls import PythonFunction
from anabranch.reference.per_item import ItemQuery, per_item
from anabranch.stream.photons import photons
from anabranch.stream.tree import Element
from reference.asking import leaves, stream

FUNCTIONS: dict[str, PythonFunction] = {"twice": lambda x: x * 2}
ITEMS = (
    "<r><i id='1'><a>1</a><b>x</b></i><i id='2'><a>2</a><a>3</a></i><i/><i id='4'><a>nan</a>t<!-- c --></i>"
    "<i id='5'><a>5</a><c><a>9</a></c></i></r>"
)


def bare_root(given: Input) -> Element:
    """The stream's root element without its items, as an engine that reads item by item has it."""
    root = Element(given.root.name, given.root.namespaces)
    for attribute in given.root.attributes:
        root.set(attribute.name, attribute.value)
    return root


def item_query(query: str) -> ItemQuery:
    checked = check(parse(query), query, functions=tuple(FUNCTIONS))
    return per_item(checked.query, FUNCTIONS, query)


def item_by_item(query: str, document: str) -> str:
    """The answer, put together from the pieces of single items; those that fail give nothing."""
    asked = item_query(query)
    given = text_input(document, name=asked.stream)
    pieces: list[str] = []
    for arrival in given.arrivals:
        try:
            pieces.append(asked.answer(bare_root(given), arrival.item))
        except DynamicError:
            continue
    return asked.opening + "".join(pieces) + asked.closing if any(pieces) else asked.empty


def whole(query: str, document: str) -> str:
    checked = check(parse(query), query, functions=tuple(FUNCTIONS))
    name = checked.streams[0]
    return evaluate(checked.query, {name: text_input(document, name=name)}, functions=FUNCTIONS).text


SUPPORTED = (
    "for $p in stream('s')/r/i return $p",
    "for $p in stream('s')/r/i where $p/a > 1 return $p/a",
    "for $p in stream('s')/r/i where $p/a > 100 return $p/a",
    "<o>{ for $p in stream('s')/r/i where $p/a > 1 return $p/a }</o>",
    "<o>{ for $p in stream('s')/r/i where $p/a > 100 return $p/a }</o>",
    "<o x='1'>before<b/>{ for $p in stream('s')/r/i return <e n='{ $p/@id }'>{ $p/a }</e> }after</o>",
    "<o>{ 1 }{ for $p in stream('s')/r/i return $p/a/text() }{ 2 }</o>",
    "1, for $p in stream('s')/r/i return $p/b, 2",
    "(<x/>, stream('s')/r/i/a, <y/>)",
    "<o><p><q>{ stream('s')/r/i[@id > 1]/a }</q></p></o>",
    "stream('s')/r/i[a = 2]",
    "stream('s')//a",
    "stream('s')//c/a/..",
    "for $p in stream('s')/r/i return if ($p/a > 1) then <hi/> else $p/a",
    "for $p in stream('s')/r/i return if ($p/a > 1) then $p else ()",
    "for $p in stream('s')/r/i return ($p/a, $p/b, <x>{ count($p/*) }</x>)",
    "for $p in stream('s')/r/i for $a in $p/a return <x>{ $a }</x>",
    "for $p in stream('s')/r/i let $a := $p/a where count($a) > 1 return $a",
    "for $p in stream('s')/r/i let $x := <x>{ $p/@id }</x> return ($x, $p/a)",
    "for $p in stream('s')/r/i return for $a in $p/a return <x>{ $a }</x>",
    "for $p in stream('s')/r/i return <x>{ for $a in $p/a order by $a descending return $a }</x>",
    "for $p in stream('s')/r/i where some $a in $p/a satisfies $a > 2 return $p/@id/..",
    "for $p in stream('s')/r/i return <x>{ $p/a + 1 }</x>",
    "for $p in stream('s')/r/i return <x>{ sum($p/a) }</x>",
    "for $p in stream('s')/r/i return <x>{ twice($p/a) }</x>",
    "<o n='{ twice(2) }'>{ for $p in stream('s')/r/i return $p/b }</o>",
    "let $n := 2 for $p in stream('s')/r/i where $p/a >= $n return <x>{ $n }</x>",
    "for $p in stream('s')/r/i return $p/node()",
    "for $p in stream('s')/r/i[a][not(b)] return $p/a[. > 2]",
    "declare function local:f($x) { $x * 2 }; for $p in stream('s')/r/i return <x>{ local:f($p/a) }</x>",
    "<hole>hole { for $p in stream('s')/r/i return <hole/> }</hole>",
    "<o xmlns='u'>{ for $p in stream('s')/*:r/*:i return ($p, <n/>) }</o>",
    "<p:o xmlns:p='u' xmlns='v'>{ for $p in stream('s')/*:r/*:i return (<p:x/>, <x/>, $p/*) }</p:o>",
    "declare default element namespace 'u'; for $p in stream('s')/*:r/*:i return <x>{ $p }</x>",
    "declare default element namespace 'u'; <o>{ for $p in stream('s')/*:r/*:i return <x>{ $p }</x> }</o>",
    "declare namespace p = 'u'; <p:o>{ for $p in stream('s')/r/i return <p:x p:y='1'/> }</p:o>",
)


@pytest.mark.parametrize("query", SUPPORTED)
def test_pieces_make_the_whole_answer(query: str) -> None:
    """Law: opening, pieces and closing are to the byte what evaluating the query whole gives."""
    assert item_by_item(query, ITEMS) == whole(query, ITEMS)


@pytest.mark.parametrize("query", SUPPORTED)
def test_a_stream_without_items_answers_too(query: str) -> None:
    """Where no item adds a piece, `empty` is the answer."""
    assert item_query(query).empty == whole(query, "<r/>")


SPACED = "<r xmlns='u' xmlns:p='v' k='1'><i p:k='1'><p:a>1</p:a><a>2</a></i><i/></r>"


@pytest.mark.parametrize(
    "query",
    [
        "stream('s')/*/*",
        "<o>{ stream('s')/*/* }</o>",
        "<o xmlns='u'>{ for $i in stream('s')/r/i return $i/a }</o>",
        "<o xmlns='w'>{ for $i in stream('s')/*:r/*:i return $i }</o>",
        "<p:o xmlns:p='v'>{ stream('s')//p:a }</p:o>",
        "<p:o xmlns:p='w'>{ stream('s')//*:a }</p:o>",
        "declare default element namespace 'u'; stream('s')/r/i/a",
    ],
)
def test_namespaces_around_the_pieces(query: str) -> None:
    """A piece declares what it needs and what its surroundings do not, exactly as in the whole."""
    assert item_by_item(query, SPACED) == whole(query, SPACED)


@pytest.mark.parametrize("query", [papers.Q3, papers.Q4])
def test_the_papers_selections(query: str) -> None:
    """q3 and q4 of the sharing paper over made-up photons."""
    document = f"<photons>{''.join(photons(300, seed=7))}</photons>"
    answer = whole(query, document)
    assert answer.count("<en>") > 10
    assert item_by_item(query, document) == answer


# --- generated queries ------------------------------------------------------------------------------------

PATHS = st.sampled_from(("a", "b", "c/a", "*", "@id", ".//a", "a[. > 1]", "a/text()", "a/..", "x"))
NODES = PATHS.filter(lambda path: path != "@id")
NUMBERS = st.sampled_from(("0", "1", "2.0", "1e0", "'x'"))
CONDITIONS = st.recursive(
    st.builds("$p/{} {} {}".format, PATHS, st.sampled_from(("=", "!=", "<", ">=")), NUMBERS)
    | st.builds("exists($p/{})".format, PATHS),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(("and", "or")), inner)
        | st.builds("not({})".format, inner)
    ),
    max_leaves=4,
)
RESULTS = st.recursive(
    st.builds("$p/{}".format, NODES),
    lambda inner: st.one_of(
        st.builds("<e>{{ {} }}</e>".format, inner),
        st.builds("<e k='{{ $p/{} }}'>{{ count($p/{}) }}</e>".format, PATHS, PATHS),
        st.builds("({}, {})".format, inner, inner),
        st.builds("(if ({}) then {} else {})".format, CONDITIONS, inner, inner),
        st.builds("(for $q in $p/{} return <q>{{ $q }}</q>)".format, NODES),
    ),
    max_leaves=4,
)
LEAVES = st.sampled_from(("<a>1</a>", "<a>2.0</a>", "<a>x</a>", "<b>y</b>", "<c><a>3</a></c>", "t", "<a/>"))
STREAMS = st.lists(st.lists(LEAVES, max_size=4).map("".join), max_size=5).map(lambda items: stream(*items))


@settings(max_examples=150, deadline=None)
@given(CONDITIONS, RESULTS, st.sampled_from(("{}", "<o>{{ {} }}</o>", "<o>x{{ {} }}<z/></o>")), STREAMS)
def test_generated_selections_and_projections(where: str, result: str, frame: str, document: str) -> None:
    """Law: any selection and projection answers item by item what it answers whole."""
    query = frame.format(f"for $p in stream('s')/r/i where {where} return {result}")
    assert item_by_item(query, document) == whole(query, document)


# --- what has another shape -------------------------------------------------------------------------------

UNSUPPORTED = (
    ("1 + 1", "a query that reads no stream"),
    ("<o/>", "a query that reads no stream"),
    ("doc('d')/r", "doc()"),
    ("<o>{ doc('d')/r }{ stream('s')/r/i }</o>", "doc()"),
    ("for $p in stream('s')/r/i where $p/a = doc('d')/r/a return $p", "doc()"),
    ("for $w in stream('s')/r/i|count 2| return <n>{ count($w) }</n>", "a window"),
    ("for $w in stream('s')/r/i|t diff 2| return <n>{ count($w) }</n>", "a window"),
    ("for $x in stream('s')/r/i|count 2|, $y in stream('t')/r/i|count 2| return <p/>", "a join of several streams"),
    ("for $p in stream('s')/r/i order by $p/a return $p", "'order by' over a stream"),
    ("count(stream('s')/r/i)", "'count()' over a whole stream"),
    ("<o>{ avg(stream('s')/r/i/a) }</o>", "'avg()' over a whole stream"),
    ("<o n='{ stream('s')/r/i/a }'/>", "a stream inside an attribute"),
    ("<o>{ stream('s')/r/i }{ stream('s')/r/i }</o>", "reading streams in several places of a query"),
    ("stream('s')/r/i, stream('t')/r/i", "reading streams in several places of a query"),
    ("let $s := stream('s')/r/i return $s", "a 'let' that holds a whole stream"),
    ("let $n := count(stream('s')/r/i) for $p in stream('s')/r/i return $p", "a clause like this before"),
    ("for $n in (1, 2) for $p in stream('s')/r/i return $p", "a clause like this before"),
    ("if (stream('s')/r/i/a) then <x/> else <y/>", "a stream inside this expression"),
    ("some $p in stream('s')/r/i satisfies $p/a", "a stream inside this expression"),
    ("stream('s')", "a stream without a path"),
    ("for $p in stream('s')/r/i return string($p/a)", "a result that is no element"),
    ("for $p in stream('s')/r/i return $p/@id", "a result that is no element"),
    ("for $p in stream('s')/r/i return $p/@id/.", "a result that is no element"),
    ("for $p in stream('s')/r/i return ($p/a, 1)", "a result that is no element"),
    ("for $p in stream('s')/r/i return if ($p/a) then $p else 'x'", "a result that is no element"),
    ("for $p in stream('s')/r/i let $n := count($p/a) return $n", "a result that is no element"),
    ("for $p in stream('s')/r/i for $n in (1, 2) return $n", "a result that is no element"),
    ("for $p in stream('s')/r/i let $n := $p/@id return $n", "a result that is no element"),
    ("for $p in stream('s')/r/i return twice($p/a)", "a result that is no element"),
    (
        "declare function local:f($x) { <f>{ $x }</f> }; for $p in stream('s')/r/i return local:f($p)",
        "a result that is no element",
    ),
    ("declare function local:s() { stream('s')/r/i }; for $p in local:s() return $p", "a stream that is not named by"),
    (
        "declare function local:n() { count(stream('s')/r/i) }; let $n := local:n() "
        "for $p in stream('s')/r/i return <x>{ $n }</x>",
        "a clause like this before",
    ),
    ("for $p in stream('s')/r/i return $p/a#1", "earlier versions"),
)


@pytest.mark.parametrize(("query", "construct"), UNSUPPORTED)
def test_other_shapes_are_refused_by_name(query: str, construct: str) -> None:
    """The message names the construct, and the place is in the query's own text."""
    with pytest.raises(Unsupported) as caught:
        item_query(query)
    assert caught.value.message.startswith(construct)
    assert caught.value.text == query
    assert 0 <= caught.value.span.start < caught.value.span.end <= len(query)
    assert caught.value.hint


@pytest.mark.parametrize("query", ["stream('s')/r", "stream('s')/r[i/a > 1]/i", "stream('s')//*"])
def test_what_looks_at_the_root_fails_loudly(query: str) -> None:
    """A query that needs the whole stream is never answered from one item."""
    with pytest.raises(StreamError) as caught:
        item_by_item(query, leaves("a", 1, 2))
    assert caught.value.message == "the query looks at the stream's root element, which has no end"


def test_an_item_that_fails_raises_to_the_caller() -> None:
    """What the law sets aside is the caller's to set aside."""
    asked = item_query("for $p in stream('s')/r/i return <x>{ $p/a + 1 }</x>")
    given = text_input(leaves("a", "y"), name="s")
    with pytest.raises(DynamicError) as caught:
        asked.answer(bare_root(given), given.arrivals[0].item)
    assert caught.value.code == "FORG0001"


def test_the_parts_of_an_item_query() -> None:
    """The stream's name, and what stands around the pieces."""
    asked = item_query("<o k='1'><b/>{ stream('s')/r/i }x</o>")
    assert (asked.stream, asked.opening, asked.closing, asked.empty) == (
        "s",
        '<o k="1"><b/>',
        "x</o>",
        '<o k="1"><b/>x</o>',
    )
