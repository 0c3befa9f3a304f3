"""Windows counted where the items are: each range of a stream becomes a few rows, one for each pane it touches.

A `PaneCounter` counts one range for many *members*, the window queries over its stream, in one pass.
Entries that are clear (`batch.py`) are placed and added up in columns; the others are *shown* to it one by one, as
the law sees them (`SingleItems`), and take their turn in the order of the stream, which decides what is late
(`axis.py`).

Rows of count windows have the number of the node among those selected in the range for a pane.

Windows that are grouped (LAWS 3.8) have rows by pane and key (`keys.py`).

Where a stream evolves (LAWS 4), a counter counts a stretch of a range in which nothing changes.
Members that read a path whose unit has changed are *touched*: they get every item in the units of their start, so
windows are placed and values aggregated exactly; the others are not concerned.

A dead letter for a window shows the items whose values failed, which are single ones, and their partials know them.
Where a window can fail without any of them, its dead letter shows the first item of the window; then every pane notes
its first item (`Member.told`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.aggregates.partial import ItemAt, Partial, merged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.columnar.match.index import Matches
from anabranch.columnar.panes.axis import ReferenceAxis
from anabranch.columnar.panes.batch import BatchJudge, PaneBatch
from anabranch.columnar.panes.counted import CountedRange, ItemLaw, Looked, Reach, Seen, Texts
from anabranch.columnar.panes.kernels import HALF, LOW, NODES, add_up, place, place_groups
from anabranch.columnar.panes.keys import SEED, GroupNumbers, Key, error_key
from anabranch.columnar.panes.parting import parted
from anabranch.columnar.panes.query import CompiledMany, PaneQuery
from anabranch.columnar.panes.rows import ManyPanes, Pane, Rows, together
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices
from anabranch.columnar.scan.shred import Shredded
from anabranch.errors import DynamicError
from anabranch.stream.elements import LONGEST_RAW, Accent, DeadLetter, Item, Punctuation
from anabranch.stream.reading.json_items import item_text
from anabranch.values.placing import Moment

_MOST_BYTES = 4 * LONGEST_RAW
_SPELLED_ELSE = re.compile(rb"""></|['&\r\n\t]|<[!?]|\s/?>|\s\s|\s=|=\s""")
"""What may be spelled differently in an item when it is serialised again."""


@dataclass(frozen=True, slots=True)
class Member:
    """A window query that is counted."""

    name: str
    query: PaneQuery
    law: ItemLaw
    told: bool = True
    """Whether every pane notes its first item."""
    view: int = -1
    """Members of one view know values in the same units."""


class PaneCounter:
    """Counts the entries of one range; batch by batch: `judge`, then `show` what is unclear, then `take`."""

    def __init__(
        self,
        members: Sequence[Member],
        bury: Callable[[int, DeadLetter], None],
        *,
        file: str,
        largest: Callable[[int], Reach | None] = lambda _: None,
        touched: Mapping[int, Evolution] = MappingProxyType({}),
    ) -> None:
        """`bury` takes the member of a dead letter, and the letter.

        `largest` gives the largest value before the range by axis, if known; `touched` are members for whom units have
        changed, with the evolution of the stream.
        """
        self._members = members
        self._touched = touched
        self._file = file
        axes: dict[object, int] = {}
        self._axis_of = [
            axes.setdefault(number if each.query.axis is None else (each.view, each.query.axis), len(axes))
            if each.query.is_timed
            else -1
            for number, each in enumerate(members)
        ]
        heads = [self._axis_of.index(number) for number in range(len(axes))]
        self._axes = [
            ReferenceAxis(members[head].query, members[head].law, largest(number), touched.get(head), early)
            for number, head in enumerate(heads)
            for early in [max(e.query.early for e, axis in zip(members, self._axis_of, strict=True) if axis == number)]
        ]
        self._alike: dict[tuple[int, bool], list[int]] = {}
        """The members by how many paths they aggregate, and whether by group; equal ones are counted together."""
        for number, each in enumerate(members):
            self._alike.setdefault((len(each.query.asked), bool(each.query.keys)), []).append(number)
        self._keys = {
            number: GroupNumbers(len(each.query.keys)) for number, each in enumerate(members) if each.query.keys
        }
        self._queries = [each.query for each in members]
        self._judge = BatchJudge(self._queries, self._axes, self._axis_of)
        self._batch: PaneBatch | None = None
        self._single = SingleItems(self._queries, [each.name for each in members], self._keys, bury, file)
        self._punctuations: dict[int, Punctuation] = {}
        self._rows: dict[int, list[Rows]] = {paths: [] for paths, _ in self._alike}
        self._room = np.empty((5, 0), np.int64)
        self._entries = 0

    # --- a batch ------------------------------------------------------------------------------------------

    def judge(self, compiled: CompiledMany | None, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        """Begin a batch; returns the entries that must be shown.

        `known` are those that are good items for certain; `matches` are those of the conditions of `compiled`.
        """
        self._batch = self._judge.judge(compiled, shredded, known, matches, self._touched)
        return self._batch.shown

    def show(self, entry: int, element: Item | Punctuation | Accent | DeadLetter) -> None:
        """Show an entry that is unclear; a bad one is not shown."""
        assert self._batch is not None, "a batch is judged before it is shown"
        match element:
            case Item():
                unclear = [each.unclear[entry] for each in self._batch.axes]
                wanted = {number for number, axis in enumerate(self._axis_of) if axis >= 0 and unclear[axis]}
                wanted.update(self._batch.asked.get(entry, ()), self._batch.always)
                self._single.items[entry] = element, self._looked(element, sorted(wanted))
            case Punctuation():
                self._punctuations[entry] = element

    def _looked(self, item: Item, wanted: Sequence[int]) -> dict[int, Looked]:
        """What the law reads in an item for some members, each in the units that it knows."""
        known: dict[int, Item] = {}
        for number, evolution in self._touched.items():
            member = self._members[number]
            if member.view not in known:
                known[member.view] = member.law.canonical(item, evolution)
        found: dict[int, Looked] = {}
        for number in wanted:
            member = self._members[number]
            found[number] = member.law.item(known[member.view] if number in self._touched else item)
        return found

    def take(self) -> None:
        """Count the batch, whose unclear entries have been shown."""
        batch, self._batch = self._batch, None
        assert batch is not None, "a batch is judged before it is taken"
        self._single.begin(self._entries)
        states: list[Bytes] = []
        late: list[dict[int, list[bool]]] = []
        for number, axis in enumerate(self._axes):
            shown: dict[int, tuple[Item, Sequence[Seen]] | Punctuation] = dict(self._punctuations)
            for entry, (item, looked) in self._single.items.items():
                found = next((each for member, each in looked.items() if self._axis_of[member] == number), None)
                if found is not None:
                    shown[entry] = item, found.nodes
            found_states, nodes = axis.take(batch.axes[number], batch.shredded, shown)
            states.append(found_states)
            late.append(nodes)
        for entry, (_, looked) in self._single.items.items():
            for member, each in looked.items():
                if (on := self._axis_of[member]) >= 0:
                    lates = late[on].get(entry, [bool(states[on][entry])] * len(each.nodes))
                    self._single.take(member, entry, lates)
        for (paths, _), members in self._alike.items():
            rows = self._counted(batch, members, states, paths)
            self._rows[paths] += [rows] if len(rows) else []
        self._single.items.clear()
        self._punctuations.clear()
        self._entries += len(batch.shredded.fits)

    # --- rows ---------------------------------------------------------------------------------------------

    def _counted(self, batch: PaneBatch, members: Sequence[int], states: Sequence[Bytes], paths: int) -> Rows:
        """Add up the hits of members that aggregate `paths` paths, all of them by group or none."""
        count = len(batch.hits.entries)
        if self._room.shape[1] < count:
            self._room = np.empty((5, count), np.int64)
        hit_rows, row_conditions, row_panes, row_entries, row_keys = self._room[:, :count]
        whose, *placed = placing(batch, frozenset(members), states, self._queries, self._axis_of)
        given: tuple[Any, ...] = (*placed, hit_rows, row_conditions, row_panes, row_entries)
        if members[0] in self._keys:
            keys = (*self._numbered(batch, whose), row_keys, SEED, table_for(count))
            rows = place_groups(batch.hits, whose, *keys, *given)
        else:
            rows = place(batch.hits, whose, *given)
            row_keys[:rows] = 0
        found = Rows.empty(paths, rows)
        conditions, heads = row_conditions[:rows], row_entries[:rows]
        found.members[:] = np.array(batch.members, np.int64)[conditions]
        found.keys[:], found.panes[:] = row_keys[:rows], row_panes[:rows]
        found.orders[:] = (self._entries + heads) << NODES
        for member in members:
            if self._axis_of[member] < 0:
                mine = np.flatnonzero(found.members == member)
                found.panes[mine] = self._single.number(member, heads[mine])
        if len(found):
            for path in range(paths):
                add_path(batch, hit_rows, path, found, self._queries, self._entries)
                decimals = [each[path].decimals if path < len(each) else 0 for each in batch.paths]
                found.known.places[path] = np.array(decimals, np.int64)[conditions]
        found.known.high[:] += found.known.low >> HALF
        found.known.low[:] &= LOW
        found = self._told(found, batch.shredded, heads)
        found, panes = parted(found, batch, hit_rows, conditions, partial(self._shown, batch.shredded))
        for each in panes:
            self._single.put(*each)
        return found

    def _numbered(self, batch: PaneBatch, whose: Indices) -> tuple[Indices, Indices]:
        """By condition the row of its groups, if it is counted; and the groups, by row and matching entry."""
        counted = np.flatnonzero(whose >= 0)
        rows = np.zeros(len(whose), np.int64)
        rows[counted] = np.arange(len(counted))
        found = np.zeros((len(counted), len(batch.shredded.fits)), np.int64)
        for row, condition in enumerate(counted.tolist()):
            hit = np.zeros(found.shape[1], np.bool_)
            hit[batch.hits.of(condition)] = True
            if hit.any():
                texts, missing = zip(*batch.keys[condition], strict=True)
                found[row] = self._keys[int(whose[condition])].of(texts, missing, hit)
        return rows, found

    def _shown(self, shredded: Shredded, entry: int) -> tuple[int, ItemAt]:
        """The place of an entry in the range, and its item as a dead letter has it."""
        return (self._entries + entry) << NODES, ItemAt(self._file, shredded.position(entry), _raw(shredded, entry))

    def _told(self, rows: Rows, shredded: Shredded, heads: Indices) -> Rows:
        """The rows with their first items, for members that need them."""
        tells = np.array([each.told for each in self._members], np.bool_)
        told = np.flatnonzero(tells[rows.members])
        rows.firsts[told] = np.arange(len(told))
        offsets = shredded.positions(heads[told])
        raw = [_raw(shredded, entry) for entry in heads[told].tolist()]
        firsts = (ItemAt(self._file, *each) for each in zip(offsets.tolist(), raw, strict=True))
        return replace(rows, told=tuple(firsts))

    @property
    def entries(self) -> int:
        """How many entries were counted."""
        return self._entries

    def largest(self, axis: int) -> Reach | None:
        """The largest value of an axis so far."""
        return self._axes[axis].largest

    def result(self) -> CountedRange:
        """What was counted, at the end of the range."""
        single = ManyPanes.of(
            (member, key, number, pane)
            for member, panes in enumerate(self._single.panes)
            for (key, number, _), pane in panes.items()
        )
        rows: dict[int, Rows] = {}
        for paths, parts in self._rows.items():
            alone = [each for count, each in single.rows.items() if count == paths]
            rows[paths] = together([*alone, *parts], paths)
            if self._members[0].query.scale.slack or rows[paths].keys.any():  # otherwise few rows have the same pane
                level = rows[paths].merged()
                rows[paths] = rows[paths] if level is None else level
        members = {number: (axis, self._single.selected[number]) for number, axis in enumerate(self._axis_of)}
        reached = tuple(each.reached() for each in self._axes)
        keys = {member: found for member, each in self._keys.items() if (found := each.keys())}
        return CountedRange(self._file, self._entries << NODES, reached, members, ManyPanes(rows, single.odd), keys)


def _raw(shredded: Shredded, entry: int) -> str:
    """The text of an item that fits, as far as a dead letter shows it; most need not be serialised again."""
    begin, finish = int(shredded.begins[entry]), int(shredded.finishes[entry])
    data = shredded.raw[begin : min(finish, begin + _MOST_BYTES)].tobytes()
    if (shredded.wanted is not None and shredded.wanted.look.is_json) or _SPELLED_ELSE.search(data):
        return item_text(shredded.tree(entry))
    return data.decode("utf-8", "ignore")[:LONGEST_RAW]


def table_for(count: int) -> Indices:
    """An empty hash table for the rows of `count` hits."""
    return np.full(1 << (2 * count).bit_length(), -1, np.int64)


_FAR = 1 << 62


def placing(
    batch: PaneBatch,
    members: Container[int],
    states: Sequence[Bytes],
    queries: Sequence[PaneQuery],
    axis_of: Sequence[int],
) -> tuple[NDArray[Any], ...]:
    """The arguments of `place` for the hits of some members: by condition, and by axis, with the entries' states."""
    rows: list[tuple[int, ...]] = []
    for member in batch.members:
        panes, axis = queries[member].panes, axis_of[member]
        ratio = queries[member].ratio(batch.axes[axis].places) if axis >= 0 else (1, 1)
        is_near = max(*ratio, panes.size, panes.step) < _FAR  # the batch leaves members that are not near to the law
        numbers = (*ratio, panes.size, panes.step) if is_near else (1, 1, 1, 1)
        numbers = (*numbers[:3], 0) if queries[member].is_session else numbers
        rows.append((member if member in members else -1, axis, *numbers))
    whose, axes, *sizes = np.array(rows, np.int64).reshape(-1, 6).T.copy()
    nothing = np.zeros(len(batch.shredded.fits), np.int64)
    ticks = [nothing if each.ticks is None else each.ticks for each in batch.axes]
    return whose, axes, np.array([*states, nothing], np.uint8), np.array([*ticks, nothing]), *sizes


def add_path(
    batch: PaneBatch, rows: Indices, path: int, into: Rows, queries: Sequence[PaneQuery], entries: int
) -> None:
    """Add the values of one aggregated path to the rows of its hits; `entries` came before the batch."""
    assert batch.columns is not None, "what hits has columns"
    places = [each[path].places if path < len(each) else () for each in batch.paths]
    asked = [queries[member].ranked for member in batch.members]
    strings = batch.columns.strings  # of these both extremes are needed
    ranks = [3 if any(each.leaf in strings for each in given) else 0 for given in places]
    add_up(
        batch.hits,
        rows,
        entries,
        np.cumsum([0, *map(len, places)]),
        np.array([each.taken for given in places for each in given], np.int64),
        np.array([each.leaf for given in places for each in given], np.int64),
        np.array([(each[path] if path < len(each) else 0) | both for each, both in zip(asked, ranks, strict=True)]),
        batch.columns.times,
        batch.columns.ticks,
        *batch.columns.extremes,
        path,
        into.known,
    )


_MOST_NODES = (1 << NODES) - 1


class SingleItems:
    """The single items of a range, by member."""

    def __init__(
        self,
        queries: Sequence[PaneQuery],
        names: Sequence[str],
        keys: Mapping[int, GroupNumbers],
        bury: Callable[[int, DeadLetter], None],
        file: str,
    ) -> None:
        self.items: dict[int, tuple[Item, dict[int, Looked]]] = {}
        """The items of the batch, by entry, with what the law reads in them for some members."""
        self.panes: list[dict[tuple[int, int, bool], Pane]] = [{} for _ in queries]
        """By member: its panes, by key and number, those of early times apart."""
        self.selected = [0] * len(queries)
        """By member: how many nodes its count windows have taken, also in columns."""
        self._queries = queries
        self._names = names
        self._keys = keys
        self._bury = bury
        self._file = file
        self._entries = 0

    def begin(self, entries: int) -> None:
        """Begin a batch behind `entries` entries of the range."""
        self._entries = entries

    def take(self, member: int, entry: int, late: Sequence[bool]) -> None:
        """Place the nodes of an item on the axis of time windows."""
        item, found = self.items[entry]
        looked, query = found[member], self._queries[member]
        if looked.error:
            self._set_aside(member, item, looked.error)
        for number, node in enumerate(looked.nodes):
            if node.selected and node.value is None and node.error:
                self._set_aside(member, item, node.error)
            elif node.selected and node.value is not None and not late[number]:
                pane = query.panes.at(node.value)
                if query.is_session and isinstance(node.key, DynamicError):
                    self._set_aside(member, item, node.key)
                    continue
                is_early = not query.is_session and isinstance(node.value, Moment) and node.value < query.early
                if is_early or query.is_session or query.panes.is_used(pane):
                    self._add(member, pane, entry, number, item, node, is_early=is_early)

    def number(self, member: int, hits: Indices) -> Indices:
        """The numbers of the hits of a count window, which single items are numbered between."""
        at, count = self.selected[member], 0
        numbers = at + np.arange(len(hits))
        for entry, (item, looked) in sorted(self.items.items()):
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
        self.selected[member] += len(hits) + count
        return numbers

    def put(self, member: int, key: int, number: int, pane: Pane) -> None:
        """Merge a pane into that with the same key and number."""
        panes, at = self.panes[member], (key, number, pane.is_early)
        panes[at] = panes[at].merge(pane) if at in panes else pane

    def _add(
        self, member: int, pane: int, entry: int, place_in: int, item: Item, node: Seen, *, is_early: bool = False
    ) -> None:
        order = (self._entries + entry) << NODES | min(place_in, _MOST_NODES)
        query = self._queries[member]
        at = ItemAt(self._file, item.place.offset, item_text(item.tree))
        error = node.spoils or (node.key if isinstance(node.key, DynamicError) else None)
        known = zip(node.texts, query.numeric, strict=True)
        partials = tuple(_partial(each, order, at, asked) for each, asked in known)
        if query.is_session:  # the sum of the offsets in the pane is not needed
            partials = (*partials[:-1], replace(partials[-1], total=0, places=0, rest=Fraction(0)))
        if error is not None:  # it has no values but the error, and whether it is a time
            partials = (*[Partial()] * len(query.paths), *partials[len(query.paths) :])
            key: Key | None = error_key(error, at, len(query.keys), spoils=node.spoils is not None)
        else:
            key = None if isinstance(node.key, DynamicError) else node.key
        if key is None:
            return
        number = self._keys[member].number(key) if key else 0
        self.put(member, number, pane, Pane(order, at, partials, is_early))

    def _set_aside(self, member: int, item: Item, error: DynamicError) -> None:
        raw = item_text(item.tree)
        self._bury(member, DeadLetter(item.place, error.message, raw, error.code, self._names[member]))


def _partial(texts: Texts, order: int, item: ItemAt, numeric: bool) -> Partial:
    """The partial aggregate of the values of a node; only their number if not `numeric`."""
    if isinstance(texts, DynamicError):
        return Partial.failed(texts, order, item)
    if not numeric:
        return Partial(len(texts))
    return merged(Partial.of(text, order, item) for text in texts)
