"""Sessions that are seen through aggregates only (LAWS 3.9): what a branch remembers of one is a few panes.

    for $w in stream("s")/r/i |t gap 60 by user| return <s user="{ $w[1]/user }">{ count($w), sum($w/n) }</s>

Panes are as wide as the gap, and know where their items stand (`columnar/panes/sessions.py`), so the sessions of a key
are runs of its panes.
Rows by key and pane are cut into sessions in columns, and those that the stream has gone past are answered at once, in
the order in which they end; keys whose panes hold more than plain numbers are put together one by one beside them.
A session that has ended stays as it is: what is not late lies behind it by the gap or more.
So nothing is lost by looking only where an epoch ends, or an accent comes.

A query may also ask for the key and the bounds of a session; for one that asks for more, the items are held
(`branch/windows/sessions.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import pairwise

import numpy as np

from anabranch.branch.panes.cap import PANES, crowded, crowded_rows
from anabranch.branch.panes.columns import ListedWindows, PaneColumns, held, written, written_sizes
from anabranch.branch.panes.grouped import MOST_BYTES, GroupedWindows, JoinedGroups, bounded
from anabranch.branch.panes.keys import NumberedKeys
from anabranch.branch.panes.plan import PanePlan
from anabranch.branch.panes.state import PaneState
from anabranch.branch.ports import InputStream, Output
from anabranch.branch.state import fraction
from anabranch.columnar.bound_texts import spelled_bounds
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.rows import ManyPanes, Pane, Rows, together
from anabranch.columnar.panes.sessions import RowBounds, SessionSpans, row_bounds, session_spans
from anabranch.columnar.panes.spans import first_of
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.language.windows.aggregates import BOUND_VARIABLES
from anabranch.language.windows.sessions import KEY
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.calls import PythonFunction
from anabranch.law.evaluate import Known
from anabranch.law.functions import BUILTINS
from anabranch.law.inputs import Input
from anabranch.law.rounds.windows import Reach
from anabranch.runtime.units import Units
from anabranch.stream.limits import NO_CAPS, CostCaps
from anabranch.stream.path import TimeScale
from anabranch.values.atomic import spell
from anabranch.values.sequences import Values, atomize


@dataclass(frozen=True, slots=True)
class _ListedSession:
    """A session that has ended, put together from panes one by one."""

    key: int
    start: Fraction
    end: Fraction
    pane: Pane


@dataclass(frozen=True, slots=True)
class _RowSessions:
    """Sessions that have ended, and whose panes are rows."""

    rows: Rows
    spans: SessionSpans
    places: int
    """Their bounds are in units of `10**-places`."""

    def __len__(self) -> int:
        return len(self.spans.begins)

    @property
    def keys(self) -> Indices:
        found: Indices = self.rows.keys[self.spans.begins]
        return found

    @property
    def orders(self) -> Indices:
        """Where the first item of each stands in the stream."""
        found = np.empty(len(self), np.int64)
        first_of(self.spans.begins, self.spans.ends, self.rows.orders, found)
        return found

    def pane(self, number: int) -> Pane:
        """The merged pane of one session."""
        whole = self.rows.part(int(self.spans.begins[number]), int(self.spans.ends[number]))
        return reduce(Pane.merge, whole.read())


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """The bounds of some sessions: those that lie in rows, and others behind them."""

    scale: TimeScale
    in_rows: _RowSessions
    listed: Sequence[_ListedSession]
    are_times: Flags
    """Which of them hold times."""
    _found: dict[str, TextColumn] = field(default_factory=dict)

    def texts(self, variable: str) -> TextColumn:
        """A bound of each session, as it is written."""
        if variable not in self._found:
            self._found[variable] = self._spelled(variable)
        return self._found[variable]

    def _spelled(self, variable: str) -> TextColumn:
        rows, is_end = self.in_rows, BOUND_VARIABLES[variable] == "window-end"
        ticks = rows.spans.stops if is_end else rows.spans.starts
        ticks = ticks + int(self.scale.origin * 10**rows.places)
        found = spelled_bounds(ticks, rows.places, self.are_times[: len(rows)], self.scale.per_second)
        others = range(0 if found is None else len(rows), len(self.are_times))
        spelled = [spell(value).encode() for each in others for value in atomize(self.known(each)[variable]())]
        if found is None:
            return TextColumn.of(*spelled)
        return found if not spelled else _behind(found, TextColumn.of(*spelled))

    def known(self, session: int) -> Known:
        """The bounds of one session, as the evaluator asks for them."""
        rows = self.in_rows
        if session < len(rows):
            start, end = (Fraction(int(each[session]), 10**rows.places) for each in rows.spans[2:])
        else:
            one = self.listed[session - len(rows)]
            start, end = one.start, one.end
        window = WindowValues((), WindowBounds(start, end, self.scale, bool(self.are_times[session])))
        return {variable: partial(BUILTINS[function], window) for variable, function in BOUND_VARIABLES.items()}


def _behind(texts: TextColumn, others: TextColumn) -> TextColumn:
    """Two columns of texts as one."""
    data = np.concatenate([texts.data, others.data])
    moved = np.int32(len(texts.data))
    starts, ends = np.append(texts.starts, others.starts + moved), np.append(texts.ends, others.ends + moved)
    return TextColumn(data, starts, ends)


class SessionWindows(GroupedWindows):
    """The branch of one subscription over sessions, for one epoch."""

    def __init__(
        self,
        plan: PanePlan,
        name: str,
        stream: InputStream,
        state: PaneState | None,
        out: Output,
        functions: Mapping[str, PythonFunction] | None = None,
        documents: Mapping[str, Input] | None = None,
        caps: CostCaps = NO_CAPS,
    ) -> None:
        super().__init__(plan, name, stream, state, out, functions, documents, caps)
        self._crowded = None if state is None else fraction(state.meta.get("crowded"))
        """The least value at which the sessions that are open hold too many panes, as far as is known."""

    @property
    def _gap(self) -> Fraction:
        return self._plan.extent.size

    @property
    def _placed(self) -> int:
        """The number of the path whose values say where items stand in their panes; it follows that of times."""
        return self.paths - 1

    def _add(self, key: int, number: int, pane: Pane) -> None:
        at = key, number
        self._odd[at] = self._odd[at].merge(pane) if at in self._odd else pane

    # --- sessions -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Answer the sessions whose ends the stream has reached, in the order in which they end."""
        reached: Reach = -math.inf if self._progress.reached is None else self._progress.reached
        if reached == -math.inf and not self._is_crowded:
            return
        rows, bounds, others = self._apart()
        spans, places = session_spans(rows.keys, bounds), bounds.places
        self._look(spans, bounds, others)
        last = reached if self._crowded is None else min(reached, self._crowded)
        whole = ended = _at_most(spans.stops, reached, places)
        first = self._first_start
        if last != reached:
            whole = ended & _at_most(spans.stops, last, places)
        if first is not None:
            whole = whole & (spans.starts >= math.ceil(first * 10**places))
        closed = SessionSpans(*(each[whole] for each in spans))
        listed, still = self._listed_sessions(others, reached, last)
        if len(closed.begins) or listed:
            self._answer_sessions(_RowSessions(rows, closed, places), listed)
        is_open = np.repeat(~ended, spans.ends - spans.begins)
        if self._crowded is not None:  # what begins there, or behind it, changes no session that is answered
            is_open &= bounds.lows < math.ceil(self._crowded * 10**places)
            still = [each for each in still if self._low(each[2], each[3]) < self._crowded]
        left = ManyPanes.of(still)
        self.rows = together([rows.at(is_open), *left.rows.values()], self.paths)
        self._odd = {(key, number): pane for _, key, number, pane in left.odd}
        if self._crowded is not None and reached >= self._crowded:
            self._answers.overflows(PANES)
            self.rows, self._odd = Rows.empty(self.paths), {}

    @property
    def _is_crowded(self) -> bool:
        """Whether there are more panes than sessions may hold that are open at a time."""
        return self._crowded is not None or len(self.rows) + len(self._odd) > self._cap.room

    def _look(self, spans: SessionSpans, bounds: RowBounds, others: Mapping[int, Mapping[int, Pane]]) -> None:
        """Look for the least value at which the sessions that are open hold too many panes."""
        room = self._cap.room
        if len(bounds.lows) + sum(map(len, others.values())) <= room:
            return
        found: Fraction | None = None
        if not others:
            ticks = crowded_rows(bounds.lows, spans.stops, spans.ends - spans.begins, room)
            found = None if ticks is None else Fraction(ticks, 10**bounds.places)
        else:
            unit = 10**bounds.places
            runs = [each for mine in others.values() for each in self._runs(mine)]
            lows = [Fraction(each, unit) for each in bounds.lows.tolist()]
            lows += [self._low(number, pane) for mine in others.values() for number, pane in mine.items()]
            sizes = (spans.ends - spans.begins).tolist()
            stops = [(Fraction(stop, unit), size) for stop, size in zip(spans.stops.tolist(), sizes, strict=True)]
            found = crowded(lows, [*stops, *((end, len(numbers)) for _, end, numbers in runs)], room)
        if found is not None and (self._crowded is None or found < self._crowded):
            self._crowded = found

    @property
    def _first_start(self) -> Fraction | None:
        """A late subscription gets no session that begins before this."""
        first = self._progress.first_seen
        return None if first is None else first + self._gap

    def _apart(self) -> tuple[Rows, RowBounds, dict[int, dict[int, Pane]]]:
        """Rows that are merged, with their bounds, and the panes of other keys, by key and number."""
        rows: Rows | None = self.rows if self.rows.is_merged else self.rows.merged()
        bounds = None if rows is None else row_bounds(rows, self._placed, self._gap, self._plan.query.scale.origin)
        slow = self.rows
        if rows is None or bounds is None:
            rows = Rows.empty(self.paths)
            bounds = RowBounds(0, 1, rows.panes, rows.panes, np.empty(0, np.bool_))
        else:
            keys = np.array(sorted({key for key, _ in self._odd}), np.int64)
            apart = np.isin(rows.keys, np.append(keys, rows.keys[~bounds.known]))
            slow, rows = rows.at(apart), rows.at(~apart)
            bounds = bounds._replace(lows=bounds.lows[~apart], highs=bounds.highs[~apart])
        others: dict[int, dict[int, Pane]] = {}
        in_rows = zip(zip(slow.keys.tolist(), slow.panes.tolist(), strict=True), slow.read(), strict=True)
        for (key, number), pane in (*self._odd.items(), *in_rows):
            mine = others.setdefault(key, {})
            mine[number] = mine[number].merge(pane) if number in mine else pane
        return rows, bounds, others

    def _listed_sessions(
        self, others: Mapping[int, Mapping[int, Pane]], reached: Reach, last: Reach
    ) -> tuple[list[_ListedSession], list[tuple[int, int, int, Pane]]]:
        """The sessions of some keys, put together one by one: those to answer, and the panes of those that go on.

        Those have ended that the stream has `reached`, and are answered up to the `last` value.
        """
        found: list[_ListedSession] = []
        still: list[tuple[int, int, int, Pane]] = []
        for key, mine in others.items():
            for start, end, numbers in self._runs(mine):
                if end > reached:
                    still += ((0, key, number, mine[number]) for number in numbers)
                elif end <= last and (self._first_start is None or start >= self._first_start):
                    panes = (mine[number] for number in numbers)
                    found.append(_ListedSession(key, start, end, reduce(Pane.merge, panes)))
        return found, still

    def _runs(self, panes: Mapping[int, Pane]) -> Iterator[tuple[Fraction, Fraction, list[int]]]:
        """The sessions of one key: where each begins and ends, and the numbers of its panes."""
        start = end = Fraction(0)
        run: list[int] = []
        for number in sorted(panes):
            greatest = panes[number].partials[self._placed].greatest
            assert greatest is not None, "every item stands somewhere"
            low, high = self._low(number, panes[number]), number * self._gap + greatest.number
            if run and low >= end:
                yield start, end, run
                run = []
            start = start if run else low
            end = high + self._gap
            run.append(number)
        if run:
            yield start, end, run

    def _low(self, number: int, pane: Pane) -> Fraction:
        """The least value in a pane."""
        least = pane.partials[self._placed].least
        assert least is not None, "every item stands somewhere"
        return number * self._gap + least.number

    # --- answers ------------------------------------------------------------------------------------------

    def _answer_sessions(self, in_rows: _RowSessions, listed: Sequence[_ListedSession]) -> None:
        """Answer sessions that have ended, most of them in columns; those that have failed are the evaluator's."""
        listed = sorted(listed, key=lambda each: self._is_evaluated(each.pane))
        calls, count = self._plan.seen.calls, len(in_rows)
        columns = PaneColumns(in_rows.rows, calls, in_rows.spans.begins, in_rows.spans.ends)
        others = ListedWindows([each.pane.partials for each in listed], calls)
        good = ListedWindows([each.pane.partials for each in listed if not self._is_evaluated(each.pane)], calls)
        groups = JoinedGroups([columns, good])
        times = np.concatenate([each.counts(self._placed - 1) for each in (columns, others)]) > 0
        bounds = SessionBounds(self._plan.query.scale, in_rows, listed, times)
        keys = np.append(in_rows.keys, np.array([each.key for each in listed], np.int64))
        named = NumberedKeys(self._book, keys)
        turn = _in_order(in_rows, listed)
        result = self._result
        evaluated = np.full(len(keys), result is None)
        evaluated[len(groups) :] = True
        taken, sizes = np.ones(len(keys), np.bool_), np.zeros(len(keys), np.int64)
        if result is not None:
            sizes = written_sizes(result, named, bounds, len(keys))
            evaluated |= sizes > MOST_BYTES
            taken[: len(groups)] = held(result.test, groups) | evaluated[: len(groups)]
        turn = turn[taken[turn]]
        marks = np.flatnonzero(evaluated[turn])
        units = Units(self._plan.standing, *self._known)
        for first, last in pairwise(sorted({0, len(turn), *marks.tolist(), *(marks + 1).tolist()})):
            one = int(turn[first])
            if evaluated[one]:
                pane = in_rows.pane(one) if one < count else listed[one - count].pane
                values = partial(self._key_values, int(keys[one]))
                self._answer(pane, units, {**bounds.known(one), KEY: values})
            elif result is not None:
                mine = turn[first:last]
                for begin, end in bounded(sizes[mine], MOST_BYTES):
                    self._extend(written(result, groups, mine[begin:end], bounds, named))

    def _key_values(self, key: int) -> Values:
        """The key of a session, as the evaluator knows it."""
        return self._book.values(key)[0]

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> PaneState:
        """What to remember after the epoch."""
        found = super().save()
        return replace(found, meta={**found.meta, "crowded": None if self._crowded is None else str(self._crowded)})


def _at_most(ticks: Indices, most: Reach, places: int) -> Flags:
    """Which values, in units of `10**-places`, are no larger than another."""
    if isinstance(most, float):
        return np.full(len(ticks), most > 0)
    found: Flags = ticks <= math.floor(most * 10**places)
    return found


def _in_order(in_rows: _RowSessions, listed: Sequence[_ListedSession]) -> Indices:
    """Sessions in the order in which they end; of those that end together, the one whose first item came first."""
    if not listed:
        return np.lexsort((in_rows.orders, in_rows.spans.stops))
    unit = 10**in_rows.places
    ends = [*(Fraction(each, unit) for each in in_rows.spans.stops.tolist()), *(each.end for each in listed)]
    orders = [*in_rows.orders.tolist(), *(each.pane.order for each in listed)]
    return np.array(sorted(range(len(ends)), key=lambda each: (ends[each], orders[each])), np.int64)
