"""Servers that fail, lie or never end: the client says so in an error of ours, soon, and with little memory."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from itertools import islice

import pytest

import anabranch
from anabranch.client import RemoteAnswer, RemoteError, RemoteUnavailable, connect, connection
from anabranch.client.events import EventReader
from anabranch.errors import AnabranchError, QueryError, Refused, UsageError
from client.scripted import ABOUT, EVENTS, Script, chunk, endless, event, reply, scripted

_PAGE = {"opening": "<r>", "closing": "</r>", "next": None, "more": False, "whole": True}


def _error(*scripts: Script, greeting: bool = True, timeout: float = 20) -> AnabranchError:
    """What asking for the streams raises."""
    with scripted(*scripts, greeting=greeting) as server, pytest.raises(AnabranchError) as found:
        connect(server.url, timeout=timeout).streams()
    return found.value


# --- replies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        b"hello\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 " + b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
        reply(b"<html>welcome</html>", kind="text/html"),
        reply(b"{", kind="application/json"),
        reply(b"[" * 200_000),
        reply(b"\xff\xfe"),
        reply(b"9" * 10_000),
        reply([1, 2]),
        reply({"streams": 5}),
        reply({"streams": [5]}),
        reply(b""),
        reply(b"", status=302, Location="http://127.0.0.1:1/"),
        reply(b"", status=500),
        reply({"message": 5}, status=500),
        reply({"message": "x" * 10_000, "hint": ["y"]}, status=418),
    ],
    ids=range(18),
)
def test_what_is_no_service(script: bytes) -> None:
    """Something else than a service is a `RemoteError` with a short message of printable characters."""
    error = _error(script)
    assert type(error) is RemoteError
    assert len(str(error)) < 2_500
    assert str(error).replace("\n", "").isprintable()


@pytest.mark.parametrize("script", [b"", reply({"streams": []})[:-3], EVENTS + b"5\r\nab"])
def test_what_breaks_off(script: bytes) -> None:
    """A reply that breaks off, wherever, is a `RemoteUnavailable`: the same request may be answered later."""
    assert isinstance(_error(script), RemoteUnavailable)


def test_nobody_listens() -> None:
    """Where nobody listens the error names the address, and what could be missing."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(RemoteUnavailable) as found:
        connect(url)
    assert str(found.value) == f"cannot reach {url}: Connection refused\nhint: is 'anabranch serve' running there?"


def test_no_name() -> None:
    """A host that cannot be found, without a request to anybody: the name is not one that can be."""
    with pytest.raises((RemoteUnavailable, RemoteError)):
        connect(f"http://{'a' * 70}.invalid")


def test_endless_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply that never ends is given up at its bound, whether it announces its length or not."""
    monkeypatch.setattr(connection, "MOST_BODY", 1 << 20)
    for head in (b"Transfer-Encoding: chunked\r\n", b"Content-Length: 100000000000\r\n", b""):
        sent: list[int] = []
        start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + head + b"\r\n"
        error = _error(endless(start, b"10000\r\n" + b" " * (1 << 16) + b"\r\n", sent))
        assert "more than 1,048,576 bytes" in str(error)
        assert sent[0] < 20 << 20  # what lies in the buffers of two sockets


def test_silence() -> None:
    """A server that takes a request and says nothing, or one byte now and then, is given up in time."""

    def silent(taken: socket.socket) -> None:
        taken.recv(1)

    def dripping(taken: socket.socket) -> None:
        taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            taken.sendall(b" ")
            taken.settimeout(0.05)
            try:
                taken.recv(1)
                return
            except TimeoutError:
                pass

    for script in (silent, dripping):
        error = _error(script, timeout=0.4)
        assert isinstance(error, RemoteUnavailable)
        assert "in time" in str(error) or "too long" in str(error)


def test_terminal_characters() -> None:
    """What a server says cannot act on a terminal."""
    error = _error(reply({"message": "a\x1b[2Jb", "hint": "c\x07d"}, status=400))
    assert str(error) == "a&#27;[2Jb\nhint: c&#7;d"


# --- addresses and tokens ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:80", "ftp://x", "http://", "http://x:y", "http://x:99999", "http://[::1", "http://u:p@x/",
     "http://x/?q", "http://x/#f", "http://a b/", "http://x/\r\nX: y", "file:///etc/passwd"],
)  # fmt: skip
def test_no_url(url: str) -> None:
    """What is no address of a service is wrong usage, before anything is sent."""
    with pytest.raises(UsageError):
        connect(url)


def test_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is that of the call, or of the environment; it is sent as it is, and shown nowhere."""
    monkeypatch.setenv("ANABRANCH_TOKEN", "environment-0001")
    with scripted(reply(ABOUT)) as server:
        site = connect(server.url, "given-token-0002")
        connect(server.url)
    assert "Authorization: Bearer given-token-0002\r\n" in server.requests[0]
    assert "Authorization: Bearer environment-0001\r\n" in server.requests[1]
    assert "given-token" not in repr(site) + str(vars(site))
    for token in ("two words", "line\nX: y", "späte", ""):
        with pytest.raises(UsageError):
            connect(server.url, token)


def test_wrong_token() -> None:
    """A token that is refused is told at once, with what to do."""
    error = _error(reply({"message": "the token is wrong", "hint": None}, status=401), greeting=False)
    assert type(error) is RemoteError
    assert str(error) == "the token is wrong\nhint: give a token, or set ANABRANCH_TOKEN"


def test_redirects_are_not_followed() -> None:
    """A token does not travel: nobody is asked but the address that was given."""
    with scripted(reply(ABOUT)) as other:
        _error(reply(b"", status=307, Location=f"{other.url}/api"), greeting=False)
    assert other.requests == []


# --- statuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 409, 413, 415])
def test_wrong_requests(status: int) -> None:
    """What the caller has done wrong is wrong usage, as it is for an engine."""
    error = _error(reply({"message": "there is no 'x'", "hint": "did you mean 'y'?"}, status=status))
    assert type(error) is UsageError
    assert str(error) == "there is no 'x'\nhint: did you mean 'y'?"


def test_not_ready() -> None:
    """A run that starts is unavailable for now."""
    assert type(_error(reply({"message": "the run is starting", "hint": None}, status=503))) is RemoteUnavailable


def test_too_many_requests() -> None:
    """A request that was too much is sent again when the service says so, of whatever kind; but not for ever."""
    busy = reply({"message": "too many requests", "hint": None}, status=429, Retry_After="0.01")
    with scripted(busy, busy, reply({"streams": []}), busy, reply({"registered": ["a"]}, status=201)) as server:
        site = connect(server.url)
        assert site.streams() == []
        assert site.register_all([{"name": "a", "query": "b"}]) == ["a"]
    assert server.lines[1:] == ["GET /api/streams"] * 3 + ["POST /api/subscriptions"] * 2
    for pause in ("1000", "soon", "-1", "9" * 5000):
        later = reply({"message": "x"}, status=429, Retry_After=pause)
        assert isinstance(_error(later, timeout=0.2), RemoteUnavailable)


def test_query_errors() -> None:
    """A refused query is the error of a local call: its class, place and underlined text."""
    text = "for $p in stream('s')/r/p\nretrun $p"
    said = {"message": "'retrun' is unexpected", "line": 2, "column": 1, "length": 6, "hint": "did you mean 'return'?"}
    expected = (
        "line 2, column 1: 'retrun' is unexpected [XPST0003]\n  retrun $p\n  ^^^^^^\nhint: did you mean 'return'?"
    )
    with scripted(
        reply({**said, "code": "XPST0003"}, status=422),
        reply({**said, "error": "Refused", "code": "XPST0003"}, status=422),
        reply({"ok": False, "errors": [{**said, "code": "XPST0003"}]}),
        reply({**said, "name": "b"}, status=422),
    ) as server:
        site = connect(server.url)
        with pytest.raises(QueryError) as plain:
            site.subscribe(text, "vela")
        with pytest.raises(Refused) as refused:
            site.explain(text)
        with pytest.raises(QueryError) as checked:
            site.check(text)
        assert {str(plain.value), str(refused.value), str(checked.value)} == {expected}
        with pytest.raises(QueryError) as one:
            site.register_all([{"name": "a", "query": "1"}, {"name": "b", "query": text}])
        assert str(one.value).startswith("b:2:1: 'retrun' is unexpected\n  retrun $p\n  ^^^^^^")


@pytest.mark.parametrize(
    ("line", "column"), [(0, 1), (-5, 1), (1, None), ("1", 1), (10**12, 1), (1, 10**12), (True, True), (2, 400)]
)
def test_places_that_are_not_there(line: object, column: object) -> None:
    """A place outside of the text, or none, is no reason to fail."""
    with scripted(reply({"message": "wrong", "line": line, "column": column}, status=422)) as server:
        site = connect(server.url)
        with pytest.raises((QueryError, UsageError), match="wrong"):
            site.subscribe("1\n2", "vela")


# --- connections ------------------------------------------------------------------------------------------


def test_a_kept_connection_that_is_lost() -> None:
    """A connection that waited and was closed meanwhile is opened again, for a request that only reads."""
    kept = reply(ABOUT).replace(b"Connection: close\r\n", b"")

    def once(taken: socket.socket) -> None:
        taken.sendall(kept)

    with scripted(once, reply({"streams": []}), greeting=False) as server:
        assert connect(server.url).streams() == []


def test_connections_are_kept() -> None:
    """Requests that only read share a connection; one that changes something has its own."""
    asked: list[bytes] = []

    def three(taken: socket.socket) -> None:
        taken.sendall(reply(ABOUT).replace(b"Connection: close\r\n", b""))
        for _ in range(2):
            asked.append(taken.recv(1 << 16))
            taken.sendall(reply({"streams": []}).replace(b"Connection: close\r\n", b""))

    with scripted(three, reply({"name": "a"}, status=201), greeting=False) as server:
        site = connect(server.url)
        assert site.streams() == site.streams() == []
        taken = site.subscribe("1", "a")
    assert taken.name == "a"
    assert [each.split(b" HTTP")[0] for each in asked] == [b"GET /api/streams"] * 2
    assert server.lines == ["GET /api", "POST /api/subscriptions"]


def test_what_changes_something_is_sent_once() -> None:
    """A registration that breaks off is not sent again: only the caller can know whether it should be."""
    with scripted(b"", reply({"name": "a"}, status=201)) as server:
        site = connect(server.url)
        with pytest.raises(RemoteUnavailable, match="broke off"):
            site.subscribe("1", "a")
    assert server.lines == ["GET /api", "POST /api/subscriptions"]


def test_names_are_quoted() -> None:
    """A name may have any characters; it stays one part of the path. One that cannot be written is refused."""
    with scripted(b"", b"") as server:
        site = connect(server.url)
        for name in ("a/b?c#d e\n", "../x%2F"):
            with pytest.raises(RemoteUnavailable):
                site.subscription(name)
        for name in ("", "\ud800"):
            with pytest.raises(UsageError):
                site.subscription(name)
    assert server.lines[1:] == [
        "GET /api/subscriptions/a%2Fb%3Fc%23d%20e%0A",
        "GET /api/subscriptions/..%2Fx%252F",
    ]


# --- pages ------------------------------------------------------------------------------------------------


def test_pages_are_fetched_as_they_are_needed() -> None:
    """Who takes the first subscription only asks for the first page; cursors are given back as they are."""
    first = {"total": 3, "subscriptions": [{"name": "a"}, {"name": "b"}], "next": "b&c=d"}
    last = {"total": 3, "subscriptions": [{"name": "c"}], "next": None}
    with scripted(reply(first), reply(first), reply(last)) as server:
        site = connect(server.url)
        assert next(site.subscriptions(search="a b")).name == "a"
        assert [each.name for each in site.subscriptions()] == ["a", "b", "c"]
    assert server.lines[1:] == [
        "GET /api/subscriptions?limit=500&search=a+b",
        "GET /api/subscriptions?limit=500",
        "GET /api/subscriptions?after=b%26c%3Dd&limit=500",
    ]


def test_pages_that_lead_nowhere() -> None:
    """A server that gives the same page for ever is found out."""
    letters = reply({"letters": [{"reason": "x"}], "next": "1-0", "more": True})
    page = reply({**_PAGE, "answers": [{"position": "1-0", "text": "a"}], "next": "1-0", "more": True})
    with scripted(letters, letters, reply({"name": "a"}), page, page) as server:
        site = connect(server.url)
        with pytest.raises(RemoteError, match="leads nowhere"):
            list(site.dead_letters())
        with pytest.raises(RemoteError, match="leads nowhere"):
            list(site.subscription("a").answers())


# --- following --------------------------------------------------------------------------------------------


def _followed(
    *scripts: Script, after: str | None = None, count: int | None = None
) -> tuple[list[RemoteAnswer], list[str]]:
    """The answers that a follower gets, and the positions that it has asked for."""
    with scripted(reply({"name": "a"}), *scripts) as server:
        found = list(islice(connect(server.url).subscription("a").answers(after, follow=True, patience=5), count))
    heads = server.requests[2:]
    return found, [head.partition("Last-Event-ID: ")[2].split("\r\n")[0] for head in heads]


_END = chunk("event: end\ndata: cancelled\n\n") + b"0\r\n\r\n"


@pytest.mark.mass
def test_following_goes_on_where_it_broke_off() -> None:
    """Whatever breaks off between two events, within one, or before the first: no answer is lost, none is double."""
    found, asked = _followed(
        EVENTS + event("1-0", "a") + event("1-1", "b\nc")[:-9],
        b"",
        reply({"message": "the run is starting", "hint": None}, status=503),
        EVENTS + chunk(": nothing yet\n\n"),
        EVENTS + event("1-1", "b\nc") + b"0\r\n\r\n",
        EVENTS + event("2-0", "") + _END,
    )
    assert found == [RemoteAnswer("1-0", "a"), RemoteAnswer("1-1", "b\nc"), RemoteAnswer("2-0", "")]
    assert asked == ["", "1-0", "1-0", "1-0", "1-0", "1-1"]


def test_following_begins_behind_a_position() -> None:
    """With a position it begins behind that; what is none is refused before anything is sent."""
    assert _followed(EVENTS + _END, after="12-3") == ([], ["12-3"])
    with pytest.raises(UsageError, match="is no position"):
        _followed(after="12-3\r\nX: y")


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (event("1-0", "a") * 2, "behind the one at 1-0"),
        (event("2-0", "a") + event("1-9", "a"), "behind the one at 2-0"),
        (event("10-0", "a") + event("9-0", "a"), "behind the one at 10-0"),
        (chunk("data: a\n\n"), "without a position"),
        (event("one", "a"), "without a position"),
    ],
)
def test_answers_that_cannot_be(sent: bytes, message: str) -> None:
    """Doubles, steps back and answers without a position are not handed on."""
    with pytest.raises(RemoteError, match=message):
        _followed(EVENTS + sent + _END)


def test_an_endless_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that never ends is given up at its bound."""
    monkeypatch.setattr("anabranch.client.following.EventReader", partial(EventReader, 1 << 20))
    for piece in ("x" * 60_000, "data: x\n" * 8_000):
        sent: list[int] = []
        with pytest.raises(RemoteError, match="more than 1,048,576 bytes"):
            _followed(endless(EVENTS, chunk(piece), sent))
        assert sent[0] < 20 << 20


def test_patience_ends() -> None:
    """A service that does not come back is given up; one that was never there, at once."""
    with scripted(reply({"name": "a"}), EVENTS + event("1-0", "a")) as server:
        answers = connect(server.url).subscription("a").answers(follow=True, patience=0.3)
        assert next(answers).text == "a"
    with pytest.raises(RemoteUnavailable):
        next(answers)
    with scripted(reply({"name": "a"})) as server:
        gone = connect(server.url).subscription("a")
    with pytest.raises(RemoteUnavailable, match="cannot reach"):
        next(gone.answers(follow=True))


def test_what_is_gone_is_not_waited_for() -> None:
    """A subscription that is not there any more, or a token that no longer counts, ends following with that error."""
    for status, kind in ((404, UsageError), (401, RemoteError)):
        with pytest.raises(kind) as found:
            _followed(EVENTS + event("1-0", "a"), reply({"message": "gone", "hint": None}, status=status))
        assert "gone" in str(found.value)


@pytest.mark.parametrize("kind", ["error", "gap"])
def test_what_cannot_be_read_is_told(kind: str) -> None:
    """Where answers are no longer kept, or cannot be read, following ends with that: there is no silent gap."""
    sent = event("1-0", "a") + chunk(f"event: {kind}\ndata: dropped\n\n") + event("9-0", "b")
    with pytest.raises(RemoteError, match="dropped"):
        _followed(EVENTS + sent + _END)


def test_no_events() -> None:
    """Something else than events, where these were asked for, is no service."""
    with pytest.raises(RemoteError, match="a stream of events was asked for"):
        _followed(reply({}))


def test_the_reason_of_the_end() -> None:
    """Following returns why it ended."""
    with scripted(reply({"name": "a"}), EVENTS + _END) as server, pytest.raises(StopIteration) as end:
        next(connect(server.url).subscription("a").answers(follow=True))
    assert end.value.value == "cancelled"


# --- notebooks --------------------------------------------------------------------------------------------


def test_notebooks_show_text_only() -> None:
    """What a service says is text in a notebook, whatever it is."""
    bad = "<script>alert(1)</script>\x1b"
    answers = [{"position": bad, "text": bad}]
    replies = ({**ABOUT, "site": bad}, {"streams": [{"name": bad}]}, {"name": bad}, {"name": bad, "query": bad})
    with scripted(*map(reply, (*replies, {**_PAGE, "answers": answers}))) as server:
        site = anabranch.connect(server.url)
        htmls = [site._repr_html_(), site.subscription("x")._repr_html_()]
    for html in htmls:
        assert "<script>" not in html
        assert "\x1b" not in html
        assert "&lt;script&gt;" in html


def test_the_shapes_of_reports() -> None:
    """Reports are handed on as they are; one that is none is an error."""
    asked: list[tuple[str, Callable[[anabranch.RemoteSite], object]]] = [
        ("/api/now", lambda site: site.now()),
        ("/api/state", lambda site: site.state()),
        ("/api/sharing", lambda site: site.sharing()),
        ("/api/streams/s%20t", lambda site: site.stream("s t")),
        ("/api/streams/s/evolution", lambda site: site.evolution("s")),
    ]
    with scripted(*[reply(value) for _ in asked for value in ({"epoch": 1}, "text")]) as server:
        site = connect(server.url)
        for _, ask in asked:
            assert ask(site) == {"epoch": 1}
            with pytest.raises(RemoteError):
                ask(site)
    assert server.lines[1::2] == [f"GET {path}" for path, _ in asked]
