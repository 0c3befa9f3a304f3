"""The results of windows, compiled for columns: a window is a row, and its items are the rows of a frame in it.

So the result of a window is compiled and evaluated like that of an item with repeated parts (`columnar/expressions/`):
`$w/en` lays the texts of all its items out, `for $p in $w where ...` is a loop over rows, and `avg($w/en)` an aggregate
of rows.
The columns of items are read once, however many windows hold an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from anabranch.columnar.expressions.compiling import LookScope
from anabranch.columnar.expressions.evaluating import FrameEvaluation
from anabranch.columnar.expressions.objects.results import LineScope
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import ContentOf, Made
from anabranch.columnar.expressions.values import UNCLEAR
from anabranch.columnar.items.query import refuse_records, single_spot
from anabranch.columnar.scan.frames import FrameRows
from anabranch.columnar.scan.kernels import ABSENT, Flags, Indices
from anabranch.columnar.scan.look import Look, LookPart, PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.language import ast
from anabranch.language.checks.outputs import may_give_json
from anabranch.stream.reading.lines import Carry

_AROUND = 1
"""The number of parts in the look of windows before those of items."""


def window_look(look: Look) -> Look:
    """The look of windows: an element around items, which are repeated in it."""
    inside = (
        replace(each, parent=each.parent + _AROUND, repeated=each.repeated or each.parent < 0) for each in look.parts
    )
    return Look((LookPart("", -1, has_text=False), *inside), is_json=look.is_json, scope=look.scope)


def _in_item(column: PartColumn) -> PartColumn:
    return column - _AROUND if column >= 0 else column + _AROUND


@dataclass(frozen=True, slots=True)
class WindowClauses:
    """The clauses behind a windowed `for`."""

    variable: str
    others: tuple[ast.For | ast.Let, ...]
    where: ast.Expression | None
    result: ast.Expression
    at_top: bool = True
    """Whether nothing stands around what it gives."""


@dataclass(frozen=True, slots=True)
class CompiledWindows:
    """The results of queries for windows over the same items, compiled for the look of the items."""

    contents: tuple[ContentOf | None, ...]
    """By query; None for those that do not compile."""
    around: WantedColumns
    """The columns that are read of windows."""
    items: WantedColumns
    """The columns that are read of items, in the same rows."""


def compile_windows(
    source: ast.Expression, queries: Sequence[WindowClauses | None], root: str, look: Look
) -> CompiledWindows | None:
    """Compile the results of windows over a source; None where no query compiles."""
    around = window_look(look)
    contents: list[ContentOf | None] = []
    for each in queries:
        try:
            _, spot = single_spot(source, root, look)
            if each is None or spot is None:
                raise NotColumnar("no window")
            refuse_records([look], each.result, clauses=each.others)
            given = ast.Flwor(each.others, None, (), each.result) if each.others else each.result
            as_json = look.is_json and each.at_top and may_give_json(given)
            scope = (LineScope if as_json else LookScope)({each.variable: Spot(around, spot.part + _AROUND)})
            contents.append(ContentOf(tuple(scope.rounds(each.others, each.where, each.result))))
        except NotColumnar:
            contents.append(None)
    if not any(contents):
        return None
    wanted = WantedColumns.of(around, (), (), [Made(each) for each in contents if each is not None])
    items = WantedColumns(look, tuple(map(_in_item, wanted.columns)), wanted.numeric)
    return CompiledWindows(tuple(contents), wanted, items)


@dataclass(frozen=True)
class _WindowFrames:
    """The frames of windows: their items, and the repeated parts of these."""

    look: Look
    items: Shredded
    picks: Indices
    """The items of all windows, one window behind the other."""
    heads: Indices
    """Where the items of each window begin, and where the last end."""

    @cached_property
    def _found(self) -> dict[int, tuple[FrameRows, Indices]]:
        """By repeated part: its rows, and the row of the items' frame that each is."""
        found: dict[int, tuple[FrameRows, Indices]] = {}
        for part, each in enumerate(self.look.parts):
            if not each.repeated:
                continue
            if each.parent == 0:
                owners = np.repeat(np.arange(len(self.heads) - 1), np.diff(self.heads))
                found[part] = _rows(self.items, owners, self.heads, self.picks), self.picks
                continue
            frame = self.look.frames[each.parent]
            around = found[frame][1] + (self.items.first if self.look.parts[frame].parent == 0 else 0)
            inner = self.items.frame(part - _AROUND)
            picks, owners = inner.rows_in(around)
            heads = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(around)))])
            found[part] = _rows(inner, owners, heads, picks), picks
        return found

    def of(self, part: int) -> FrameRows:
        """The rows of a repeated part."""
        return self._found[part][0]


def _rows(given: Shredded | FrameRows, owners: Indices, heads: Indices, picks: Indices) -> FrameRows:
    starts, ends = given.starts.take(picks, axis=1), given.ends.take(picks, axis=1)
    return FrameRows(owners, heads, starts, ends, given.values.take(picks, axis=1))


class WindowRows:
    """Some windows as rows; each expression is evaluated once for all queries."""

    def __init__(self, compiled: CompiledWindows, items: Shredded, picks: Indices, heads: Indices) -> None:
        """The items of window `k` are `picks[heads[k] : heads[k + 1]]`."""
        count, rows = len(heads) - 1, len(compiled.around.rows)
        frames = _WindowFrames(compiled.around.look, items, picks, heads)
        starts, ends = np.full((2, rows, count), ABSENT, np.int32)
        nothing = np.zeros(count, np.int32)
        given = compiled.around, items.data, items.raw, 0, Carry(), np.ones(count, np.bool_), nothing, nothing
        windows = Shredded(
            *given, starts, ends, np.full((rows, count), np.nan), nothing.astype(np.uint8), {}, items.limits, frames
        )
        self._evaluation = FrameEvaluation(windows)
        unfit = np.concatenate([[0], np.cumsum(~items.fits[picks])])
        self._unclear = unfit[heads[1:]] > unfit[heads[:-1]]

    def texts(self, content: ContentOf) -> tuple[TextColumn, Flags]:
        """The texts that the windows add to an answer, in order; and which windows are left to the law."""
        found = self._evaluation.value(content)
        assert found.texts is not None
        return found.texts, self._unclear if found.state is None else self._unclear | (found.state == UNCLEAR)
