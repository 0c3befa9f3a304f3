"""Expressions over columns, as trees; equal trees mean the same.

Each node has at most one value for each row it is evaluated in: an item, or one of the repeated parts in it.
A value may be *absent*, the empty sequence, or *unclear*, which leaves its row to the law: where an error may have to
be raised, a number is not known exactly, or only the law can write a text.
`compiling.py` makes these trees, and `evaluating.py` computes their values.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

from anabranch.columnar.scan.look import PartColumn
from anabranch.values.operators import ArithmeticOperator, ComparisonOperator


class Kind(Enum):
    """The type of an expression's value."""

    UNTYPED = "untyped"
    DOUBLE = "double"
    INTEGER = "integer"
    DECIMAL = "decimal"
    """The double nearest to it, and its spelling."""
    STRING = "string"
    BOOLEAN = "boolean"
    MOMENT = "dateTime"
    DATE = "date"
    TIME = "time"
    DAY_TIME = "dayTimeDuration"
    YEAR_MONTH = "yearMonthDuration"
    CONTENT = "content"
    """Serialised nodes, or JSON."""
    NUMBER = "number"
    """A number of JSON: a text that is known to be one, and compared with numbers only."""
    FLAG = "truth value"
    """A boolean of JSON as its text, which may be absent; it is a condition, compared, or written."""


INSTANTS = (Kind.MOMENT, Kind.DATE, Kind.TIME)
"""Times that are spelled with their zone."""
LENGTHS = (Kind.DAY_TIME, Kind.YEAR_MONTH)
TIMES = (*INSTANTS, *LENGTHS)
"""Types whose values are ordered by integers, the ticks of a column."""


@dataclass(frozen=True, slots=True)
class PartText:
    """The text of a part, which has no type unless the part is a typed part (`scan/look.py`)."""

    column: PartColumn
    side: int = 0
    """Which of the items of a tuple it is looked for in, in a join."""
    kind: Kind = Kind.UNTYPED


@dataclass(frozen=True, slots=True, eq=False)
class ConstantValue:
    """A constant from a query, or computed from constants."""

    value: str | int | Decimal | float

    def __eq__(self, other: object) -> bool:
        """1, 1.0, 1e0 and `true` are different, and so are 0e0 and -0e0."""
        return isinstance(other, ConstantValue) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Kind, str]:
        return self.kind, repr(self.value)

    @property
    def kind(self) -> Kind:
        match self.value:
            case str():
                return Kind.STRING
            case bool():
                return Kind.BOOLEAN
            case int():
                return Kind.INTEGER
            case Decimal():
                return Kind.DECIMAL
            case float():
                return Kind.DOUBLE


@dataclass(frozen=True, slots=True)
class ColumnArithmetic:
    """Arithmetic of two numbers; in doubles unless both are integers."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression

    @property
    def kind(self) -> Kind:
        both = self.left.kind is Kind.INTEGER and self.right.kind is Kind.INTEGER
        return Kind.INTEGER if both else Kind.DOUBLE


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """Two values, compared as LAWS 2.3 says."""

    operator: ComparisonOperator
    left: Expression
    right: Expression
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Junction:
    """`and`, or else `or`."""

    is_and: bool
    operands: tuple[Expression, ...]
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Choice:
    """`if`; both branches are of one kind."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def kind(self) -> Kind:
        return self.then.kind


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function of the language (`functions.py`)."""

    name: str
    arguments: tuple[Expression, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Truth:
    """The effective boolean value."""

    operand: Expression
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a part is there."""

    column: PartColumn
    side: int = 0
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Clear:
    """True, and unclear where an expression is: the value of a `let` must not fail, even if it is not used."""

    operand: Expression
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class RowQuantifier:
    """Whether a condition holds for some of the rows of a repeated part, or else for every one of them."""

    frame: int
    """The repeated part."""
    is_some: bool
    condition: Expression
    at: int = -1
    """The frame in whose rows this is evaluated, -1 for items; likewise below."""
    side: int = 0
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class RowsFound:
    """True where the rows that are looked up in a table are known, and unclear elsewhere (`tables/joined_look.py`)."""

    frame: int
    """The rows."""
    sought: Expression | None
    """The value that their key is equal to, if they have a key."""
    at: int = -1
    """The frame in whose rows they are looked up, -1 for items."""
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class RowSource:
    """A part of a sequence: a value for each row of a frame for which a condition holds."""

    frame: int
    condition: Expression | None
    value: Expression | None
    """None where the rows are only counted."""
    side: int = 0
    """Which of the items of a tuple the rows lie in, in a join."""
    order: tuple[RowKey, ...] = ()
    """The keys of an `order by`, if there is one."""


@dataclass(frozen=True, slots=True)
class RowFold:
    """The result of a function of `rows/folding.py` over a sequence."""

    name: str
    sources: tuple[RowSource, ...]
    arguments: tuple[Expression, ...]
    kind: Kind
    at: int = -1

    @property
    def repeated(self) -> tuple[RowSource, ...]:
        """The sources whose rows are of inner frames."""
        return tuple(each for each in self.sources if each.frame != self.at)


@dataclass(frozen=True, slots=True)
class FirstOfValue:
    """Whether a row is the first with its text among those for which a condition holds, for `distinct-values`."""

    frame: int
    text: Expression
    condition: Expression | None
    at: int = -1
    """The frame in each of whose rows there is a first one, -1 for items."""
    kind = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class RowPlace:
    """The place of a row among those for which a condition holds, counted from 1; or else the last place."""

    frame: int
    is_last: bool
    condition: Expression | None
    at: int = -1
    """The frame in each of whose rows places are counted, -1 for items."""
    kind = Kind.INTEGER


@dataclass(frozen=True, slots=True)
class RowExtreme:
    """The greatest number among the rows of a repeated part, or else the least."""

    frame: int
    is_greatest: bool
    operand: Expression
    at: int = -1
    side: int = 0
    kind = Kind.DOUBLE


@dataclass(frozen=True, slots=True)
class RowKey:
    """A key by which rows are sorted."""

    value: Expression
    descending: bool


@dataclass(frozen=True, slots=True)
class RowLoop:
    """The results of the rows of a repeated part for which a condition holds, one behind the other."""

    frame: int
    condition: Expression | None
    content: Expression
    at: int = -1
    side: int = 0
    order: tuple[RowKey, ...] = ()
    """The keys of an `order by`, if there is one."""
    kind = Kind.CONTENT


@dataclass(frozen=True, slots=True)
class PartsInOrder:
    """Several parts, repeated or not, in the order in which they stand in the item."""

    columns: tuple[PartColumn, ...]
    at: int = -1
    side: int = 0
    kind = Kind.CONTENT


@dataclass(frozen=True, slots=True)
class RecordLine:
    """An item of JSON as its line in the answer (LAWS 7.3); the column is the whole item."""

    column: PartColumn
    is_ended: bool = True
    """Whether the line has its end, or stands in an object."""
    kind = Kind.CONTENT


@dataclass(frozen=True, slots=True)
class JsonText:
    """A value as JSON writes it, `null` where there is none."""

    operand: Expression
    kind = Kind.CONTENT


@dataclass(frozen=True, slots=True)
class JsonCopy:
    """An object or array of a record as JSON writes it, `null` where there is none; the column is its place."""

    column: PartColumn
    side: int = 0
    kind = Kind.CONTENT


@dataclass(frozen=True, slots=True)
class ContentOf:
    """Fragments one behind the other."""

    fragments: tuple[Fragment, ...]
    kind = Kind.CONTENT


# --- fragments --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Taken:
    """Bytes of the item: the text of a part, or the whole part."""

    column: PartColumn
    side: int = 0
    """Which of the items of a tuple it is, in a join."""
    front: bytes = b""
    """The bytes that replace its first bytes (`start_tags.py`); then it is part of an expression."""
    replaced: int = 0
    """The number of bytes that are replaced."""


@dataclass(frozen=True, slots=True)
class Made:
    """The value of an expression, written as text."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An element around fragments; it ends with `/>` where all of them are empty."""

    content: tuple[Fragment, ...]
    end_tag: bytes


Fragment: TypeAlias = bytes | Taken | Made | Wrapped
Expression: TypeAlias = (
    PartText
    | ConstantValue
    | ColumnArithmetic
    | ColumnComparison
    | Junction
    | Choice
    | FunctionCall
    | Truth
    | Presence
    | Clear
    | RowsFound
    | RowQuantifier
    | RowFold
    | FirstOfValue
    | RowPlace
    | RowExtreme
    | RowLoop
    | PartsInOrder
    | RecordLine
    | JsonText
    | JsonCopy
    | ContentOf
)
Column: TypeAlias = PartColumn | Expression
"""The content of a row of a batch: a part that is read, or an expression that is computed."""


_Node: TypeAlias = Expression | Fragment


def inner(node: _Node) -> tuple[_Node, ...]:
    """The nodes directly inside a node."""
    match node:
        case ColumnArithmetic(_, left, right) | ColumnComparison(_, left, right):
            return left, right
        case Junction(_, operands) | FunctionCall(_, operands, _):
            return operands
        case Choice(condition, then, otherwise):
            return condition, then, otherwise
        case Truth(operand) | Clear(operand) | Made(operand) | RowQuantifier(_, _, operand) | RowExtreme(_, _, operand):
            return (operand,)
        case JsonText(operand):
            return (operand,)
        case RowsFound(_, asked) | RowPlace(_, _, asked):
            return () if asked is None else (asked,)
        case RowFold(_, sources, arguments):
            parts = [part for each in sources for part in (each.condition, each.value) if part is not None]
            return (*parts, *(key.value for each in sources for key in each.order), *arguments)
        case RowLoop(_, condition, content):
            keys = (each.value for each in node.order)
            return (*(() if condition is None else (condition,)), *keys, content)
        case FirstOfValue(_, text, condition):
            return (text,) if condition is None else (condition, text)
        case ContentOf(parts) | Wrapped(parts):
            return parts
        case _:
            return ()


def walk(node: _Node) -> Iterator[_Node]:
    """A node and all nodes inside it."""
    yield node
    for each in inner(node):
        yield from walk(each)


def sides_of(node: _Node) -> frozenset[int]:
    """In a join: the numbers of the tuple's items that a node reads."""
    found = {each.side for each in walk(node) if isinstance(each, _SIDED)}
    folds = (each for each in walk(node) if isinstance(each, RowFold))
    return frozenset(found.union(source.side for each in folds for source in each.repeated))


_SIDED = PartText | Presence | Taken | RowQuantifier | RowExtreme | RowLoop | PartsInOrder | JsonCopy

Constant: TypeAlias = float | bytes
"""A literal in which queries of one shape may differ (`runtime/shapes.py`)."""


def constant_of(literal: ConstantValue) -> Constant:
    """A literal as a constant."""
    return literal.value.encode() if isinstance(literal.value, str) else float(literal.value)


def has_constant(node: Column | Fragment, constants: Container[Constant]) -> bool:
    """Whether a node contains one of some constants, perhaps with the other sign."""
    if isinstance(node, int | bytes):
        return False
    found = (constant_of(each) for each in walk(node) if isinstance(each, ConstantValue))
    return any(each in constants or (isinstance(each, float) and -each in constants) for each in found)


def read_columns(node: Column | Fragment) -> set[PartColumn]:
    """The columns of parts that a column or a fragment reads."""
    if isinstance(node, int | bytes):
        return {node} if isinstance(node, int) else set()
    found = {each.column for each in walk(node) if isinstance(each, _READING)}
    return found.union(*(each.columns for each in walk(node) if isinstance(each, PartsInOrder)))


_READING = PartText | Presence | Taken | RecordLine | JsonCopy


def read_numbers(node: Column | Fragment) -> set[PartColumn]:
    """The columns of parts that are read as numbers."""
    if isinstance(node, int | bytes):
        return {node} if isinstance(node, int) and node >= 0 else set()
    return {each.column for each in walk(node) if isinstance(each, PartText)}
