"""What has come out of a network so far: answers, what was set aside, and what it has cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anabranch.errors import UsageError
from anabranch.network.catalogue import Catalogue
from anabranch.network.operators import arriving
from anabranch.peers.peer import Peer, Worked
from anabranch.peers.programs import FLOW
from anabranch.peers.sending import Sent
from anabranch.peers.trunks import TrunkWorkings
from anabranch.spark.answers.log import AnswerFrame
from anabranch.stream.elements import DeadLetter


@dataclass(frozen=True)
class Measured:
    """What a network has done."""

    flows: Mapping[str, Sent]
    """By flow over a link, also those that have ended."""
    ways: Mapping[str, tuple[str, str]]
    """From where to where each of them goes; those that have ended are left out."""
    links: Mapping[tuple[str, str], int]
    """Bytes by direction."""
    peers: Mapping[str, Worked]


def measured(peers: Mapping[str, Peer], catalogue: Catalogue) -> Measured:
    """What peers have done so far."""
    flows = {flow: sent for peer in peers.values() for flow, sent in peer.sender.reached.sent.items()}
    ways = {each.name: (each.made_at, each.at) for each in catalogue.hops}
    links: dict[tuple[str, str], int] = {}
    for flow, sent in flows.items():
        if flow in ways:
            links[ways[flow]] = links.get(ways[flow], 0) + sent.bytes
    worked = {
        name: replace(peer.workings.worked, cpu_s=peer.workings.worked.cpu_s + peer.sending_s)
        for name, peer in peers.items()
        if isinstance(peer.workings, TrunkWorkings)
    }
    return Measured(flows, ways, links, worked)


def answer(peers: Mapping[str, Peer], catalogue: Catalogue, name: str) -> str:
    """What has been answered to a subscription."""
    known = catalogue.subscriptions.get(name)
    for peer in [peers[known.at]] if known else peers.values():
        found = peer.log.subscription(name)
        if found is not None:
            return peer.log.answer(found).text()
    if known is None:
        raise _unknown(name)
    return AnswerFrame.of(peers[known.at].program.answers[name]).empty


def dead_letters(peers: Mapping[str, Peer], catalogue: Catalogue, name: str) -> list[DeadLetter]:
    """What was set aside for a subscription: by it and of the streams that it reads, and by who makes its windows
    and tuples on the way."""
    subscription = catalogue.subscriptions.get(name)
    if subscription is None:
        raise _unknown(name)
    streams = arriving(catalogue, subscription)
    flows = {flow for each in subscription.reads for flow in (each, *catalogue.above(each))}
    found: list[DeadLetter] = []
    for peer in peers.values():
        is_last = peer.name == subscription.at
        makers = {FLOW + each.flow for each in peer.program.made if each.kind == "results" and each.flow in flows}
        for letter in peer.log.dead_letters() if is_last or makers else ():
            of_stream = letter.subscription is None and letter.place.stream in streams
            if letter.subscription in makers or (is_last and (letter.subscription == name or of_stream)):
                found.append(letter)
    return found


def _unknown(name: str) -> UsageError:
    return UsageError(f"there is no subscription '{name}'")
