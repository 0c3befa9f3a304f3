"""Questions that can be asked in three spellings: what stands in them, and nothing of how they are written or answered.

An expression has one type, so that no spelling has to compare values of different types.
`xquery.py` and `sql.py` write a question with paths, with dots and in SQL; `judge.py` answers it with plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

Type: TypeAlias = Literal["number", "text", "truth", "any"]
ArithmeticSign: TypeAlias = Literal["+", "-", "*", "/"]
ComparisonOperator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Field:
    """A value of a record: the keys that lead to it, and the place in the array that it is in, from 1 on."""

    names: tuple[str, ...]
    type: Type
    member: int | None = None
    table: str = "s"
    """Whose record it is: the stream's `s`, the other stream's `u`, or the table's `p`."""


@dataclass(frozen=True)
class Constant:
    """A literal: a number as it is written, or a text."""

    value: str
    type: Type


@dataclass(frozen=True)
class Computed:
    """`left + right` and kin; `/` divides doubles."""

    operator: ArithmeticSign
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Applied:
    """A function of one value, and of constants behind it."""

    function: Literal["abs", "upper", "lower", "length", "substring", "replace", "trim", "position"]
    value: Expression
    others: tuple[Constant, ...] = ()


@dataclass(frozen=True)
class Joined:
    """Texts one behind the other; NULL where one of them is."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Choice:
    """CASE WHEN condition THEN value ELSE other END; without `other`, NULL."""

    condition: Condition
    value: Expression
    other: Expression | None


@dataclass(frozen=True)
class FirstOf:
    """COALESCE"""

    values: tuple[Expression, ...]


@dataclass(frozen=True)
class Unless:
    """NULLIF"""

    value: Expression
    other: Constant


@dataclass(frozen=True)
class Compared:
    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class All:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Either:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Negated:
    condition: Condition


@dataclass(frozen=True)
class Missing:
    """IS NULL"""

    value: Expression


@dataclass(frozen=True)
class Within:
    """BETWEEN"""

    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True)
class Among:
    """IN"""

    value: Expression
    constants: tuple[Constant, ...]


@dataclass(frozen=True)
class Like:
    value: Expression
    parts: tuple[str | None, ...]
    """Texts, `%` as None, and `_` as the empty text."""


@dataclass(frozen=True)
class Aggregate:
    """An aggregate; without an argument, of whole rows."""

    function: Literal["count", "sum", "avg", "min", "max"]
    argument: Expression | None = None
    distinct: bool = False
    where: Condition | None = None


@dataclass(frozen=True)
class Bound:
    """A bound of the window."""

    which: Literal["start", "end"]


Condition: TypeAlias = "Compared | All | Either | Negated | Missing | Within | Among | Like | Field"
Expression: TypeAlias = (
    "Field | Constant | Computed | Applied | Joined | Choice | FirstOf | Unless | Aggregate | Bound | Condition"
)
CONDITIONS = (Compared, All, Either, Negated, Missing, Within, Among, Like)


@dataclass(frozen=True)
class Window:
    """Of the times `t`, in seconds; with a `gap` it is a session, perhaps of a key."""

    size: int = 0
    step: int = 0
    gap: int = 0
    key: str | None = None


@dataclass(frozen=True)
class Key:
    """By what rows of a window are put in order."""

    value: Expression
    descending: bool
    nulls: Literal["first", "last"] | None
    """None for the usual place: behind all else, and first where the order is turned."""


@dataclass(frozen=True)
class Rows:
    """A row for each record; in windows, some of them in an order."""

    columns: tuple[Expression, ...]
    where: Condition | None
    window: Window | None = None
    order: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Groups:
    """A row for each group of records: in each window, or of the whole stream."""

    keys: tuple[Expression, ...]
    columns: tuple[Expression, ...]
    where: Condition | None
    having: Condition | None
    window: Window | None


@dataclass(frozen=True)
class Pairs:
    """Records of two streams with the same `k` whose times are at most so far apart, `u` behind `s`."""

    columns: tuple[Expression, ...]
    where: Condition | None
    within: int


@dataclass(frozen=True)
class Lookups:
    """Records and the rows of the table with the same `k`; `outer` keeps those without one."""

    columns: tuple[Expression, ...]
    where: Condition | None
    outer: bool


@dataclass(frozen=True)
class United:
    """Two questions about records, one behind the other."""

    first: Rows
    second: Rows


Question: TypeAlias = Rows | Groups | Pairs | Lookups | United


def parts(node: Any) -> Iterator[Any]:
    """A question or expression, and all that is in it."""
    if isinstance(node, tuple):
        for each in node:
            yield from parts(each)
    elif hasattr(node, "__dataclass_fields__"):
        yield node
        for field in fields(node):
            yield from parts(getattr(node, field.name))


def type_of(expression: Expression) -> Type:
    """The type of an expression's value."""
    match expression:
        case Field(type=kind) | Constant(type=kind):
            return kind
        case Applied("upper" | "lower" | "substring" | "replace" | "trim") | Joined():
            return "text"
        case Computed() | Applied():
            return "number"
        case Choice(_, value, _) | FirstOf((value, *_)) | Unless(value, _):
            return type_of(value)
        case Aggregate("min" | "max", argument) if argument is not None:
            return type_of(argument)
        case Aggregate():
            return "number"
        case Bound():
            return "text"
        case _:
            return "truth"


def may_be_no_number(expression: Expression) -> bool:
    """Whether an expression may be NaN, as `0 / 0` is, and a difference of numbers beyond all doubles."""
    return any(isinstance(each, Computed) for each in parts(expression))
