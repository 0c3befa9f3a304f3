"""Sites at work on the local host, asked over HTTP as any client does it.

Everything but Spark is real: the files, the trunk, the log, the server and the sockets.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from anabranch.client.events import EventReader, ServerEvent
from anabranch.running import run
from anabranch.service.settings import ServiceSettings
from anabranch.spark.answers.log import AnswerLog, CommittedAnswer
from anabranch.spark.checkpoint.folder import Checkpoint
from service.local_service import address_of

PATIENCE = 60.0
ENGINE = """
[engine]
checkpoint = "state"
log = "log.jsonl"
trigger_ms = 5
"""
LINES = """
[streams.s]
source = "files"
path = "in"
format = "lines"
"""


@dataclass
class ServedSite:
    """A site at work, and the folder it is in."""

    folder: Path
    url: str = ""
    failures: list[BaseException] = field(default_factory=list)

    def add(self, text: str, file: str = "in/a") -> None:
        """Let data come."""
        with (self.folder / file).open("a") as out:
            out.write(text)

    @contextmanager
    def opened(self, path: str, headers: Mapping[str, str] | None = None) -> Iterator[http.client.HTTPResponse]:
        """A reply whose body is still to be read."""
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            yield connection.getresponse()
        finally:
            connection.close()

    def ask(self, path: str, **query: object) -> tuple[int, Any]:
        """The status and the JSON of a reply."""
        given = {name.removesuffix("_"): value for name, value in query.items() if value is not None}
        with self.opened(f"{path}?{urlencode(given)}" if given else path) as reply:
            return reply.status, json.loads(reply.read())

    def get(self, path: str, **query: object) -> Any:
        """The JSON of a reply that is no refusal."""
        status, found = self.ask(path, **query)
        assert status == 200, found
        return found

    def send(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and the JSON of the reply to a change."""
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            data = reply.read()
            return reply.status, json.loads(data) if data else None
        finally:
            connection.close()

    def committed(self, name: str) -> CommittedAnswer:
        """The answer of a subscription, as the log has it."""
        log = AnswerLog(Checkpoint.at(self.folder / "state"))
        found = log.subscription(name)
        assert found is not None
        return log.answer(found)

    def page(self, name: str, **query: object) -> Any:
        """A page of an answer."""
        return self.get(f"/api/subscriptions/{quote(name, safe='')}/answers", **query)

    def results(self, name: str, after: str | None = None, limit: int = 1_000) -> list[tuple[str, str]]:
        """All results behind a position, page by page."""
        found: list[tuple[str, str]] = []
        while True:
            page = self.page(name, after=after, limit=limit)
            found += ((each["position"], each["text"]) for each in page["answers"])
            after = page["next"]
            if not page["more"]:
                return found

    @contextmanager
    def events(self, name: str, last: str | None = None, **query: object) -> Iterator[Iterator[ServerEvent]]:
        """The events of an answer as they come; they end where the service ends them."""
        given = {key.removesuffix("_"): value for key, value in query.items() if value is not None}
        path = f"/api/subscriptions/{quote(name, safe='')}/answers?{urlencode(given)}"
        headers = {"Accept": "text/event-stream", **({} if last is None else {"Last-Event-ID": last})}
        with self.opened(path, headers) as reply:
            assert reply.status == 200, reply.read()
            assert reply.getheader("Content-Type") == "text/event-stream"
            yield _events(reply)

    def follow(self, name: str, count: int, last: str | None = None, **query: object) -> list[tuple[str, str]]:
        """The first `count` results that come as events."""
        found: list[tuple[str, str]] = []
        with self.events(name, last, **query) as events:
            while len(found) < count:
                event = next(events)
                assert event.kind == "message", event
                found.append((event.id or "", event.data))
        return found


def _events(reply: http.client.HTTPResponse) -> Iterator[ServerEvent]:
    reader = EventReader()
    while data := reply.read1(1 << 16):
        yield from reader.feed(data)


@contextmanager
def served_site(
    folder: Path, toml: str, queries: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[ServedSite]:
    """Run a site while the context lasts; it has the `queries` as subscriptions, besides those of its own text."""
    (folder / "in").mkdir(exist_ok=True)
    for name, text in (queries or {}).items():
        (folder / f"{name}.xq").write_text(text)
        toml += f'\n[subscriptions.{name}]\nquery = "{name}.xq"\n'
    (folder / "SITE.toml").write_text(toml)
    record = folder / "state" / "service.json"
    former = json.loads(record.read_bytes().split(b"\n")[0])["address"] if record.exists() else None
    found, stop = ServedSite(folder), Event()

    def work() -> None:
        try:
            run(folder / "SITE.toml", stop=stop, serve=ServiceSettings(port=0, **settings), local=True)
        except BaseException as error:
            found.failures.append(error)

    thread = Thread(target=work, name="site under test", daemon=True)
    thread.start()
    try:
        found.url = address_of(folder, lambda: not found.failures, former)
        yield found
    finally:
        stop.set()
        thread.join()
    assert not found.failures


def wait_until(condition: Callable[[], Any]) -> Any:
    """Wait until something holds; gives what it is."""
    until, pause = monotonic() + PATIENCE, Event()
    while not (found := condition()):
        assert monotonic() < until, "it does not come"
        pause.wait(0.01)
    return found
