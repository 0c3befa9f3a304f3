"""Partials as text: the same for shards, peers and disk.

A partial is written by its letters (`partial.py`): `c` a whole number, `s` a decimal, `l` and `g` a double; these are
empty where there are no values.
-0 and 0 are equal and the earlier is the answer, so a double of value 0 comes with its place in the stream.
`x` says that INF or NaN is among the values.
Between peers the letters are attributes of an element (`branch/remote/lines.py`); elsewhere they are JSON, with fields
that peers do not exchange: exact values before rounding, sums of fractions (`r`), `q`, `v`, and the failure (`e`).
Times (`t`) are a text in both; strings and booleans (`o`), which only lookups find, are JSON, and peers exchange none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from anabranch.aggregates.partial import COLUMNS, Failure, Partial, Ranked, TextMoment, TextMoments, TypedValues
from anabranch.values.instants import moment_seconds
from anabranch.values.numbers import read_fraction, write_fraction

_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.([0-9]+))?\Z", re.ASCII)
_RANK = re.compile(r"(-?(?:[0-9.]+(?:e[+-]?[0-9]+)?|inf))(?: ([0-9]+))?(?: (-?[0-9a-f]+/[0-9a-f]+))?\Z", re.ASCII)
_NUMBER = re.compile(r"(0|[1-9][0-9]*)\Z", re.ASCII)


# --- letters ----------------------------------------------------------------------------------------------------


def partial_texts(known: Partial, letters: str, *, exactly: bool = False) -> dict[str, str]:
    """Some letters of a partial as texts, and `x` where needed."""
    texts = {
        "c": str(known.count),
        "s": sum_text(known.count, known.total, known.places),
        "l": rank_text(known.least, exactly=exactly),
        "g": rank_text(known.greatest, exactly=exactly),
    }
    return {each: texts[each] for each in letters} | ({"x": str(known.special)} if known.special else {})


def read_texts(texts: Mapping[str, str]) -> Partial:
    """The partial of these texts; ValueError where one is malformed."""
    total, places = _read_sum(texts.get("s", ""))
    has_values = any(texts.get(each) for each in COLUMNS)  # without a count, only their existence matters
    return Partial(
        read_number(texts["c"]) if "c" in texts else int(has_values),
        total,
        places,
        read_number(texts.get("x", "0")),
        _read_rank(texts.get("l", "")),
        _read_rank(texts.get("g", "")),
    )


def sum_text(count: int, total: int, places: int) -> str:
    """The sum `total` of `count` values, in units of 10**-places, without trailing zeros; empty for no values."""
    if not count:
        return ""  # the sum of no values is an integer, any other a double
    if not places:
        return str(total)
    digits = str(abs(total)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
    return f"-{text}" if total < 0 else text


def rank_text(found: Ranked | None, *, exactly: bool = False) -> str:
    """An extreme value; where an equal one may be written otherwise, with its place."""
    if found is None:
        return ""
    exact = f" {write_fraction(found.exact)}" if exactly and found.exact is not None else ""
    return repr(found.value) if found.value and not exactly else f"{found.value!r} {found.order}{exact}"


def read_number(text: str | None) -> int:
    """A whole number."""
    if text is None or not _NUMBER.match(text):
        raise ValueError("it has no number")
    return int(text)


def _read_sum(text: str) -> tuple[int, int]:
    found = _DECIMAL.match(text or "0")
    if found is None:
        raise ValueError(f"'{text}' is no sum")
    whole, behind = found.groups("")
    return int(whole + behind), len(behind)


def _read_rank(text: str) -> Ranked | None:
    if not text:
        return None
    found = _RANK.match(text)
    if found is None:
        raise ValueError(f"'{text}' is no value")
    return Ranked(float(found[1]), int(found[2] or 0), None if found[3] is None else read_fraction(found[3]))


def moments_text(known: TextMoments) -> str:
    """The dateTimes as text: their number, and the first and the last, each behind its place."""
    return f"{known.values} {known.first.order} {known.first.text.strip()} {known.last.order} {known.last.text.strip()}"


def read_moments(text: str) -> TextMoments:
    """The dateTimes from `moments_text`."""
    count, *bounds = text.split(" ")
    if len(bounds) != 4:
        raise ValueError("it tells of no first and last time")
    return TextMoments(read_number(count), _read_moment(*bounds[:2]), _read_moment(*bounds[2:]))


def _read_moment(order: str, text: str) -> TextMoment:
    seconds = moment_seconds(text)
    if seconds is None:
        raise ValueError(f"'{text}' is no time")
    return TextMoment(seconds, read_number(order), text)


# --- JSON -------------------------------------------------------------------------------------------------------


def partial_to_json(known: Partial) -> dict[str, Any]:
    """A partial as a JSON value."""
    found: dict[str, Any] = dict(partial_texts(known, COLUMNS, exactly=True))
    more = {"r": known.rest, "q": known.squares}
    found |= {letter: write_fraction(each) for letter, each in more.items() if each}
    if known.values:
        found["v"] = [[number_text(each), times] for each, times in known.values.items()]
    if known.failure is not None:
        found["e"] = list(known.failure)
    if known.moments is not None:
        found["t"] = moments_text(known.moments)
    if known.typed is not None:
        found["o"] = list(known.typed)
    return found


def partial_from_json(value: Mapping[str, Any] | Sequence[Any]) -> Partial:
    """The partial from its JSON; earlier releases wrote a list."""
    if isinstance(value, Sequence):
        return _from_list(*value)
    plain = read_texts({letter: text for letter, text in value.items() if letter in f"{COLUMNS}x"})
    values = {read_number_text(text): times for text, times in value.get("v", ())}
    failure = Failure.read(value["e"]) if "e" in value else None
    rest, squares = (read_fraction(value.get(each, "0/1")) for each in "rq")
    moments = read_moments(value["t"]) if "t" in value else None
    typed = TypedValues(*value["o"]) if "o" in value else None
    return replace(plain, failure=failure, rest=rest, squares=squares, values=values, moments=moments, typed=typed)


def _from_list(
    count: int, total: str, places: int, special: int, least: Any, greatest: Any, failure: Any, rest: str
) -> Partial:
    def rank(value: float | str, order: int, exact: str | None) -> Ranked:
        double = float.fromhex(value) if isinstance(value, str) else value
        return Ranked(double, order, None if exact is None else read_fraction(exact))

    low, high = (each and rank(*each) for each in (least, greatest))
    whole = int(total.partition("/")[0], 16)
    return Partial(count, whole, places, special, low, high, failure and Failure.read(failure), read_fraction(rest))


def number_text(number: Fraction | float) -> str:
    """An exact number, or INF or NaN."""
    return str(number) if isinstance(number, float) else write_fraction(number)


def read_number_text(text: str) -> Fraction | float:
    """The number from `number_text`."""
    return read_fraction(text) if "/" in text else float(text)
