"""Samples of a soak: what its processes hold, what lies on its disk, and how long answers take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from threading import Lock, Thread
from time import monotonic

from anabranch.client import connect
from soak.flatness import Bound
from soak.picture import Panel
from soak.processes import Holding, bytes_below, holding, machine_seconds
from soak.site import Feeder, NetworkAtWork

_NUMBER = re.compile(r"<n>([0-9]+)</n>")
_MB = 1e6
_PATIENCE = 900.0
"""Seconds that an answer may take: the machine may have other work."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A moment of the soak."""

    minute: float
    site: Holding
    network: Holding
    state_mb: float
    held: float
    """Items and panes that a branch remembers, on average."""
    latency_ms: float
    """From the moment at which an item is in its file to that at which its answer is read: the median, since the
    sample before."""
    slowest_ms: float
    processor: float
    """Processors that the site and the network have kept busy since the sample before."""
    others: float
    """Processors that were busy with something else."""


BOUNDS: Mapping[str, Bound] = {
    "memory of the driver": Bound(0.1, 8),
    "memory of the JVM": Bound(0.1, 16),
    "memory of the Python workers": Bound(0.1, 16),
    "memory of the network": Bound(0.1, 16),
    "state on disk": Bound(0.1, 1),
    "items of a branch": Bound(0.15, 1),
    "open files": Bound(0.05, 4),
    "threads": Bound(0.05, 4),
    "processors kept busy": Bound(0.2, 0.05, under_load=True),
    "latency": Bound(0.3, 50, under_load=True),
}
"""By what share each may grow over the part of a run that is judged, or else in its unit: MB, items, ms."""


def curves(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """What must be flat, by name."""
    return {
        "memory of the driver": [each.site.driver_mb for each in samples],
        "memory of the JVM": [each.site.jvm_mb for each in samples],
        "memory of the Python workers": [each.site.workers_mb for each in samples],
        "memory of the network": [
            each.network.driver_mb + each.network.jvm_mb + each.network.workers_mb for each in samples
        ],
        "state on disk": [each.state_mb for each in samples],
        "items of a branch": [each.held for each in samples],
        "open files": [each.site.files + each.network.files for each in samples],
        "threads": [each.site.threads + each.network.threads for each in samples],
        "processors kept busy": [each.processor for each in samples],
        "latency": [each.latency_ms for each in samples],
    }


def panels(samples: Sequence[Sample], verdicts: Mapping[str, str]) -> list[Panel]:
    """The curves as they are drawn."""
    found = curves(samples)
    memory = ("memory of the driver", "memory of the JVM", "memory of the Python workers", "memory of the network")
    together = {each.removeprefix("memory of the "): found[each] for each in memory}
    said = ", ".join(verdicts[each] for each in memory)
    latency = {"median": found["latency"], "slowest": [each.slowest_ms for each in samples]}
    load = {"site and network": found["processors kept busy"], "others": [each.others for each in samples]}
    return [
        Panel("memory", "MB", together, said),
        Panel("state on disk", "MB", {"checkpoint of the site": found["state on disk"]}, verdicts["state on disk"]),
        Panel("latency", "ms", latency, verdicts["latency"]),
        Panel(
            "items of a branch",
            "",
            {"remembered, on average": found["items of a branch"]},
            verdicts["items of a branch"],
        ),
        Panel("open files", "", {"of all processes": found["open files"]}, verdicts["open files"]),
        Panel("threads", "", {"of all processes": found["threads"]}, verdicts["threads"]),
        Panel("processors kept busy", "", load, verdicts["processors kept busy"]),
    ]


@dataclass
class PingClient:
    """A client that follows the answer to pings, and notes how long each has taken."""

    url: str
    feeder: Feeder
    taken: list[tuple[float, float]] = field(default_factory=list)
    """When a ping was answered, and after how many seconds."""
    failures: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def start(self) -> None:
        Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            for answer in (
                connect(self.url, timeout=_PATIENCE).subscription("pong").answers(follow=True, patience=_PATIENCE)
            ):
                found = _NUMBER.search(answer.text)
                assert found is not None, answer.text
                now = monotonic()
                with self.lock:
                    self.taken.append((now, now - self.feeder.written[int(found[1])]))
        except BaseException as error:
            self.failures.append(f"{type(error).__name__}: {error}")


class Sampler:
    """Takes samples; those of moments at which a program is down are left out."""

    def __init__(self, folder: Path, pings: PingClient, network: NetworkAtWork, began: float) -> None:
        self._folder, self._pings, self._network, self._began = folder, pings, network, began
        self.samples: list[Sample] = []
        self._before: tuple[float, float, float, int] | None = None
        """When the sample before was taken, what the machine and our programs had spent, and the site's process."""

    def sample(self, driver: int, held: float) -> Sample | None:
        """Take a sample, where there is something to compare with."""
        assert self._network.process is not None
        site, network = holding(driver), holding(self._network.process.pid)
        now, machine, ours = monotonic(), machine_seconds(), site.processor + network.processor
        before, self._before = self._before, (now, machine, ours, driver)
        if before is None or before[3] != driver or ours < before[2]:
            return None
        with self._pings.lock:
            latencies = [1000 * seconds for at, seconds in self._pings.taken if at > before[0]]
        if not latencies:
            return None
        span = now - before[0]
        busy = (ours - before[2]) / span
        found = Sample(
            minute=(now - self._began) / 60,
            site=site,
            network=network,
            state_mb=bytes_below(self._folder / "state") / _MB,
            held=held,
            latency_ms=median(latencies),
            slowest_ms=max(latencies),
            processor=busy,
            others=max(0.0, (machine - before[1]) / span - busy),
        )
        self.samples.append(found)
        return found
