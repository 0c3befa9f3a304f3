"""Computed columns as rows of a batch, so that conditions read them like scanned columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from anabranch.columnar.expressions.evaluating import FrameEvaluation
from anabranch.columnar.expressions.tree import TIMES, Kind
from anabranch.columnar.expressions.values import ABSENT, TOO_LARGE_INTEGER, UNCLEAR, ColumnValue, spelled
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Numbers, Places
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.columnar.tables.joined_look import JoinedLook

_Numbers = TypeVar("_Numbers", Places, Numbers)
_TEXTS = (Kind.UNTYPED, Kind.STRING, Kind.NUMBER, Kind.FLAG, *TIMES)
"""Types whose columns are texts, which may have their numbers beside them."""


def with_computed(shredded: Shredded) -> Shredded:
    """A batch with the rows of computed columns set, for the entries that fit; they are unclear in others."""
    wanted = shredded.wanted
    if wanted is None or not wanted.computed:
        return shredded
    fits = shredded.fits
    if not fits.any():
        for row in map(wanted.rows.__getitem__, wanted.computed):
            shredded.starts[row] = shredded.ends[row] = kernels.UNCLEAR
            shredded.values[row] = np.nan
        return shredded
    picks = None if fits.all() else np.flatnonzero(fits)
    return _filled(shredded, wanted, FrameEvaluation(shredded, picks), slice(None) if picks is None else picks)


def frame_rows(shredded: Shredded, frame: int, wanted: WantedColumns) -> tuple[Shredded, Indices, Flags | None]:
    """The rows of a repeated part, as entries of their own, and the entry that each lies in, which may be unfit.

    The repeated part lies in no other; `wanted` has the computed columns of its rows in the place of those of items.
    Where rows are looked up, it also gives the entries whose rows are not known.
    """
    look = wanted.all_parts
    if isinstance(look, JoinedLook) and frame in look.lookups:
        return _looked_up_rows(shredded, frame, wanted)
    source, first = shredded.frame(frame), shredded.first
    begin, end = source.heads[first], source.heads[first + len(shredded.fits)]
    owners = source.parents[begin:end] - first
    starts, ends, values = source.starts[:, begin:end], source.ends[:, begin:end], source.values[:, begin:end]
    rows = replace(
        shredded, wanted=wanted, fits=np.ones(len(owners), np.bool_), starts=starts, ends=ends, values=values
    )
    if not wanted.computed:
        return rows, owners, None
    mine = [row for row, column in enumerate(wanted.columns) if look.frames[max(column, ~column)] == frame]
    room = len(wanted.columns) + len(wanted.computed), len(owners)
    rows = replace(
        rows,
        starts=_copied(starts, mine, np.empty(room, np.int32)),
        ends=_copied(ends, mine, np.empty(room, np.int32)),
        values=_copied(values, mine, np.empty(room)),
    )
    around = FrameEvaluation(shredded)
    inside = FrameEvaluation(shredded, np.arange(begin, end), frame, around, owners)
    return _filled(rows, wanted, inside, slice(None)), owners, None


def _copied(given: _Numbers, mine: list[int], room: _Numbers) -> _Numbers:
    """Columns with room behind them; those that are not mine mean nothing."""
    room[mine] = given[mine]
    return room


def _looked_up_rows(shredded: Shredded, frame: int, wanted: WantedColumns) -> tuple[Shredded, Indices, Flags]:
    """The rows of a lookup, whose wanted columns are all computed."""
    around = FrameEvaluation(shredded)
    inside = around.inside(frame)
    starts, ends = np.full((2, len(wanted.rows), inside.count), kernels.UNCLEAR, np.int32)
    fits, values = np.ones(inside.count, np.bool_), np.full((len(wanted.rows), inside.count), np.nan)
    rows = replace(shredded, wanted=wanted, fits=fits, starts=starts, ends=ends, values=values)
    return _filled(rows, wanted, inside, slice(None)), inside.owners, around.doubtful(frame)


def _filled(
    shredded: Shredded, wanted: WantedColumns, evaluation: FrameEvaluation, chosen: Indices | slice
) -> Shredded:
    """A batch with the rows of computed columns set for the chosen entries, which are those that fit."""
    fits = shredded.fits
    buffers: list[Bytes] = [shredded.data]
    size = len(shredded.data)
    for expression in wanted.computed:
        row = wanted.rows[expression]
        starts, ends, values = shredded.starts[row], shredded.ends[row], shredded.values[row]
        starts[:] = ends[:] = kernels.UNCLEAR
        values[:] = np.nan
        found = evaluation.value(expression)
        if expression.kind in _TEXTS:
            found = spelled(found, len(fits)) if expression.kind in TIMES else found
            assert found.texts is not None
            moved = 0
            if found.texts.data is not shredded.data:
                moved, size = size, size + len(found.texts.data)
                buffers.append(found.texts.data)
            starts[chosen], ends[chosen] = found.texts.starts + moved, found.texts.ends + moved
            if found.numbers is not None:
                values[chosen] = found.numbers
        else:
            starts[chosen] = ends[chosen] = 0
            values[chosen] = _numbers(found)
            starts[np.isnan(values)] = kernels.NOT_A_NUMBER if expression.kind is Kind.DOUBLE else kernels.UNCLEAR
            starts[~fits] = kernels.UNCLEAR
        if found.state is not None:
            state = np.full(len(fits), UNCLEAR, np.uint8)
            state[chosen] = found.state
            values[state > 0] = np.nan
            starts[state == ABSENT] = ends[state == ABSENT] = kernels.ABSENT
            starts[state == UNCLEAR] = ends[state == UNCLEAR] = kernels.UNCLEAR
    return shredded if len(buffers) == 1 else replace(shredded, data=np.concatenate(buffers))


def _numbers(value: ColumnValue) -> Numbers:
    """Numbers, or outcomes as 1 and 0; NaN where they are unclear."""
    if value.verdicts is None:
        assert value.numbers is not None
        if value.kind is Kind.INTEGER:
            return np.where(np.abs(value.numbers) < TOO_LARGE_INTEGER, value.numbers, np.nan)
        return value.numbers
    found: Numbers = np.where(value.verdicts == YES, 1.0, np.where(value.verdicts == NO, 0.0, np.nan))
    return found
