from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import papers
from anabranch.errors import DynamicError, StreamError
from anabranch.language import check, parse
from anabranch.law import Input, evaluate, text_input
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Standing, standing
from anabranch.runtime.units import NOTHING, AnswerPiece, Candidates, Units
from anabranch.stream.elements import Item
from anabranch.stream.path import TimeScale
from anabranch.stream.photons import photons
from anabranch.stream.tree import Element, string_value
from anabranch.values.sequences import Value, Values
from mass import examples
from reference.asking import leaves, stream

FUNCTIONS: dict[str, PythonFunction] = {"twice": lambda x: x * 2}
ITEMS = (
    "<r><i id='1'><a>1</a><b>x</b></i><i id='2'><a>2</a><a>3</a></i><i/><i id='4'><a>nan</a>t<!-- c --></i>"
    "<i id='5'><a>5</a><c><a>9</a></c></i></r>"
)


def joined(pieces: Iterable[AnswerPiece], after_value: bool = False) -> Iterator[str]:
    """The texts of pieces in a row, spaces between values included; `after_value`: a value stands before them."""
    for piece in pieces:
        yield f" {piece.text}" if after_value and piece.begins else piece.text
        if piece != NOTHING:
            after_value = piece.ends


def bare_root(given: Input) -> Element:
    """The stream's root element without its items, as an engine that reads item by item has it."""
    root = Element(given.root.name, given.root.namespaces)
    for attribute in given.root.attributes:
        root.set(attribute.name, attribute.value)
    return root


def taken_apart(query: str) -> Standing:
    return standing(check(parse(query), query, functions=tuple(FUNCTIONS)).query, FUNCTIONS, query)


def item_by_item(query: str, document: str) -> str:
    """The answer, put together from the pieces of single items; those that fail give nothing."""
    asked = taken_apart(query)
    assert asked.kind == "items"
    units = Units(asked, FUNCTIONS)
    given = text_input(document, name=asked.streams[0])
    pieces: list[AnswerPiece] = []
    for arrival in given.arrivals:
        try:
            pieces.append(units.item(bare_root(given), arrival.item))
        except DynamicError:
            continue
    text = "".join(joined(pieces))
    return asked.opening + text + asked.closing if text else asked.empty


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
    "for $p in stream('s')/r/i return string($p/a[1 = 1])",
    "for $p in stream('s')/r/i return string($p/b)",
    "<o>{ for $p in stream('s')/r/i return count($p/a) }</o>",
    "<o>{ 1 }{ for $p in stream('s')/r/i return count($p/a) }{ 2 }</o>",
    "<o>{ for $p in stream('s')/r/i where $p/a = 1 return '' }</o>",
    "<o>{ for $p in stream('s')/r/i where $p/a > 1 return '' }</o>",
    "for $p in stream('s')/r/i return ($p/a, 1)",
    "for $p in stream('s')/r/i return (1, $p/a)",
    "for $p in stream('s')/r/i return (1, $p/a, '', 2)",
    "for $p in stream('s')/r/i return if ($p/a) then $p/a else 'x'",
    "for $p in stream('s')/r/i for $a in $p/a return $a * 2",
    "for $p in stream('s')/r/i return twice($p/a)",
    "<o xmlns='u'>{ for $p in stream('s')/*:r/*:i return (1, <n/>, count($p/*), '') }</o>",
    "declare namespace p = 'u'; <p:o>{ for $p in stream('s')/r/i return <p:x p:y='1'/> }</p:o>",
)


@pytest.mark.parametrize("query", SUPPORTED)
def test_pieces_make_the_whole_answer(query: str) -> None:
    """Law: opening, pieces and closing are to the byte what evaluating the query whole gives."""
    assert item_by_item(query, ITEMS) == whole(query, ITEMS)


@pytest.mark.parametrize("query", SUPPORTED)
def test_a_stream_without_items_answers_too(query: str) -> None:
    """Where no item adds a piece, `empty` is the answer."""
    assert taken_apart(query).empty == whole(query, "<r/>")


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
VALUES = st.builds("count($p/{})".format, PATHS) | st.builds("string-join($p/{}, '')".format, PATHS)
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
    st.builds("$p/{}".format, NODES) | VALUES,
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


@examples(80)
@given(CONDITIONS, RESULTS, st.sampled_from(("{}", "<o>{{ {} }}</o>", "<o>x{{ {} }}<z/></o>")), STREAMS)
def test_generated_selections_and_projections(where: str, result: str, frame: str, document: str) -> None:
    """Law: any selection and projection answers item by item what it answers whole."""
    query = frame.format(f"for $p in stream('s')/r/i where {where} return {result}")
    assert item_by_item(query, document) == whole(query, document)


@pytest.mark.parametrize(
    "query",
    [
        "for $p in stream('s')/r/i return <o>{ $p//e/../../name() }</o>",
        "for $p in stream('s')//e/../.. return <o>{ name($p) }</o>",
        "for $p in stream('s')//e/ancestor::* return <o>{ name($p) }</o>",
        "for $p in stream('s')//i return <o>{ $p/..[1]/name() }</o>",
        "stream('s')//e[../../c]/..",
    ],
)
def test_steps_up_stay_inside_the_item(query: str) -> None:
    """LAWS 6, case 115: a step from an item upwards finds nothing, whole and item by item."""
    document = stream("<c><e/></c>", "<e/>", "<e><e/></e>")
    assert item_by_item(query, document) == whole(query, document)


# --- what cannot be told from one item --------------------------------------------------------------------


@pytest.mark.parametrize("query", ["stream('s')//*", "stream('s')//r[i]/i"])
def test_what_looks_at_the_root_fails_loudly(query: str) -> None:
    """A query that needs the whole stream is never answered from one item."""
    with pytest.raises(StreamError) as caught:
        item_by_item(query, leaves("a", 1, 2))
    assert caught.value.message == "the query looks at the stream's root element, which has no end"


def test_an_item_that_fails_raises_to_the_caller() -> None:
    """What the law sets aside is the caller's to set aside."""
    units = Units(taken_apart("for $p in stream('s')/r/i return <x>{ $p/a + 1 }</x>"))
    given = text_input(leaves("a", "y"), name="s")
    with pytest.raises(DynamicError) as caught:
        units.item(bare_root(given), given.arrivals[0].item)
    assert caught.value.code == "FORG0001"


def test_documents() -> None:
    """What a unit says may depend on documents."""
    query = "let $v := doc('d')/r/i/n for $p in stream('s')/r/i where $p/n = $v return $p"
    given, document = text_input(leaves("n", 1, 2), name="s"), text_input(leaves("n", 2, 3))
    units = Units(taken_apart(query), documents={"d": document})
    pieces = [units.item(bare_root(given), arrival.item) for arrival in given.arrivals]
    assert pieces == [NOTHING, AnswerPiece("<i><n>2</n></i>", begins=False, ends=False)]


# --- candidates -------------------------------------------------------------------------------------------


def candidates(query: str, item: str, clause: int = 0, origin: int = 0) -> Candidates:
    given = text_input(f"<r>{item}</r>", name="s")
    (arrival,) = given.arrivals
    return Units(taken_apart(query)).candidates(
        clause, bare_root(given), Item(arrival.item, arrival.place), TimeScale(origin=Fraction(origin))
    )


def shown(found: Candidates) -> list[tuple[str, bool, Fraction | None]]:
    nodes = ((each.node, each) for each in found.nodes)
    return [(string_value(node), each.selected, each.value) for node, each in nodes if isinstance(node, Element)]


def test_candidates_are_all_that_the_path_reaches() -> None:
    """Selected or not, each with its reference value, counted from the origin."""
    query = "for $w in stream('s')/r/i/n[@k]|@t diff 10| return <w/>"
    found = candidates(query, "<i><n t='5'>a</n><n t='7.5' k=''>b</n></i>", origin=2)
    assert shown(found) == [("a", False, Fraction(3)), ("b", True, Fraction(11, 2))]
    assert found.error is None


def test_a_candidate_without_reference_value_has_the_reason() -> None:
    """Whether that matters depends on its selection."""
    query = "for $w in stream('s')/r/i/n[@k]|@t diff 10| return <w/>"
    found = candidates(query, "<i><n>a</n><n t='x' k=''>b</n></i>")
    assert [each.value for each in found.nodes] == [None, None]
    assert [each.error and each.error.code for each in found.nodes] == ["XPTY0004", "FORG0001"]


def test_where_a_predicate_fails_nothing_is_selected() -> None:
    """The item is set aside, and still shows how far the stream is (LAWS 3.2)."""
    query = "for $w in stream('s')/r/i[n + 1 > 0]|t diff 10| return <w/>"
    found = candidates(query, "<i><t>4</t><n>x</n></i>")
    assert found.error is not None
    assert (found.error.code, shown(found)) == ("FORG0001", [("4x", False, Fraction(4))])


def test_a_predicate_may_fail_where_there_is_no_candidate() -> None:
    """It is reported all the same."""
    found = candidates("for $w in stream('s')/r/i[n + 1 > 0]/b|count 1| return <w/>", "<i><n>x</n></i>")
    assert (found.nodes, found.error is not None) == ((), True)


def test_candidates_of_each_clause() -> None:
    """A join asks for each of its clauses; absolute references are below the root that was given."""
    query = "let $n := 3 for $x in stream('s')/r/i[t > $n]|/r/i/t diff 1|, $y in stream('s')/r/j|count 1| return <p/>"
    assert shown(candidates(query, "<i><t>4</t></i>")) == [("4", True, Fraction(4))]
    assert shown(candidates(query, "<i><t>3</t></i>")) == [("3", False, Fraction(3))]
    assert shown(candidates(query, "<i><t>4</t></i>", clause=1)) == []
    assert shown(candidates(query, "<j>x</j>", clause=1)) == [("x", True, None)]


def test_candidates_beyond_the_item_fail_loudly() -> None:
    """A path that turns out to look at the root is not answered."""
    with pytest.raises(StreamError, match="looks at the stream's root"):
        candidates("for $w in stream('s')//*|count 1| return <w/>", "<i/>")


# --- windows and tuples -----------------------------------------------------------------------------------


def nodes_of(document: str, name: str = "s") -> list[Value]:
    return [arrival.item for arrival in text_input(document, name=name).arrivals]


def test_the_piece_of_a_window() -> None:
    """All clauses behind the window, its condition and its result."""
    query = "let $n := 2 for $w in stream('s')/r/i|count 2| let $s := sum($w/a) for $a in $w/a where $s > $n return $a"
    units = Units(taken_apart(query))
    assert units.window(nodes_of(leaves("a", 1, 2))) == AnswerPiece("<a>1</a><a>2</a>", begins=False, ends=False)
    assert units.window(nodes_of(leaves("a", 1, 1))) == NOTHING
    with pytest.raises(DynamicError) as caught:
        units.window(nodes_of(leaves("a", 1, "x")))
    assert caught.value.code == "FORG0001"


def test_values_that_are_known() -> None:
    """A variable may stand for what was computed elsewhere; it is asked for only where it is needed."""
    asked: list[str] = []

    def known(value: int) -> Callable[[], Values]:
        def give() -> Values:
            asked.append(str(value))
            if value < 0:
                raise DynamicError("no number", code="FORG0001")
            return [value]

        return give

    query = taken_apart("for $w in stream('s')/r/i|count 2| let $s := sum($w/a) where $s > 2 return <s>{ $s }</s>")
    hidden = parse("for $w in stream('s')/r/i|count 2| let $s := $hidden where $s > 2 return <s>{ $s }</s>")
    units = Units(replace(query, hole=hidden.body))
    assert units.window((), {"hidden": known(3)}).text == "<s>3</s>"
    assert units.window((), {"hidden": known(1)}) == NOTHING
    with pytest.raises(DynamicError):
        units.window((), {"hidden": known(-1)})
    assert asked == ["3", "1", "-1"]


def test_the_piece_of_a_tuple() -> None:
    """One node for each `for`, in their order."""
    query = (
        "<o>{ for $x in stream('s')/r/i|count 1|, $y in stream('t')/r/i|count 1| "
        "where $x/a < $y/a return ($x/a - $y/a, $y/a) }</o>"
    )
    units = Units(taken_apart(query))
    (x,), (y,) = nodes_of(leaves("a", 1)), nodes_of(leaves("a", 3))
    assert units.tuple([x, y]) == AnswerPiece("-2<a>3</a>", begins=True, ends=False)
    assert units.tuple([y, x]) == NOTHING


def test_a_window_cannot_look_beyond_its_items() -> None:
    """Where a path climbs out of its item at run time, there is nothing (LAWS 2.8)."""
    units = Units(taken_apart("for $w in stream('s')//a|count 1| return <o>{ $w/../name(), $w/../../name() }</o>"))
    nodes = [child for node in nodes_of(leaves("a", 1)) if isinstance(node, Element) for child in node.children]
    assert units.window(list[Value](nodes)).text == "<o>i</o>"


# --- pieces in a row --------------------------------------------------------------------------------------


def test_spaces_stand_between_values_only() -> None:
    """Nothing at all separates nothing; an empty text is a value."""
    value, node, empty = AnswerPiece("1", True, True), AnswerPiece("<a/>", False, False), AnswerPiece("", True, True)
    assert "".join(joined([value, value, node, value, NOTHING, value])) == "1 1<a/>1 1"
    assert "".join(joined([empty, empty])) == " "
    assert "".join(joined([value], after_value=True)) == " 1"
    assert "".join(joined([NOTHING, node, value], after_value=True)) == "<a/>1"
