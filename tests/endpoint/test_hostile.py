"""Clients that are slow, huge or broken: each is cut off, nothing of theirs is taken, and others are served."""

from __future__ import annotations

import gzip
import re
import resource
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest

from anabranch.endpoint.settings import EndpointSettings
from endpoint.client import JSON, Served, ask, pushed, served
from mass import some

QUICK = EndpointSettings(header_seconds=0.3, body_seconds=0.3, max_body=100_000, connections=10)
HEAD = b"POST /streams/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connected(endpoint: Served) -> socket.socket:
    host, port = endpoint.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def status(connection: socket.socket) -> int:
    """The status of the next answer, which is read whole."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(1)
    length = re.search(rb"(?i)content-length: ([0-9]+)", found)
    left = int(length[1]) if length else 0
    while left:
        left -= len(connection.recv(left))
    return int(found.split(b" ")[1])


def rest(connection: socket.socket) -> bytes:
    """All that the endpoint sends until it closes the connection, which must come."""
    found = b""
    while True:
        try:
            piece = connection.recv(1 << 16)
        except ConnectionResetError:
            return found
        if not piece:
            return found
        found += piece


@pytest.mark.parametrize(
    "sent",
    some([b"", b"P", b"POST /streams/orders HTTP/1.1\r\n", HEAD]),
    ids=some(["nothing", "a letter", "a line", "headers"]),
)
def test_headers_that_do_not_come(tmp_path: Path, sent: bytes) -> None:
    """A connection that waits, or has sent only a part of its headers, is closed."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint, connected(endpoint) as slow:
        slow.sendall(sent)
        assert ask(endpoint.url("orders"), '{"a": 1}').status == 200
        assert rest(slow) == b""


def test_headers_that_drip(tmp_path: Path) -> None:
    """Each byte more does not buy more time."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint, connected(endpoint) as slow:
        slow.settimeout(0.02)
        sent = 0
        while sent < 1_000 and still_open(slow):
            sent += 1
        assert 1 < sent < 1_000


def still_open(connection: socket.socket) -> bool:
    """Send a byte, and wait for a moment: whether the other side has not closed the connection."""
    try:
        connection.sendall(b"x")
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def test_a_connection_that_is_kept(tmp_path: Path) -> None:
    """Several requests come on one connection; when none follows, it is closed."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint, connected(endpoint) as kept:
        for number in range(3):
            kept.sendall(HEAD + b'Content-Length: 8\r\n\r\n{"a": %d}' % number)
            assert status(kept) == 200
        assert rest(kept) == b""
        assert endpoint.taken("orders") == b'{"a": 0}\n{"a": 1}\n{"a": 2}\n'


def test_requests_behind_one_another(tmp_path: Path) -> None:
    """Sent without waiting for answers they are taken in their order."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint, connected(endpoint) as pipe:
        pipe.sendall(b"".join(HEAD + b'Content-Length: 8\r\n\r\n{"a": %d}' % number for number in range(5)))
        assert rest(pipe).count(b"HTTP/1.1 200 ") == 5
        assert endpoint.taken("orders") == b"".join(b'{"a": %d}\n' % number for number in range(5))


@pytest.mark.parametrize("sent", [b"", b'{"a"'])
def test_bodies_that_do_not_come(tmp_path: Path, sent: bytes) -> None:
    """A body that is not there in time is refused with 408, and the connection is closed."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint, connected(endpoint) as slow:
        slow.sendall(HEAD + b"Content-Length: 8\r\n\r\n" + sent)
        assert ask(endpoint.url("orders"), '{"a": 1}').status == 200
        found = rest(slow)
        assert found.startswith(b"HTTP/1.1 408 ")
        assert b"the body was not here after 0.3 seconds" in found
        assert endpoint.taken("orders") == b'{"a": 1}\n'


def test_clients_that_go_away(tmp_path: Path) -> None:
    """A body of which a part is missing is not taken, whatever it says of its length."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint:
        for length in (b"Content-Length: 30\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n9\r\n"):
            with connected(endpoint) as hasty:
                hasty.sendall(HEAD + length + b'{"a": 1}\n')
        assert ask(endpoint.url("orders"), '{"b": 1}').status == 200
        assert endpoint.taken("orders") == b'{"b": 1}\n'
        assert endpoint.warnings == []


def test_huge_bodies(tmp_path: Path) -> None:
    """By its length, or as soon as it is too long, a body is refused with 413; who goes on is cut off."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint:
        with connected(endpoint) as huge:
            huge.sendall(HEAD + b"Content-Length: 1000000000000\r\n\r\n")
            assert rest(huge).startswith(b"HTTP/1.1 413 ")
        with connected(endpoint) as huge:
            huge.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
            assert rest(huge).startswith(b"HTTP/1.1 413 "), "without a sign to go on"
        with connected(endpoint) as endless:
            endless.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            sent = 0
            with suppress(OSError):  # when the connection is gone
                while sent < 10_000:
                    endless.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                    sent += 1
            assert sent < 10_000
        assert ask(endpoint.url("orders"), '{"a": 1}').status == 200


def test_a_client_that_asks_first(tmp_path: Path) -> None:
    """Who waits for a sign before it sends its body gets it."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint, connected(endpoint) as polite:
        polite.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 8\r\n\r\n")
        assert status(polite) == 100
        polite.sendall(b'{"a": 1}')
        assert status(polite) == 200


def test_a_gzip_bomb(tmp_path: Path) -> None:
    """What unpacks to a thousand times its size is given up at the limit, and takes no memory."""
    settings = EndpointSettings(max_body=2 << 20)
    bomb = gzip.compress(bytes(200 << 20), 1)
    assert len(bomb) < settings.max_body
    with served(pushed(tmp_path), settings=settings) as endpoint:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = ask(endpoint.url("orders"), bomb, Content_Encoding="gzip")
        assert (found.status, found.message) == (413, "the body has more than 2,097,152 bytes, unpacked")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_large_headers(tmp_path: Path) -> None:
    """Headers have 16 KiB together, and so has the line of the request."""
    with served(pushed(tmp_path), settings=QUICK) as endpoint:
        for sent in (
            b"GET /streams/orders HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000,
            b"GET /streams/" + b"x" * 100_000,
            b"GET /streams/orders HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000,
        ):
            with connected(endpoint) as large:
                try:
                    large.sendall(sent)
                except OSError:
                    continue  # it was cut off at once
                found = rest(large)
                assert found == b"" or found.startswith(b"HTTP/1.1 400 ")
        assert ask(endpoint.url("orders"), '{"a": 1}').status == 200


def test_many_connections(tmp_path: Path) -> None:
    """More than allowed are told so and closed; when some end, others are taken."""
    with served(pushed(tmp_path), settings=EndpointSettings(connections=5)) as endpoint, ExitStack() as held:
        for _ in range(5):
            one = held.enter_context(connected(endpoint))
            one.sendall(HEAD + b'Content-Length: 8\r\n\r\n{"a": 1}')
            assert status(one) == 200
        with connected(endpoint) as another:
            found = rest(another)
            assert found.startswith(b"HTTP/1.1 503 ")
            assert b"Retry-After: 1\r\n" in found
            head, _, content = found.partition(b"\r\n\r\n")
            assert head.endswith(b"\r\nContent-Length: %d" % len(content))
        held.close()
        while True:
            with connected(endpoint) as another:
                another.sendall(HEAD + b'Content-Length: 8\r\n\r\n{"a": 1}')
                if status(another) == 200:
                    break


@pytest.mark.mass
def test_many_large_bodies(tmp_path: Path) -> None:
    """So many bytes are in memory at a time, and no more: who comes later is told to come again."""
    with served(pushed(tmp_path), settings=EndpointSettings(max_body=100_000)) as endpoint, ExitStack() as held:
        half = b"x" * 80_000
        for _ in range(5):
            one = held.enter_context(connected(endpoint))
            one.sendall(HEAD + b"Content-Length: 99999\r\n\r\n" + half)
        # four of the largest fit, so five times 80,000 bytes just do
        with connected(endpoint) as another:
            another.sendall(HEAD + b"Content-Length: 99999\r\n\r\n" + half)
            found = another.recv(1 << 16)
            assert found.startswith(b"HTTP/1.1 503 ")
            while b"too many large bodies at once" not in found:
                more = another.recv(1 << 16)
                assert more, found
                found += more
        held.close()
        while ask(endpoint.url("orders"), f'{{"a": "{"x" * 90_000}"}}').status != 200:
            pass


def test_noise(tmp_path: Path) -> None:
    """Whatever bytes come, nothing is taken that was not sent as a whole request, and the endpoint goes on."""
    random = Random(5)
    words = [
        HEAD,
        b"\r\n",
        b"\0",
        b"Content-Length: -1\r\n",
        b"Content-Length: 8\r\n",
        b"GET ",
        b"\xff\xfe",
        b"HTTP/2.0",
    ]
    words += [
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"ffffffffffffffff\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"x",
    ]
    with served(pushed(tmp_path), settings=QUICK) as endpoint:
        for _ in range(100):
            with connected(endpoint) as noisy:
                try:
                    noisy.sendall(b"".join(random.choices(words, k=random.randrange(1, 6))) + b"\r\n\r\n")
                    noisy.shutdown(socket.SHUT_WR)
                except OSError:
                    continue
                answer = rest(noisy)[:13]
                assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 5")), answer
        assert endpoint.spools["orders"].state.accepted == 0
        assert ask(endpoint.url("orders"), '{"a": 1}').status == 200
        assert endpoint.warnings == []


def test_bad_encodings(tmp_path: Path) -> None:
    """Bytes that are no text, in JSON, in its lines and in XML: refused, or taken to be set aside, never an error."""
    random = Random(6)
    sources = pushed(tmp_path), pushed(tmp_path, "lines", "lines"), pushed(tmp_path, "doc", "document", root="r")
    kinds = {"orders": (JSON, "application/x-ndjson"), "lines": ("text/xml",), "doc": ("application/xml",)}
    good = {"orders": b'{"a": "b"}\n', "lines": b"<p>b</p>\n", "doc": b"<r><p>b</p></r>"}
    with served(*sources, settings=QUICK) as endpoint:
        for _ in range(150):
            name = random.choice(list(kinds))
            data = bytearray(good[name] * random.randrange(1, 3))
            for _ in range(random.randrange(3)):
                data[random.randrange(len(data))] = random.randrange(256)
            if random.random() < 0.2:
                data = bytearray(bytes(data).decode("latin-1").encode(random.choice(["utf-16", "utf-32", "utf-7"])))
            found = ask(endpoint.url(name), bytes(data), random.choice(kinds[name]))
            assert found.status in (200, 400), (found, data)
        assert endpoint.warnings == []
