"""A state in layers: a full state, and above it the changes since.

An epoch writes one layer with its changes.
Layers of similar weight are merged, as carries are in counting, so there are few of them, and a change is written a
logarithmic number of times; when the layers above the base weigh as much as it, all is written anew.
So an epoch writes its changes, not the document, and the state is never much larger than its content.

A layer is plain data (`state.py`) in a blob of its own; layers that an epoch does not change keep their blobs.
Beside the entries it has the edits of the display, from which a reader of the display alone computes it.

Each layer has the number of its last save: a process with an earlier state applies the layers that end later.

Restoring a document costs as much as the document is large, and an epoch may bring one update.
So a process caches the document of its branch (`branch/cache.py`); if another process had the branch since, only the
newer layers are applied (`Resumed`).
A process that never had it, or too long ago, restores all layers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.algebra.display.display import Edit, Insert, Remove
from anabranch.branch import cache
from anabranch.branch.document.state import Data, without_gc
from anabranch.branch.ports import Spill
from anabranch.branch.state import BranchState
from anabranch.errors import StateError

_ROWS = pa.schema([("stream", pa.string()), ("kind", pa.int8()), ("number", pa.int64()), ("row", pa.large_string())])
_ENTRY = 2
"""The kind of row that is an entry; the other kinds are regions and past ids."""
_EDITS = pa.schema(
    [("position", pa.int64()), ("removed", pa.int64()), ("text", pa.large_string()), ("display", pa.string())]
)
"""The edits of displays; that of a query with a branch to itself has an empty name."""
_VERSION = 2
"""Version 1 kept all ids for good, with their regions."""
_KNOWN_SAVES = 64
"""The number of saves by which an earlier state is recognised."""
_SMALL_WEIGHT = 100
"""A smaller weight is always written in full."""
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class StateLayer:
    """A full state, or changes; `more` is other data, of which the latest counts."""

    streams: dict[str, list[Data]]
    """By stream: its order and the rest."""
    more: dict[str, Any]
    rows: pa.Table
    """Ids and entries, by number."""
    edits: pa.Table

    @staticmethod
    def of(data: Data, edits: Mapping[str, Iterable[Edit]] | None = None) -> StateLayer:
        """A layer from plain data with `streams`, and the edits of displays, by their names."""
        streams: dict[str, list[Data]] = {}
        rows: list[tuple[str, int, int, str]] = []
        for name, (order, ids, rest, entries) in data["streams"].items():
            streams[name] = [order, rest]
            for kind, several in enumerate((*ids, entries)):
                rows += [(name, kind, each[0], _row_text(each[1:])) for each in several]
        more = {key: value for key, value in data.items() if key != "streams"}
        edited = [
            (each.position, 0, each.text, name) if isinstance(each, Insert) else (each.position, each.length, "", name)
            for name, several in (edits or {}).items()
            for each in several
        ]
        return StateLayer(streams, more, _table(rows, _ROWS), _table(edited, _EDITS))

    def data(self) -> Data:
        """The plain data."""
        found: dict[str, list[list[Data]]] = {name: [[], [], []] for name in self.streams}
        for name, kind, number, row in zip(*(each.to_pylist() for each in self.rows.columns), strict=True):
            found[name][kind].append([number, *json.loads(row)])
        streams: dict[str, list[Data]] = {}
        for name, (order, rest) in self.streams.items():
            *ids, entries = found[name]
            streams[name] = [order, ids, rest, entries]
        return {**self.more, "streams": streams}

    def over(self, older: StateLayer) -> StateLayer:
        """Merge this layer with the one below it."""
        streams: dict[str, list[Data]] = {}
        rows = [self.rows]
        for name, (order, rest) in self.streams.items():
            streams[name] = [[*older.streams[name][0], *order], rest]
            for kind in range(_ENTRY + 1):
                covered = _of(self.rows, name, kind)["number"].combine_chunks()
                if kind == _ENTRY:
                    covered = pa.concat_arrays([covered, pa.array([n for gone, _ in order for n in gone], pa.int64())])
                below = _of(older.rows, name, kind)
                rows.append(below.filter(pc.invert(pc.is_in(below["number"], value_set=covered))))
        return StateLayer(streams, self.more, pa.concat_tables(rows), pa.concat_tables([older.edits, self.edits]))

    @property
    def weight(self) -> int:
        """Its size, by rows and edits."""
        placed = sum(len(removed) + len(runs) for order, _ in self.streams.values() for removed, runs in order)
        rows: int = self.rows.num_rows + self.edits.num_rows
        return 1 + rows + placed

    def edited(self, display: str = "") -> Iterator[Edit]:
        """The edits of a display."""
        edits = self.edits.filter(pc.equal(self.edits["display"], display)).drop_columns(["display"])
        for position, removed, text in zip(*(each.to_pylist() for each in edits.columns), strict=True):
            yield Remove(position, removed) if removed else Insert(position, text)

    def to_bytes(self) -> bytes:
        meta = {"operator": "layer", "version": _VERSION, "streams": self.streams, "more": self.more}
        return BranchState(meta, {"rows": self.rows, "edits": self.edits}).to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> StateLayer:
        state = BranchState.from_bytes(data)
        version = state.meta.get("version", 1)
        if version != _VERSION:
            raise StateError(
                f"the state of a stream of updates is of version {version}, and this release reads version {_VERSION}",
                hint="use the release that wrote it, or begin with a new checkpoint",
            )
        edits = state.tables["edits"]
        if "display" not in edits.column_names:  # an earlier release had one display to a state
            edits = edits.append_column(_EDITS.field("display"), pa.array([""] * edits.num_rows, pa.string()))
        return StateLayer(state.meta["streams"], state.meta["more"], state.tables["rows"], edits)


def _row_text(row: Data) -> str:
    """A row as JSON; numbers in it are integers, others are written as texts."""
    try:
        return msgspec.json.encode(row).decode()
    except (TypeError, UnicodeEncodeError):  # a text of a type of its own, or one that no encoding has
        return json.dumps(row)


def _table(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = [list(each) for each in zip(*rows, strict=True)] or [[] for _ in schema]
    return pa.table(columns, schema=schema)


def _of(rows: pa.Table, stream: str, kind: int) -> pa.Table:
    return rows.filter(pc.and_(pc.equal(rows["stream"], stream), pc.equal(rows["kind"], kind)))


@dataclass(frozen=True, slots=True)
class _LayerPlace:
    """The location of a layer, its weight, and the number of its last save."""

    ref: str
    weight: int
    save: int


def read_layers(kept: Data, read: Callable[[str], bytes]) -> list[StateLayer]:
    """All layers of what `Resumed.save` wrote, the base first."""
    return [StateLayer.from_bytes(read(ref)) for ref, _, _ in kept["laid"]]


def shown(layers: Sequence[StateLayer], display: str = "") -> str:
    """The text that all edits of a display together give."""
    chunks = [""]
    for layer in layers:
        for edit in layer.edited(display):
            _apply(edit, chunks)
    return "".join(chunks)


def _apply(edit: Edit, chunks: list[str]) -> None:
    """Edit a text in chunks, at the cost of one chunk."""
    number, position = 0, edit.position
    while position > len(chunks[number]):
        position -= len(chunks[number])
        number += 1
    last, end = number, position + (edit.length if isinstance(edit, Remove) else 0)
    while end > len(chunks[last]):
        end -= len(chunks[last])
        last += 1
    text = chunks[number][:position] + (edit.text if isinstance(edit, Insert) else "") + chunks[last][end:]
    size = _CHUNK if len(text) > 2 * _CHUNK else len(text) + 1
    chunks[number : last + 1] = [text[at : at + size] for at in range(0, len(text) + 1, size)]


class Resumable(Protocol):
    """State that is updated and can be saved."""

    @property
    def changes(self) -> int:
        """The number of changes since `settled`."""

    def encode(self, *, whole: bool) -> Data:
        """All of it, or the changes since `settled`."""

    def decode(self, *several: Data) -> None:
        """Restore from `encode`: all, or changes to an earlier state."""

    def settled(self) -> None:
        """All changes are saved."""


R = TypeVar("R", bound=Resumable)


class Resumed(Generic[R]):
    """A resumable value, continued from the epoch before, and the layers of its state, the base first.

    `ground` is all else that it depends on, and `kept` is the result of `save`.
    """

    def __init__(self, fresh: Callable[[], R], ground: Any, kept: Data | None, spill: Spill) -> None:
        self._ground, self._spill = ground, spill
        self._born = "" if kept is None else kept["born"]
        """Identifies the state, from its first save on."""
        self._saves: list[str] = [] if kept is None else list(kept["saves"])
        """Identify the latest saves, also of attempts that failed."""
        self._count = 0 if kept is None else kept["count"]
        self._laid = [] if kept is None else [_LayerPlace(*each) for each in kept["laid"]]
        with without_gc():
            self.machine = self._found(fresh)

    def _found(self, fresh: Callable[[], R]) -> R:
        picked: tuple[str, R] | None = cache.here.take((self._born, self._ground)) if self._born else None
        if picked is not None and (missed := self._since(picked[0])) is not None:
            if missed:
                picked[1].decode(*(self._read(each).data() for each in missed))
            return picked[1]
        machine = fresh()
        if self._laid:
            machine.decode(*(self._read(each).data() for each in self._laid))
        return machine

    def _since(self, save: str) -> list[_LayerPlace] | None:
        """The layers with all changes since a save, and some earlier ones; None where that is no longer known."""
        if save not in self._saves:
            return None
        number = self._count - len(self._saves) + self._saves.index(save) + 1
        return None if self._laid[0].save > number else [each for each in self._laid if each.save > number]

    def _read(self, laid: _LayerPlace) -> StateLayer:
        return StateLayer.from_bytes(self._spill.read(laid.ref))

    def save(
        self,
        held: int,
        edits: Mapping[str, Sequence[Edit]] | None = None,
        texts: Callable[[], Mapping[str, str]] = dict,
    ) -> Data:
        """Write the changes, or all; gives the locations. The value is not used any more.

        `held` is its weight; `edits` are those of the epoch by display, and `texts` gives the results of all edits.
        """
        with without_gc():
            if whole := self._wants_all(self.machine.changes + sum(map(len, (edits or {}).values()))):
                self._laid.clear()
                edits = {name: (Insert(0, text),) for name, text in texts().items() if text}
            self._put(StateLayer.of(self.machine.encode(whole=whole), edits))
        self.machine.settled()
        cache.here.put((self._born, self._ground), (self._saves[-1], self.machine), held)
        laid = [[each.ref, each.weight, each.save] for each in self._laid]
        return {"born": self._born, "saves": self._saves, "count": self._count, "laid": laid}

    def _wants_all(self, weight: int) -> bool:
        """Whether to write the base anew, because the layers above would weigh as much, or it is small."""
        if not self._laid or self._laid[0].weight < _SMALL_WEIGHT:
            return True
        return weight + sum(each.weight for each in self._laid[1:]) > self._laid[0].weight

    def _put(self, layer: StateLayer) -> None:
        """Write a layer on top of the others."""
        while len(self._laid) > 1 and self._laid[-1].weight < 2 * layer.weight:
            layer = layer.over(self._read(self._laid.pop()))
        ref = self._spill.write(layer.to_bytes())
        self._count += 1
        self._laid.append(_LayerPlace(ref, layer.weight, self._count))
        self._saves = [*self._saves, blake2b(ref.encode(), digest_size=8).hexdigest()][-_KNOWN_SAVES:]
        self._born = self._born or self._saves[0]

    @property
    def refs(self) -> tuple[str, ...]:
        """The names in the spill that the state refers to."""
        return tuple(each.ref for each in self._laid)
