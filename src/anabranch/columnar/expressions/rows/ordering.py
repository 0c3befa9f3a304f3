"""Rows sorted by keys, as by `order by`: nothing, then NaN, numbers by value, text (LAWS 2.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.columnar.expressions.rows.comparing import are_no_numbers, may_be_moments
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Kind
from anabranch.columnar.expressions.values import ABSENT, UNCLEAR, ColumnValue
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.columnar.match.condition import YES
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers

_NOTHING, _NAN, _NUMBER, _TEXT = range(4)


def ordered(keys: Sequence[tuple[ColumnValue, bool]], owners: Indices) -> tuple[Indices, Flags]:
    """The rows of each owner in the order of keys, which may be descending; and the rows with unclear keys."""
    unclear = np.zeros(len(owners), np.bool_)
    columns: list[Numbers | Indices] = [owners]
    for value, descending in keys:
        found, doubtful = _ranks(value, len(owners))
        columns += [-each if descending else each for each in found]
        unclear |= doubtful
    return np.lexsort(columns[::-1]), unclear


def _ranks(value: ColumnValue, count: int) -> tuple[list[Numbers], Flags]:
    """The sort keys of values, their class and their place in it; and which values are unclear."""
    state = np.zeros(count, np.uint8) if value.state is None else np.broadcast_to(value.state, count)
    unclear = state == UNCLEAR
    kinds, places = np.full(count, _NUMBER, np.float64), np.zeros(count)
    if value.verdicts is not None:
        places[:] = value.verdicts == YES
        unclear = unclear | (value.verdicts == UNCLEAR_VERDICT)
    elif value.ticks is not None:
        places[:] = np.unique(value.ticks, return_inverse=True)[1]
    elif value.numbers is not None:
        places[:] = value.numbers
    else:
        places[:] = np.nan
    unread = np.isnan(places)
    places[unread], kinds[unread] = 0, _NAN
    if value.kind in (Kind.UNTYPED, Kind.STRING):
        rows = np.flatnonzero(unread & (state != ABSENT) & ~unclear)
        assert value.texts is not None
        texts = value.texts.take(rows) if len(value.texts.starts) > 1 else value.texts.repeated(len(rows))
        kinds[rows], places[rows] = _TEXT, text_places(texts)
        if value.kind is Kind.UNTYPED:
            unclear[rows[~are_no_numbers(texts) | may_be_moments(texts)]] = True
    kinds[state == ABSENT], places[state == ABSENT] = _NOTHING, 0
    return [kinds, places], unclear


def text_places(texts: TextColumn) -> list[int]:
    """The rank of each text; bytes of UTF-8 are in the order of code points."""
    found = [texts.data[start:end].tobytes() for start, end in zip(texts.starts, texts.ends, strict=True)]
    places = {each: place for place, each in enumerate(sorted(set(found)))}
    return [places[each] for each in found]
