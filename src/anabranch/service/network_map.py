"""The map of a network at work, for clients: peers, links, and what flows on them, as planned and as measured.

All of it is read from the network's folder, as `anabranch network show` reads it, so it is what the newest epochs have
committed, and nobody at work is asked.
It is read again after some seconds at the earliest, however many ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import monotonic

from anabranch.network.description import Network
from anabranch.network.explanation import Rates, carries, planned
from anabranch.network.picture import layout
from anabranch.network.planner import Planner
from anabranch.peers.inspection import RanNetwork
from anabranch.site_work import RunState

_SECONDS = 2.0
"""A map is as old as this at most."""


@dataclass(frozen=True, slots=True)
class MappedPeer:
    """A peer; a thin one has no place of its own."""

    name: str
    place: tuple[float, float] | None
    is_super: bool


@dataclass(frozen=True, slots=True)
class MappedLink:
    """What goes from one peer to another: bytes a second by the plan, and as measured, if there is something."""

    source: str
    target: str
    planned: float
    measured: float | None
    flows: tuple[tuple[str, str], ...]
    """The name of each flow, and what it carries."""


@dataclass(frozen=True, slots=True)
class PlannedMap:
    """A network with its plan."""

    peers: tuple[MappedPeer, ...]
    links: tuple[MappedLink, ...]


class NetworkView:
    """A network at work, as its service sees it; any thread may ask, and the run says what happens to it."""

    def __init__(self, file: Path, network: Network) -> None:
        self.file = file
        self.network = network
        """The version of the file that is in force."""
        self.state: RunState = "starting"
        self.started = datetime.now(UTC)
        self.epochs: dict[str, int] = {}
        """By peer: the newest epoch of this run."""
        self._lock = Lock()
        self._known: tuple[float, Network, PlannedMap] | None = None

    @property
    def newest(self) -> int:
        """The newest epoch of a peer, -1 before the first."""
        return max(tuple(self.epochs.values()), default=-1)

    def map(self) -> PlannedMap:
        """The map by now."""
        with self._lock:  # one at a time: all who wait ask the same
            known, network = self._known, self.network
            if known is None or known[1] is not network or monotonic() - known[0] > _SECONDS:
                found = _mapped(network)
                known = self._known = monotonic(), network, found
            return known[2]


def _mapped(network: Network) -> PlannedMap:
    sources = {name: each.by for name, each in network.streams.items()}
    ran = RanNetwork.of(network)
    planner = ran.planner() if ran else Planner.of(network)[0]
    expected = planned(planner, sources)
    measured = ran.rates(planner) if ran else None
    boxes = layout(planner, measured or expected).boxes
    peers = [MappedPeer(name, boxes[name].middle, is_super=True) for name in planner.topology.peers]
    peers += [MappedPeer(name, None, is_super=False) for name in network.thin]
    links = (*_between(planner, expected, measured), *_thin(network, expected))
    return PlannedMap(tuple(peers), links)


def _between(planner: Planner, expected: Rates, measured: Rates | None) -> Iterator[MappedLink]:
    """The links between super-peers, one for each direction in which something flows; one for those without flows."""
    flows: dict[tuple[str, str], list[str]] = {}
    catalogue = planner.catalogue
    for flow in catalogue.hops:
        assert flow.before is not None, "it has come over a link"
        flows.setdefault((flow.before, flow.at), []).append(flow.name)
    for first, second in planner.topology.links:
        used = [each for each in ((first, second), (second, first)) if each in flows]
        for source, target in used or [(first, second)]:
            found = [catalogue.flows[name] for name in flows.get((source, target), ())]
            yield MappedLink(
                source,
                target,
                sum(map(expected.of, found)),
                sum(map(measured.of, found)) if measured else None,
                tuple((each.name, carries(each.form)) for each in found),
            )


def _thin(network: Network, expected: Rates) -> Iterator[MappedLink]:
    """The links of thin peers: a stream that one sends, and answers that one gets."""
    for thin in network.thin.values():
        sent = [name for name, each in network.streams.items() if each.by == thin.name]
        if sent:
            rate = sum(expected.flows.get(name, 0.0) for name in sent)
            yield MappedLink(thin.name, thin.at, rate, None, tuple((name, "the stream itself") for name in sent))
        asked = [name for name, each in network.subscriptions.items() if each.by == thin.name]
        if asked or not sent:
            yield MappedLink(thin.at, thin.name, 0.0, None, tuple((name, "its answer") for name in asked))
