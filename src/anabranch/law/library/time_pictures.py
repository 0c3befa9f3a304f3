"""`format-dateTime()`, `format-date()` and `format-time()`: times written by a picture such as `[D] [MNn] [Y0001]`.

Names are English and the calendar is the Gregorian one; who asks for another gets them with a note in front, as XQuery
has it, and a place changes nothing.
A picture is read once into its parts and kept; both it and the widths in it have a limit, and so has what is written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from anabranch.errors import DynamicError
from anabranch.law.library.arguments import needed_text, text_of
from anabranch.law.library.number_pictures import MOST_PICTURE
from anabranch.law.library.whole_pictures import MODIFIER, written_whole
from anabranch.law.time_functions import time_argument
from anabranch.values.instants import date_of, day_number, spell_part
from anabranch.values.numbers import shown
from anabranch.values.sequences import Values
from anabranch.values.times import Date, DateTime, Instant, Time

_MARKER = re.compile(r"\[\[|\]\]|\[([^\[\]]*)\]|([\[\]])")
_WIDTHS = re.compile(r"(\*|[0-9]{1,9})(?:-(\*|[0-9]{1,9}))?", re.ASCII)
_MOST_WIDTH = 100
_ANY = 1_000_000
"""The greatest width where none is asked for."""
_DEFAULTS: Mapping[str, str] = {**dict.fromkeys("FPCE", "n"), **dict.fromkeys("ms", "01"), **dict.fromkeys("Zz", "")}
"""By component: its usual presentation, where that is not `1`."""
_OF_DATES = frozenset("YMDdFWwCE")
_OF_TIMES = frozenset("HhPmsf")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS: tuple[tuple[str, str, int], ...] = (
    *(("Monday", "Mon", 1), ("Tuesday", "Tues", 2), ("Wednesday", "Weds", 1), ("Thursday", "Thurs", 2)),
    *(("Friday", "Fri", 1), ("Saturday", "Sat", 2), ("Sunday", "Sun", 2)),
)
"""The days of a week: name, abbreviation, and how many letters tell it from the others."""
_MILITARY = "YXWVUTSRQPONZABCDEFGHIKLM"
"""The letters of zones, from 12 hours behind UTC on."""
_CALENDARS = frozenset(
    (
        *("AD", "AH", "AME", "AM", "AP", "AS", "BE", "CB", "CE", "CL", "CS", "EE", "FE", "ISO", "JE", "KE", "KY", "ME"),
        *("MS", "NS", "OS", "RS", "SE", "SH", "SS", "TE", "VE", "VS"),
    )
)
"""The calendars that XQuery names."""
_OURS = ("AD", "ISO")


@dataclass(frozen=True, slots=True)
class _Component:
    """A part of a picture that stands for a part of a time."""

    letter: str
    presentation: str
    """What it is written as; `N`, `n` and `Nn` are names."""
    ordinal: bool
    least: int
    most: int
    has_widths: bool


_Picture = tuple[str | _Component, ...]


# --- pictures ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=1_024)
def _picture(text: str) -> _Picture:
    """The texts and components of a picture."""
    if len(text) > MOST_PICTURE:
        raise _invalid(text)
    found: list[str | _Component] = []
    at = 0
    for marker in _MARKER.finditer(text):
        found.append(text[at : marker.start()])
        at = marker.end()
        if marker[2] is not None:
            raise _invalid(text)
        found.append(marker[0][0] if marker[1] is None else _component("".join(marker[1].split()), text))
    return (*found, text[at:])


def _invalid(text: str) -> DynamicError:
    return DynamicError(f"'{shown(text)}' is no picture of a time", code="FOFD1340")


def _component(marker: str, text: str) -> _Component:
    letter, format_ = marker[:1], marker[1:]
    if not letter or letter not in "YMDdFWwHhPmsfZzCE":
        raise _invalid(text)
    presentation, comma, widths = format_.rpartition(",") if "," in format_ else (format_, "", "")
    least, most = _widths(widths, text) if comma else (1, _ANY)
    ordinal = False
    if letter not in "Zz" and len(presentation) > 1:
        modifier = re.search(rf"(?<=.){MODIFIER.pattern}\Z", presentation)
        assert modifier is not None, "nothing is a modifier, too"
        ordinal, presentation = modifier[0].startswith("o"), presentation[: modifier.start()]
    if not presentation:
        presentation = _DEFAULTS.get(letter, "1")
    return _Component(letter, presentation, ordinal, least, most, bool(comma))


def _widths(widths: str, text: str) -> tuple[int, int]:
    found = _WIDTHS.fullmatch(widths)
    if found is None:
        raise _invalid(text)
    least, most = (None if each in (None, "*") else int(each) for each in found.groups())
    if least == 0 or max(least or 0, most or 0) > _MOST_WIDTH or (most is not None and most < (least or 1)):
        raise _invalid(text)
    return least or 1, most or _ANY


# --- times ------------------------------------------------------------------------------------------------


def _formatted(kind: type[Instant], letters: frozenset[str]) -> Callable[..., Values]:
    """The function for times of a type, which have some components."""
    what = f"format-{kind.name}"

    def body(
        values: Values,
        picture: Values,
        language: Values | None = None,
        calendar: Values | None = None,
        place: Values | None = None,
    ) -> Values:
        time, wanted = time_argument(kind, values, what), needed_text(picture, f"{what}()")
        asked = [None if each is None else text_of(each, f"{what}()") for each in (language, calendar, place)]
        if time is None:
            return []
        written = [_calendar_note(asked[1]), _language_note(asked[0])]
        for part in _picture(wanted):
            if isinstance(part, str):
                written.append(part)
            elif part.letter not in letters:
                raise DynamicError(f"'{part.letter}' is no part of an xs:{kind.name}", code="FOFD1350")
            else:
                written.append(_written(part, time))
        return ["".join(written)]

    return body


def _language_note(language: str | None) -> str:
    return "" if language is None or re.match(r"en(-|\Z)", language.lower()) else "[Language: en]"


def _calendar_note(calendar: str | None) -> str:
    if calendar is None:
        return ""
    name = calendar.strip(" \t\r\n").removeprefix("Q{}")
    if name in _OURS:
        return ""
    if name not in _CALENDARS and not re.fullmatch(r"(Q\{[^{}]+\}|[\w.-]+:)[\w.-]+", name):
        raise DynamicError(f"'{shown(calendar)}' is no calendar", code="FOFD1340")
    return "[Calendar: AD]"


def _written(part: _Component, time: Instant) -> str:
    day = 0 if isinstance(time, Time) else time.day
    clock = Fraction(0) if isinstance(time, Date) else time.clock
    match part.letter:
        case "Z" | "z":
            return _zone(part, time.zone)
        case "f":
            return _fraction(part, spell_part(clock % 1)[1:])
        case "P":
            return _half_day(part, is_morning=clock < 43_200)
        case "C":
            return _in_case(part, "Gregorian")
        case "E":
            return _in_case(part, "AD" if date_of(day)[0] > 0 else "BC")
        case "F" if part.presentation in _NAMES:
            return _in_case(part, _weekday(part, _day_of_week(day)))
        case "M" if part.presentation in _NAMES:
            return _in_case(part, _MONTHS[date_of(day)[1] - 1][: max(part.most, 3)].ljust(part.least))
        case letter:
            return _number(part, _NUMBERS[letter](day, int(clock)))


_NAMES = ("N", "n", "Nn")


def _in_case(part: _Component, name: str) -> str:
    """A name in capitals, in small letters, or as it is."""
    return name.upper() if part.presentation == "N" else name.lower() if part.presentation == "n" else name


def _weekday(part: _Component, day: int) -> str:
    name, short, letters = _WEEKDAYS[day - 1]
    if len(name) > part.most:
        name = short[: letters if part.least == 1 and part.most <= 2 else max(part.most, 2)]
    return name.ljust(part.least)


def _half_day(part: _Component, *, is_morning: bool) -> str:
    letter = "A" if is_morning else "P"
    name = letter if part.most == 1 else f"{letter}m" if part.most < 4 else f"{letter}.M."
    return name.upper() if part.presentation == "N" else name if part.presentation == "Nn" else name.lower()


# --- numbers ----------------------------------------------------------------------------------------------


def _day_of_week(day: int) -> int:
    """1 for Monday: 1970 began on a Thursday."""
    return (day + 3) % 7 + 1


def _thursday(day: int) -> int:
    """The Thursday of the week of a day, which decides in which year and month that week is."""
    return day - _day_of_week(day) + 4


def _week_of_month(day: int) -> int:
    """The first week of a month is that with its first Thursday; days before it are in the last one before."""
    number = date_of(day)[2]
    first = _day_of_week(day - number + 1)
    if first > 4 and first + number <= 8:
        return _week_of_month(day - number)
    return (number + first - 2) // 7 + (first < 5)


def _day_of_year(day: int) -> int:
    return day - day_number(date_of(day)[0], 1, 1) + 1


_NUMBERS: Mapping[str, Callable[[int, int], int]] = {
    "Y": lambda day, _: abs(date_of(day)[0]),
    "M": lambda day, _: date_of(day)[1],
    "D": lambda day, _: date_of(day)[2],
    "d": lambda day, _: _day_of_year(day),
    "F": lambda day, _: _day_of_week(day),
    "W": lambda day, _: (_day_of_year(_thursday(day)) - 1) // 7 + 1,
    "w": lambda day, _: _week_of_month(day),
    "H": lambda _, clock: clock // 3_600,
    "h": lambda _, clock: (clock // 3_600 - 1) % 12 + 1,
    "m": lambda _, clock: clock // 60 % 60,
    "s": lambda _, clock: clock % 60,
}


def _number(part: _Component, number: int) -> str:
    presentation = "1" if part.presentation in _NAMES else part.presentation
    places = sum(each.isdecimal() or each == "#" for each in presentation)
    if part.letter == "Y":
        most = part.most if part.most < _ANY else places if places > 1 and not part.has_widths else _ANY
        number %= 10 ** min(most, 10)  # years have fewer digits
    try:
        written = written_whole(number, presentation, ordinal=part.ordinal)
    except DynamicError as error:
        raise _invalid(part.presentation) from error
    if any(each.isdecimal() for each in presentation):
        return _zero(presentation) * (part.least - len(written)) + written
    return written.ljust(part.least)


def _zero(presentation: str) -> str:
    """The zero of the script that a picture's digits are of."""
    digit = next(each for each in presentation if each.isdecimal())
    return chr(ord(digit) - unicodedata.decimal(digit))


def _fraction(part: _Component, digits: str) -> str:
    """The digits behind the point of seconds, cut off where there are too many."""
    pattern = part.presentation if any(map(str.isdecimal, part.presentation)) else "1"
    needed = sum(map(str.isdecimal, pattern))
    if re.search(r"#.*\d", pattern) or len({_zero(each) for each in pattern if each.isdecimal()}) > 1:
        raise _invalid(part.presentation)
    least, most = max(part.least, needed), max(part.most, needed)
    if not part.has_widths and needed + pattern.count("#") > 1:
        most = needed + pattern.count("#")
    zero = ord(_zero(pattern))
    written = digits[:most].rstrip("0").ljust(least, "0")
    marks = {
        len(re.sub(r"[^\d#]", "", pattern[:place])): each for place, each in enumerate(pattern) if not _is_digit(each)
    }
    return "".join(marks.get(place, "") + chr(zero + int(each)) for place, each in enumerate(written))


def _is_digit(mark: str) -> bool:
    return mark == "#" or mark.isdecimal()


def _zone(part: _Component, zone: int | None) -> str:
    """A zone: in digits behind a sign, as a letter, or by the only name that is known for it, `Z`."""
    pattern = part.presentation
    if zone is None:
        return "J" if pattern == "Z" else ""
    if not pattern:
        pattern = _usual_zone(part.least, part.most) if part.has_widths else "00:00"
    if pattern == "Z" and zone % 60 == 0 and abs(zone) <= 720:
        return _MILITARY[zone // 60 + 12]
    if zone == 0 and pattern[0] in "Nn":
        return "z" if pattern == "n" else "Z"
    if zone == 0 and pattern.endswith("t"):
        return "Z"
    before = "GMT" if part.letter == "z" else ""
    if not any(map(str.isdecimal, pattern)):
        pattern, before = "00:00", ""
    return before + _offset(pattern.removesuffix("t"), zone)


def _usual_zone(least: int, most: int) -> str:
    if least <= 1:
        return "0:00" if most >= 4 else "0"
    return "00:00" if least > 4 or most >= 5 else "00"


def _offset(pattern: str, zone: int) -> str:
    """The hours and minutes by which a zone is ahead of UTC, with as many digits as a picture has."""
    hours, minutes = divmod(abs(zone), 60)
    digits = sum(map(str.isdecimal, pattern))
    marks = [each for each in pattern if not each.isdecimal()]
    written = f"{hours:0{2 if digits in (2, 4) else 1}d}"
    if minutes or digits > 2 or marks:
        mark = (marks[-1] if marks else "" if digits > 2 else ":") if minutes or digits > 2 else ""
        written += f"{mark}{minutes:02d}"
    zero = ord(_zero(pattern))
    return ("-" if zone < 0 else "+") + "".join(
        chr(zero + int(each)) if each in "0123456789" else each for each in written
    )


FORMATTED_TIMES: Mapping[str, Callable[..., Values]] = {
    "format-dateTime": _formatted(DateTime, _OF_DATES | _OF_TIMES | frozenset("Zz")),
    "format-date": _formatted(Date, _OF_DATES | frozenset("Zz")),
    "format-time": _formatted(Time, _OF_TIMES | frozenset("Zz")),
}
