"""Random records, and random questions about them.

Records have values of one type in each place, in many spellings, `null` and missing among them.
What a question compares and computes with is chosen so that all spellings mean the same; where they cannot, `by_paths`
says which law makes the difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from random import Random
from typing import Any
from xml.sax.saxutils import escape

from spellings.judge import EPOCH, Digits, Records, read, value
from spellings.questions import (
    Aggregate,
    All,
    Among,
    Applied,
    ArithmeticSign,
    Bound,
    Choice,
    Compared,
    ComparisonOperator,
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
    parts,
    type_of,
)

_NUMBERS = (
    *("0", "-0", "1", "1.0", "2", "3", "-7", "2.5", "1.50", "10", "1e1", "0.1", "0.25", "-3.75", "100", "2E+1"),
    *("12345678901234567890", "12345678901234567891", "0.30000000000000004"),
)
_HUGE = ("1e400", "-1e400", "2e400")
_SMALL = ("1", "1.0", "2", "2.50", "2.5")
_TEXTS = (
    *("a", "ab", "Abc", "b a", " x ", "a%b", "zz_z", "5", "1.50", "true", "null", "é", "ß", "日本", "😀x"),
    *("it's", 'q"q', "<t>&", "x\\y", " ", "a.c", "A"),
)
_CONSTANTS = ("0", "1", "2", "2.5", "5", "7.25", "10", "100")
_WORDS = ("a", "ab", "Abc", "x", "5", "it's", "é", "<&>", "b", 'q"')
_OPERATORS: tuple[ComparisonOperator, ...] = ("=", "!=", "<", "<=", ">", ">=")
_SIGNS: tuple[ArithmeticSign, ...] = ("+", "-", "*", "/")

ID = Field(("id",), "number")
NUMBERS = (
    Field(("a",), "number"),
    Field(("b",), "number"),
    Field(("g",), "number"),
    Field(("o", "x"), "number"),
    Field(("l",), "number", 1),
    Field(("l",), "number", 2),
)
TEXTS = (Field(("n",), "text"), Field(("k",), "text"), Field(("o", "y"), "text"))
TRUTHS = (Field(("ok",), "truth"), Field(("o", "z", "w"), "truth"))
WHOLE = (Field(("o",), "any"), Field(("l",), "any"), Field(("o", "z"), "any"))


# --- records ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """Two streams and a table, as lines of JSON."""

    s: list[str]
    u: list[str]
    p: list[str]
    dated: bool

    def records(self, end: int | None) -> Records:
        """The same as records, for the judge."""
        s, u, p = (list(map(read, each)) for each in (self.s, self.u, self.p))
        return Records(s, u, p, self.dated, end)


class Drawing:
    """Draws records and questions."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.pick = random.choice

    def inputs(self, count: int, *, end: int | None, dated: bool | None = None, huge: bool | None = None) -> Inputs:
        """Some records; with an `end`, both streams come at least so far with their last."""
        dated = self.random.random() < 0.4 if dated is None else dated
        huge = self.random.random() < 0.15 if huge is None else huge
        empty, late = self.random.random() < 0.3, self.random.random() < 0.2
        s = [self._record(number, at, dated, huge, empty) for number, at in enumerate(self._times(count, late))]
        u = [self._other(number, at, dated) for number, at in enumerate(self._times(count // 2, late))]
        if end is not None:
            # the last of s releases that of u, which comes before it
            s.append(_written({"id": str(len(s)), "t": self._time(end + 1, dated)}))
            u.append(_written({"id": str(len(u)), "t": self._time(end, dated)}))
        p = [self._row() for _ in range(self.random.randrange(1, 5))]
        return Inputs(s, u, p, dated)

    def _times(self, count: int, late: bool) -> list[int]:
        at, found = 0, []
        for _ in range(count):
            at += self.random.randrange(8)
            found.append(max(at - self.random.randrange(1, 9), 0) if late and self.random.random() < 0.1 else at)
        return found

    def _time(self, at: int, dated: bool) -> str:
        if not dated:
            return self.pick((str(at), f"{at}.0", f"{at}.5")) if self.random.random() < 0.1 else str(at)
        moment = (EPOCH + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S")
        return json.dumps(moment + (".5" if self.random.random() < 0.1 else "") + "Z")

    def _record(self, number: int, at: int, dated: bool, huge: bool, empty: bool) -> str:
        numbers = (*_NUMBERS, *_HUGE) if huge else _NUMBERS
        texts = [json.dumps(each, ensure_ascii=self.random.random() < 0.5) for each in (*_TEXTS, *[""] * empty)]
        inner = {"x": self.pick(numbers), "y": self.pick(texts), "z": _written({"w": self.pick(("true", "false"))})}
        members = [self.pick((*numbers, "null")) for _ in range(self.random.randrange(4))]
        values = {
            "a": self.pick(numbers),
            "b": self.pick(numbers),
            "g": self.pick(_SMALL),
            "n": self.pick(texts),
            "k": json.dumps(self.pick("xyz")),
            "ok": self.pick(("true", "false")),
            "o": _written(self._holes(inner)),
            "l": f"[{', '.join(members)}]",
        }
        return _written({"id": str(number), "t": self._time(at, dated), **self._holes(values)})

    def _other(self, number: int, at: int, dated: bool) -> str:
        values = {"k": json.dumps(self.pick("xyz")), "a": self.pick(_NUMBERS)}
        return _written({"id": str(number), "t": self._time(at, dated), **self._holes(values)})

    def _row(self) -> str:
        values = {"k": json.dumps(self.pick("xyz")), "a": self.pick(_NUMBERS), "n": json.dumps(self.pick(_TEXTS))}
        return _written({"id": str(self.random.randrange(100)), **self._holes(values)})

    def _holes(self, values: dict[str, str]) -> dict[str, str]:
        """Some of the values, and `null` for some."""
        found = {}
        for name, each in values.items():
            chance = self.random.random()
            if chance < 0.85:
                found[name] = each if chance < 0.7 else "null"
        return found

    # --- expressions --------------------------------------------------------------------------------------

    def number(self, depth: int = 2, *, quotients: bool = False) -> Expression:
        """A number; only with `quotients` it may be infinite."""
        if depth == 0 or self.random.random() < 0.4:
            return self.pick(NUMBERS)
        less = depth - 1
        match self.random.randrange(8):
            case 0 | 1 | 2:
                return self._computed(less, quotients)
            case 3:
                return Applied("abs", self.pick(NUMBERS))
            case 4:
                return self.pick(
                    (Applied("length", self.text(less)), Applied("position", self.text(less), (self.word(),)))
                )
            case 5:
                return Choice(
                    self.condition(less), self.pick(NUMBERS), self.pick((None, self.constant(), self.pick(NUMBERS)))
                )
            case 6:
                return FirstOf((self.pick(NUMBERS), self.pick((self.pick(NUMBERS), self.constant()))))
            case _:
                return Unless(self.pick(NUMBERS), self.constant())

    def _computed(self, depth: int, quotients: bool) -> Expression:
        left: Expression = self.pick(NUMBERS)
        if depth and self.random.random() < 0.4:
            left = self._computed(depth - 1, quotients)
        right = self.pick((self.pick(NUMBERS), self.constant()))
        return Computed(self.pick(_SIGNS if quotients else _SIGNS[:3]), left, right)

    def constant(self) -> Constant:
        return Constant(self.pick(_CONSTANTS), "number")

    def word(self) -> Constant:
        return Constant(self.pick(_WORDS), "text")

    def text(self, depth: int = 2) -> Expression:
        if depth == 0 or self.random.random() < 0.4:
            return self.pick(TEXTS)
        less = depth - 1
        match self.random.randrange(8):
            case 0 | 1:
                return Applied(self.pick(("upper", "lower", "trim")), self.text(less))
            case 2:
                bounds = (self.pick("0123"), self.pick("0123"))
                return Applied("substring", self.text(less), tuple(Constant(each, "number") for each in bounds))
            case 3:
                return Applied("replace", self.text(less), (self.word(), self.word()))
            case 4:
                return Joined((self.text(less), self.pick((self.word(), self.text(0)))))
            case 5:
                return Choice(self.condition(less), self.text(less), self.pick((None, self.word())))
            case 6:
                return FirstOf((self.pick(TEXTS), self.pick((self.pick(TEXTS), self.word()))))
            case _:
                return Unless(self.pick(TEXTS), self.word())

    def condition(self, depth: int = 2) -> Condition:
        less = max(depth - 1, 0)
        if depth and self.random.random() < 0.5:
            match self.random.randrange(4):
                case 0 | 1:
                    several = tuple(self.condition(less) for _ in range(self.pick((2, 2, 3))))
                    return All(several) if self.random.random() < 0.5 else Either(several)
                case _:
                    return Negated(self.condition(less))
        match self.random.randrange(9):
            case 0 | 1:
                other = self.pick((self.constant(), self.number(less, quotients=True), self.pick(NUMBERS)))
                return Compared(self.pick(_OPERATORS), self.number(less, quotients=True), other)
            case 2:
                return Compared(self.pick(_OPERATORS), self.text(less), self.pick((self.word(), self.text(less))))
            case 3:
                return self.pick(TRUTHS)
            case 4:
                return Missing(self.pick((*NUMBERS, *TEXTS, *TRUTHS, self.number(less), self.text(less))))
            case 5:
                return Within(self.pick(NUMBERS), self.constant(), self.pick((self.constant(), self.pick(NUMBERS))))
            case 6:
                return Within(self.text(less), self.word(), self.word())
            case 7:
                if self.random.random() < 0.5:
                    return Among(self.pick(NUMBERS), tuple({self.constant(): None for _ in range(2)}))
                return Among(self.text(less), tuple({self.word(): None for _ in range(3)}))
            case _:
                return Like(self.text(less), self._pattern())

    def _pattern(self) -> tuple[str | None, ...]:
        found: list[str | None] = []
        for _ in range(self.random.randrange(1, 4)):
            each = self.pick((None, "", self.pick(("a", "b", "x", "%", "_", "é", "c", "."))))
            if not (each is None and found and found[-1] is None) and not (each and found and found[-1]):
                found.append(each)
        return tuple(found)

    def column(self, *, quotients: bool = True) -> Expression:
        match self.random.randrange(10):
            case 0 | 1:
                return self.pick((*NUMBERS, *TEXTS, *TRUTHS))
            case 2:
                return self.pick(WHOLE)
            case 3 | 4 | 5:
                return self.number(quotients=quotients)
            case 6 | 7:
                return self.text()
            case _:
                return self.condition()

    def aggregate(self) -> Aggregate:
        where = self.condition(1) if self.random.random() < 0.2 else None
        match self.random.randrange(8):
            case 0:
                return Aggregate("count", where=where)
            case 1:
                return Aggregate("count", self.pick((*NUMBERS, *TEXTS, *TRUTHS, self.number(1))), where=where)
            case 2:
                return Aggregate("count", self.pick((*NUMBERS, *TEXTS)), distinct=True, where=where)
            case 3:
                return Aggregate(self.pick(("min", "max")), self.pick(TEXTS), where=where)
            case _:
                argument = self.pick((*NUMBERS, self._computed(1, quotients=False)))
                return Aggregate(self.pick(("sum", "avg", "min", "max")), argument, where=where)

    # --- questions ----------------------------------------------------------------------------------------

    def maybe(self, depth: int = 2) -> Condition | None:
        return self.condition(depth) if self.random.random() < 0.7 else None

    def window(self) -> Window:
        if self.random.random() < 0.25:
            return Window(gap=self.pick((4, 7, 12)), key=self.pick((None, "k", "k")))
        size = self.pick((5, 10, 16, 30))
        return Window(size, self.pick((size, size, 3, 5, 10)))

    def questions(self) -> list[Question]:
        """One of each form, and some more."""
        return [
            *(self.rows() for _ in range(3)),
            self.in_windows(),
            *(self.groups(self.window()) for _ in range(3)),
            self.groups(None),
            self.pairs(),
            self.lookups(),
            United(self.rows(), self.rows()),
        ]

    def rows(self) -> Rows:
        return Rows((ID, self.column(), self.column()), self.maybe(3))

    def in_windows(self) -> Rows:
        """Without quotients: whether rows beyond the limit are computed is nobody's business."""
        among = (*NUMBERS, *TEXTS, self.text(1), Applied("abs", self.pick(NUMBERS)))
        keys = [Key(self.pick(among), *self._turned()) for _ in range(self.pick((1, 1, 2)))]
        limit = self.pick((None, 1, 2, 5))
        offset = self.pick((0, 0, 1)) if limit is not None else 0
        columns = (ID, self._tame(), self._tame())
        return Rows(columns, self.maybe(1), self.window(), (*keys, Key(ID, False, None)), limit, offset)

    def _tame(self) -> Expression:
        """A column that is never infinite."""
        return self.pick((*NUMBERS, *TEXTS, *TRUTHS, *WHOLE, self.text(1), self.condition(1)))

    def _turned(self) -> tuple[bool, Any]:
        return self.random.random() < 0.5, self.pick((None, None, "first", "last"))

    def groups(self, window: Window | None) -> Groups:
        keys: tuple[Expression, ...] = ()
        if window is None or self.random.random() < 0.75:
            among: list[Expression] = [
                Field(("k",), "text"),
                Field(("g",), "number"),
                *TEXTS,
                *TRUTHS,
                NUMBERS[0],
                Applied("upper", TEXTS[0]),
            ]
            keys = tuple({self.pick(among): None for _ in range(self.pick((1, 1, 2)))})
        columns: tuple[Expression, ...] = (*keys, *(self.aggregate() for _ in range(self.pick((1, 2, 3)))))
        if window is not None:
            columns += (Bound(self.pick(("start", "end"))),)
        having: Condition | None = None
        if self.random.random() < 0.4:
            tests = [self._having() for _ in range(self.pick((1, 2)))]
            having = tests[0] if len(tests) == 1 else self.pick((All, Either))(tuple(tests))
            having = Negated(having) if self.random.random() < 0.3 else having
        return Groups(keys, columns, self.maybe(1), having, window)

    def _having(self) -> Condition:
        of = self.pick(
            (Aggregate("count"), Aggregate("count", NUMBERS[0]), Aggregate("sum", NUMBERS[0]), self.aggregate())
        )
        if type_of(of) == "text":
            return Compared(self.pick(_OPERATORS), of, self.word())
        return Compared(self.pick(_OPERATORS), of, self.constant())

    def pairs(self) -> Pairs:
        columns = (ID, Field(("id",), "number", table="u"), self.column(), self._between("u"))
        return Pairs(columns, self._joined_where("u"), self.pick((0, 5, 10, 20)))

    def lookups(self) -> Lookups:
        columns = (ID, Field(("id",), "number", table="p"), self.column(), self._between("p"))
        return Lookups(columns, self._joined_where("p"), self.random.random() < 0.4)

    def _between(self, table: str) -> Expression:
        """A column made of both sides."""
        other = Field(("a",), "number", table=table)
        return self.pick(
            (other, Computed(self.pick(_SIGNS[:3]), self.pick(NUMBERS), other), FirstOf((other, NUMBERS[0])))
        )

    def _joined_where(self, table: str) -> Condition | None:
        other = Field(("a",), "number", table=table)
        across = Compared(self.pick(_OPERATORS), self.pick(NUMBERS), other)
        return self.pick((None, across, self.condition(1), Either((across, Missing(other)))))


def _written(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {each}" for name, each in values.items()) + "}"


# --- what paths cannot ask --------------------------------------------------------------------------------------------


def by_paths(question: Question, inputs: Inputs) -> bool:
    """Whether a question means the same with paths.

    An array is its members to a path, so one that is given back as a whole is another thing than `null` with dots only;
    and an empty text is the same as `null`, an element without text (LAWS 7.1).
    A key of a group and a value that is counted once are made numbers there, doubles: two numbers may be one, and one
    beyond all doubles can be told only as it is spelled.
    """
    used = [each for each in parts(question) if isinstance(each, Field)]
    if any(each.names == ("l",) and each.type == "any" for each in used):
        return False
    texts = {each for each in used if each.type == "text" and each.table == "s"}
    records = inputs.records(None).s
    told_apart = [each.argument for each in parts(question) if isinstance(each, Aggregate) and each.distinct]
    told_apart += question.keys if isinstance(question, Groups) else ()
    numbers = {each for each in parts(tuple(told_apart)) if isinstance(each, Field) and each.type == "number"}
    found = {value(each, [{"s": record}]) for each in numbers for record in records}
    doubles = {Fraction(each): float(each) for each in found if isinstance(each, Digits)}
    if len(set(doubles.values())) < len(doubles) or not all(map(math.isfinite, doubles.values())):
        return False
    return not any(value(each, [{"s": record}]) == "" for each in texts for record in records)


def as_xml(lines: Iterable[str]) -> str:
    """Records as elements, for a judge that knows no JSON."""
    return f"<root>{''.join(_element('item', read(line)) for line in lines)}</root>"


def _element(name: str, found: Any) -> str:
    match found:
        case None:
            return f"<{name}/>"
        case dict():
            return f"<{name}>{''.join(_element(key, each) for key, each in found.items())}</{name}>"
        case list():
            return "".join(_element(name, each) for each in found)
        case bool():
            return f"<{name}>{str(found).lower()}</{name}>"
        case Digits() | str():
            return f"<{name}>{escape(found)}</{name}>"
    raise AssertionError(found)
