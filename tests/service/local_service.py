"""A real service without a JVM: a site on the local host, in a thread of the test or in a process of its own.

Nothing of the service is replaced; only the host of the trunk is this process, not Spark.

usage: local_service.py SITE.toml [PORT], which serves until SIGTERM comes
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from anabranch.client import RemoteSite, connect
from anabranch.errors import AnabranchError
from anabranch.running import run
from anabranch.service.settings import ServiceSettings
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint

PATIENCE = 60.0
SITE = """
[engine]
checkpoint = "state"
log = "log.jsonl"
trigger_ms = 20

[streams.s]
source = "files"
path = "in"
format = "lines"

[streams.board]
source = "files"
path = "updates"
format = "lines"
updates = true

[subscriptions.all]
query = "all.xq"

[subscriptions.show]
query = "show.xq"
"""
ALL = 'for $p in stream("s")/root/p return <n>{ $p/text() }</n>'
SHOW = '<show>{ for $p in stream("board")/root/p return $p }</show>'
EVENTS = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Reply:
    """What a service has answered: of a stream of events, nothing but the head."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


@dataclass
class LocalService:
    """A service, and the folder of its site."""

    folder: Path
    url: str = ""
    failures: list[BaseException] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.folder / "SITE.toml"

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [json.loads(line) for line in (self.folder / "log.jsonl").read_text().splitlines()]

    def site(self, token: str | None = None) -> RemoteSite:
        return connect(self.url, token)

    def add(self, *items: object) -> None:
        """Let items come."""
        with (self.folder / "in" / "items").open("a") as file:
            file.write("".join(f"<p>{each}</p>\n" for each in items))

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, **more: str
    ) -> Reply:
        """Send one request on a connection of its own, with just these headers; a body is JSON unless it is bytes."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {**(headers or {}), **{name.replace("_", "-"): value for name, value in more.items()}}
        if data is not None and not isinstance(body, bytes):
            given.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, given)
            found = connection.getresponse()
            kind = found.getheader("Content-Type", "")
            text = b"" if kind.startswith("text/event-stream") else found.read()
            return Reply(found.status, {name.lower(): value for name, value in found.getheaders()}, text)
        finally:
            connection.close()


def make_site(folder: Path, text: str = SITE) -> Path:
    """A site with a stream of lines, one that is edited, and a subscription to each."""
    for name in ("in", "updates"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "all.xq").write_text(ALL)
    (folder / "show.xq").write_text(SHOW)
    file = folder / "SITE.toml"
    file.write_text(text)
    return file


@contextmanager
def served(folder: Path, text: str = SITE, **settings: Any) -> Iterator[LocalService]:
    """A service in this process, at work."""
    found, stop = LocalService(folder), Event()
    make_site(folder, text)

    def work() -> None:
        try:
            run(found.file, stop=stop, serve=ServiceSettings(port=0, **settings), local=True)
        except BaseException as error:
            found.failures.append(error)

    thread = Thread(target=work, name="service under test", daemon=True)
    thread.start()
    try:
        found.url = address_of(folder, lambda: not found.failures)
        yield found
    finally:
        stop.set()
        thread.join()
    assert not found.failures


def address_of(folder: Path, alive: Any = lambda: True, former: str | None = None) -> str:
    """Where the service of a site is, once its run is ready; not at the `former` address, which has ended."""
    record, until, pause = Checkpoint.at(folder / "state").service, monotonic() + PATIENCE, Event()
    while monotonic() < until and alive():
        with suppress(AnabranchError, OSError):
            url: str = durable.unsealed(record)["address"]
            if url != former and is_ready(url):
                return url
        pause.wait(0.02)
    log = folder / "log.jsonl"
    raise AssertionError(f"the service does not get ready: {log.read_text()[-2000:] if log.exists() else 'no log'}")


def is_ready(url: str, path: str = "/readyz") -> bool:
    """Whether a run is at work."""
    with suppress(OSError, http.client.HTTPException):
        return LocalService(Path(), url).ask("GET", path).status == 200
    return False


def is_alive(url: str) -> bool:
    """Whether somebody answers."""
    return is_ready(url, "/healthz")


def main(file: str, port: str = "0") -> None:
    """Serve a site on the local host."""
    run(Path(file), serve=ServiceSettings(port=int(port)), local=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
