"""`format-integer()`: whole numbers written by a picture, in digits of any script, letters, Roman digits or words."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from anabranch.errors import DynamicError
from anabranch.law.library.arguments import needed_text, text_of, whole_of
from anabranch.values.numbers import shown
from anabranch.values.sequences import Values

MODIFIER = re.compile(r"([co](\([^()]+\))?)?[at]?")
"""What may stand behind the picture of a whole number: `o` asks for an ordinal, the rest changes nothing in English."""

_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_LARGE = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1_000, "thousand"), (100, "hundred"))


def format_integer(values: Values, picture: Values, language: Values | None = None) -> Values:
    """`format-integer()`."""
    if language is not None:
        text_of(language, "format-integer()")  # English is all there is
    number, wanted = whole_of(values, "format-integer()"), needed_text(picture, "format-integer()")
    if number is None:
        return [""]
    primary, _, modifier = wanted.rpartition(";") if ";" in wanted else (wanted, "", "")
    if not primary or not MODIFIER.fullmatch(modifier):
        raise DynamicError(f"'{shown(wanted)}' is no picture of a number", code="FODF1310")
    written = written_whole(abs(number), primary, ordinal=modifier.startswith("o"))
    return [f"-{written}" if number < 0 else written]


def written_whole(number: int, primary: str, *, ordinal: bool) -> str:
    """A number from 0 on by a picture; one that is not known is that of plain digits."""
    if any(each.isdecimal() for each in primary):
        return _decimal_digits(number, primary) + (_ordinal_ending(number) if ordinal else "")
    match primary:
        case "A" | "a" if number:
            letters = ""
            while number:
                number, place = divmod(number - 1, 26)
                letters = chr(ord(primary) + place) + letters
            return letters
        case "I" | "i" if number:
            text, rest = "", number
            if rest > 100_000:
                return str(number)
            for value, letters in _ROMAN:
                text, rest = text + letters * (rest // value), rest % value
            return text if primary == "I" else text.lower()
        case "w" | "W" | "Ww":
            words = _words(number)
            if ordinal:
                words = _ordinal_words(words)
            return (
                words
                if primary == "w"
                else words.upper()
                if primary == "W"
                else words.title().replace(" And ", " and ")
            )
        case _:
            return str(number) + (_ordinal_ending(number) if ordinal else "")


def _decimal_digits(number: int, primary: str) -> str:
    """A number by a picture of digits, `#,##0`, with the digits of whatever script it uses."""
    needed = [each for each in primary if each.isdecimal()]
    zeros = {ord(each) - unicodedata.decimal(each) for each in needed}
    rest = [each for each in primary if not each.isdecimal() and each != "#"]
    plain = primary.replace("#", "0")
    if len(zeros) > 1 or any(each.isalnum() for each in rest):
        raise DynamicError(f"'{shown(primary)}' is no picture of a number", code="FODF1310")
    if "#" in primary and primary.rfind("#") > min(primary.index(each) for each in needed):
        raise DynamicError("'#' stands in front of all digits", code="FODF1310")
    if rest and (not plain[0].isdecimal() or not plain[-1].isdecimal() or _neighbours(plain)):
        raise DynamicError("marks stand between digits", code="FODF1310")
    (zero,) = zeros
    digits = "".join(chr(zero + int(each)) for each in str(number).zfill(len(needed)))
    places = [
        len([d for d in primary[at + 1 :] if d.isdecimal() or d == "#"])
        for at, each in enumerate(primary)
        if each in rest
    ]
    if not places:
        return digits
    ahead = len(primary) - len(rest) - places[0]
    regular_gap = places[-1] if _is_regular(places, rest) and ahead <= places[-1] else 0
    written = ""
    for at, digit in enumerate(reversed(digits)):
        if at:
            if regular_gap and at % regular_gap == 0:
                written = rest[-1] + written
            elif not regular_gap and at in places:
                written = rest[places.index(at)] + written
        written = digit + written
    return written


def _neighbours(picture: str) -> bool:
    return any(not a.isdecimal() and not b.isdecimal() for a, b in pairwise(picture))


def _is_regular(places: list[int], marks: list[str]) -> bool:
    gap = places[-1]
    return len(set(marks)) == 1 and sorted(places) == [gap * (n + 1) for n in range(len(places))]


def _ordinal_ending(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _words(number: int) -> str:
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + ("" if number % 10 == 0 else f" {_ONES[number % 10]}")
    if number >= 10**15:
        return str(number)
    for value, word in _LARGE:
        if number >= value:
            rest = number % value
            joined = f" and {_words(rest)}" if 0 < rest < 100 else f" {_words(rest)}" if rest else ""
            return f"{_words(number // value)} {word}{joined}"
    raise AssertionError(number)


def _ordinal_words(words: str) -> str:
    head, space, last = words.rpartition(" ")
    irregular = {
        "one": "first",
        "two": "second",
        "three": "third",
        "five": "fifth",
        "eight": "eighth",
        "nine": "ninth",
        "twelve": "twelfth",
    }
    ending = irregular.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return head + space + ending
