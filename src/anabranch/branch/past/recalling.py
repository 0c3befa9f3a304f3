"""Queries about the past of streams of items as branches: versions are arrivals (LAWS 5.5).

There are two kinds.
Where one `for` runs over a stream without qualifier, each of its rounds is run when its item arrives, and its results
stand: the answer only grows, a piece at a time (query 3 of the history paper).
Where streams are read by asking for their past only, the query is evaluated at the latest element, and what it gives is
on display, to be corrected by the next (queries 4 and 5).

Both look back over no more than what rounds to come can ask for (`reference/arrivals/recollection.py`): that is the
state, as raw entries, which are read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pyarrow as pa

from anabranch.branch.backlog import Key
from anabranch.branch.entries import Entry, Origin
from anabranch.branch.history.hosted import SHOWN
from anabranch.branch.keeping import number_nodes
from anabranch.branch.merge import Changed, Merge, Released, Signal
from anabranch.branch.past.answers import DisplayAnswer, StandingAnswer
from anabranch.branch.past.queries import RecalledMember
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.reading import EntryReader
from anabranch.branch.state import State
from anabranch.errors import StateError
from anabranch.reference.arrivals.recollection import Recollection
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import Arrival, Input
from anabranch.reference.inputs import Signal as Passed
from anabranch.reference.slices import WholeNeeded
from anabranch.stream.elements import Item
from anabranch.stream.lines import Cut
from anabranch.stream.tree import Document, Element, copy

_ROWS = pa.schema(
    [
        ("stream", pa.string()),
        ("partition", pa.int32()),
        ("file", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("raw", pa.binary()),
        ("root", pa.binary()),
        ("encoding", pa.string()),
        ("time", pa.string()),
        ("number", pa.int64()),
        ("paths", pa.list_(pa.int32())),
    ]
)


class Recalled:
    """A branch that remembers what a query may ask of the past."""

    def __init__(
        self,
        member: RecalledMember,
        inputs: Mapping[str, InputStream],
        state: State | None,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
        spill: Spill,
    ) -> None:
        self._member = member
        self._inputs = inputs
        self._merge = Merge(list(inputs.values()), spill)
        self._roots = {name: _root(stream) for name, stream in inputs.items()}
        given = {name: Input(_document(root), time=inputs[name].time) for name, root in self._roots.items()}
        asked = member.query
        self._recollection = Recollection(
            asked.query, asked.asked, {**documents, **given}, functions, member.name, asked.text
        )
        self._answer: StandingAnswer | DisplayAnswer = (
            DisplayAnswer(member) if asked.standing is None else StandingAnswer(member)
        )
        self._entries: dict[Arrival, tuple[Entry, int]] = {}
        """Of what is remembered, the raw entry and the how many-th item it was."""
        self._taken = 0
        self._ended: str | None = None
        self.aborted: dict[str, str] = {}
        if state is not None:
            self._restore(state)

    # --- what comes in ------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take in a feed."""
        self._merge.feed(data)
        self._run()

    def passed(self, time: Fraction) -> None:
        """No input whose elements have the times of their arrival brings anything at or before `time` any more."""
        self._merge.passed(time)
        self._run()

    def end(self, stream: str, partition: int) -> None:
        """An input has ended."""
        self._merge.end(stream, partition)
        self._run()

    def _run(self) -> None:
        for each in self._merge.released():
            if self._ended is not None:
                continue
            match each:
                case Released(entry, item):
                    origin = entry.origin
                    time = self._merge.sources[origin.stream, origin.partition].now
                    self._take(origin.stream, self._arrival(entry, item, time, self._taken))
                    self._taken += 1
                case Signal(stream, partition, punctuation) if punctuation is not None:
                    time = self._merge.sources[stream.name, partition].now
                    self._take(stream.name, Passed(punctuation, time, partition))
                case Changed(stream, _, change):
                    self._abort(f"stream '{stream.name}' has changed ({change.place}), and the past cannot follow yet")
                case _:
                    pass

    def _arrival(self, entry: Entry, item: Item, time: Fraction, number: int) -> Arrival:
        stream = entry.origin.stream
        item.tree.parent = self._roots[stream]
        number_nodes(item.tree, list(self._inputs).index(stream), number)
        arrival = Arrival(item.tree, time, entry.origin.partition, item.place)
        self._entries[arrival] = entry, number
        return arrival

    def _take(self, stream: str, element: Arrival | Passed) -> None:
        try:
            self._recollection.take(stream, element)
            self._answer.take(self._recollection, stream, element)
        except WholeNeeded:
            self._abort("a path of the query reaches the root of a stream")

    def _abort(self, reason: str) -> None:
        self._ended = self.aborted[self._member.key] = reason

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> State | None:
        """What must be remembered; the epoch is over."""
        merge, waiting = self._merge.save()
        rows = []
        for arrival, paths in self._recollection.remembered():
            entry, number = self._entries[arrival]
            origin, cut = entry.origin, entry.cut
            place = {"stream": origin.stream, "partition": origin.partition, "file": origin.file}
            bytes_ = {"start": cut.start, "end": cut.end, "raw": cut.raw, "root": cut.root, "encoding": cut.encoding}
            rows.append({**place, **bytes_, "time": str(arrival.time), "number": number, "paths": paths})
        answer, shown = self._answer.save()
        meta = {
            "operator": "past",
            "merge": merge,
            "taken": self._taken,
            "now": str(self._recollection.now),
            "answer": answer,
            "ended": self._ended,
        }
        items = pa.Table.from_pylist(rows, schema=_ROWS)
        return State(meta, {"waiting": waiting, "items": items, "shown": pa.table([shown], schema=SHOWN)})

    def _restore(self, state: State) -> None:
        meta = state.meta
        if meta["operator"] != "past":
            raise StateError(f"the state of '{self._member.name}' is that of another kind of branch")
        self._merge.restore(meta["merge"], state.tables["waiting"])
        self._taken, self._ended = meta["taken"], meta["ended"]
        readers = {name: EntryReader(stream) for name, stream in self._inputs.items()}
        found: list[tuple[Arrival, list[int]]] = []
        for row in state.tables["items"].to_pylist():
            cut = Cut(row["start"], row["end"], row["raw"], None, row["root"], row["encoding"])
            entry = Entry(Origin(row["stream"], row["partition"], row["file"]), cut)
            item = readers[row["stream"]].read(entry)
            if not isinstance(item, Item):
                raise StateError(f"an item that '{self._member.name}' remembers can no longer be read")
            found.append((self._arrival(entry, item, Fraction(row["time"]), row["number"]), row["paths"]))
        self._recollection.restore(Fraction(meta["now"]), found)
        self._answer.restore(meta["answer"], state.tables["shown"].column("text").to_pylist())

    @property
    def held(self) -> int:
        """How many items it remembers."""
        return self._recollection.held

    @property
    def waiting(self) -> dict[Key, int]:
        """How many elements each input has to hold back."""
        return self._merge.waiting

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs."""
        return self._merge.spilled


def _root(stream: InputStream) -> Element:
    root = copy(stream.root)
    assert isinstance(root, Element)
    return root


def _document(root: Element) -> Document:
    document = Document()
    document.append(root)
    return document
