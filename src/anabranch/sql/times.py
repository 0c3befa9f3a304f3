"""Times in SQL: intervals, literals, and which columns are times.

JSON has no times, only texts that spell them; a column is taken for a time where the query uses it as one (LAWS 8.5):
beside an INTERVAL, or compared with or subtracted from a TIMESTAMP, a DATE, the bound of a window whose size is an
interval, or a column that is one.
A DATE is its midnight beside an INTERVAL, and where it meets a column or another time than a DATE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from sqlglot import exp

from anabranch.errors import DynamicError
from anabranch.values.atomic import Untyped
from anabranch.values.times import Date, DateTime, DayTimeDuration, YearMonthDuration, read_time

_SECONDS: Mapping[str, int] = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": 86_400,
    "week": 604_800,
}
_MONTHS: Mapping[str, int] = {"month": 1, "year": 12}
_SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day"}
_AMOUNT = re.compile(r"\s*([+-]?[0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]+)\s*")
TYPES: Mapping[exp.DType, str] = {
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.DATETIME), "xs:dateTime"),
    exp.DType.DATE: "xs:date",
}
_TIMELY = (exp.Interval, exp.Cast, exp.Anonymous)
"""What a query has in it where it uses columns as times; bounds of windows are those of a function."""
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_OF_OPERANDS = (*COMPARISONS, exp.Between, exp.In, exp.Add, exp.Sub)


def interval_of(node: exp.Interval) -> DayTimeDuration | YearMonthDuration | None:
    """The duration of an INTERVAL; None where it is none, or has months and seconds."""
    given, unit = node.this, node.args.get("unit")
    if not isinstance(given, exp.Literal) or (unit is not None and not isinstance(unit, exp.Var)):
        return None
    text = given.name if unit is None else f"{given.name} {unit.name}"
    seconds, months, at = Fraction(0), 0, 0
    while at < len(text):
        found = _AMOUNT.match(text, at)
        if found is None:
            return None
        amount, word = Fraction(found.group(1)), found.group(2).lower()
        word = _SHORT.get(word, word.removesuffix("s"))
        if word in _SECONDS:
            seconds += amount * _SECONDS[word]
        elif word in _MONTHS and amount.denominator == 1:
            months += int(amount) * _MONTHS[word]
        else:
            return None
        at = found.end()
    if not text.strip() or (seconds and months):
        return None
    return YearMonthDuration(months) if months else DayTimeDuration(seconds)


def time_text(text: str, type_name: str) -> str | None:
    """A literal of SQL as XQuery writes it, with `T` between date and time; None where it is no such time."""
    written = text.strip()
    if type_name == "xs:dateTime":
        written = re.sub(r"(?<=[0-9]) +(?=[0-9])", "T", written)
        written = written if "T" in written else f"{written}T00:00:00"
        written = re.sub(r"([+-][0-9]{2})$", r"\1:00", written)
    try:
        read_time(DateTime if type_name == "xs:dateTime" else Date, Untyped(written))
    except DynamicError:
        return None
    return written


# --- which columns are times ------------------------------------------------------------------------------------------


class TimeColumns:
    """The types of the columns that a query uses as times; columns that are compared are of one type."""

    def __init__(
        self,
        nodes: Sequence[exp.Expr],
        key: Callable[[exp.Expr], tuple[str, ...] | None],
        is_bound: Callable[[exp.Expr], bool],
    ) -> None:
        """`nodes` are all of a query; `key` tells a column by its table and names, None for what is no column.

        `is_bound` tells the bounds of windows that are times.
        """
        self._key, self._is_bound = key, is_bound
        self._above: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._types: dict[tuple[str, ...], str] = {}
        self._midnights: set[int] = set()
        """The nodes of the dates that are midnights."""
        found: list[tuple[tuple[str, ...], str]] = []
        for node in nodes if any(isinstance(each, _TIMELY) for each in nodes) else ():
            if not isinstance(node, _OF_OPERANDS):
                continue
            for operands in _compared(node):
                found += self._tie(operands)
            if isinstance(node, exp.Add | exp.Sub) and _has_interval(node):
                self._midnights.update(id(each) for each in map(bare, (node.left, node.right)) if _is_date(each))
                found += [(name, "xs:dateTime") for each in (node.left, node.right) if (name := key(bare(each)))]
            elif isinstance(node, COMPARISONS) and any(_is_interval(each) for each in node.iter_expressions()):
                sides = [bare(each) for each in node.iter_expressions()]
                terms = [bare(term) for each in sides if isinstance(each, exp.Sub) for term in (each.left, each.right)]
                found += [(name, "xs:dateTime") for each in terms if (name := key(each))]
        for name, kind in found:
            root_name = self._root(name)
            if self._types.get(root_name) != "xs:dateTime":
                self._types[root_name] = kind

    def type_of(self, node: exp.Expr) -> str | None:
        """The type of a column that is a time, or of a date that is a midnight; None for others.

        A column that is an `xs:date` meets dates only: it may be a date or a dateTime, and counts as its moment.
        """
        if id(node) in self._midnights:
            return "xs:dateTime"
        name = self._key(node) if self._types else None
        return None if name is None else self._types.get(self._root(name))

    def _tie(self, operands: Sequence[exp.Expr]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Note that operands are compared; gives what is known of the columns among them."""
        names: list[tuple[str, ...]] = []
        kinds: set[str] = set()
        told: set[str] = set()
        for each in map(bare, operands):
            base = _base(each)
            if (name := self._key(base)) is not None:
                names.append(name)
            if (kind := self._kind(each)) is not None:
                kinds.add(kind)
                told.add("xs:date" if _is_date(base) else kind)  # as what meets a date and a day may be
        if names or len(kinds) > 1:
            self._midnights.update(id(each) for each in map(bare, operands) if _is_date(each))
        for one, other in pairwise(names):
            self._above[self._root(one)] = self._root(other)
        for name in names[:1]:
            for kind in sorted(told):
                yield name, kind

    def _kind(self, node: exp.Expr) -> str | None:
        """The type of an operand that is a time by its writing."""
        base = _base(node)
        if base is not node:
            return "xs:dateTime"
        match base:
            case exp.Cast(to=exp.DataType(this=kind)) if kind in TYPES:
                return TYPES[kind]
            case _:
                return "xs:dateTime" if self._is_bound(base) else None

    def _root(self, name: tuple[str, ...]) -> tuple[str, ...]:
        while (above := self._above.get(name, name)) != name:
            self._above[name] = self._above.get(above, above)
            name = above
        return name


def _compared(node: exp.Expr) -> Iterator[tuple[exp.Expr, ...]]:
    """The operands that are of one type."""
    match node:
        case exp.Between():
            yield node.this, node.args["low"], node.args["high"]
        case exp.In():
            yield node.this, *node.expressions
        case _ if isinstance(node, COMPARISONS) or (isinstance(node, exp.Sub) and not _has_interval(node)):
            yield node.left, node.right


def _is_date(node: exp.Expr) -> bool:
    """Whether an operand is a DATE by its writing."""
    return isinstance(node, exp.Cast) and TYPES.get(node.to.this) == "xs:date"


def bare(node: exp.Expr) -> exp.Expr:
    """What stands in parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _has_interval(node: exp.Add | exp.Sub) -> bool:
    """Whether one operand is an interval."""
    return _is_interval(node.left) or _is_interval(node.right)


def _is_interval(node: exp.Expr) -> bool:
    """Whether an expression is an interval by its writing: one, several, or so many times one."""
    node = bare(node)
    while isinstance(node, exp.Mul | exp.Div):
        if isinstance(node, exp.Mul) and _is_interval(node.right):
            return True
        node = bare(node.left)
    if isinstance(node, exp.Add | exp.Sub):
        return _is_interval(node.right) and _is_interval(node.left)
    return isinstance(node, exp.Interval)


def _base(node: exp.Expr) -> exp.Expr:
    """The time that intervals are added to."""
    while isinstance(node, exp.Add | exp.Sub) and _has_interval(node):
        node = bare(node.right if _is_interval(node.left) else node.left)
    return node


def duration_literal(duration: DayTimeDuration | YearMonthDuration) -> str:
    """The constructor of a duration's type."""
    return "xs:dayTimeDuration" if isinstance(duration, DayTimeDuration) else "xs:yearMonthDuration"
