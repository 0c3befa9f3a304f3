"""The session that docs/http.md shows is run, against a site at work on Spark; the curl commands by curl itself.

`ANABRANCH_REWRITE_DOCS=1 pytest tests/endpoint/test_page.py` writes what came out into the page.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest
from pyspark.sql import SparkSession

from anabranch.cli import main
from anabranch.running import run
from endpoint.client import ask
from test_docs import TOP, blocks, show

PAGE = TOP / "docs/http.md"
SHOWN = "127.0.0.1:8321"
PATIENCE = 60.0


class Visitor:
    """Who follows the page, while its site is at work."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        (found,) = self.events("listening")
        self.address = re.sub("http://|/streams/orders", "", found["streams"]["orders"])

    def events(self, kind: str) -> list[dict[str, dict[str, str]]]:
        """What the log has told, as soon as it has."""
        deadline = monotonic() + PATIENCE
        while monotonic() < deadline:
            log = self._folder / "log"
            told = [json.loads(each) for each in log.read_text().splitlines()] if log.exists() else []
            if found := [each for each in told if each["event"] == kind]:
                return found
            Event().wait(0.02)
        raise AssertionError(f"the log tells nothing of '{kind}'")

    def lines(self, command: str) -> list[str]:
        """What a command prints, when all that was sent is read."""
        await_read(f"http://{self.address}/streams/orders")
        if command.startswith("anabranch "):
            assert main(shlex.split(command)[1:]) == 0
            return self._capsys.readouterr().out.splitlines()
        words = shlex.split(command.replace(SHOWN, self.address))
        return _curl(words).replace(self.address, SHOWN).splitlines()


def await_read(url: str) -> None:
    """Wait until a stream is read to its end."""
    while ask(url).content["behind"]:
        Event().wait(0.02)


def _curl(words: list[str]) -> str:
    """What curl prints; without it, what it would."""
    if shutil.which(words[0]):
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    url, *rest = [each for each in words[1:] if each != "-s"]
    options = list(zip(rest[::2], rest[1::2], strict=True))
    headers = dict(value.split(": ") for name, value in options if name == "-H")
    found = ask(url, next((value for name, value in options if name == "-d"), None), **headers)
    return json.dumps(found.content, separators=(",", ":"))


def test_the_session_of_the_page(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Items are sent, once and again, one by one and together; each answer is the one on the page, to the byte."""
    monkeypatch.chdir(tmp_path)
    page = list(blocks(PAGE))
    for block in page:
        if "file" in block.options:
            (tmp_path / block.options["file"]).write_text(f"{block.text}\n")
    site = (tmp_path / "SITE.toml").read_text()
    assert f'listen = "{SHOWN}"' in site
    changed = site.replace(SHOWN, "127.0.0.1:0").replace("[engine]", '[engine]\nlog = "log"\ntrigger_ms = 20')
    (tmp_path / "SITE.toml").write_text(changed)
    stop = Event()
    thread = Thread(target=run, args=(tmp_path / "SITE.toml",), kwargs={"stop": stop})
    thread.start()
    try:
        visitor = Visitor(tmp_path, capsys)
        shown = [each for each in page if each.kind == "console"]
        assert len(shown) == 5
        for block in shown:
            commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
            show(block, "\n".join(line for each in commands for line in (each, *visitor.lines(each[2:]))))
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    with pytest.raises(ConnectionError):
        ask(f"http://{visitor.address}/streams/orders")


def test_streams_come_and_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The endpoint opens with the first stream that is pushed, whenever the site gets it; what was removed is unknown.

    `--once` reads what was accepted, and does not listen.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    head = '[engine]\ncheckpoint = "state"\nlog = "log"\ntrigger_ms = 20\n'
    files = '[streams.f]\npath = "in"\nformat = "lines"\n'
    orders = '[streams.orders]\nsource = "http"\n'
    asked = '[subscriptions.q]\nquery = "q.xq"\n'
    (tmp_path / "q.xq").write_text('for $o in stream("orders") return { "n": $o.n }')
    site = tmp_path / "SITE.toml"
    site.write_text(head + files)
    stop = Event()
    thread = Thread(target=run, args=(site,), kwargs={"stop": stop})
    thread.start()

    def events(kind: str, count: int) -> list[dict[str, object]]:
        deadline = monotonic() + PATIENCE
        while monotonic() < deadline:
            log = tmp_path / "log"
            told = [json.loads(each) for each in log.read_text().splitlines()] if log.exists() else []
            found = [each for each in told if each["event"] == kind]
            if len(found) >= count:
                return found
            Event().wait(0.02)
        raise AssertionError(f"the log has no {count} '{kind}': {told}")

    try:
        events("started", 1)
        site.write_text(head + files + orders + '[http]\nlisten = "nowhere"\n')
        assert "'listen' takes an address and a port" in str(events("refused", 1)[0]["message"])
        site.write_text(head + files + orders + asked)
        url = str(dict(events("listening", 1)[0]["streams"])["orders"])  # type: ignore[call-overload]
        assert ask(url, '{"n": 1}').status == 200
        await_read(url)
        site.write_text(head + files + orders.replace("orders", "sales"))
        sales = str(dict(events("listening", 2)[1]["streams"])["sales"])  # type: ignore[call-overload]
        assert sales == url.replace("orders", "sales"), "it is the same endpoint"
        assert ask(sales, '{"n": 1}').status == 200
        await_read(sales)  # in an epoch without the subscription, which ends
        assert ask(url, '{"n": 2}').status == 404
        site.write_text(head + files + orders + asked)
        events("listening", 3)
        assert ask(url, '{"n": 3}').content["start"] == 9
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    run(site, once=True)
    assert len(events("listening", 3)) == 3
    assert main(["answer", str(site), "q"]) == 0
    assert capsys.readouterr().out == '{"n": 3}\n'
