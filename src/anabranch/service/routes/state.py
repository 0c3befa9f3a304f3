"""What branches remember, from the newest manifest in memory (docs/service.md)."""

from __future__ import annotations

from heapq import nlargest

from fastapi import APIRouter
from pydantic import BaseModel

from anabranch.service.access import Reader
from anabranch.service.context import Context
from anabranch.service.routes.now import ShardAnswer

router = APIRouter(prefix="/api/state", tags=["state"])

MOST = 10_000
"""The branches that are listed: the largest."""


class BranchAnswer(BaseModel):
    """A branch: its subscriptions, of which at most a hundred are named, and what waits in it, by input."""

    subscriptions: list[str]
    count: int
    kind: str
    shard: int
    held: int
    bytes: int
    waiting: str
    stream: str | None
    """The stream whose document it is."""


class StateAnswer(BaseModel):
    """All branches, by shard; where there are very many, the largest."""

    branches: list[BranchAnswer]
    shards: list[ShardAnswer]


@router.get("")
def state(context: Context, client: Reader) -> StateAnswer:
    """What branches remember."""
    found = context.watch.holdings()
    branches = nlargest(MOST, found.branches, key=lambda each: each.bytes) if len(found.branches) > MOST else None
    return StateAnswer(
        branches=[
            BranchAnswer(
                subscriptions=list(each.names),
                count=each.count,
                kind=each.kind,
                shard=each.shard,
                held=each.held,
                bytes=each.bytes,
                waiting=", ".join(f"{count:,} of {key}" for key, count in each.waiting.items()),
                stream=each.stream or None,
            )
            for each in (found.branches if branches is None else branches)
        ],
        shards=[
            ShardAnswer(shard=each.shard, branches=each.branches, held=each.held, bytes=each.bytes)
            for each in found.shards
        ],
    )
