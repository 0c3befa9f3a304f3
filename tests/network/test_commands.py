"""`anabranch network`: what its commands print, and what a run does when its file changes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Any
from xml.etree import ElementTree

import pytest

import papers
from anabranch import network_run
from anabranch.cli import main
from anabranch.network.description import Network, read_network
from anabranch.peers.running import RunningNetwork
from anabranch.run_control import Log, Watch
from anabranch.spark.plan.wanted import Epoch
from anabranch.stream.photons import photons
from disk import on_disk
from peers.working import bare_network

NETWORK = """\
[network]
topology = "line"
peers = 3
checkpoint = "state"

[peers.P0]
at = "SP0"
[peers.P1]
at = "SP1"
[peers.P2]
at = "SP2"

[streams.photons]
at = "P0"
path = "in"
root = "photons"
format = "lines"
time = "det_time"
accents = false

[subscriptions.rxj]
at = "P1"
query = "rxj.xq"

[subscriptions.vela]
at = "P2"
query = "vela.xq"
"""
LINES = [f"{each}\n" for each in photons(240, 1)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A network with its files, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1").write_text("".join(LINES[:120]))
    (tmp_path / "vela.xq").write_text(papers.Q4)
    (tmp_path / "rxj.xq").write_text(papers.Q3)
    (tmp_path / "NETWORK.toml").write_text(NETWORK)
    return tmp_path / "NETWORK.toml"


def bare(
    network: Network, folder: Path, on_epoch: Callable[[str, Epoch], None] = lambda peer, epoch: None
) -> RunningNetwork:
    """Peers that run in this process."""
    return bare_network(network, folder, Random(1), (1 << 20,))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints."""
    assert main(["network", *arguments]) == 0
    return capsys.readouterr().out


def test_a_plan_as_text_and_as_data(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both name the same flows; --explain adds what was decided for each subscription, and why."""
    text = printed(capsys, "plan", "NETWORK.toml")
    assert text.startswith("widening: 2 subscriptions, 2 flows on links, ")
    data = json.loads(printed(capsys, "plan", "NETWORK.toml", "--json", "--explain"))
    assert [each["about"] for each in data["decisions"]] == ["rxj", "vela"]
    assert all(f": {each['name']}, " in text for each in data["flows"] if each["from"])
    told = printed(capsys, "plan", "NETWORK.toml", "--explain").splitlines()
    assert [line.split(":")[0] for line in told if " priced in " in line] == ["rxj", "vela"]
    assert any(line.startswith("  not, price ") for line in told)


def test_strategies_can_be_compared(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is asked for on the command line comes before what the file says."""
    first = [
        printed(capsys, "plan", "NETWORK.toml", "--strategy", each).split(" on links")[0]
        for each in ("shipping", "sharing")
    ]
    assert first == ["shipping: 2 subscriptions, 3 flows", "sharing: 2 subscriptions, 3 flows"]


@pytest.mark.mass
def test_a_network_that_has_run_shows_what_was_measured(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes per second are those of the links, over the time that the stream's own photons tell."""
    assert ", estimated" in printed(capsys, "show", "NETWORK.toml")
    network_run.run(file, once=True, opens=bare)
    shown = printed(capsys, "show", "NETWORK.toml", "--svg", "map.svg")
    assert shown.startswith("widening: 2 subscriptions, 2 flows on links, ")
    assert ", measured" in shown
    picture = "".join(ElementTree.fromstring(Path("map.svg").read_text()).itertext())
    assert "as measured" in picture
    assert "source of photons (P0)" in picture
    [sent] = [line for line in shown.splitlines() if line.startswith("SP0 - SP1: ")]
    size = sum(each.stat().st_size for each in Path("state/links").glob(f"{sent.split(': ')[1].split(',')[0]}/*/*"))
    seconds = float(LINES[119].split("<det_time>")[1].split("<")[0])
    assert float(sent.split(", ")[1].split(" ")[0]) == pytest.approx(size / seconds, rel=0.03)


@pytest.mark.mass
def test_a_network_says_what_it_waits_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What of a stream cannot be read yet is told by name, with a hint, in the log."""
    (stream,) = read_network(file).streams.values()
    path = on_disk(stream.source.path)
    where = path if path.is_file() else path / "last"
    with where.open("a") as lines:
        lines.write("<photon>")
    network_run.run(file, once=True, opens=bare)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (waiting,) = (each for each in told if each["event"] == "waiting")
    assert (waiting["stream"], waiting["message"]) == ("photons", f"the last line of '{where}' has no newline yet")
    assert told[-1]["event"] == "stopped"
    assert told[-1]["reason"] == "end"


def test_answers_of_a_run(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is the answer of the query over the whole stream, also what comes while the network runs."""
    with bare(read_network(file), Path("state")) as running:
        running.drain()
        Path("in/2").write_text("".join(LINES[120:]))
        running.drain()
    Path("all.xml").write_text(f"<photons>{''.join(LINES)}</photons>")
    for name in ("rxj", "vela"):
        main(["query", f"{name}.xq", "--stream", "photons=all.xml", "--engine", "reference"])
        expected = capsys.readouterr().out
        assert printed(capsys, "answer", "NETWORK.toml", name) == expected


def test_what_is_set_aside(file: Path) -> None:
    """A file gets it, the one that is named when the network is started or else the network's own."""
    Path("in/0").write_text("<photon><en>bad\n")
    file.write_text(NETWORK.replace("[peers.P0]", 'dead_letters = "dead.jsonl"\n\n[peers.P0]', 1))
    network_run.run(file, once=True, opens=bare)
    network_run.run(file, once=True, opens=bare, dead_letters=Path("other.jsonl"))
    letter = json.loads(Path("dead.jsonl").read_text())
    assert (letter["stream"], letter["partition"], letter["raw"]) == ("photons", "0", "<photon><en>bad")
    assert Path("other.jsonl").read_text() == Path("dead.jsonl").read_text()


WRONG = (
    ("run", "NETWORK.toml", ('checkpoint = "state"\n', ""), 2, "[network] lacks 'checkpoint'"),
    ("answer", "NETWORK.toml vela", ("", ""), 2, "the network of 'NETWORK.toml' has not run yet"),
    ("plan", "NETWORK.toml", ("vela.xq", "none.xq"), 2, "line 27, [subscriptions.vela]: cannot read"),
    ("plan", "NETWORK.toml", ("rxj.xq", "bad.xq"), 1, "bad.xq:1:5: "),
    ("run", "NETWORK.toml", ("rxj.xq", "nested.xq"), 1, "nested.xq:1:"),
    ("show", "NETWORK.toml --svg no/map.svg", ("", ""), 2, "cannot write 'no/map.svg'"),
    ("plan", "NETWORK.toml", ("streams.photons", "streams.protons"), 2, "hint: did you mean 'protons'?"),
)


@pytest.mark.parametrize(("command", "arguments", "change", "status", "message"), WRONG)
def test_what_is_wrong_is_told(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    arguments: str,
    change: tuple[str, str],
    status: int,
    message: str,
) -> None:
    """A message with the place and a hint, and nothing has begun."""
    Path("bad.xq").write_text("for in")
    Path("nested.xq").write_text("for $p in stream('photons')/photons/photon return count(stream('photons')//en)")
    file.write_text(NETWORK.replace(*change, 1))
    assert main(["network", command, *arguments.split()]) == status
    assert message in capsys.readouterr().err
    assert not Path("state").exists()


def test_peers_and_subscriptions_come_and_go(file: Path) -> None:
    """P2 leaves with its subscription, P3 comes with two; those that stay notice nothing."""
    network = read_network(file)
    lines = io.StringIO()
    log = Log(lines, None)
    with bare(network, Path("state")) as running:
        running.drain()
        watch = Watch([file])
        changed = (
            NETWORK.replace("[peers.P2]", "[peers.P3]")
            .replace('"P2"', '"P3"')
            .replace("[subscriptions.vela]", "[subscriptions.wide]")
        )
        file.write_text(changed + '[subscriptions.again]\nat = "P3"\nquery = "rxj.xq"\n')
        assert not watch.touched(), "it may not be written to its end yet"
        while not watch.touched():
            Event().wait(0.01)
        network = network_run._reload(file, watch, network, running, log)
        Path("in/2").write_text("".join(LINES[120:]))
        running.drain()
        answers = {name: running.answer(name) for name in ("rxj", "wide", "again")}
    events = [(each["event"], each["name"]) for each in map(json.loads, lines.getvalue().splitlines())]
    assert events == [
        ("peer left", "P2"),
        ("peer joined", "P3"),
        ("subscription added", "wide"),
        ("subscription added", "again"),
        ("subscription removed", "vela"),
    ]
    assert answers["rxj"].endswith(answers["again"].removeprefix("<photons>"))
    assert 0 < answers["again"].count("<rxj>") < answers["rxj"].count("<rxj>")
    assert answers["wide"].count("<vela>") > answers["again"].count("<rxj>")


def test_a_change_while_a_run_begins(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written behind the reading of the file is a change like any other, whenever the run is ready to look."""
    stop = Event()
    file.write_text(NETWORK.replace('"state"', '"state"\nlog = "log.jsonl"'))

    def read_and_changed(*given: Any) -> Network:
        found = read_network(*given)
        if "again" not in file.read_text():
            file.write_text(f'{file.read_text()}[subscriptions.again]\nat = "P2"\nquery = "rxj.xq"\n')
        return found

    def stop_when_added() -> None:
        patience = monotonic() + 60
        while "subscription added" not in Path("log.jsonl").read_text() and monotonic() < patience:
            Event().wait(0.05)
        stop.set()

    monkeypatch.setattr(network_run, "read_network", read_and_changed)
    Path("log.jsonl").touch()
    waiting = Thread(target=stop_when_added)
    waiting.start()
    network_run.run(file, stop=stop, opens=bare)
    waiting.join()
    events = [(each["event"], each.get("name")) for each in map(json.loads, Path("log.jsonl").read_text().splitlines())]
    assert ("subscription added", "again") in events


OTHERS = """
[streams.others]
at = "SP1"
path = "more"
root = "photons"
format = "lines"
time = "det_time"

[subscriptions.fresh]
at = "SP0"
query = "fresh.xq"
"""


def test_a_stream_comes_and_goes(file: Path) -> None:
    """A subscription that comes with it sees all of it; with its end it has had everything, and its answer stays."""
    Path("more").mkdir()
    Path("more/1").write_text("".join(LINES[:60]))
    Path("fresh.xq").write_text(papers.Q4.replace('"photons"', '"others"'))
    network = read_network(file)
    lines = io.StringIO()
    watch, log = Watch([file]), Log(lines, None)
    with bare(network, Path("state")) as running:
        running.drain()
        for text in (NETWORK + OTHERS, NETWORK):
            file.write_text(text)
            network = network_run._reload(file, watch, network, running, log)
            running.drain()
        fresh, vela = (running.answer(name).removesuffix("</photons>") for name in ("fresh", "vela"))
    assert vela.startswith(fresh)
    assert 5 < fresh.count("<vela>") < vela.count("<vela>")
    events = [(each["event"], each["name"]) for each in map(json.loads, lines.getvalue().splitlines())]
    came = [("stream added", "others"), ("subscription added", "fresh")]
    assert events == [*came, ("stream removed", "others"), ("subscription removed", "fresh")]


def test_a_wrong_version_changes_nothing(file: Path) -> None:
    """It is reported, and the old one stays, whole."""
    network = read_network(file)
    lines = io.StringIO()
    with bare(network, Path("state")) as running:
        before = running.catalogue
        for text in ("[network", NETWORK.replace("rxj.xq", "none.xq"), NETWORK.replace('path = "in"', 'path = "."')):
            file.write_text(text)
            assert network_run._reload(file, Watch([file]), network, running, Log(lines, None)) is network
        assert running.catalogue is before
    assert [json.loads(line)["event"] for line in lines.getvalue().splitlines()] == ["refused"] * 3
