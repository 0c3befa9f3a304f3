"""How windows travel: as items of a stream, one for each window, and marks between them.

    <from n="3"/> <w n="7"><v c="3" s="4.5"/><v l="-0.0 12" g="2.5"/></w> <reached n="9"/> <reached/> <ended>...</ended>

A window has its number, by which it is known everywhere, and for each path of the layout an element with what is told
of it, by letters (`aggregates/written.py`).
`e` says why there is no value (LAWS 2.4), or with the code `doubt` why nobody knows any more what the path means
(LAWS 4.5).

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
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.aggregates.partial import Failure, Partial
from anabranch.aggregates.written import partial_texts, read_number, read_texts
from anabranch.branch.remote.layout import Layout
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.stream.tree import Element, string_value

DOUBT = "doubt"
"""The code of a value whose path is in doubt."""
_EXTREME = r"((?:-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]{1,3})?(?: [0-9]{1,17})?)?)"
_PLAIN = {"c": "([0-9]{1,10})", "s": r'((?=[^"]{0,18}")(?:-?[0-9]+(?:\.[0-9]+)?)?)', "l": _EXTREME, "g": _EXTREME}
"""What rows of columns can hold."""


@dataclass(frozen=True, slots=True)
class SentWindow:
    """A window that is complete."""

    number: int
    partials: tuple[Partial, ...]
    """By path of the layout."""


@dataclass(frozen=True, slots=True)
class FromMark:
    """The first window that is whole."""

    number: int


@dataclass(frozen=True, slots=True)
class ReachedMark:
    """All windows before a number are complete; without one, all."""

    number: int | None


@dataclass(frozen=True, slots=True)
class EndedMark:
    """No window is made any more, for a reason."""

    reason: str


Mark: TypeAlias = FromMark | ReachedMark | EndedMark


class NoLine(ValueError):
    """An item that is none of these."""


# --- writing ----------------------------------------------------------------------------------------------------


def mark_text(mark: Mark) -> str:
    """A mark as it travels."""
    match mark:
        case FromMark(number):
            return f'<from n="{number}"/>'
        case ReachedMark(None):
            return "<reached/>"
        case ReachedMark(number):
            return f'<reached n="{number}"/>'
        case EndedMark(reason):
            return f"<ended>{escape_text(reason)}</ended>"


def window_text(number: int, partials: Sequence[Partial], layout: Layout) -> str:
    """A window as it travels; what is known of it is by path of the layout."""
    told = "".join(map(_told_text, partials, layout.fields))
    return f'<w n="{number}">{told}</w>'


def _told_text(known: Partial, fields: str) -> str:
    assert not known.rest, "a value in another unit does not travel"
    text = "<v" + "".join(f' {field}="{each}"' for field, each in partial_texts(known, fields).items())
    if failure := known.failure:
        code = "" if failure.code is None else f' code="{escape_attribute(failure.code)}"'
        place = f'stage="{failure.stage}" at="{failure.order}"'
        return f"{text}><e {place}{code}>{escape_text(failure.message)}</e></v>"
    return f"{text}/>"


# --- reading ----------------------------------------------------------------------------------------------------


def plain_line(layout: Layout) -> re.Pattern[bytes]:
    """How windows look that hold plain numbers only; all fields are groups, behind the window's number."""
    told = ("".join(f' {field}="{_PLAIN[field]}"' for field in fields) for fields in layout.fields)
    inside = "".join(f"<v{each}/>" for each in told)
    return re.compile(f'<w n="([0-9]{{1,17}})">{inside}</w>'.encode())


def read_line(item: Element, layout: Layout) -> SentWindow | Mark:
    """What an item says; NoLine for any other item."""
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
    except ValueError as error:
        raise NoLine(error) from None
    failures = [_failure(each) for each in element.children if isinstance(each, Element)]
    return replace(known, failure=failures[0]) if failures else known


def _failure(element: Element) -> Failure:
    order, message = _number(element.get("at")), string_value(element)
    return Failure(0 if element.get("stage") == "0" else 1, order, message, element.get("code"))
