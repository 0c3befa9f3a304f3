"""`parse-ietf-date()`: dateTimes as e-mail and HTTP write them, `Wed, 06 Jun 1994 07:29:35 GMT`."""

from __future__ import annotations

import re

from anabranch.errors import DynamicError
from anabranch.law.library.arguments import text_of
from anabranch.values.numbers import shown
from anabranch.values.sequences import Values
from anabranch.values.times import DateTime

_SPACE = r"[ \t\r\n]+"
_DASH = rf"(?:{_SPACE}|(?:{_SPACE})?-(?:{_SPACE})?)"
_DAY_NAMES = "|".join(
    f"{day}|{day[:3]}" for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONES = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
"""The hours by which zones are ahead of UTC; `UT`, `UTC` and `GMT` are UTC."""
_ZONE_NAMES = f"UTC|UT|GMT|{'|'.join(_ZONES)}"
_MONTH, _DAY = rf"(?P<month>{'|'.join(_MONTHS)})", r"(?P<day>\d\d?)"
_YEAR = r"(?P<year>\d\d(?:\d\d)?)"
_ZONE = (
    rf"(?P<zone>{_ZONE_NAMES})"
    rf"|(?P<sign>[+-])(?P<ahead>\d\d?):?(?P<rest>\d\d)?(?:(?:{_SPACE})?\((?:{_SPACE})?(?:{_ZONE_NAMES})(?:{_SPACE})?\))?"
)
_CLOCK = r"(?P<hours>\d\d?):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d{1,100})?))?"
_TIME = rf"{_CLOCK}(?:(?:{_SPACE})?(?:{_ZONE}))?"
_FORMS = tuple(
    re.compile(rf"(?:{_SPACE})?(?:(?:{_DAY_NAMES}),?{_SPACE})?{form}(?:{_SPACE})?", re.IGNORECASE | re.ASCII)
    for form in (
        f"{_DAY}{_DASH}{_MONTH}{_DASH}{_YEAR}{_SPACE}{_TIME}",
        f"{_MONTH}{_DASH}{_DAY}{_SPACE}{_TIME}{_SPACE}{_YEAR}",
    )
)
"""The day in front of the month, as RFC 822, 850 and 1123 have it, and behind it, as `asctime` in C."""


def parse_ietf_date(values: Values) -> Values:
    """`parse-ietf-date()`; without a zone it is UTC, and a year of two digits is one of the last century."""
    text = text_of(values, "parse-ietf-date()")
    if text is None:
        return []
    found = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    read = None if found is None else DateTime.read(_written(found))
    if read is None:
        raise DynamicError(f"'{shown(text)}' is no date of the IETF", code="FORG0010")
    return [read]


def _written(found: re.Match[str]) -> str:
    """The same as an xs:dateTime writes it."""
    century = "19" if len(found["year"]) == 2 else ""
    month = _MONTHS.index(found["month"].lower()) + 1
    clock = f"{found['hours']:0>2}:{found['minutes']}:{found['seconds'] or '00'}"
    return f"{century}{found['year']}-{month:02d}-{found['day']:0>2}T{clock}{_zone(found)}"


def _zone(found: re.Match[str]) -> str:
    if found["sign"]:
        return f"{found['sign']}{found['ahead']:0>2}:{found['rest'] or '00'}"
    hours = _ZONES.get((found["zone"] or "").upper(), 0)
    return f"{'-' if hours else '+'}{abs(hours):02d}:00"
