"""Windows of many branches answered together, where their queries compute the same from their aggregates.

    for $w in stream("s")/r/i[...] |t diff ...| let $a := avg($w/n) return <avg>{ $a }</avg>

Such queries are of one *shape* (`PanePlan.shape`), whichever items they take and however wide their windows are.
The rows of their branches lie one behind the other, so the windows of all of them are found, computed and written at
once, and the texts of each are a part of what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from anabranch.branch.panes.columns import PaneColumns, held, written
from anabranch.branch.panes.panes import JointClose, PaneWindows
from anabranch.columnar.panes.rows import Rows
from anabranch.columnar.panes.spans import find_many

_MOST_WINDOWS = 1 << 16
"""The number of windows that are answered at a time."""


def close_together(windows: Sequence[PaneWindows], rows: Rows, bounds: Sequence[int]) -> None:
    """Answer the complete windows of branches; the merged rows of each branch lie between two bounds."""
    spans = list(pairwise(bounds))
    given = zip(windows, spans, strict=True)
    closing = [each.closing(int(rows.panes[last - 1])) if last > first else None for each, (first, last) in given]
    for first, last in _runs(closing, rows, spans):
        joint = [each for each in closing[first:last] if each is not None]
        part, begin = rows.part(bounds[first], bounds[last]), bounds[first]
        if last - first == 1 or not _closed(
            windows[first:last], joint, part, [each - begin for each in bounds[first : last + 1]]
        ):
            for each in windows[first:last]:
                each.close()


def _runs(
    closing: Sequence[JointClose | None], rows: Rows, spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Runs of branches that are answered together: of one shape, with values of equally many decimal places."""
    first, room = 0, 0
    for at, (each, (begin, end)) in enumerate(zip(closing, spans, strict=True)):
        needed = 0 if each is None else _room(each, end - begin)
        head = closing[first]
        is_like = each is not None and head is not None and each.shape == head.shape
        is_like = is_like and room + needed <= _MOST_WINDOWS
        if at > first and not (is_like and _is_level(rows, spans[first][0], begin)):
            yield first, at
            first, room = at, 0
        room += needed
    if closing:
        yield first, len(closing)


def _room(closing: JointClose, panes: int) -> int:
    """The number of windows, at most, that a number of panes can be in."""
    return 1 + panes * (1 + closing.size // closing.step)


def _is_level(rows: Rows, one: int, other: int) -> bool:
    """Whether the values of two rows have equally many decimal places."""
    return bool((rows.known.places[:, one] == rows.known.places[:, other]).all())


def _closed(windows: Sequence[PaneWindows], closing: Sequence[JointClose], rows: Rows, bounds: Sequence[int]) -> bool:
    """Answer the complete windows of branches of one shape; False, and nothing is done, if a pane is in no window."""
    spans = list(pairwise(bounds))
    room = sum(_room(each, last - first) for each, (first, last) in zip(closing, spans, strict=True))
    begins, ends, numbers = np.empty((3, room), np.int64)
    counts, after = np.empty((2, len(windows)), np.int64)
    following, ended, sizes, steps = np.array([each[1:] for each in closing], np.int64).T.copy()
    asked = np.array(bounds, np.int64), following, ended, sizes, steps
    total = find_many(rows.panes, *asked, begins, ends, numbers, counts, after)
    if total < 0:
        return False
    plan = windows[0].plan
    assert plan.result is not None, "what has a shape has a result"
    columns = PaneColumns(rows, plan.seen.calls, begins[:total], ends[:total])
    chosen = np.flatnonzero(held(plan.result.test, columns))
    texts = written(plan.result, columns, chosen)
    stops = np.concatenate([np.zeros(1, np.int32), texts.ends])
    places = np.searchsorted(chosen, np.cumsum(counts)).tolist()
    found = zip(windows, spans, pairwise((0, *places)), after.tolist(), strict=True)
    for each, span, (low, high), following in found:
        begin, first, end = stops[[low, min(low + 1, high), high]].tolist()
        data = texts.data[begin:end].tobytes()
        each.close_with(data, high - low, first - begin, following, rows.part(*span))
    return True
