from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch.errors import QueryError
from anabranch.language import ast, parse, print_query
from anabranch.language.printer import print_expression
from anabranch.language.rewrite import parts

# --- any well-formed query --------------------------------------------------------------------------------
# Names are mostly keywords, for no name is reserved; texts are mostly characters that mean something.

KEYWORDS = (
    *("for", "let", "where", "order", "by", "return", "if", "then", "else", "some", "every", "in", "satisfies"),
    *("and", "or", "div", "mod", "count", "step", "diff", "stream", "doc", "text", "node", "element", "descending"),
    *("declare", "import", "xquery", "function", "namespace", "stable", "map", "self", "at", "as", "group", "empty"),
)
names = st.sampled_from((*KEYWORDS, "a", "b-c", "d.e", "_f", "größe"))
prefixes = st.sampled_from(("p", "q", "for"))
qualified_names = names | st.builds("{}:{}".format, prefixes, names)
texts = st.text("ab \t\r\n<>&{}'\"[]()|#?-$/é😀", max_size=8)
numbers = st.builds(ast.Number, st.sampled_from(("0", "1", "007", "1.", ".5", "1.30", "1e0", "2.5E-3", "1e+9")))
functions = st.sampled_from(("avg", "local:f", "p:g", "not", "for", "return", "fn:count")).filter(lambda n: n != "for")


def tuples(of: st.SearchStrategy[Any], least: int = 0, most: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(of, min_size=least, max_size=most).map(tuple)


def unique(of: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[Any]:
    """A few pairs, or constructors, with different names."""
    key = lambda each: each.name if isinstance(each, ast.AttributeConstructor) else each[0]  # noqa: E731
    return st.lists(of, max_size=most, unique_by=key).map(tuple)


name_tests = st.builds(ast.NameTest, names | st.just("*")) | st.builds(ast.NameTest, names, prefixes | st.just("*"))
name_tests |= st.builds(ast.NameTest, st.just("*"), prefixes)
tests = name_tests | st.builds(ast.KindTest, st.sampled_from(("text", "node")))
axes = st.sampled_from(("child", "attribute", "parent", "self", "descendant", "descendant-or-self"))
qualifiers = st.builds(ast.Qualifier, st.sampled_from(("version", "time")), st.booleans(), numbers)
leaves = st.one_of(
    st.builds(ast.String, texts),
    numbers,
    st.builds(ast.Variable, names),
    st.builds(ast.ContextItem),
    st.builds(ast.Root),
    st.builds(ast.Source, st.sampled_from(("stream", "doc")), texts),
)
additive, multiplicative = st.sampled_from(("+", "-")), st.sampled_from(("*", "div", "mod"))
comparisons = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
comments = st.text("ab -<>&{}", max_size=6).filter(lambda text: "--" not in text and not text.endswith("-"))
characters = st.builds(ast.Characters, texts.filter(bool))


def tails(of: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    """Predicates, and at most one qualifier."""
    found = tuples(st.builds(ast.Predicate, of) | qualifiers, least, 2)
    return found.filter(lambda tail: sum(isinstance(each, ast.Qualifier) for each in tail) < 2)


def paths(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    steps = st.builds(ast.Step, axes, tests, tails(of), st.booleans())
    found = st.builds(ast.Path, st.none() | of.filter(lambda e: not isinstance(e, ast.Path)), tuples(steps, 1))
    return found.filter(lambda path: path.start is not None or not path.steps[0].deep)  # `//a` starts at the root


def separated(content: tuple[Any, ...]) -> bool:
    """Literal texts that touch would be one."""
    kinds = [isinstance(each, ast.Characters) for each in content]
    return not any(a and b for a, b in zip(kinds, kinds[1:], strict=False))


def constructors(of: st.SearchStrategy[Any], content: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    values = tuples(characters | st.builds(ast.Enclosed, of)).filter(separated)
    attributes = unique(st.builds(ast.AttributeConstructor, qualified_names, values))
    namespaces = unique(st.tuples(st.just(""), texts) | st.tuples(prefixes, texts.filter(bool)))
    inside = tuples(content | characters | st.builds(ast.Enclosed, of) | st.builds(ast.CommentConstructor, comments))
    return st.builds(ast.ElementConstructor, qualified_names, attributes, namespaces, inside.filter(separated))


def windows(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    steps = tuples(st.builds(ast.Step, axes, tests, tails(of), st.booleans()), 1)
    references = st.builds(ast.Path, st.none() | st.builds(ast.Root) | st.builds(ast.ContextItem), steps)
    references = references.filter(lambda path: path.start is not None or not path.steps[0].deep)
    step = st.none() | numbers
    return st.builds(ast.CountWindow, numbers, step) | st.builds(ast.TimeWindow, references, numbers, step)


def larger(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Every construct, with `of` inside."""
    operands = tuples(of, 2)
    clauses = st.builds(ast.For, names, of, st.none() | windows(of)) | st.builds(ast.Let, names, of)
    elements = constructors(of, st.nothing())
    return st.one_of(
        st.builds(ast.Sequence, tuples(of).filter(lambda items: len(items) != 1)),
        st.builds(ast.Call, functions, tuples(of)),
        st.builds(ast.Filter, of, tails(of, 1)),
        paths(of),
        st.builds(ast.Arithmetic, of, tuples(st.tuples(additive, of), 1)),
        st.builds(ast.Arithmetic, of, tuples(st.tuples(multiplicative, of), 1)),
        st.builds(ast.Negation, of),
        st.builds(ast.Comparison, comparisons, of, of),
        st.builds(ast.And, operands),
        st.builds(ast.Or, operands),
        st.builds(ast.If, of, of, of),
        st.builds(ast.Quantified, st.sampled_from(("some", "every")), tuples(st.tuples(names, of), 1), of),
        st.builds(ast.Flwor, tuples(clauses, 1), st.none() | of, tuples(st.builds(ast.OrderKey, of, st.booleans())), of),
        constructors(of, elements),
    )


expressions = st.recursive(leaves, larger, max_leaves=6)
declared = st.builds(ast.Function, st.builds("{}:{}".format, prefixes, names), unique(st.tuples(names)), expressions)
declared = declared.map(lambda f: ast.Function(f.name, tuple(each[0] for each in f.parameters), f.body))
queries = st.builds(
    ast.Query, expressions, unique(st.tuples(st.just("") | prefixes, texts)), st.lists(declared, max_size=2).map(tuple)
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(queries)
def test_what_is_printed_is_read_back(query: ast.Query) -> None:
    """Law: printing any well-formed query and parsing it gives the same query."""
    assert parse(print_query(query)) == query


@pytest.mark.parametrize(
    "kind", [each for each in vars(ast).values() if isinstance(each, type) and each.__module__ == ast.__name__]
)
def test_the_law_covers_every_construct(kind: type) -> None:
    """The generated queries hold every class of the tree, so none escapes the law."""

    @settings(max_examples=2_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(queries)
    def seek(query: ast.Query) -> None:
        if any(isinstance(part, kind) for part in parts(query)):
            raise _Found

    with pytest.raises(_Found):
        seek()


class _Found(Exception):
    pass


PRINTED = (
    # parentheses only where the grammar needs them
    ("((1 + 2)) * 3", "(1 + 2) * 3"),
    ("1 + (2 * 3)", "1 + 2 * 3"),
    ("1 + (2 + 3)", "1 + (2 + 3)"),
    ("(a and b) or c", "a and b or c"),
    ("a and (b or c)", "a and (b or c)"),
    ("(a = b) = c", "(a = b) = c"),
    ("-(1)", "-1"),
    ("- - 1", "--1"),
    ("+1", "--1"),
    ("(a/b)/c", "(a/b)/c"),
    ("(a/b)[c]", "(a/b)[c]"),
    ("($x)[a]/b", "$x[a]/b"),
    ("(for $x in a return $x), 1", "(for $x in a return $x, 1)"),
    ("1 + (if (a) then 1 else 2)", "1 + (if (a) then 1 else 2)"),
    ("(/)", "(/)"),
    ("/ = 1", "(/) = 1"),
    # one spelling of each thing
    ("child::a/attribute::b/parent::node()/self::node()", "a/@b/../self::node()"),
    ("a/./b", "a/self::node()/b"),
    ("a ≤ b", "a <= b"),
    ("'it''s \"x\"'", '"it\'s ""x"""'),
    ("for $a in b, $c in d return 1", "for $a in b for $c in d return 1"),
    ("for $w in a |count  2 step 1 | return 1", "for $w in a|count 2 step 1| return 1"),
    ("for $w in a|/r/t diff 0.10| return 1", "for $w in a|/r/t diff 0.10| return 1"),
    ("for $x in a order by b ascending, c descending return d", "for $x in a order by b, c descending return d"),
    ("<a > <b/> </a >", "<a><b/></a>"),
    ("<a>&#32;{ 1 }</a>", "<a>&#32;{ 1 }</a>"),
    ("<a>{{x}}&lt;&#13;</a>", "<a>{{x}}&lt;&#xD;</a>"),
    ("<a b='{1}\"{{'/>", '<a b="{ 1 }&quot;{{"/>'),
    ("<a><![CDATA[<&]]></a>", "<a>&lt;&amp;</a>"),
    ("declare default element namespace 'u'; a", 'declare default element namespace "u";\na'),
    ("declare function p:f($a,$b){$a}; 1", "declare function p:f($a, $b) { $a };\n1"),
)


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_printing_is_plain(text: str, printed: str) -> None:
    """A query is printed in one way, whatever way it was written."""
    assert print_query(parse(text)) == printed


def test_an_expression_is_printed_alone() -> None:
    """One expression of a query can be printed by itself."""
    query = parse("for $p in stream('s')/r/i where $p/a > 1 return $p")
    assert isinstance(query.body, ast.Flwor)
    assert query.body.where is not None
    assert print_expression(query.body.where) == "$p/a > 1"


def test_a_printed_query_shows_in_errors() -> None:
    """Where no text is given, an error about a query shows the printed one."""
    from anabranch.language import check

    with pytest.raises(QueryError) as caught:
        check(parse("1 + ($x)"))
    assert "1 + $x" in str(caught.value)
