"""The bodies of requests: how much of them is in memory, of one and of all together."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from anabranch.service.access import Bodies

MOST = 100


def sent(*sizes: int) -> Receive:
    """A body that comes in chunks of these sizes."""
    left = list(sizes)

    async def receive() -> Message:
        size = left.pop(0)
        return {"type": "http.request", "body": bytes(size), "more_body": bool(left)}

    return receive


async def read(receive: Receive) -> int:
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message["body"]), message["more_body"]
    return size


def test_a_body_is_read_up_to_its_limit() -> None:
    """A body of just the limit comes whole, and one byte more is a 413."""

    async def ask(*sizes: int) -> int:
        async with Bodies(MOST, 10).limited(sent(*sizes)) as receive:
            return await read(receive)

    assert asyncio.run(ask(60, 40)) == MOST
    with pytest.raises(HTTPException) as refused:
        asyncio.run(ask(60, 41))
    assert refused.value.status_code == 413


def test_all_bodies_together_have_a_limit() -> None:
    """Eight of the largest may be held at a time; the ninth is a 503, and has its room when another is answered."""

    async def ask() -> tuple[int, int]:
        bodies = Bodies(MOST, 10)
        async with AsyncExitStack() as held:
            for _ in range(8):
                await read(await held.enter_async_context(bodies.limited(sent(MOST))))
            with pytest.raises(HTTPException) as refused:
                async with bodies.limited(sent(1)) as receive:
                    await read(receive)
        async with bodies.limited(sent(MOST)) as receive:
            return refused.value.status_code, await read(receive)

    assert asyncio.run(ask()) == (503, MOST)


def test_a_body_that_does_not_come_is_given_up() -> None:
    """Who waits for its client longer than is allowed is told 408."""

    async def silent() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def ask() -> None:
        async with Bodies(MOST, 0.01).limited(silent) as receive:
            await read(receive)

    with pytest.raises(HTTPException) as refused:
        asyncio.run(ask())
    assert refused.value.status_code == 408
