"""Networks drawn from a seed, whose super-peers are processes that are killed again and again, over topics or a folder.

Each is as docs/network.md says: a process for each super-peer, with a folder of its own, and a description that changes
while all of them run.
In one of five networks epochs are run on Spark; the others run theirs in their own processes (`killed_part.py`), so
that many of them can be tried; all else is what `anabranch network run` does.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Event
from time import monotonic

import pytest

from anabranch.spark.checkpoint.crash import POINTS
from anabranch.stream.photons import photons_dtd
from brokers import Broker
from faults.drawn_networks import DrawnNetwork
from faults.test_links import PartProcess
from mass import Mass
from peers.test_what_fails import told_by

PATIENCE = 400
"""Seconds for all processes of a network to be through, on a busy machine too."""

ON_SPARK = 5
"""One of so many networks runs on Spark."""
_NEW_FILES = 40
"""The most files that processes make before one of them is killed."""
_CALLS = 150
"""A process without Spark dies in front of one of so many things that others depend on, or does not."""
_EPOCHS = 12
"""On Spark it dies in one of so many epochs of its super-peer, or does not."""
_MOMENT = 3.0
"""The most seconds until somebody is killed."""


@pytest.mark.kills
@pytest.mark.spark
@pytest.mark.parametrize("way", ["topics", "folder"])
def test_no_kill_shows_in_a_drawn_network(
    way: str, mass: Mass, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers are those of one engine with the same queries, to the byte, and each dead letter is there once.

    The number of the network that fails is shown; `tried(number, ...)` draws it again.
    """
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    broker: Broker | None = request.getfixturevalue("broker") if way == "topics" else None
    kills: Counter[str] = Counter()
    letters = networks = 0
    for number in mass.cases(25):
        died, told = tried(number, tmp_path / f"{number}", broker)
        kills, letters, networks = kills + died, letters + told, networks + 1
    with capsys.disabled():
        print(f"\nby {way}, {networks} drawn networks: {kills.total()} kills, {letters} dead letters, no difference")
        print("\n".join(f"  {count:3} {kind}" for kind, count in sorted(kills.items())))


def tried(number: int, folder: Path, broker: Broker | None) -> tuple[Counter[str], int]:
    """Try a network; gives who was killed and how often, and how many dead letters there are."""
    random = Random(number)
    found = KilledNetwork(DrawnNetwork(folder, random), random, broker, on_spark=number % ON_SPARK == 0)
    try:
        found.run()
    except BaseException:
        print(f"the network {number}, drawn again by `tried({number}, ...)`:\n{found.drawn.description('')}")
        raise
    finally:
        found.end()
    return found.kills, found.drawn.letters_due().total()


class KilledNetwork:
    """A drawn network at work, in a process for each of its super-peers."""

    def __init__(self, drawn: DrawnNetwork, random: Random, broker: Broker | None, *, on_spark: bool) -> None:
        """Without a broker there is a folder between the processes."""
        self.drawn = drawn
        self.kills: Counter[str] = Counter()
        self._random = random
        self._on_spark = on_spark
        if broker is None:
            self._link = f'link = "folder"\nfolder = "{drawn.folder / "between"}"\n'
        else:
            prefix = broker.topic("links").replace("-", "_")
            self._link = f'link = "kafka"\ntopics = "{prefix}"\n\n[kafka]\nbrokers = "{broker.address}"\n'
        program = Path(sys.executable), "-m", "faults.killed_part", str(random.randrange(99))
        self._parts = {
            each: PartProcess(drawn.folder / each, (each,), () if on_spark else program)
            for each in drawn.topology.peers
        }
        for part in self._parts.values():
            part.folder.mkdir(exist_ok=True)
            (part.folder / "photons.dtd").write_text(photons_dtd())

    def run(self) -> None:
        """Let it live through changes and kills, to its end."""
        self._describe()
        if self._random.random() < 0.5:
            self.drawn.grow()
        for part in self._parts.values():
            self._start(part)
        for step in range(self._random.randrange(2, 4)):
            self._grow()
            self._compare()
            self.drawn.change(step)
            self._describe()
            if self._random.random() < 0.6:
                self._kill()
            self._until(self._is_planned)
        self._grow()
        self._compare()
        for part in self._parts.values():
            self._stop(part)
        assert not self._missing(), "something came behind the end"

    def _start(self, part: PartProcess, **settings: str) -> None:
        part.start(PYTHONPATH=str(Path(__file__).parent.parent), **settings)

    def _stop(self, part: PartProcess) -> None:
        """Ask a process to end; it may die at a point that it comes to only now, and one that begins just ends."""
        part.process.terminate()
        while part.process.wait(PATIENCE) == -signal.SIGKILL:
            self.kills["at a point"] += 1
            self._start(part)
            part.process.terminate()
        assert part.process.returncode in (0, -signal.SIGTERM), part.story()

    def _describe(self) -> None:
        queries = {name: text for name, (text, _) in self.drawn.asked.items()}
        for part in self._parts.values():
            part.describe(self.drawn.description(self._link), queries)

    def _is_planned(self) -> bool:
        return all(each.planned() == set(self.drawn.asked) for each in self._parts.values())

    def _grow(self) -> None:
        """Let items come, and kill processes meanwhile."""
        for _ in range(self._random.randrange(1, 4)):
            self.drawn.grow()
            if self._random.random() < 0.7:
                self._kill()
        self.drawn.grow()

    def _kill(self) -> None:
        """Kill a process or two at any moment, and start them again, perhaps to die at a point that they come to."""
        some = self._random.sample(sorted(self._parts), self._random.choice((1, 1, 1, 2)))
        before, new, patience = self._files(), self._random.randrange(_NEW_FILES), monotonic() + _MOMENT
        self._until(lambda: len(self._files() - before) >= new or monotonic() > patience)
        for name in some:
            part = self._parts[name]
            if part.process.poll() is None:
                part.kill()
                self.kills["at any moment"] += 1
            if self._random.random() < 0.5:
                self._start(part)
            elif self._on_spark:
                self._start(part, ANABRANCH_CRASH=f"{self._random.choice(POINTS)}:{self._random.randrange(_EPOCHS)}")
            else:
                self._start(part, ANABRANCH_DIES=str(self._random.randrange(1, _CALLS)))

    def _files(self) -> set[str]:
        return {name for part in self._parts.values() for name in part.files()}

    def _until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds; who has died at a point is started again."""
        patience, never = monotonic() + PATIENCE, Event()
        while not holds():
            for part in self._parts.values():
                ended = part.process.poll()
                assert ended in (None, -signal.SIGKILL), part.story()
                if ended is not None:
                    self.kills["at a point"] += 1
                    self._start(part)
            assert monotonic() < patience, "\n".join(
                (str(self._missing()), *(each.story() for each in self._parts.values()))
            )
            never.wait(0.05)

    def _compare(self) -> None:
        """Wait until answers and dead letters are those of the one engine."""
        self.drawn.alone.drain()
        self._until(lambda: not self._missing())

    def _missing(self) -> dict[str, object]:
        """What is not as in the one engine yet: by subscription its query, its answer and the one that is due."""
        found: dict[str, object] = {}
        if not self._is_planned():
            return {"planned": [each.planned() for each in self._parts.values()]}
        for name, (text, at) in self.drawn.asked.items():
            answer, due = self._parts[at].answer(name), self.drawn.due(name)
            if answer != due:
                found[name] = text, answer, due
        told, letters = self._told(), self.drawn.letters_due()
        if told != letters:
            found["dead letters"] = told - letters, letters - told
        return found

    def _told(self) -> Counter[tuple[object, ...]]:
        """The dead letters of all processes; a line that is being written is none yet."""
        found: Counter[tuple[object, ...]] = Counter()
        for part in self._parts.values():
            file = part.folder / "dead.jsonl"
            lines = file.read_text().rpartition("\n")[0].splitlines() if file.exists() else []
            found += told_by(map(json.loads, lines))
        return found

    def end(self) -> None:
        """Leave nothing at work."""
        for part in self._parts.values():
            if part.is_started and part.process.poll() is None:
                part.kill()
