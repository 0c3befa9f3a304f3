"""`make cluster`: a site on a cluster whose machines share no disk, while some of them are lost.

usage: run.py

A master, workers, drivers, an S3 server and a Kafka broker are machines of a lab (`machines.py`), each with a disk, a
network interface and processes of its own.
The site (`site.py`) is read and answered while a worker and then the driver lose their power; another driver, with an
empty disk, goes on.
In the end a machine that has no cluster answers the same site undisturbed, and every answer, topic and file is compared
with its own and with what the reference says, to the byte.

Prints what it does, one line for each check, and last how many have passed and failed; the exit status is 1 if any has
failed. Nothing stays behind, whatever happens.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster.machines import Lab, is_possible
from cluster.services import KafkaMachine, S3Machine
from cluster.site import FEW, PARTS, Places, Streams, due, inputs_of, queries, site_files, warm
from cluster.standalone import Cluster, python_paths
from progress import Progress

SIZE = 1_500
EPOCH_BYTES = 12_000
"""So small that a part of the streams is several epochs."""
PATIENCE = 900.0
"""Seconds that the site may stand still: workers with empty disks compile loops that they were not sent."""
_SAY_SECONDS = 30.0
_SITE = "/root/site"
_SOURCE = Path(__file__).resolve().parents[2] / "src"
_ANABRANCH = f"{sys.prefix}/bin/anabranch"
_CONF = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    # A machine without power says no goodbye: it is missed after these times, and not after Spark's minutes.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "3s",
    "spark.executor.heartbeat.maxFailures": "5",
}


_ANSWERS = f"""
import json, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from anabranch.runtime.registering import import_all
from anabranch.site import read_site
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
site = read_site(Path("{_SITE}/site.toml"))
import_all(site.functions)
log = AnswerLog(Checkpoint.open(site.checkpoint, site.owner))
def answer(name):
    return name, "".join(log.answer(log.subscription(name), site.functions))
with ThreadPoolExecutor(16) as pool:
    print(json.dumps(dict(pool.map(answer, json.load(sys.stdin)))))
"""
"""What `anabranch answer` does, for many subscriptions of a site that is read once."""


class Driver:
    """A machine from which a site is run; the package is installed on its own disk."""

    def __init__(
        self, lab: Lab, name: str, files: Mapping[str, str], environment: Mapping[str, str], progress: Progress
    ) -> None:
        given = {"PYTHONPATH": "/root/package", **environment}
        self.machine = lab.machine(name, [*python_paths(), str(_SOURCE)], given)
        self.machine.run(["cp", "-a", _SOURCE, "/root/package"])
        self.machine.put(_SITE, files)
        self._progress = progress
        self._process: subprocess.Popen[Any] | None = None

    def run(self, *options: str) -> None:
        """Begin to run the site."""
        settings = [each for name, value in _CONF.items() for each in ("--conf", f"{name}={value}")]
        command = [_ANABRANCH, "run", f"{_SITE}/site.toml", *settings, *options]
        output = 'exec "$@" >/root/output 2>&1'
        self._process = self.machine.start(["sh", "-c", output, "sh", *command])

    def await_items(self, count: int) -> None:
        """Wait until so many items have been read by epochs of this run."""
        self._await(lambda: self.items() >= count, f"{count} items")

    def await_end(self) -> None:
        """Wait until the run has ended by itself."""
        assert self._process is not None
        self._await(lambda: self._process is not None and self._process.poll() is not None, "the end")
        assert self._process.returncode == 0, self.output

    def _await(self, there: Callable[[], bool], what: str) -> None:
        assert self._process is not None
        patience, seen, told = monotonic() + PATIENCE, -1, monotonic()
        while not there():
            now = len(self.epochs())
            if now != seen:
                patience, seen = monotonic() + PATIENCE, now
            if monotonic() - told > _SAY_SECONDS:
                told = monotonic()
                self._progress.say(f"{self.machine.name} has done {self.items()} items in {now} epochs")
            assert self._process.poll() in (None, 0), self.output
            assert monotonic() < patience, f"{what} did not come: {self.output}"
            sleep(0.5)

    def epochs(self) -> list[dict[str, Any]]:
        """What the log says of the epochs of all runs on this machine."""
        found = []
        for line in self.machine.log(f"{_SITE}/log.jsonl").splitlines():
            with suppress(json.JSONDecodeError):  # the last may not be finished
                found.append(json.loads(line))
        return [each for each in found if each["event"] == "epoch"]

    def items(self) -> int:
        """How many items these epochs have read."""
        return sum(int(each["items"]) for each in self.epochs())

    @property
    def output(self) -> str:
        """What the run has printed, and the last lines of its log."""
        return self.machine.log("/root/output") + self.machine.log(f"{_SITE}/log.jsonl")[-2000:]

    def answers(self, names: list[str]) -> dict[str, str]:
        """The committed answers of subscriptions."""
        found: dict[str, str] = json.loads(self.machine.run([sys.executable, "-c", _ANSWERS], input=json.dumps(names)))
        return found


def main() -> int:
    """Try it; gives the exit status."""
    if not is_possible():
        print("machines are made of namespaces, for which Linux wants root: run 'sudo make cluster'", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of everything that cleans up
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="anabranch-due-") as folder:
        streams = Streams.of(SIZE)
        progress.say(f"asking the reference what is due over {streams.count} items in {len(streams.lines)} streams")
        inputs = inputs_of(streams, Path(folder))
        expected = due(streams, inputs)
        progress.say("compiling loops, which drivers send to the workers")
        warm(inputs)
        try:
            with Lab.made() as lab:
                Trial(lab, progress, streams).run(expected)
        except Exception as error:
            progress.failed += 1
            progress.say(f"FAILED {type(error).__name__}: {str(error)[:4000]}")
    print(f"{progress.passed} passed, {progress.failed} failed")
    return 1 if progress.failed else 0


class Trial:
    """The services of a lab, and the site that is run there."""

    def __init__(self, lab: Lab, progress: Progress, streams: Streams) -> None:
        self._lab, self._progress, self._streams = lab, progress, streams
        progress.say("starting S3, Kafka, a master and two workers, a machine each")
        self._s3 = S3Machine(lab)
        self._kafka = KafkaMachine(lab)
        self._kafka.topics("photon2", "vela", "vela-alone")
        self._cluster = Cluster(lab, environment=self._s3.environment)
        self._cluster.worker()
        self._cluster.worker()

    def run(self, expected: Mapping[str, str]) -> None:
        """Run the site while machines are lost, then undisturbed, and compare."""
        moved = self._disturbed()
        alone = self._driver("alone", self._places("state", "out", "vela-alone"))
        self._progress.say("a machine without a cluster answers the same, undisturbed")
        alone.run("--once")
        alone.await_end()
        self._progress.say(f"it has read {alone.items()} items in {len(alone.epochs())} epochs")
        self._compare(moved, alone, expected)

    def _disturbed(self) -> Driver:
        """A run on the cluster that loses a worker and its driver; gives the driver that has ended it."""
        say, cluster, parts = self._progress.say, self._cluster, self._part_items()
        places = self._places(self._s3.url("state"), self._s3.url("out"), "vela")
        first = self._driver("driver1", places)
        self._lay(0)
        say("the first driver runs the site")
        first.run("--master", cluster.url)
        first.await_items(parts[0])
        say(f"a quarter is read, {first.items()} items in {len(first.epochs())} epochs")
        with self._progress.check("the driver listens towards its cluster and on loopback only"):
            assert first.machine.listens_on() <= {first.machine.address, "127.0.0.1"}, first.machine.listens_on()
        self._lay(1)
        first.await_items(parts[0] + 1)
        cluster.workers[0].crash()
        say("a worker has lost its power")
        cluster.worker()
        first.await_items(parts[0] + parts[1])
        say(f"half is read, {first.items()} items in {len(first.epochs())} epochs")
        self._lay(2)
        first.await_items(parts[0] + parts[1] + 1)
        done, read = first.epochs(), first.items()
        first.machine.crash()
        say(f"the driver has lost its power and its disk, after {read} items in {len(done)} epochs")
        for part in range(3, PARTS):
            self._lay(part)
        second = self._driver("driver2", places)
        second.run("--once", "--master", cluster.url)
        second.await_end()
        say(f"another driver has read the rest, {second.items()} items in {len(second.epochs())} epochs")
        with self._progress.check("the second driver goes on where the first was"):
            begun = second.epochs()[0]
            assert begun["run"] == done[-1]["run"] + 1, begun
            assert done[-1]["epoch"] < begun["epoch"], begun
            assert 0 < second.items() <= self._streams.count - read, f"{second.items()} items are read behind {read}"
        return second

    def _compare(self, moved: Driver, alone: Driver, expected: Mapping[str, str]) -> None:
        check = self._progress.check
        found, undisturbed = moved.answers(list(queries())), alone.answers(list(queries()))
        for name in FEW:
            with check(f"'{name}', {len(expected[name])} bytes, is that of the undisturbed run and of the reference"):
                assert found[name] == undisturbed[name], _difference(found[name], undisturbed[name])
                assert found[name] == expected[name], _difference(found[name], expected[name])
        many = [name for name in expected if name not in FEW]
        size = sum(len(expected[name]) for name in many)
        with check(f"{len(many)} subscriptions, {size} bytes, are those of the undisturbed run and of arithmetic"):
            wrong = [name for name in many if not found[name] == undisturbed[name] == expected[name]]
            assert not wrong, f"{len(wrong)} are not, as {wrong[0]}: {_difference(found[wrong[0]], expected[wrong[0]])}"
        topic, topic_alone = self._kafka.read("vela"), self._kafka.read("vela-alone")
        with check(f"the topic has each of {len(topic_alone)} results once and in order"):
            assert topic == topic_alone, f"{len(topic)} results"
            assert f"<photons>{''.join(topic)}</photons>" == expected["q4"]
        parts, file = self._s3.texts("out/q1.xml"), alone.machine.log(f"{_SITE}/out/q1.xml")
        with check(f"the {len(parts)} parts of a sink at S3 are the {len(file)} bytes of a file"):
            assert file
            assert "".join(parts) == file, _difference("".join(parts), file)
        with check("nothing was set aside"):
            assert moved.machine.log(f"{_SITE}/dead.jsonl") == alone.machine.log(f"{_SITE}/dead.jsonl") == ""

    def _places(self, checkpoint: str, out: str, topic: str) -> Places:
        files = {name: self._s3.url(f"in/{name}") for name in ("photons", "photon1", "quotes")}
        paths = {"q1": f"{out}/q1.xml"}
        return Places(checkpoint, files, {"photon2": "photon2"}, self._kafka.brokers, {"q4": topic}, paths)

    def _driver(self, name: str, places: Places) -> Driver:
        site = site_files(places, epoch_bytes=EPOCH_BYTES)
        return Driver(self._lab, name, site, self._s3.environment, self._progress)

    def _lay(self, part: int) -> None:
        """Let a part of each stream come."""
        for name in ("photons", "photon1", "quotes"):
            lines = self._streams.part(name, part)
            self._s3.put(f"in/{name}/{part:03}", "".join(f"{line}\n" for line in lines))
        self._kafka.write("photon2", self._streams.part("photon2", part))

    def _part_items(self) -> list[int]:
        """How many items each part holds; updates and punctuations are none."""
        parts = (
            [line for name in self._streams.lines for line in self._streams.part(name, part)] for part in range(PARTS)
        )
        return [sum(not line.startswith("<s:") for line in lines) for lines in parts]


def _difference(found: str, due: str) -> str:
    """Where two texts part."""
    at = next(
        (at for at, pair in enumerate(zip(found, due, strict=False)) if pair[0] != pair[1]), min(len(found), len(due))
    )
    return f"at {at} of {len(found)} and {len(due)} bytes: {found[at : at + 200]!r} is not {due[at : at + 200]!r}"


if __name__ == "__main__":
    sys.exit(main())
