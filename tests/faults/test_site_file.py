"""A site's file that is found while it is being written, at whatever byte: what runs goes on, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest

from anabranch import run_control, running
from anabranch.cli import main
from anabranch.running import run
from anabranch.site import SiteDescription, read_site

PATIENCE = 60.0
ENGINE = """[engine]
checkpoint = "state"
log = "log.jsonl"
trigger_ms = 20

[streams.s]
path = "in"
format = "lines"
"""
TABLE = """
[subscriptions.{name}]
text = 'for $p in stream("s")/root/p return <{name}>{{ $p/text() }}</{name}>'
"""
NAMES = ("first", "second", "third")
WHOLE = ENGINE + "".join(TABLE.format(name=name) for name in NAMES)


@contextmanager
def at_work(site: Path) -> Iterator[None]:
    """A run of a site, in a thread of this process and without Spark; who reads the file is the same."""
    stop, failures = Event(), list[BaseException]()

    def work() -> None:
        try:
            run(site, stop=stop, local=True)
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert failures == []


def events(site: Path) -> list[dict[str, str]]:
    log = site.with_name("log.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def await_event(site: Path, kind: str, count: int = 1) -> None:
    until, pause = monotonic() + PATIENCE, Event()
    while sum(each["event"] == kind for each in events(site)) < count:
        assert monotonic() < until, events(site)
        pause.wait(0.01)


def append(site: Path, number: int) -> None:
    with (site.parent / "in").open("a") as file:
        file.write(f"<p>{number}</p>\n")


@pytest.mark.mass
def test_a_file_that_is_being_written_takes_nobody_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written piece by piece, also up to where it is a good file with fewer subscriptions: nobody is removed."""
    monkeypatch.setattr(run_control, "SETTLED_SECONDS", 1.0)  # a busy machine may take long between two pieces
    site = tmp_path / "SITE.toml"
    site.write_text(WHOLE)
    (tmp_path / "in").touch()
    with at_work(site):
        append(site, 1)
        await_event(site, "epoch")
        again = WHOLE.replace("<third>", '<third of="it">')
        pieces = [again[: len(ENGINE)], *again[len(ENGINE) :].partition("\n[subscriptions.third]")]
        with site.open("w") as file:  # empty from here on
            for piece in pieces:
                file.write(piece)
                file.flush()
                Event().wait(0.12)  # longer than a run takes to look again
        await_event(site, "subscription changed")
        append(site, 2)
        await_event(site, "epoch", count=2)
    assert [each for each in events(site) if each["event"] in ("refused", "subscription removed")] == []
    for name, answer in {"first": "<first>1</first><first>2</first>", "third": "<third of='it'>2</third>"}.items():
        assert main(["answer", str(site), name]) == 0
        assert capsys.readouterr().out == answer.replace("'", '"') + "\n"


@pytest.mark.mass
def test_a_file_that_stays_half_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cut off within a table, for good: the log says why it is not taken, and the subscriptions of before go on."""
    site = tmp_path / "SITE.toml"
    site.write_text(WHOLE)
    (tmp_path / "in").touch()
    with at_work(site):
        append(site, 1)
        await_event(site, "epoch")
        site.write_text(WHOLE[:-20])
        await_event(site, "refused")
        append(site, 2)
        await_event(site, "epoch", count=2)
    (refused,) = (each for each in events(site) if each["event"] == "refused")
    assert "SITE.toml" in refused["message"]
    site.write_text(WHOLE)
    for name in NAMES:
        assert main(["answer", str(site), name]) == 0
        assert capsys.readouterr().out == f"<{name}>1</{name}><{name}>2</{name}>\n"


def test_a_change_while_a_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written behind the reading of the file is a change like any other, whenever the run is ready to look."""
    site = tmp_path / "SITE.toml"

    def read_and_changed(file: Path) -> SiteDescription:
        found = read_site(file)
        site.write_text(WHOLE)
        return found

    monkeypatch.setattr(running, "read_site", read_and_changed)
    site.write_text(WHOLE.partition("\n[subscriptions.third]")[0])
    (tmp_path / "in").touch()
    with at_work(site):
        await_event(site, "subscription added")
