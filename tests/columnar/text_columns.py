"""Columns of texts for tests: made of texts, and read back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from anabranch.columnar.expressions.texts import TextColumn


def column(texts: Iterable[str], apart: str = "") -> TextColumn:
    """A column of these texts, with something that belongs to none of them between any two and at both ends."""
    between = apart.encode()
    data, starts, ends = bytearray(between), [], []
    for text in texts:
        starts.append(len(data))
        data += text.encode()
        ends.append(len(data))
        data += between
    return TextColumn(np.frombuffer(bytes(data), np.uint8), np.array(starts, np.int32), np.array(ends, np.int32))


def texts_of(column: TextColumn) -> list[str]:
    """The texts of a column."""
    data = column.data.tobytes()
    return [data[start:end].decode() for start, end in zip(column.starts.tolist(), column.ends.tolist(), strict=True)]
