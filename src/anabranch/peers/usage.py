"""The traffic and work of a running network, as it has measured them itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anabranch.network.catalogue import Catalogue
from anabranch.peers.peer import Peer, TrunkRunner, Worked
from anabranch.peers.sending import Sent


@dataclass(frozen=True)
class NetworkUsage:
    """The usage of a network."""

    flows: Mapping[str, Sent]
    """By flow over a link, including ended ones."""
    links: Mapping[tuple[str, str], int]
    """Bytes by direction, of flows that have not ended."""
    peers: Mapping[str, Worked]

    @staticmethod
    def of(peers: Mapping[str, Peer], catalogue: Catalogue) -> NetworkUsage:
        """That of some peers so far."""
        flows = {flow: sent for peer in peers.values() for flow, sent in peer.sender.reached.sent.items()}
        links: dict[tuple[str, str], int] = {}
        for each in catalogue.hops:
            if each.name in flows:
                way = each.made_at, each.at
                links[way] = links.get(way, 0) + flows[each.name].bytes
        worked = {
            name: replace(peer.runner.worked, cpu_s=peer.runner.worked.cpu_s + peer.sending_s)
            for name, peer in peers.items()
            if isinstance(peer.runner, TrunkRunner)
        }
        return NetworkUsage(flows, links, worked)
