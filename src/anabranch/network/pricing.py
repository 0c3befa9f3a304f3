"""What a plan costs: bytes per second on links, and bytes per second that operators read on peers.

Both are bytes per second, so a price is their sum, the second weighed.
A flow has a price of its own however little it carries, for it is a log of its own, with files in every epoch.
A change is priced by the flows that it touches and those that read them, not by the whole network again.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, replace

from anabranch.network.catalogue import Catalogue, Flow, Subscription, load_of
from anabranch.network.estimates import Estimates, Form
from anabranch.network.topology import Link, Topology

LOAD = 0.25
"""What a byte that is read costs beside one over a link."""
FLOW = 256.0
"""What a flow over a link costs by itself."""


@dataclass(frozen=True, slots=True, order=True)
class Price:
    """What is too much for links comes first, then what all costs; both in bytes per second."""

    short: float
    total: float
    traffic: float
    load: float


def priced(
    catalogue: Catalogue,
    changes: Mapping[str, Form],
    added: tuple[Flow, ...],
    subscription: Subscription,
    topology: Topology,
    estimates: Estimates,
) -> Price:
    """The price of widening some flows, adding others, and answering a subscription out of some."""
    wider = {name: replace(catalogue.flows[name], form=form) for name, form in changes.items()}
    flows = ChainMap(wider, {flow.name: flow for flow in added}, dict(catalogue.flows))
    load = load_of(subscription, flows, estimates) + sum(load_of(flow, flows, estimates) for flow in added)
    readers = {each.name: each for name in changes for each in (catalogue.flows[name], *catalogue.readers[name])}
    for flow in readers.values():
        load += load_of(flows[flow.name], flows, estimates) - load_of(flow, catalogue.flows, estimates)
    answered = {each.name: each for name in changes for each in catalogue.answered[name]}
    for each in answered.values():
        load += load_of(each, flows, estimates) - load_of(each, catalogue.flows, estimates)
    links: dict[Link, float] = {}
    for flow in (*wider.values(), *added):
        if flow.before is not None:
            link = topology.link(flow.before, flow.at)
            old = estimates.rate(catalogue.flows[flow.name].form) if flow.name in wider else 0.0
            links[link] = links.get(link, 0.0) + estimates.rate(flow.form) - old
    traffic = sum(links.values())
    fixed = FLOW * sum(flow.before is not None for flow in added)
    short = sum(shortage(catalogue, link, more, topology, estimates) for link, more in links.items())
    return Price(short, traffic + LOAD * load + fixed, traffic, load)


def total(catalogue: Catalogue, topology: Topology, estimates: Estimates) -> Price:
    """What all of a catalogue costs."""
    traffic = sum(catalogue.traffic(estimates).values())
    load = sum(catalogue.load(estimates).values())
    links = {topology.link(each.before, each.at) for each in catalogue.hops if each.before}
    short = 0.0
    for link in links:
        most = topology.bandwidth(link)
        if most is not None:
            short += max(0.0, carried(catalogue, link, estimates) - most)
    return Price(short, traffic + LOAD * load + FLOW * len(list(catalogue.hops)), traffic, load)


def carried(catalogue: Catalogue, link: Link, estimates: Estimates) -> float:
    """Bytes per second over a link, both ways."""
    return sum(estimates.rate(each.form) for each in catalogue.hops if {each.before, each.at} == set(link))


def shortage(catalogue: Catalogue, link: Link, more: float, topology: Topology, estimates: Estimates) -> float:
    """By how many bytes per second a link is short, beyond what it is already."""
    most = topology.bandwidth(link)
    if most is None:
        return 0.0
    now = carried(catalogue, link, estimates)
    return max(0.0, now + more - most) - max(0.0, now - most)
