"""Super-peers in processes of their own, with topics or a folder between them: whoever is killed, answers are those of
one engine.

The network is that of docs/network.md, with a super-peer more; each process has a folder of its own, as on a machine of
its own.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from threading import Event
from time import monotonic

import pytest

from anabranch.network_run import committed
from anabranch.spark.checkpoint import durable
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons_dtd
from anabranch.stream.reading.source import Source
from brokers import Broker, started, stop
from mass import Mass
from network.making import SCHEMA
from peers.test_running import WINDOW, photon_items
from peers.working import Alone, GrowingStream
from test_docs import TOP, blocks

PATIENCE = 180.0
PORTION = 300
"""The photons that come before each kill: good for some epochs of each peer."""
KILLS = ("reader", "broker", "maker", "both", "broker and reader")
TOPICS = """link = "kafka"
topics = "telescopes"           # what the names of the topics begin with

[kafka]                         # settings and secrets as in a site
brokers = "127.0.0.1:9092"
"""
_NEW_FILES = 30
"""The most files that a process makes before somebody is killed."""


@dataclass
class PartProcess:
    """A process with some super-peers, in a folder of its own."""

    folder: Path
    peers: tuple[str, ...]
    program: tuple[str | Path, ...] = ()
    """What runs them, where it is not the command: it takes the description and their names."""
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def is_started(self) -> bool:
        """Whether it ever ran."""
        return hasattr(self, "process")

    @property
    def file(self) -> Path:
        return self.folder / "PARTS.toml"

    def start(self, **settings: str) -> None:
        """Start it, in a process group of its own, with some variables of the environment."""
        named = [each for peer in self.peers for each in ("--peer", peer)]
        command: tuple[str | Path, ...] = (*self.program, self.file, *self.peers)
        if not self.program:
            command = (Path(sys.executable).with_name("anabranch"), "network", "run", self.file, *named)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **settings},
            )

    def kill(self) -> None:
        """End it at once; its JVM, which has a group of its own, ends with it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.story()

    def files(self) -> set[str]:
        """The files that come and go with its epochs and links."""
        found = (Path(folder, name) for folder, _, names in os.walk(self.folder / "state") for name in names)
        return {str(each) for each in found if each.suffix in (".json", ".xml")}

    def answer(self, name: str) -> str:
        return "".join(committed(self.file, name)) if (self.folder / "state/plan.json").exists() else ""

    def planned(self) -> set[str]:
        """The subscriptions of its plan, if it is in force."""
        path = self.folder / "state/plan.json"
        found = durable.unsealed(path) if path.exists() else {"before": None, "now": {"subscriptions": []}}
        return set() if found["before"] is not None else {each[0] for each in found["now"]["subscriptions"]}

    def describe(self, text: str, queries: Mapping[str, str]) -> None:
        """Replace its description, as an editor does that saves a file whole."""
        for name, query in queries.items():
            (self.folder / f"{name}.xq").write_text(query)
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.file)

    def story(self) -> str:
        return f"the log of {self.peers} ends with\n{(self.folder / 'log').read_text(errors='replace')[-3000:]}"


def until(holds: Callable[[], bool], *running: PartProcess) -> None:
    """Wait until something holds; a process that has ended, or nothing that comes any more, is a failure."""
    patience, never = monotonic() + PATIENCE, Event()
    while not holds():
        for each in running:
            assert each.process.poll() is None, each.story()
        assert monotonic() < patience, "\n".join(each.story() for each in running)
        never.wait(0.05)


def laid_out(folder: Path, broker: Broker | None) -> tuple[PartProcess, PartProcess, dict[str, tuple[str, str]]]:
    """The network of the page, with a super-peer more and a window there; its processes, and what is asked where.

    Without a broker there is a folder between them.
    """
    page = [each.text for each in blocks(TOP / "docs/network.md")]
    (text,) = (each for each in page if each.startswith("# PARTS.toml"))
    (query,) = (each.partition("\n")[2] for each in page if each.startswith("(: hot.xq :)"))
    assert TOPICS in text, "the page has changed"
    way = f'link = "folder"\nfolder = "{folder / "between"}"\n'
    if broker is not None:
        way = TOPICS.replace("127.0.0.1:9092", broker.address)
    text = text.replace(TOPICS, way).replace("peers = 2", "peers = 3\nepoch_bytes = 4000")
    text += '\n[subscriptions.windows]\nat = "SP2"\nquery = "windows.xq"\n'
    parts = PartProcess(folder / "maker", ("SP0",)), PartProcess(folder / "reader", ("SP1", "SP2"))
    for each in parts:
        each.folder.mkdir()
        each.file.write_text(text)
        (each.folder / "photons.dtd").write_text(photons_dtd())
        (each.folder / "hot.xq").write_text(query)
        (each.folder / "windows.xq").write_text(WINDOW)
    return *parts, {"hot": (query, "SP1"), "windows": (WINDOW, "SP2")}


def subscribed(text: str, names: Iterable[str]) -> str:
    """A description with further subscriptions, each with a file of its name."""
    return text + "".join(f'\n[subscriptions.{name}]\nat = "SP{name[-1]}"\nquery = "{name}.xq"\n' for name in names)


def is_stretch(results: list[str], every: list[str]) -> bool:
    """Whether results are those of a stretch of a stream: none is missing in it, and none is there twice."""
    return any(every[start : start + len(results)] == results for start in range(len(every) + 1))


@pytest.mark.kills
@pytest.mark.spark
def test_no_kill_shows_in_a_change(mass: Mass, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Subscriptions come and go while a stream grows and processes are killed, over a folder.

    Who was there before gets every answer; who comes gets all from some place on, and who goes all up to some place.
    """
    faulthandler.cancel_dump_traceback_later()
    count, rng = mass.amount(10, budget=2), Random(mass.seed)
    maker, reader, asked = laid_out(tmp_path, None)
    text, queries = maker.file.read_text(), {name: query for name, (query, _) in asked.items()}
    grown = GrowingStream(maker.folder / "in", photon_items(PORTION * (2 * count + 1), mass.seed))
    source = Source("photons", maker.folder / "in", "lines", SCHEMA, time=ItemPath.parse("det_time"))
    alone = Alone(tmp_path / "alone", [source], rng)
    alone.queries = dict(queries)
    kills: Counter[str] = Counter()
    present: list[str] = []
    gone: list[str] = []
    try:
        maker.start()
        reader.start()
        for number in range(count):
            grown.grow(PORTION)
            before = maker.files() | reader.files()
            if present and rng.random() < 0.4:
                gone.append(present.pop(rng.randrange(len(present))))
            name = f"c{number}at{rng.choice((0, 1, 2))}"
            present.append(name)
            for part in (maker, reader):
                part.describe(subscribed(text, present), {name: queries["hot"]})
            new = rng.randrange(1, _NEW_FILES)
            until(lambda known=before, new=new: len((maker.files() | reader.files()) - known) >= new, maker, reader)  # type: ignore[misc]
            kill = rng.choice(("maker", "reader", "both"))
            for part in (maker, reader):
                if kill in ("both", "maker" if part is maker else "reader"):
                    part.kill()
                    part.start()
            kills[kill] += 1
            until(lambda name=name: name in maker.planned() and name in reader.planned(), maker, reader)  # type: ignore[misc]
            grown.grow(PORTION)
        grown.grow(PORTION)
        alone.drain()
        for name in queries:
            until(lambda asked=name: reader.answer(asked) == alone.answer(asked), maker, reader)  # type: ignore[misc]
        every = re.findall("<p>.*?</p>", alone.answer("hot"))
        answered = {name: maker if name.endswith("0") else reader for name in (*present, *gone)}
        for name in present:
            until(lambda name=name: answered[name].answer(name).endswith(f"{every[-1]}</hot>"), maker, reader)  # type: ignore[misc]
        maker.stop()
        reader.stop()
        for name, part in answered.items():
            results = re.findall("<p>.*?</p>", part.answer(name))
            assert is_stretch(results, every), name
            assert name in gone or every[-len(results) :] == results, name
    finally:
        for part in (maker, reader):
            if part.process.poll() is None:
                part.kill()
    with capsys.disabled():
        print(f"\nwhile {count} subscriptions came and {len(gone)} went: {kills.total()} kills, no difference")


@pytest.mark.kills
@pytest.mark.spark
@pytest.mark.parametrize("way", ["topics", "folder"])
def test_no_kill_shows_in_an_answer(way: str, mass: Mass, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Processes and the broker between them are killed at any moment; answers are those of one engine, to the byte."""
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    count, rng = mass.amount(10, budget=1), Random(mass.seed)
    broker = started(tmp_path / "broker") if way == "topics" else None
    kinds = [each for each in KILLS if broker is not None or "broker" not in each]
    kills: Counter[str] = Counter()
    maker, reader, asked = laid_out(tmp_path, broker)
    grown = GrowingStream(maker.folder / "in", photon_items(PORTION * (count + 1), mass.seed))
    source = Source("photons", maker.folder / "in", "lines", SCHEMA, time=ItemPath.parse("det_time"))
    alone = Alone(tmp_path / "alone", [source], rng)
    alone.queries = {name: text for name, (text, _) in asked.items()}
    try:
        maker.start()
        reader.start()
        for kill in islice(cycle(rng.sample(kinds, len(kinds))), count):
            grown.grow(PORTION)
            before, new = maker.files() | reader.files(), rng.randrange(1, _NEW_FILES)
            until(lambda known=before, new=new: len((maker.files() | reader.files()) - known) >= new, maker, reader)  # type: ignore[misc]
            if broker is not None and "broker" in kill:
                broker.kill()
            for part in (maker, reader):
                if kill == "both" or kill.endswith("maker" if part is maker else "reader"):
                    part.kill()
                    part.start()
            if broker is not None and "broker" in kill:
                started(broker.folder)
            kills[kill] += 1
        grown.grow(PORTION)
        alone.drain()
        for name in asked:
            until(lambda asked=name: reader.answer(asked) == alone.answer(asked), maker, reader)  # type: ignore[misc]
        maker.stop()
        reader.stop()
        for name in asked:
            assert reader.answer(name) == alone.answer(name), "nothing came behind the end"
    finally:
        for part in (maker, reader):
            if part.process.poll() is None:
                part.kill()
        if broker is not None:
            stop(broker.folder)
    with capsys.disabled():
        items = alone.answer("hot").count("<p>")
        print(f"\nbetween peers, by {way}: {kills.total()} kills, {items} results, no difference")
        print("\n".join(f"  {number:3} {kind}" for kind, number in sorted(kills.items())))
