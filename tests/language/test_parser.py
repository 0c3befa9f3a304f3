from __future__ import annotations

import pytest

import papers
from anabranch.errors import QueryError
from anabranch.language import ast, parse, print_query
from anabranch.language.ast import (
    And,
    Arithmetic,
    AttributeConstructor,
    Call,
    Characters,
    CommentConstructor,
    Comparison,
    ContextItem,
    CountWindow,
    ElementConstructor,
    Enclosed,
    Expression,
    Filter,
    Flwor,
    For,
    Function,
    If,
    KindTest,
    Let,
    NameTest,
    Negation,
    Number,
    Or,
    OrderKey,
    Path,
    Predicate,
    Qualifier,
    Quantified,
    Query,
    Root,
    Sequence,
    Source,
    Step,
    String,
    TimeWindow,
    Variable,
)


def child(name: str, *tail: Predicate | Qualifier, deep: bool = False) -> Step:
    """A step to child elements."""
    return Step("child", NameTest(name), tail, deep)


def below(start: Expression | None, *names: str) -> Path:
    """A path of plain names."""
    return Path(start, tuple(map(child, names)))


def name(text: str) -> Path:
    return below(None, text)


A, B, C, D = map(name, "abcd")
ONE, TWO, THREE = map(Number, "123")
S, X, P = Source("stream", "s"), Variable("x"), Variable("p")


# --- the papers -------------------------------------------------------------------------------------------


def interval(start: Expression | None, low: str, high: str, *names: str) -> tuple[Comparison, Comparison]:
    """`path >= low` and `path <= high`, the numbers perhaps negative."""
    path = below(start, *names)
    bounds = [Negation(Number(each[1:])) if each.startswith("-") else Number(each) for each in (low, high)]
    return Comparison(">=", path, bounds[0]), Comparison("<=", path, bounds[1])


def vela(start: Expression | None) -> tuple[Comparison, ...]:
    ra = interval(start, "120.0", "138.0", "coord", "cel", "ra")
    return *ra, *interval(start, "-49.0", "-40.0", "coord", "cel", "dec")


PHOTONS = Source("stream", "photons")
AVERAGE = ElementConstructor("avg_en", content=(Enclosed(Variable("a")),))


def test_q1_of_the_sharing_paper() -> None:
    """A time window with preselection, an aggregate, and a filter on it."""
    window = TimeWindow(name("det_time"), Number("60"), Number("40"))
    source = Path(PHOTONS, (child("photons"), child("photon", Predicate(And(vela(None))))))
    loop = Flwor(
        (For("w", source, window), Let("a", Call("avg", (below(Variable("w"), "en"),)))),
        Comparison(">=", Variable("a"), Number("1.3")),
        (),
        AVERAGE,
    )
    assert parse(papers.Q1) == Query(ElementConstructor("photons", content=(Enclosed(loop),)))


def test_q4_of_the_sharing_paper() -> None:
    """A selection and a projection."""
    paths = (("coord", "cel", "ra"), ("coord", "cel", "dec"), ("phc",), ("en",), ("det_time",))
    result = ElementConstructor("vela", content=tuple(Enclosed(below(P, *each)) for each in paths))
    loop = Flwor((For("p", below(PHOTONS, "photons", "photon")),), And(vela(P)), (), result)
    assert parse(papers.Q4) == Query(ElementConstructor("photons", content=(Enclosed(loop),)))


def test_q5_of_the_sharing_paper() -> None:
    """A join of two windows with a condition on both."""
    y = Variable("y")
    clauses = tuple(
        For(variable, below(Source("stream", stream), "photons", "photon"), TimeWindow(name("det_time"), *sizes))
        for variable, stream, sizes in (
            ("x", "photon1", (Number("10"), Number("5"))),
            ("y", "photon2", (Number("20"), Number("10"))),
        )
    )
    condition = Comparison(">=", below(X, "en"), Arithmetic(below(y, "en"), (("+", Number("0.5")),)))
    parts = tuple(Enclosed(below(side, leaf)) for side in (X, y) for leaf in ("en", "phc"))
    loop = Flwor(clauses, condition, (), ElementConstructor("result", content=parts))
    assert parse(papers.Q5) == Query(ElementConstructor("photons", content=(Enclosed(loop),)))


def test_query_2_of_the_history_paper() -> None:
    """An earlier version of a value in a condition and in an order."""
    q = Variable("q")
    quote, before = below(q, "quote"), Path(q, (child("quote", Qualifier("version", False, ONE)),))
    change = Arithmetic(Arithmetic(quote, (("-", before),)), (("div", quote),))
    assert parse(papers.TICKERS) == Query(
        Flwor(
            (For("q", Path(Source("stream", "tickers"), (child("ticker", deep=True),))),),
            Comparison(">=", quote, Arithmetic(before, (("*", Number("1.1")),))),
            (OrderKey(change),),
            ElementConstructor("quote", content=(Enclosed(Sequence((below(q, "name"), quote))),)),
        )
    )


def test_query_5_of_the_history_paper() -> None:
    """Time windows behind predicates, calls of registered functions, and a computed attribute."""
    query = parse(papers.TRAFFIC)
    assert isinstance(query.body, Flwor)
    ambulance = Predicate(Comparison("=", name("type"), String("ambulance")))
    assert query.body.clauses[0] == For(
        "v",
        Path(Source("stream", "vehicle"), (child("event", ambulance, Qualifier("time", True, ONE), deep=True),)),
    )
    assert isinstance(query.body.result, ElementConstructor)
    assert query.body.result.attributes == (AttributeConstructor("id", (Enclosed(below(Variable("t"), "id")),)),)


@pytest.mark.parametrize(
    "text",
    [*papers.SHARING.values(), papers.INTERVAL_JOIN, *papers.HISTORY.values(), papers.SNAPSHOT, *papers.TEMPORAL],
)
def test_queries_of_the_papers_round_trip(text: str) -> None:
    """Every example query of the papers parses, and printing loses nothing."""
    query = parse(text)
    assert parse(print_query(query)) == query


# --- one construct each -----------------------------------------------------------------------------------

TREES: tuple[tuple[str, Expression], ...] = (
    # numbers and strings
    ("1", Number("1")),
    ("1.", Number("1.")),
    (".5", Number(".5")),
    ("1.30", Number("1.30")),
    ("1e0", Number("1e0")),
    ("1.5E-3", Number("1.5E-3")),
    ("1e+2", Number("1e+2")),
    ("'a'", String("a")),
    ("''", String("")),
    ("'it''s'", String("it's")),
    ('"""x"""', String('"x"')),
    ('"it\'s"', String("it's")),
    ("'&lt;&amp;&gt;&quot;&apos;'", String("<&>\"'")),
    ("'&#65;&#x42;&#x1F600;'", String("AB😀")),
    ("'a\r\nb\rc'", String("a\nb\nc")),
    ("'&#13;'", String("\r")),
    ("'(: no comment :)'", String("(: no comment :)")),
    # comments and white space
    ("(: a :) 1 (: b :)", ONE),
    ("(: (: nested :) 'unclosed :) 1", ONE),
    ("1(::)+(::)2", Arithmetic(ONE, (("+", TWO),))),
    ("a(:x:)/(:y:)b", below(None, "a", "b")),
    ("\r\n\t1", ONE),
    # keywords are names where they cannot be keywords
    ("for", name("for")),
    ("if", name("if")),
    ("return/for/if", below(None, "return", "for", "if")),
    ("$for", Variable("for")),
    ("stream", name("stream")),
    ("count", name("count")),
    ("text", name("text")),
    ("some = every", Comparison("=", name("some"), name("every"))),
    ("and and and", And((name("and"), name("and")))),
    ("or or or", Or((name("or"), name("or")))),
    ("div div div", Arithmetic(name("div"), (("div", name("div")),))),
    ("declare div 2", Arithmetic(name("declare"), (("div", TWO),))),
    ("for $for in for return return", Flwor((For("for", name("for")),), None, (), name("return"))),
    (
        "for $x in in where where order by order return for",
        Flwor((For("x", name("in")),), name("where"), (OrderKey(name("order")),), name("for")),
    ),
    ("if (if) then then else else", If(name("if"), name("then"), name("else"))),
    ("count(count)", Call("count", (name("count"),))),
    ("a-b", name("a-b")),
    ("a -b", Arithmetic(A, (("-", B),))),
    ("a.b", name("a.b")),
    # precedence
    ("1 + 2 * 3", Arithmetic(ONE, (("+", Arithmetic(TWO, (("*", THREE),))),))),
    ("1 - 2 - 3", Arithmetic(ONE, (("-", TWO), ("-", THREE)))),
    ("1 - (2 - 3)", Arithmetic(ONE, (("-", Arithmetic(TWO, (("-", THREE),))),))),
    ("1 div 2 mod 3", Arithmetic(ONE, (("div", TWO), ("mod", THREE)))),
    ("-1 + 2", Arithmetic(Negation(ONE), (("+", TWO),))),
    ("-a * b", Arithmetic(Negation(A), (("*", B),))),
    ("--1", Negation(Negation(ONE))),
    ("+1", Negation(Negation(ONE))),
    ("a or b and c", Or((A, And((B, C))))),
    ("(a or b) and c", And((Or((A, B)), C))),
    ("a = b and c < d", And((Comparison("=", A, B), Comparison("<", C, D)))),
    ("a + 1 >= b", Comparison(">=", Arithmetic(A, (("+", ONE),)), B)),
    ("a and b and c", And((A, B, C))),
    ("(a and b) and c", And((And((A, B)), C))),
    ("a ≤ b", Comparison("<=", A, B)),
    ("a ≥ b", Comparison(">=", A, B)),
    ("a ≠ b", Comparison("!=", A, B)),
    ("a <b", Comparison("<", A, B)),
    ("if (a) then b else c or d", If(A, B, Or((C, D)))),
    ("if ($x) then 1 else 2", If(X, ONE, TWO)),
    # sequences
    ("()", Sequence(())),
    ("(a)", A),
    ("a, b", Sequence((A, B))),
    ("((a, b), c)", Sequence((Sequence((A, B)), C))),
    # paths
    ("a/b/c", below(None, "a", "b", "c")),
    ("a//b", Path(None, (child("a"), child("b", deep=True)))),
    ("/", Root()),
    ("/a", below(Root(), "a")),
    ("//a", Path(Root(), (child("a", deep=True),))),
    (".", ContextItem()),
    ("./a", below(ContextItem(), "a")),
    ("..", Path(None, (Step("parent", KindTest("node")),))),
    ("../a", Path(None, (Step("parent", KindTest("node")), child("a")))),
    ("a/.", Path(None, (child("a"), Step("self", KindTest("node"))))),
    ("@id", Path(None, (Step("attribute", NameTest("id")),))),
    ("a/@*", Path(None, (child("a"), Step("attribute", NameTest("*"))))),
    ("*", name("*")),
    ("* * *", Arithmetic(name("*"), (("*", name("*")),))),
    ("p:a", Path(None, (Step("child", NameTest("a", "p")),))),
    ("p:*", Path(None, (Step("child", NameTest("*", "p")),))),
    ("*:a", Path(None, (Step("child", NameTest("a", "*")),))),
    ("text()", Path(None, (Step("child", KindTest("text")),))),
    ("a/node()", Path(None, (child("a"), Step("child", KindTest("node"))))),
    ("child::a", A),
    ("attribute::a", Path(None, (Step("attribute", NameTest("a")),))),
    ("parent::a", Path(None, (Step("parent", NameTest("a")),))),
    ("self::a", Path(None, (Step("self", NameTest("a")),))),
    ("descendant::a", Path(None, (Step("descendant", NameTest("a")),))),
    ("descendant-or-self::a", Path(None, (Step("descendant-or-self", NameTest("a")),))),
    ("a[b]", Path(None, (child("a", Predicate(B)),))),
    ("a[b][c]", Path(None, (child("a", Predicate(B), Predicate(C)),))),
    ("a[b[c]]", Path(None, (child("a", Predicate(Path(None, (child("b", Predicate(C)),)))),))),
    ("$x[a]", Filter(X, (Predicate(A),))),
    ("$x[a]/b", below(Filter(X, (Predicate(A),)), "b")),
    ("(a/b)/c", below(below(None, "a", "b"), "c")),
    ("f(a)/b", below(Call("f", (A,)), "b")),
    ("stream('s')/a", below(S, "a")),
    ("doc('s')", Source("doc", "s")),
    ("local:f()", Call("local:f", ())),
    ("f(a, (b, c))", Call("f", (A, Sequence((B, C))))),
    # time
    ("a#1", Path(None, (child("a", Qualifier("version", False, ONE)),))),
    ("a?2", Path(None, (child("a", Qualifier("time", False, TWO)),))),
    ("a#[1]", Path(None, (child("a", Qualifier("version", True, ONE)),))),
    ("a?[0.5]", Path(None, (child("a", Qualifier("time", True, Number("0.5"))),))),
    ("a[b]?1", Path(None, (child("a", Predicate(B), Qualifier("time", False, ONE)),))),
    ("a?1[b]", Path(None, (child("a", Qualifier("time", False, ONE), Predicate(B)),))),
    ("a#1/b?2", Path(None, (child("a", Qualifier("version", False, ONE)), child("b", Qualifier("time", False, TWO))))),
    ("(a, b)?1", Filter(Sequence((A, B)), (Qualifier("time", False, ONE),))),
    ("$x#1", Filter(X, (Qualifier("version", False, ONE),))),
    # FLWR
    ("for $x in a return b", Flwor((For("x", A),), None, (), B)),
    ("for $x in a, $p in b return c", Flwor((For("x", A), For("p", B)), None, (), C)),
    ("for $x in a for $p in b return c", Flwor((For("x", A), For("p", B)), None, (), C)),
    ("let $x := a, $p := b return c", Flwor((Let("x", A), Let("p", B)), None, (), C)),
    ("for $x in a let $p := b where c return d", Flwor((For("x", A), Let("p", B)), C, (), D)),
    ("for $x in a stable order by b return c", Flwor((For("x", A),), None, (OrderKey(B),), C)),
    (
        "for $x in a order by b descending, c ascending return d",
        Flwor((For("x", A),), None, (OrderKey(B, True), OrderKey(C)), D),
    ),
    ("for $x in a|count 2| return b", Flwor((For("x", A, CountWindow(TWO)),), None, (), B)),
    ("for $x in a |count 2 step 1| return b", Flwor((For("x", A, CountWindow(TWO, ONE)),), None, (), B)),
    ("for $x in a|b diff 2| return c", Flwor((For("x", A, TimeWindow(B, TWO)),), None, (), C)),
    (
        "for $x in a|b/c diff 2 step 1| return d",
        Flwor((For("x", A, TimeWindow(below(None, "b", "c"), TWO, ONE)),), None, (), D),
    ),
    (
        "for $x in a|/b/c diff .5| return d",
        Flwor((For("x", A, TimeWindow(below(Root(), "b", "c"), Number(".5"))),), None, (), D),
    ),
    (
        "for $x in a|@t diff 1| return b",
        Flwor((For("x", A, TimeWindow(Path(None, (Step("attribute", NameTest("t")),)), ONE)),), None, (), B),
    ),
    ("for $x in a|count diff 1| return b", Flwor((For("x", A, TimeWindow(name("count"), ONE)),), None, (), B)),
    ("some $x in a satisfies b", Quantified("some", (("x", A),), B)),
    ("every $x in a, $p in b satisfies c", Quantified("every", (("x", A), ("p", B)), C)),
    # constructors
    ("<a/>", ElementConstructor("a")),
    ("<a></a>", ElementConstructor("a")),
    ("<p:a/>", ElementConstructor("p:a")),
    ("<a>\n  <b/>\n  { c }\n</a>", ElementConstructor("a", content=(ElementConstructor("b"), Enclosed(C)))),
    ("<a> x </a>", ElementConstructor("a", content=(Characters(" x "),))),
    ("<a>x { b } y</a>", ElementConstructor("a", content=(Characters("x "), Enclosed(B), Characters(" y")))),
    ("<a>&#32;</a>", ElementConstructor("a", content=(Characters(" "),))),
    ("<a><![CDATA[ ]]></a>", ElementConstructor("a", content=(Characters(" "),))),
    ("<a><![CDATA[<b>{]]></a>", ElementConstructor("a", content=(Characters("<b>{"),))),
    ("<a>{{}}</a>", ElementConstructor("a", content=(Characters("{}"),))),
    ("<a>{}</a>", ElementConstructor("a", content=(Enclosed(Sequence(())),))),
    ("<a>{ 1, 2 }</a>", ElementConstructor("a", content=(Enclosed(Sequence((ONE, TWO))),))),
    ("<a>\"'(: x :)</a>", ElementConstructor("a", content=(Characters("\"'(: x :)"),))),
    ("<a><!-- {b} --></a>", ElementConstructor("a", content=(CommentConstructor(" {b} "),))),
    ("<a>x\r\ny</a>", ElementConstructor("a", content=(Characters("x\ny"),))),
    ("<a b='c'/>", ElementConstructor("a", (AttributeConstructor("b", (Characters("c"),)),))),
    ("<a b=''/>", ElementConstructor("a", (AttributeConstructor("b", ()),))),
    (
        '<a b="{c}" d = "x{1}y"/>',
        ElementConstructor(
            "a",
            (
                AttributeConstructor("b", (Enclosed(C),)),
                AttributeConstructor("d", (Characters("x"), Enclosed(ONE), Characters("y"))),
            ),
        ),
    ),
    ("<a b='it''s {{\"'/>", ElementConstructor("a", (AttributeConstructor("b", (Characters("it's {\""),)),))),
    ('<a b="{ "x" }"/>', ElementConstructor("a", (AttributeConstructor("b", (Enclosed(String("x")),)),))),
    ("<a b='x\n\ty&#10;'/>", ElementConstructor("a", (AttributeConstructor("b", (Characters("x  y\n"),)),))),
    ("<a xmlns='u' xmlns:p='v'/>", ElementConstructor("a", namespaces=(("", "u"), ("p", "v")))),
    ("<a/> = <b/>", Comparison("=", ElementConstructor("a"), ElementConstructor("b"))),
    (
        "<a>{ <b>{ 1 }</b> }</a>",
        ElementConstructor("a", content=(Enclosed(ElementConstructor("b", content=(Enclosed(ONE),))),)),
    ),
)


@pytest.mark.parametrize(("text", "tree"), TREES, ids=[text for text, _ in TREES])
def test_a_construct_has_its_tree(text: str, tree: Expression) -> None:
    """The text means exactly this tree, and printing it loses nothing."""
    query = parse(text)
    assert query == Query(tree)
    assert parse(print_query(query)) == query


PROLOGS: tuple[tuple[str, Query], ...] = (
    ("xquery version '3.1'; 1", Query(ONE)),
    ("xquery version '3.1' encoding 'utf-8'; 1", Query(ONE)),
    ("declare namespace p = 'u'; p:a", Query(Path(None, (Step("child", NameTest("a", "p")),)), (("p", "u"),))),
    ("declare default element namespace 'u'; a", Query(A, (("", "u"),))),
    ("declare function local:f() { 1 }; a", Query(A, (), (Function("local:f", (), ONE),))),
    (
        "declare namespace p = 'u'; (: two :) declare function p:f($x, $p) { $x, $p }; 1",
        Query(ONE, (("p", "u"),), (Function("p:f", ("x", "p"), Sequence((X, P))),)),
    ),
)


@pytest.mark.parametrize(("text", "query"), PROLOGS, ids=[text for text, _ in PROLOGS])
def test_a_prolog_is_read(text: str, query: Query) -> None:
    """Version, namespaces and functions stand before the body."""
    assert parse(text) == query


def test_spans_point_into_the_text() -> None:
    """Every part of a tree knows the text that it came from."""
    text = "for $p in stream('s')/r/i[a > 1]|count 2| return <o>{ $p/b }</o>"
    query = parse(text)
    flwor = query.body
    assert isinstance(flwor, Flwor)
    clause = flwor.clauses[0]
    assert isinstance(clause, For)
    assert isinstance(clause.source, Path)
    assert clause.window is not None
    shown = [
        text[part.span.start : part.span.end]
        for part in (flwor, clause, clause.source, clause.source.steps[1], clause.window, flwor.result)
    ]
    assert shown == [
        text,
        "$p in stream('s')/r/i[a > 1]|count 2|",
        "stream('s')/r/i[a > 1]",
        "i[a > 1]",
        "|count 2|",
        "<o>{ $p/b }</o>",
    ]


def test_spans_do_not_count() -> None:
    """Two queries that say the same are equal, wherever they say it."""
    assert parse("a+1") == parse("  a  +  1 (: one :)")
    assert parse("a+1") != parse("a+2")


def test_errors_carry_the_name_of_the_query() -> None:
    """A query read from a file shows the file's name in its errors."""
    with pytest.raises(QueryError) as caught:
        parse("1 +", name="q.xq")
    assert str(caught.value).startswith("q.xq:1:4: expected an expression")


def test_the_tree_is_frozen() -> None:
    """Nobody can change a tree that others hold."""
    with pytest.raises(AttributeError):
        parse("1").body.text = "2"  # type: ignore[misc, union-attr]
    assert isinstance(hash(parse("<a>{ 1 }</a>")), int)
    assert ast.Number("1").span == ast.NOWHERE
