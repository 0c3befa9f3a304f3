"""The query language as a tree of frozen values.

Each class is one construct of the language, named with XQuery's word for it.
Chains (`a and b and c`, `a + b - c`, `a/b/c`) are flat tuples, so that a long query is not a deep one.
`span` says where in the text a node came from; it does not count in comparisons, so two queries are equal when they
say the same, and `parse(print(query)) == query`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.errors import Span
from anabranch.values.instants import length_seconds
from anabranch.values.operators import ArithmeticOperator, ComparisonOperator

NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class _Placed:
    span: Span = field(default=NOWHERE, compare=False, kw_only=True, repr=False)


# --- values -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class String(_Placed):
    value: str


@dataclass(frozen=True, slots=True)
class Number(_Placed):
    """A number as it was written; `1` is an integer, `1.0` a decimal, `1e0` a double."""

    text: str

    @property
    def exact(self) -> Fraction:
        """The number itself, where it is written without an exponent."""
        return Fraction(self.text)


@dataclass(frozen=True, slots=True)
class Duration(_Placed):
    """A dayTimeDuration as it was written, `PT1M`: the size of a window, or how far a qualifier looks back."""

    text: str

    @property
    def exact(self) -> Fraction:
        """Its seconds."""
        seconds = length_seconds(self.text)
        assert seconds is not None, "the parser takes nothing else for a duration"
        return seconds


Amount: TypeAlias = Number | Duration
"""A size, step or lookback: a plain number, or a length of time."""


@dataclass(frozen=True, slots=True)
class Variable(_Placed):
    name: str


@dataclass(frozen=True, slots=True)
class ContextItem(_Placed):
    """`.`: the node a predicate looks at; at the top of a query, its one input."""


@dataclass(frozen=True, slots=True)
class Source(_Placed):
    """`stream("name")`, an unbounded input, or `doc("name")`, a finite one."""

    kind: Literal["stream", "doc"]
    name: str


@dataclass(frozen=True, slots=True)
class Sequence(_Placed):
    """`(a, b, c)`, also `()`; never of exactly one expression."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Call(_Placed):
    """A function call; the name may have a prefix (`local:f`).

    Operators that only compute are calls of functions in XQuery's own namespace, `op:` (`language/operators.py`).
    """

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class InlineFunction(_Placed):
    """`function($a, $b) { body }`, a value that is called: `$f(1, 2)` is a call of `op:call`."""

    parameters: tuple[str, ...]
    body: Expression


# --- paths ------------------------------------------------------------------------------------------------

Axis: TypeAlias = Literal[
    "child",
    "attribute",
    "parent",
    "self",
    "descendant",
    "descendant-or-self",
    "ancestor",
    "ancestor-or-self",
    "following",
    "following-sibling",
    "preceding",
    "preceding-sibling",
]
CLIMBING: frozenset[Axis] = frozenset(
    (
        *("parent", "ancestor", "ancestor-or-self"),
        *("following", "following-sibling", "preceding", "preceding-sibling"),
    )
)
"""The axes that look at what is not below a node; over a stream they stay inside the item (LAWS 2.8)."""


@dataclass(frozen=True, slots=True)
class NameTest:
    """`name`, `prefix:name`, `*`, `prefix:*` or `*:name`; a prefix of None means none was written."""

    local: str
    prefix: str | None = None


NodeKind: TypeAlias = Literal[
    "text", "node", "comment", "processing-instruction", "document-node", "element", "attribute"
]


@dataclass(frozen=True, slots=True)
class KindTest:
    """`text()` and kin; a `name` is the target of a processing instruction."""

    kind: NodeKind
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Predicate(_Placed):
    """`[condition]`"""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Positional(_Placed):
    """`[condition]` that may be a position: its condition may be a number, or asks for position() or last().

    Which predicates are positional is seen from their text (`language/positions.py`).
    """

    condition: Expression


@dataclass(frozen=True, slots=True)
class Qualifier(_Placed):
    """`#v` and `?t` ask for one version of the past, `#[v]` and `?[t]` for all that reach so far back."""

    kind: Literal["version", "time"]
    window: bool
    amount: Amount


Tail: TypeAlias = Predicate | Positional | Qualifier
"""What may stand behind a step or a primary expression."""


@dataclass(frozen=True, slots=True)
class Step(_Placed):
    """One step of a path; `deep` where it was written behind `//`. `..` is `parent::node()`."""

    axis: Axis
    test: NameTest | KindTest
    tail: tuple[Tail, ...] = ()
    deep: bool = False


@dataclass(frozen=True, slots=True)
class Root(_Placed):
    """The `/` that a path starts with: the root of the tree that the context item is in."""


@dataclass(frozen=True, slots=True)
class Filter(_Placed):
    """Predicates and qualifiers on something that is not a step: `$x[en > 1]`, `(a, b)#1`."""

    base: Expression
    tail: tuple[Tail, ...]


@dataclass(frozen=True, slots=True)
class Path(_Placed):
    """`start/step/step`; a start of None is the context item, left out as in `coord/cel`."""

    start: Expression | None
    steps: tuple[Step, ...]


# --- operators --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arithmetic(_Placed):
    """`first op operand op operand`, left to right; a chain holds operators of one precedence only."""

    first: Expression
    rest: tuple[tuple[ArithmeticOperator, Expression], ...]


@dataclass(frozen=True, slots=True)
class Negation(_Placed):
    """Unary minus."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Cast(_Placed):
    """`operand cast as type`, or whether that is possible, `operand castable as type`; `type?` also takes nothing."""

    kind: Literal["cast", "castable"]
    operand: Expression
    type: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Comparison(_Placed):
    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And(_Placed):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(_Placed):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class If(_Placed):
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Quantified(_Placed):
    """`some $x in a, $y in b satisfies c`"""

    kind: Literal["some", "every"]
    bindings: tuple[tuple[str, Expression], ...]
    condition: Expression


# --- FLWR -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountWindow(_Placed):
    """`|count size step step|`; a step of None was left out and equals the size."""

    size: Number
    step: Number | None = None


@dataclass(frozen=True, slots=True)
class TimeWindow(_Placed):
    """`|reference diff size step step|`; an absolute reference starts at the stream's root element."""

    reference: Path
    size: Amount
    step: Amount | None = None


@dataclass(frozen=True, slots=True)
class SessionWindow(_Placed):
    """`|reference gap gap by key|`: items whose values are less than the gap apart; with a key, for each of its values
    by itself (LAWS 3.9)."""

    reference: Path
    gap: Amount
    by: Path | None = None


Window: TypeAlias = CountWindow | TimeWindow | SessionWindow


@dataclass(frozen=True, slots=True)
class For(_Placed):
    variable: str
    source: Expression
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Let(_Placed):
    variable: str
    value: Expression


@dataclass(frozen=True, slots=True)
class OrderKey(_Placed):
    key: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Flwor(_Placed):
    clauses: tuple[For | Let, ...]
    where: Expression | None
    order: tuple[OrderKey, ...]
    result: Expression


# --- longer FLWR expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PositionalFor(_Placed):
    """`for $variable allowing empty at $position in source`; one of the two additions may be missing."""

    variable: str
    position: str | None
    source: Expression
    allows_empty: bool = False


@dataclass(frozen=True, slots=True)
class Where(_Placed):
    condition: Expression


@dataclass(frozen=True, slots=True)
class OrderBy(_Placed):
    keys: tuple[OrderKey, ...]


@dataclass(frozen=True, slots=True)
class Count(_Placed):
    """`count $variable`: the number of each tuple."""

    variable: str


@dataclass(frozen=True, slots=True)
class GroupKey(_Placed):
    """`$variable := value`; a value of None is that of the variable."""

    variable: str
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class GroupBy(_Placed):
    keys: tuple[GroupKey, ...]


Clause: TypeAlias = For | Let | PositionalFor | Where | OrderBy | Count | GroupBy


@dataclass(frozen=True, slots=True)
class Pipeline(_Placed):
    """A FLWR expression whose clauses act one after the other, each on all tuples that those before it give.

    It is made only of what a `Flwor` cannot say (`language/clauses.py`), so code that handles loops over items and
    windows never meets a `group by`, a `count` or an `at` in a `Flwor`.
    """

    clauses: tuple[Clause, ...]
    result: Expression


# --- constructors -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Characters(_Placed):
    """Literal text in a constructor, with references resolved and boundary white space removed."""

    value: str


@dataclass(frozen=True, slots=True)
class Enclosed(_Placed):
    """`{ expression }` inside a constructor."""

    value: Expression


@dataclass(frozen=True, slots=True)
class CommentConstructor(_Placed):
    value: str


@dataclass(frozen=True, slots=True)
class AttributeConstructor(_Placed):
    name: str
    value: tuple[Characters | Enclosed, ...]


@dataclass(frozen=True, slots=True)
class ElementConstructor(_Placed):
    """`<name a="{...}">...</name>`; `namespaces` are its `xmlns` attributes, prefix to URI."""

    name: str
    attributes: tuple[AttributeConstructor, ...] = ()
    namespaces: tuple[tuple[str, str], ...] = ()
    content: tuple[Content, ...] = ()


Content: TypeAlias = "Characters | Enclosed | CommentConstructor | ElementConstructor"

Expression: TypeAlias = (
    "String | Number | Variable | ContextItem | Source | Sequence | Call | InlineFunction | Root | Filter | Path | "
    "Arithmetic | Negation | Cast | Comparison | And | Or | If | Quantified | Flwor | Pipeline | ElementConstructor"
)


# --- the whole --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function(_Placed):
    """`declare function local:f($a, $b) { body };`, never recursive."""

    name: str
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Query(_Placed):
    """A query: prolog and body. `namespaces` are the declared ones; `""` is the default for elements."""

    body: Expression
    namespaces: tuple[tuple[str, str], ...] = ()
    functions: tuple[Function, ...] = ()
