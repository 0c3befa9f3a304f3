"""Windows over what a loop gives, as two queries in one branch; only twins share it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from anabranch.branch import Branch
from anabranch.branch.chained import ChainedBranch
from anabranch.branch.family import operator_of, twin_of
from anabranch.branch.members import BranchMember
from anabranch.language import parse
from anabranch.law.calls import PythonFunction
from anabranch.runtime.chains import ChainedQuery, chained_query
from anabranch.runtime.standing import Standing
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.kind import BranchSetup, Functions, QueryContext, QueryKind, Seat, shapes_of


@dataclass(frozen=True, kw_only=True)
class ChainedKind(QueryKind):
    """A query whose windows are over the results of a loop; over streams that end, it waits for their end."""

    name = label = twins = "chain"

    chain: ChainedQuery

    @classmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        if not known.endless or asked.timed or shapes_of(known.functions).of(asked.text).shape.standing.kind != "whole":
            return None
        found = _chained(asked.text, known.functions)
        if found is None or not set(found.streams) <= known.streams.keys():
            return None
        times = {name: known.streams[name].source.time for name in found.streams}
        if operator_of(found.inner, times, endless=True) == "whole":
            return None
        return cls(streams=found.streams, chain=found)

    def family(self, text: str, strands: int) -> str:
        return super().family(twin_of(parse(text)), strands)

    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        (seat,) = seats
        member = BranchMember(seat.key, seat.asked.name, self.chain, seat.out, seat.asked.policy)
        given = setup.given
        return ChainedBranch(member, setup.inputs, setup.state, given.functions, given.documents, setup.files)

    @classmethod
    def framed(cls, text: str, functions: Mapping[str, PythonFunction], edited: Collection[str]) -> Standing | None:
        found = chained_query(parse(text), functions)
        return None if found is None else found.outer


@lru_cache(maxsize=1 << 10)
def _chained(text: str, functions: Functions) -> ChainedQuery | None:
    return chained_query(parse(text), dict(functions))
