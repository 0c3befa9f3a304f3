"""The futures of windows and sessions that are counted by panes (`branch/futures.py`).

Panes are compared by their values: how many decimal places they are written with, and in which order their keys were
numbered, depends on what came before.
Places in the stream count back from the present; where they have no effect, they are left out.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from anabranch.aggregates.written import partial_to_json
from anabranch.branch.futures import NEVER, digest
from anabranch.branch.panes.plan import PanePlan
from anabranch.branch.panes.state import PaneState
from anabranch.branch.windows.selection import WindowProgress
from anabranch.columnar.panes.kernels import totals
from anabranch.columnar.panes.rows import MOST_PANES, Rows


def future_of(plan: PanePlan, state: PaneState, progress: WindowProgress) -> str:
    """The future of a branch with this state; `NEVER` where it cannot be compared, or not yet."""
    query, meta = plan.query, state.meta
    if query.is_timed and progress.now is None:
        return NEVER
    if plan.sending is not None and not query.is_timed:
        return NEVER  # they are sent with their numbers, which count from the subscription's start
    if meta["over"] is not None or meta.get("crowded") is not None:
        return NEVER  # it ends soon, and what it does not need for that it has dropped
    if query.is_session:
        return _sessions(plan, state, progress)
    step, size = query.panes.step, query.panes.size
    first, early = meta["next"] * step, 0
    if query.is_timed:
        reached = Fraction(progress.reached or 0)
        early = min(0, max(meta["early"], plan.extent.behind(reached))) * step  # none of these is behind the first
    elif first >= MOST_PANES:
        return NEVER
    is_used = (state.rows.panes >= min(first, MOST_PANES)) & (state.rows.panes % step < size)
    odd = [
        [_key(state, key), number if query.is_timed else number - first, *_odd(pane, meta["order"])]
        for (key, number), pane in state.odd
        if (number >= early if pane.is_early else number >= first and query.panes.is_used(number))
    ]
    if query.is_timed:
        where: Any = [meta["next"], early, progress.now]
        base = 0
    else:
        where, base = meta["arrived"] - first * int(query.panes.width), first
    rows = _rows(state, state.rows.at(is_used), base)
    told = [meta.get("told"), meta.get("passes")]  # of windows that are sent: the marks before them
    return NEVER if rows is None else digest(where, told, meta["answers"], rows, sorted(odd, key=json.dumps))


def _sessions(plan: PanePlan, state: PaneState, progress: WindowProgress) -> str:
    """The future of sessions; `NEVER` as long as a late subscription may still leave one out."""
    gap, first = plan.extent.size, progress.first_seen
    if first is not None:
        panes = (int(state.rows.panes.min(initial=MOST_PANES)), *(number for (_, number), _ in state.odd))
        if min(Fraction(progress.reached or 0), min(panes) * gap) < first + gap:
            return NEVER
    odd = [[_key(state, key), number, *_odd(pane, state.meta["order"])] for (key, number), pane in state.odd]
    rows = _rows(state, state.rows, 0)
    return NEVER if rows is None else digest(progress.now, state.meta["answers"], rows, sorted(odd, key=json.dumps))


def _key(state: PaneState, number: int) -> list[str | None]:
    """The key of a group, as JSON; that of windows without groups is empty."""
    found = state.keys[number - 1] if number else ()
    return [None if each is None else each.hex() for each in found]


def _odd(pane: Any, order: int) -> list[Any]:
    """A pane that is no row."""
    found = pane.moved(-order)
    return [found.order, found.first, list(map(partial_to_json, found.partials)), found.is_early]


def _rows(state: PaneState, given: Rows, base: int) -> list[Any] | None:
    """Rows by key and pane; panes are numbered from `base` on.  None where they cannot be merged."""
    rows = given if given.is_merged else given.merged()
    if rows is None:
        return None
    names = [json.dumps(_key(state, each)) for each in range(len(state.keys) + 1)] if state.keys else ["[]"]
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    rows = rows.at(np.lexsort((rows.panes, ranks[rows.keys])))
    order = state.meta["order"]
    is_placed = (rows.keys > 0) | (rows.firsts >= 0)
    found: list[Any] = [
        [names[each] for each in rows.keys.tolist()] if state.keys else [],
        (rows.panes - base).tolist(),
        np.where(is_placed, rows.orders - order, 0).tolist(),
        [None if each < 0 else rows.told[each] for each in rows.firsts.tolist()],
    ]
    known = rows.known
    for path in range(rows.paths):
        sums = zip(totals(known.high[path], known.low[path]), known.places[path].tolist(), strict=True)
        found += [known.counts[path].tolist(), [str(Fraction(total, 10**places)) for total, places in sums]]
        for values, at in ((known.least, known.least_at), (known.greatest, known.greatest_at)):
            zeros = np.where(values[path] == 0, at[path] - order, 0)
            found += [[None if math.isnan(each) else each for each in values[path].tolist()], zeros.tolist()]
    return found
