"""Who asks: the queries that one branch answers, each with its own results, answers and dead letters.

What they have in common is found once: the order of the elements, their nodes, what a `for` selects of them, what is
late, and, where their windows are the same, which items meet.
Where a stream evolves, an asker has a follower (`runtime/evolution/follower.py`), and what it gives is in the units
that have come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.held_items import HeldItem, HeldNode
from anabranch.branch.ports import InputStream, Output
from anabranch.errors import DynamicError
from anabranch.law.bounds import WindowValues
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing
from anabranch.runtime.units import NOTHING, AnswerPiece, Units
from anabranch.stream.culprits import letter_for
from anabranch.stream.elements import LONGEST_RAW, Accent, Doubt, Place
from anabranch.stream.serialize import serialize
from anabranch.values.sequences import Value


class AnswerWriter:
    """Writes the answers of one branch; between two values that meet there is a space, across epochs too."""

    def __init__(self, name: str, out: Output) -> None:
        self._name = name
        self._out = out
        self.over = False
        """Whether nothing comes any more, because the query could not survive an accent (LAWS 4.6)."""
        self._ended = False  # whether the last piece ended with a value
        self._noted: int | None = None  # the last item that was noted

    def give(self, named: HeldItem, held: Sequence[HeldNode], *makes: Callable[[], AnswerPiece]) -> None:
        """The pieces of one item, window or tuple, all or none.

        Where one fails, the dead letter names those at fault of what is held, or else `named`.
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
        """The next piece of the answer."""
        if piece != NOTHING:
            text = f" {piece.text}" if self._ended and piece.begins else piece.text
            self._ended = piece.ends
            if text:
                self._out.piece(text)

    def announce(self, accents: Iterable[Accent | Doubt], *, json: bool = False) -> None:
        """Accents of the answer, in their place, and what is in doubt from there on; `json` in an answer of JSON."""
        for each in accents:
            self.write(AnswerPiece(accent_text(each, json=json), begins=False, ends=False))

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        """The next pieces, one behind the other, none of which begins or ends with a value."""
        if self.over:
            return
        self._ended = False
        self._out.extend(data, pieces, first)

    def bury(self, kept: HeldItem, error: DynamicError, held: Sequence[HeldNode] = ()) -> None:
        """Set an item, window or tuple aside (LAWS 2.4), under those at fault of what is held, or else an item."""
        if self.over:
            return
        nodes = ((each.kept, tree) for each in held for tree in each.kept.trees)
        self._out.bury(letter_for(error, nodes, _shown, self._name, kept))

    def late(self, kept: HeldItem) -> None:
        """Note an item that is late (LAWS 3.2), once however many windows it is late for."""
        if kept.number != self._noted:
            self._noted = kept.number
            self._out.late(kept.place)

    def save(self) -> dict[str, Any]:
        return {"ended": self._ended}

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave."""
        self._ended = meta["ended"]


def _shown(kept: HeldItem) -> tuple[Place, str]:
    """An item as a dead letter shows it."""
    return kept.place, serialize(kept.written)[:LONGEST_RAW]


Query_co = TypeVar("Query_co", covariant=True)


@dataclass(frozen=True, slots=True)
class BranchMember(Generic[Query_co]):
    """A query that a branch serves, in the form that its kind of branch needs."""

    key: str
    """What tells it from the others, in every epoch."""
    name: str
    """A subscription that has asked it."""
    query: Query_co
    out: Output
    policy: Policy = "accumulate"
    """What it does with accents that it cannot let out (LAWS 4.7)."""
    sends: bool = False
    """Whether it sends tuples to another trunk: one whose condition raises an error is sent too, and judged there."""


@dataclass(slots=True)
class Asker:
    """A member at work."""

    key: str
    standing: Standing
    units: Units
    answers: AnswerWriter
    policy: Policy
    registered: tuple[str, ...]
    """The names of the functions that the user registered."""
    sends: bool = False
    follower: Follower | None = None
    """None as long as nothing has changed in its streams."""

    @staticmethod
    def of(
        member: BranchMember[Standing],
        functions: Mapping[str, PythonFunction] | None,
        documents: Mapping[str, Input] | None,
    ) -> Asker:
        units = Units(member.query, functions, documents)
        answers = AnswerWriter(member.name, member.out)
        return Asker(member.key, member.query, units, answers, member.policy, tuple(functions or ()), member.sends)

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage:
        """What is known of its output."""
        return lineage_of(self.standing, self.registered, {name: each.root.namespaces for name, each in inputs.items()})

    def item(self, kept: HeldItem) -> AnswerPiece:
        """What an item adds."""
        if self.sends:
            return self._sent(partial(self.units.item, kept.stream.root, kept.item.tree))
        forward = None if self.follower is None else self.follower.outlet.forward
        return self.units.item(kept.stream.root, kept.item.tree, forward)

    def window(self, held: Sequence[HeldNode], nodes: Sequence[Value]) -> AnswerPiece:
        """What a window with this content adds, if there is anything left of it."""
        if self.follower is None:
            return self.units.window(nodes)
        left = self._left(self.follower, held, nodes)
        content = WindowValues(left, nodes.bounds) if isinstance(nodes, WindowValues) else left
        return self.units.window(content, forward=self.follower.outlet.forward) if left else NOTHING

    def tuple(self, held: Sequence[HeldNode], nodes: Sequence[Value]) -> AnswerPiece:
        """What a tuple of a join adds, if all of it is left."""
        if self.sends:
            return self._sent(partial(self.units.tuple, nodes))
        if self.follower is None:
            return self.units.tuple(nodes)
        left = self._left(self.follower, held, nodes)
        return self.units.tuple(left, self.follower.outlet.forward) if len(left) == len(held) else NOTHING

    def _left(self, follower: Follower, held: Sequence[HeldNode], nodes: Sequence[Value]) -> list[Value]:
        """The nodes of what is held, without paths that were dropped since; without nodes that are gone themselves."""
        if not follower.has_purged:
            return list(nodes)
        lost = (follower.lost(each.kept.number, each.clause, each.kept.item.tree) for each in held)
        seen = (each.without(paths) if paths else node for each, node, paths in zip(held, nodes, lost, strict=True))
        return [each for each in seen if each is not None]

    def _sent(self, make: Callable[..., AnswerPiece]) -> AnswerPiece:
        try:
            return make()
        except DynamicError:
            return make(asked=False)


@dataclass(frozen=True, slots=True)
class Everyone:
    """All who ask: what is judged once is told to each of them."""

    askers: Sequence[Asker]

    def bury(self, kept: HeldItem, error: DynamicError) -> None:
        """Set an item aside, for everyone."""
        for each in self.askers:
            each.answers.bury(kept, error)

    def late(self, kept: HeldItem) -> None:
        """Note an item that is late, which concerns the stream and so is said once (LAWS 3.2)."""
        self.askers[0].answers.late(kept)
