"""What the run does now: once, or as an event after each epoch (docs/service.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from anabranch.service.access import Reader
from anabranch.service.context import Context
from anabranch.site_work import RunState

router = APIRouter(prefix="/api/now", tags=["now"])


class _Whole(BaseModel):
    """An object with these members and no other."""

    model_config = ConfigDict(extra="forbid")


class LagAnswer(_Whole):
    """What is unread: bytes, or messages of a topic, and for how long; null where it is not known."""

    bytes: int | None
    offsets: int | None
    seconds: float | None


class PartitionAnswer(_Whole):
    """A partition of a stream."""

    partition: str
    lag: LagAnswer


class StreamNow(_Whole):
    """A stream; `fast_share` is that of the newest epochs, null before the first item."""

    name: str
    items_per_second: float
    bytes_per_second: float
    items: int
    fast_share: float | None
    lag: LagAnswer
    partitions: list[PartitionAnswer]


class RatesNow(_Whole):
    """Amounts per second."""

    items: float
    bytes: float
    answers: float


class TotalsNow(_Whole):
    """Sums since the service began."""

    items: int
    bytes: int
    answers: int
    dead_letters: int
    late_items: int


class PhaseNow(_Whole):
    """A phase of an epoch."""

    name: Literal["plan", "tasks", "publish", "deliver"]
    start_ms: int
    ms: int


class EpochNow(_Whole):
    """A committed epoch; `began` is in seconds since 1970."""

    epoch: int
    began: float
    items: int
    bytes: int
    answers: int
    total_ms: int
    phases: list[PhaseNow]


class CauseNow(_Whole):
    """Why something is late."""

    what: Literal["stream", "partition", "branch", "sink", "epoch"]
    name: str
    message: str
    hint: str
    numbers: dict[str, float]


class ShardAnswer(_Whole):
    """What the branches of a shard remember."""

    shard: int
    branches: int
    held: int
    bytes: int


class StateNow(_Whole):
    """What all branches remember."""

    held: int
    bytes: int
    shards: list[ShardAnswer]


class SinkNow(_Whole):
    """The sinks of a kind."""

    kind: str
    count: int
    epochs_behind: int


class EventNow(_Whole):
    """A line of the log."""

    time: str
    event: str
    message: str


class NowAnswer(_Whole):
    """What the run does."""

    epoch: int
    time: str
    run_state: RunState
    subscriptions: int
    rates: RatesNow
    totals: TotalsNow
    streams: list[StreamNow]
    epochs: list[EpochNow]
    late: list[CauseNow]
    state: StateNow
    sinks: list[SinkNow]
    events: list[EventNow]


@router.get("", response_model=NowAnswer)
def now(context: Context, client: Reader) -> Response:
    """What the run does now."""
    return Response(context.watch.feed.newest(), media_type="application/json")


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def events(context: Context, client: Reader) -> Response:
    """The same as an event after each epoch, and at least every five seconds."""
    held = context.open_streams.one(client)
    held.__enter__()
    return NowEvents(_events(context.watch.feed.texts()), held)


async def _events(texts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for text in texts:
        yield b"data: " + text + b"\n\n"


class NowEvents(StreamingResponse):
    """A stream of events, which counts as open as long as it is sent."""

    def __init__(self, content: AsyncIterator[bytes], held: AbstractContextManager[None]) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._held.__exit__(None, None, None)
