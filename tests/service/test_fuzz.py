"""The OpenAPI document drives a fuzzer: whatever is asked, in the document's terms or against them, no 5xx and no hang.

Requests are drawn by schemathesis, operation by operation, both such as the document allows and such as it does not.
Of those that have a query, a name or a position, many get one that means something to the site, so that requests go on
behind the checks of their shape: queries are registered, changed, explained and cancelled while items come in.
Behind all of it the run is still at work, and the answer that was there before is whole.
"""

from __future__ import annotations

import faulthandler
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument, Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.core.result import Ok

from mass import Mass
from service.local_service import ALL, SHOW, LocalService, served

pytestmark = pytest.mark.service

AnyCase: TypeAlias = Case[Any]
AnyOperation: TypeAlias = APIOperation[Any, Any, Any, Any]

SECONDS = 300
EXAMPLES = 12
"""Requests of one operation, before it is the next one's turn."""
HANGS = 20.0
NAMES = ("all", "show", "a", "b", "x/y", "é", "..", ".", "%2F", "\x00", " ", "answers", "a?b#c", "\u202e", "x" * 300)
QUERIES = (
    ALL, SHOW, "", "(", "1", '"', "<a>", "stream('s')", "for $p in stream('s')/root/p return", "\x00", "\ud83d\ude00",
    'for $p in stream("nobody")/root/p return $p', 'for $p in stream("s")/root/p where $p > 5 return $p',
    'for $w in stream("s")/root/p |count 3| return <w>{ count($w) }</w>', "SELECT * FROM s", "SELECT p FROM s GROUP BY",
    'for $p in stream("s")/root/p return error()', 'for $p in stream("s")/root/p return { "n": $p }', "(" * 5000,
    'for $p in doc("/etc/passwd")/a return $p', 'for $p in stream("s")/root/p return ' + "<a>" * 300 + "</a>" * 300,
)  # fmt: skip
ACCENTS = (
    '<s:accent><s:drop path="q"/></s:accent>', '<s:accent><s:alter path="p" by=". * 2"/></s:accent>', "<s:accent/>",
    '<s:accent where="q = 1"><s:add path="q" type="decimal"/></s:accent>', '{"accent": 1}', "<p>1</p>", "", "<",
)  # fmt: skip
POSITIONS = ("0-0", "1-1", "0--1", "x", "", "99999999999999999999-1", "1-1-1", "-1", "0", "1", "1e400", "null")
MEANINGFUL: dict[str, tuple[Any, ...]] = {
    "query": QUERIES,
    "accent": ACCENTS,
    "after": POSITIONS,
    "before": POSITIONS,
    "last": (0, 1, 5, -1, 10**30),
    "moment": (0, 1, -1, 10**30, "x"),
    "limit": (1, 5, 1000, 0, 10**9),
    "partition": (0, 1, -1, "all", "x", None, 10**30),
    "preview": (True, False),
    "items": (1, 200, 0, -1, 10**9),
    "stream": ("s", "board", "nobody"),
    "search": ("a", "stream", "\x00", "é"),
    "sink": (None, {"sink": "files", "path": "out/x.xml"}, {"sink": "console"}, {"sink": "files", "path": "\x00"}, {}),
    "from": ("now", "beginning"),
    "to": ("xquery", "dots", "sql"),
    "group": ("g1", "nothing", ""),
    "deed": ("ends", "passes it on"),
    "number": (0, 1, -1, 10**30),
    "policy": ("accumulate", "abort", "absorb", "other"),
    "language": ("xquery", "sql"),
}


@dataclass
class Fuzzing:
    """What was asked so far."""

    service: LocalService
    session: requests.Session
    statuses: dict[str, set[int]] = field(default_factory=dict)
    asked: int = 0

    def check(self, case: AnyCase, random: Random) -> None:
        """Send a request: it is answered in time, and what is refused says why."""
        if random.random() < 0.7:
            _mean(case, random)
        given_kwargs = case.as_transport_kwargs(base_url=self.service.url)
        try:
            prepared = requests.Request(
                **{key: value for key, value in given_kwargs.items() if key not in ("timeout", "cert", "verify")}
            ).prepare()
        except (ValueError, requests.RequestException):  # what no client can send
            return
        if random.random() < 0.1:
            prepared.headers["Accept"] = "text/event-stream"
        told = f"{prepared.method} {prepared.url} {prepared.body!r:.500}"
        began = monotonic()
        with self._sent(prepared, told) as found:
            self.asked += 1
            self.statuses.setdefault(case.operation.label, set()).add(found.status_code)
            if found.headers.get("Content-Type", "").startswith("text/event-stream"):
                assert found.status_code == 200, told
                return
            body = found.content
        assert found.status_code < 500, f"{told}: {body!r} {self.service.failures}"
        assert monotonic() - began < HANGS, told
        if found.status_code >= 400:
            said = json.loads(body)
            assert isinstance(said["message"], str), told
            assert said["message"], told
            assert isinstance(said["hint"], str | None), told

    def _sent(self, prepared: requests.PreparedRequest, told: str) -> requests.Response:
        """The reply to a request; a kept connection may have been closed meanwhile."""
        try:
            return self.session.send(prepared, stream=True, timeout=HANGS)
        except requests.ReadTimeout:
            pytest.fail(f"no reply in {HANGS} seconds: {told}", pytrace=False)
        except requests.ConnectionError:
            return self.session.send(prepared, stream=True, timeout=HANGS)


def _mean(case: AnyCase, random: Random) -> None:
    """Put values that mean something to the site into a request."""
    names = ("s", "s", "board", *NAMES) if "/streams/" in case.path else ("all", "show", "a", "b", *NAMES)
    meaningful = {**MEANINGFUL, "name": names}
    for values in (case.path_parameters, case.query, *_objects(case.body)):
        if isinstance(values, dict):
            for name in list(values):
                if name in meaningful and random.random() < 0.8:
                    values[name] = random.choice(meaningful[name])


def _objects(body: Any) -> Iterator[dict[str, Any]]:
    for each in body if isinstance(body, list) else [body]:
        if isinstance(each, dict):
            yield each


def _operations(service: LocalService) -> list[AnyOperation]:
    schema = schemathesis.openapi.from_dict(service.ask("GET", "/openapi.json").content)
    return [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]


def _fuzz(fuzzing: Fuzzing, operation: AnyOperation, number: int, mode: GenerationMode) -> None:
    """Draw requests of one operation and send them."""

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(operation.as_strategy(generation_mode=mode), st.integers(0, 1 << 32))
    def drawn(case: AnyCase, chosen: int) -> None:
        fuzzing.check(case, Random(chosen))

    drawn()


def test_no_request_fails_or_hangs(mass: Mass, tmp_path: Path) -> None:
    """No 5xx, no hang, and every refusal says why; then the run goes on as if nobody had asked."""
    faulthandler.cancel_dump_traceback_later()  # each request has its own limit
    seconds = mass.amount(SECONDS, budget=6)
    numbers, items = count(mass.seed * 1000), count()
    with (
        served(tmp_path, requests_per_second=1e9, event_streams=100_000) as service,
        requests.Session() as session,
    ):
        fuzzing = Fuzzing(service, session)
        operations = _operations(service)
        assert len(operations) > 5
        modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
        until = monotonic() + seconds
        while monotonic() < until:
            for operation in Random(next(numbers)).sample(operations, len(operations)):
                service.add(next(items))
                with suppress(InvalidArgument, Unsatisfiable):  # nothing can be drawn against this operation
                    _fuzz(fuzzing, operation, next(numbers), modes[next(numbers) % 2])
        assert service.ask("GET", "/readyz").status == 200
        failed = [each["message"] for each in service.log if "failed" in str(each.get("message"))]
        assert failed == []
        told = {each: sorted(found) for each, found in fuzzing.statuses.items()}
        print(f"{fuzzing.asked} requests: {told}")
        assert fuzzing.asked > 20


@pytest.mark.parametrize(
    "path",
    ["//", "/api//", "/api/../..", "/page/../settings.py", "/page/%2e%2e/settings.py", "/page/..%2fsettings.py", "/%00",
     "/page/%00", "/page/" + "x" * 5000, "/api/subscriptions/", "/api/subscriptions/%ff", "/api/streams/%2e%2e",
     "/docs", "/redoc", "/page", "/page/", "/page/views", "/API", "/api/subscriptions?after=%ff&limit=%00",
     "/?" + "&" * 3000],
)  # fmt: skip
def test_odd_paths(odd: LocalService, path: str) -> None:
    """Paths that no document has are refused in a word: nothing outside of the page's folder is shown."""
    found = odd.ask("GET", path)
    assert found.status < 500
    assert found.headers["x-content-type-options"] == "nosniff"
    assert b"ServiceSettings" not in found.body


@pytest.mark.parametrize("sent", [b"garbage\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
def test_what_is_no_request(odd: LocalService, sent: bytes) -> None:
    """Bytes that are no HTTP are refused in the form of all refusals, and the connection ends."""
    address = urlsplit(odd.url)
    assert address.hostname is not None
    with socket.create_connection((address.hostname, address.port or 80), timeout=HANGS) as connection:
        connection.sendall(sent)
        found = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body).keys() == {"message", "hint"}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    """A service that is asked odd things."""
    with served(tmp_path_factory.mktemp("odd"), requests_per_second=1e9) as found:
        yield found
