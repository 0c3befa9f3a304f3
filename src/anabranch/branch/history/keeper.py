"""The document of an update stream as it stands, kept once for all queries, those that come late included (LAWS 3.6).

A keeper is a branch that nobody has subscribed to.
It takes the elements of its stream in their order (LAWS 1.2), whoever else does so, and applies the updates; of every
region the newest version is kept, and the ids that are taken.
It is the one that sets bad elements aside, once for all queries: updates of unknown regions, ids taken against
LAWS 5.3, times that run backwards.
Whoever looks at the stream judges by the same rules over the same elements, and so comes to the same.

Who comes late begins with its document, and with what still waits for its turn here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import pyarrow as pa

from anabranch.branch.backlog import Key
from anabranch.branch.history.kept import Kept
from anabranch.branch.history.state import decode, encode
from anabranch.branch.merge import Came, Merge
from anabranch.branch.ports import InputStream, Output, Spill
from anabranch.branch.state import State
from anabranch.errors import StateError
from anabranch.language import ast, parse
from anabranch.reference.history.document import Document
from anabranch.reference.history.timeline import time_of
from anabranch.sharing.history import Needs, needs_of
from anabranch.stream.elements import StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Element

_ROWS = pa.schema([("entry", pa.string())])


class Keeper:
    """A branch that keeps the document of one stream."""

    def __init__(self, stream: InputStream, state: State | None, limits: Limits, out: Output, spill: Spill) -> None:
        self._stream = stream
        self._out = out
        self._merge = Merge([stream], spill, self)
        self._kept = _All(stream.root, stream.name, limits)
        self.aborted: dict[str, str] = {}
        if state is not None:
            self._merge.restore(state.meta["merge"], state.tables["waiting"])
            _fill(self._kept, state, stream)

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

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of an element that is to be taken next; a bad one is set aside, for all."""
        at = good_time(self._kept, self._stream, key[1], element, arrived)
        for letter in self._kept.dead:
            self._out.bury(letter)
        self._kept.dead.clear()
        return at

    def _run(self) -> None:
        for each in self._merge.released():
            if isinstance(each, Came):
                for moment in self._kept.take(each.element, each.at, each.partition):
                    self._kept.moved(moment.at)
                self._kept.changed.clear()

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> State | None:
        """What must be remembered; the epoch is over."""
        merge, waiting = self._merge.save()
        entries, rest = encode(self._kept)
        rows = pa.table([[json.dumps(each) for each in entries]], schema=_ROWS)
        return State({"operator": "keeper", "merge": merge, "rest": rest}, {"waiting": waiting, "entries": rows})

    @property
    def held(self) -> int:
        """How many entries the document has."""
        return len(self._kept.by_number)

    @property
    def waiting(self) -> dict[Key, int]:
        """How many elements each input has to hold back."""
        return self._merge.waiting

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state needs."""
        return self._merge.spilled


def document_of(state: State, stream: InputStream, limits: Limits) -> Document:
    """The document that a keeper's state holds, for one who begins with it: lives begin now."""
    kept = _All(stream.root, stream.name, limits)
    _fill(kept, state, stream)
    return kept.whole().begun_at(kept.now)


def good_time(
    document: Document, stream: InputStream, partition: int, element: StreamElement, arrived: Fraction | None
) -> Fraction | None:
    """The time of an element that is good behind all that was taken of its partition (LAWS 1.3); None for a bad one."""
    at = time_of(element, stream.time, document.reached(partition) if arrived is None else arrived)
    return at if document.accepts(element, at, partition) else None


class _All(Kept):
    """All that shows of a stream, chain by chain."""

    def __init__(self, root: Element, stream: str, limits: Limits) -> None:
        super().__init__(root, stream, _needs(stream), limits)
        self._opens = False


@lru_cache(maxsize=64)
def _needs(stream: str) -> Needs:
    """Those of a query that copies the whole stream, as it is now."""
    return needs_of(replace(parse('stream("any")'), body=ast.Source("stream", stream)))


def _fill(kept: Kept, state: State, stream: InputStream) -> None:
    if state.meta["operator"] != "keeper":
        raise StateError(f"the state of the stream '{stream.name}' is that of another kind of branch")
    entries: Iterator[str] = iter(state.tables["entries"].column("entry").to_pylist())
    decode(kept, stream.name, [json.loads(each) for each in entries], state.meta["rest"])
