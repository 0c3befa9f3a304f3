"""Items that are counted one by one, as the law sees them, for those that columns leave unclear (`panes.py`).

They are gathered batch by batch, and become panes of their own, which are put together with those of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from anabranch.aggregates.partial import ItemAt, Partial, merged
from anabranch.columnar.panes.counted import Looked, Seen, Texts
from anabranch.columnar.panes.kernels import NODES
from anabranch.columnar.panes.query import PaneQuery
from anabranch.columnar.panes.rows import Pane
from anabranch.columnar.scan.kernels import Indices
from anabranch.errors import DynamicError
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item
from anabranch.stream.serialize import serialize

_MOST_NODES = (1 << NODES) - 1


class Singles:
    """The single items of a range, by member."""

    def __init__(
        self, queries: Sequence[PaneQuery], names: Sequence[str], bury: Callable[[int, DeadLetter], None], file: str
    ) -> None:
        self.items: dict[int, tuple[Item, dict[int, Looked]]] = {}
        """Those of the batch, by entry, with what the law sees in them for some members."""
        self.panes: list[dict[int, Pane]] = [{} for _ in queries]
        self.selected = [0] * len(queries)
        """How many nodes count windows have taken, those of columns among them."""
        self._queries = queries
        self._names = names
        self._bury = bury
        self._file = file
        self._entries = 0

    def begin(self, entries: int) -> None:
        """Begin with a batch before which there were so many entries."""
        self._entries = entries

    def take(self, member: int, entry: int, late: Sequence[bool]) -> None:
        """Place the nodes of an item on the axis of time windows."""
        item, found = self.items[entry]
        looked, panes = found[member], self._queries[member].panes
        if looked.error:
            self._set_aside(member, item, looked.error)
        for number, node in enumerate(looked.nodes):
            if node.selected and node.value is None and node.error:
                self._set_aside(member, item, node.error)
            elif node.selected and node.value is not None and not late[number]:
                pane = panes.at(node.value)
                if panes.is_used(pane):
                    self._add(member, pane, entry, number, item, node)

    def number(self, member: int, hits: Indices) -> Indices:
        """The numbers of the nodes that a count window takes, those of single items between those of its hits."""
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

    def _add(self, member: int, pane: int, entry: int, number: int, item: Item, node: Seen) -> None:
        order = (self._entries + entry) << NODES | min(number, _MOST_NODES)
        numeric = self._queries[member].numeric
        at = ItemAt(self._file, item.place.offset, serialize(item.tree)[:LONGEST_RAW])
        partials = tuple(_partial(each, order, at, asked) for each, asked in zip(node.texts, numeric, strict=True))
        here = Pane(order, at, partials)
        panes = self.panes[member]
        panes[pane] = panes[pane].merge(here) if pane in panes else here

    def _set_aside(self, member: int, item: Item, error: DynamicError) -> None:
        raw = serialize(item.tree)[:LONGEST_RAW]
        self._bury(member, DeadLetter(item.place, error.message, raw, error.code, self._names[member]))


def _partial(texts: Texts, order: int, item: ItemAt, numeric: bool) -> Partial:
    """What is known of the values of a node, of which perhaps only the number is asked for."""
    if isinstance(texts, DynamicError):
        return Partial.failed(texts, order, item)
    if not numeric:
        return Partial(len(texts))
    return merged(Partial.of(text, order, item) for text in texts)
