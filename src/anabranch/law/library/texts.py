"""Functions of texts: characters, tokens, escapes, regular expressions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import pairwise
from urllib.parse import quote

from anabranch.errors import DynamicError
from anabranch.law.library.arguments import (
    CODEPOINTS,
    check_collation,
    needed_text,
    text_of,
    whole,
    whole_of,
)
from anabranch.law.library.regular import Regular, regular, replacement_for
from anabranch.values.numbers import shown
from anabranch.values.sequences import Values, operands

_SPACES = " \t\r\n"
_UNRESERVED = "-_.~"
_MODIFIER = re.compile(r"([co](\([^()]+\))?)?[at]?")
_PRINTABLE = "".join(chr(code) for code in range(32, 127))
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


def _compare(left: Values, right: Values, collation: Values | None = None) -> Values:
    check_collation(collation)
    a, b = text_of(left, "compare()"), text_of(right, "compare()")
    return [] if a is None or b is None else [(a > b) - (a < b)]


def _codepoint_equal(left: Values, right: Values) -> Values:
    a, b = text_of(left, "codepoint-equal()"), text_of(right, "codepoint-equal()")
    return [] if a is None or b is None else [a == b]


def _of_codepoints(values: Values) -> Values:
    codes = [whole(each, "codepoints-to-string()") for each in operands(values)]
    for code in codes:
        if not (
            code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
        ):
            raise DynamicError(f"{code} is no character", code="FOCH0001")
    return ["".join(map(chr, codes))]


def _codepoints(values: Values) -> Values:
    return list(map(ord, text_of(values, "string-to-codepoints()") or ""))


def _contains_token(values: Values, token: Values, collation: Values | None = None) -> Values:
    check_collation(collation)
    wanted = needed_text(token, "contains-token()").strip(_SPACES)
    texts = [needed_text([each], "contains-token()") for each in values]
    return [bool(wanted) and any(wanted in _tokens(each) for each in texts)]


def _tokens(text: str) -> list[str]:
    """The parts of a text between XML's white space."""
    for space in _SPACES[1:]:
        text = text.replace(space, " ")
    return [each for each in text.split(" ") if each]


def _normalize_unicode(values: Values, form: Values | None = None) -> Values:
    text = text_of(values, "normalize-unicode()") or ""
    name = "NFC" if form is None else needed_text(form, "normalize-unicode()").strip(_SPACES).upper()
    if name and name not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise DynamicError(f"'{shown(name)}' is no normal form that is known", code="FOCH0003")
    return [unicodedata.normalize(name, text) if name else text]  # type: ignore[arg-type]


def _escaped(safe: str, what: str) -> Callable[[Values], Values]:
    return lambda values: [quote(text_of(values, what) or "", safe=safe)]


def _escape_html_uri(values: Values) -> Values:
    text = text_of(values, "escape-html-uri()") or ""
    return ["".join(each if each in _PRINTABLE else quote(each, safe="") for each in text)]


# --- regular expressions ----------------------------------------------------------------------------------


def _pattern(pattern: Values, flags: Values | None, what: str) -> Regular:
    return regular(needed_text(pattern, what), "" if flags is None else needed_text(flags, what))


def _needs_text(found: Regular) -> Regular:
    """A pattern for splitting or replacing, which must not match the empty text."""
    if found.found_in(""):
        raise DynamicError("the pattern matches an empty text", code="FORX0003")
    return found


def _matches(values: Values, pattern: Values, flags: Values | None = None) -> Values:
    return [_pattern(pattern, flags, "matches()").found_in(text_of(values, "matches()") or "")]


def _replace(values: Values, pattern: Values, replacement: Values, flags: Values | None = None) -> Values:
    text = text_of(values, "replace()") or ""
    found = _needs_text(_pattern(pattern, flags, "replace()"))
    return [found.replaced(text, replacement_for(found, needed_text(replacement, "replace()")))]


def _tokenize(values: Values, pattern: Values | None = None, flags: Values | None = None) -> Values:
    text = text_of(values, "tokenize()")
    if pattern is None:
        return list(_tokens(text or ""))
    found = _needs_text(_pattern(pattern, flags, "tokenize()"))
    return list(found.split(text)) if text else []


# --- numbers as texts -------------------------------------------------------------------------------------


def _format_integer(values: Values, picture: Values, language: Values | None = None) -> Values:
    if language is not None:
        text_of(language, "format-integer()")  # English is all there is
    number, wanted = whole_of(values, "format-integer()"), needed_text(picture, "format-integer()")
    if number is None:
        return [""]
    primary, _, modifier = wanted.rpartition(";") if ";" in wanted else (wanted, "", "")
    if not primary or not _MODIFIER.fullmatch(modifier):
        raise DynamicError(f"'{shown(wanted)}' is no picture of a number", code="FODF1310")
    written = _written_number(abs(number), primary, ordinal=modifier.startswith("o"))
    return [f"-{written}" if number < 0 else written]


def _written_number(number: int, primary: str, *, ordinal: bool) -> str:
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


def _default_collation() -> Values:
    return [CODEPOINTS]


TEXT_FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    "compare": _compare,
    "codepoint-equal": _codepoint_equal,
    "codepoints-to-string": _of_codepoints,
    "string-to-codepoints": _codepoints,
    "contains-token": _contains_token,
    "normalize-unicode": _normalize_unicode,
    "encode-for-uri": _escaped(_UNRESERVED, "encode-for-uri()"),
    "iri-to-uri": lambda values: [_iri(text_of(values, "iri-to-uri()") or "")],
    "escape-html-uri": _escape_html_uri,
    "matches": _matches,
    "replace": _replace,
    "tokenize": _tokenize,
    "format-integer": _format_integer,
    "default-collation": _default_collation,
}


def _iri(text: str) -> str:
    return "".join(each if each in _PRINTABLE and each not in '<>" {}|\\^`' else quote(each, safe="") for each in text)
