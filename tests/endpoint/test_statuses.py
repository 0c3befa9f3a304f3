"""What an endpoint answers: every status, with what to do about it; and that nothing else gets in."""

from __future__ import annotations

import gzip
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from anabranch.endpoint.app import application
from anabranch.endpoint.server import Endpoint
from anabranch.endpoint.settings import TOKEN_VARIABLE, EndpointSettings
from anabranch.errors import UsageError
from anabranch.spark.checkpoint import durable
from anabranch.spark.spool.spool import Spool
from anabranch.storage import disk
from endpoint.client import JSON, LINES, XML, Served, ask, folder_of, pushed, served
from faults.disk import Disk
from sockets import listening_addresses

TOKEN = "0123456789abcdef"


def test_items_are_taken(tmp_path: Path) -> None:
    """By each type of body, packed or not; the answer says where in the stream the bytes of the body are."""
    sources = pushed(tmp_path), pushed(tmp_path, "photons", "document", root="photons"), pushed(tmp_path, "x", "lines")
    with served(*sources) as endpoint:
        first = ask(endpoint.url("orders"), '{"a": 1}')
        assert (first.status, first.content) == (200, {"stream": "orders", "start": 0, "end": 8, "repeated": False})
        second = ask(endpoint.url("orders"), gzip.compress(b'[{"a": 2},{"a": 3}]'), Content_Encoding="gzip")
        assert second.content == {"stream": "orders", "start": 9, "end": 28, "repeated": False}
        third = ask(endpoint.url("orders"), '{"a": 4}\n{"a": 5}\n', LINES)
        assert third.content["end"] == 47
        assert endpoint.taken("orders") == b'{"a": 1}\n {"a": 2}\n{"a": 3} \n{"a": 4}\n{"a": 5}\n'
        found = ask(endpoint.url("photons"), "<photon/>", XML)
        assert found.content == {"stream": "photons", "start": 9, "end": 18, "repeated": False}
        assert ask(endpoint.url("x"), "<p/>", "text/xml").status == 200
        assert endpoint.taken("x") == b"<p/>\n"


def test_chunked_bodies(tmp_path: Path) -> None:
    """The length need not be known beforehand."""
    with served(pushed(tmp_path)) as endpoint:
        host, port = endpoint.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            head = f"POST /streams/orders HTTP/1.1\r\nHost: {host}\r\nContent-Type: {JSON}\r\n"
            connection.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
            connection.sendall(b'4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n')
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        assert endpoint.taken("orders") == b'{"a": 1}\n'


def test_state(tmp_path: Path) -> None:
    """A GET says how many bytes were accepted and read."""
    with served(pushed(tmp_path)) as endpoint:
        ask(endpoint.url("orders"), '{"a": 1}')
        ask(endpoint.url("orders"), '{"a": 2}')
        endpoint.spools["orders"].forget(9)
        found = ask(endpoint.url("orders"))
        assert (found.status, found.content) == (200, {"stream": "orders", "accepted": 18, "read": 9, "behind": 9})


def test_a_repeated_request_counts_once(tmp_path: Path) -> None:
    """Under its key; the same key with another body is refused, and so is a key that cannot be one."""
    with served(pushed(tmp_path)) as endpoint:
        url = endpoint.url("orders")
        assert ask(url, '{"a": 1}', Idempotency_Key="k").content["repeated"] is False
        again = ask(url, '{"a": 1}', Idempotency_Key="k")
        assert (again.status, again.content) == (200, {"stream": "orders", "start": 0, "end": 8, "repeated": True})
        packed = ask(url, gzip.compress(b'{"a": 1}'), Content_Encoding="gzip", Idempotency_Key="k")
        assert packed.content["repeated"] is True, "packed or not, the body is the same"
        other = ask(url, '{"a": 2}', Idempotency_Key="k")
        assert (other.status, other.message) == (422, "the key 'k' belongs to a request with another body")
        for key in ("", "x" * 201, "\xe9"):
            assert ask(url, '{"a": 1}', Idempotency_Key=key).status == 400
        assert endpoint.taken("orders") == b'{"a": 1}\n'


def test_requests_at_once_share_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come while a write is under way are written together, and each is answered."""
    writes: list[Path] = []
    begun, go = Event(), Event()
    real = durable.publish

    def publish(path: Path, data: bytes) -> None:
        writes.append(path)
        begun.set()
        assert go.wait(60)
        real(path, data)

    monkeypatch.setattr(durable, "publish", publish)
    with served(pushed(tmp_path)) as endpoint, ThreadPoolExecutor(20) as threads:
        url, spool = endpoint.url("orders"), endpoint.spools["orders"]
        sent = [threads.submit(ask, url, '{"a": 0}')]
        assert begun.wait(60)
        sent += [threads.submit(ask, url, f'{{"a": {number}}}') for number in range(1, 10)]
        while len(spool._waiting) < 9:
            assert not any(each.done() for each in sent)
        go.set()
        assert [each.result(60).status for each in sent] == [200] * 10
        assert len(writes) == 2
        assert sorted(endpoint.taken("orders").split()) == sorted(
            [b'{"a":'] * 10 + [b"%d}" % number for number in range(10)]
        )


@pytest.mark.parametrize(
    ("status", "message", "sent", "kind", "headers"),
    [
        (400, "the body is not JSON: invalid character", "hello", JSON, {}),
        (400, "the body is not JSON: it ends early", '[{"a": 1}', JSON, {}),
        (400, "the gzip data is damaged", '{"a": 1}', JSON, {"Content-Encoding": "gzip"}),
        (413, "the body has more than 1,000 bytes", f'{{"a": "{"x" * 1_000}"}}', JSON, {}),
        (415, "the stream 'orders' is one of JSON, and the body is called 'application/xml'", "<p/>", XML, {}),
        (415, "the stream 'orders' is one of JSON, and the body is called 'text/plain'", "{}", "text/plain", {}),
        (415, "the content encoding 'br' is not read", "{}", JSON, {"Content-Encoding": "br"}),
        (415, "the charset 'latin-1' is not read", "{}", f"{JSON}; charset=latin-1", {}),
    ],
)
def test_bad_requests(tmp_path: Path, status: int, message: str, sent: str, kind: str, headers: dict[str, str]) -> None:
    """Each is refused with its status, what is wrong, and what to do; nothing of it is taken."""
    with served(pushed(tmp_path), settings=EndpointSettings(max_body=1_000)) as endpoint:
        found = ask(endpoint.url("orders"), sent, kind, **headers)
        assert (found.status, found.message) == (status, message)
        assert set(found.content) >= {"message", "hint"}
        assert found.headers["content-type"] == "application/json"
        assert endpoint.spools["orders"].state.accepted == 0
        assert ask(endpoint.url("orders"), '{"a": 1}').status == 200


def test_the_place_of_an_error(tmp_path: Path) -> None:
    """A body that cannot be read is refused with byte, line and column."""
    with served(pushed(tmp_path)) as endpoint:
        found = ask(endpoint.url("orders"), '[{"a": 1},\n{"b": x}]').content
        assert (found["byte"], found["line"], found["column"]) == (17, 2, 7)


def test_unknown_streams_paths_and_methods(tmp_path: Path) -> None:
    """Only streams that are pushed can be named, whole and in their own words; no path reaches a file."""
    (tmp_path / "other").mkdir()
    with served(pushed(tmp_path), pushed(tmp_path, "a/b é")) as endpoint:
        assert ask(endpoint.url("a%2Fb%20%C3%A9"), '{"a": 1}').content["stream"] == "a/b é"
        for name in (
            "other",
            "",
            "orders/",
            "../other",
            "..%2Fother",
            "%2e%2e/other",
            "/etc/passwd",
            "orders%00",
            "ORDERS",
        ):
            for body in (None, '{"a": 1}'):
                found = ask(endpoint.url(name), body)
                assert found.status == 404, name
        for path in ("/", "/streams", "/metrics", "/streamsorders"):
            assert ask(f"{endpoint.address}{path}", '{"a": 1}').status in (404, 405)
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            found = ask(endpoint.url("orders"), "{}", method=method)
            assert (found.status, found.headers["allow"]) == (405, "GET, POST")
        assert endpoint.spools["orders"].state.accepted == 0
        assert not list((tmp_path / "other").iterdir())


def test_a_trunk_that_is_behind(tmp_path: Path) -> None:
    """429 with Retry-After until something is read; a repeated key is answered all the same."""
    with served(pushed(tmp_path, backlog=20_000)) as endpoint:
        url, large = endpoint.url("orders"), f'{{"a": "{"x" * 10_000}"}}'
        assert ask(url, large, Idempotency_Key="k").status == 200
        found = ask(url, large)
        assert (found.status, found.headers["retry-after"]) == (429, "1")
        assert found.message == "'orders' is behind: 10,010 bytes wait to be read"
        assert ask(url, large, Idempotency_Key="k").content["repeated"] is True
        assert ask(url, large, Idempotency_Key="l").status == 429
        endpoint.spools["orders"].forget(10_010)
        assert ask(url, large).status == 200


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """507 while there is no room, and all is well when there is."""
    with served(pushed(tmp_path)) as endpoint:
        url = endpoint.url("orders")
        with monkeypatch.context() as patch:
            Disk(tmp_path, patch, 0)
            found = ask(url, '{"a": 1}', Idempotency_Key="k")
            assert (found.status, found.headers["retry-after"]) == (507, "1")
            assert found.message.startswith("the disk is full")
        assert ask(url, '{"a": 1}', Idempotency_Key="k").content["repeated"] is False
        assert endpoint.taken("orders") == b'{"a": 1}\n'


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """503: the request may be repeated."""

    def broken(path: Path) -> None:
        raise OSError(5, "Input/output error")

    with served(pushed(tmp_path)) as endpoint:
        assert ask(endpoint.url("orders"), '{"a": 0}').status == 200
        with monkeypatch.context() as patch:
            patch.setattr(disk, "sync", broken)
            assert ask(endpoint.url("orders"), '{"a": 1}', Idempotency_Key="k").status == 503
        assert ask(endpoint.url("orders"), '{"a": 1}', Idempotency_Key="k").content["repeated"] is True
        assert endpoint.warnings == ["requests to 'orders' are refused: cannot write " + _file(endpoint)]


def _file(endpoint: Served) -> str:
    return f"'{folder_of(endpoint.spools['orders'].source) / '000000000000000009'}': Input/output error"


def test_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 without any detail; the run's log has it."""
    with served(pushed(tmp_path)) as endpoint:
        monkeypatch.setattr("anabranch.endpoint.app.body_of", lambda *_: 1 // 0)
        found = ask(endpoint.url("orders"), '{"a": 1}')
        assert (found.status, found.message) == (500, "something has gone wrong here")
        assert endpoint.warnings == ["the endpoint failed: ZeroDivisionError: integer division or modulo by zero"]


def test_the_end_of_a_run(tmp_path: Path) -> None:
    """A stream that is not read any more takes nothing; an endpoint that is closed cannot be reached."""
    with served(pushed(tmp_path)) as endpoint:
        endpoint.spools["orders"].close()
        assert ask(endpoint.url("orders"), '{"a": 1}').status == 503
        address = endpoint.address
    with pytest.raises(ConnectionError):
        ask(f"{address}/streams/orders")


# --- who may send -----------------------------------------------------------------------------------------


def test_it_listens_on_the_loopback_interface(tmp_path: Path) -> None:
    """Unless it is told otherwise, nobody else can reach it."""
    with served(pushed(tmp_path)):
        assert listening_addresses()
        assert all(address.is_loopback for address in listening_addresses())


def test_other_names_of_the_machine_are_refused(tmp_path: Path) -> None:
    """A page that has let its own name point to this machine (DNS rebinding) cannot send, nor see anything."""
    with served(pushed(tmp_path)) as endpoint:
        port = endpoint.address.rpartition(":")[2]
        for host in ("localhost", f"LOCALHOST:{port}", "127.0.0.1", f"127.0.0.1:{port}", f"[::1]:{port}"):
            assert ask(endpoint.url("orders"), '{"a": 1}', Host=host).status == 200, host
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "", "[", "localhost.evil"):
            for body in ('{"a": 1}', None):
                assert ask(endpoint.url("orders"), body, Host=host).status == 421, host


def test_pages_of_other_origins_are_refused(tmp_path: Path) -> None:
    """What a browser sends for another page has its origin; and no answer has a CORS header."""
    with served(pushed(tmp_path)) as endpoint:
        url = endpoint.url("orders")
        assert ask(url, '{"a": 1}', Origin=endpoint.address).status == 200
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "file://"):
            found = ask(url, '{"a": 1}', Origin=origin)
            assert found.status == 403
            assert not [each for each in found.headers if each.lower().startswith("access-control")]
        assert ask(url, method="OPTIONS", Origin="http://evil.example").status == 403


def test_a_token(tmp_path: Path) -> None:
    """Where there is one, each request needs it, and nothing else will do."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with served(pushed(tmp_path), settings=EndpointSettings(token_file=tmp_path / "token")) as endpoint:
        url = endpoint.url("orders")
        for scheme in ("Bearer", "bearer"):
            assert ask(url, '{"a": 1}', Authorization=f"{scheme} {TOKEN}").status == 200
        wrong = ("", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer", "Bearer \xe9")
        for given in wrong:
            found = ask(url, '{"a": 1}', Authorization=given)
            assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer"), given
        assert ask(url, '{"a": 1}').status == 401
        assert ask(url).status == 401
        assert ask(f"{endpoint.address}/nothing").status == 401, "who has no token learns nothing"


def test_where_it_may_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere than on the loopback interface it takes a token, from a file or from the environment."""
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    for listen in ("127.0.0.1:0", "127.8.0.1:80", "[::1]:80", "localhost:80"):
        assert EndpointSettings(listen).token() is None
    for listen in ("0.0.0.0:80", "[::]:80", "192.168.0.1:80"):
        with pytest.raises(UsageError, match="takes a token, for others can reach it"):
            EndpointSettings(listen).token()
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert EndpointSettings("0.0.0.0:80").token() == TOKEN
    assert EndpointSettings().token() == TOKEN, "one that is set holds everywhere"
    monkeypatch.setenv(TOKEN_VARIABLE, "short")
    with pytest.raises(UsageError, match=f"the token in the environment's {TOKEN_VARIABLE} cannot be used"):
        EndpointSettings().token()
    for content in ("", "short", "with a blank in it", "non-ascii-tokené-0123"):
        (tmp_path / "token").write_text(content)
        with pytest.raises(UsageError, match="cannot be used"):
            EndpointSettings(token_file=tmp_path / "token").token()
    with pytest.raises(UsageError, match="cannot read the token in"):
        EndpointSettings(token_file=tmp_path / "none").token()
    for listen in ("", "8080", "localhost", "example.org:80", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"):
        with pytest.raises(UsageError, match="'listen' takes an address and a port"):
            EndpointSettings(listen)


def test_who_comes_early_waits(tmp_path: Path) -> None:
    """The address is there before anybody is served; a request that comes meanwhile is answered then."""
    spool = Spool(pushed(tmp_path), 0)
    settings = EndpointSettings()
    endpoint = Endpoint(application({"orders": spool}.get, settings, lambda message: None), settings)
    with ThreadPoolExecutor(1) as threads:
        early = threads.submit(ask, f"{endpoint.address}/streams/orders", '{"a": 1}')
        with pytest.raises(TimeoutError):
            early.result(0.1)
        endpoint.start()
        assert early.result(60).status == 200
    endpoint.close()
    spool.close()


def test_an_address_that_is_taken(tmp_path: Path) -> None:
    """It is an error by name, before anything is served."""
    with served(pushed(tmp_path)) as endpoint:
        listen = endpoint.address.removeprefix("http://")
        with pytest.raises(UsageError, match=f"cannot listen on '{listen}': Address already in use"):
            Endpoint(lambda scope, receive, send: None, EndpointSettings(listen))  # type: ignore[arg-type, return-value]
