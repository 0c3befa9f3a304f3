"""The tokens of JSON in raw bytes: white space, numbers, the three words, and strings.

A text is *plain* where XML and JSON write it alike, in elements and in attributes: characters beyond ASCII that XML
allows, and the bytes of `PLAIN`.
Others are decoded and written as XML has them, in elements or in attributes.
What Python's `json` would refuse is no token here; characters that XML does not allow, and CR, are left to the law.

Guarantees: no byte outside of `data` is read, and none behind `stop` makes a difference; time is linear in bytes.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.scan.kernels import CR, LF, SPACE, TAB, Bytes, compiled_inline, compiled_lean
from anabranch.columnar.scan.template import PLAIN
from anabranch.columnar.scan.words import WORD, plain_before, word_at
from anabranch.stream.serialize import escape_attribute, escape_text

QUOTE, BACKSLASH = b'"\\'
_SLASH, _U, _POINT, _ZERO, _NINE, _MINUS, _PLUS = b"/u.09-+"
_E, _LARGE_E, _A, _F = b"eEaf"
_LOWER = 0x20
"""The bit by which small letters differ from large ones."""

TRUE, FALSE, NULL = (np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))

NONE = -1
"""In the place of a position: there is no such token."""
ESCAPED = -2
"""In the place of a position: the text has escapes or signs, so its bytes are not its characters."""

_SMALL_N, _SMALL_T = b"nt"
_DELETE = 0x7F
_MEANS_ITSELF = np.frombuffer(PLAIN, np.uint8) & (np.arange(256) != BACKSLASH)

_WRITTEN = [
    [escape(chr(code)).encode() if code in (TAB, LF) or code >= SPACE else b"" for code in range(_DELETE + 1)]
    for escape in (escape_text, escape_attribute)
]
_SIGN_SIZES = np.array([[len(each) for each in row] for row in _WRITTEN])
_SIGNS = np.array([[list(each.ljust(_SIGN_SIZES.max(), b"\0")) for each in row] for row in _WRITTEN], np.uint8)
"""By whether it is in an attribute, and by character: its escaped form; empty for characters left to the law."""


@compiled_inline
def skip_space(data: Bytes, at: int, stop: int) -> int:
    """The first place from `at` on without white space."""
    while at < stop and data[at] <= SPACE and data[at] in (SPACE, TAB, LF, CR):
        at += 1
    return at


@compiled_inline
def word_end(data: Bytes, at: int, stop: int, word: Bytes) -> int:
    """The end of a word, if it stands at `at`."""
    if stop - at < len(word):
        return NONE
    for place in range(len(word)):
        if data[at + place] != word[place]:
            return NONE
    return at + len(word)


@compiled_inline
def _digits_end(data: Bytes, at: int, stop: int) -> int:
    """The end of one digit or more at `at`."""
    begin = at
    while at < stop and _ZERO <= data[at] <= _NINE:
        at += 1
    return at if at > begin else NONE


@compiled_inline
def number_end(data: Bytes, at: int, stop: int) -> int:
    """The end of the number at `at`."""
    if at < stop and data[at] == _MINUS:
        at += 1
    if at < stop and data[at] == _ZERO:
        at += 1
    else:
        at = _digits_end(data, at, stop)
        if at < 0:
            return NONE
    if at < stop and data[at] == _POINT:
        at = _digits_end(data, at + 1, stop)
        if at < 0:
            return NONE
    if at < stop and data[at] in (_E, _LARGE_E):
        at += 1
        if at < stop and data[at] in (_PLUS, _MINUS):
            at += 1
        at = _digits_end(data, at, stop)
    return at


@compiled_inline
def text_end(data: Bytes, at: int, stop: int) -> int:
    """The end of the text of a string at `at`, which is the place of its quote; ESCAPED at the first escape or sign.

    The bytes behind that are not checked.
    """
    while at < stop:
        count = plain_before(word_at(data, at))
        at += count
        if count == WORD:
            continue
        if at >= stop:
            break
        if data[at] == QUOTE:
            return at
        if data[at] == BACKSLASH or SPACE < data[at] <= _DELETE:
            return ESCAPED
        size = _character_size(data, at, stop)
        if size == 0:
            break
        at += size
    return NONE


@compiled_lean
def _character_size(data: Bytes, at: int, stop: int) -> int:
    """The number of bytes of the character beyond ASCII at `at`; 0 where XML or UTF-8 allow none."""
    front = data[at]
    if 0xC2 <= front <= 0xDF:
        size, code = 2, front & 0x1F
    elif 0xE0 <= front <= 0xEF:
        size, code = 3, front & 0x0F
    elif 0xF0 <= front <= 0xF4:
        size, code = 4, front & 0x07
    else:
        return 0
    if stop - at < size:
        return 0
    for place in range(at + 1, at + size):
        if data[place] & 0xC0 != 0x80:
            return 0
        code = code << 6 | data[place] & 0x3F
    return size if _size_of(code) == size else 0


@compiled_lean
def _size_of(code: int) -> int:
    """The number of bytes of a character in UTF-8; 0 for one that is not plain."""
    if code < 0x80:
        return int(_MEANS_ITSELF[code] or code == BACKSLASH)
    if code < 0x800:
        return 2
    if code < 0x10000:
        return 0 if 0xD800 <= code < 0xE000 or code > 0xFFFD else 3
    return 4 if code <= 0x10FFFF else 0


@compiled_lean
def decode_text(
    data: Bytes, at: int, stop: int, is_attribute: bool, out: Bytes, write: int, limit: int
) -> tuple[int, int, bool]:
    """Write the text of a string as XML has it, its escapes decoded, into `out[write:limit]`.

    Gives the place of the quote behind it, its end in `out`, and whether all of it is plain; NONE for both places where
    it cannot be written.
    """
    plain = True
    while at < stop and data[at] != QUOTE:
        code, size = -1, 1
        if data[at] == BACKSLASH:
            at, code = _escaped(data, at + 1, stop)
            if at < 0:
                return NONE, NONE, False
            size = _size_of(code)
        elif SPACE < data[at] <= _DELETE and not _MEANS_ITSELF[data[at]]:
            code, size, at = int(data[at]), 0, at + 1
        elif not _MEANS_ITSELF[data[at]]:
            size = _character_size(data, at, stop)
            if size == 0:
                return NONE, NONE, False
        if size == 0:
            written = _put_sign(code, is_attribute, out, write, limit)
            if written < 0:
                return NONE, NONE, False
            write, plain = written, False
            continue
        if limit - write < size:
            return NONE, NONE, False
        if code >= 0:
            _encode(code, size, out, write)
        else:
            for place in range(size):
                out[write + place] = data[at + place]
            at += size
        write += size
    return (at, write, plain) if at < stop else (NONE, NONE, False)


@compiled_lean
def _put_sign(code: int, is_attribute: bool, out: Bytes, write: int, limit: int) -> int:
    """Write a character of ASCII as `serialize` does; NONE where XML does not allow it, or there is no room."""
    size = _SIGN_SIZES[int(is_attribute), code] if 0 <= code <= _DELETE else 0
    if size == 0 or limit - write < size:
        return NONE
    for place in range(size):
        out[write + place] = _SIGNS[int(is_attribute), code, place]
    return write + int(size)


@compiled_lean
def _escaped(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """The end of the escape whose backslash is before `at`, and its character; NONE where it is none we decode."""
    if at < stop and data[at] in (BACKSLASH, _SLASH, QUOTE):
        return at + 1, int(data[at])
    if at < stop and data[at] in (_SMALL_N, _SMALL_T):
        return at + 1, LF if data[at] == _SMALL_N else TAB
    code = _hexadecimal(data, at, stop)
    if code < 0:
        return NONE, NONE
    at += 5
    if 0xD800 <= code < 0xDC00:
        low = _hexadecimal(data, at + 1, stop) if at < stop and data[at] == BACKSLASH else NONE
        if not 0xDC00 <= low < 0xE000:
            return NONE, NONE
        return at + 6, 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00))
    return at, code


@compiled_lean
def _hexadecimal(data: Bytes, at: int, stop: int) -> int:
    """The number in `u` and four hexadecimal digits."""
    if stop - at < 5 or data[at] != _U:
        return NONE
    code = 0
    for place in range(at + 1, at + 5):
        byte = data[place]
        letter = byte | _LOWER
        if _ZERO <= byte <= _NINE:
            code = code << 4 | (byte - _ZERO)
        elif _A <= letter <= _F:
            code = code << 4 | (letter - _A + 10)
        else:
            return NONE
    return code


@compiled_lean
def _encode(code: int, size: int, out: Bytes, write: int) -> None:
    """Write a character in UTF-8."""
    if size == 1:
        out[write] = code
        return
    for place in range(size - 1, 0, -1):
        out[write + place] = 0x80 | code & 0x3F
        code >>= 6
    out[write] = (0xF00 >> size) & 0xFF | code
