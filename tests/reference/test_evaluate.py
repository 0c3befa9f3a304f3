from __future__ import annotations

import pytest

from anabranch.errors import DynamicError, UsageError
from anabranch.language import check, parse
from anabranch.law import document_input, evaluate, text_input
from anabranch.stream.reading.parse import parse_document
from reference.asking import ask, error, leaves, stream, value

# --- rounds and their errors (LAWS 2.4) -------------------------------------------------------------------


def test_an_error_sets_one_item_aside() -> None:
    """Nothing comes out for that item; the dead letter has code, reason, place, text and subscription."""
    document = leaves("n", 1, "x", 3)
    answer = ask("for $p in stream('s')/r/i where $p/n + 1 > 0 return $p/n", {"s": document})
    assert answer.text == "<n>1</n><n>3</n>"
    (letter,) = answer.dead
    assert (letter.code, letter.reason, letter.subscription) == ("FORG0001", "'x' is no number", "q")
    assert (letter.place.stream, letter.place.offset) == ("s", document.index("<i><n>x"))
    assert letter.raw == "<i><n>x</n></i>"


def test_an_error_in_a_predicate_sets_one_item_aside() -> None:
    """A path over a stream is taken item by item."""
    answer = ask("stream('s')/r/i[n > 1]/n", {"s": leaves("n", 1, "x", 3)})
    assert (answer.text, [letter.code for letter in answer.dead]) == ("<n>3</n>", ["FORG0001"])


def test_an_error_in_the_result_takes_the_whole_item() -> None:
    """An item answers with all or nothing."""
    query = "for $p in stream('s')/r/i return (<a/>, <b>{ 1 div $p/n }</b>, for $x in $p/n return 1 div ($x - 1))"
    answer = ask(query, {"s": leaves("n", 2, "x")})
    assert (answer.text, len(answer.dead)) == ("<a/><b>0.5</b>1", 1)


def test_several_nodes_of_one_item_stand_or_fall_together() -> None:
    """A loop over parts of items loses all parts of an item where one fails."""
    document = stream("<n>1</n><n>x</n>", "<n>2</n>")
    answer = ask("for $n in stream('s')/r/i/n return <o>{ $n + 1 }</o>", {"s": document})
    assert (answer.text, len(answer.dead)) == ("<o>3</o>", 1)


def test_an_error_outside_of_all_rounds_is_the_querys() -> None:
    """Where no item is to blame, the error comes out."""
    assert error("<a>{ 1 div 0 }</a>") == "FOAR0001"
    with pytest.raises(DynamicError) as caught:
        ask("sum(stream('s')/r/i/n)", {"s": leaves("n", "x")})
    assert caught.value.code == "FORG0001"


def test_conditions_choose_without_touching_the_rest() -> None:
    """The branch that is not taken is not evaluated."""
    query = "for $p in stream('s')/r/i return if ($p/n = 'x') then <bad/> else <n>{ $p/n + 1 }</n>"
    answer = ask(query, {"s": leaves("n", "x", 1)})
    assert (answer.text, answer.dead) == ("<bad/><n>2</n>", [])


# --- FLWR -------------------------------------------------------------------------------------------------

LOOPS = (
    ("for $x in (1, 2), $y in (3, 4) return $x * $y", "3 4 6 8"),
    ("for $x in (1, 2) let $y := $x * 2 where $y > 2 return $y", "4"),
    ("let $x := (1, 2) return count($x)", "2"),
    ("for $x in () return 1", ""),
    ("for $x in (3, 1, 2) order by $x return $x", "1 2 3"),
    ("for $x in (3, 1, 2) order by $x descending return $x", "3 2 1"),
    ("for $x in (1, 2), $y in (1, 2) order by $y, $x descending return $x * 10 + $y", "21 11 22 12"),
    ("for $x in (2, 1) return for $y in (2, 1) order by $y return $x * 10 + $y", "21 22 11 12"),
    ("for $x in (<a>b</a>, <a>10</a>, <a>9</a>, <a/>) order by $x return string($x)", "9 10  b"),
    ("for $x in (<a><k>2</k></a>, <a/>, <a><k>1</k></a>) order by $x/k return count($x/k)", "0 1 1"),
    ("for $x in (1, 2) return for $x in (3, 4) return $x", "3 4 3 4"),
    ("let $x := 1 let $x := $x + 1 return $x", "2"),
    ("some $x in (1, 2) satisfies $x = 2", "true"),
    ("every $x in (1, 2) satisfies $x = 2", "false"),
    ("some $x in () satisfies 1 = 1", "false"),
    ("every $x in () satisfies 1 = 2", "true"),
    ("some $x in (1, 2), $y in (2, 3) satisfies $x = $y", "true"),
    ("if (()) then 1 else 2", "2"),
    ("(1, (2, 3), ())", "1 2 3"),
    ("(for $x in (<a/>, <b/>) return $x)/self::b", "<b/>"),
    ("(<a><b>1</b></a>, <a><b>2</b></a>)[b = 2]", "<a><b>2</b></a>"),
    ("count((<a>2</a>, 1)[. = 1])", "1"),
)


@pytest.mark.parametrize(("query", "answer"), LOOPS)
def test_loops_bind_filter_order_and_return(query: str, answer: str) -> None:
    """FLWR expressions, quantifiers and conditionals mean what they mean in XQuery."""
    assert value(query) == answer


def test_a_stable_order_of_items() -> None:
    """Equal keys keep the order of the stream, also from the largest down."""
    document = stream("<k>1</k><n>a</n>", "<k>2</k><n>b</n>", "<k>1.0</k><n>c</n>")
    query = "for $p in stream('s')/r/i order by $p/k {} return $p/n"
    assert ask(query.format(""), {"s": document}).text == "<n>a</n><n>c</n><n>b</n>"
    assert ask(query.format("descending"), {"s": document}).text == "<n>b</n><n>a</n><n>c</n>"


# --- paths ------------------------------------------------------------------------------------------------

TREE = "<r v='0'><i id='1'><a>1</a><b><a>2</a></b></i><i id='2'><a>3</a>t<!-- c --><![CDATA[<d>]]></i></r>"
PATHS = (
    ("stream('s')/r/i/a", "<a>1</a><a>3</a>"),
    ("stream('s')//a", "<a>1</a><a>2</a><a>3</a>"),
    ("stream('s')/r/i//a", "<a>1</a><a>2</a><a>3</a>"),
    ("stream('s')/r/i/*", "<a>1</a><b><a>2</a></b><a>3</a>"),
    ("stream('s')/r/i/*/a", "<a>2</a>"),
    ("stream('s')/r/i/descendant::a", "<a>1</a><a>2</a><a>3</a>"),
    ("stream('s')/r/i/b/descendant-or-self::*", "<b><a>2</a></b><a>2</a>"),
    ("stream('s')/r/i/self::i/a", "<a>1</a><a>3</a>"),
    ("stream('s')/r/i/self::j", ""),
    ("stream('s')/r/i/./a", "<a>1</a><a>3</a>"),
    ("stream('s')/r/i/b/a/..", "<b><a>2</a></b>"),
    ("stream('s')/r/i/b/a/parent::b/a", "<a>2</a>"),
    ("stream('s')/r/i/b/a/parent::c", ""),
    ("data(stream('s')/r/i/@id)", "1 2"),
    ("data(stream('s')/r/i/@*)", "1 2"),
    ("count(stream('s')/r/i/@id/a)", "0"),
    ("stream('s')/r/i/text()", "t&lt;d&gt;"),
    ("count(stream('s')/r/i[@id = 2]/node())", "4"),
    ("string(stream('s')/r/i[@id = 2])", "3t&lt;d&gt;"),
    ("stream('s')/r/i[@id = 2]/comment", ""),
    ("stream('s')/r/i[b]/@id/..//a", "<a>1</a><a>2</a>"),
    ("stream('s')/r/i[b/a = 2]/a", "<a>1</a>"),
    ("stream('s')/r/i[a][@id = '2']/a", "<a>3</a>"),
    ("stream('s')/r/i[not(b)]/a", "<a>3</a>"),
    ("stream('s')/r/i/a[. > 1]", "<a>3</a>"),
    ("stream('s')/r/i/a[../b]", "<a>1</a>"),
    ("(stream('s')/r/i)/a", "<a>1</a><a>3</a>"),
    ("(stream('s')/r/i/b, stream('s')/r/i/a)/self::a", "<a>1</a><a>3</a>"),
    ("stream('s')/r/j", ""),
    ("for $p in stream('s')/r/i return $p/a[. = $p/@id]", "<a>1</a>"),
)


@pytest.mark.parametrize(("query", "answer"), PATHS)
def test_paths_over_a_stream(query: str, answer: str) -> None:
    """Axes, tests and predicates mean what they mean in XQuery, in document order and without duplicates."""
    assert ask(query, {"s": TREE}).text == answer


@pytest.mark.parametrize(("query", "answer"), PATHS)
def test_paths_over_a_document(query: str, answer: str) -> None:
    """A finite document answers paths like a stream does."""
    document = document_input(parse_document(TREE.encode()))
    assert ask(query.replace("stream(", "doc("), {"s": document}).text == answer


WHOLE = (
    ("stream('s')/r[i/a > 2]/i/a", "<a>1</a><a>3</a>"),
    ("stream('s')/r[i/a > 3]/i/a", ""),
    ("stream('s')/r[@v = 0]/i/a", "<a>1</a><a>3</a>"),
    ("count(stream('s')/r)", "1"),
    ("data(stream('s')/r/@v)", "0"),
    ("stream('s')/*[@v = 1]/i", ""),
    ("count(stream('s')//*)", "7"),
    ("count(stream('s'))", "1"),
    ("string(stream('s'))", "123t&lt;d&gt;"),
    ("let $r := stream('s')/r return count($r/i)", "2"),
    ("let $i := stream('s')/r/i return ($i/a, count($i))", "<a>1</a><a>3</a>2"),
    ("let $i := stream('s')/r/i for $p in $i where $p/b return $p/a", "<a>1</a>"),
    ("for $r in stream('s')/r return count($r/i)", "2"),
    ("avg(stream('s')/r/i/a)", "2"),
    ("<o>{ stream('s')/r/i/a }{ count(stream('s')/r/i) }</o>", "<o><a>1</a><a>3</a>2</o>"),
    ("some $p in stream('s')/r/i satisfies $p/b", "true"),
    ("if (stream('s')/r/i/b) then <yes/> else <no/>", "<yes/>"),
)


@pytest.mark.parametrize(("query", "answer"), WHOLE)
def test_what_looks_at_the_whole_stream(query: str, answer: str) -> None:
    """A condition on the root, a `let`, or an aggregate sees all items at once."""
    answered = ask(query, {"s": TREE})
    assert (answered.text, answered.dead) == (answer, [])


def test_the_context_item_is_the_one_input() -> None:
    """With one input, `.` and `/` are it."""
    for query in ("./r/i/a", "/r/i/a", "r/i/a", "//i/a"):
        assert ask(query, {"s": TREE}).text == "<a>1</a><a>3</a>"


# --- inputs -----------------------------------------------------------------------------------------------


def test_documents_beside_a_stream() -> None:
    """A document can be looked up for every item, and its order is its own."""
    names = document_input(parse_document(b"<names><n id='2'>two</n><n id='1'>one</n></names>"))
    query = "for $p in stream('s')/r/i return <o>{ data(doc('d')/names/n[@id = $p/n]) }</o>"
    assert ask(query, {"s": leaves("n", 1, 2, 3), "d": names}).text == "<o>one</o><o>two</o><o/>"


def test_a_loop_over_a_document_inside_the_stream() -> None:
    """For each item all of the document, in order."""
    document = document_input(parse_document(b"<d><k>a</k><k>b</k></d>"))
    query = "for $p in stream('s')/r/i for $k in doc('d')/d/k return concat($p/n, $k)"
    assert ask(query, {"s": leaves("n", 1, 2), "d": document}).text == "1a 1b 2a 2b"


def test_several_streams_in_sequence() -> None:
    """A sequence of streams is the first, then the second."""
    query = "for $p in (stream('a')/r/i, stream('b')/r/i) return $p/n"
    assert ask(query, {"a": leaves("n", 1, 2), "b": leaves("n", 3)}).text == "<n>1</n><n>2</n><n>3</n>"


def test_an_input_that_is_not_given_is_an_error() -> None:
    """A query that was checked without inputs may still name one that is not there."""
    with pytest.raises(UsageError) as caught:
        evaluate(check(parse("stream('s')/r")).query, {"t": text_input("<r/>", name="t")})
    assert (caught.value.message, caught.value.hint) == ("no input is called 's'", "the inputs given are: 't'")


# --- functions --------------------------------------------------------------------------------------------


def test_declared_functions() -> None:
    """A function sees its parameters and nothing else; it may call others and take nodes."""
    query = """
        declare function local:twice($x) { $x * 2 };
        declare function local:four($x) { local:twice(local:twice($x)) };
        declare function local:named($p, $name) { <o>{ $p/n, $name, local:four($p/n) }</o> };
        for $p in stream('s')/r/i return local:named($p, 'x')
    """
    assert ask(query, {"s": leaves("n", 1, 2)}).text == "<o><n>1</n>x 4</o><o><n>2</n>x 8</o>"


def test_a_declared_function_may_read_a_stream() -> None:
    """What it gives flows on like the stream itself, so that an error concerns one item."""
    query = "declare function local:all() { stream('s')/r/i }; for $p in local:all() return <o>{ $p/n + 1 }</o>"
    answer = ask(query, {"s": leaves("n", 1, "x", 3)})
    assert (answer.text, len(answer.dead)) == ("<o>2</o><o>4</o>", 1)


def test_registered_functions_get_plain_python_values() -> None:
    """Numbers in text arrive as floats, other text as str, nothing as None, several as a list."""
    seen: list[object] = []

    def note(*arguments: object) -> int:
        seen.extend(arguments)
        return len(arguments)

    query = "note(<a>1.5</a>, <a>x</a>, (), (<a>1</a>, 'y'), 7, 'z', 1 = 1)"
    assert ask(query, functions={"note": note}).text == "7"
    assert seen == [1.5, "x", None, [1.0, "y"], 7, "z", True]


RESULTS = ((None, ""), (1, "1"), (1.5, "1.5"), (True, "true"), ("x", "x"), ([1, "a", None, [2.0]], "1 a 2"), ((), ""))


@pytest.mark.parametrize(("result", "answer"), RESULTS)
def test_registered_functions_give_plain_python_values(result: object, answer: str) -> None:
    """Numbers, text, booleans, lists of them, and None come back as values."""
    assert ask("give()", functions={"give": lambda: result}).text == answer


@pytest.mark.parametrize(
    ("function", "code", "reason"),
    [
        (lambda n: 1 / (n - 1), "FOER0000", "function 'f' failed: ZeroDivisionError: float division by zero"),
        (lambda n: {} if n == 1 else 1, "XPTY0004", "function 'f' gave a dict, not a number, text or list of them"),
        (lambda: 1, "FOER0000", None),
    ],
)
def test_a_registered_function_that_fails_sets_one_item_aside(function: object, code: str, reason: str | None) -> None:
    """Whatever it raises or returns wrongly concerns this item only."""
    query = "for $p in stream('s')/r/i return <o>{ f($p/n) }</o>"
    answer = ask(query, {"s": leaves("n", 1, 2)}, functions={"f": function})  # type: ignore[dict-item]
    assert answer.dead[0].code == code
    assert reason is None or answer.dead[0].reason == reason
    assert len(answer.dead) + answer.text.count("<o>") == 2


# --- namespaces -------------------------------------------------------------------------------------------

SPACED = "<r xmlns='u' xmlns:p='v'><i p:k='1'><p:a>1</p:a><a>2</a></i></r>"
NAMESPACES = (
    ("stream('s')/r/i", ""),
    ("count(stream('s')/*:r/*:i)", "1"),
    ("declare default element namespace 'u'; data(stream('s')/r/i/a)", "2"),
    ("declare namespace x = 'v'; data(stream('s')//x:a)", "1"),
    ("declare namespace x = 'v'; data(stream('s')//*/@x:k)", "1"),
    ("declare namespace x = 'u'; data(stream('s')/x:r/x:i/*:a)", "1 2"),
    ("declare namespace x = 'v'; count(stream('s')//x:*)", "1"),
    ("declare default element namespace 'u'; count(stream('s')/r/i/@k)", "0"),
    ("<o xmlns='u'>{ data(stream('s')/r/i/a) }</o>", '<o xmlns="u">2</o>'),
    ("<x:o xmlns:x='v'>{ data(stream('s')//x:a) }</x:o>", '<x:o xmlns:x="v">1</x:o>'),
    ("stream('s')/*/*/*:a", '<p:a xmlns:p="v" xmlns="u">1</p:a><a xmlns="u" xmlns:p="v">2</a>'),
)


@pytest.mark.parametrize(("query", "answer"), NAMESPACES)
def test_names_have_namespaces(query: str, answer: str) -> None:
    """Prefixes are what the query declares, whatever the stream calls them; attributes have no default."""
    found = ask(query, {"s": SPACED}).text
    if "xmlns:p" in answer:  # which declaration comes first says nothing
        assert sorted(found.replace(">", " >").split()) == sorted(answer.replace(">", " >").split())
    else:
        assert found == answer


def test_attributes_named_xml() -> None:
    """The prefix xml needs no declaration."""
    assert ask("data(stream('s')/r/i[@xml:lang = 'en']/@xml:lang)", {"s": "<r><i xml:lang='en'/><i/></r>"}).text == "en"
