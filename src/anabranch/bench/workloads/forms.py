"""Twenty-three everyday forms of a query over readings (`readings.py`), each for us and for plain Spark.

A form has constants: an interval or a word.
With its first constants it selects about a fifth of the readings.
A thousand others with different constants share the same fifth out: the interval is cut into a thousand, and in the
place of `gold-` comes `gold-000` to `gold-999`; so they give as many answers together as the one.
The words of `text_equality` are a fifth of another kind, `gold` alone for the one.
A mixture has as many of each form but for those about times; a word is a five-thousandth of the readings, and the
intervals share out the rest of the answers, each form at a place of its own.

In the texts `%(t)s` stands for the place of a leaf, which depends on how readings are written, and `%(low)s`,
`%(high)s`, `%(word)s` and `%(length)s` for constants.

With dots a form gives objects: what stands in `<hit>` becomes the value of a key each (`as_object`).
Forms that have no spelling with dots are those at any depth, and with positions other than a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from anabranch.bench.workloads.photons import Rows
from anabranch.bench.workloads.readings import DAY, METALS, ReadingKind, WireFormat, date_time


def _in_digits(value: Decimal) -> str:
    return f"{value.quantize(Decimal('0.0001')).normalize():f}"


def _in_whole(value: Decimal) -> str:
    return f"{value:.0f}"


def _as_date_time(seconds: Decimal) -> str:
    return date_time(int((seconds - DAY) * 1_000))


@dataclass(frozen=True, slots=True)
class Interval:
    """From a value, up to another one."""

    low: Decimal
    high: Decimal
    spell: Callable[[Decimal], str] = _in_digits
    """How a bound is written in a query."""

    def parts(self, count: int, share: float, place: float) -> list[dict[str, str]]:
        """`count` adjacent intervals that make up a share of this one, at a place from its begin (0) to its end (1)."""
        width = self.high - self.low
        begin, step = self.low + width * Decimal((1 - share) * place), width * Decimal(share) / count
        bounds = [self.spell(begin + step * each) for each in range(count + 1)]
        return [{"low": low, "high": high} for low, high in pairwise(bounds)]

    @property
    def first(self) -> dict[str, str]:
        return {"low": self.spell(self.low), "high": self.spell(self.high)}


@dataclass(frozen=True, slots=True)
class CodeWord:
    """A word, whose readings can be divided among longer words that begin with it."""

    text: str

    def parts(self, count: int, share: float, place: float) -> list[dict[str, str]]:
        """`count` words with digits behind a metal, a thousand for each; share and place do not matter."""
        return [CodeWord(f"{METALS[each // 1_000]}-{each % 1_000:03}").first for each in range(count)]

    @property
    def first(self) -> dict[str, str]:
        return {"word": self.text, "length": f"{len(self.text)}"}


_HOT = Interval(Decimal(80), Decimal(100))
_WARM = Interval(Decimal(60), Decimal(70))
_EVENING = Interval(Decimal(DAY + 60_000), Decimal(DAY + 77_280), _as_date_time)
"""A fifth of the day."""


def _counted(places: int) -> Interval:
    """The evening, counted from 1970 in units of this many decimal places of a second."""
    return Interval(_EVENING.low.scaleb(places), _EVENING.high.scaleb(places), _in_whole)


@dataclass(frozen=True, slots=True)
class QueryForm:
    """A form, for us as clauses behind `for $p in ...`, for Spark as a condition and columns."""

    name: str
    clauses: str
    result: str
    condition: str
    columns: str
    constants: Interval | CodeWord = _HOT
    readings: ReadingKind = "plain"
    """The kind of readings that it needs; a form for plain ones also works on repeated ones."""
    unnested: bool = False
    """Whether Spark has a row for each repeated child."""
    dotted: str = ""
    """The clauses with dots, where more than the places of leaves is different."""

    def query(self, wire: WireFormat, constants: Mapping[str, str]) -> str:
        """The query with some constants."""
        if wire.dots:
            clauses, result = self.dotted or self.clauses, as_object(self.result)
            body = f"{clauses} return {result}" % {**wire.paths(), **constants}
            return f'for $p in stream("readings")/readings/reading {body}'
        body = f"{self.clauses} return {self.result}" % {**wire.paths(), **constants}
        return f'<hits>{{ for $p in stream("readings")/readings/reading {body} }}</hits>'

    def is_written_for(self, wire: WireFormat) -> bool:
        """Whether the form has a spelling there."""
        known = {**wire.paths(), **self.constants.first}
        return all(place in known for place in _PLACE.findall(f"{self.clauses} {self.result}")) and not (
            wire.dots and "position()" in self.result
        )

    def one(self, wire: WireFormat) -> dict[str, str]:
        """The query with its first constants, by name."""
        return {"one": self.query(wire, self.constants.first)}

    def many(self, wire: WireFormat, count: int, share: float = 1, place: float = 0) -> dict[str, str]:
        """`count` queries with different constants, which together select what the one does, or a share of it."""
        parts = self.constants.parts(count, share, place)
        return {f"{self.name}-{number}": self.query(wire, each) for number, each in enumerate(parts)}

    def in_spark(self, wire: WireFormat, lines: Rows) -> Rows:
        """The query with its first constants in plain Spark, over lines of text."""
        rows = wire.read(lines, self.readings)
        if self.unnested:
            rows = rows.selectExpr(wire.columns()["id"], "explode(r) as r")
        known = {**wire.columns(), "prefix": wire.prefix, **self.constants.first}
        return rows.where(self.condition % known).selectExpr(*(each % known for each in self.columns.split("; ")))


_PLACE = re.compile(r"%\((\w+)\)s")
_HITS = re.compile(r"<hit>(.*?)</hit>")
_ENTRIES = re.compile(r"<(\w+)>(?:\{ ([^{}]+) \}|([^<>{}]*))</\1>|\{ ([^{}]+) \}")


def as_object(result: str) -> str:
    """A result as an object: elements by their names, and what is copied by that of the leaf."""
    return _HITS.sub(lambda hit: f"{{ {', '.join(_entry(*each) for each in _ENTRIES.findall(hit[1]))} }}", result)


def _entry(name: str, made: str, text: str, copied: str) -> str:
    if copied:
        (name,) = _PLACE.findall(copied) or [copied.rpartition("/")[2]]
    value = made or copied.replace("/", ".") or f'"{text}"'
    return f'"{name}": {value}'


_PLAIN = "where %(t)s >= %(low)s and %(t)s < %(high)s"
_SQL_PLAIN = "%(t)s >= %(low)s and %(t)s < %(high)s"
_HIT, _HIT_COLUMNS = "<hit>{ %(id)s }{ %(t)s }</hit>", "%(id)s as id; %(t)s as t"
_CODE, _CODE_COLUMNS = "<hit>{ %(id)s }{ %(code)s }</hit>", "%(id)s as id; %(code)s as code"
_GOLD = CodeWord("gold-")

FORMS = (
    QueryForm("plain", _PLAIN, _HIT, _SQL_PLAIN, _HIT_COLUMNS),
    QueryForm("subtree", _PLAIN, "<hit>{ %(id)s }{ $p/d }</hit>", _SQL_PLAIN, "%(id)s as id; d"),
    QueryForm(
        "arithmetic_condition",
        "where %(t)s * 2 >= %(low)s and %(t)s * 2 < %(high)s",
        _HIT,
        "%(t)s * 2 >= %(low)s and %(t)s * 2 < %(high)s",
        _HIT_COLUMNS,
        Interval(Decimal(160), Decimal(200)),
    ),
    QueryForm(
        "arithmetic_result",
        _PLAIN,
        "<hit>{ %(id)s }<c>{ (%(t)s - 32) * 5 div 9 }</c></hit>",
        _SQL_PLAIN,
        "%(id)s as id; (%(t)s - 32) * 5 / 9 as c",
    ),
    QueryForm(
        "path_against_path",
        "where %(t)s >= %(u)s + %(low)s and %(t)s < %(u)s + %(high)s",
        _HIT,
        "%(t)s >= %(u)s + %(low)s and %(t)s < %(u)s + %(high)s",
        _HIT_COLUMNS,
        Interval(Decimal(10), Decimal(35)),
    ),
    QueryForm(
        "text_equality",
        'where %(code)s = "%(word)s"',
        _CODE,
        "%(code)s = '%(word)s'",
        _CODE_COLUMNS,
        CodeWord("gold"),
    ),
    QueryForm(
        "contains",
        'where contains(%(name)s, "%(word)s")',
        _CODE,
        "contains(%(name)s, '%(word)s')",
        _CODE_COLUMNS,
        _GOLD,
    ),
    QueryForm(
        "starts_with",
        'where starts-with(%(code)s, "%(word)s")',
        _CODE,
        "startswith(%(code)s, '%(word)s')",
        _CODE_COLUMNS,
        _GOLD,
    ),
    QueryForm(
        "substring_and_length",
        'where substring(%(code)s, 1, %(length)s) = "%(word)s" and string-length(%(name)s) >= 18',
        "<hit>{ %(id)s }<n>{ string-length(%(name)s) }</n></hit>",
        "substring(%(code)s, 1, %(length)s) = '%(word)s' and length(%(name)s) >= 18",
        "%(id)s as id; length(%(name)s) as n",
        _GOLD,
    ),
    QueryForm(
        "let",
        "let $c := (%(t)s - 32) * 5 div 9 where $c >= %(low)s and $c < %(high)s",
        "<hit>{ %(id)s }<c>{ $c }</c></hit>",
        "(%(t)s - 32) * 5 / 9 >= %(low)s and (%(t)s - 32) * 5 / 9 < %(high)s",
        "%(id)s as id; (%(t)s - 32) * 5 / 9 as c",
        Interval(Decimal(26), Decimal(37)),
    ),
    QueryForm(
        "if_else",
        _PLAIN,
        "if (%(u)s >= 50) then <hit>{ %(id)s }{ %(t)s }<k>high</k></hit> else <hit>{ %(id)s }{ %(u)s }<k>low</k></hit>",
        _SQL_PLAIN,
        "%(id)s as id; if(%(u)s >= 50, %(t)s, %(u)s) as value; if(%(u)s >= 50, 'high', 'low') as k",
    ),
    QueryForm(
        "quantifier",
        "where some $v in %(every_v)s satisfies ($v >= %(low)s and $v < %(high)s)",
        _HIT,
        "exists(r, each -> each.%(prefix)sv >= %(low)s and each.%(prefix)sv < %(high)s)",
        _HIT_COLUMNS,
        readings="repeated",
    ),
    QueryForm(
        "descendants",
        "where %(any_t)s >= %(low)s and %(any_t)s < %(high)s",
        "<hit>{ %(id)s }{ %(any_t)s }</hit>",
        _SQL_PLAIN,
        _HIT_COLUMNS,
    ),
    QueryForm(
        "nested_for",
        "for $r in $p/r where %(v)s >= %(low)s and %(v)s < %(high)s",
        "<hit>{ %(id)s }{ %(v)s }</hit>",
        "%(v)s >= %(low)s and %(v)s < %(high)s",
        "%(id)s as id; %(v)s as v",
        _WARM,
        readings="repeated",
        unnested=True,
        dotted="for $r in $p.r[] where %(v)s >= %(low)s and %(v)s < %(high)s",
    ),
    QueryForm(
        "time",
        'where %(ts)s >= xs:dateTime("%(low)s") and %(ts)s < xs:dateTime("%(high)s")',
        "<hit>{ %(id)s }{ %(ts)s }</hit>",
        "cast(%(ts)s as timestamp) >= timestamp'%(low)s' and cast(%(ts)s as timestamp) < timestamp'%(high)s'",
        "%(id)s as id; %(ts)s as ts",
        _EVENING,
        "timed",
        dotted='where xs:dateTime(%(ts)s) >= xs:dateTime("%(low)s") and xs:dateTime(%(ts)s) < xs:dateTime("%(high)s")',
    ),
    QueryForm(
        "time_as_text",
        'where %(ts)s >= "%(low)s" and %(ts)s < "%(high)s"',
        "<hit>{ %(id)s }{ %(ts)s }</hit>",
        "%(ts)s >= '%(low)s' and %(ts)s < '%(high)s'",
        "%(id)s as id; %(ts)s as ts",
        _EVENING,
        "timed",
    ),
    QueryForm(
        "time_against_time",
        "where %(ts)s < %(until)s and %(t)s >= %(low)s and %(t)s < %(high)s",
        "<hit>{ %(id)s }{ %(ts)s }{ %(until)s }</hit>",
        "cast(%(ts)s as timestamp) < cast(%(until)s as timestamp) and %(t)s >= %(low)s and %(t)s < %(high)s",
        "%(id)s as id; %(ts)s as ts; %(until)s as until",
        Interval(Decimal(50), Decimal(90)),
        "timed",
    ),
    *(
        QueryForm(
            f"epoch_{unit}",
            f"where %({unit})s >= %(low)s and %({unit})s < %(high)s",
            f"<hit>{{ %(id)s }}{{ %({unit})s }}</hit>",
            f"%({unit})s >= %(low)s and %({unit})s < %(high)s",
            f"%(id)s as id; %({unit})s as {unit}",
            _counted(places),
            "timed",
        )
        for unit, places in (("ms", 3), ("us", 6), ("ns", 9))
    ),
    QueryForm(
        "first_position",
        "where %(first_v)s >= %(low)s and %(first_v)s < %(high)s",
        "<hit>{ %(id)s }{ %(first_v)s }</hit>",
        "r[0].%(prefix)sv >= %(low)s and r[0].%(prefix)sv < %(high)s",
        "%(id)s as id; r[0].%(prefix)sv as v",
        readings="repeated",
    ),
    QueryForm(
        "last_position",
        "where %(last_v)s >= %(low)s and %(last_v)s < %(high)s",
        "<hit>{ %(id)s }{ %(last_v)s }</hit>",
        "element_at(r, -1).%(prefix)sv >= %(low)s and element_at(r, -1).%(prefix)sv < %(high)s",
        "%(id)s as id; element_at(r, -1).%(prefix)sv as v",
        Interval(Decimal(62), Decimal(80)),
        "repeated",
    ),
    QueryForm(
        "leading_positions",
        "where some $v in %(leading_v)s satisfies ($v >= %(low)s and $v < %(high)s)",
        "<hit>{ %(id)s }{ $p/r[position() <= 2] }</hit>",
        "exists(slice(r, 1, 2), each -> each.%(prefix)sv >= %(low)s and each.%(prefix)sv < %(high)s)",
        "%(id)s as id; slice(r, 1, 2) as r",
        readings="repeated",
    ),
)
MIXED = tuple(form for form in FORMS if form.readings != "timed")
"""The forms that work on the same, repeated, readings."""


_FORM_SHARE, _WORD_SHARE = 0.2, 0.0002
"""The shares of the readings that the first constants select, and that a word with its digits selects."""


@dataclass(frozen=True, slots=True)
class FormShare:
    """The part of a mixture that is of one form: `count` queries with different constants."""

    form: QueryForm
    count: int
    share: float
    place: float

    def queries(self, wire: WireFormat) -> dict[str, str]:
        """The queries of this part, by name."""
        return self.form.many(wire, self.count, self.share, self.place)

    def summary(self, wire: WireFormat, codes: Collection[str]) -> list[str]:
        """A few queries that select the same readings as all of them, among readings with these codes."""
        if isinstance(self.form.constants, CodeWord):
            return [each for each in self.queries(wire).values() if any(f'"{code}"' in each for code in codes)]
        return list(self.form.many(wire, 1, self.share, self.place).values())


def mixture(count: int, answers: float) -> list[FormShare]:
    """`count` subscriptions of these forms, which together give about `answers` answers for a reading."""
    of_each, more = divmod(count, len(MIXED))
    words = sum(isinstance(form.constants, CodeWord) for form in MIXED)
    share = (answers - words * of_each * _WORD_SHARE) / (_FORM_SHARE * (len(MIXED) - words))
    return [
        FormShare(form, of_each + (number < more), share, number / (len(MIXED) - 1))
        for number, form in enumerate(MIXED)
    ]
