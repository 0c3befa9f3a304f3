"""The queries that one branch answers, each with its own results, answers and dead letters.

What they have in common is computed once: the order of elements, their nodes, the selections of `for`s, late items,
and, where windows are equal, which items meet.
Where a stream evolves, an asker has a follower (`runtime/evolution/follower.py`), and its results are in the units that
were announced in its answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.held_items import HeldItem, HeldNode
from anabranch.branch.marked_tuples import TupleMarks
from anabranch.branch.ports import InputStream, Output
from anabranch.errors import DynamicError
from anabranch.law.bounds import WindowValues
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.law.steps import Exhausted
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing
from anabranch.runtime.units import NOTHING, AnswerPiece, Units
from anabranch.stream.culprits import letter_for
from anabranch.stream.elements import Accent, Doubt, Place
from anabranch.stream.limits import NO_CAPS, CostCaps
from anabranch.stream.reading.json_items import item_text
from anabranch.values.sequences import Value

NODES = "nodes of its streams"
"""What a query holds that remembers its items."""


class AnswerWriter:
    """Writes the answers of one query; adjacent values are separated by a space, across epochs too."""

    def __init__(self, name: str, out: Output, caps: CostCaps = NO_CAPS) -> None:
        self._name = name
        self._out = out
        self.over = False
        """Whether the answer has ended, because the query could not survive an accent (LAWS 4.6) or took too much."""
        self.capped: str | None = None
        """Why it has ended, where it took too much (LAWS 2.9)."""
        self._caps = caps
        self._overruns = 0
        self._ended = False  # whether the last piece ended with a value
        self._noted: int | None = None  # the last late item that was logged

    def give(self, named: HeldItem, held: Sequence[HeldNode], *makes: Callable[[], AnswerPiece]) -> None:
        """Write the pieces of one item, window or tuple, all or none.

        Where one fails, the dead letter names the held items at fault, or else `named`.
        """
        if self.over:
            return
        try:
            pieces = [make() for make in makes]
        except DynamicError as error:
            self.bury(named, error, held)
            return
        for piece in pieces:
            self.write(piece)
            for omission in piece.omitted:
                self.bury(named, omission, held)

    def write(self, piece: AnswerPiece) -> None:
        """Write the next piece of the answer."""
        if piece != NOTHING:
            text = f" {piece.text}" if self._ended and piece.begins else piece.text
            self._ended = piece.ends
            if text:
                self._out.piece(text)

    def announce(self, accents: Iterable[Accent | Doubt], *, json: bool = False) -> None:
        """Write accents of the answer, and doubts about paths from there on; `json` in an answer of JSON."""
        for each in accents:
            self.write(AnswerPiece(accent_text(each, json=json), begins=False, ends=False))

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        """Write concatenated pieces, none of which begins or ends with a value."""
        if self.over:
            return
        self._ended = False
        self._out.extend(data, pieces, first)

    def bury(self, kept: HeldItem, error: DynamicError, held: Sequence[HeldNode] = ()) -> None:
        """Set an item, window or tuple aside (LAWS 2.4), under the held items at fault, or else `kept`."""
        if self.over:
            return
        nodes = ((each.kept, tree) for each in held for tree in each.kept.trees)
        self._out.bury(letter_for(error, nodes, _shown, self._name, kept))
        if isinstance(error, Exhausted):
            self._overruns += 1
            self._end(self._caps.why_overrun(self._overruns))

    def holds(self, nodes: int) -> None:
        """Hear how many nodes the query holds, behind an element."""
        if nodes > self.room:
            self.overflows(NODES)

    def overflows(self, held: str) -> None:
        """End the answer of a query that holds too much of something."""
        if not self.over:
            self._end(self._caps.why_held(held))

    @property
    def room(self) -> float:
        """How many nodes the query may hold."""
        return math.inf if self._caps.held is None else self._caps.held

    def _end(self, reason: str | None) -> None:
        if reason is not None:
            self.capped, self.over = reason, True

    def late(self, kept: HeldItem) -> None:
        """Log a late item (LAWS 3.2), once for all windows that it is late for."""
        if kept.number != self._noted:
            self._noted = kept.number
            self._out.late(kept.place)

    def save(self) -> dict[str, Any]:
        return {"ended": self._ended, "overruns": self._overruns, "capped": self.capped}

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave."""
        self._ended = meta["ended"]
        self._overruns, self.capped = meta.get("overruns", 0), meta.get("capped")
        self.over = self.capped is not None


def _shown(kept: HeldItem) -> tuple[Place, str]:
    """The place and text of an item for a dead letter."""
    return kept.place, item_text(kept.written)


Query_co = TypeVar("Query_co", covariant=True)


@dataclass(frozen=True, slots=True)
class BranchMember(Generic[Query_co]):
    """A query that a branch serves, in the form that its kind of branch needs."""

    key: str
    """Identifies it among the members, in every epoch."""
    name: str
    """The name of one of its subscriptions."""
    query: Query_co
    out: Output
    policy: Policy = "accumulate"
    """What it does with accents that it cannot pass on (LAWS 4.7)."""
    sends: bool = False
    """Whether it sends tuples to another trunk: one whose condition raises an error is sent, too, and judged there."""
    passes: bool = False
    """Whether it also passes the events of its streams on, between the tuples."""
    caps: CostCaps = NO_CAPS
    """What it may take (LAWS 2.9)."""


@dataclass(slots=True)
class Asker:
    """A member with its evaluator and its answers."""

    key: str
    standing: Standing
    units: Units
    answers: AnswerWriter
    policy: Policy
    registered: tuple[str, ...]
    """The names of the functions that the user registered."""
    sends: bool = False
    passes: bool = False
    follower: Follower | None = None
    """None until something changes in its streams."""
    latest: int | None = None
    """The number of items that had been taken at the latest event that was passed on: behind it tuples tell where their
    items stand among these."""
    marks: TupleMarks = field(default_factory=TupleMarks)

    @staticmethod
    def of(
        member: BranchMember[Standing],
        functions: Mapping[str, PythonFunction] | None,
        documents: Mapping[str, Input] | None,
    ) -> Asker:
        units = Units(member.query, functions, documents)
        answers = AnswerWriter(member.name, member.out, member.caps)
        names = tuple(functions or ())
        return Asker(member.key, member.query, units, answers, member.policy, names, member.sends, member.passes)

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage:
        """The lineage of its results."""
        return lineage_of(self.standing, self.registered, {name: each.root.namespaces for name, each in inputs.items()})

    def item(self, kept: HeldItem) -> AnswerPiece:
        """The piece of an item."""
        if self.sends:
            return self._sent(partial(self.units.item, kept.stream.root, kept.item.tree))
        forward = None if self.follower is None else self.follower.outlet.forward
        return self.units.item(kept.stream.root, kept.item.tree, forward, stream=kept.stream.name)

    def window(self, held: Sequence[HeldNode], nodes: Sequence[Value]) -> AnswerPiece:
        """The piece of a window with this content, without dropped nodes."""
        if self.follower is None:
            return self.units.window(nodes)
        left = self._left(self.follower, held, nodes)
        content = WindowValues(left, nodes.bounds) if isinstance(nodes, WindowValues) else left
        return self.units.window(content, forward=self.follower.outlet.forward) if left else NOTHING

    def tuple(self, held: Sequence[HeldNode], nodes: Sequence[Value]) -> AnswerPiece:
        """The piece of a tuple of a join; empty if one of its nodes was dropped."""
        if self.latest is not None:
            return self._marked(held, nodes, self.latest)
        if self.sends:
            return self._sent(partial(self.units.tuple, nodes))
        if self.follower is None:
            return self.units.tuple(nodes)
        left = self._left(self.follower, held, nodes)
        return self.units.tuple(left, self.follower.outlet.forward) if len(left) == len(held) else NOTHING

    def _left(self, follower: Follower, held: Sequence[HeldNode], nodes: Sequence[Value]) -> list[Value]:
        """The nodes of held items without paths that were dropped since; dropped nodes are left out."""
        if not follower.has_purged:
            return list(nodes)
        lost = (follower.lost(each.kept.number, each.clause, each.kept.item.tree) for each in held)
        seen = (each.without(paths) if paths else node for each, node, paths in zip(held, nodes, lost, strict=True))
        return [each for each in seen if each is not None]

    def _marked(self, held: Sequence[HeldNode], nodes: Sequence[Value], latest: int) -> AnswerPiece:
        """A tuple that is selected in the units of the start, and sent with its items as they came."""
        if not self._sent(partial(self.units.tuple, nodes)).text:
            return NOTHING
        piece = self.units.tuple([each.kept.written for each in held], asked=False)
        mark = self.marks.of([each.kept for each in held], latest)
        return replace(piece, text=self.marks.on(piece.text, mark))

    def _sent(self, make: Callable[..., AnswerPiece]) -> AnswerPiece:
        try:
            return make()
        except DynamicError:
            return make(asked=False)


@dataclass(frozen=True, slots=True)
class Everyone:
    """All queries of a branch, for what concerns each of them."""

    askers: Sequence[Asker]

    def bury(self, kept: HeldItem, error: DynamicError) -> None:
        """Set an item aside, for every query."""
        for each in self.askers:
            each.answers.bury(kept, error)

    def late(self, kept: HeldItem) -> None:
        """Log a late item, once for all queries: it concerns the stream (LAWS 3.2)."""
        self.askers[0].answers.late(kept)
