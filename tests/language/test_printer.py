from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from anabranch.errors import QueryError
from anabranch.language import ast, check, parse, print_query
from anabranch.language.clauses import expression_of
from anabranch.language.operators import INFIX, TYPE_OPERATORS
from anabranch.language.parsing.operators import CAUGHT
from anabranch.language.positions import with_positions
from anabranch.language.printer import print_expression
from anabranch.language.rewrite import parts
from mass import examples, is_fast

T = TypeVar("T")

NAMES = (
    *("for", "let", "where", "order", "by", "return", "if", "then", "else", "some", "every", "in", "satisfies"),
    *("and", "or", "div", "mod", "count", "step", "diff", "stream", "doc", "text", "node", "element", "descending"),
    *("declare", "import", "xquery", "function", "namespace", "stable", "map", "self", "at", "as", "group", "empty"),
    *("a", "b-c", "d.e", "_f", "größe"),
)
"""Mostly keywords, for no name is reserved."""
PREFIXES = ("p", "q", "for")
NUMBERS = ("0", "1", "007", "1.", ".5", "1.30", "1e0", "2.5E-3", "1e+9")
CHARACTERS = "ab \t\r\n<>&{}'\"[]()|#?-$/é😀"
"""Mostly what means something elsewhere in a query."""
AXES = get_args(ast.Axis)
TYPES = ("xs:integer?", "element(a)*", "empty-sequence()", "document-node(element(a))", "item()+", "function(*)")
FEW = st.integers(0, 3)
FUEL = 25


class Maker:
    """Makes any well-formed query; the fuel bounds its size."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.fuel = FUEL

    # --- choices ------------------------------------------------------------------------------------------

    def pick(self, *options: T) -> T:
        chosen: T = self.draw(st.sampled_from(options))
        return chosen

    def several(self, make: Callable[[], T], least: int = 0) -> tuple[T, ...]:
        return tuple(make() for _ in range(max(least, self.draw(FEW))))

    def perhaps(self, make: Callable[[], T]) -> T | None:
        return make() if self.draw(st.booleans()) else None

    def named(self, make: Callable[[str], T], name: Callable[[], str]) -> tuple[T, ...]:
        """A few things with different names."""
        return tuple(make(each) for each in dict.fromkeys(self.several(name)))

    def name(self) -> str:
        return self.pick(*NAMES)

    def prefix(self) -> str:
        return self.pick(*PREFIXES)

    def prefixed(self) -> str:
        return f"{self.prefix()}:{self.name()}"

    def tag(self) -> str:
        return self.pick(self.name, self.prefixed)()

    def text(self) -> str:
        text: str = self.draw(st.text(CHARACTERS, max_size=6))
        return text

    def number(self) -> ast.Number:
        return ast.Number(self.pick(*NUMBERS))

    # --- expressions --------------------------------------------------------------------------------------

    def expression(self) -> ast.Expression:
        leaves = (self.string, self.number, self.variable, ast.ContextItem, ast.Root, self.source)
        inner = (
            self.sequence,
            self.call,
            self.filter,
            self.path,
            self.arithmetic,
            self.negation,
            self.cast,
            self.comparison,
            self.operator,
            self.typed,
            self.attempt,
            self.inline_function,
            self.dynamic_call,
            self.computed,
        )
        loose = (self.conjunction, self.disjunction, self.condition, self.quantified, self.loop, self.element)
        self.fuel -= 1
        choices: tuple[Callable[[], ast.Expression], ...] = leaves if self.fuel < 0 else (*leaves, *inner, *loose)
        return self.pick(*choices)()

    def string(self) -> ast.String:
        return ast.String(self.text())

    def variable(self) -> ast.Variable:
        return ast.Variable(self.name())

    def source(self) -> ast.Source:
        return ast.Source(self.pick("stream", "doc"), self.text())

    def sequence(self) -> ast.Sequence:
        items = self.several(self.expression)
        return ast.Sequence(items if len(items) != 1 else ())

    def call(self) -> ast.Call:
        return ast.Call(self.pick("avg", "not", "return", "fn:count", "local:f"), self.several(self.expression))

    def operator(self) -> ast.Call:
        return ast.Call(self.pick(*INFIX), (self.expression(), self.expression()))

    def typed(self) -> ast.Call:
        return ast.Call(self.pick(*TYPE_OPERATORS), (self.expression(), ast.String(self.pick(*TYPES))))

    def attempt(self) -> ast.Call:
        catches = (ast.String(self.pick("*", "err:FOAR0001 err:*")), ast.InlineFunction(CAUGHT, self.expression()))
        return ast.Call("op:try", (ast.InlineFunction((), self.expression()), *catches))

    def inline_function(self) -> ast.InlineFunction:
        return ast.InlineFunction(self.named(str, self.name), self.expression())

    def dynamic_call(self) -> ast.Call:
        return ast.Call("op:call", (self.expression(), *self.several(self.expression)))

    def computed(self) -> ast.Call:
        if self.pick(True, False):
            return ast.Call(self.pick("op:text", "op:comment", "op:document"), (self.expression(),))
        return ast.Call(self.pick("op:attribute", "op:processing-instruction"), (self.expression(), self.expression()))

    def filter(self) -> ast.Filter:
        return ast.Filter(self.expression(), (self.predicate(), *self.tail()))

    def arithmetic(self) -> ast.Arithmetic:
        operators = self.pick(("+", "-"), ("*", "div", "mod"))
        rest = self.several(lambda: (self.pick(*operators), self.expression()), 1)
        return ast.Arithmetic(self.expression(), rest)  # type: ignore[arg-type]  # the operators are those there are

    def negation(self) -> ast.Negation:
        return ast.Negation(self.expression())

    def cast(self) -> ast.Cast:
        name = self.pick("xs:date", "xs:integer", "xs:yearMonthDuration")
        return ast.Cast(self.pick("cast", "castable"), self.expression(), name, self.pick(True, False))

    def comparison(self) -> ast.Comparison:
        return ast.Comparison(self.pick("=", "!=", "<", "<=", ">", ">="), self.expression(), self.expression())

    def conjunction(self) -> ast.And:
        return ast.And(self.several(self.expression, 2))

    def disjunction(self) -> ast.Or:
        return ast.Or(self.several(self.expression, 2))

    def condition(self) -> ast.If:
        return ast.If(self.expression(), self.expression(), self.expression())

    def quantified(self) -> ast.Quantified:
        bindings = self.several(lambda: (self.name(), self.expression()), 1)
        return ast.Quantified(self.pick("some", "every"), bindings, self.expression())

    # --- paths --------------------------------------------------------------------------------------------

    def path(self) -> ast.Path:
        start = self.perhaps(self.expression)
        first, *others = self.several(self.step, 1)
        if start is None:  # `//a` starts at the root
            first = ast.Step(first.axis, first.test, first.tail)
        return ast.Path(start, (first, *others))

    def step(self) -> ast.Step:
        return ast.Step(self.pick(*AXES), self.test(), self.tail(), self.pick(True, False))

    def test(self) -> ast.NameTest | ast.KindTest:
        name, prefix = self.name(), self.prefix()
        by_name = (ast.NameTest(name), ast.NameTest("*"), ast.NameTest(name, prefix))
        wild = (ast.NameTest("*", prefix), ast.NameTest(name, "*"))
        instruction = ast.KindTest("processing-instruction", name)
        kinds = (ast.KindTest("text"), ast.KindTest("node"), ast.KindTest("comment"), instruction)
        tests: tuple[ast.NameTest | ast.KindTest, ...] = (*by_name, *wild, *kinds)
        return self.pick(*tests)

    def predicate(self) -> ast.Predicate:
        return ast.Predicate(self.expression())

    def tail(self) -> tuple[ast.Tail, ...]:
        if self.pick(True, True, False):
            return ()
        kind: Literal["version", "time"] = self.pick("version", "time")
        amount = self.number() if kind == "version" else self.amount()
        qualifier = ast.Qualifier(kind, self.pick(True, False), amount)
        tail: tuple[ast.Tail, ...] = self.pick((), (qualifier,))
        return (self.predicate(), *tail) if self.pick(True, False) else tail

    # --- FLWR ---------------------------------------------------------------------------------------------

    def loop(self) -> ast.Flwor | ast.Pipeline:
        """Any clauses behind a first, which must bind something, in the one form that they have."""
        others: tuple[Callable[[], ast.Clause], ...] = (
            *(self.where, self.order_by, self.count, self.group_by),
            self.binding,
        )
        behind = self.several(lambda: self.pick(*others)())
        return expression_of((*self.several(self.binding, 1), *behind), self.expression(), ast.NOWHERE)

    def binding(self) -> ast.For | ast.PositionalFor | ast.Let:
        match self.pick("let", "at", "allowing empty", "for"):
            case "let":
                return ast.Let(self.name(), self.expression())
            case "at":
                return ast.PositionalFor(self.name(), f"{self.name()}.at", self.expression(), self.pick(True, False))
            case "allowing empty":
                return ast.PositionalFor(self.name(), None, self.expression(), allows_empty=True)
            case _:
                return ast.For(self.name(), self.expression(), self.perhaps(self.window))

    def where(self) -> ast.Where:
        return ast.Where(self.expression())

    def order_by(self) -> ast.OrderBy:
        return ast.OrderBy(self.several(lambda: ast.OrderKey(self.expression(), self.pick(True, False)), 1))

    def count(self) -> ast.Count:
        return ast.Count(self.name())

    def group_by(self) -> ast.GroupBy:
        return ast.GroupBy(self.several(lambda: ast.GroupKey(self.name(), self.perhaps(self.expression)), 1))

    def window(self) -> ast.Window:
        match self.pick("count", "time", "session"):
            case "count":
                return ast.CountWindow(self.number(), self.perhaps(self.number))
            case "time":
                return ast.TimeWindow(self.plain_path(), self.amount(), self.perhaps(self.amount))
            case _:
                return ast.SessionWindow(self.plain_path(), self.amount(), self.perhaps(self.plain_path))

    def plain_path(self) -> ast.Path:
        steps = self.several(lambda: ast.Step(self.pick("child", "attribute"), ast.NameTest(self.name())), 1)
        return ast.Path(self.pick(None, ast.Root(), ast.ContextItem()), steps)

    def amount(self) -> ast.Amount:
        texts = ("PT1M", "P1D", "PT0.5S", "P3DT4H5M6.789S")
        return ast.Duration(self.pick(*texts)) if self.pick(True, False) else self.number()

    # --- constructors -------------------------------------------------------------------------------------

    def element(self) -> ast.ElementConstructor:
        attributes = self.named(lambda name: ast.AttributeConstructor(name, self.value()), self.tag)
        namespaces = self.named(lambda name: (name, self.text() or "u"), self.prefix)
        default = self.pick((), (("", self.text()),))
        content = self.apart(self.several(self.content))
        return ast.ElementConstructor(self.tag(), attributes, (*default, *namespaces), content)

    def value(self) -> tuple[ast.Characters | ast.Enclosed, ...]:
        return self.apart(self.several(self.characters_or_enclosed))

    def characters_or_enclosed(self) -> ast.Characters | ast.Enclosed:
        return self.characters() if self.pick(True, False) else self.enclosed()

    def content(self) -> ast.Content:
        kinds: tuple[Callable[[], ast.Content], ...] = (self.characters, self.enclosed, self.comment, self.element)
        return self.pick(*kinds)()

    def apart(self, content: tuple[T, ...]) -> tuple[T, ...]:
        """Without literal texts that touch: they would be one."""
        kept: list[T] = []
        for each in content:
            if not (kept and isinstance(kept[-1], ast.Characters) and isinstance(each, ast.Characters)):
                kept.append(each)
        return tuple(kept)

    def characters(self) -> ast.Characters:
        return ast.Characters(self.text() or " ")

    def enclosed(self) -> ast.Enclosed:
        return ast.Enclosed(self.expression())

    def comment(self) -> ast.CommentConstructor:
        return ast.CommentConstructor(self.pick("", " a ", "{<&", "- -x"))

    # --- the whole ----------------------------------------------------------------------------------------

    def query(self) -> ast.Query:
        namespaces = self.named(lambda name: (name, self.text() or name), lambda: self.pick("", *PREFIXES))
        return with_positions(ast.Query(self.expression(), namespaces, self.several(self.function)))

    def function(self) -> ast.Function:
        return ast.Function(self.prefixed(), self.named(str, self.name), self.expression())


queries = st.composite(lambda draw: Maker(draw).query())()


@pytest.mark.mass
def test_what_is_printed_is_read_back() -> None:
    """Law: printing any well-formed query and parsing it gives the same query; no construct escapes the law."""
    met: set[type] = set()

    @settings(examples(250), database=None, suppress_health_check=list(HealthCheck))
    @given(queries)
    def law(query: ast.Query) -> None:
        assert parse(print_query(query)) == query
        met.update(type(part) for part in parts(query))

    constructs = {each for each in vars(ast).values() if isinstance(each, type) and each.__module__ == ast.__name__}
    for number in range(1 if is_fast() else 10):  # what hypothesis makes depends on the modules that are loaded
        seed(number)(law)()
        if {each.__name__ for each in constructs - met} == {"_Placed"}:
            return
    assert is_fast(), f"of few queries nothing is certain, of many that there are {constructs - met}"


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
    ("(a instance of item()) + 1", "(a instance of item()) + 1"),
    ("(a treat as item()) * 1", "(a treat as item()) * 1"),
    ("(a instance of item()) = b", "a instance of item() = b"),
    # one spelling of each thing
    ("child::a/attribute::b/parent::node()/self::node()", "a/@b/../self::node()"),
    ("a/./b", "a/self::node()/b"),
    ("a[ ']' ]", 'a["]"]'),
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
    with pytest.raises(QueryError) as caught:
        check(parse("1 + ($x)"))
    assert "1 + $x" in str(caught.value)
