"""How windows travel: as items of a stream, one for each window, and marks between them.

    <from n="3"/> <w n="7"><v c="3" s="4.5"/><v l="-0.0 12" g="2.5"/></w> <reached n="9"/> <reached/> <ended>...</ended>

A window has its number, by which it is known everywhere, and for each path of the layout an element with what is told
of it: how many values (`c`), their exact sum (`s`), the least and the greatest (`l`, `g`); these are empty where there
are no values.
-0 and 0 are equal and the earlier is the answer, so those come with their place in the stream.
`x` says that INF or NaN is among the values, and `e` why there is no value (LAWS 2.4), or with the code `doubt` why
nobody knows any more what the path means (LAWS 4.5).

Windows come by rising numbers, when they are complete, and only such that hold an item and are asked for.
So `reached` says that all windows before a number have come, and without a number that all have.
`ended` says that no window comes any more, and why: what they are made by is in doubt.
`from` comes once, before all windows, and says which is the first that is whole (LAWS 3.6).
Whoever reads windows has begun together with who makes them: the items of an open window are one sum already, and one
who comes later has seen only some of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.aggregates.partial import Failure, Partial, Ranked
from anabranch.branch.remote.layout import Layout
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.stream.tree import Element, string_value

DOUBT = "doubt"
"""The code of a value whose path is in doubt."""
_NUMBER = re.compile(r"(0|[1-9][0-9]*)\Z", re.ASCII)
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.([0-9]+))?\Z", re.ASCII)
_DOUBLE = re.compile(r"(-?(?:[0-9.]+(?:e[+-]?[0-9]+)?|inf))(?: ([0-9]+))?\Z", re.ASCII)
_EXTREME = r"((?:-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]{1,3})?(?: [0-9]{1,17})?)?)"
_PLAIN = {"c": "([0-9]{1,10})", "s": r'((?=[^"]{0,18}")(?:-?[0-9]+(?:\.[0-9]+)?)?)', "l": _EXTREME, "g": _EXTREME}
"""What rows of columns can hold."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window that is complete."""

    number: int
    partials: tuple[Partial, ...]
    """By path of the layout."""


@dataclass(frozen=True, slots=True)
class From:
    """The first window that is whole."""

    number: int


@dataclass(frozen=True, slots=True)
class Reached:
    """All windows before a number are complete; without one, all."""

    number: int | None


@dataclass(frozen=True, slots=True)
class Ended:
    """No window is made any more, for a reason."""

    reason: str


Mark: TypeAlias = From | Reached | Ended


class NoLine(ValueError):
    """An item that is none of these."""


# --- writing ----------------------------------------------------------------------------------------------------


def mark_text(mark: Mark) -> str:
    """A mark as it travels."""
    match mark:
        case From(number):
            return f'<from n="{number}"/>'
        case Reached(None):
            return "<reached/>"
        case Reached(number):
            return f'<reached n="{number}"/>'
        case Ended(reason):
            return f"<ended>{escape_text(reason)}</ended>"


def window_text(number: int, partials: Sequence[Partial], layout: Layout) -> str:
    """A window as it travels; what is known of it is by path of the layout."""
    told = "".join(map(_told_text, partials, layout.fields))
    return f'<w n="{number}">{told}</w>'


def _told_text(known: Partial, fields: str) -> str:
    assert not known.rest, "a value in another unit does not travel"
    texts = {
        "c": str(known.count),
        "s": sum_text(known.count, known.total, known.places),
        "l": rank_text(known.least),
        "g": rank_text(known.greatest),
    }
    text = "<v" + "".join(f' {field}="{texts[field]}"' for field in fields)
    if known.special:
        text += f' x="{known.special}"'
    if failure := known.failure:
        code = "" if failure.code is None else f' code="{escape_attribute(failure.code)}"'
        place = f'stage="{failure.stage}" at="{failure.order}"'
        return f"{text}><e {place}{code}>{escape_text(failure.message)}</e></v>"
    return f"{text}/>"


def sum_text(count: int, total: int, places: int) -> str:
    """The sum of so many values, a whole number of units of 10**-places, without zeros at its end; of none, none."""
    if not count:
        return ""  # which is an integer, and not a double as any other sum is
    if not places:
        return str(total)
    digits = str(abs(total)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
    return f"-{text}" if total < 0 else text


def rank_text(found: Ranked | None) -> str:
    """An extreme value; where it may be equal to another that is written otherwise, with its place."""
    if found is None:
        return ""
    return repr(found.value) if found.value else f"{found.value!r} {found.order}"


# --- reading ----------------------------------------------------------------------------------------------------


def plain_line(layout: Layout) -> re.Pattern[bytes]:
    """How windows look that hold plain numbers only; all fields are groups, behind the window's number."""
    told = ("".join(f' {field}="{_PLAIN[field]}"' for field in fields) for fields in layout.fields)
    inside = "".join(f"<v{each}/>" for each in told)
    return re.compile(f'<w n="([0-9]{{1,17}})">{inside}</w>'.encode())


def read_line(item: Element, layout: Layout) -> Window | Mark:
    """What an item says; NoLine for any other item."""
    number = item.get("n")
    match item.name.local:
        case "w":
            told = [each for each in item.children if isinstance(each, Element)]
            if len(told) != len(layout.fields):
                raise NoLine(f"it tells of {len(told)} paths, and not of {len(layout.fields)}")
            return Window(_number(number), tuple(map(_partial, told, layout.fields)))
        case "from":
            return From(_number(number))
        case "reached":
            return Reached(None if number is None else _number(number))
        case "ended":
            return Ended(string_value(item))
        case other:
            raise NoLine(f"'{other}' is no window")


def _number(text: str | None) -> int:
    if text is None or not _NUMBER.match(text):
        raise NoLine("it has no number")
    return int(text)


def _partial(element: Element, fields: str) -> Partial:
    given = {each: element.get(each) for each in fields}
    texts = {field: text for field, text in given.items() if text is not None}
    if len(texts) < len(fields):
        raise NoLine(f"it does not tell '{fields}'")
    total, places = read_sum(texts.get("s", ""))
    failures = [_failure(each) for each in element.children if isinstance(each, Element)]
    return Partial(
        _number(texts["c"]) if "c" in texts else int(any(texts.values())),  # that there are some is all that is asked
        total,
        places,
        _number(element.get("x") or "0"),
        read_rank(texts.get("l", "")),
        read_rank(texts.get("g", "")),
        failures[0] if failures else None,
    )


def read_sum(text: str) -> tuple[int, int]:
    """The sum that `sum_text` has written, and its places."""
    found = _DECIMAL.match(text or "0")
    if found is None:
        raise NoLine(f"'{text}' is no sum")
    whole, behind = found.groups("")
    return int(whole + behind), len(behind)


def read_rank(text: str) -> Ranked | None:
    """The value that `rank_text` has written."""
    if not text:
        return None
    found = _DOUBLE.match(text)
    if found is None:
        raise NoLine(f"'{text}' is no value")
    return Ranked(float(found[1]), int(found[2] or 0))


def _failure(element: Element) -> Failure:
    order, message = _number(element.get("at")), string_value(element)
    return Failure(0 if element.get("stage") == "0" else 1, order, message, element.get("code"))
