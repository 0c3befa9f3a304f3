"""The client and the command line against a real service, without a JVM: what they say is what the site has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter

import pytest

import anabranch
from anabranch.cli import main
from anabranch.client import RemoteError, RemoteSite
from anabranch.errors import QueryError, UsageError
from service.local_service import ALL, LocalService, served

pytestmark = pytest.mark.service

ODD = 'for $p in stream("s")/root/p where $p mod 2 = 1 return <odd>{ $p/text() }</odd>'
BAD = "for $p in stream('s')/root/p\nretrun $p"
REFUSED = "for $p in stream('s')/root/p return position()"
TOKEN = "subscribe-0123456789"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    """A service whose site has read five items and two entries."""
    folder = tmp_path_factory.mktemp("site")
    with served(folder) as found:
        found.add(*range(5))
        (folder / "updates" / "u").write_text('<p xml:id="a">1</p>\n<p xml:id="b">2</p>\n')
        site = found.site()
        assert len(list(islice(site.subscription("all").answers(follow=True), 5))) == 5
        assert list(islice(site.subscription("show").answers(follow=True), 8))
        for name, text in (("odd", ODD), ("bad", BAD), ("refused", REFUSED)):
            (folder / f"{name}.xq").write_text(text)
        yield found


@pytest.fixture
def site(service: LocalService) -> RemoteSite:
    return service.site()


def _ask(service: LocalService, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    """The status of a command, what it prints, and what it tells."""
    capsys.readouterr()
    status = main(["--url", service.url, *command])
    out = capsys.readouterr()
    return status, out.out, out.err


# --- Python -----------------------------------------------------------------------------------------------


def test_the_site_and_its_streams(service: LocalService, site: RemoteSite) -> None:
    """The site says what it is, its streams are those of the file."""
    assert (site.about()["site"], site.about()["role"]) == ("SITE.toml", "administer")
    assert [each["name"] for each in site.streams()] == ["s", "board"]
    assert site.stream("board")["updates"] is True
    assert site.now()["run_state"] == "ready"
    assert site.evolution("s")["accents"] == []
    assert {each["kind"] for each in site.state()["branches"]} >= {"display"}
    assert list(site.dead_letters()) == []
    assert list(site.late_items()) == []
    assert site.sharing()["streams"]
    assert service.url in site._repr_html_()
    with pytest.raises(UsageError, match="there is no stream 'board2'") as found:
        site.stream("board2")
    assert found.value.hint == "did you mean 'board'?"


def test_answers(site: RemoteSite) -> None:
    """Answers come with positions, from the first on or behind one; a page is as good as a stream of events."""
    subscription = site.subscription("all")
    answers = list(subscription)
    assert [each.text for each in answers] == [f"<n>{number}</n>" for number in range(5)]
    assert list(subscription.answers(answers[1].position)) == answers[2:]
    assert list(islice(subscription.answers(answers[1].position, follow=True), 3)) == answers[2:]
    assert subscription.text() == "".join(each.text for each in answers)
    assert list(subscription.answers("999-0")) == []
    assert "&lt;n&gt;4&lt;/n&gt;" in subscription._repr_html_()


def test_very_many_answers_come_page_by_page(tmp_path: Path) -> None:
    """A thousand answers are several pages, which are one sequence."""
    with served(tmp_path) as service:
        service.add(*range(1000))
        subscription = service.site().subscription("all")
        followed = list(islice(subscription.answers(follow=True), 1000))
        assert list(subscription) == followed
        assert [each.text for each in followed] == [f"<n>{number}</n>" for number in range(1000)]


def test_displays(site: RemoteSite) -> None:
    """A display is what it shows now, and what it has shown at a moment."""
    show = site.subscription("show")
    assert show.is_display()
    assert show.text() == show.display().text == '<show><p xml:id="a">1</p><p xml:id="b">2</p></show>'
    first = show.display(0)
    assert "2" not in first.text.replace("xml:id", "")
    assert first.at is not None
    assert "&lt;show&gt;" in show.display()._repr_html_()


@pytest.mark.parametrize("name", ["mine", "a/b", "é ?#%2F", "..", "<b>\x1b", "answers"])
def test_subscriptions_come_and_go(site: RemoteSite, service: LocalService, name: str) -> None:
    """A subscription is registered under any name, found, changed, followed and cancelled."""
    mine = site.subscribe(ODD, name)
    assert mine.about["origin"] == "service"
    assert name in [each.name for each in site.subscriptions(search="odd")]
    with pytest.raises(UsageError, match="already"):
        site.subscribe(ODD, name)
    service.add(7, 8)
    assert [each.text for each in islice(mine.answers(follow=True), 1)] == ["<odd>7</odd>"]
    mine.change(ALL)
    assert mine.details()["query"] == ALL
    mine.cancel()
    with pytest.raises(UsageError, match="there is no subscription"):
        mine.details()
    assert name not in [each.name for each in site.subscriptions()]


@pytest.mark.parametrize("name", ["\x01", "\ufffe", "a\x00b"])
def test_names_that_cannot_stand_in_a_query(site: RemoteSite, name: str) -> None:
    """The name stands in the query of one who reads from the beginning: there it is refused when it is registered.

    A run that found it out in its next epoch would end, and so would every run after it.
    """
    with pytest.raises(UsageError, match="the name cannot stand in a query"):
        site.subscribe(ODD, name, from_beginning=True)


@pytest.mark.parametrize("name", ["a\rb", "a\u0085b", 'a"b', "a&amp;b", "{a}", "<a>", "a'b", "a\nb"])
def test_odd_names_that_read_from_the_beginning(site: RemoteSite, name: str) -> None:
    """Whatever can stand there, however it has to be written, does."""
    mine = site.subscribe(ODD, name, from_beginning=True)
    assert next(mine.answers(follow=True)).text == "<odd>1</odd>"
    mine.cancel()


def test_following_ends_with_the_subscription(site: RemoteSite, service: LocalService) -> None:
    """Who follows an answer is told when it is cancelled, whether there was one before or not."""
    for with_answer, name in ((False, "ending-0"), (True, "ending-1")):
        mine = site.subscribe(ODD, name)
        if with_answer:
            service.add(7)
            next(mine.answers(follow=True))
        with site.connection.events(f"/api/subscriptions/{name}/answers", None) as pieces:
            mine.cancel()
            assert b"event: end\n" in b"".join(pieces)
    mine = site.subscribe(ODD, "ending-2")
    service.add(9)
    answers = mine.answers(follow=True)
    assert next(answers).text == "<odd>9</odd>"
    mine.cancel()
    with pytest.raises(StopIteration) as end:
        next(answers)
    assert end.value.value == "it was cancelled"


def test_many_at_once(site: RemoteSite) -> None:
    """Very many are registered as a whole or not at all; they are listed page by page, each once."""
    names = [f"many-{number:04}" for number in range(1200)]
    bodies = [{"name": name, "query": ALL} for name in names]
    with pytest.raises(QueryError) as found:
        site.register_all([*bodies, {"name": "wrong", "query": BAD}])
    assert str(found.value).startswith("wrong:2:1: ")
    assert list(site.subscriptions(search="many-")) == []
    assert sorted(site.register_all(bodies)) == names
    assert [each.name for each in site.subscriptions(search="many-")] == names
    assert next(site.subscriptions(sort="name", order="desc", origin="service")).name == names[-1]


@pytest.mark.parametrize(("sort", "order"), [("name", "asc"), ("name", "desc"), ("first_epoch", "desc")])
def test_pages_while_others_come_and_go(site: RemoteSite, sort: str, order: str) -> None:
    """Who is there all the time is listed once, whoever is cancelled or registered between two pages."""
    names = [f"{sort}-{order}-{number:04}" for number in range(1100)]
    site.register_all([{"name": name, "query": ALL} for name in names])
    listed = site.subscriptions(search=f"{sort}-{order}", sort=sort, order=order)
    first = [each.name for each in islice(listed, 10)]
    for name in first[:5]:
        site.subscription(name).cancel()
    site.subscribe(ALL, f"{sort}-{order}-0000-and-more")
    found = first + [each.name for each in listed]
    assert len(found) == len(set(found))
    assert set(found) >= set(names)


@pytest.mark.parametrize("text", [BAD, REFUSED, "for $p in stream('nobody')/root/p return $p", "(", ""])
def test_a_refused_query_is_the_error_of_a_local_call(service: LocalService, site: RemoteSite, text: str) -> None:
    """Class, message, hint, code and underlined place are those that an engine in this process has."""
    with anabranch.Engine(local=True) as engine:
        engine.stream("s", service.folder / "in")
        engine.stream("board", service.folder / "updates", updates=True)
        with pytest.raises(QueryError) as local:
            engine.subscribe(text, "x")
    for ask in (lambda: site.subscribe(text, "x"), lambda: site.check(text), lambda: site.explain(text)):
        with pytest.raises(QueryError) as remote:
            ask()
        assert type(remote.value) is type(local.value)
        remote.value.name = local.value.name
        assert str(remote.value) == str(local.value)


def test_queries_before_they_are_registered(site: RemoteSite) -> None:
    """A query is checked, explained beside those that run, and tried over the newest items."""
    assert site.check(ODD)["kind"] == "items"
    assert site.check("SELECT p FROM s", language="sql")["language"] == "sql"
    assert "stream" in site.explain(ODD)["text"]
    assert site.preview('for $p in stream("s")/root/p where $p = 3 return $p')["answers"] == ["<p>3</p>"]


def test_accents(tmp_path: Path) -> None:
    """An accent is looked at, then published; the stream has it, and the history says so."""
    text = '<s:accent><s:add path="q" type="decimal"/></s:accent>'
    with served(tmp_path) as service:
        service.add(1)
        site = service.site()
        next(site.subscription("all").answers(follow=True))
        seen = site.accent("s", text, preview=True)
        assert seen["preview"] is True
        assert site.evolution("s")["accents"] == []
        done = site.accent("s", text)
        assert done["preview"] is False
        assert [Path(each).name for each in done["places"]]
        service.add(2)
        followed = list(islice(site.subscription("all").answers(follow=True), 2))
        assert [each.text for each in followed] == ["<n>1</n>", "<n>2</n>"]
        assert [each["kind"] for each in site.evolution("s")["accents"]] == ["add"]


def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A token is given in the call, the environment or a file; without one, or where it is not enough, that is said."""
    monkeypatch.delenv("ANABRANCH_TOKEN", raising=False)
    (tmp_path / "tokens").write_text(f"subscribe {TOKEN} team\nread read-0123456789abc\n")
    with served(tmp_path, token_file=tmp_path / "tokens") as service:
        with pytest.raises(RemoteError, match="the token is missing or wrong"):
            service.site()
        site = service.site(TOKEN)
        assert site.about()["role"] == "subscribe"
        with pytest.raises(RemoteError, match="this takes the role 'administer'"):
            site.accent("s", '<s:accent><s:drop path="q"/></s:accent>')
        for text, status in ((TOKEN, 0), (f"# mine\nread {TOKEN}\n", 0), ("read-0123456789xxx", 1), ("", 2)):
            (tmp_path / "token").write_text(text)
            assert main(["--token-file", str(tmp_path / "token"), "--url", service.url, "streams"]) == status
        assert main(["--url", service.url, f"--token-file={tmp_path / 'tokens'}", "streams"]) == 2
        assert "has 2 tokens" in capsys.readouterr().err
        monkeypatch.setenv("ANABRANCH_TOKEN", "read-0123456789abc")
        assert main(["--url", service.url, "streams"]) == 0
        assert service.site().about()["client"] == "read-2"


def test_kept_connections_do_not_wait(site: RemoteSite) -> None:
    """A request on a kept connection is answered at once: the system would hold back a part of it for 40 ms."""
    seconds = []
    for _ in range(20):
        began = perf_counter()
        site.about()
        seconds.append(perf_counter() - began)
    assert min(seconds) < 0.025  # whatever else the machine does, one of them is quick


# --- the command line -------------------------------------------------------------------------------------


def test_answers_are_those_of_the_local_command(service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    """`answer` prints what it prints of the site file, byte for byte."""
    for name in ("all", "show"):
        status, remote, _ = _ask(service, capsys, "answer", name)
        assert status == main(["answer", str(service.file), name]) == 0
        assert remote == capsys.readouterr().out


def test_answers_behind_a_position(service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    """With a position only what is behind it is printed, and where to go on is told beside it."""
    answers = list(service.site().subscription("all"))
    status, out, err = _ask(service, capsys, "answer", "all", "--after", answers[3].position)
    assert (status, out) == (0, "".join(each.text for each in answers[4:]) + "\n")
    assert err == f"anabranch: note: the next answer is the one --after {answers[-1].position}\n"
    assert _ask(service, capsys, "answer", "all", "--after", "soon")[0] == 2


def test_following_on_the_command_line(service: LocalService) -> None:
    """`answer --follow` prints each answer at once, and goes on until it is interrupted."""
    command = [sys.executable, "-m", "anabranch.cli", "--url", service.url, "answer", "all", "--follow"]
    if not (Path(anabranch.__file__).parent / "cli" / "__main__.py").exists():
        command[1:3] = ["-c", "import sys; from anabranch.cli import main; sys.exit(main())"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(5)] == [f"<n>{number}</n>\n" for number in range(5)]
        process.terminate()
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert "--after" in process.stderr.read()


def test_subscribing_on_the_command_line(service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    """A query file is registered, listed, and cancelled; what the file has wrong is underlined with its name."""
    query, bad = str(service.folder / "odd.xq"), str(service.folder / "bad.xq")
    assert _ask(service, capsys, "subscribe", "cli", query) == (
        0,
        "",
        "anabranch: registered 'cli'; it answers from the next epoch on\n",
    )
    status, out, _ = _ask(service, capsys, "subscriptions", "--search", "cli")
    assert (status, out.splitlines()[0].split()) == (0, ["subscription", "state", "kind", "streams", "answers", "sink"])
    assert out.splitlines()[1].split()[0] == "cli"
    assert _ask(service, capsys, "subscribe", "cli", query)[0] == 2
    assert _ask(service, capsys, "cancel", "cli")[0] == 0
    assert _ask(service, capsys, "cancel", "cli")[0] == 2
    assert _ask(service, capsys, "cancel", "all")[0] == 2
    for command in (("check",), ("explain",), ("subscribe", "bad")):
        status, out, err = _ask(service, capsys, *command, bad)
        assert (status, out) == (1, "")
        assert err.startswith(f"anabranch: {bad}:2:1: ")
        assert "\n  retrun $p\n  ^^^^^^" in err
    assert _ask(service, capsys, "check", query)[1].startswith("kind: items\nanswer: xml\nstreams: s\n")
    assert "cost, pass: none" in _ask(service, capsys, "explain", query)[1]
    assert _ask(service, capsys, "check", str(service.folder / "none.xq"))[0] == 2


def test_reports_on_the_command_line(service: LocalService, capsys: pytest.CaptureFixture[str]) -> None:
    """Streams, the state, what happens now and what was set aside are tables and lines."""
    _, out, _ = _ask(service, capsys, "streams")
    assert [line.split()[0] for line in out.splitlines()] == ["stream", "s", "board"]
    _, out, _ = _ask(service, capsys, "state")
    assert out.splitlines()[0].split() == ["branch", "kind", "shard", "held", "bytes", "waiting"]
    assert any(line.startswith("stream board") for line in out.splitlines())
    assert any(line.startswith("shard 0: ") for line in out.splitlines())
    _, out, _ = _ask(service, capsys, "now")
    assert out.startswith("ready, epoch ")
    assert _ask(service, capsys, "history", "nobody")[0] == 2


def test_evolution_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What an accent would do, and what it did, is told as of a site file; so are letters, in lines of JSON."""
    accent = '<s:accent><s:add path="q" type="decimal"/></s:accent>'
    with served(tmp_path) as service:
        service.add("1", "\x1b")
        service.site().subscribe(ALL, "mine")
        next(service.site().subscription("all").answers(follow=True))
        status, remote, _ = _ask(service, capsys, "accent", "s", accent, "--dry-run")
        assert status == main(["accent", str(service.file), "s", accent, "--dry-run"]) == 0
        local = capsys.readouterr().out
        assert remote.splitlines()[0] == local.splitlines()[0].replace("in/", f"{Path('in')}/") or remote
        assert _ask(service, capsys, "accent", "s", "<nonsense/>")[0] in (1, 2)
        status, out, err = _ask(service, capsys, "accent", "s", accent)
        assert (status, out) == (0, "")
        assert "published in " in err
        service.add(2)
        list(islice(service.site().subscription("all").answers(follow=True), 2))
        _, remote, _ = _ask(service, capsys, "history", "s")
        main(["history", str(service.file), "s"])
        assert remote == capsys.readouterr().out
        _, out, _ = _ask(service, capsys, "dead-letters")
        letters = [json.loads(line) for line in out.splitlines()]
        assert [each["stream"] for each in letters] == ["s"]
        assert "\x1b" not in out


def test_what_asking_a_service_loads(service: LocalService) -> None:
    """Neither help nor a command that asks a service loads an engine."""
    asked = f"""
import sys
from anabranch.cli import main
try:
    main(["--url", "{service.url}", "--help"])
except SystemExit:
    pass
assert main(["--url", "{service.url}", "streams"]) == 0
heavy = ("numba", "pyarrow", "pyspark", "numpy", "sqlglot", "starlette", "fastapi", "uvicorn", "anabranch.law")
print("loaded", *(name for name in heavy if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, env={**os.environ})
    assert done.stdout.splitlines()[-1] == "loaded", done.stderr
    assert "ANABRANCH_TOKEN" in done.stdout
