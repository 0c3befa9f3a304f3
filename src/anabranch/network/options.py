"""The possible plans for a subscription, each with its price.

An option starts at an *anchor*, an existing flow: a registered stream, or anything made from it.
Where the anchor does not provide what is needed it is widened, and so are the flows between the stream and the anchor
that do not provide it; from the anchor's peer on, new flows carry what is needed, and nothing else, over the shortest
route that has room for them.
A join is made at any peer that its inputs can be brought to, including the subscriber's, and from there on its tuples
are sent (the sharing paper's open question, 5.3.1).

Anchors are tried from the nearest on, the registered stream first, so that there is a plan from the start.
For a join, whose inputs are priced at every peer, an anchor is skipped where its new flows alone would cost more than
the best so far.

Windows and tuples that have begun serve only those who began with them (LAWS 3.6).
A newcomer may *go along* with them: the same is made once more, from the newcomer's beginning, and takes the same way,
until both are the same; then there is one again (`Planner.shared`).
So that is priced like reading them.

A price is the bytes per second on links, and, weighted, the bytes per second that operators read on peers.
A flow has a fixed price however little it carries, for it is a log of its own, with files in every epoch.
A change is priced by the flows that it affects and their readers, not by the whole network again.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from anabranch.network.catalogue import Catalogue, Flow, Subscription, load_of
from anabranch.network.description import Strategy
from anabranch.network.estimates import Estimates, Form
from anabranch.network.needs import QueryNeeds, inputs_of, provides, whole, widened
from anabranch.network.topology import Link, Topology
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.tree import PropertyTree

LOAD_WEIGHT = 0.25
"""The weight of a byte that is read, relative to one over a link."""
FLOW_PRICE = 256.0
"""The fixed price of a flow over a link."""


@dataclass(frozen=True, slots=True, order=True)
class Price:
    """Overload of links comes first, then the total; both in bytes per second."""

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
    """The price of widening some flows, adding others, and answering a subscription."""
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
    fixed = FLOW_PRICE * sum(flow.before is not None for flow in added)
    short = sum(shortage(catalogue, link, more, topology, estimates) for link, more in links.items())
    return Price(short, traffic + LOAD_WEIGHT * load + fixed, traffic, load)


def total(catalogue: Catalogue, topology: Topology, estimates: Estimates) -> Price:
    """The price of a whole catalogue."""
    traffic = sum(catalogue.traffic(estimates).values())
    load = sum(catalogue.load(estimates).values())
    links = {topology.link(each.before, each.at) for each in catalogue.hops if each.before}
    limits = {link: most for link in links if (most := topology.links[link]) is not None}
    short = sum(max(0.0, carried(catalogue, link, estimates) - most) for link, most in limits.items())
    return Price(short, traffic + LOAD_WEIGHT * load + FLOW_PRICE * len(list(catalogue.hops)), traffic, load)


def carried(catalogue: Catalogue, link: Link, estimates: Estimates) -> float:
    """Bytes per second over a link, both ways."""
    return sum(estimates.rate(each.form) for each in catalogue.hops if {each.before, each.at} == set(link))


def shortage(catalogue: Catalogue, link: Link, more: float, topology: Topology, estimates: Estimates) -> float:
    """By how many bytes per second a link is overloaded, beyond what it is already."""
    most = topology.links[link]
    if most is None:
        return 0.0
    now = carried(catalogue, link, estimates)
    return max(0.0, now + more - most) - max(0.0, now - most)


@dataclass(frozen=True)
class Option:
    """One plan for a subscription."""

    words: str
    anchors: tuple[str, ...]
    """The flows it starts at."""
    changes: Mapping[str, Form]
    """By flow that is widened: its new form."""
    added: tuple[Flow, ...]
    reads: tuple[str, ...]
    """The flows that the answer is made from."""
    price: Price

    shares: bool
    """Whether it starts only at shared flows: no flow of a registered stream is made for it alone."""


@dataclass(frozen=True)
class _Brought:
    """One input, brought to a peer."""

    anchor: Flow
    place: str
    """The peer where it is read."""
    changes: Mapping[str, Form]
    added: tuple[Flow, ...]
    price: Price


@dataclass
class Options:
    """The options of one subscription in one catalogue."""

    catalogue: Catalogue
    topology: Topology
    estimates: Estimates
    strategy: Strategy
    is_late: Callable[[], bool]
    number: int
    """The number of the next flow."""
    begun: Collection[str] = ()
    """The flows that have begun: those with state (windows, tuples) are not changed any more, nor read by others."""
    fed_inputs: Callable[[PropertyForest], tuple[PropertyTree, ...]] = inputs_of
    """The inputs of a join on the way."""
    _widenings: dict[tuple[str, Form], dict[str, Form] | None] = field(default_factory=dict)

    def of(self, need: QueryNeeds, at: str) -> Iterator[Option]:
        """All options, until time is up; the first is always valid."""
        if self.strategy == "shipping":
            yield self._together(self._ship(need, at), at, need)
            return
        for option in self._all(need, at):
            yield option
            if self.is_late():
                return

    def _all(self, need: QueryNeeds, at: str) -> Iterator[Option]:
        if len(need.inputs) == 1 and need.join is None:
            for brought in self._bring(need.inputs[0], at, everything=True):
                yield self._together([brought], at, need)
            if need.inputs[0].window is not None:
                yield from self._alongside(need.inputs[0], at)
            return
        yield self._together([self._best(each, at) for each in need.inputs], at, need)
        if need.join is None:
            return
        for flow in self.catalogue.flows.values():
            if isinstance(flow.form, PropertyForest) and flow.name not in self.begun:
                changes = self._widening(flow.name, need.join)
                if changes is not None:
                    yield self._onwards(flow, changes, need.join, at)
        yield from self._alongside(need.join, at)
        for peer in self.topology.peers:
            if peer != at and not self.is_late():
                yield self._joined([self._best(each, peer) for each in need.inputs], peer, need.join, at)

    # --- one input ------------------------------------------------------------------------------------------

    def _bring(self, form: Form, to: str, *, everything: bool = False) -> Iterator[_Brought]:
        """The ways to bring one input to a peer; without `everything`, each better than those before it."""
        assert not isinstance(form, PropertyForest)
        rate = self.estimates.rate(form)
        flows = [each for each in self.catalogue.flows.values() if each.streams == (form.stream,)]
        flows = [each for each in flows if each.name not in self.begun or is_loose(each)]
        anchors = [
            (each, min(each.places, key=lambda place: self.topology.distance(place, to)))
            for each in flows
            if not isinstance(each.form, PropertyForest)
        ]
        anchors.sort(key=lambda each: (bool(each[0].inputs), self.topology.distance(each[1], to)))
        best: Price | None = None
        for anchor, place in anchors:
            if best and self.is_late():
                return
            dear = best and not best.short and self.topology.distance(place, to) * rate >= best.total
            if dear and not everything:
                continue
            changes = self._widening(anchor.name, form)
            if changes is None:
                continue
            added = self._chain(anchor, place, form, to)
            last = added[-1].name if added else anchor.name
            price = self._priced(changes, added, (last,), to)
            if everything or best is None or price < best:
                best = price if best is None else min(best, price)
                yield _Brought(anchor, place, changes, added, price)

    def _best(self, form: Form, to: str) -> _Brought:
        return min(self._bring(form, to), key=lambda each: each.price)

    def _widening(self, name: str, need: Form) -> dict[str, Form] | None:
        """The flows to widen so that a flow provides a need; None where that is impossible or not allowed."""
        key = name, need
        if key not in self._widenings:
            changes: dict[str, Form] = {}
            self._widenings[key] = changes if self._widen(name, need, changes) else None
        return self._widenings[key]

    def _widen(self, name: str, need: Form, changes: dict[str, Form]) -> bool:
        flow = self.catalogue.flows[name]
        now = changes.get(name, flow.form)
        if provides(now, need):
            return True
        if self.strategy != "widening":
            return False
        wider = widened(now, need)
        if wider is None:
            return False
        changes[name] = wider
        if isinstance(wider, PropertyForest) and flow.before is None:
            sources = {self.catalogue.flows[each].streams: each for each in flow.inputs}
            return all(self._widen(sources[(tree.stream,)], tree, changes) for tree in self.fed_inputs(wider))
        return all(self._widen(each, wider, changes) for each in flow.inputs)

    def _chain(self, anchor: Flow, place: str, form: Form, to: str, number: int | None = None) -> tuple[Flow, ...]:
        """New flows from an anchor to a peer; a flow from a registered stream is made once, for all directions."""
        route = self.topology.route(place, to, self._full(form))
        steps: list[tuple[str | None, str]] = list(pairwise(route))
        if not anchor.inputs and steps and self.strategy != "shipping":
            steps.insert(0, (None, place))
        return _row((anchor.name,), form, steps, self.number if number is None else number)

    def _priced(self, changes: Mapping[str, Form], added: tuple[Flow, ...], reads: tuple[str, ...], at: str) -> Price:
        asking = Subscription("", at, at, "", QueryNeeds(()), reads)
        return priced(self.catalogue, changes, added, asking, self.topology, self.estimates)

    def _full(self, form: Form) -> frozenset[Link]:
        """The links without room for one more flow of a form."""
        rate = self.estimates.rate(form)
        return frozenset(
            link
            for link, most in self.topology.links.items()
            if most is not None and carried(self.catalogue, link, self.estimates) + rate > most
        )

    # --- all inputs -----------------------------------------------------------------------------------------

    def _ship(self, need: QueryNeeds, at: str) -> list[_Brought]:
        """Each input completely, from where it is registered, over links of its own."""
        found: list[_Brought] = []
        for each in need.inputs:
            anchor = self.catalogue.flows[each.stream]
            added = self._chain(anchor, anchor.at, whole(each.stream, each.schema), at)
            last = added[-1].name if added else anchor.name
            price = self._priced({}, added, (last,), at)
            found.append(_Brought(anchor, anchor.at, {}, added, price))
        return found

    def _together(self, brought: list[_Brought], at: str, need: QueryNeeds) -> Option:
        """Answer from inputs that were brought to the subscriber's peer."""
        changes, added, reads = self._gathered(brought)
        price = self._priced(changes, added, reads, at)
        words = " and ".join(map(_words, brought))
        if need.join is not None:
            words = f"joined at {at}, the subscriber's: {words}"
        elif need.stays is not None:
            words = f"joined at {at}, for {need.stays}: {words}"
        elif need.gathered is not None:
            words = f"windows made at {at}, for {need.gathered}: {words}"
        anchors = tuple(each.anchor.name for each in brought)
        return Option(words, anchors, changes, added, reads, price, self._share(brought))

    def _joined(self, brought: list[_Brought], peer: str, join: PropertyForest, at: str) -> Option:
        """Make the join at a peer, and send its tuples to the subscriber's."""
        changes, added, reads = self._gathered(brought)
        name = f"{'+'.join(dict.fromkeys(join.streams))}.{self.number + len(added)}"
        tuples = Flow(name, join, peer, None, reads)
        onwards = self._chain(tuples, peer, join, at, self.number + len(added) + 1)
        flows = (*added, tuples, *onwards)
        price = self._priced(changes, flows, (flows[-1].name,), at)
        words = f"joined at {peer}: {' and '.join(map(_words, brought))}; tuples to {at}"
        anchors = tuple(each.anchor.name for each in brought)
        return Option(words, anchors, changes, flows, (flows[-1].name,), price, self._share(brought))

    def _onwards(self, flow: Flow, changes: Mapping[str, Form], join: PropertyForest, at: str) -> Option:
        """Use tuples that are made for another subscription."""
        place = min(flow.places, key=lambda each: self.topology.distance(each, at))
        added = self._chain(flow, place, join, at)
        reads = (added[-1].name if added else flow.name,)
        price = self._priced(changes, added, reads, at)
        words = _words(_Brought(flow, place, changes, added, price))
        return Option(f"joined already: {words}", (flow.name,), changes, added, reads, price, shares=True)

    def _alongside(self, form: Form, at: str) -> Iterator[Option]:
        """Make begun windows or tuples once more from here on, and take their way, up to some peer on it."""
        begun = (each for each in self.catalogue.flows.values() if each.name in self.begun and not is_loose(each))
        for flow in begun if self.strategy != "shipping" else ():
            way = self.catalogue.way(flow)
            if not provides(flow.form, form) or flow.at == way[0].made_at or any(each.is_kept for each in way):
                continue
            if not all(is_loose(self.catalogue.flows[each]) for each in way[0].inputs):
                continue  # made of others that have begun
            behind = self._chain(flow, flow.at, flow.form, at)
            price = self._priced({}, behind, (behind[-1].name if behind else flow.name,), at)
            hops = [(each.before, each.at) for each in (*way, *behind) if each.before]
            on_it = [one for one, two in pairwise(hops) if one[1] == two[0]]  # others are read where they are made
            steps = [(None, way[0].made_at), *on_it, hops[-1]]
            added = _row(way[0].inputs, flow.form, steps, self.number)
            words = f"{flow.name} at {flow.at}, from here on"
            if behind:
                words += f", then {' - '.join((flow.at, *(each.at for each in behind)))}"
            yield Option(words, (flow.name,), {}, added, (added[-1].name,), price, shares=True)

    def _share(self, brought: list[_Brought]) -> bool:
        return self.strategy != "shipping" and all(
            each.anchor.inputs or (not each.added and self.catalogue.is_read(each.anchor.name)) for each in brought
        )

    def _gathered(self, brought: list[_Brought]) -> tuple[dict[str, Form], tuple[Flow, ...], tuple[str, ...]]:
        """The flows of several inputs under names of their own."""
        changes: dict[str, Form] = {}
        added: list[Flow] = []
        reads: list[str] = []
        for each in brought:
            changes.update(each.changes)
            chain = (
                self._chain(each.anchor, each.place, each.added[0].form, each.added[-1].at, self.number + len(added))
                if each.added
                else ()
            )
            added += chain
            reads.append(chain[-1].name if chain else each.anchor.name)
        return changes, tuple(added), tuple(reads)


def is_loose(flow: Flow) -> bool:
    """Whether a flow is stateless, so that it may be changed under its readers, and read by later subscriptions."""
    return not isinstance(flow.form, PropertyForest) and flow.form.window is None


def _row(inputs: tuple[str, ...], form: Form, steps: Iterable[tuple[str | None, str]], number: int) -> tuple[Flow, ...]:
    """New flows, each made of the one before it; `steps` are where each comes from and goes to."""
    streams = form.streams if isinstance(form, PropertyForest) else (form.stream,)
    made: list[Flow] = []
    for count, (one, two) in enumerate(steps):
        made.append(Flow(f"{'+'.join(dict.fromkeys(streams))}.{number + count}", form, two, one, inputs))
        inputs = (made[-1].name,)
    return tuple(made)


def _words(brought: _Brought) -> str:
    """`photons.2 at SP5, with 2 flows widened, then SP5 - SP7`"""
    anchor = brought.anchor
    text = f"{anchor.name} at {brought.place}"
    if brought.changes:
        count = len(brought.changes)
        text += f", with {count} flow{'' if count == 1 else 's'} widened"
    if brought.added:
        text += f", then {' - '.join(dict.fromkeys((brought.place, *(each.at for each in brought.added))))}"
    return text
