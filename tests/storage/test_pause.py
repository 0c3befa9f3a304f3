"""A run that is stopped in its tracks, as by a machine that hangs, while another goes on with its checkpoint.

Real processes on Spark, and nothing that the operating system would not do: SIGSTOP, and later SIGCONT.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest

from anabranch.spark.checkpoint import durable, runs
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.storage import Location
from s3 import S3Server

PATIENCE = 240.0
SITE = """
[engine]
checkpoint = "{store}/state"
trigger_ms = 50

[streams.s]
path = "{store}/in"
format = "lines"
root = "root"

[subscriptions.threes]
query = "{store}/threes.xq"
sink = "files"
path = "{store}/out/threes.xml"
"""
QUERY = '<r>{ for $w in stream("s")/root/p |count 3 step 2| return <w>{ $w }</w> }</r>'


@pytest.fixture(params=["objects on a disk", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A folder in an object store."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        return server.folder(tmp_path.name)
    return Location.of(f"file+object://{tmp_path}/store")


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """Runs of one site, all of which is in an object store but for the site file."""

    folder: Path
    store: Location

    def feed(self, start: int, end: int) -> None:
        lines = "".join(f"<p>{number}</p>\n" for number in range(start, end))
        (self.store / "in" / f"{start:03}").put(lines.encode())

    def start(self, name: str, *more: str) -> subprocess.Popen[bytes]:
        """Start `anabranch run` with a local disk of its own, which is empty."""
        (self.folder / name).mkdir()
        command = [str(Path(sys.executable).with_name("anabranch")), "run", str(self.folder / "SITE.toml"), *more]
        with (self.folder / name / "log").open("wb") as log:
            environment = {**os.environ, "TMPDIR": str(self.folder / name)}
            return subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def log(self, name: str) -> str:
        return (self.folder / name / "log").read_text(errors="replace")

    def published(self) -> list[tuple[int, int]]:
        """The epochs so far, each as the run that published it, and the number of its items."""
        checkpoint = Checkpoint.at(self.store / "state")
        if not checkpoint.is_made():
            return []
        return [(each.run, each.items) for each in Manifests(checkpoint.manifests).since(0)]

    def items(self) -> int:
        return sum(items for _, items in self.published())

    def delivered(self) -> str:
        parts = self.store / "out" / "threes.xml"
        return "".join((parts / name).read().decode() for name in parts.names(below=True))


def due(end: int) -> str:
    """What the sink holds after the numbers up to `end`, by hand."""
    items = [f"<p>{number}</p>" for number in range(end)]
    return "<r>" + "".join(f"<w>{''.join(items[at : at + 3])}</w>" for at in range(0, end - 2, 2))


def until(true: Callable[[], bool], what: str) -> None:
    patience = monotonic() + PATIENCE
    while not true():
        assert monotonic() < patience, what
        sleep(0.05)


@pytest.mark.kills
@pytest.mark.spark
def test_a_run_that_was_stopped_is_told_and_publishes_nothing(tmp_path: Path, store: Location) -> None:
    """Another run, with nothing but the bucket, goes on where it was; when it wakes up with input at hand, it ends."""
    faulthandler.cancel_dump_traceback_later()  # other processes, each with its own limit
    (store / "threes.xq").put(QUERY.encode())
    (tmp_path / "SITE.toml").write_text(SITE.format(store=store))
    site = StoredRuns(tmp_path, store)
    site.feed(0, 10)
    first = site.start("first")
    jvm = 0
    try:
        until(lambda: site.items() == 10 or first.poll() is not None, "the first run reads nothing")
        assert first.poll() is None, site.log("first")
        jvm = int(durable.unsealed(runs.record(Checkpoint.open(store / "state"), 1))["jvm"])
        os.kill(first.pid, signal.SIGSTOP)
        os.kill(jvm, signal.SIGSTOP)

        site.feed(10, 20)
        second = site.start("second", "--once")
        assert second.wait(PATIENCE) == 0, site.log("second")
        before = site.published()
        assert ({run for run, _ in before}, site.items()) == ({1, 2}, 20)
        assert site.delivered() == due(20)

        site.feed(20, 30)
        os.kill(jvm, signal.SIGCONT)
        os.kill(first.pid, signal.SIGCONT)
        assert first.wait(PATIENCE) == 1, site.log("first")
        told = f"another run (number 2 on {os.uname().nodename}, process {second.pid}) has taken over the checkpoint"
        assert f"{told} '{store / 'state'}'" in site.log("first")
    finally:
        for process in filter(None, (first.pid, jvm)):
            if process == jvm or first.poll() is None:
                _kill(process)
    assert site.published() == before, "nothing was published by the one that was stopped"
    assert site.delivered() == due(20)
    third = site.start("third", "--once")
    assert third.wait(PATIENCE) == 0, site.log("third")
    assert site.delivered() == due(30)
    assert [run for run, _ in site.published()] == sorted(run for run, _ in site.published())


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
