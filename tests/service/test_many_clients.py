"""Very many clients follow answers at once over loopback, and one of them reads nothing for a while.

The service is a process of its own, so that its memory can be measured; all clients are coroutines of one loop here.
Nobody waits for the slow one: all the others have everything while its connection is full.
What is not sent is not kept for it either: it lies in the answer log, from where the slow client has it in the end.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from anabranch.client.events import EventReader, ServerEvent
from anabranch.client.following import place_of
from service import local_service
from service.local_service import SITE, LocalService, address_of, make_site

PATIENCE = 240.0
WAVES, ITEMS = 100, 10
TOTAL = WAVES * ITEMS
"""So many items come at once, so often, one result each."""
LARGE_PATH = "/api/subscriptions/large/answers"
LARGE_SITE = f"""{SITE}
[subscriptions.large]
query = "large.xq"
"""
PART = "x" * 100_000


def _large(parts: int) -> str:
    """A query whose results are large, though its items are not."""
    return f'for $p in stream("s")/root/p let $x := "{PART}" return <n>{{ $p/text() }}<x>{"{ $x }" * parts}</x></n>'


@dataclass
class Listening:
    """A client: what it has received."""

    path: str
    events: list[ServerEvent] = field(default_factory=list)
    size: int = 0


@contextmanager
def _server(folder: Path, parts: int) -> Iterator[tuple[LocalService, subprocess.Popen[bytes]]]:
    """A service in a process of its own."""
    make_site(folder, LARGE_SITE)
    (folder / "large.xq").write_text(_large(parts))
    with (folder / "output").open("wb") as output:
        command = [sys.executable, local_service.__file__, str(folder / "SITE.toml")]
        process = subprocess.Popen(command, stderr=output)
    try:
        url = address_of(folder, lambda: process.poll() is None)
        yield LocalService(folder, url), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextmanager
def _many_files(count: int) -> Iterator[None]:
    """As many open files as so many connections take, here and in processes that are started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + 500
    assert hard == resource.RLIM_INFINITY or hard >= needed, f"the hard limit of open files is {hard}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _memory(process: subprocess.Popen[bytes]) -> int:
    """The resident memory of a process, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


async def _opened(url: str, path: str, **options: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection whose request was answered with a stream of events."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), **options)
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n"
    writer.write(request.encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    assert b"text/event-stream" in head
    return reader, writer


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a body."""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        yield (await reader.readexactly(size + 2))[:-2]


async def _listen(client: Listening, reader: asyncio.StreamReader, count: int) -> None:
    """Receive so many answers; only the beginning of each text is kept."""
    parser = EventReader()
    async for piece in _pieces(reader):
        client.size += len(piece)
        for event in parser.feed(piece):
            client.events.append(ServerEvent(event.kind, event.id, event.data[:40]))
        if len(client.events) >= count:
            return


async def _all(service: LocalService, process: subprocess.Popen[bytes], clients: int, parts: int) -> None:
    """Let clients follow while items come; the slow one is there for the later half."""
    listening = [Listening("/api/subscriptions/all/answers") for _ in range(clients)]
    listening.append(Listening(LARGE_PATH))
    slow = Listening(LARGE_PATH)
    service.add(*range(ITEMS))  # what was there before
    opened = [await _opened(service.url, each.path) for each in listening]
    tasks = [
        asyncio.create_task(_listen(each, reader, TOTAL)) for each, (reader, _) in zip(listening, opened, strict=True)
    ]
    before = [await _wave(service, process, wave, listening, tasks) for wave in range(1, WAVES // 2)]
    stuck = await _opened(service.url, LARGE_PATH, limit=1 << 12)
    behind = [await _wave(service, process, wave, listening, tasks) for wave in range(WAVES // 2, WAVES)]
    await asyncio.gather(*tasks)
    grown = max(behind) - max(before)
    unread = TOTAL * parts * len(PART)
    print(f"{clients} clients, {max(before):,} bytes and {grown:,} more, while {unread:,} were not read")
    assert grown < unread // 4
    await _listen(slow, stuck[0], TOTAL)
    for each in (*listening, slow):
        texts = [event.data.partition("<x>")[0].removesuffix("</n>")[3:] for event in each.events]
        assert texts == [str(number) for number in range(TOTAL)]
        places = [place_of(event.id or "") for event in each.events]
        assert None not in places
        assert places == sorted(set(places), key=lambda place: place or (0, 0))
    assert slow.size > unread
    for _, writer in (*opened, stuck):
        writer.close()


async def _wave(
    service: LocalService,
    process: subprocess.Popen[bytes],
    wave: int,
    listening: Sequence[Listening],
    tasks: Sequence[asyncio.Task[None]],
) -> int:
    """Let items come, and wait until everybody who listens has them; gives the memory of the service then.

    The run itself, which is in that process, makes results in each wave and drops them; so only the most of many waves
    can be compared with that of others.
    """
    reached = (wave + 1) * ITEMS
    service.add(*range(wave * ITEMS, reached))
    while any(len(each.events) < reached for each in listening):
        await asyncio.sleep(0.01)  # which lets them listen
        for task in tasks:
            if task.done():
                task.result()
    return _memory(process)


@pytest.mark.mass
@pytest.mark.parametrize(("clients", "parts"), [(40, 2), (1000, 2)], ids=["some", "a thousand"])
def test_nobody_waits_for_a_slow_client(tmp_path: Path, clients: int, parts: int) -> None:
    """Everyone receives all answers in order, the slow one as well, later.

    Meanwhile the service takes hardly more memory than before, and not a quarter of what the slow one has not read.
    """
    with _many_files(clients), _server(tmp_path, parts) as (service, process):
        asyncio.run(asyncio.wait_for(_all(service, process, clients, parts), PATIENCE))
        assert process.poll() is None
