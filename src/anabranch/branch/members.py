"""Who asks: the queries that one branch answers, each with its own results, answers and dead letters.

What they have in common is found once: the order of the elements, their nodes, what a `for` selects of them, what is
late, and, where their windows are the same, which items meet.
Where a stream evolves, an asker has a follower (`runtime/evolution/follower.py`), and what it gives is in the units
that have come out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.answers import Answers
from anabranch.branch.held_items import Held, Kept
from anabranch.branch.ports import InputStream, Output
from anabranch.errors import DynamicError
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing
from anabranch.runtime.units import NOTHING, Piece, Units
from anabranch.values.sequences import Value


@dataclass(frozen=True, slots=True)
class Member:
    """A query that a branch serves."""

    key: str
    """What tells it from the others, in every epoch."""
    name: str
    """A subscription that has asked it."""
    standing: Standing
    out: Output
    policy: Policy = "accumulate"
    """What it does with accents that it cannot let out (LAWS 4.7)."""
    sends: bool = False
    """Whether it sends tuples: one for which its condition fails goes along, for whoever reads it asks again."""


@dataclass(slots=True)
class Asker:
    """A member at work."""

    key: str
    standing: Standing
    units: Units
    answers: Answers
    policy: Policy
    registered: tuple[str, ...]
    """The names of the functions that the user registered."""
    sends: bool = False
    follower: Follower | None = None
    """None as long as nothing has changed in its streams."""

    @staticmethod
    def of(
        member: Member, functions: Mapping[str, PythonFunction] | None, documents: Mapping[str, Input] | None
    ) -> Asker:
        units = Units(member.standing, functions, documents)
        answers = Answers(member.name, member.out)
        return Asker(member.key, member.standing, units, answers, member.policy, tuple(functions or ()), member.sends)

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage:
        """What is known of its output."""
        return lineage_of(self.standing, self.registered, {name: each.root.namespaces for name, each in inputs.items()})

    def item(self, kept: Kept) -> Piece:
        """What an item adds."""
        if self.sends:
            return self._sent(partial(self.units.item, kept.stream.root, kept.item.tree))
        forward = None if self.follower is None else self.follower.outlet.forward
        return self.units.item(kept.stream.root, kept.item.tree, forward)

    def window(self, held: Sequence[Held], nodes: Sequence[Value]) -> Piece:
        """What a window with this content adds, if there is anything left of it."""
        if self.follower is None:
            return self.units.window(nodes)
        left = self._left(self.follower, held, nodes)
        return self.units.window(left, forward=self.follower.outlet.forward) if left else NOTHING

    def tuple(self, held: Sequence[Held], nodes: Sequence[Value]) -> Piece:
        """What a tuple of a join adds, if all of it is left."""
        if self.sends:
            return self._sent(partial(self.units.tuple, nodes))
        if self.follower is None:
            return self.units.tuple(nodes)
        left = self._left(self.follower, held, nodes)
        return self.units.tuple(left, self.follower.outlet.forward) if len(left) == len(held) else NOTHING

    def _left(self, follower: Follower, held: Sequence[Held], nodes: Sequence[Value]) -> list[Value]:
        """The nodes of what is held, without paths that were dropped since; without nodes that are gone themselves."""
        if not follower.has_purged:
            return list(nodes)
        lost = (follower.lost(each.kept.number, each.clause, each.kept.item.tree) for each in held)
        seen = (each.without(paths) if paths else node for each, node, paths in zip(held, nodes, lost, strict=True))
        return [each for each in seen if each is not None]

    def _sent(self, make: Callable[..., Piece]) -> Piece:
        try:
            return make()
        except DynamicError:
            return make(asked=False)


@dataclass(frozen=True, slots=True)
class Everyone:
    """All who ask: what is judged once is told to each of them."""

    askers: Sequence[Asker]

    def bury(self, kept: Kept, error: DynamicError) -> None:
        """Set an item aside, for everyone."""
        for each in self.askers:
            each.answers.bury(kept, error)

    def late(self, kept: Kept) -> None:
        """Note an item that is late, which concerns the stream and so is said once (LAWS 3.2)."""
        self.askers[0].answers.late(kept)
