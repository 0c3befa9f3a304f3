"""A query over update streams as a branch: elements in their merged order, the answer as an update stream of its own.

All streams of such a query are documents that are edited (LAWS 5), also one of items, to which nothing happens but that
items are added.
Elements come in the order of LAWS 1.2 (`merge.py`), judged by what is known of their partition; the machine
(`continuous.py`) takes them, and what each moment changes on display goes out as one piece: the elements that a reader
has to apply, and a heartbeat that ends the moment (LAWS 5.7).
So an answer needs no epoch's end, and none can be seen in it.

What is bad in a stream is told by whoever keeps its document (`keeper.py`), once for all queries; here are the errors
of the query itself.
A late branch begins with the document as it stands there (LAWS 3.6).

Its state is that of the machine, in layers (`layers.py`); and what it shows, for who asks for that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from math import floor
from typing import Any

import pyarrow as pa

from anabranch.algebra.history.edits import Edit
from anabranch.algebra.history.publishing import Published, Told, heartbeat
from anabranch.branch.backlog import Key
from anabranch.branch.history.continuous import Change, Continuous
from anabranch.branch.history.keeper import document_of, good_time
from anabranch.branch.history.layers import read_layers, shown
from anabranch.branch.history.resumed import Resumed
from anabranch.branch.history.state import Data
from anabranch.branch.merge import Came
from anabranch.branch.merged import Merged
from anabranch.branch.ports import InputStream, Output, Spill
from anabranch.branch.state import State
from anabranch.errors import StateError
from anabranch.language import ast
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import Input
from anabranch.stream.elements import Accent, DeadLetter, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.serialize import serialize

_UNIT = 10**30
_BURIED = 1_000
"""So many dead letters of a query are not told again."""
SHOWN = pa.schema([("text", pa.large_string())])
"""What is on display, in one row, or in none before the first moment."""


@dataclass(frozen=True, slots=True)
class DisplayQuery:
    """A checked query whose answer is a display: it reads streams that are edited."""

    query: ast.Query
    text: str
    streams: tuple[str, ...]
    """Those that it reads, in the order in which it names them, which decides ties (LAWS 1.2)."""


@dataclass(frozen=True, slots=True)
class DisplayMember:
    """A query that a branch serves."""

    key: str
    name: str
    query: DisplayQuery
    out: Output


@dataclass(slots=True)
class Given:
    """What a branch is given beside its streams."""

    functions: Mapping[str, PythonFunction] = field(default_factory=dict)
    documents: Mapping[str, Input] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    keepers: Mapping[str, State] = field(default_factory=dict)
    """What the keepers of streams remember that had begun before the branch did."""


class Displayed(Merged):
    """A branch whose answer is on display."""

    def __init__(
        self,
        member: DisplayMember,
        inputs: Mapping[str, InputStream],
        state: State | None,
        given: Given,
        spill: Spill,
    ) -> None:
        super().__init__(inputs.values(), spill, self)
        self._member = member
        self._inputs = inputs
        kept = None if state is None else self._kept_of(state)
        self._resumed = Resumed(lambda: self._fresh(given), self._ground(given), kept, spill)
        self._machine = self._resumed.machine
        self._machine.call(given.functions)
        self._edits: list[Edit] = []
        """Those of this epoch."""
        self._ended: str | None = None
        self._buried: dict[str, None] = {}
        """What was set aside lately, in short."""
        self.aborted: dict[str, str] = {}
        if state is not None:
            self._restore(state)
        elif given.keepers:
            self._begin(given.keepers, given.limits, spill)

    def _fresh(self, given: Given) -> Continuous:
        return Continuous(
            self._member.query.query,
            {name: stream.root for name, stream in self._inputs.items()},
            functions=given.functions,
            inputs=given.documents,
            name=self._member.name,
            text=self._member.query.text,
            limits=given.limits,
            display=Published,
        )

    def _ground(self, given: Given) -> Any:
        """All that the machine follows from beside its state; functions are told to it anew."""
        roots = [(name, serialize(stream.root)) for name, stream in self._inputs.items()]
        documents = [(name, id(each)) for name, each in given.documents.items()]  # it holds on to them
        return self._member.name, self._member.query.text, roots, documents, given.limits

    def _begin(self, keepers: Mapping[str, State], limits: Limits, spill: Spill) -> None:
        """Begin late, with the documents as they stand, and with what of their elements had to wait until now."""
        for kept in keepers.values():
            self._merge.restore(kept.meta["merge"], kept.tables["waiting"])
        documents = {name: document_of(kept, self._inputs[name], limits, spill) for name, kept in keepers.items()}
        self._show(self._machine.begin(documents))

    # --- what comes in ------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """A query that fails when all inputs have ended has no answer."""
        if (error := self._machine.failure) is not None:
            self._abort(error.message)

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of an element that is to be taken next; None for a bad one."""
        name, partition = key
        if isinstance(element, Accent):
            self._abort(
                f"stream '{name}' carries an accent ({element.place}), and queries over updates cannot follow it yet"
            )
            return None
        return good_time(self._machine.kept[name], self._inputs[name], partition, element, arrived)

    def _run(self) -> None:
        for each in self._merge.released():
            if isinstance(each, Came) and self._ended is None:
                for change in self._machine.take(each.stream, each.element, each.at, each.partition):
                    self._show(change)
        for kept in self._machine.kept.values():
            kept.dead.clear()

    def _show(self, change: Change) -> None:
        at = wire_time(change.at)
        display = self._machine.display
        assert isinstance(display, Published)
        told = display.wire(at, hidden=self._machine.failure is not None)
        if told:
            self._member.out.piece("".join((*told, heartbeat(at), "\n")))
        self._edits += change.edits
        for letter in change.dead:
            self._bury(letter)

    def _bury(self, letter: DeadLetter) -> None:
        """Set something aside, unless that was done lately: an entry that fails does so whenever it is looked at."""
        place = letter.place
        told = repr((place.stream, place.partition, place.offset, letter.reason, letter.code))
        digest = blake2b(told.encode(), digest_size=8).hexdigest()
        if digest not in self._buried:
            self._buried[digest] = None
            self._member.out.bury(letter)
            if len(self._buried) > _BURIED:
                del self._buried[next(iter(self._buried))]

    def _abort(self, reason: str) -> None:
        if self._ended is None:
            self._ended = self.aborted[self._member.key] = reason

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> State | None:
        """What must be remembered; the epoch is over."""
        merge, waiting = self._merge.save()
        display = self._machine.display
        assert isinstance(display, Published)
        told = [display.told.times, display.told.known]
        meta = {
            "operator": "display",
            "merge": merge,
            "layers": self._resumed.save(self.held, self._edits, lambda: self._machine.text),
            "told": told,
            "ended": self._ended,
            "buried": list(self._buried),
        }
        return State(meta, {"waiting": waiting})

    def _kept_of(self, state: State) -> Data:
        if state.meta["operator"] != "display":
            raise StateError(f"the state of '{self._member.name}' is that of another kind of branch")
        return state.meta["layers"]

    def _restore(self, state: State) -> None:
        meta = state.meta
        self._merge.restore(meta["merge"], state.tables["waiting"])
        display = self._machine.display
        assert isinstance(display, Published)
        display.resume(Told(*meta["told"]))
        self._ended = meta["ended"]
        self._buried = dict.fromkeys(meta["buried"])

    @property
    def held(self) -> int:
        """How many entries it remembers."""
        return sum(len(each.by_number) for each in self._machine.kept.values())

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs: also those of its layers."""
        return (*super().spilled, *self._resumed.refs)


def shown_in(state: State, read: Callable[[str], bytes]) -> str | None:
    """What a display showed when this was its state; None before its first moment."""
    if state.meta["operator"] != "display":
        found: list[str] = state.tables["shown"].column("text").to_pylist()
        return found[0] if found else None
    layers = read_layers(state.meta["layers"], read)
    return None if layers[-1].more["is_new"] else shown(layers)


def wire_time(time: Fraction) -> Decimal:
    """A time as the wire can have it (`stream/wire.py`): from 0 on, with at most thirty digits on each side."""
    units = min(max(floor(time * _UNIT), 0), _UNIT * _UNIT - 1)
    whole, rest = divmod(units, _UNIT)
    return Decimal(f"{whole}.{rest:030}".rstrip("0").rstrip("."))
