"""Rows among those of their owner: the only one, the first with its text, and places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.rows.folding import DECIMAL, SourceRows, row_values
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Kind
from anabranch.columnar.expressions.values import ABSENT, CLEAR, UNCLEAR, ColumnValue, States, spelled, state_of
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.columnar.scan.kernels import Indices, compiled


def only_one(rows: SourceRows, count: int) -> ColumnValue:
    """By owner: the value of its row that is taken, of which there should be one at most; several are unclear."""
    given, known = rows.value, len(rows.owners)
    assert given is not None, "values are looked at"
    verdicts = np.full(known, YES, np.uint8) if rows.verdicts is None else np.ascontiguousarray(rows.verdicts)
    state = np.zeros(known, np.uint8) if given.state is None else given.state
    chosen, states = np.zeros(count, np.int64), np.full(count, ABSENT, np.uint8)
    _choose(rows.owners, verdicts, state, chosen, states)
    texts = spelled(given, known).texts if known else TextColumn.of(b"")
    assert texts is not None, "it was spelled"
    numbers = None
    if given.kind in DECIMAL:
        known_numbers = given.numbers if given.numbers is not None and known else np.full(1, np.nan)
        numbers = row_values(known_numbers, chosen)
    written = texts.take(chosen) if len(texts.starts) > 1 else texts.repeated(count)
    return ColumnValue(Kind.UNTYPED, states if states.any() else None, numbers, written)


@compiled
def _choose(owners: Indices, verdicts: NDArray[np.uint8], known: States, chosen: Indices, states: States) -> None:
    """By owner, whose state is absent before: the row that is taken, and its state."""
    for row in range(len(owners)):
        if verdicts[row] == NO or known[row] == ABSENT:
            continue
        owner = owners[row]
        if verdicts[row] == UNCLEAR_VERDICT or known[row] == UNCLEAR or states[owner] != ABSENT:
            states[owner] = UNCLEAR
        else:
            states[owner], chosen[owner] = CLEAR, row


def first_of_values(rows: SourceRows, count: int) -> NDArray[np.uint8]:
    """By row: whether it is the first with its text among the taken rows of its owner."""
    taken, doubtful = rows.taken(count)
    assert rows.value is not None, "a text is looked at"
    assert rows.value.texts is not None, "a text is looked at"
    found, data = np.full(len(rows.owners), NO, np.uint8), rows.value.texts.data
    seen: set[tuple[int, bytes]] = set()
    spans = (
        np.broadcast_to(each, len(rows.owners))[taken] for each in (rows.value.texts.starts, rows.value.texts.ends)
    )
    for row, owner, start, end in zip(
        taken, rows.owners[taken].tolist(), *(each.tolist() for each in spans), strict=True
    ):
        known = len(seen)
        seen.add((owner, data[start:end].tobytes()))
        if len(seen) > known:
            found[row] = YES
    found[doubtful[rows.owners]] = UNCLEAR_VERDICT
    return found


def row_places(rows: SourceRows, count: int, *, last: bool) -> ColumnValue:
    """By row: its place among the taken rows of its owner, or the last of these places."""
    if rows.verdicts is None:
        sizes = np.bincount(rows.owners, minlength=count)
        places = sizes if last else 1 - np.cumsum(sizes) + sizes
        counted = places[rows.owners].astype(np.float64)
        return ColumnValue(Kind.INTEGER, None, counted if last else np.arange(len(rows.owners)) + counted)
    taken, doubtful = rows.taken(count)
    owners = rows.owners[taken]
    sizes = np.bincount(owners, minlength=count)
    if last:
        numbers = sizes[rows.owners].astype(np.float64)
    else:
        numbers = np.zeros(len(rows.owners))
        numbers[taken] = 1 + np.arange(len(taken)) - (np.cumsum(sizes) - sizes)[owners]
    return ColumnValue(Kind.INTEGER, state_of(doubtful[rows.owners], UNCLEAR), numbers)
