"""`make cluster`: a site on a cluster whose machines share no disk, while some of them are lost.

usage: run.py

A master, workers, drivers and a Kafka broker are machines of a lab (`machines.py`), each with a disk, a network
interface and processes of its own.
The site (`site.py`) is read and answered while a worker and then the driver lose their power; another driver, with an
empty disk, goes on.
In the end every answer is compared with the one that is due, to the byte.

Prints what it does, one line for each check, and last how many have passed and failed; the exit status is 1 if any has
failed. Nothing stays behind, whatever happens.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster.machines import Lab, is_possible
from cluster.services import KafkaMachine
from cluster.site import FEW, PARTS, Places, Streams, due, inputs_of, queries, site_files, warm
from cluster.standalone import Cluster, python_paths

SIZE = 1_500
EPOCH_BYTES = 12_000
"""So small that a part of the streams is several epochs."""
PATIENCE = 900.0
"""Seconds that the site may stand still: workers with empty disks compile all loops first."""
_SITE = "/root/site"
_SOURCE = Path(__file__).resolve().parents[2] / "src"
_ANABRANCH = f"{sys.prefix}/bin/anabranch"
_MEMORY = ["--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m"]


class Progress:
    """Prints what happens and counts what has passed and failed."""

    def __init__(self) -> None:
        self._begun = monotonic()
        self.passed = self.failed = 0

    def say(self, text: str) -> None:
        print(f"{monotonic() - self._begun:5.0f} s  {text}", flush=True)

    @contextmanager
    def check(self, what: str) -> Iterator[None]:
        """One check; an assertion that fails is printed, and the next check goes on."""
        try:
            yield
        except AssertionError as error:
            self.failed += 1
            self.say(f"FAILED {what}: {str(error)[:4000]}")
        else:
            self.passed += 1
            self.say(f"passed {what}")


class Driver:
    """A machine from which a site is run."""

    def __init__(self, lab: Lab, name: str, files: Mapping[str, str], environment: Mapping[str, str]) -> None:
        given = {"PYTHONPATH": str(_SOURCE), **environment}
        self.machine = lab.machine(name, [*python_paths(), str(_SOURCE), *SHARED], given)
        self.machine.put(_SITE, files)
        self._process: subprocess.Popen[Any] | None = None

    def run(self, master: str, *options: str) -> subprocess.Popen[Any]:
        """Begin to run the site."""
        command = [_ANABRANCH, "run", f"{_SITE}/site.toml", "--master", master, *_MEMORY, *options]
        output = 'exec "$@" >/root/output 2>&1'
        self._process = self.machine.start(["sh", "-c", output, "sh", *command])
        return self._process

    def await_items(self, count: int) -> None:
        """Wait until so many items have been read by epochs of this run."""
        self._await(lambda: sum(each["items"] for each in self.epochs()) >= count, f"{count} items")

    def await_end(self) -> None:
        """Wait until the run has ended by itself."""
        assert self._process is not None
        self._await(lambda: self._process is not None and self._process.poll() is not None, "the end")
        assert self._process.returncode == 0, self.output

    def _await(self, there: Callable[[], bool], what: str) -> None:
        assert self._process is not None
        patience, seen = monotonic() + PATIENCE, -1
        while not there():
            now = len(self.epochs())
            if now != seen:
                patience, seen = monotonic() + PATIENCE, now
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

    @property
    def output(self) -> str:
        """What the run has printed, and the last lines of its log."""
        return self.machine.log("/root/output") + self.machine.log(f"{_SITE}/log.jsonl")[-2000:]

    def answers(self, names: list[str]) -> dict[str, str]:
        """The committed answers of subscriptions."""
        program = (
            "import json, sys\nfrom pathlib import Path\nfrom anabranch.running import committed\n"
            f"names = json.load(sys.stdin)\nsite = Path('{_SITE}/site.toml')\n"
            "print(json.dumps({name: ''.join(committed(site, name)) for name in names}))"
        )
        found: dict[str, str] = json.loads(self.machine.run([sys.executable, "-c", program], input=json.dumps(names)))
        return found


SHARED: list[str] = []
"""Folders that all machines see; none."""


def main() -> int:
    """Try it; gives the exit status."""
    if not is_possible():
        print("machines are made of namespaces, for which Linux wants root: run 'sudo make cluster'", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of everything that cleans up
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="anabranch-due-") as folder:
        shared = Path(folder, "shared")
        shared.mkdir()
        SHARED.append(f"+{shared}")
        streams = Streams.of(SIZE)
        progress.say("asking the reference what is due")
        Path(folder, "due").mkdir()
        inputs = inputs_of(streams, Path(folder, "due"))
        expected = due(streams, inputs)
        progress.say("compiling loops, which the first driver sends to the workers")
        warm(inputs)
        try:
            with Lab.made() as lab:
                _try(lab, progress, streams, expected, shared)
        except Exception as error:
            progress.failed += 1
            progress.say(f"FAILED {type(error).__name__}: {str(error)[:4000]}")
    print(f"{progress.passed} passed, {progress.failed} failed")
    return 1 if progress.failed else 0


def _try(lab: Lab, progress: Progress, streams: Streams, expected: Mapping[str, str], shared: Path) -> None:
    progress.say("starting Kafka, a master and two workers")
    kafka = KafkaMachine(lab)
    kafka.topics("photon2", "vela")
    cluster = Cluster(lab, SHARED)
    cluster.worker()
    cluster.worker()
    files = {name: str(shared / name) for name in ("photons", "photon1", "quotes")}
    for each in files.values():
        Path(each).mkdir()
    places = Places(str(shared / "state"), files, {"photon2": "photon2"}, kafka.brokers, {"q4": "vela"})

    def lay(part: int) -> None:
        for name, path in files.items():
            fresh = Path(path, f".{part:03}")
            fresh.write_text("".join(f"{line}\n" for line in streams.part(name, part)))
            fresh.rename(Path(path, f"{part:03}"))
        kafka.write("photon2", streams.part("photon2", part))

    site = site_files(places, epoch_bytes=EPOCH_BYTES)
    first = Driver(lab, "driver1", site, {})
    lay(0)
    progress.say("the first driver runs the site")
    first.run(cluster.url)
    first.await_items(_items(streams, 1))
    progress.say(f"a quarter is read, in {len(first.epochs())} epochs")
    lay(1)
    first.await_items(_items(streams, 1) + 1)
    cluster.workers[0].crash()
    progress.say("a worker has lost its power")
    cluster.worker()
    first.await_items(_items(streams, 2))
    progress.say(f"half is read, in {len(first.epochs())} epochs")
    lay(2)
    first.await_items(_items(streams, 2) + 1)
    first.machine.crash()
    progress.say("the driver has lost its power, and its disk")
    for part in range(3, PARTS):
        lay(part)
    second = Driver(lab, "driver2", site, {})
    second.run(cluster.url, "--once")
    second.await_end()
    progress.say(f"all is read, in {len(second.epochs())} epochs more")
    with progress.check("the second driver goes on where the first was"):
        assert second.epochs()[0]["run"] == 2
    found = second.answers(list(queries()))
    for name in FEW:
        with progress.check(f"{name} is answered as by the reference"):
            assert found[name] == expected[name], f"{found[name][:500]} ... is not {expected[name][:500]} ..."
    with progress.check("a thousand subscriptions are answered as by arithmetic"):
        wrong = [name for name in expected if found[name] != expected[name] and name not in FEW]
        assert not wrong, f"{len(wrong)} are not, as {wrong[0]}: {found[wrong[0]][:500]}"
    with progress.check("the topic has every result once, in order"):
        text = "".join(kafka.read("vela"))
        assert f"<photons>{text}</photons>" == expected["q4"]
    with progress.check("nothing was set aside"):
        assert second.machine.log(f"{_SITE}/dead.jsonl") == ""


def _items(streams: Streams, parts: int) -> int:
    """How many items the first parts hold; punctuations are none."""
    lines = (line for name in streams.lines for part in range(parts) for line in streams.part(name, part))
    return sum(1 for line in lines if "<s:punctuation" not in line)


if __name__ == "__main__":
    sys.exit(main())
