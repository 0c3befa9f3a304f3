"""Windows that need their items, in columns: a few thousand items at a time.

Columns decide in which order the items of all partitions arrive (LAWS 1.2), which are selected, their reference values,
which are late, and which windows close.
The answers of closed windows are laid out in columns, too, where the query's result compiles
(`columnar/items/window_query.py`); the items of open windows are held by the operator, unparsed.
Items that columns cannot represent, and everything where the query or its stream does not compile
(`columnar/items/query.py`), are left to the operator, in their place.
So the way that an item takes never shows in an answer, nor does the way that has written the state.

All values, sizes and steps are integers of one unit; larger ones raise OverflowError, and are left to the operator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from anabranch.branch.evolution.following import Following
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf
from anabranch.branch.intake.batches import LIMITS, BatchReader, EntryBatch
from anabranch.branch.intake.lookahead import NOWHERE, SAMPLE, ArrivalOrder, MergeAhead, NextEntries, first_entries
from anabranch.branch.intake.merge import Merge, MergeInput
from anabranch.branch.members import Asker
from anabranch.branch.windows.windows import Windows, WindowSequence
from anabranch.columnar.items.query import CompiledFor, compile_for
from anabranch.columnar.items.window_query import CompiledWindows, WindowClauses, WindowRows, compile_windows
from anabranch.columnar.panes.spans import find_windows
from anabranch.columnar.scan.entries import SELECTED, VOID, common_unit, in_unit, shred_entries
from anabranch.columnar.scan.kernels import Flags, Indices, gather
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.template import is_plain_around, is_plain_root
from anabranch.law.rounds.windows import Reach
from anabranch.runtime.standing import Standing
from anabranch.stream.elements import Punctuation
from anabranch.values.placing import Moment

_FEW = 16
"""A sequence of windows that holds fewer items is closed by the operator, where no items arrive."""
_AT_ONCE = 1 << 12
_MOST_PAIRS = 1 << 18
"""The numbers of windows, and of items in them, that are answered at a time."""


class HeldWindowColumns:
    """The column path of a windowed `for`; it changes the merge, the operator and the shelf as the operator would."""

    def __init__(self, merge: Merge, operator: Windows, shelf: Shelf, following: Following) -> None:
        askers = operator.everyone.askers
        standing = askers[0].standing
        self._clause = standing.fors[0]
        self._ahead = MergeAhead(merge)
        self._stream = self._ahead.inputs[0].stream
        self._operator = operator
        self._judge = operator.judge
        self._shelf = shelf
        self._following = following
        self._everyone = operator.everyone
        self._clauses = [_clauses(each.standing) for each in askers]
        self._numbers = {id(asker): number for number, asker in enumerate(askers)}
        self._reader = BatchReader(self._stream, 0, shelf.units, signals=True)
        self._able = is_plain_root(self._stream.root) and standing.plain_hole is not None
        self._compiled: CompiledFor | None = None
        self._results: CompiledWindows | None = None
        operator.front = self

    def take(self) -> bool:
        """Take some of the released entries; False where there are none, or none for columns."""
        return self._able and self._take()

    def _take(self) -> bool:
        entries = self._ahead.entries()
        if entries is None or (self._compiled is None and not self._reader.learn(first_entries(entries), self._use)):
            return False
        batches = self._batches(entries)
        read = zip(entries, batches, strict=True)
        if any(self._reader.grow(given.some, batch.shredded.fits, self._use) for given, batch in read):
            batches = self._batches(entries)  # now they are taken: what fits one partition may not fit another
        if any(batch.has_overrun for batch in batches):
            return False
        try:
            moments = [batch.moments(given) for batch, given in zip(batches, entries, strict=True)]
            order = self._ahead.order(moments, entries)
            if order is None:
                return False
            arrivals = _Arrivals(self._shelf, order, entries, batches)
            shown = self._shown(arrivals) if self._judge.timed else None
        except OverflowError:
            return False
        self._shelf.taken += int(np.count_nonzero(arrivals.items))
        self._arrive(arrivals, shown)
        for source, signal in arrivals.signals(self._ahead.inputs):
            self._following.punctuation(*source.key, signal)
        self._ahead.skip(order)
        return True

    def _batches(self, entries: Sequence[NextEntries]) -> list[EntryBatch]:
        assert self._compiled is not None
        return [self._reader.batch(self._compiled, (), each) for each in entries]

    def _use(self, look: Look) -> bool:
        """Compile for a look; whether that succeeded."""
        root = self._stream.root.name.local
        compiled = compile_for(self._clause, root, look, self._stream.source.time)
        if compiled is not None:
            self._compiled = compiled
            self._results = compile_windows(self._clause.source, self._clauses, root, look)
        self._able = self._compiled is not None
        return compiled is not None

    # --- arrivals -----------------------------------------------------------------------------------------

    def _shown(self, arrivals: _Arrivals) -> _WindowValues:
        """The reference values of entries, and which of them are late (LAWS 3.2)."""
        scale = self._judge.scale
        slack, origin = scale.slack, scale.origin
        extents = [each.extent for each in self._operator.sequences]
        exact = [slack, origin, *(each for extent in extents for each in (extent.size, extent.step))]
        covered: list[dict[int, Reach | None]] = []
        largest: list[Fraction | None] = []
        for number, (batch, taken) in enumerate(arrivals.inputs):
            told = ((entry, each) for entry, each in batch.signals.items() if entry < taken)
            covered.append({entry: self._judge.covered(self._stream, each) for entry, each in told})
            known = self._judge.progress.largest(number) if taken else None
            largest.append(None if known is None else Fraction(known))  # OverflowError for infinity
            exact += [Fraction(each) for each in (*covered[-1].values(), largest[-1]) if each is not None]
        exact += [each.value for sequence in self._operator.sequences for each in sequence.held]
        unit = common_unit([batch.values for batch, _ in arrivals.inputs], exact)
        for sequence in self._operator.sequences:
            _check(sequence, unit)
        values: list[Indices] = []
        times: list[Flags] = []
        late: list[Flags] = []
        tops: list[int] = []
        widest = in_unit(max(each.size for each in extents), unit)
        for (batch, taken), mine, known in zip(arrivals.inputs, covered, largest, strict=True):
            found = (batch.values.in_units(unit) - in_unit(origin, unit))[:taken]
            shows = batch.status[:taken] != VOID
            judged = np.flatnonzero(shows)
            are_times = batch.are_times(scale)[:taken]
            if (found[shows & are_times] < widest).any():
                raise OverflowError  # windows of times lie before the first window of numbers
            for entry, value in mine.items():
                if value is not None:
                    shows[entry] = True
                    found[entry] = in_unit(Fraction(value) + slack, unit)
            start = NOWHERE if known is None else in_unit(known, unit)
            running = np.maximum.accumulate(np.concatenate([[start], np.where(shows, found, NOWHERE)]))
            is_late = np.zeros(taken, np.bool_)
            is_late[judged] = found[judged] < running[judged] - in_unit(slack, unit)
            values.append(found)
            times.append(are_times)
            late.append(is_late)
            tops.append(int(running[-1]))
        spread = arrivals.order.spread
        return _WindowValues(unit, spread(values), spread(times), spread(late), tops)

    def _arrive(self, arrivals: _Arrivals, shown: _WindowValues | None) -> None:
        """Let entries arrive: from here on there is no way back."""
        late = None if shown is None else shown.late
        for arrival, kept in arrivals.reported(late):
            if arrival in arrivals.errors:
                self._everyone.bury(kept, arrivals.errors[arrival])
            if late is not None and late[arrival]:
                self._everyone.late(kept)
        if shown is None:
            chosen = np.flatnonzero(arrivals.status == SELECTED)
            values, unit = self._judge.next_numbers(len(chosen)), 1
            times = np.zeros(len(chosen), np.bool_)
        else:
            self._progress(arrivals, shown)
            chosen = np.flatnonzero((arrivals.status == SELECTED) & ~shown.late)
            values, times, unit = shown.values[chosen], shown.times[chosen], shown.unit
        fresh = _FreshItems(arrivals, chosen, values, times, unit)
        for each in self._operator.sequences:
            if len(chosen):
                each.next = max(each.next, self._judge.first_window(each.extent))
            self._settle(each, fresh, self._judge.reached)

    def _progress(self, arrivals: _Arrivals, shown: _WindowValues) -> None:
        """Remember the largest value of each partition."""
        progress, judged = self._judge.progress, np.flatnonzero(arrivals.status != VOID)
        if len(judged):
            first = int(judged[0])
            progress.is_late(int(arrivals.order.inputs[first]), Fraction(int(shown.values[first]), shown.unit))
        for number, top in enumerate(shown.tops):
            if top != NOWHERE:
                progress.passed(number, Fraction(top, shown.unit) - self._judge.scale.slack)

    # --- windows ------------------------------------------------------------------------------------------

    def close(self, sequence: WindowSequence, reached: Reach) -> bool:
        """Answer windows that end at or before `reached`, where no items arrive; False if left to the operator."""
        if not self._able or not self._following.quiet or len(sequence.held) < _FEW:
            return False
        if self._compiled is None:
            self._reader.learn((each.kept.entry for each in sequence.held[:SAMPLE]), self._use)
        if self._results is None:
            return False
        try:
            extent = sequence.extent
            unit = common_unit([], [extent.size, extent.step, *(each.value for each in sequence.held)])
            _check(sequence, unit)
        except OverflowError:
            return False
        self._settle(sequence, _FreshItems.nothing(unit), reached)
        return True

    def _settle(self, sequence: WindowSequence, fresh: _FreshItems, reached: Reach | None) -> None:
        """Take the items that have arrived into windows, and answer those that end at or before `reached`."""
        unit, extent = fresh.unit, sequence.extent
        size, step = int(extent.size * unit), int(extent.step * unit)
        following = max(sequence.next, 0)
        kept = fresh.at(np.maximum(following, (fresh.values - size) // step + 1) * step <= fresh.values)
        held = _SequenceItems(sequence.held, kept)
        values = held.values
        ended = _ended(reached, size, step, unit)
        order = None if (values[1:] >= values[:-1]).all() else np.argsort(values, kind="stable")
        rising = values if order is None else values[order]
        last: int | None = None
        for begins, ends, numbers in _closed(rising, following, ended, size, step):
            picks, heads = _contents(begins, ends, order)
            self._answer(sequence, held, picks, heads, numbers)
            last = int(numbers[-1])
        if last is not None:
            sequence.next = last + 1
            held = held.at(values >= sequence.next * step)
        least = int(held.values.min()) if len(held.values) else None
        due = None if least is None else max(sequence.next, 0, (least - size) // step + 1)
        sequence.go_on(held.nodes(), due)

    def _answer(
        self, sequence: WindowSequence, items: _SequenceItems, picks: Indices, heads: Indices, numbers: Indices
    ) -> None:
        """Answer closed windows with these numbers; the items of one are `picks[heads[k] : heads[k + 1]]`."""
        askers, results = sequence.askers, self._results
        contents = [None if results is None else results.contents[self._numbers[id(each)]] for each in askers]
        rows: WindowRows | None = None
        if results is not None and any(contents):
            chosen, places = np.unique(picks, return_inverse=True)
            shredded, entries = items.shredded(chosen, results)
            rows = WindowRows(results, shredded, entries[places.ravel()], heads)
        windows = _ListedContents(sequence, items, picks, heads, numbers)
        for asker, content in zip(askers, contents, strict=True):
            if rows is None or content is None:
                windows.answer(asker, range(len(heads) - 1))
                continue
            texts, unclear = rows.texts(content)
            begin = 0
            for window in (*np.flatnonzero(unclear).tolist(), len(unclear)):
                lengths = texts.ends[begin:window] - texts.starts[begin:window]
                lengths = lengths[lengths > 0]  # an empty text is no piece of the answer
                if len(lengths):
                    data = texts.data[texts.starts[begin] : texts.ends[window - 1]].tobytes()
                    asker.answers.extend(data, len(lengths), int(lengths[0]))
                if window < len(unclear):
                    windows.answer(asker, (window,))
                begin = window + 1


def _clauses(standing: Standing) -> WindowClauses | None:
    """The clauses of a query behind its window; None where columns cannot answer them."""
    if standing.plain_hole is None or standing.before or not standing.separate or standing.flwor.order:
        return None
    flwor = standing.flwor
    return WindowClauses(standing.fors[0].variable, standing.others, flwor.where, flwor.result, standing.at_top)


def _check(sequence: WindowSequence, unit: int) -> None:
    """Raise OverflowError where a value of a sequence of windows is too large in a unit, or too early for columns."""
    extent, following = sequence.extent, max(sequence.next, 0)
    if any(isinstance(each.value, Moment) and each.value < extent.size for each in sequence.held):
        raise OverflowError  # windows of times lie before the first window of numbers
    values = (abs(each.value.numerator) * (unit // each.value.denominator) for each in sequence.held)
    for each in (extent.size * unit, extent.step * unit, extent.start(following) * unit, max(values, default=0)):
        in_unit(Fraction(each), 1)


def _ended(reached: Reach | None, size: int, step: int, unit: int) -> int:
    """The first window that does not end at or before `reached`."""
    if reached is None:
        return 0
    return (1 << 62) // step if reached == math.inf else max(0, (math.floor(reached * unit) - size) // step + 1)


def _closed(
    values: Indices, following: int, ended: int, size: int, step: int
) -> Iterator[tuple[Indices, Indices, Indices]]:
    """The windows before `ended` over rising values, in batches: begins and ends among the values, and numbers."""
    begins, ends, numbers = np.empty((3, _AT_ONCE), np.int64)
    while len(values):
        count, following = find_windows(values, following, ended, size, step, begins, ends, numbers)
        if not count:
            return
        pairs = np.cumsum(ends[:count] - begins[:count])
        first = 0
        while first < count:
            before = int(pairs[first - 1]) if first else 0
            stop = max(first + 1, int(np.searchsorted(pairs, before + _MOST_PAIRS)))
            yield begins[first:stop].copy(), ends[first:stop].copy(), numbers[first:stop].copy()
            first = stop


def _contents(begins: Indices, ends: Indices, order: Indices | None) -> tuple[Indices, Indices]:
    """The items of windows, each window's in the order of the stream, and where those of each window begin.

    A window holds the values from `begins` to `ends` in rising order; `order` sorts the values, if they do not rise.
    """
    counts = ends - begins
    heads = np.concatenate([[0], np.cumsum(counts)])
    windows = np.repeat(np.arange(len(counts)), counts)
    picks = np.arange(heads[-1]) - np.repeat(heads[:-1] - begins, counts)
    if order is not None:
        picks = order[picks]
        picks = picks[np.lexsort((picks, windows))]
    return picks, heads


@dataclass(frozen=True, slots=True)
class _WindowValues:
    """The reference values of arrivals, in units."""

    unit: int
    values: Indices
    times: Flags
    """Which of the values are times."""
    late: Flags
    tops: Sequence[int]
    """By input: the largest value behind all arrivals."""


class _Arrivals:
    """The entries of all inputs that arrive, in their order."""

    def __init__(
        self, shelf: Shelf, order: ArrivalOrder, entries: Sequence[NextEntries], batches: Sequence[EntryBatch]
    ) -> None:
        self.order = order
        self._shelf = shelf
        self._entries = entries
        taken = [len(each) for each in order.places]
        self.inputs = list(zip(batches, taken, strict=True))
        """The batch of each input, and how many of its entries arrive."""
        self.status = order.spread([each.status for each in batches])
        self.items = order.spread([each.items for each in batches])
        self._own = order.spread([np.arange(count) for count in taken])
        """By arrival: its number in its input."""
        self._numbers: Indices = shelf.taken + np.cumsum(self.items) - 1
        self.errors = {
            int(places[number]): error
            for places, batch in zip(order.places, batches, strict=True)
            for number, error in batch.errors.items()
            if number < len(places)
        }

    def signals(self, sources: Sequence[MergeInput]) -> list[tuple[MergeInput, Punctuation]]:
        """The punctuations among the arrivals, in their order."""
        found: list[tuple[int, MergeInput, Punctuation]] = []
        for source, places, (batch, taken) in zip(sources, self.order.places, self.inputs, strict=True):
            mine = ((number, each) for number, each in batch.signals.items() if number < taken)
            found += ((int(places[number]), source, each) for number, each in mine)
        return [(source, each) for _, source, each in sorted(found, key=lambda each: each[0])]

    def reported(self, late: Flags | None) -> Iterator[tuple[int, HeldItem]]:
        """The arrivals that are late, or have an error for the dead letters."""
        seen = np.zeros(len(self.status), np.bool_) if late is None else late.copy()
        seen[list(self.errors)] = True
        return self.kept(np.flatnonzero(seen))

    def kept(self, arrivals: Indices) -> Iterator[tuple[int, HeldItem]]:
        """Some arrivals as items, in their order."""
        inputs, own, numbers = (each[arrivals] for each in (self.order.inputs, self._own, self._numbers))
        read = [given.some(own[inputs == number]) for number, given in enumerate(self._entries)]
        for arrival, number, item in zip(arrivals.tolist(), inputs.tolist(), numbers.tolist(), strict=True):
            yield arrival, HeldItem(self._shelf, item, next(read[number]))

    def raw(self, arrivals: Indices) -> tuple[list[bytes], list[Indices], Indices]:
        """The bytes of some arrivals, by input, and their lengths; and the place of each arrival among these."""
        inputs, own = self.order.inputs[arrivals], self._own[arrivals]
        parts: list[bytes] = []
        lengths: list[Indices] = []
        for number, (batch, _) in enumerate(self.inputs):
            given, picks = batch.shredded, own[inputs == number]
            lengths.append((given.finishes[picks] - given.begins[picks]).astype(np.int64))
            offsets = np.concatenate([[0], np.cumsum(lengths[-1])]).astype(np.int32)
            raw = np.empty(offsets[-1], np.uint8)
            gather(given.raw, given.begins, given.finishes, picks, offsets, raw)
            parts.append(raw.tobytes())
        places = np.empty(len(arrivals), np.int64)
        places[np.argsort(inputs, kind="stable")] = np.arange(len(arrivals))
        return parts, lengths, places


@dataclass(frozen=True, slots=True)
class _FreshItems:
    """Selected items that arrive, with their values in units."""

    arrivals: _Arrivals | None
    chosen: Indices
    """Which of the arrivals they are."""
    values: Indices
    times: Flags
    """Which of the values are times."""
    unit: int

    @staticmethod
    def nothing(unit: int) -> _FreshItems:
        return _FreshItems(None, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_), unit)

    def at(self, picks: Flags | Indices) -> _FreshItems:
        """Some of the items."""
        return _FreshItems(self.arrivals, self.chosen[picks], self.values[picks], self.times[picks], self.unit)

    def nodes(self) -> list[HeldNode]:
        """The items as the operator holds them."""
        if self.arrivals is None or not len(self.chosen):
            return []
        given = zip(self.values.tolist(), self.times.tolist(), strict=True)
        values = ((Moment if is_time else Fraction)(each, self.unit) for each, is_time in given)
        kept = (each for _, each in self.arrivals.kept(self.chosen))
        return [HeldNode(value, each, 0, 0) for value, each in zip(values, kept, strict=True)]


class _SequenceItems:
    """The items of a sequence of windows: those that it holds, and behind them those that arrive."""

    def __init__(self, held: Sequence[HeldNode], fresh: _FreshItems) -> None:
        self._held = held
        self._fresh = fresh
        self._made: dict[int, HeldNode] = {}
        before = (each.value.numerator * (fresh.unit // each.value.denominator) for each in held)
        self.values = np.concatenate([np.fromiter(before, np.int64, len(held)), fresh.values])

    def at(self, kept: Flags) -> _SequenceItems:
        """Some of the items."""
        count = len(self._held)
        held = (
            self._held if kept[:count].all() else [self._held[each] for each in np.flatnonzero(kept[:count]).tolist()]
        )
        return _SequenceItems(held, self._fresh.at(kept[count:]))

    def nodes(self) -> list[HeldNode]:
        """The items as the operator holds them."""
        return [*self._held, *self._fresh.nodes()]

    def some(self, numbers: Iterable[int]) -> list[HeldNode]:
        """Some of the items, by their numbers."""
        wanted, count = list(numbers), len(self._held)
        new = sorted({each for each in wanted if each >= count and each not in self._made})
        fresh = self._fresh.at(np.array(new, np.int64) - count)
        self._made.update(zip(new, fresh.nodes(), strict=True))
        return [self._held[each] if each < count else self._made[each] for each in wanted]

    def shredded(self, numbers: Indices, results: CompiledWindows) -> tuple[Shredded, Indices]:
        """Some of the items, by rising numbers, shredded for the results of windows; and which entry each is."""
        count = int(np.searchsorted(numbers, len(self._held)))
        held = [self._held[each].kept.entry.cut for each in numbers[:count].tolist()]
        raw = [each.raw for each in held]
        lengths = [np.fromiter(map(len, raw), np.int64, count)]
        places = np.arange(len(numbers))
        if self._fresh.arrivals is not None:
            fresh = self._fresh.chosen[numbers[count:] - len(self._held)]
            parts, sizes, order = self._fresh.arrivals.raw(fresh)
            raw, lengths = [*raw, *parts], [*lengths, *sizes]
            places[count:] = count + order
        found = shred_entries(b"".join(raw), np.cumsum(np.concatenate(lengths)), results.items, LIMITS)
        found.fits[:count] &= np.fromiter((is_plain_around(each.root, each.encoding) for each in held), np.bool_, count)
        return found, places


class _ListedContents:
    """Windows that the law answers, one by one."""

    def __init__(
        self, sequence: WindowSequence, items: _SequenceItems, picks: Indices, heads: Indices, numbers: Indices
    ) -> None:
        self._sequence, self._items = sequence, items
        self._picks, self._heads, self._numbers = picks, heads, numbers

    def answer(self, asker: Asker, windows: Iterable[int]) -> None:
        """Answer some windows."""
        for window in windows:
            held = self._items.some(self._picks[self._heads[window] : self._heads[window + 1]].tolist())
            nodes = self._sequence.content(int(self._numbers[window]), held)
            asker.answers.give(held[0].kept, held, partial(asker.window, held, nodes))
