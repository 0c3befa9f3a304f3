"""Answers as server-sent events: every client holds a position and reads the log from there, and nothing is sent to it.

So a client that reads slowly is behind, and neither the run nor another client waits for it; what is not read yet lies
in the log, not in memory.
Clients that have read all there is wait for the hub.
It hears of epochs on the trunk's thread, hands them over to the server's, and wakes those who have results in an epoch;
all others sleep on.
What concerns everybody wakes everybody: a subscription that was changed, cancelled or ended, and the end of the run.

A part of the answer that several clients want at a time is read by one thread for all of them (`feed.py`).
A client costs a task, one that waits for its disconnection, and at most a part of a part in the server's buffers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import ref

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from anabranch.errors import AnabranchError
from anabranch.service.answers.asked import AskedAnswer, AskedAnswers
from anabranch.service.answers.feed import AnswerFeed, FeedStep, ResultSource, WirePart, comment, event
from anabranch.service.answers.positions import ResultPosition
from anabranch.service.refusals import TooMany, refused
from anabranch.service.settings import Client
from anabranch.spark.plan.wanted import Epoch

if TYPE_CHECKING:
    from anabranch.service.context import ServiceContext

KEEP_ALIVE_SECONDS = 15.0
_LOOK_SECONDS = 0.2
"""How often the hub looks whether something has changed that no epoch tells."""
_SENT_BYTES = 1 << 15
"""The bytes that are given to the server at a time."""
_HELD_BYTES = 8 << 20
"""A part that is larger is held while it is sent: to read it again would take too long."""
HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventClient:
    """A client that follows an answer; only the server's thread has it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = -1
        """The number of the subscription that it reads."""
        self.is_gone = False
        """Whether the client has closed the connection."""
        self.woken = asyncio.Event()


class AnswerHub:
    """Wakes clients that wait; only `committed` is called by another thread than the server's."""

    def __init__(self, context: ServiceContext, feed: AnswerFeed, answers: AskedAnswers) -> None:
        self._context = context
        self._feed = feed
        self._answers = answers
        self._followers: set[EventClient] = set()
        self._handover = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The server's, while somebody follows."""
        self._come: list[int] = []
        """Epochs that were committed since the hub has last looked."""
        self._news = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._seen: tuple[Any, ...] = ()
        self.version = 0
        """Grows when something has changed that concerns everybody."""
        self._asked: dict[str, asyncio.Task[AskedAnswer]] = {}
        """By name: its answer in this version."""
        self._steps: dict[tuple[int, int, int], asyncio.Task[FeedStep[WirePart]]] = {}
        """The parts that are being read, by number, epoch and part."""

    @property
    def followers(self) -> int:
        """The number of clients that follow."""
        return len(self._followers)

    @property
    def is_over(self) -> bool:
        """Whether the run stops."""
        return self._context.work.state in ("stopping", "failed")

    def committed(self, epoch: Epoch) -> None:
        """Take note of an epoch, on the trunk's thread."""
        with self._handover:
            if self._loop is not None:
                with suppress(RuntimeError):  # the server has just ended
                    self._loop.call_soon_threadsafe(self._tell, epoch.manifest.epoch)

    def _tell(self, epoch: int) -> None:
        self._come.append(epoch)
        self._news.set()

    @contextmanager
    def follower(self, name: str) -> Iterator[EventClient]:
        """A client, which is woken while this context lasts."""
        follower = EventClient(name)
        if self._work is None or self._work.done():
            self._seen, self._come = self._look(), []
            self.version += 1
            self._asked.clear()
            self._work = asyncio.create_task(self._wake())
            with self._handover:
                self._loop = asyncio.get_running_loop()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if not self._followers and self._work is not None:
                with self._handover:
                    self._loop = None
                self._work.cancel()
                self._work = None

    def _look(self) -> tuple[Any, ...]:
        """What concerns everybody when it changes; none of it is changed in place."""
        newest = self._context.newest
        ended = len(newest.manifest.aborted) if newest else 0
        return self._context.work.entries, self._context.plan, self._context.work.state, ended

    async def _wake(self) -> None:
        """Wake whom it concerns, again and again."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _LOOK_SECONDS)
            self._news.clear()
            come, self._come = self._come, []
            now = self._look()
            if not _same(self._seen, now):
                self._seen = now
                self.version += 1
                self._asked.clear()
                for each in self._followers:
                    each.woken.set()
            elif come:
                numbers = await asyncio.to_thread(self._numbers, come)
                for each in self._followers:
                    if numbers is None or each.number in numbers:
                        each.woken.set()

    def _numbers(self, epochs: list[int]) -> set[int] | None:
        """Who has results in some epochs; None where nobody can tell."""
        try:
            return {number for epoch in epochs for number in self._feed.epochs.numbers(epoch).tolist()}
        except AnabranchError:
            return None  # who reads it is told why

    async def asked(self, name: str) -> AskedAnswer:
        """The answer of a name, found once for all who ask for it in one version."""
        found = self._asked.get(name)
        if found is None:
            found = self._asked[name] = asyncio.create_task(asyncio.to_thread(self._answers.of, name))
        return await asyncio.shield(found)

    async def step(self, source: ResultSource, epoch: int, part: int) -> FeedStep[WirePart]:
        """What lies at a place, read once for all who are there at the same time."""
        last = self._feed.epochs.last
        if epoch > last:
            return FeedStep(None, last, 0)
        kept = self._feed.peek(source, epoch, part)
        if kept is not None:
            return FeedStep(kept, last, 0)
        key = source.number, epoch, part
        reading = self._steps.get(key)
        if reading is None:
            reading = self._steps[key] = asyncio.create_task(
                asyncio.to_thread(self._feed.wire_step, source, epoch, part)
            )
            reading.add_done_callback(lambda _: self._steps.pop(key, None))
        return await asyncio.shield(reading)


def _same(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    """Whether nothing has changed; large values are told apart by identity."""
    (*kept, ended), (*found, ends) = before, now
    return ended == ends and all(each is other for each, other in zip(kept, found, strict=True))


class AnswerEvents(Response):
    """The events of an answer, from a position on, until the answer, the run or the client ends."""

    def __init__(
        self, context: ServiceContext, client: Client, asked: AskedAnswer, after: ResultPosition | None
    ) -> None:
        """`after` is None for all that is kept."""
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)
        self._context = context
        self._hub = context.hub
        self._client = client
        self._asked = asked
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._context.open_streams.one(self._client), self._hub.follower(self._asked.name) as follower:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                listening = asyncio.create_task(_listen(receive, follower))
                writer = _EventWriter(send, self._hub, follower)
                try:
                    await writer.follow(self._asked, self._after)
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                finally:
                    listening.cancel()
        except TooMany as error:
            await refused(Request(scope), error)(scope, receive, send)


async def _listen(receive: Receive, follower: EventClient) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.is_gone = True
    follower.woken.set()


class _EventWriter:
    """Writes the events of one client; it is at an epoch and a part, and skips results before an index there."""

    def __init__(self, send: Send, hub: AnswerHub, follower: EventClient) -> None:
        self._send = send
        self._hub = hub
        self._follower = follower
        self._epoch = self._part = 0
        self._least = ResultPosition(0, 0)
        """The first result that is wanted."""
        self._has_position = False
        """Whether the client has read, or given, what lies in front."""

    def _is_over(self) -> bool:
        """Whether nothing more is to be written."""
        return self._follower.is_gone or self._hub.is_over

    async def follow(self, asked: AskedAnswer, after: ResultPosition | None) -> None:
        """Write all results behind a position, as they come."""
        self._begin(asked, after)
        await self._write(comment())
        try:
            await self._follow(asked)
        except AnabranchError as error:  # the log is damaged, or cannot be read
            await self._write(event(error.message, kind="error"))

    async def _follow(self, asked: AskedAnswer) -> None:
        version = -1  # whatever has happened since it was asked for
        while not self._is_over():
            self._follower.woken.clear()
            if version != self._hub.version:
                version = self._hub.version
                asked = await self._turned(asked)
            if asked.has_begun:
                await self._catch_up(asked)
            if self._is_over():
                return
            if asked.ended is not None and version == self._hub.version:
                await self._write(event(asked.ended, kind="end"))
                return
            try:
                await asyncio.wait_for(self._follower.woken.wait(), KEEP_ALIVE_SECONDS)
            except TimeoutError:
                await self._write(comment())

    def _begin(self, asked: AskedAnswer, after: ResultPosition | None) -> None:
        """Go to the result behind a position."""
        self._follower.number = asked.registration.id
        self._least = ResultPosition(asked.registration.first, 0)
        if after is not None and after >= self._least:
            self._least = ResultPosition(after.epoch, after.index + 1)
        self._epoch, self._part = self._least.epoch, 0
        self._has_position = after is not None

    async def _turned(self, asked: AskedAnswer) -> AskedAnswer:
        """The answer of the name now; where it is another one, what there is of the former is written first."""
        try:
            found = await self._hub.asked(asked.name)
        except AnabranchError as error:
            await self._catch_up(asked)
            return AskedAnswer(asked.name, asked.registration, asked.frame, None, error.message)
        if found.registration.id == asked.registration.id:
            return found
        if not found.has_begun and found.ended is None:
            return asked  # the new query waits for its first epoch
        if asked.has_begun:
            await self._catch_up(asked)
        self._begin(found, None)
        return found

    async def _catch_up(self, asked: AskedAnswer) -> None:
        """Write what there is."""
        source = asked.source
        while not self._is_over():
            step = await self._hub.step(source, self._epoch, self._part)
            if self._has_position and max(self._epoch, source.first) < step.kept:
                await self._write(event(f"results in front of epoch {step.kept} are no longer kept", kind="gap"))
            self._has_position = True
            if step.found is None:
                if step.reached >= self._epoch:
                    self._epoch, self._part = step.reached + 1, 0
                return
            found = step.found
            self._epoch, self._part = found.epoch, found.part
            skipped = max(0, self._least.index - found.first) if found.epoch == self._least.epoch else 0
            start, end, following = found.start(skipped), len(found.data), found.following
            kept = ref(found)
            held = found if found.size > _HELD_BYTES else None
            del step, found
            await self._write_part(source, kept, start, end)
            del held
            self._epoch, self._part = following

    async def _write_part(self, source: ResultSource, kept: ref[WirePart], begin: int, end: int) -> None:
        """Write a part as fast as the client reads; who waits for its client holds no more of it than a slice.

        What the cache has dropped meanwhile is read again.
        """
        while begin < end and not self._is_over():
            part = kept()
            if part is None:
                part = (await self._hub.step(source, self._epoch, self._part)).found
                if part is None or (part.epoch, part.part) != (self._epoch, self._part):
                    self._follower.is_gone = True  # retention has dropped it in the middle of an event
                    return
                kept = ref(part)
            body = part.data[begin : begin + _SENT_BYTES]
            del part
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            begin += len(body)

    async def _write(self, data: bytes) -> None:
        """Write something short."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
