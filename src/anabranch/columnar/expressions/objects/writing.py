"""Values as JSON, for many rows at once: to the byte what `values/objects/json_text.py` writes for each.

Numbers and truth values are written as they are spelled, texts with quotes and escapes; objects and arrays of a record
are copied from its bytes with white space as the law has it, and left to the law where they would be spelled otherwise.
What is absent is `null`.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import TIMES, Kind
from anabranch.columnar.expressions.values import (
    CLEAR,
    UNCLEAR,
    ColumnValue,
    States,
    only_unclear,
    spelled,
    state_of,
    worst,
)
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.json_scan import write_lines
from anabranch.columnar.scan.kernels import Bytes, Indices, Places, compiled, compiled_lean
from anabranch.columnar.scan.words import WORD
from anabranch.stream.reading.json_items import write_string

_QUOTE, _SPACE, _BACKSLASH = b'" \\'
_NULL = np.frombuffer(b"null", np.uint8)
_ESCAPES = [write_string(chr(code))[1:-1].encode() for code in range(128)]
_SIZES = np.array([*map(len, _ESCAPES)], np.int64)
_SIGNS = np.array([list(each.ljust(int(_SIZES.max()), b"\0")) for each in _ESCAPES], np.uint8)
"""By character of ASCII: how it is written in a string, and how many bytes that has."""


def json_texts(kind: Kind, value: ColumnValue, count: int) -> ColumnValue:
    """Values of a kind as JSON; numbers that JSON cannot say are unclear."""
    if value.numbers is not None and kind is Kind.DOUBLE:
        wrong = np.broadcast_to(~np.isfinite(value.numbers), count)
        value = value.with_state(worst(value.state, state_of(wrong, UNCLEAR, value.state)))
    found = spelled(value, count)
    assert found.texts is not None
    column = found.texts if len(found.texts.starts) == count else found.texts.repeated(count)
    state = np.zeros(count, np.uint8) if found.state is None else np.broadcast_to(found.state, count)
    sizes = np.empty(count, np.int64)
    is_quoted = kind is Kind.STRING or kind in TIMES
    _measure(column, state, is_quoted, sizes)
    ends = np.cumsum(sizes)
    full = ends > texts.MOST_BYTES
    made = TextColumn.room(count, int(ends[~full].max(initial=0)))
    _write(column, state, is_quoted, full, *made)
    return ColumnValue(Kind.CONTENT, worst(only_unclear(found.state), state_of(full, UNCLEAR)), texts=made)


@compiled_lean
def _measure(column: TextColumn, state: States, quoted: bool, sizes: Indices) -> None:
    """How many bytes each text takes."""
    for row in range(len(sizes)):
        sizes[row] = len(_NULL)
        if state[row] == CLEAR:
            start, end = column.starts[row], column.ends[row]
            sizes[row] = end - start
            if quoted:
                sizes[row] += 2
                for place in range(start, end):
                    byte = column.data[place]
                    if byte < 128:
                        sizes[row] += _SIZES[byte] - 1


@compiled
def _write(
    column: TextColumn, state: States, quoted: bool, full: kernels.Flags, out: Bytes, starts: Places, ends: Places
) -> None:
    """Write each text for which there is room."""
    at = 0
    for row in range(len(starts)):
        starts[row] = at
        if not full[row]:
            text = column.data[column.starts[row] : column.ends[row]] if state[row] == CLEAR else _NULL
            is_quoted = quoted and state[row] == CLEAR
            if is_quoted:
                out[at] = _QUOTE
                at += 1
            for byte in text:
                if is_quoted and byte < 128 and _SIZES[byte] > 1:
                    for place in range(_SIZES[byte]):
                        out[at + place] = _SIGNS[byte, place]
                    at += _SIZES[byte]
                else:
                    out[at] = byte
                    at += 1
            if is_quoted:
                out[at] = _QUOTE
                at += 1
        ends[row] = at


def json_copies(raw: Bytes, starts: Places, ends: Places) -> ColumnValue:
    """Objects and arrays that stand in records, given by their places, which are unclear for some."""
    there = starts >= 0
    size = int((ends - starts)[there].sum(dtype=np.int64))
    made = TextColumn.room(len(starts), min(2 * size + len(starts) + WORD, texts.MOST_BYTES))
    unclear = np.empty(len(starts), np.bool_)
    written = write_lines(raw, starts, ends, there, *made, unclear)
    lines = TextColumn(made.data[:written], made.starts, made.ends - (made.ends > made.starts).astype(np.int32))
    absent = starts == kernels.ABSENT
    state = state_of(unclear & ~absent, UNCLEAR)
    if not absent.any():
        return ColumnValue(Kind.CONTENT, state, texts=lines)
    return ColumnValue(Kind.CONTENT, state, texts=lines.where(~absent, TextColumn.of(_NULL.tobytes()), len(starts)))
