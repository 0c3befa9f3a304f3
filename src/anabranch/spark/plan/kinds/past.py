"""Queries about the past of items whose need of the past is bounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from anabranch.branch import Branch
from anabranch.branch.family import twin_of
from anabranch.branch.members import BranchMember
from anabranch.branch.past.mixing import MixedPastBranch
from anabranch.branch.past.queries import RecalledQuery, recalled_query
from anabranch.branch.past.recalling import PastBranch
from anabranch.language import parse
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Standing
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.display import may_read
from anabranch.spark.plan.kinds.kind import BranchSetup, Functions, QueryContext, QueryKind, Seat


@dataclass(frozen=True, kw_only=True)
class PastKind(QueryKind):
    """Its results stand, or are a display; it may read streams of updates beside items. Only twins share a branch."""

    name = label = "past"
    twins = "history"

    query: RecalledQuery

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        found = _recalled(asked.text, known.functions, known.edited)
        if found is None:
            return None
        return cls(streams=found.streams, shows=found.standing is None, edited=found.edited, query=found)

    def family(self, text: str, strands: int) -> str:
        return super().family(twin_of(self.query.query), strands)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        (seat,) = seats
        member = BranchMember(seat.key, seat.asked.name, self.query, seat.out, seat.asked.policy)
        hosting = MixedPastBranch if self.edited else PastBranch
        return hosting(member, setup.inputs, setup.state, setup.given, setup.files)

    @classmethod
    def framed(cls, text: str, functions: Mapping[str, PythonFunction], edited: Collection[str]) -> Standing | None:
        found = recalled_query(parse(text), functions, text, edited)
        return None if found is None else found.standing


@lru_cache(maxsize=1 << 14)
def _recalled(text: str, functions: Functions, edited: tuple[str, ...]) -> RecalledQuery | None:
    if "#" not in text and "?" not in text and not may_read(text, edited):
        return None
    return recalled_query(parse(text), dict(functions), text, edited)
