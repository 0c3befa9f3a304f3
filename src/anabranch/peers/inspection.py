"""A network seen from outside: the plan in force, the traffic, the answers.

Everything is read from the disk, without a lock and without Spark: also while the network runs, or after it was killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import UsageError, did_you_mean
from anabranch.network.description import Network
from anabranch.network.explanation import Rates, parts
from anabranch.network.needs import is_sent_verbatim
from anabranch.network.planner import Planner
from anabranch.peers.narrowing import stays_whole
from anabranch.peers.peer import checkpoint_of, record_of
from anabranch.peers.records import SavedPlan
from anabranch.spark.answers.log import AnswerLog, empty_answer
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.evolution.views import known_log
from anabranch.spark.intake.folders import listing
from anabranch.spark.plan.files import Plans

_MOST_EPOCHS = 1_000
"""The most epochs of a peer whose work is summed, the newest."""


@dataclass(frozen=True)
class RanNetwork:
    """A network that has run in a folder."""

    network: Network
    folder: Path

    @staticmethod
    def of(network: Network) -> RanNetwork | None:
        """The network on its own checkpoint; None where it has none yet."""
        folder = network.checkpoint
        return RanNetwork(network, folder) if folder is not None and (folder / "plan.json").exists() else None

    def planner(self) -> Planner:
        """A planner with the running network's plan."""
        found = Planner.over(self.network)
        places = {name: each.at for name, each in self.network.streams.items()}
        planned = SavedPlan.load(self.folder / "plan.json", places, found.schemas, found.need_of)
        found.resume(planned.now, 0)
        return found

    def rates(self, planner: Planner) -> Rates:
        """The average traffic since the beginning, in bytes per second of the streams' own time."""
        sent = {flow: size for peer in self._peers() for flow, size in self._sent(peer)}
        catalogue = planner.catalogue
        seconds = {name: self._seconds(planner, name) for name in self.network.streams}
        flows = {
            flow.name: sent.get(flow.name, 0) / max(seconds.get(each, 0.0) for each in flow.streams)
            for flow in catalogue.hops
            if all(seconds.get(each) for each in flow.streams)
        }
        work = {peer: float(self._read(peer)) for peer in self._peers()}
        return Rates(flows, parts(work), True, {name: each.by for name, each in self.network.streams.items()})

    def sent_whole(self) -> Iterator[str]:
        """For each stream of which all is sent behind its accents, a sentence that says why."""
        for name, stream in self.network.streams.items():
            if stream.at not in self._peers():
                continue
            checkpoint = self._checkpoint(stream.at)
            last, plan = Manifests(checkpoint.manifests).newest(), Plans(checkpoint).newest()
            if last is None or plan is None or name not in last.evolution or is_sent_verbatim(stream):
                continue
            known = plan.stream(name)
            log = known_log(checkpoint.evolution, known, last.evolution[name], {})
            why = stays_whole(log, plan.axes(known.source) or ())
            if why is not None:
                yield f"all of {name} is sent, for {why}"

    def _seconds(self, planner: Planner, stream: str) -> float:
        """The time that a stream's files cover, by the rate of its sample."""
        source = self.network.streams[stream].source
        size = sum(sum(listing(str(path)).values()) for path in source.partitions)
        sample = planner.estimates.samples[stream]
        a_second = sample.mean(sample.bytes) * sample.rate
        return size / a_second if a_second else 0.0

    def _read(self, peer: str) -> int:
        manifests = Manifests(self._checkpoint(peer).manifests)
        epochs = manifests.epochs()
        return sum(each.bytes_read for each in manifests.since(epochs.stop - _MOST_EPOCHS)) if epochs else 0

    def answer(self, name: str) -> Iterator[str]:
        """The committed answer of a subscription, also of one that was cancelled, in pieces."""
        for peer in self._peers():
            log = AnswerLog(self._checkpoint(peer))
            found = log.subscription(name)
            if found is not None:
                return iter(log.answer(found, self.network.functions))
        if name not in self.network.subscriptions:
            hint = did_you_mean(name, self.network.subscriptions)
            raise UsageError(f"there is no subscription '{name}', and none has run", hint=hint)
        sources = (each.source for each in self.network.streams.values())
        return iter((empty_answer(self.network.subscriptions[name].text, sources, self.network.functions),))

    def _peers(self) -> list[str]:
        """The peers that were ever run."""
        return [
            each for each in self.network.topology.peers if (checkpoint_of(self.folder, each) / "format.json").exists()
        ]

    def _checkpoint(self, peer: str) -> Checkpoint:
        return Checkpoint.open(checkpoint_of(self.folder, peer))

    def _sent(self, peer: str) -> Iterator[tuple[str, int]]:
        """By flow: the bytes that a peer has sent."""
        record = record_of(self.folder, peer)
        if record.exists():
            for flow, sent in durable.unsealed(record)["sent"].items():
                yield flow, sent["bytes"]
