"""Queries over streams of items without results that stand before their end: their answer is a display (LAWS 3.11).

Where the streams end and no timeline is asked for, such a query waits for the end instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from anabranch.branch import Branch
from anabranch.branch.family import twin_of
from anabranch.branch.growing.branch import GrowingBranch
from anabranch.branch.growing.split import GrowingQuery, growing_query
from anabranch.branch.members import BranchMember
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.kind import BranchSetup, Functions, QueryContext, QueryKind, Seat, shapes_of
from anabranch.spark.plan.kinds.standing import taken_apart


@dataclass(frozen=True, kw_only=True)
class GrowingKind(QueryKind):
    """A query whose answer is corrected as items come; only twins share a branch."""

    name = "display of items"
    label = "display"
    twins = "growing"

    query: GrowingQuery
    functions: Functions

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        at_once = known.endless or asked.timed or asked.kind == cls.name
        if not at_once or shapes_of(known.functions).of(asked.text).shape.standing.kind != "whole":
            return None
        found = _growing(asked.text, known.functions)
        return None if found is None else cls(streams=found.streams, shows=True, query=found, functions=known.functions)

    def family(self, text: str, strands: int) -> str:
        return super().family(twin_of(self.query.query), strands)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        (seat,) = seats
        given = seat.key, seat.asked.name, self.query, seat.out, seat.asked.policy
        member = BranchMember(*given, caps=seat.asked.caps)
        return GrowingBranch(member, setup.inputs, setup.state, setup.given, setup.files)


@lru_cache(maxsize=1 << 14)
def _growing(text: str, functions: Functions) -> GrowingQuery | None:
    return growing_query(taken_apart(text, functions), dict(functions))
