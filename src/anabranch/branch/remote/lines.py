"""The lines of sent windows: items of a stream, one for each window, and marks between them.

    <from n="3"/> <w n="7"><v c="3" s="4.5"/><v l="-0.0 12" g="2.5"/></w> <reached n="9"/> <reached/> <ended>...</ended>
    <event>...</event>

A window has its number, which is the same everywhere, and for each path of the *layout* an element with its aggregates,
by letters (`aggregates/written.py`).
`e` says why there is no value (LAWS 2.4).

Windows come by ascending numbers, when they are complete, and only those with an item that are asked for.
So `reached` says that all windows before a number have come, and without a number that all have.
`ended` says that no window comes any more, and why.
`event` is an accent, a punctuation or a doubt of the stream, as logs have it: it stands behind the windows that were
complete before it, and readers follow it as if they read the stream (LAWS 4).
Values are in the units of the stream's beginning, which is that of all readers.
`from` comes once, before all windows, and gives the first complete one (LAWS 3.6).
Readers and makers of windows begin together: an open window is one partial sum already, and a later reader would miss
its first items.

A window is sent completely or not at all.
Its values decide whether it is sent, as the evaluator would compute them, where that is simple; where it is not, or
where a value has failed, the window is sent: the reader tests it again, and a superfluous window changes nothing, while
a missing one would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.partial import COLUMNS, Failure, ItemAt, Partial
from anabranch.aggregates.written import moments_text, partial_texts, read_moments, read_number, read_texts
from anabranch.algebra.accents.events import Announced
from anabranch.branch.panes.results import AggregateComparison, AggregateValue, NumberLiteral, Test
from anabranch.columnar.panes.kernels import HALF, LOW, Statistics
from anabranch.columnar.panes.rows import Rows
from anabranch.columnar.scan.kernels import Indices
from anabranch.errors import AnabranchError
from anabranch.language.windows.aggregates import AggregateCall
from anabranch.logic import EVERYTHING, And, Or
from anabranch.predicate import Compare, Operator, Predicate, Term
from anabranch.predicate.writing import number_text
from anabranch.sharing.tree import AggregateAnnotation, PropertyTree
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.stream.tree import Element, string_value
from anabranch.values.numbers import read_fraction, write_fraction

EVENT = "<event"
"""The beginning of a line with an event."""
_EXTREME = r"((?:-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]{1,3})?(?: [0-9]{1,17})?)?)"
_PLAIN = {"c": "([0-9]{1,10})", "s": r'((?=[^"]{0,18}")(?:-?[0-9]+(?:\.[0-9]+)?)?)', "l": _EXTREME, "g": _EXTREME}
"""The values that rows of columns can hold, by letter."""


@dataclass(frozen=True, slots=True)
class SentWindow:
    """A complete window."""

    number: int
    partials: tuple[Partial, ...]
    """By path of the layout."""


@dataclass(frozen=True, slots=True)
class FromMark:
    """The first complete window."""

    number: int


@dataclass(frozen=True, slots=True)
class ReachedMark:
    """All windows before a number are complete; without a number, all are."""

    number: int | None


@dataclass(frozen=True, slots=True)
class EndedMark:
    """No more windows come, for a reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class EventMark:
    """An event of the stream that the windows are made of."""

    announced: Announced


Mark: TypeAlias = FromMark | ReachedMark | EndedMark | EventMark


class NoLine(ValueError):
    """An item that is no line."""


# --- writing ----------------------------------------------------------------------------------------------------


def mark_text(mark: Mark) -> str:
    """The line of a mark."""
    match mark:
        case FromMark(number):
            return f'<from n="{number}"/>'
        case ReachedMark(None):
            return "<reached/>"
        case ReachedMark(number):
            return f'<reached n="{number}"/>'
        case EndedMark(reason):
            return f"<ended>{escape_text(reason)}</ended>"
        case EventMark(announced):
            return f"{EVENT}>{escape_text(json.dumps(announced.json))}</event>"


def window_text(number: int, partials: Sequence[Partial], layout: Layout) -> str:
    """The line of a window; its partials are by path of the layout."""
    told = "".join(map(_told_text, partials, layout.fields))
    return f'<w n="{number}">{told}</w>'


def _told_text(known: Partial, fields: str) -> str:
    texts = partial_texts(known, fields, exactly=_is_rounded(known))
    if known.rest and "s" in fields:
        texts["r"] = write_fraction(known.rest)
    text = "<v" + "".join(f' {field}="{each}"' for field, each in texts.items())
    if failure := known.failure:
        code = "" if failure.code is None else f' code="{escape_attribute(failure.code)}"'
        place = f'stage="{failure.stage}" at="{failure.order}"'
        moments = known.moments if known.moments and known.moments.values == known.count else None
        times = "" if moments is None else f' t="{moments_text(moments)}"'
        return f"{text}{times}><e {place}{code}>{escape_text(failure.message)}</e></v>"
    return f"{text}/>"


def _is_rounded(known: Partial) -> bool:
    """Whether an extreme value is that of a unit change, and no double."""
    return any(each is not None and each.exact is not None for each in (known.least, known.greatest))


# --- reading ----------------------------------------------------------------------------------------------------


def plain_line(layout: Layout) -> re.Pattern[bytes]:
    """The pattern of windows with plain numbers only; all fields are groups, after the window's number."""
    told = ("".join(f' {field}="{_PLAIN[field]}"' for field in fields) for fields in layout.fields)
    inside = "".join(f"<v{each}/>" for each in told)
    return re.compile(f'<w n="([0-9]{{1,17}})">{inside}</w>'.encode())


def read_line(item: Element, layout: Layout) -> SentWindow | Mark:
    """The window or mark of an item; NoLine for any other item."""
    number = item.get("n")
    match item.name.local:
        case "w":
            told = [each for each in item.children if isinstance(each, Element)]
            if len(told) != len(layout.fields):
                raise NoLine(f"it tells of {len(told)} paths, and not of {len(layout.fields)}")
            return SentWindow(_number(number), tuple(map(_partial, told, layout.fields)))
        case "from":
            return FromMark(_number(number))
        case "reached":
            return ReachedMark(None if number is None else _number(number))
        case "ended":
            return EndedMark(string_value(item))
        case "event":
            try:
                return EventMark(Announced.from_json(json.loads(string_value(item))))
            except (ValueError, TypeError, AnabranchError) as error:
                raise NoLine(f"it tells no event: {error}") from None
        case other:
            raise NoLine(f"'{other}' is no window")


def _number(text: str | None) -> int:
    try:
        return read_number(text)
    except ValueError as error:
        raise NoLine(error) from None


def _partial(element: Element, fields: str) -> Partial:
    texts = {each: text for each in f"{fields}x" if (text := element.get(each)) is not None}
    if not texts.keys() >= set(fields):
        raise NoLine(f"it does not tell '{fields}'")
    try:
        known = read_texts(texts)
        known = known if (rest := element.get("r")) is None else replace(known, rest=read_fraction(rest))
        moments = None if (times := element.get("t")) is None else read_moments(times)
    except ValueError as error:
        raise NoLine(error) from None
    failures = [_failure(each) for each in element.children if isinstance(each, Element)]
    if not failures:
        return known
    # without a count, it is that of the times, or at least the one value that failed
    count = known.count if "c" in texts else max(known.count, moments.values if moments else failures[0].stage)
    return replace(known, count=count, failure=failures[0], moments=moments)


def _failure(element: Element) -> Failure:
    order, message = _number(element.get("at")), string_value(element)
    return Failure(0 if element.get("stage") == "0" else 1, order, message, element.get("code"))


@dataclass(frozen=True, slots=True)
class Layout:
    """The aggregated paths of sent windows, with their conditions, and the fields of each."""

    places: tuple[str, ...]
    fields: tuple[str, ...]

    @staticmethod
    def of(tree: PropertyTree) -> Layout:
        found: dict[str, str] = {}
        for each in sorted(tree.aggregates, key=_place):
            known = found.get(_place(each), "") + AGGREGATES[each.function].needs
            found[_place(each)] = "".join(field for field in COLUMNS if field in known)
        return Layout(tuple(found), tuple(found.values()))

    def at(self, aggregate: AggregateAnnotation) -> int | None:
        """The index of an aggregate's path; None where its fields are not sufficient."""
        place = _place(aggregate)
        if place not in self.places:
            return None
        number = self.places.index(place)
        return number if set(AGGREGATES[aggregate.function].needs) <= set(self.fields[number]) else None


def _place(aggregate: AggregateAnnotation) -> str:
    """Identifies the values of an aggregate, whatever function is applied to them."""
    return replace(aggregate, function="count").term.input


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent of the counted windows of a query."""

    layout: Layout
    paths: tuple[int, ...]
    """By place in the layout: the number of the aggregated path."""
    test: Test
    """The test of windows that are sent."""

    @staticmethod
    def of(tree: PropertyTree, calls: Sequence[AggregateCall], named: Mapping[str, AggregateAnnotation]) -> Sending:
        """Derive it; `named` are the tree's aggregates by the variables of the calls."""
        layout = Layout.of(tree)
        paths = {layout.at(named[each.variable]): each.path for each in calls}
        names = {each.term: variable for variable, each in named.items()}
        test = Or(tuple(_test(each.selection, names) for each in tree.aggregates))
        return Sending(layout, tuple(paths[each] for each in range(len(layout.places))), test)


def _test(condition: Predicate, names: Mapping[Term, str]) -> Test:
    """A test that holds wherever a condition on values does; weaker where that is not simple."""
    match condition:
        case And(parts):
            return And(tuple(_test(each, names) for each in parts))
        case Or(parts):
            return Or(tuple(_test(each, names) for each in parts))
        case Compare(term, operator, Fraction() as constant) if term in names:
            return _compared(AggregateValue(names[term]), operator, constant)
        case _:
            return EVERYTHING


def _compared(named: AggregateValue, operator: Operator, constant: Fraction) -> Test:
    """The comparison of a value, exactly and in doubles: which of them the query means is not known here."""
    text = number_text(constant)
    if not text.removeprefix("-").replace(".", "").isdigit():
        return EVERYTHING  # no query writes it as a number
    exact = AggregateComparison(operator, named, NumberLiteral([Decimal(text)]))
    double = float(Decimal(text))
    return (
        exact
        if Fraction(double) == constant
        else Or((exact, AggregateComparison(operator, named, NumberLiteral([double]))))
    )


UNKNOWN_ORDER = 1 << 62
"""The stream position of a window whose first item is unknown: behind all others."""


@dataclass(frozen=True, slots=True)
class PlainLines:
    """Windows with plain numbers."""

    at: list[int]
    """Their indices among the lines."""
    numbers: Indices
    rows: Rows
    """One for each, by aggregated path of the query; without places yet."""

    def __len__(self) -> int:
        return len(self.at)

    def told(self, firsts: Sequence[ItemAt], orders: Sequence[int]) -> Rows:
        """The rows with the places of their lines."""
        rows = replace(self.rows, told=tuple(firsts))
        rows.firsts[:], rows.orders[:] = np.arange(len(firsts)), orders
        return rows


class LineReader:
    """Parses the windows of a query."""

    def __init__(self, layout: Layout, places: Sequence[int]) -> None:
        """`places` are the indices in the layout that the query reads."""
        self._places = places
        self._plain = plain_line(layout)
        groups = [(place, field) for place, fields in enumerate(layout.fields) for field in fields]
        self._groups = dict(enumerate(groups, 1))  # by group of the pattern; group 0 is the number
        self._width = len(groups) + 1

    def plain(self, raws: Sequence[bytes]) -> PlainLines:
        """The lines that are windows with plain numbers."""
        found = [(at, match.groups()) for at, raw in enumerate(raws) if (match := self._plain.fullmatch(raw))]
        columns = list(zip(*(groups for _, groups in found), strict=True)) if found else [()] * self._width
        rows = Rows.empty(len(self._places), len(found))
        rows.orders[:] = UNKNOWN_ORDER
        for path, place in enumerate(self._places):
            _fill(rows.known, path, {field: columns[at] for at, (each, field) in self._groups.items() if each == place})
        return PlainLines([at for at, _ in found], np.array(list(map(int, columns[0])), np.int64), rows)


def _fill(known: Statistics, path: int, texts: Mapping[str, Sequence[bytes]]) -> None:
    """Fill in one path from its fields, each by line."""
    if "c" in texts:
        known.counts[path] = list(map(int, texts["c"]))
    else:  # only their existence matters
        known.counts[path] = [any(each) for each in zip(*texts.values(), strict=True)]
    if "s" in texts:
        split = [each.partition(b".") for each in texts["s"]]
        totals = np.array([int(whole + behind or b"0") for whole, _, behind in split], np.int64)
        known.high[path], known.low[path] = totals >> HALF, totals & LOW
        known.places[path] = [len(behind) for _, _, behind in split]
    if "l" in texts:
        known.least[path], known.least_at[path] = _ranks(texts["l"])
    if "g" in texts:
        known.greatest[path], known.greatest_at[path] = _ranks(texts["g"])


def _ranks(texts: Sequence[bytes]) -> tuple[NDArray[np.float64], Indices]:
    split = [each.partition(b" ") for each in texts]
    values = np.array([float(value or b"nan") for value, _, _ in split], np.float64)
    return values, np.array([int(order or b"0") for _, _, order in split], np.int64)
