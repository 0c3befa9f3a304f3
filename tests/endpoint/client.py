"""A client of an endpoint, and an endpoint without a trunk: spools, and nobody who reads them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from anabranch.endpoint.app import application
from anabranch.endpoint.server import Endpoint
from anabranch.endpoint.settings import EndpointSettings
from anabranch.spark.spool.files import FileName, bodies
from anabranch.spark.spool.spool import Spool
from anabranch.storage import Location
from anabranch.stream.reading.source import Http, Source

JSON, LINES, XML = "application/json", "application/x-ndjson", "application/xml"


def folder_of(source: Source) -> Path:
    """The folder of a spool on a disk."""
    found = Location.of(source.path).path
    assert found is not None
    return found


@dataclass(frozen=True)
class Answer:
    """What an endpoint has answered."""

    status: int
    content: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def message(self) -> str:
        return str(self.content["message"])


def ask(
    url: str, body: bytes | str | None = None, kind: str = JSON, method: str | None = None, **headers: str
) -> Answer:
    """Send a request on a connection of its own: a POST if it has a body; names of headers have `_` for `-`."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    data = body.encode() if isinstance(body, str) else body
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        if data is not None:
            given.setdefault("Content-Type", kind)
        connection.request(method or ("GET" if data is None else "POST"), parts.path, data, given)
        found = connection.getresponse()
        text = found.read()
        return Answer(found.status, json.loads(text) if text else {}, dict(found.getheaders()))
    finally:
        connection.close()


def pushed(folder: Path, name: str = "orders", format: str = "json", backlog: int = 1 << 20, **more: Any) -> Source:
    """A pushed stream whose spool is in a folder."""
    return Source(name, folder / name, format, http=Http(backlog), **more)  # type: ignore[arg-type]  # a format


@dataclass
class Served:
    """An endpoint with its spools."""

    address: str
    spools: Mapping[str, Spool]
    warnings: list[str] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"{self.address}/streams/{name}"

    def taken(self, name: str) -> bytes:
        """All that a stream holds."""
        spool = self.spools[name]
        return b"".join(bodies(Location.of(spool.source.path) / str(FileName(0)), spool.state.accepted))


@contextmanager
def served(*sources: Source, settings: EndpointSettings | None = None) -> Iterator[Served]:
    """An endpoint for some streams."""
    warnings: list[str] = []
    spools = {each.name: Spool(each, 0, warnings.append) for each in sources}
    chosen = settings or EndpointSettings()
    endpoint = Endpoint(application(spools.get, chosen, warnings.append), chosen)
    endpoint.start()
    try:
        yield Served(endpoint.address, spools, warnings)
    finally:
        endpoint.close()
        for each in spools.values():
            each.close()
