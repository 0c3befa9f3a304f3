"""The site of the soak and the network beside it, as files, and what lets their streams grow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic

from soak.crowd import ALWAYS
from soak.streams import RATES, SLACK, STREAMS_TOML, GrowingStream

ANABRANCH = Path(sys.executable).with_name("anabranch")
PONG = 'for $p in stream("pings")/pings/ping return <pong>{ $p/n }</pong>'
_TICK = 0.5
"""Seconds between two moments at which lines come."""
_SITE = """
[engine]
checkpoint = "state"
log = "log.jsonl"
dead_letters = "dead.jsonl"
late = "late.jsonl"
keep = 100
"""
_NETWORK = f"""
[network]
topology = "line"
peers = 3
checkpoint = "state"
log = "log.jsonl"

[streams.photons]
at = "SP0"
path = "../in/photons"
format = "lines"
root = "photons"
time = "det_time"
slack = {SLACK}
accents = false
"""
NETWORK_QUERIES = {
    "bright": ("SP2", 'for $p in stream("photons")/photons/photon where $p/en >= 2 return <b>{ $p/n, $p/en }</b>'),
    "soft": ("SP1", 'for $p in stream("photons")/photons/photon where $p/en < 0.12 return <s>{ $p/n, $p/phc }</s>'),
    "means": (
        "SP2",
        'for $w in stream("photons")/photons/photon[en >= 1]|det_time diff 60 step 20| return <m>{ avg($w/en) }</m>',
    ),
}
"""By subscription of the network, the super-peer at which it is asked, and its query."""


def write_site(folder: Path) -> Path:
    """Write SITE.toml and the queries that are there from the start."""
    text = _SITE + STREAMS_TOML
    for name, query in {**ALWAYS, "pong": PONG}.items():
        (folder / f"{name}.xq").write_text(query)
        text += f'\n[subscriptions.{name}]\nquery = "{name}.xq"\n'
    (folder / "SITE.toml").write_text(text)
    return folder / "SITE.toml"


def write_network(folder: Path) -> Path:
    """Write NETWORK.toml, whose stream is the site's, and its queries."""
    folder.mkdir()
    text = _NETWORK
    for name, (peer, query) in NETWORK_QUERIES.items():
        (folder / f"{name}.xq").write_text(query)
        text += f'\n[subscriptions.{name}]\nat = "{peer}"\nquery = "{name}.xq"\n'
    (folder / "NETWORK.toml").write_text(text)
    return folder / "NETWORK.toml"


@dataclass
class NetworkAtWork:
    """`anabranch network run`, which is killed and started again, too."""

    file: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        with (self.file.parent / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [ANABRANCH, "network", "run", self.file, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def is_at_work(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill it; its JVM ends with it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Let it end, and read what it has not read yet."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(_PATIENCE) == 0, self.story()
        self.start("--once")
        assert self.process.wait(_PATIENCE) == 0, self.story()

    def answers(self) -> dict[str, str]:
        """What its subscriptions were answered."""
        found = {}
        for name in NETWORK_QUERIES:
            command = [str(ANABRANCH), "network", "answer", str(self.file), name]
            found[name] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return found

    def story(self) -> str:
        return (self.file.parent / "output").read_text(errors="replace")[-4_000:]


_PATIENCE = 600.0


@dataclass
class Feeder:
    """Lets the lines of all streams come, at their rates, until it is stopped."""

    streams: Mapping[str, GrowingStream]
    stop: Event = field(default_factory=Event)
    written: dict[int, float] = field(default_factory=dict)
    """By number of a ping, when it was there."""
    lock: Lock = field(default_factory=Lock)
    """Held while lines are written."""

    def __post_init__(self) -> None:
        self._thread = Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Let no more come but what closes all windows."""
        self.stop.set()
        self._thread.join()
        for each in self.streams.values():
            each.close()

    def _work(self) -> None:
        ticks = 0
        began = monotonic()
        while not self.stop.wait(max(0.0, began + ticks * _TICK - monotonic())):
            ticks += 1
            with self.lock:
                for name, stream in self.streams.items():
                    due = int(ticks * _TICK * RATES[name]) - int((ticks - 1) * _TICK * RATES[name])
                    if due:
                        number = len(stream.lines)
                        stream.grow(due)
                        if name == "pings":
                            self.written |= dict.fromkeys(range(number, number + due), monotonic())
