"""Requests over HTTP: to the endpoint that items are pushed to, and to the service of a run.

They are sent as bytes to a real server, which is asked something usual before and behind.
Each has the status that it is to be answered with, 0 where its connection is closed without a word; of what is refused
nothing is taken.
"""

from __future__ import annotations

import gzip
import re
import socket
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

from anabranch.endpoint.settings import EndpointSettings
from endpoint.client import ask
from endpoint.client import pushed as stream
from endpoint.client import served as endpoint
from hostile.attacks import Attack, Carry, Outcome
from service.local_service import served as service

_SETTINGS = EndpointSettings(header_seconds=0.5, body_seconds=0.5, max_body=100_000, connections=10)
_GOOD = b'{"a": 41}'
_JSON = "Content-Type: application/json\r\n"


def _request(first: str, headers: str = "", body: bytes = b"", host: str = "Host: localhost\r\n") -> bytes:
    return f"{first} HTTP/1.1\r\n{host}{headers}\r\n".encode("utf-8", "surrogateescape") + body


def _post(body: bytes, headers: str = _JSON, path: str = "/streams/s") -> bytes:
    """A POST that says how long its body is."""
    return _request(f"POST {path}", f"{headers}Content-Length: {len(body)}\r\n", body)


_BOMB = gzip.compress(bytes(15_000_000), 1)
_PUSHED: dict[str, tuple[bytes, int]] = {
    "two lengths": (_request("POST /streams/s", f"{_JSON}Content-Length: 9\r\nContent-Length: 3\r\n", _GOOD), 400),
    "a length below zero": (_request("POST /streams/s", f"{_JSON}Content-Length: -1\r\n", _GOOD), 400),
    "a length that is no number": (_request("POST /streams/s", f"{_JSON}Content-Length: 9x\r\n", _GOOD), 400),
    "a length of a terabyte": (_request("POST /streams/s", f"{_JSON}Content-Length: {10**12}\r\n", _GOOD), 413),
    "a length and chunks": (
        _request("POST /streams/s", f"{_JSON}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\nGET /"),
        400,
    ),
    "chunks in chunks": (
        _request("POST /streams/s", f"{_JSON}Transfer-Encoding: gzip, chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n"),
        400,
    ),
    "a chunk beyond 64 bits": (
        _request("POST /streams/s", f"{_JSON}Transfer-Encoding: chunked\r\n", b"f" * 40 + b"\r\n{"),
        400,
    ),
    "a chunk of a size below zero": (
        _request("POST /streams/s", f"{_JSON}Transfer-Encoding: chunked\r\n", b"-9\r\n" + _GOOD + b"\r\n0\r\n\r\n"),
        400,
    ),
    "a body that stops": (_request("POST /streams/s", f"{_JSON}Content-Length: 90\r\n", _GOOD), 408),
    "headers that stop": (b"POST /streams/s HTTP/1.1\r\nHost: localhost\r\nX: ", 0),
    "a header of a megabyte": (_request("GET /streams/s", f"X: {'x' * 1_000_000}\r\n"), 400),
    "fifty thousand headers": (_request("GET /streams/s", "X: y\r\n" * 50_000), 400),
    "a line of a megabyte": (_request(f"GET /streams/{'s' * 1_000_000}"), 400),
    "a NUL in a header": (_request("GET /streams/s", "X: a\0b\r\n"), 400),
    "a header without a colon": (_request("GET /streams/s", "X\r\n"), 400),
    "HTTP/2 without asking": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 421),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), 400),
    "a folder above": (_post(_GOOD, path="/streams/../../etc/passwd"), 404),
    "a folder above in percents": (_post(_GOOD, path="/streams/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), 404),
    "a NUL in a name": (_post(_GOOD, path="/streams/s%00"), 404),
    "a stream that is not there": (_post(_GOOD, path="/streams/nobody"), 404),
    "TRACE": (_request("TRACE /streams/s"), 405),
    "CONNECT": (_request("CONNECT 127.0.0.1:22"), 404),
    "DELETE": (_request("DELETE /streams/s"), 405),
    "the name of another host": (_request("GET /streams/s", host="Host: evil.example\r\n"), 421),
    "a page of another origin": (_post(_GOOD, _JSON + "Origin: https://evil.example\r\n"), 403),
    "a form of a page": (_post(_GOOD, "Content-Type: text/plain\r\n"), 415),
    "no type": (_post(_GOOD, ""), 415),
    "a compression that is not known": (_post(_GOOD, f"{_JSON}Content-Encoding: br\r\n"), 415),
    "what is no gzip": (_post(_GOOD, f"{_JSON}Content-Encoding: gzip\r\n"), 400),
    "a gzip bomb": (_post(_BOMB, f"{_JSON}Content-Encoding: gzip\r\n"), 413),
    "gzip in gzip": (_post(gzip.compress(gzip.compress(_GOOD)), f"{_JSON}Content-Encoding: gzip, gzip\r\n"), 415),
    "more than a body may have": (_post(b'{"a": "' + b"x" * 200_000 + b'"}'), 413),
    "brackets only": (_post(b"[" * 90_000), 400),
    "bytes that are no UTF-8": (_post(b'{"a": "\xff"}'), 400),
    "a value that is no object": (_post(b"17"), 400),
    "an object behind an object": (_post(b'{"a": 1} {"a": 2}'), 400),
    "a line end in a text": (_post(b'{"a": "x\ny"}'), 400),
    "five objects one behind the other": (_post(_GOOD) * 5, 200),
}
_SERVED: dict[str, tuple[bytes, int]] = {
    "a folder above the page": (_request("GET /page/../../../../etc/passwd"), 404),
    "a folder above in percents": (_request("GET /page/%2e%2e/%2e%2e/access.py"), 404),
    "a folder above, twice in percents": (_request("GET /page/%252e%252e/access.py"), 404),
    "a NUL in a file of the page": (_request("GET /page/main.js%00.html"), 404),
    "the root of the system": (_request("GET /page//etc/passwd"), 404),
    "a name of a subscription with a folder": (_request("GET /api/subscriptions/..%2F..%2Fetc"), 404),
    "a name of a megabyte": (_request(f"GET /api/subscriptions/{'n' * 1_000_000}"), 400),
    "the name of another host": (_request("GET /api/subscriptions", host="Host: evil.example\r\n"), 421),
    "a page of another origin": (
        _request("DELETE /api/subscriptions/all", "Origin: https://evil.example\r\n"),
        403,
    ),
    "a form of a page": (
        _post(b'{"name": "x", "query": "1"}', "Content-Type: text/plain\r\n", "/api/subscriptions"),
        415,
    ),
    "a method in a header": (_request("TRACE /api/subscriptions", "X-HTTP-Method-Override: DELETE\r\n"), 405),
    "brackets only": (_post(b"[" * 1_000_000, path="/api/subscriptions"), 400),
    "a name with a line end": (
        _post(b'{"name": "a\\n{\\"kind\\": 1}", "query": "1"}', path="/api/subscriptions"),
        422,
    ),
    "a query that is a number": (_post(b'{"name": "x", "query": 5}', path="/api/subscriptions"), 400),
    "a number beyond all": (
        _request(f"GET /api/subscriptions/all/answers?limit={'9' * 5_000}"),
        400,
    ),
    "a sink above the site's folder": (
        _post(
            b'{"name": "x", "query": "for $p in stream(\\"s\\")/root/p return $p", '
            b'"sink": {"sink": "files", "path": "../climbed.xml"}}',
            path="/api/subscriptions",
        ),
        400,
    ),
    "two lengths": (
        _request("POST /api/subscriptions", f"{_JSON}Content-Length: 2\r\nContent-Length: 3\r\n", b"{}"),
        400,
    ),
    "a length and chunks": (
        _request(
            "POST /api/subscriptions", f"{_JSON}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n{}"
        ),
        400,
    ),
}
_SECRETS = (b"root:", b"def ", b"import ")
"""What stands in files that nobody may read by the service."""


def _statuses(address: str, sent: bytes) -> set[int]:
    """The statuses of all answers until the server closes the connection."""
    parts = urlsplit(address)
    found = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        with suppress(OSError):  # it may close the connection before it has read everything
            connection.sendall(sent.replace(b"Host: localhost\r\n", f"Host: {parts.netloc}\r\n".encode()))
        with suppress(OSError):
            while piece := connection.recv(1 << 16):
                found += piece
    assert not any(each in found for each in _SECRETS), found[:500]
    return {int(each) for each in re.findall(rb"(?:\A|\n|\})HTTP/1\.1 ([1-5][0-9]{2})", found)}


def _outcome(status: int) -> Outcome:
    return "answered" if status == 200 else "refused"


def _to_endpoint(sent: bytes, status: int) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        with endpoint(stream(folder, "s"), settings=_SETTINGS) as server:
            url = server.url("s")
            assert ask(url, '{"a": 1}').status == 200
            assert _statuses(server.address, sent) == ({status} if status else set())
            assert ask(url, '{"a": 2}').status == 200
            between = server.taken("s").removeprefix(b'{"a": 1}\n').removesuffix(b'{"a": 2}\n')
            assert between == (b"" if status != 200 else (_GOOD + b"\n") * 5)
            assert server.warnings == []
        return _outcome(status)

    return carry_out


def _to_service(sent: bytes, status: int) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        site = folder / "site"
        site.mkdir()
        with redirect_stdout(StringIO()), service(site) as server:
            server.add(1)
            once = sent.replace(b"\r\nHost:", b"\r\nConnection: close\r\nHost:", 1)
            assert _statuses(server.url, once) == {status}
            listed = server.ask("GET", "/api/subscriptions").content
            assert sorted(each["name"] for each in listed["subscriptions"]) == ["all", "show"], listed
            assert [each.name for each in folder.iterdir()] == ["site"]
        return _outcome(status)

    return carry_out


def attacks() -> Iterator[Attack]:
    """Requests to the endpoint, and to the service."""
    for name, (sent, status) in _PUSHED.items():
        yield Attack("a request to the endpoint", name, _to_endpoint(sent, status), _outcome(status))
    for name, (sent, status) in _SERVED.items():
        yield Attack("a request to the service", name, _to_service(sent, status), _outcome(status))
