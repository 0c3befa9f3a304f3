"""A question written in XQuery, with paths and with dots.

XQuery has two truth values: a condition is written as when it holds or as when it fails, and where neither is so, it
is unknown.
With paths a value is one that has a text: `$o/a[text()]`, since `null` is an empty element to them (LAWS 7.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Literal

from spellings.questions import (
    Aggregate,
    All,
    Among,
    Applied,
    Bound,
    Choice,
    Compared,
    Computed,
    Condition,
    Constant,
    Either,
    Expression,
    Field,
    FirstOf,
    Groups,
    Joined,
    Key,
    Like,
    Lookups,
    Missing,
    Negated,
    Pairs,
    Question,
    Rows,
    United,
    Unless,
    Window,
    Within,
    may_be_no_number,
    type_of,
)
from spellings.sql import names

_OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_WORDS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class XQuery(ABC):
    """Writes questions in XQuery; how a value of a record is read is left to the two spellings."""

    rows: Literal["objects", "elements"] = "objects"
    """What a row of the answer is."""
    one_group = "window-start($win)"
    """What all rows of a window have in common, for a group of all of them."""

    def __init__(self, dated: bool) -> None:
        self._dated = dated
        self._number = 0

    # --- what the spellings differ in ---------------------------------------------------------------------

    @abstractmethod
    def field(self, field: Field, row: str) -> str:
        """A value of a record: one value, or nothing, and nowhere `null`, where that is not harmless."""

    @abstractmethod
    def present(self, value: Expression, row: str) -> str:
        """A value that is surely not `null`."""

    @abstractmethod
    def plain(self, field: Field, row: str) -> str:
        """A value of a record as it is."""

    @abstractmethod
    def group_key(self, key: Expression, row: str) -> str:
        """The key of a group."""

    @abstractmethod
    def taken(self, field: Field, rows: str) -> str:
        """The values of several records, for an aggregate."""

    @abstractmethod
    def counted(self, aggregate: Aggregate, rows: str) -> str:
        """The values that are counted, those of `null` not among them."""

    @abstractmethod
    def equal(self, left: Expression, right: Expression, row: str, *, equal: bool) -> str:
        """`left = right`, or `left != right`."""

    items: str
    """What a loop over a stream runs over, behind it."""

    # --- questions ----------------------------------------------------------------------------------------

    def question(self, question: Question) -> str:
        loop = f'for $r in stream("s"){self.items}'
        match question:
            case Rows(columns, where, None):
                return f"{loop}{self._where(where, '$r')} return {self._row(columns, '$r')}"
            case Rows(columns, where, Window() as window, order, limit, offset):
                keys = ", ".join(self._key(each, "$r") for each in order)
                by = f" order by {keys}" if keys else ""
                rows = f"for $r in $win{self._where(where, '$r')}{by} return {self._row(columns, '$r')}"
                tests = [f"position() > {offset}"] if offset else []
                tests += [] if limit is None else [f"position() <= {offset + limit}"]
                rows = f"({rows})[{' and '.join(tests)}]" if tests else f"({rows})"
                return f"{self._windows(window)} return {rows}"
            case Groups((), columns, None, having, Window() as window):
                return f"{self._windows(window)}{self._where(having, '$win')} return {self._row(columns, '$win')}"
            case Groups((), columns, where, None, None):
                rows = f"({loop}{self._where(where, '$r')} return $r)"
                return self._row(columns, rows)
            case Groups(keys, columns, where, having, window):
                return self._groups(keys, columns, where, having, window)
            case Pairs(columns, where, within):
                return self._pairs(columns, where, within)
            case Lookups(columns, where, outer):
                return self._lookups(columns, where, outer)
            case United(first, second):
                halves = ", ".join(map(self._half, (first, second)))
                return f"{loop} return ({halves})"
        raise AssertionError(question)

    def _half(self, rows: Rows) -> str:
        shown = self._row(rows.columns, "$r")
        return shown if rows.where is None else f"if ({self.holds(rows.where, '$r')}) then {shown} else ()"

    def _windows(self, window: Window) -> str:
        if window.gap:
            by = "" if window.key is None else f" by {window.key}"
            return f'for $win in stream("s"){self.items}|t gap {self._size(window.gap)}{by}|'
        step = "" if window.step == window.size else f" step {self._size(window.step)}"
        return f'for $win in stream("s"){self.items}|t diff {self._size(window.size)}{step}|'

    def _size(self, seconds: int) -> str:
        return f"PT{seconds}S" if self._dated else str(seconds)

    def _groups(
        self,
        keys: tuple[Expression, ...],
        columns: tuple[Expression, ...],
        where: Condition | None,
        having: Condition | None,
        window: Window | None,
    ) -> str:
        loop = f'for $r in stream("s"){self.items}' if window is None else f"{self._windows(window)} for $r in $win"
        named = {key: f"$k{number}" for number, key in enumerate(keys)}
        if named:
            by = ", ".join(f"{name} := {self.group_key(key, '$r')}" for key, name in named.items())
        else:
            by = f"$k0 := {self.one_group}"
        shown = self._row(columns, "$r", named)
        return f"{loop}{self._where(where, '$r')} group by {by}{self._where(having, '$r')} return {shown}"

    def _pairs(self, columns: tuple[Expression, ...], where: Condition | None, within: int) -> str:
        key = self.equal(Field(("k",), "text"), Field(("k",), "text", table="u"), "$r", equal=True)
        early, late = (self.plain(Field(("t",), "number", table=each), "$r") for each in ("s", "u"))
        length = str(within)
        if self._dated:
            early, late = f"xs:dateTime({early})", f"xs:dateTime({late})"
            length = f'xs:dayTimeDuration("PT{within}S")'
        tests = [key, f"{late} >= {early}", f"{late} <= {early} + {length}"]
        tests += [] if where is None else [self.holds(where, "$r")]
        loops = f'for $r in stream("s"){self.items}, $u in stream("u"){self.items}'
        return f"{loops} where {' and '.join(tests)} return {self._row(columns, '$r')}"

    def _lookups(self, columns: tuple[Expression, ...], where: Condition | None, outer: bool) -> str:
        key = self.equal(Field(("k",), "text"), Field(("k",), "text", table="p"), "$r", equal=True)
        shown = self._row(columns, "$r")
        if outer:
            met = f'(for $p2 in doc("p")/*/* where {key.replace("$p", "$p2")} return $p2)'
            tests = self._where(where, "$r")
            return f'for $r in stream("s"){self.items} for $p allowing empty in {met}{tests} return {shown}'
        tests = " and ".join([key, *([] if where is None else [self.holds(where, "$r")])])
        return f'for $r in stream("s"){self.items}, $p in doc("p")/*/* where {tests} return {shown}'

    def _where(self, condition: Condition | None, row: str) -> str:
        return "" if condition is None else f" where {self.holds(condition, row)}"

    def _key(self, key: Key, row: str) -> str:
        nulls_first = key.descending if key.nulls is None else key.nulls == "first"
        greatest = " empty greatest" if nulls_first == key.descending else " empty least"
        return f"{self.present(key.value, row)}{' descending' if key.descending else ''}{greatest}"

    def _row(self, columns: tuple[Expression, ...], row: str, named: dict[Expression, str] | None = None) -> str:
        shown = [
            (name, (named or {}).get(each) or self.shown(each, row))
            for name, each in zip(names(len(columns)), columns, strict=True)
        ]
        if self.rows == "objects":
            return "{ " + ", ".join(f'"{name}": {each}' for name, each in shown) + " }"
        return "<r>" + "".join(f"<{name}>{{ {each} }}</{name}>" for name, each in shown) + "</r>"

    def shown(self, expression: Expression, row: str) -> str:
        """An expression in a row of the answer."""
        if not isinstance(expression, Field):
            return self.value(expression, row)
        found = self.plain(expression, row)
        return found if self.rows == "objects" else f"data({found})"

    # --- values -------------------------------------------------------------------------------------------

    def value(self, expression: Expression, row: str) -> str:
        """One value, or nothing."""
        match expression:
            case Field():
                return self.field(expression, row)
            case Constant(text, "number"):
                return text
            case Constant(text):
                return '"' + text.replace("&", "&amp;").replace('"', '""') + '"'
            case Bound(which):
                return f"window-{which}($win)"
            case Computed(operator, left, right):
                sign = "div" if operator == "/" else operator
                return f"({self.value(left, row)} {sign} {self.value(right, row)})"
            case Applied("abs", value):
                return f"abs({self.value(value, row)})"
            case Applied(function, value, others):
                constants = [self.value(each, row) for each in others]
                return self._strict([value], row, lambda given: _applied(function, given[0], constants))
            case Joined(parts):
                return self._strict(parts, row, lambda given: f"concat({', '.join(given)})")
            case Choice(condition, value, other):
                otherwise = "()" if other is None else self.value(other, row)
                return f"(if ({self.holds(condition, row)}) then {self.value(value, row)} else {otherwise})"
            case FirstOf(values):
                return f"({', '.join(self.present(each, row) for each in values)})[1]"
            case Unless(value, other):
                same = self.holds(Compared("=", value, other), row)
                return f"(if ({same}) then () else {self.value(value, row)})"
            case Aggregate():
                return self._aggregate(expression, row)
            case Missing():
                return self.holds(expression, row)
            case _:
                return (
                    f"(if ({self.holds(expression, row)}) then true() "
                    f"else if ({self.fails(expression, row)}) then false() else ())"
                )

    def _strict(self, values: Iterable[Expression], row: str, build: Callable[[list[str]], str]) -> str:
        """What is built of values, where all of them are there."""
        loops: list[str] = []
        given: list[str] = []
        for each in values:
            if isinstance(each, Constant):
                given.append(self.value(each, row))
                continue
            name = self.fresh()
            loops.append(f"for {name} in {self.present(each, row)} ")
            given.append(name)
        return f"({''.join(loops)}return {build(given)})" if loops else build(given)

    def fresh(self) -> str:
        self._number += 1
        return f"$x{self._number}"

    def _aggregate(self, aggregate: Aggregate, rows: str) -> str:
        values = self.values(aggregate, rows)
        match aggregate.function:
            case "count":
                return f"count({values if aggregate.argument is None else self.counted(aggregate, rows)})"
            case "sum":
                return f"(if (exists(avg({values}))) then sum({values}) else ())"
            case function:
                return f"{function}({values})"

    def values(self, aggregate: Aggregate, rows: str) -> str:
        """The values that an aggregate is taken of."""
        argument, where = aggregate.argument, aggregate.where
        if where is None and argument is None:
            return rows
        if where is None and isinstance(argument, Field):
            return self.taken(argument, rows)
        name = self.fresh()
        shown = name if argument is None else self.value(argument, name)
        return f"(for {name} in {rows}{self._where(where, name)} return {shown})"

    # --- conditions ---------------------------------------------------------------------------------------

    def holds(self, condition: Condition, row: str) -> str:
        """When a condition is true."""
        return self._is(condition, row, true=True)

    def fails(self, condition: Condition, row: str) -> str:
        """When a condition is false."""
        return self._is(condition, row, true=False)

    def _is(self, condition: Condition, row: str, *, true: bool) -> str:
        match condition:
            case Compared(operator, left, right):
                return self._compared(operator, left, right, row, true=true)
            case All(conditions) | Either(conditions):
                word = " and " if isinstance(condition, All) == true else " or "
                return f"({word.join(self._is(each, row, true=true) for each in conditions)})"
            case Negated(inner):
                return self._is(inner, row, true=not true)
            case Missing(value):
                return f"{'empty' if true else 'exists'}({self.present(value, row)})"
            case Within(value, low, high):
                sides = (
                    self._compared(">=", value, low, row, true=true),
                    self._compared("<=", value, high, row, true=true),
                )
                return f"({(' and ' if true else ' or ').join(sides)})"
            case Among(value, constants) if true:
                listed = ", ".join(self.value(each, row) for each in constants)
                return f"{self.value(value, row)} = {listed if len(constants) == 1 else f'({listed})'}"
            case Among(value, constants):
                return f"({' and '.join(self.equal(value, each, row, equal=False) for each in constants)})"
            case Like(value, parts):
                return self._like(value, parts, row, true=true)
            case Field():
                return self.field(condition, row) + ("" if true else " = false()")

    def _compared(self, operator: str, left: Expression, right: Expression, row: str, *, true: bool) -> str:
        if operator in ("=", "!="):
            return self.equal(left, right, row, equal=(operator == "=") == true)
        sides = self.value(left, row), self.value(right, row)
        if not true and (may_be_no_number(left) or may_be_no_number(right)):
            there = f"exists({self.present(left, row)}) and exists({self.present(right, row)})"
            return f"({there} and not({sides[0]} {operator} {sides[1]}))"
        return f"{sides[0]} {operator if true else _OPPOSITES[operator]} {sides[1]}"

    def _like(self, value: Expression, parts: tuple[str | None, ...], row: str, *, true: bool) -> str:
        found = self.present(value, row)
        text = self.value(Constant(next((each for each in parts if each), ""), "text"), row)
        match parts:
            case (str(each), None) if each:
                test = f"starts-with({found}, {text})"
            case (None, str(each)) if each:
                test = f"ends-with({found}, {text})"
            case (None, str(each), None) if each:
                test = f"contains({found}, {text})"
            case _:
                pattern = "".join(".*" if each is None else "." if each == "" else _pattern(each) for each in parts)
                test = f'matches({found}, {self.value(Constant(f"^{pattern}$", "text"), row)}, "s")'
        there = f"exists({found})"
        return f"({there} and {test})" if true else f"({there} and not({test}))"


def _pattern(text: str) -> str:
    return "".join(f"\\{each}" if each in r"\.[](){}*+?|^$-" else each for each in text)


def _applied(function: str, value: str, others: list[str]) -> str:
    match function:
        case "upper" | "lower":
            return f"{function}-case({value})"
        case "length":
            return f"string-length({value})"
        case "substring":
            return f"substring({value}, {', '.join(others)})"
        case "replace":
            return f'replace({value}, {", ".join(others)}, "q")'
        case "trim":
            return f'replace({value}, "^ +| +$", "")'
        case _:
            before = f"string-length(substring-before({value}, {others[0]}))"
            return f"(if (contains({value}, {others[0]})) then {before} + 1 else 0)"


class Dots(XQuery):
    """With dots: typed values, and `null` as one of them."""

    items = ""

    def _variable(self, field: Field, row: str) -> str:
        return row if field.table == "s" else f"${field.table}"

    def field(self, field: Field, row: str) -> str:
        found = f"{self._variable(field, row)}.{'.'.join(field.names)}"
        return found if field.member is None else f"{found}[[{field.member}]]"

    def plain(self, field: Field, row: str) -> str:
        return self.field(field, row)

    def present(self, value: Expression, row: str) -> str:
        found = self.value(value, row)
        raw = isinstance(value, Field | Choice | Unless)
        return f"non-null({found})" if raw else found

    def group_key(self, key: Expression, row: str) -> str:
        return self.present(key, row)

    def taken(self, field: Field, rows: str) -> str:
        return self.field(field, rows)

    def counted(self, aggregate: Aggregate, rows: str) -> str:
        values = f"non-null({self.values(aggregate, rows)})"
        return f"distinct-values({values})" if aggregate.distinct else values

    def equal(self, left: Expression, right: Expression, row: str, *, equal: bool) -> str:
        return f"{self.value(left, row)} {'=' if equal else '!='} {self.value(right, row)}"

    def value(self, expression: Expression, row: str) -> str:
        if isinstance(expression, Compared):
            sides = self.value(expression.left, row), self.value(expression.right, row)
            return f"({sides[0]} {_WORDS[expression.operator]} {sides[1]})"
        return super().value(expression, row)


_TYPED = (Constant, Computed, Applied, Aggregate)
"""What is a number by its type."""


class Paths(XQuery):
    """With paths: nodes, whose text has no type; what is no number is made a string or a truth value."""

    items = "/root/item"

    def plain(self, field: Field, row: str) -> str:
        start = row if field.table == "s" else f"${field.table}"
        return f"{start}/{'/'.join(field.names)}" + ("" if field.member is None else f"[{field.member}]")

    def field(self, field: Field, row: str) -> str:
        found = f"{self.plain(field, row)}[text()]"
        match field.type:
            case "text":
                return f"xs:string({found})"
            case "truth":
                return f"xs:boolean({found})"
            case _:
                return found

    def present(self, value: Expression, row: str) -> str:
        return self.value(value, row)

    def group_key(self, key: Expression, row: str) -> str:
        found = self.value(key, row)
        return f"{found} + 0" if type_of(key) == "number" else found

    def taken(self, field: Field, rows: str) -> str:
        if field.type == "number" and field.member is None:
            return self.field(field, rows)
        name = self.fresh()
        return f"(for {name} in {rows} return {self.field(field, name)})"

    def counted(self, aggregate: Aggregate, rows: str) -> str:
        values = self.values(aggregate, rows)
        if not aggregate.distinct:
            return values
        if type_of(aggregate.argument or Bound("end")) == "number":
            name = self.fresh()
            values = f"(for {name} in {values} return {name} + 0)"
        return f"distinct-values({values})"

    def equal(self, left: Expression, right: Expression, row: str, *, equal: bool) -> str:
        """`=` between two texts of items compares texts (LAWS 2.3), so two numbers are compared by their order."""
        a, b = self.value(left, row), self.value(right, row)
        if type_of(left) == "number" and not isinstance(left, _TYPED) and not isinstance(right, _TYPED):
            return f"({a} <= {b} and {a} >= {b})" if equal else f"({a} < {b} or {a} > {b})"
        return f"{a} {'=' if equal else '!='} {b}"


class Elements(Paths):
    """With paths, and elements as rows, which SaxonC-HE can judge."""

    rows = "elements"
    one_group = "0"
