"""Plans of operators from the builder: each has a branch, whatever its operators are, which equal plans share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from anabranch.algebra.plans.interpret import Plan as Operators
from anabranch.algebra.plans.written import is_plan, read_plan, streams_of
from anabranch.branch import Branch
from anabranch.branch.members import BranchMember
from anabranch.branch.plans.plans import PlanBranch
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.kind import BranchSetup, QueryContext, QueryKind, Seat


@dataclass(frozen=True, kw_only=True)
class PlanKind(QueryKind):
    """A plan of operators; its answer has no frame."""

    name = label = twins = "plan"
    has_frame = False

    operators: Operators

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        if not is_plan(asked.text):
            return None
        found = read_plan(asked.text)
        return cls(streams=streams_of(found), operators=found)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        (seat,) = seats
        member = BranchMember(seat.key, seat.asked.name, self.operators, seat.out, seat.asked.policy)
        return PlanBranch(member, setup.inputs, setup.state, setup.files)
