"""What branches remember, from the newest manifest in memory.

A site may have ten thousand branches; so their sizes are looked up when somebody asks, once for each manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from anabranch.service.watch.answered import label_of
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.plan.branches import keeper_of
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds import KINDS
from anabranch.spark.plan.kinds.kind import edited_streams

MOST_NAMED = 100


@dataclass(frozen=True, slots=True)
class BranchHolding:
    """The state of one branch."""

    names: tuple[str, ...]
    """Its subscriptions, the first hundred; of a stream's document, none."""
    count: int
    kind: str
    shard: int
    held: int
    """Items, or panes of windows."""
    bytes: int
    waiting: Mapping[str, int]
    """By partition: the items that wait because another input is behind."""
    stream: str = ""
    """For the document of a stream of updates: the stream."""

    @property
    def name(self) -> str:
        """A name for people."""
        return self.names[0] if self.names else f"stream {self.stream}"


@dataclass(frozen=True, slots=True)
class ShardHolding:
    """The states of one shard together."""

    shard: int
    branches: int
    held: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Holdings:
    """All states after an epoch."""

    branches: tuple[BranchHolding, ...] = ()
    shards: tuple[ShardHolding, ...] = ()

    @staticmethod
    def of(manifest: Manifest, plan: Plan) -> Holdings:
        """The states that a manifest names."""
        branches = tuple(_branches(manifest, plan))
        shards: dict[int, list[int]] = {}
        for each in branches:
            held = shards.setdefault(each.shard, [0, 0, 0])
            held[0] += 1
            held[1] += each.held
            held[2] += each.bytes
        return Holdings(branches, tuple(ShardHolding(shard, *shards[shard]) for shard in sorted(shards)))

    @property
    def held(self) -> int:
        """Items and panes in all states."""
        return sum(each.held for each in self.shards)

    @property
    def bytes(self) -> int:
        """The bytes of all states."""
        return sum(each.bytes for each in self.shards)


def _branches(manifest: Manifest, plan: Plan) -> Iterator[BranchHolding]:
    """Branches and strands by the subscriptions that they serve, and documents of streams."""
    if not manifest.states:
        return
    documents = {keeper_of(name): name for name in edited_streams(plan.streams)}
    members = _members(plan)
    for number, kept in manifest.states.items():
        saved = kept.shard, kept.held, kept.size, kept.waiting
        if (served := members.get(number)) is not None:
            kind = label_of(served[0]) if number == served[0].branch else "strand"
            yield BranchHolding(tuple(each.name for each in served[:MOST_NAMED]), len(served), kind, *saved)
        elif number in documents:
            yield BranchHolding((), 0, "document", *saved, documents[number])


def _members(plan: Plan) -> dict[int, list[Registration]]:
    """By number of a branch or a strand: the subscriptions that it serves."""
    found: dict[int, list[Registration]] = {}
    for each in plan.subscriptions:
        if KINDS[each.kind].is_branch:
            for number in each.branches:
                found.setdefault(number, []).append(each)
    return found
