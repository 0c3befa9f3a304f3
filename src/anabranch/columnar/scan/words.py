"""Bytes read, compared and copied eight at a time.

Texts and names are short, and a loop over bytes costs most at its end, which branch prediction misses.
A *word* is eight bytes as one number, the first of them lowest; the compiler makes one load or store of it.

Guarantees: nothing outside of `data` is read; the output needs room for `WORD` bytes more than are copied.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.scan.kernels import Bytes, compiled_inline

WORD = 8
_ZERO, _ONE, _SEVEN, _EIGHT, _TOP_BYTE = map(np.uint64, (0, 1, 7, 8, 56))
_ONES = np.uint64(0x0101010101010101)
_TOPS = _ONES << _SEVEN
"""The highest bit of each byte."""
_SPACES, _DELETES = _ONES * np.uint64(0x20), _ONES * np.uint64(0x7F)
_QUOTES_OR_AMPERSANDS, _QUOTE_TO_AMPERSAND = _ONES * np.uint64(ord("&")), _ONES * np.uint64(ord('"') ^ ord("&"))
_GREATERS, _LESS_TO_GREATER = _ONES * np.uint64(ord(">")), _ONES * np.uint64(ord("<") ^ ord(">"))
_BACKSLASHES = _ONES * np.uint64(ord("\\"))


@compiled_inline
def word_at(data: Bytes, at: int) -> np.uint64:
    """The word at a place, filled up with zeros behind the end."""
    word, begin = _ZERO, np.uint64(at)
    if at + WORD <= len(data):
        for place in range(WORD):
            word |= np.uint64(data[begin + np.uint64(place)]) << np.uint64(8 * place)
    else:
        for place in range(len(data) - at):
            word |= np.uint64(data[begin + np.uint64(place)]) << np.uint64(8 * place)
    return word


@compiled_inline
def put_bytes(source: Bytes, begin: int, end: int, out: Bytes, write: int) -> int:
    """Copy `source[begin:end]`, and overwrite up to `WORD` bytes behind it; gives the end of the copy."""
    for at in range(begin, end, WORD):
        word, front = word_at(source, at), np.uint64(write + at - begin)
        for place in range(WORD):
            out[front + np.uint64(place)] = np.uint8(word >> np.uint64(8 * place))
    return write + end - begin


@compiled_inline
def are_equal(data: Bytes, at: int, other: Bytes, begin: int, size: int) -> bool:
    """Whether `size` bytes are equal, all of them inside the arrays."""
    while size >= WORD:
        if word_at(data, at) != word_at(other, begin):
            return False
        at, begin, size = at + WORD, begin + WORD, size - WORD
    # the bytes shifted out at the top are behind both texts
    return size == 0 or (word_at(data, at) ^ word_at(other, begin)) << (np.uint64(8 * (WORD - size))) == _ZERO


@compiled_inline
def find_byte(data: Bytes, at: int, stop: int, byte: int) -> int:
    """The first place of a byte in `data[at:stop]`; `stop` where there is none."""
    pattern = _ONES * np.uint64(byte)
    while at < stop:
        found = _zeros(word_at(data, at) ^ pattern)
        if found != _ZERO:
            return min(at + _bytes_before(found), stop)
        at += WORD
    return stop


@compiled_inline
def plain_before(word: np.uint64) -> int:
    """The number of bytes of a word before the first that is not in `template.PLAIN`, or is a backslash."""
    signs = _zeros(word ^ _BACKSLASHES) | _zeros(word ^ _DELETES)
    signs |= _zeros((word | _QUOTE_TO_AMPERSAND) ^ _QUOTES_OR_AMPERSANDS)
    signs |= _zeros((word | _LESS_TO_GREATER) ^ _GREATERS)
    return _bytes_before(signs | (word - _SPACES) & ~word & _TOPS | word & _TOPS)


@compiled_inline
def _zeros(word: np.uint64) -> np.uint64:
    """A word with the highest bit set in each zero byte; behind the first of them, other bytes may have it, too."""
    return (word - _ONES) & ~word & _TOPS


@compiled_inline
def _bytes_before(tops: np.uint64) -> int:
    """The number of bytes before the first with its highest bit set, in a word without other bits."""
    lowest = tops & (~tops + _ONE)
    return np.int64(((((lowest >> _SEVEN) - _ONE) & _ONES) * _ONES) >> _TOP_BYTE)  # type: ignore[return-value]
