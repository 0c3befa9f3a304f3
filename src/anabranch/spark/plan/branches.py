"""The branches of a plan, and the subscriptions that each of them serves.

A branch belongs to one shard, by its number, and serves one subscription or several (`membership.py`).
A query in strands has a branch for each of them, and one, the braid, where they come together.
Each stream of updates has a branch that keeps its document, with or without subscriptions
(`branch/document/keeper.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256

from anabranch.branch.panes.plan import PanePlan
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.files import PlanFile
from anabranch.spark.plan.kinds import KINDS, read_query
from anabranch.spark.plan.kinds.kind import Functions, QueryContext, QueryKind, edited_streams


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """The members of a branch; all see the same elements of the same streams. A keeper has none."""

    number: int
    queries: tuple[QueryKind, ...] = ()
    """All of one kind."""
    twins: tuple[tuple[Registration, ...], ...] = ()
    """By query: its subscriptions; each has its own answer, and one computation serves them."""
    keys: tuple[str, ...] = ()
    """By query: identifies it within the branch, in every epoch."""
    kept: str | None = None
    """The stream whose document it keeps."""
    strands: int = 0
    """The number of its strands, if it is divided."""
    strand: int | None = None
    """The number of this strand; None for the braid."""
    compared: frozenset[str] = frozenset()
    """The keys of the queries that other branches answer, too: their futures are compared (`joining.py`)."""

    @property
    def is_braid(self) -> bool:
        """Whether it is the braid, which reads strands' results and no stream."""
        return self.strands > 0 and self.strand is None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        if self.is_braid:
            return ()
        return self.queries[0].streams if self.kept is None else (self.kept,)

    @property
    def asked(self) -> Iterator[tuple[tuple[Registration, ...], str]]:
        """By query: its subscriptions, and its key."""
        return zip(self.twins, self.keys, strict=True)

    @property
    def texts(self) -> list[str]:
        """The texts of the queries that it serves."""
        return [each.text for several in self.twins for each in several[:1]]

    @property
    def late(self) -> tuple[str, ...]:
        """The streams that had begun before the branch did (LAWS 3.6)."""
        return self.twins[0][0].missed if self.kept is None else ()

    @property
    def panes(self) -> PanePlan | None:
        """The pane plan of its windows, where they are counted by panes."""
        return self.queries[0].panes if self.kept is None else None

    def shard(self, plan: Plan) -> int:
        """Its shard."""
        return shard_of(self.number, plan)


def shard_of(number: int, plan: Plan) -> int:
    """The shard of the branch with this number."""
    return number % plan.shards


@lru_cache(maxsize=4)
def branches_of(file: PlanFile, functions: Functions) -> tuple[BranchPlan, ...]:
    """The branches of a plan, cached by process."""
    plan = file.load()
    known = QueryContext({stream.name: stream for stream in plan.streams}, functions, not plan.finite)
    members: dict[int, list[Registration]] = {}
    for each in plan.subscriptions:
        if KINDS[each.kind].is_branch and not each.aborted and set(each.streams) <= known.streams.keys():
            members.setdefault(each.branch, []).append(each)
    keepers = (BranchPlan(keeper_of(each), kept=each) for each in edited_streams(plan.streams))
    return (*keepers, *_compared([each for served in members.values() for each in _branches(served, known)]))


def _compared(branches: list[BranchPlan]) -> Iterator[BranchPlan]:
    """The branches, with the queries whose futures are compared."""
    counts = Counter((*twins_like(twins[0]), key) for each in branches for twins, key in each.asked)
    for each in branches:
        several = (key for twins, key in each.asked if twins[0].family and counts[(*twins_like(twins[0]), key)] > 1)
        keys = frozenset() if each.strands else frozenset(several)
        yield replace(each, compared=keys) if keys else each


def twins_like(asked: Registration) -> tuple[object, ...]:
    """What is equal, beside their keys, for subscriptions that may be answered by one branch."""
    return asked.family, asked.policy, asked.caps, *asked.streams


def _branches(served: list[Registration], known: QueryContext) -> Iterator[BranchPlan]:
    """The branch of some subscriptions, and its strands."""
    queries: dict[str, QueryKind] = {}
    twins: dict[str, list[Registration]] = {}
    for each in served:
        query = read_query(each, known)
        twins.setdefault(query.key, []).append(each)
        queries.setdefault(query.key, query)
    first, *strands = served[0].branches
    found = tuple(queries.values()), tuple(map(tuple, twins.values())), tuple(twins)
    branch = BranchPlan(first, *found, strands=len(strands))
    yield branch
    for strand, number in enumerate(strands):
        yield replace(branch, number=number, strand=strand)


def keeper_of(stream: str) -> int:
    """The number of the branch that keeps the document of a stream, unlike those of subscriptions and other streams."""
    return -2 - int.from_bytes(sha256(stream.encode()).digest()[:7])
