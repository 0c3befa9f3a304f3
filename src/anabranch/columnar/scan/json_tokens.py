"""The tokens of JSON in raw bytes: white space, numbers, the three words, and strings.

A text is *plain* where XML and JSON write it alike, in elements and in attributes: characters beyond ASCII that XML
allows, and the bytes of `PLAIN`.
One that is not is written as it stands between tags, its marks escaped.
What Python's `json` would refuse is no token here; what it would take and XML cannot hold is none either, and is left
to the law.

Guarantees: no byte outside of `data` is read, and none behind `stop` makes a difference; time is linear in bytes.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.scan.kernels import CR, LF, SPACE, TAB, Bytes, compiled_inline, compiled_lean
from anabranch.columnar.scan.template import PLAIN
from anabranch.columnar.scan.words import WORD, plain_before, word_at

QUOTE, BACKSLASH = b'"\\'
_SLASH, _U, _POINT, _ZERO, _NINE, _MINUS, _PLUS = b"/u.09-+"
_E, _LARGE_E, _A, _F = b"eEaf"
_AND, _LESS, _GREATER, _N, _T, _R = b"&<>ntr"
_MARKED, _MARKS = (np.frombuffer(each, np.uint8) for each in (b'&<>\r"\t\n', b'&amp;&lt;&gt;&#xD;"\t\n'))
_MARK_SIZES = np.array([5, 4, 4, 5, 1, 1, 1])
"""Characters that are not plain, and how each is written between tags."""
_LOWER = 0x20
"""The bit by which small letters differ from large ones."""

TRUE, FALSE, NULL = (np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))

NONE = -1
"""In the place of a position: there is no such token."""
ESCAPED = -2
"""In the place of a position: there are escapes in the text, so its bytes do not mean themselves."""

_MEANS_ITSELF = np.frombuffer(PLAIN, np.uint8) & (np.arange(256) != BACKSLASH)


@compiled_inline
def skip_space(data: Bytes, at: int, stop: int) -> int:
    """The first place that has no white space."""
    while at < stop and data[at] <= SPACE and data[at] in (SPACE, TAB, LF, CR):
        at += 1
    return at


@compiled_inline
def word_end(data: Bytes, at: int, stop: int, word: Bytes) -> int:
    """Where a word ends, if it stands here."""
    if stop - at < len(word):
        return NONE
    for place in range(len(word)):
        if data[at + place] != word[place]:
            return NONE
    return at + len(word)


@compiled_inline
def _digits_end(data: Bytes, at: int, stop: int) -> int:
    """Behind one digit or more."""
    begin = at
    while at < stop and _ZERO <= data[at] <= _NINE:
        at += 1
    return at if at > begin else NONE


@compiled_inline
def number_end(data: Bytes, at: int, stop: int) -> int:
    """Where a number ends that begins here."""
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
    """Where the text of a string ends that begins here, which is the place of its quote; ESCAPED where it has escapes.

    What XML escapes counts, too; only what is in front of the first was looked at then.
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
        if data[at] in (BACKSLASH, _AND, _LESS, _GREATER):
            return ESCAPED
        size = _character_size(data, at, stop)
        if size == 0:
            break
        at += size
    return NONE


@compiled_lean
def _character_size(data: Bytes, at: int, stop: int) -> int:
    """How many bytes the character beyond ASCII has that stands here; 0 where XML or UTF-8 allow none."""
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
    """How many bytes a character has in UTF-8; 0 for one that is not plain."""
    if code < 0x80:
        return int(_MEANS_ITSELF[code] or code == BACKSLASH)
    if code < 0x800:
        return 2
    if code < 0x10000:
        return 0 if 0xD800 <= code < 0xE000 or code > 0xFFFD else 3
    return 4 if code <= 0x10FFFF else 0


@compiled_lean
def decode_text(
    data: Bytes, at: int, stop: int, plain_only: bool, out: Bytes, write: int, limit: int
) -> tuple[int, int, bool]:
    """Write the text of a string with its escapes decoded into `out[write:limit]`, as it stands between tags.

    Gives the place of the quote behind it, where it ends in `out`, and whether it is plain; NONE for both places where
    that is not possible, or where only plain texts are wanted.
    """
    is_plain = True
    while at < stop and data[at] != QUOTE:
        if data[at] == BACKSLASH:
            at, code = _escaped(data, at + 1, stop)
            if at < 0:
                return NONE, NONE, False
        elif data[at] < 0x80:
            code = int(data[at])
            if code < SPACE:
                return NONE, NONE, False
            at += 1
        else:
            code, size = -1, _character_size(data, at, stop)
            if size == 0 or limit - write < size:
                return NONE, NONE, False
            for place in range(size):
                out[write + place] = data[at + place]
            at += size
            write += size
        if code < 0:
            continue
        size = _size_of(code)
        if size > 0 and limit - write >= size:
            _encode(code, size, out, write)
            write += size
            continue
        mark, size = _mark_of(code)
        if plain_only or size == 0 or limit - write < size:
            return NONE, NONE, False
        for place in range(size):
            out[write + place] = _MARKS[mark + place]
        write += size
        is_plain = False
    return (at, write, is_plain) if at < stop else (NONE, NONE, False)


@compiled_lean
def _mark_of(code: int) -> tuple[int, int]:
    """Where in `_MARKS` it stands how a character that is not plain is written, and how long; 0 for one XML forbids."""
    begin = 0
    for place in range(len(_MARKED)):
        if _MARKED[place] == code:
            return begin, int(_MARK_SIZES[place])
        begin += int(_MARK_SIZES[place])
    return 0, 0


@compiled_lean
def _escaped(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Where an escape ends, given the place behind its backslash, and its character; of those that XML knows."""
    if at < stop and data[at] in (BACKSLASH, _SLASH, QUOTE):
        return at + 1, int(data[at])
    if at < stop and data[at] == _N:
        return at + 1, LF
    if at < stop and data[at] == _T:
        return at + 1, TAB
    if at < stop and data[at] == _R:
        return at + 1, CR
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
    """The number in `u` and four digits."""
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
    """A character in UTF-8."""
    if size == 1:
        out[write] = code
        return
    for place in range(size - 1, 0, -1):
        out[write + place] = 0x80 | code & 0x3F
        code >>= 6
    out[write] = (0xF00 >> size) & 0xFF | code
