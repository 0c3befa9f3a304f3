"""Windows counted where the items are: each range of a stream becomes a few rows, one for each pane it touches.

A `PaneCounter` counts one range for many *members*, the window queries over its stream, in one pass.
Entries that are clear (`pane_batch.py`) are placed and added up in columns; the others are *shown* to it one by one, as
the law sees them, and take their turn in the order of the stream, which decides what is late (`pane_axis.py`).

Rows of count windows have the number of the node among those selected in the range for a pane.

A dead letter for a window shows the item that comes first in it, but panes do not all have to carry that along.
Where a window can only fail because something in it did (`Member.told`), and all of it lies in one batch, the batch
knows; where it does not end in the batch in which it began, its panes there are still open at the batch's end, and
those tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.algebra.aggregate import Partial, merged
from anabranch.columnar.counted import CountedRange, Law, Looked, Reach, Seen, Texts
from anabranch.columnar.kernels import Bytes, Flags, Indices
from anabranch.columnar.kernels_panes import HALF, LOW, NODES, add_up, place, runs
from anabranch.columnar.matching import Matches
from anabranch.columnar.pane_axis import Axis
from anabranch.columnar.pane_batch import Batch, BatchJudge
from anabranch.columnar.pane_query import CompiledMany, PaneQuery
from anabranch.columnar.pane_rows import First, Pane, Rows, together
from anabranch.columnar.pane_tables import ManyPanes
from anabranch.columnar.shred import Shredded
from anabranch.errors import DynamicError
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item, Punctuation
from anabranch.stream.serialize import serialize

_FAR = 1 << 62
_MOST_BYTES = 4 * LONGEST_RAW
_NODES_MOST = (1 << NODES) - 1


@dataclass(frozen=True, slots=True)
class Member:
    """A window query that is counted."""

    name: str
    query: PaneQuery
    law: Law
    told: bool = True
    """Whether every pane tells which item comes first in it."""


class PaneCounter:
    """Counts the entries of one range; batch by batch: `judge`, then `show` what is unclear, then `take`."""

    def __init__(
        self,
        members: Sequence[Member],
        bury: Callable[[int, DeadLetter], None],
        *,
        file: str,
        largest: Reach | None = None,
    ) -> None:
        """`bury` is told whose dead letter it is; `largest` is the largest value before the range, if known."""
        self._members = members
        self._bury = bury
        self._file = file
        axes: dict[object, int] = {}
        self._axis_of = [
            axes.setdefault(number if each.query.axis is None else each.query.axis, len(axes))
            if each.query.is_timed
            else -1
            for number, each in enumerate(members)
        ]
        heads = [members[self._axis_of.index(number)] for number in range(len(axes))]
        self._axes = [Axis(each.query, each.law, largest) for each in heads]
        self._groups: dict[int, list[int]] = {}
        for number, each in enumerate(members):
            self._groups.setdefault(len(each.query.paths), []).append(number)
        self._judge = BatchJudge([each.query for each in members], self._axes, self._axis_of)
        self._batch: Batch | None = None
        self._items: dict[int, tuple[Item, dict[int, Looked]]] = {}
        self._punctuations: dict[int, Punctuation] = {}
        self._rows: dict[int, list[Rows]] = {paths: [] for paths in self._groups}
        self._single: list[dict[int, Pane]] = [{} for _ in members]
        self._failed: set[int] = set()
        self._entries = 0
        self._selected = [0] * len(members)

    # --- a batch ------------------------------------------------------------------------------------------

    def judge(self, compiled: CompiledMany | None, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        """Begin a batch; gives the entries that must be shown.

        `known` are those that are good items for certain; `matches` is what the conditions of `compiled` take.
        """
        self._batch = self._judge.judge(compiled, shredded, known, matches)
        return self._batch.shown

    def show(self, entry: int, element: Item | Punctuation) -> None:
        """Show an entry that is unclear; a bad one is not shown."""
        assert self._batch is not None, "a batch is judged before it is shown"
        match element:
            case Item():
                unclear = [each.unclear[entry] for each in self._batch.axes]
                wanted = {number for number, axis in enumerate(self._axis_of) if axis >= 0 and unclear[axis]}
                wanted.update(self._batch.asked.get(entry, ()), self._batch.always)
                looked = {number: self._members[number].law.item(element) for number in sorted(wanted)}
                self._items[entry] = element, looked
            case Punctuation():
                self._punctuations[entry] = element

    def take(self) -> None:
        """Count the batch, whose unclear entries have been shown."""
        batch, self._batch = self._batch, None
        assert batch is not None, "a batch is judged before it is taken"
        self._failed.clear()
        states: list[Bytes] = []
        late: list[dict[int, list[bool]]] = []
        for number, axis in enumerate(self._axes):
            shown: dict[int, tuple[Item, Sequence[Seen]] | Punctuation] = dict(self._punctuations)
            for entry, (item, looked) in self._items.items():
                found = next((each for member, each in looked.items() if self._axis_of[member] == number), None)
                if found is not None:
                    shown[entry] = item, found.nodes
            found_states, nodes = axis.take(batch.axes[number], batch.shredded, shown)
            states.append(found_states)
            late.append(nodes)
        for entry, (item, looked) in self._items.items():
            for member, each in looked.items():
                if (on := self._axis_of[member]) >= 0:
                    lates = late[on].get(entry, [bool(states[on][entry])] * len(each.nodes))
                    self._take_shown(member, entry, item, each, lates)
        numbered = {member: self._number(member, batch) for member, axis in enumerate(self._axis_of) if axis < 0}
        for paths, members in self._groups.items():
            rows = self._counted(batch, members, states, numbered, paths)
            self._rows[paths] += [rows] if len(rows) else []
        self._items.clear()
        self._punctuations.clear()
        self._entries += len(batch.shredded.fits)

    # --- single items -------------------------------------------------------------------------------------

    def _take_shown(self, member: int, entry: int, item: Item, looked: Looked, late: Sequence[bool]) -> None:
        """Place the nodes of an item on the axis of time windows."""
        panes = self._members[member].query.panes
        if looked.error:
            self._set_aside(member, item, looked.error)
        for number, node in enumerate(looked.nodes):
            if node.selected and node.value is None and node.error:
                self._set_aside(member, item, node.error)
            elif node.selected and node.value is not None and not late[number]:
                pane = panes.at(node.value)
                if panes.is_used(pane):
                    self._add(member, pane, entry, number, item, node)

    def _add(self, member: int, pane: int, entry: int, number: int, item: Item, node: Seen) -> None:
        order = (self._entries + entry) << NODES | min(number, _NODES_MOST)
        numeric = self._members[member].query.numeric
        partials = tuple(_partial(each, order, asked) for each, asked in zip(node.texts, numeric, strict=True))
        if any(each.failure for each in partials):
            self._failed.add(member)
        raw = serialize(item.tree)[:LONGEST_RAW]
        here = Pane(order, First(self._file, item.place.offset, raw), partials)
        single = self._single[member]
        single[pane] = single[pane].merge(here) if pane in single else here

    def _number(self, member: int, batch: Batch) -> Indices:
        """The numbers of the nodes that a count window takes, those of single items between those of its hits."""
        hits, at, count = batch.hits[member], self._selected[member], 0
        numbers = at + np.arange(len(hits))
        for entry, (item, looked) in sorted(self._items.items()):
            if member not in looked:
                continue
            if error := looked[member].error:
                self._set_aside(member, item, error)
            before = int(np.searchsorted(hits, entry))
            chosen = [each for each in enumerate(looked[member].nodes) if each[1].selected]
            for place_in, (number, node) in enumerate(chosen):
                self._add(member, at + before + count + place_in, entry, number, item, node)
            count += len(chosen)
            numbers[before:] += len(chosen)
        self._selected[member] += len(hits) + count
        return numbers

    def _set_aside(self, member: int, item: Item, error: DynamicError) -> None:
        raw = serialize(item.tree)[:LONGEST_RAW]
        self._bury(member, DeadLetter(item.place, error.message, raw, error.code, self._members[member].name))

    # --- rows ---------------------------------------------------------------------------------------------

    def _counted(
        self, batch: Batch, members: Sequence[int], states: Sequence[Bytes], numbered: dict[int, Indices], paths: int
    ) -> Rows:
        """Add up the hits of members who aggregate so many paths."""
        bounds = np.cumsum([0, *(len(batch.hits[member]) for member in members)])
        hits = np.concatenate([batch.hits[member] for member in members])
        panes, rows, firsts = (np.empty(len(hits), np.int64) for _ in range(3))
        for number, member in enumerate(members):
            part = slice(bounds[number], bounds[number + 1])
            if member in numbered:
                panes[part] = numbered[member]
            elif part.start < part.stop:
                axis, query = self._axis_of[member], self._members[member].query
                ticks = batch.axes[axis].ticks
                assert ticks is not None, "what hits has a value"
                ratio = query.ratio(batch.axes[axis].places)
                place(hits[part], states[axis], ticks, *ratio, query.panes.size, query.panes.step, panes[part])
        found = Rows.empty(paths, runs(bounds, panes, rows, firsts))
        firsts = firsts[: len(found)]
        heads = hits[firsts]
        found.members[:] = np.array(members)[np.searchsorted(bounds, firsts, side="right") - 1]
        found.panes[:] = panes[firsts]
        found.orders[:] = (self._entries + heads) << NODES
        for number, member in enumerate(members):
            part = slice(bounds[number], bounds[number + 1])
            self._add_up(batch, member, hits[part], rows[part], found)
        found.high[:] += found.low >> HALF
        found.low[:] &= LOW
        return self._told(found, batch.shredded, heads)

    def _add_up(self, batch: Batch, member: int, hits: Indices, rows: Indices, into: Rows) -> None:
        ranked = self._members[member].query.ranked
        mine = slice(*np.searchsorted(into.members, (member, member + 1)))
        for path, columns in enumerate(batch.columns[member]):
            for each in columns:
                into.places[path, mine] = each.places
                add_up(
                    hits,
                    rows,
                    self._entries,
                    ranked[path],
                    each.counts,
                    each.ticks,
                    each.values,
                    into.counts[path],
                    into.high[path],
                    into.low[path],
                    into.least[path],
                    into.least_at[path],
                    into.greatest[path],
                    into.greatest_at[path],
                )

    def _told(self, rows: Rows, shredded: Shredded, heads: Indices) -> Rows:
        """With the items that come first, where it may have to be known."""
        bounds = np.array([self._open(member) for member in range(len(self._members))], np.int64)
        told = np.flatnonzero(rows.panes >= bounds[rows.members])
        rows.firsts[told] = np.arange(len(told))
        offsets = shredded.base + shredded.begins[heads[told]].astype(np.int64)
        raw = [_raw(shredded, entry) for entry in heads[told].tolist()]
        firsts = (First(self._file, *each) for each in zip(offsets.tolist(), raw, strict=True))
        return replace(rows, told=tuple(firsts))

    def _open(self, member: int) -> int:
        """The first pane that tells which item comes first in it."""
        each, axis = self._members[member], self._axis_of[member]
        if each.told or axis < 0 or member in self._failed:
            return 0
        largest = self._axes[axis].largest
        if largest is None:
            return 0
        if isinstance(largest, float):
            return _FAR
        panes = each.query.panes
        return min(_FAR, panes.ended(largest - each.query.slack) * panes.step)

    def result(self) -> CountedRange:
        """What was counted, at the end of the range."""
        single = ManyPanes.of(
            (member, number, pane) for member, panes in enumerate(self._single) for number, pane in panes.items()
        )
        rows: dict[int, Rows] = {}
        for paths, parts in self._rows.items():
            whole = together([*parts, *(each for count, each in single.rows.items() if count == paths)], paths)
            level = whole.merged()
            rows[paths] = whole.at(np.argsort(whole.members, kind="stable")) if level is None else level
        members = {number: (axis, self._selected[number]) for number, axis in enumerate(self._axis_of)}
        reached = tuple(each.reached() for each in self._axes)
        return CountedRange(self._file, self._entries << NODES, reached, members, ManyPanes(rows, single.odd))


def _raw(shredded: Shredded, entry: int) -> str:
    """The text of an item that fits, as far as a dead letter shows it."""
    begin, finish = int(shredded.begins[entry]), int(shredded.finishes[entry])
    data = shredded.data[begin : min(finish, begin + _MOST_BYTES)].tobytes()
    return data.decode("utf-8", "ignore")[:LONGEST_RAW]


def _partial(texts: Texts, order: int, numeric: bool) -> Partial:
    """What is known of the values of a node, of which perhaps only the number is asked for."""
    if isinstance(texts, DynamicError):
        return Partial.failed(texts, order)
    if not numeric:
        return Partial(len(texts))
    return merged(Partial.of(text, order) for text in texts)
