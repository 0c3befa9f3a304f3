"""Killed while programs push into it, a run has every item that was acknowledged, once and in the order of acceptance.

Several programs send requests of some items all the time, most of them under a key, and repeat those until they are
acknowledged; the others are sent once, whatever comes of it.
Meanwhile the run is killed again and again: at random moments, and around the very write that makes requests durable.
In an object store each run begins on an empty disk, and some take over from one that is still at work; programs go on
to send to both.
The judge is what the programs were told: where in the stream each of their requests is.
"""

from __future__ import annotations

import faulthandler
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from threading import Event, Lock, Thread
from time import monotonic, sleep

import pytest

from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.crash import SPOOL_POINTS
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.storage import Location
from endpoint.client import LINES, ask
from faults import pushed_engine
from faults.harness import await_end
from mass import Mass
from s3 import S3Server

PATIENCE = 180.0
SENDERS = 5
SITE = """
[engine]
checkpoint = "state"
trigger_ms = 50
epoch_bytes = 2000

[streams.s]
source = "http"

"""


@dataclass(frozen=True)
class Sent:
    """A request: its items, whether it may be repeated, and where it was said to be, if it was acknowledged."""

    ids: tuple[str, ...]
    start: int | None
    is_keyed: bool


@dataclass
class Programs:
    """What the programs have sent; they share it."""

    checkpoint: Location
    seed: int
    sent: list[Sent] = field(default_factory=list)
    repeated: int = 0
    """How often a request was acknowledged that had been taken before."""
    failures: list[str] = field(default_factory=list)
    stop: Event = field(default_factory=Event)
    addresses: list[str] = field(default_factory=list)
    """Of all runs, in order; programs may not have heard of the latest."""
    _lock: Lock = field(default_factory=Lock)

    def start(self) -> list[Thread]:
        threads = [Thread(target=self._work, args=(number,), daemon=True) for number in range(SENDERS)]
        for each in threads:
            each.start()
        return threads

    @property
    def acknowledged(self) -> int:
        with self._lock:
            return sum(each.start is not None for each in self.sent)

    def _work(self, sender: int) -> None:
        random = Random(f"{self.seed} {sender}")
        numbers = count()
        try:
            while not self.stop.is_set():
                ids = tuple(f"{sender}.{next(numbers)}" for _ in range(random.choice((1, 1, 3, 20))))
                key = f"{sender}-{ids[0]}" if random.random() < 0.8 else None
                start = self._send(ids, key, random)
                with self._lock:
                    self.sent.append(Sent(ids, start, key is not None))
        except Exception as error:
            self.failures.append(f"sender {sender}: {type(error).__name__}: {error}")

    def _send(self, ids: Sequence[str], key: str | None, random: Random) -> int | None:
        """Send a request, with a key until it is acknowledged; gives its place, if that is known."""
        records = [f'{{"id": "{each}", "n": {each.partition(".")[2]}}}' for each in ids]
        array = len(ids) > 1 and key is not None
        body, kind = (f"[{', '.join(records)}]", "application/json") if array else ("\n".join(records), LINES)
        headers = {} if key is None else {"Idempotency-Key": key}
        patience = monotonic() + PATIENCE
        while True:
            assert monotonic() < patience, "nobody takes anything"
            address = self._address(random)
            if address is None:
                sleep(0.01)
                continue
            try:
                found = ask(f"{address}/streams/s", body, kind, **headers)
            except (OSError, http.client.HTTPException):
                if key is None:
                    return None
                sleep(0.01)
                continue
            if found.status == 200:
                self.repeated += found.content["repeated"]
                return int(found.content["start"])
            assert found.status in (429, 503), found
            sleep(0.01)

    def _address(self, random: Random) -> str | None:
        """Where to send a request: to the run at work, and sometimes to the one before it."""
        address = endpoint_of(self.checkpoint)
        with self._lock:
            if address is not None and address not in self.addresses:
                self.addresses.append(address)
            return random.choice(self.addresses[-2:]) if random.random() < 0.4 and self.addresses else address


def endpoint_of(checkpoint: Location) -> str | None:
    """Where the run listens, or has listened last."""
    return _record(checkpoint, "endpoint").get("address")


def _record(checkpoint: Location, name: str) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((checkpoint / f"{name}.json").read().split(b"\n")[0])
    except FileNotFoundError:
        return {}
    return found


@dataclass
class Victim:
    """A run that is started and killed by its process group."""

    folder: Path
    checkpoint: Location
    command: Sequence[str | Path]
    process: subprocess.Popen[bytes] | None = None

    def start(self, crash: str = "") -> None:
        """Start it with an empty folder for temporary files; with `crash` it kills itself at a point."""
        scratch = mkdtemp(dir=self.folder)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                list(self.command),
                env={**os.environ, "ANABRANCH_CRASH": crash, "TMPDIR": scratch},
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def watch(self, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait for something; False if it ended before."""
        assert self.process is not None
        patience = monotonic() + PATIENCE
        while self.process.poll() is None:
            if until():
                return True
            assert monotonic() < patience, self.story("it hangs")
            sleep(0.005)
        return False

    def kill(self) -> None:
        """Kill it, and what it has started."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def overtake(self) -> None:
        """Start another one beside it, which takes over; the first ends by itself."""
        first = self.process
        assert first is not None
        self.start()
        assert first.wait(PATIENCE) == 1, self.story("the first has not failed")
        assert "has taken over the checkpoint" in (self.folder / "log").read_text(), self.story("it failed otherwise")

    def end(self) -> None:
        """Let it end by itself."""
        assert self.process is not None
        self.process.terminate()
        assert not self.watch(), self.story("it goes on")
        assert self.process.returncode == 0, self.story("it failed")

    def story(self, message: str) -> str:
        return f"{message}; the log ends with\n{(self.folder / 'log').read_text(errors='replace')[-3_000:]}"


def chain(victim: Victim, kills: int, seed: int, *, moves: bool = False) -> Programs:
    """Kill a run again and again while programs push, then let it read all there is.

    With `moves`, every other run that is killed at any moment has taken over from one at work.
    """
    random, programs = Random(seed), Programs(victim.checkpoint, seed)
    threads = programs.start()
    begun, written = SPOOL_POINTS
    points = ("", written, "", begun, "", "")
    for number in range(kills):
        crash = points[number % len(points)]
        before, wanted = programs.acknowledged, random.choice((1, 10, 60))
        victim.start(crash)
        if crash:
            assert not victim.watch(lambda: bool(programs.failures)), programs.failures
            assert victim.process is not None
            assert victim.process.returncode == -signal.SIGKILL, victim.story("it was not killed")
            continue
        due = before + wanted
        enough = victim.watch(lambda due=due: programs.acknowledged >= due or bool(programs.failures))  # type: ignore[misc]
        assert programs.failures == []
        assert enough, victim.story("it ended before it was killed")
        if moves and number % 4 == 0:
            victim.overtake()
        victim.kill()
    victim.start()
    before = programs.acknowledged
    assert victim.watch(lambda: programs.acknowledged >= before + 30), victim.story("it has ended")
    programs.stop.set()
    for each in threads:
        each.join(PATIENCE)
    assert programs.failures == []
    assert victim.watch(lambda: ask(f"{endpoint_of(victim.checkpoint)}/streams/s").content["behind"] == 0)
    victim.end()
    return programs


def check(programs: Programs) -> None:
    """Compare the answers with what the programs were told."""
    log = AnswerLog(Checkpoint.open(programs.checkpoint))

    def answer(name: str) -> list[dict[str, object]]:
        found = log.subscription(name)
        assert found is not None
        return [json.loads(line) for line in log.answer(found).text().splitlines()]

    ids = [str(each["id"]) for each in answer("all")]
    assert len(ids) == len(set(ids)), "nothing comes twice"
    told = sorted((each.start, each.ids) for each in programs.sent if each.start is not None)
    acknowledged = [each for _, group in told for each in group]
    known = set(acknowledged)
    assert [each for each in ids if each in known] == acknowledged, "all of it is there, where it was said to be"
    assert all(each.start is not None for each in programs.sent if each.is_keyed)
    places = {each: number for number, each in enumerate(ids)}
    for each in programs.sent:
        if each.start is None and each.ids[0] in places:
            first = places[each.ids[0]]
            assert ids[first : first + len(each.ids)] == list(each.ids), "a request is taken as a whole"
    sent = {each for request in programs.sent for each in request.ids}
    assert set(ids) <= sent
    assert answer("pairs") == [
        {"first": first, "second": second} for first, second in zip(ids[::2], ids[1::2], strict=False)
    ]
    numbers = [int(each.partition(".")[2]) for each in ids]
    fives = [sum(numbers[at : at + 5]) for at in range(0, len(numbers) - 4, 5)]
    assert [each["sum"] for each in answer("sums")] == fives


def test_no_kill_shows_in_what_was_pushed(mass: Mass, tmp_path: Path) -> None:
    """Without Spark: many kills, most of them at any moment, the others right before and behind a durable write."""
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    programs = chain(_engine(tmp_path, Location.of(tmp_path / "state")), mass.amount(100, budget=3), mass.seed)
    check(programs)
    assert programs.repeated > 0, "some were taken, and their senders were not told"


def _engine(folder: Path, checkpoint: Location) -> Victim:
    size = 2_000 if checkpoint.path else 100_000  # an epoch costs more in a store, and has to keep up with the programs
    return Victim(folder, checkpoint, [sys.executable, pushed_engine.__file__, str(checkpoint), str(size)])


def test_no_move_shows_in_what_was_pushed(mass: Mass, tmp_path: Path) -> None:
    """Objects on a disk: runs that have nothing but the checkpoint, after a kill or while another is at work."""
    faulthandler.cancel_dump_traceback_later()
    checkpoint = Location.of(f"file+object://{tmp_path}/state")
    check(chain(_engine(tmp_path, checkpoint), mass.amount(50, budget=3), mass.seed, moves=True))


@pytest.mark.s3
def test_no_move_shows_in_s3(s3_server: S3Server, tmp_path: Path) -> None:
    """The same with a real server."""
    faulthandler.cancel_dump_traceback_later()
    checkpoint = s3_server.folder(tmp_path.name) / "state"
    programs = chain(_engine(tmp_path, checkpoint), 9, 4711, moves=True)
    check(programs)
    assert programs.repeated > 0, "some were taken, and their senders were not told"


@pytest.mark.kills
@pytest.mark.spark
def test_no_kill_shows_in_what_was_pushed_into_spark(mass: Mass, tmp_path: Path) -> None:
    """A site at work, with its JVM."""
    faulthandler.cancel_dump_traceback_later()
    text = SITE
    for name, query in pushed_engine.QUERIES.items():
        (tmp_path / f"{name}.xq").write_text(query)
        text += f'[subscriptions.{name}]\nquery = "{name}.xq"\n'
    (tmp_path / "site.toml").write_text(text)
    command: list[str | Path] = [Path(sys.executable).with_name("anabranch"), "run", tmp_path / "site.toml"]
    victim = Victim(tmp_path, Location.of(tmp_path / "state"), command)
    programs = chain(victim, mass.amount(25, budget=2), mass.seed)
    check(programs)
    await_end(int(_record(victim.checkpoint, "run")["jvm"]))
