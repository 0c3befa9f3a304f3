"""Followers: the output of a branch's queries, as far as their streams have evolved (LAWS 4).

What comes out of a query depends on its lineage and policy, not on its constants; so the members of a branch that agree
in these have one follower.

A path that is dropped and comes out as such is forgotten by what the branch holds at that moment (LAWS 4.2 c, g).
Nothing is done to what is held: it is known how many items had been taken then, and whoever makes something of one of
these items sees it without the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch.algebra.reactions.readings import Reading, holds
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.evolution.changelog import Said
from anabranch.branch.held_items import Held
from anabranch.branch.ports import InputStream
from anabranch.errors import Aborted
from anabranch.predicate import EVERYTHING, Predicate
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import Outlet, exact
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Drop, Punctuation
from anabranch.stream.path import Path
from anabranch.values.sequences import Value, Values


@dataclass(frozen=True, slots=True)
class _Purged:
    """A path that the first so many items of a branch have lost, for one `for`, if they are of a canonical set."""

    before: int
    clause: int
    path: Path
    items: Predicate

    def concerns(self, held: Held) -> bool:
        return (
            held.kept.number < self.before
            and held.clause == self.clause
            and holds(self.items, Reading(exact(held.kept.item.tree)))
        )


class Follower:
    """What has come out so far; `hear` alone changes it."""

    def __init__(
        self, lineage: Lineage, policy: Policy, inputs: Mapping[str, InputStream], *, sends: bool = False
    ) -> None:
        """`sends` says that the output is tuples that travel on, in the units of their streams' beginning."""
        self.lineage = lineage
        streams = [inputs[name] for name in lineage.streams]
        self._outlet = Outlet(
            lineage,
            policy=policy,
            domains=[each.evolution().domains for each in streams],
            partitions=[each.partitions for each in streams],
        )
        self._sends = sends
        self._purged: list[_Purged] = []
        self.aborted: str | None = None
        """Why it is over."""

    def hear(self, said: Said) -> tuple[Accent | Doubt, ...]:
        """The accents of the output that a saying brings about, for each `for` over its stream in turn.

        Of tuples that travel on it is what is in doubt from there on: whoever reads that ends where it is answered.
        """
        if self.aborted is not None:
            return ()
        found: list[Accent | Doubt] = []
        try:
            for clause, name in enumerate(self.lineage.streams):
                if name == said.stream:
                    found += self._sent(clause, said) if self._sends else self._heard(clause, said)
        except Aborted as error:
            self.aborted = error.message
            return ()
        return tuple(found)

    def _sent(self, clause: int, said: Said) -> Iterator[Doubt]:
        """What is unknown of the tuples; where they cannot be made any more, all of them."""
        match said.event:
            case Accent(_, evolution, place):
                paths, reason = [evolution.path], f"tuples that travel have no accents ({place})"
            case DeadLetter(doubts=doubts, reason=why):
                paths, reason = [each.path for each in doubts], why
            case _:
                return
        for path in paths:
            if not self.lineage.reads(clause, path):
                continue
            targets = self.lineage.targets(clause, Drop(path)) if self.lineage.need(clause, path) is None else ()
            if not targets:
                self.aborted = f"'{path}' is unknown from here on: {reason}"
                yield Doubt(Path(()), EVERYTHING)
                return
            yield from (Doubt(each.at, EVERYTHING) for each in targets)

    def _heard(self, clause: int, said: Said) -> tuple[Accent, ...]:
        found: tuple[Accent, ...] = ()
        match said.event:
            case Accent():
                found = self._outlet.accent(clause, said.event, said.partition)
            case Punctuation(where, place) if where is not None:
                found = self._outlet.punctuation(clause, where, place, said.partition)
            case DeadLetter(doubts=doubts, reason=reason):
                for doubt in doubts:
                    self._outlet.doubt(clause, doubt.path, reason)
                return ()
            case _:
                return ()
        self._purged += (_Purged(said.taken, each.input, each.path, each.items) for each in self._outlet.purges)
        return found

    def reads(self, stream: str, path: Path) -> bool:
        """Whether a query looks at a path of a stream."""
        inputs = (clause for clause, name in enumerate(self.lineage.streams) if name == stream)
        return any(self.lineage.reads(clause, path) for clause in inputs)

    def forward(self, values: Values) -> Values:
        """A piece in the current units of the output."""
        return self._outlet.forward(values)

    def seen(self, held: Sequence[Held], nodes: Sequence[Value]) -> list[Value | None]:
        """The nodes of what is held, without what was forgotten; None for one that is gone itself."""
        if not self._purged:
            return list(nodes)
        return [self._seen(each, node) for each, node in zip(held, nodes, strict=True)]

    def _seen(self, held: Held, node: Value) -> Value | None:
        gone = frozenset(each.path for each in self._purged if each.concerns(held))
        return held.without(gone) if gone else node
