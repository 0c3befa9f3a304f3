"""Who asks: the queries that one branch answers, each with its own results, answers and dead letters.

What they have in common is found once: the order of the elements, their nodes, what a `for` selects of them, what is
late, and, where their windows are the same, which items meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.branch.answers import Answers
from anabranch.branch.keeping import Kept
from anabranch.branch.ports import Output
from anabranch.errors import DynamicError
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import Input
from anabranch.reference.standing import Standing
from anabranch.reference.units import Units


@dataclass(frozen=True, slots=True)
class Member:
    """A query that a branch serves."""

    key: str
    """What tells it from the others, in every epoch."""
    name: str
    """A subscription that has asked it."""
    standing: Standing
    out: Output


@dataclass(frozen=True, slots=True)
class Asker:
    """A member at work."""

    key: str
    standing: Standing
    units: Units
    answers: Answers

    @staticmethod
    def of(
        member: Member, functions: Mapping[str, PythonFunction] | None, documents: Mapping[str, Input] | None
    ) -> Asker:
        units = Units(member.standing, functions, documents)
        return Asker(member.key, member.standing, units, Answers(member.name, member.out))


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
