"""Who may ask what: the whole table of roles and routes, and the rules that hold for every request.

The table is compared with the routes that the application has, so a route that nobody has thought about fails here.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from anabranch.errors import UsageError
from anabranch.running import run
from anabranch.service.app import routes
from anabranch.service.settings import ROLES, Role, ServiceSettings
from service.local_service import ALL, EVENTS, PATIENCE, LocalService, make_site, served

pytestmark = pytest.mark.service

TOKENS: dict[str, str] = {role: f"{role}-0123456789abcdef" for role in ROLES}
WRONG = "administer-0123456789abcdee"
CALLERS = (None, WRONG, *TOKENS.values())
ACCENT = '<s:accent><s:drop path="q"/></s:accent>'
QUERY = {"query": ALL}


@dataclass(frozen=True)
class Row:
    """A route: the role that it takes, None for none, a request to it, and what a caller with that role is told."""

    role: Role | None
    path: str
    status: int = 200
    body: Any = None
    accept: str = "application/json"


TABLE: dict[str, Row] = {
    "GET /": Row(None, "/"),
    "GET /page": Row(None, "/page/index.html"),
    "GET /healthz": Row(None, "/healthz"),
    "GET /readyz": Row(None, "/readyz"),
    "GET /metrics": Row("read", "/metrics"),
    "GET /openapi.json": Row("read", "/openapi.json"),
    "HEAD /openapi.json": Row("read", "/openapi.json"),
    "GET /api": Row("read", "/api"),
    "GET /api/now": Row("read", "/api/now"),
    "GET /api/now/events": Row("read", "/api/now/events", accept="text/event-stream"),
    "GET /api/streams": Row("read", "/api/streams"),
    "GET /api/streams/{}": Row("read", "/api/streams/s"),
    "GET /api/streams/{}/evolution": Row("read", "/api/streams/s/evolution"),
    "GET /api/streams/{}/evolution/{}/{}": Row("read", "/api/streams/s/evolution/0/ends", 404),
    "POST /api/streams/{}/accents": Row(
        "administer", "/api/streams/s/accents", 200, {"accent": ACCENT, "preview": True}
    ),
    "GET /api/subscriptions": Row("read", "/api/subscriptions"),
    "POST /api/subscriptions": Row("subscribe", "/api/subscriptions", 201, {"name": "mine", **QUERY}),
    "GET /api/subscriptions/{}": Row("read", "/api/subscriptions/all"),
    "PUT /api/subscriptions/{}": Row("subscribe", "/api/subscriptions/all", 409, QUERY),
    "DELETE /api/subscriptions/{}": Row("subscribe", "/api/subscriptions/all", 409),
    "GET /api/subscriptions/{}/answers": Row("read", "/api/subscriptions/all/answers"),
    "GET /api/subscriptions/{}/display": Row("read", "/api/subscriptions/show/display"),
    "GET /api/subscriptions/{}/moments": Row("read", "/api/subscriptions/show/moments"),
    "POST /api/check": Row("read", "/api/check", 200, QUERY),
    "POST /api/explain": Row("read", "/api/explain", 200, QUERY),
    "POST /api/preview": Row("read", "/api/preview", 200, QUERY),
    "POST /api/spelling": Row("read", "/api/spelling", 200, {**QUERY, "to": "xquery"}),
    "GET /api/dead-letters": Row("read", "/api/dead-letters"),
    "GET /api/late": Row("read", "/api/late"),
    "GET /api/state": Row("read", "/api/state"),
    "GET /api/sharing": Row("read", "/api/sharing"),
    "GET /api/sharing/{}": Row("read", "/api/sharing/nothing", 404),
    "GET /api/network": Row("read", "/api/network"),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    """A service with a token for each role."""
    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens"
    tokens.write_text("".join(f"{role} {token} {role}-client\n" for role, token in TOKENS.items()))
    with served(folder, token_file=tokens, requests_per_second=100_000) as found:
        yield found


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    """A service without tokens."""
    with served(tmp_path_factory.mktemp("unguarded"), requests_per_second=100_000) as found:
        yield found


def _routes(found: Iterable[Any]) -> Iterator[str]:
    """Method and path of every route of an application, with {} for what varies."""
    for each in found:
        if (included := getattr(each, "original_router", None)) is not None:
            yield from _routes(included.routes)
        elif each.methods if hasattr(each, "methods") else False:
            parts = ("{}" if part.startswith("{") else part for part in each.path.split("/"))
            path = "/".join(parts)
            yield from (f"{method} {path}" for method in each.methods)
        else:
            yield f"GET {each.path}"  # files


def _bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def test_the_table_has_all_routes() -> None:
    """Every route has its row, and every row its route."""
    found = sorted(_routes(routes().routes))
    assert found == sorted(TABLE)


@pytest.mark.parametrize("route", TABLE)
def test_roles(guarded: LocalService, route: str) -> None:
    """A caller without a token, or with a wrong one, is told so (401); one with a lesser role, too (403); the others
    are answered.

    Whatever a browser is told, it does not guess another type for it.
    """
    row, method = TABLE[route], route.split()[0]
    for caller in CALLERS:
        role = next((role for role, token in TOKENS.items() if token == caller), None)
        body = {**row.body, "name": f"{role}-mine"} if route == "POST /api/subscriptions" else row.body
        found = guarded.ask(method, row.path, body, _bearer(caller), Accept=row.accept)
        assert found.headers["x-content-type-options"] == "nosniff"
        if row.role is not None and role is None:
            assert found.status == 401
            assert found.headers["www-authenticate"] == "Bearer"
        elif row.role is not None and role is not None and ROLES.index(role) < ROLES.index(row.role):
            assert found.status == 403
        else:
            assert found.status == row.status, found.body
        if found.status in (401, 403) and method != "HEAD":
            assert found.content.keys() >= {"message", "hint"}
            assert not any(token in found.body.decode() for token in (*TOKENS.values(), WRONG))


def test_who_is_refused_changes_nothing(guarded: LocalService) -> None:
    """What a reader was refused has not happened."""
    before = guarded.ask("GET", "/api/subscriptions", headers=_bearer(TOKENS["read"])).content
    for method, path, body in (
        ("POST", "/api/subscriptions", {"name": "never", **QUERY}),
        ("POST", "/api/subscriptions", [{"name": "never", **QUERY}]),
        ("PUT", "/api/subscriptions/all", QUERY),
        ("DELETE", "/api/subscriptions/all", None),
        ("POST", "/api/streams/s/accents", {"accent": ACCENT}),
    ):
        assert guarded.ask(method, path, body, _bearer(TOKENS["read"])).status == 403
    assert guarded.ask("GET", "/api/subscriptions", headers=_bearer(TOKENS["read"])).content == before
    assert list((guarded.folder / "in").iterdir()) == []


def test_sinks_take_an_administrator(guarded: LocalService) -> None:
    """Who may subscribe may not have files written; who administers may, below the folder of the site only."""
    sunk = {"name": "sunk", **QUERY, "sink": {"sink": "files", "path": "out/sunk.xml"}}
    for body in (sunk, [sunk]):
        assert guarded.ask("POST", "/api/subscriptions", body, _bearer(TOKENS["subscribe"])).status == 403
    for path in ("/etc/sunk.xml", "../sunk.xml", "out/../../sunk.xml", "s3://bucket/sunk.xml"):
        bad = {**sunk, "sink": {"sink": "files", "path": path}}
        assert guarded.ask("POST", "/api/subscriptions", bad, _bearer(TOKENS["administer"])).status == 400
    assert guarded.ask("POST", "/api/subscriptions", sunk, _bearer(TOKENS["administer"])).status == 201
    changed = {**QUERY, "sink": {"sink": "files", "path": "out/other.xml"}}
    assert guarded.ask("PUT", "/api/subscriptions/sunk", changed, _bearer(TOKENS["subscribe"])).status == 403


@pytest.mark.parametrize(
    "path",
    ["SITE.toml", "all.xq", "log.jsonl", "SITE.toml/x.xml", "in/x.xml", "state/x.xml", "away/x.xml", "x" * 300, "\0",
     "\ud800", 5],
)  # fmt: skip
def test_sinks_that_cannot_be(tmp_path: Path, path: object) -> None:
    """A sink that would write over something, elsewhere, or cannot be written, is refused, and not registered.

    The run goes on, and so does the next one.
    """
    (tmp_path / "away").symlink_to("/tmp")
    sunk = {"name": "sunk", **QUERY, "sink": {"sink": "files", "path": path}}
    for _ in range(2):
        with served(tmp_path) as service:
            service.add(1)
            assert next(service.site().subscription("all").answers(follow=True)).text == "<n>1</n>"
            assert service.ask("POST", "/api/subscriptions", sunk).status == 400
            assert service.ask("GET", "/api/subscriptions/sunk").status == 404
            assert service.ask("GET", "/readyz").status == 200


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", TOKENS["read"], f"Basic {TOKENS['read']}", f"Bearer {TOKENS['read']}x",
     f"Bearer {TOKENS['read'][:-1]}", f"Bearer {TOKENS['read'].upper()}", f"Bearer {'x' * 10_000}", "Bearer \xff\xfe"],
)  # fmt: skip
def test_headers_that_are_no_token(guarded: LocalService, header: str) -> None:
    """Only the whole token counts, with its scheme in front."""
    assert guarded.ask("GET", "/api", headers={"Authorization": header}).status == 401
    assert guarded.ask("GET", "/api/subscriptions/nobody", headers={"Authorization": header}).status == 401
    assert guarded.ask("GET", "/api/nothing-here", headers={"Authorization": header}).status == 401


def test_tokens_count_in_the_header_only(guarded: LocalService) -> None:
    """A token in an address or a cookie is none: addresses are logged by others, cookies sent by other pages."""
    assert guarded.ask("GET", f"/api?token={TOKENS['read']}").status == 401
    assert guarded.ask("GET", f"/api?access_token={TOKENS['read']}").status == 401
    assert guarded.ask("GET", "/api", Cookie=f"token={TOKENS['read']}").status == 401


def test_the_log_has_requests_and_no_token(guarded: LocalService, capfd: pytest.CaptureFixture[str]) -> None:
    """Every request is one line, with who asked and what came of it, and no token is in the log in any spelling."""
    before = len(_requests(guarded))
    read = TOKENS["read"]
    guarded.ask("GET", "/api/streams", headers=_bearer(read))
    guarded.ask("GET", "/api/streams", headers=_bearer(WRONG))
    guarded.ask("GET", f"/api?token={read}")
    guarded.ask("POST", "/api/check", {"query": 5}, _bearer(read))
    guarded.ask("GET", "/healthz")
    guarded.ask("GET", f"/api/subscriptions/{'x' * 50}", headers=_bearer(read))
    until = monotonic() + PATIENCE
    while len(found := _requests(guarded)[before:]) < 6 and monotonic() < until:
        pass  # a line is written when its request was answered
    assert [(each["client"], each["role"], each["method"], each["path"], each["status"]) for each in found] == [
        ("read-client", "read", "GET", "/api/streams", 200),
        (None, None, "GET", "/api/streams", 401),
        (None, None, "GET", "/api", 401),
        ("read-client", "read", "POST", "/api/check", 400),
        (None, None, "GET", "/healthz", 200),
        ("read-client", "read", "GET", f"/api/subscriptions/{'x' * 50}", 404),
    ]
    assert all(isinstance(each["ms"], int | float) for each in found)
    out = capfd.readouterr()
    written = (guarded.folder / "log.jsonl").read_text() + out.out + out.err
    assert not any(token in written for token in (*TOKENS.values(), WRONG))


def _requests(service: LocalService) -> list[dict[str, Any]]:
    return [each for each in service.log if each["event"] == "request"]


def test_without_tokens_everybody_administers(unguarded: LocalService) -> None:
    """On loopback without tokens a caller administers, whether a token is sent or not."""
    assert unguarded.ask("GET", "/api").content["role"] == "administer"
    assert unguarded.ask("GET", "/api", headers=_bearer("whatever-0123456789")).content["role"] == "administer"


def test_elsewhere_than_on_loopback_tokens_are_needed(tmp_path: Path) -> None:
    """A service that others can reach does not start without tokens, and listens to nobody before that is known."""
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(UsageError, match="takes tokens"):
            run(make_site(tmp_path), serve=ServiceSettings(host=host, port=0), local=True)


# --- other origins ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example",
                                  "0.0.0.0", "[::ffff:1.2.3.4]", "", "[", "127.0.0.1@evil.example"])  # fmt: skip
def test_other_hosts(unguarded: LocalService, host: str) -> None:
    """A name that somebody else makes point to loopback is not ours: the page behind it learns nothing (421)."""
    for path in ("/api", "/", "/healthz", "/page/index.html"):
        found = unguarded.ask("GET", path, Host=host)
        assert found.status == 421, (path, found.body)
        assert b"SITE" not in found.body


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost", "LOCALHOST:99", "[::1]", "[::1]:8080"])
def test_own_hosts(unguarded: LocalService, host: str) -> None:
    """Loopback has several names, and a tunnel may have another port."""
    assert unguarded.ask("GET", "/api", Host=host).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://{host}.evil.example", "x",
                                    "http://127.0.0.1:1", "http://localhost", "file://", "http://[", ""])  # fmt: skip
def test_other_origins(unguarded: LocalService, origin: str) -> None:
    """Whatever a page of another origin asks is refused, reading or changing, and it is told nothing (403)."""
    sent = origin.format(host=unguarded.url.removeprefix("http://"))
    for method, path, body in (("GET", "/api", None), ("POST", "/api/subscriptions", {"name": "evil", **QUERY})):
        found = unguarded.ask(method, path, body, Origin=sent)
        assert found.status == 403, (method, found.body)
        assert not any(name.startswith("access-control-") for name in found.headers)
    assert unguarded.ask("GET", "/api/subscriptions/evil").status == 404


def test_what_browsers_say(unguarded: LocalService) -> None:
    """A browser that says that another site asks is refused, also where it sends no origin; our own page is not."""
    for site in ("cross-site", "same-site"):
        assert unguarded.ask("GET", "/api", Sec_Fetch_Site=site).status == 403
    for site in ("same-origin", "none"):
        assert unguarded.ask("GET", "/api", Sec_Fetch_Site=site).status == 200
    assert unguarded.ask("GET", "/api", Origin=unguarded.url).status == 200
    assert unguarded.ask("GET", "/", Sec_Fetch_Site="cross-site").status == 200  # a link to the page


def test_no_other_page_is_let_in(unguarded: LocalService) -> None:
    """Nothing invites a page of another origin: neither a question before a request nor an answer has such a header."""
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for headers in (asked, {}):
        for path in ("/api", "/api/subscriptions", "/healthz", "/"):
            found = unguarded.ask("OPTIONS", path, headers=headers)
            assert found.status in (403, 405)
            assert not any(name.startswith("access-control-") for name in found.headers)


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                                  "application/json-patch+json", "text/json", "application/xml"])  # fmt: skip
def test_bodies_are_json(unguarded: LocalService, kind: str | None) -> None:
    """A body of another kind is refused (415): those of forms are all that another page could send unasked."""
    body = json.dumps({"name": "formed", **QUERY}).encode()
    headers = {} if kind is None else {"Content-Type": kind}
    assert unguarded.ask("POST", "/api/subscriptions", body, headers).status == 415
    assert unguarded.ask("PUT", "/api/subscriptions/all", body, headers).status == 415
    assert unguarded.ask("GET", "/api/subscriptions/formed").status == 404


def test_bodies_that_are_too_large(unguarded: LocalService) -> None:
    """A body beyond the bound is refused by its announced length, or where it gets there (413)."""
    headers = {"Content-Type": "application/json"}
    announced = {**headers, "Content-Length": str(1 << 40)}
    assert unguarded.ask("POST", "/api/check", b"{}", announced).status == 413
    assert unguarded.ask("POST", "/api/check", b" " * (17 << 20), headers).status == 413
    for length in ("-1", "+5", "x", "5, 6"):
        found = unguarded.ask("POST", "/api/check", b"{}", {**headers, "Content-Length": length})
        assert found.status in (400, 413)


def test_bodies_without_an_end(tmp_path: Path) -> None:
    """A body that comes in chunks is refused where it gets too long (413), and one that does not come in time (408)."""
    head = b"POST /api/check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with served(tmp_path, max_body=100_000, body_seconds=0.5) as service:
        host, _, port = service.url.removeprefix("http://").partition(":")
        for body, status in (
            (b"Transfer-Encoding: chunked\r\n\r\n" + b"4000\r\n%s\r\n" % (b" " * 0x4000) * 10, b"413"),
            (b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", b"408"),
            (b"Content-Length: 50\r\n\r\n{", b"408"),
        ):
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(head + body)
                assert connection.recv(1 << 16).split()[1] == status


# --- limits -----------------------------------------------------------------------------------------------


def test_requests_a_second(tmp_path: Path) -> None:
    """A client that asks too often is told when to come back (429); another token is another client."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {TOKENS['read']}\nadminister {TOKENS['administer']}\n")
    with served(tmp_path, token_file=tokens, requests_per_second=5) as service:
        statuses = [service.ask("GET", "/api", headers=_bearer(TOKENS["read"])) for _ in range(30)]
        refused = [each for each in statuses if each.status == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert service.ask("GET", "/api", headers=_bearer(TOKENS["administer"])).status == 200


def test_event_streams_at_once(tmp_path: Path) -> None:
    """A client that holds too many event streams is refused another one (429), until it has closed one."""
    with served(tmp_path, event_streams=3) as service:
        path, host = "/api/subscriptions/all/answers", service.url.removeprefix("http://")
        held = []
        for number in range(5):
            connection = http.client.HTTPConnection(host, timeout=30)
            connection.request("GET", path, headers=EVENTS)
            found = connection.getresponse()
            assert found.status == (200 if number < 3 else 429)
            held.append((connection, found))
        for connection, found in held:
            found.close()
            connection.close()
