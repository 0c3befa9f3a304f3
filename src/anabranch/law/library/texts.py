"""Functions of texts: characters, tokens, escapes, regular expressions."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from urllib.parse import quote

from anabranch.errors import DynamicError
from anabranch.law.library.arguments import (
    CODEPOINTS,
    check_collation,
    needed_text,
    text_of,
    whole,
)
from anabranch.law.library.number_pictures import format_number
from anabranch.law.library.regular import Regular, regular, replacement_for
from anabranch.law.library.whole_pictures import format_integer
from anabranch.values.numbers import shown
from anabranch.values.sequences import Values, operands

_SPACES = " \t\r\n"
_UNRESERVED = "-_.~"
_PRINTABLE = "".join(chr(code) for code in range(32, 127))


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


def splitting_pattern(pattern: Values, flags: Values | None, what: str) -> Regular:
    """A pattern for splitting or replacing, which must not match the empty text."""
    found = _pattern(pattern, flags, what)
    if found.found_in(""):
        raise DynamicError("the pattern matches an empty text", code="FORX0003")
    return found


def _matches(values: Values, pattern: Values, flags: Values | None = None) -> Values:
    return [_pattern(pattern, flags, "matches()").found_in(text_of(values, "matches()") or "")]


def _replace(values: Values, pattern: Values, replacement: Values, flags: Values | None = None) -> Values:
    text = text_of(values, "replace()") or ""
    found = splitting_pattern(pattern, flags, "replace()")
    return [found.replaced(text, replacement_for(found, needed_text(replacement, "replace()")))]


def _tokenize(values: Values, pattern: Values | None = None, flags: Values | None = None) -> Values:
    text = text_of(values, "tokenize()")
    if pattern is None:
        return list(_tokens(text or ""))
    found = splitting_pattern(pattern, flags, "tokenize()")
    return list(found.split(text)) if text else []


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
    "format-integer": format_integer,
    "format-number": format_number,
    "default-collation": _default_collation,
}


def _iri(text: str) -> str:
    return "".join(each if each in _PRINTABLE and each not in '<>" {}|\\^`' else quote(each, safe="") for each in text)
