"""The flows of the network: what each carries, where, made of what, and which subscriptions depend on it.

A *flow* is a stream as registered at a super-peer, or the stream that a super-peer makes of another flow and sends to a
neighbour, or the tuples of a join that a peer makes of several.
It can be read where it is made and where it goes.
A flow may also come to be *kept*: it goes over no link any more, and its readers get, under its name, what another flow
brings to their peer (`planner.py`).
So a stream that goes a long way is a chain of flows, one for each link, and each link carries only what is needed
behind it; where two flows are made of one, the stream forks.
A flow that equals its input is a *copy*, and costs its peer little.

A catalogue is immutable; a plan is the next one.
The steps from one to the next follow from the two alone:

1. New flows and new forms *begin*, from the streams downwards, so that each maker has its inputs.
2. A flow that is *replaced* has its new form from the next epoch of its maker on.
By then its dependants have read everything of the old form, and switch with it (`peers/team.py`); so nothing is lost or
duplicated.
3. A flow without readers *ends*, from the subscribers upwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

from anabranch.network.estimates import Estimates, Form
from anabranch.network.needs import QueryNeeds
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.render import render, render_join

T = TypeVar("T")

COPY_WEIGHT = 0.25
"""The weight of a byte that is copied, or was made at the same peer, because it is not parsed again."""


@dataclass(frozen=True)
class Flow:
    """A stream with a name, which can be read at the super-peer that makes it, and where it goes."""

    name: str
    form: Form
    at: str
    before: str | None = None
    """The neighbour that makes and sends it; None where it is registered, or joined, where it is read; `at` if kept."""
    inputs: tuple[str, ...] = ()
    """The flows it is made of, at the peer that makes it."""

    @property
    def made_at(self) -> str:
        """The super-peer that makes it."""
        return self.before or self.at

    @property
    def is_kept(self) -> bool:
        """Whether it is a copy of another flow at the peer where both are read."""
        return self.before == self.at

    @property
    def places(self) -> tuple[str, ...]:
        """Where it can be read: at its end, and at the peer that makes it."""
        return (self.at,) if self.before is None else (self.at, self.before)

    @property
    def streams(self) -> tuple[str, ...]:
        """The registered streams that it comes from."""
        return self.form.streams if isinstance(self.form, PropertyForest) else (self.form.stream,)

    @cached_property
    def abstract(self) -> str:
        """The abstract query that makes it (sharing paper, 3.3)."""
        return render_join(self.form) if isinstance(self.form, PropertyForest) else render(self.form)


@dataclass(frozen=True)
class Subscription:
    """A query that is answered at a super-peer, from the flows that it reads there."""

    name: str
    at: str
    by: str
    text: str
    need: QueryNeeds
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalogue:
    """All flows and subscriptions, by name, in the order in which they came."""

    flows: Mapping[str, Flow]
    subscriptions: Mapping[str, Subscription]

    @cached_property
    def readers(self) -> Mapping[str, tuple[Flow, ...]]:
        """By flow: the flows made of it."""
        return _by_name(self.flows, ((name, flow) for flow in self.flows.values() for name in flow.inputs))

    @cached_property
    def answered(self) -> Mapping[str, tuple[Subscription, ...]]:
        """By flow: the subscriptions that it answers."""
        return _by_name(self.flows, ((name, each) for each in self.subscriptions.values() for name in each.reads))

    @property
    def hops(self) -> Iterator[Flow]:
        """The flows that go over a link: the arrows of the paper's figure 1."""
        return (each for each in self.logged if not each.is_kept)

    @property
    def logged(self) -> Iterator[Flow]:
        """The flows that have a log, from which they are read: those that go over a link, and those that are kept."""
        return (each for each in self.flows.values() if each.before is not None)

    def is_copy(self, flow: Flow) -> bool:
        """Whether a flow is a copy of its input."""
        return len(flow.inputs) == 1 and self.flows[flow.inputs[0]].form == flow.form

    def is_join(self, flow: Flow) -> bool:
        """Whether a flow is made by joining others."""
        return isinstance(flow.form, PropertyForest) and not any(
            isinstance(self.flows[name].form, PropertyForest) for name in flow.inputs
        )

    def is_read(self, name: str) -> bool:
        """Whether a flow has readers."""
        return bool(self.readers[name] or self.answered[name])

    def behind(self, name: str) -> tuple[str, ...]:
        """All subscriptions that depend on a flow, by name."""
        return tuple(dict.fromkeys(answer.name for each in self.below(name) for answer in self.answered[each]))

    def below(self, name: str) -> tuple[str, ...]:
        """A flow and all flows made of it, directly or not."""
        return _all_from(name, lambda each: (reader.name for reader in self.readers[each]))

    def above(self, name: str) -> tuple[str, ...]:
        """All flows that a flow is made of, directly or not."""
        return _all_from(name, lambda each: self.flows[each].inputs)[1:]

    def way(self, flow: Flow) -> list[Flow]:
        """A flow and what it is a copy of, from the first on, which is made of something else."""
        found = [flow]
        while found[0].inputs and self.is_copy(found[0]):
            found.insert(0, self.flows[found[0].inputs[0]])
        return found

    def copies(self, name: str) -> tuple[Flow, ...]:
        """A flow and all copies of it, and of these."""
        found = _all_from(name, lambda each: (reader.name for reader in self.readers[each] if self.is_copy(reader)))
        return tuple(self.flows[each] for each in found)

    def downwards(self) -> list[Flow]:
        """The flows, each after its inputs."""
        found: dict[str, Flow] = {}
        ahead = [each for each in self.flows.values() if not each.inputs]
        while ahead:
            flow = ahead.pop(0)
            if flow.name not in found and all(each in found for each in flow.inputs):
                found[flow.name] = flow
                ahead += self.readers[flow.name]
        return list(found.values())

    def changed(self, flows: Iterable[Flow] = (), subscriptions: Iterable[Subscription] = ()) -> Catalogue:
        """The next catalogue, with new or changed flows and subscriptions."""
        return Catalogue(
            {**self.flows, **{each.name: each for each in flows}},
            {**self.subscriptions, **{each.name: each for each in subscriptions}},
        )

    def without(self, names: Iterable[str]) -> Catalogue:
        """The next catalogue, without some subscriptions and the flows that only they needed."""
        gone = set(names)
        left = {name: each for name, each in self.subscriptions.items() if name not in gone}
        flows = dict(self.flows)
        while True:
            read = {name for each in flows.values() for name in each.inputs}
            read |= {name for each in left.values() for name in each.reads}
            unread = [name for name, each in flows.items() if each.inputs and name not in read]
            if not unread:
                return Catalogue(flows, left)
            for name in unread:
                del flows[name]

    # --- costs ----------------------------------------------------------------------------------------------

    def traffic(self, estimates: Estimates) -> dict[tuple[str, str], float]:
        """Bytes per second over each link, by direction."""
        found: defaultdict[tuple[str, str], float] = defaultdict(float)
        for each in self.hops:
            found[each.made_at, each.at] += estimates.rate(each.form)
        return dict(found)

    def load(self, estimates: Estimates) -> dict[str, float]:
        """Bytes per second that the operators of each peer read."""
        found: defaultdict[str, float] = defaultdict(float)
        for flow in self.flows.values():
            if flow.inputs:
                found[flow.made_at] += load_of(flow, self.flows, estimates)
        for each in self.subscriptions.values():
            found[each.at] += load_of(each, self.flows, estimates)
        return dict(found)


def load_of(reader: Flow | Subscription, flows: Mapping[str, Flow], estimates: Estimates) -> float:
    """Bytes per second that a peer reads to make a flow, or an answer."""
    place = reader.made_at if isinstance(reader, Flow) else reader.at
    names = reader.inputs if isinstance(reader, Flow) else reader.reads
    load = 0.0
    for flow in (flows[name] for name in names):
        copied = isinstance(reader, Flow) and flow.form == reader.form
        at_hand = copied or (bool(flow.inputs) and flow.made_at == place)
        load += estimates.rate(flow.form) * (COPY_WEIGHT if at_hand else 1)
    return load


def _by_name(names: Iterable[str], pairs: Iterable[tuple[str, T]]) -> dict[str, tuple[T, ...]]:
    found: dict[str, list[T]] = {name: [] for name in names}
    for name, each in pairs:
        found[name].append(each)
    return {name: tuple(each) for name, each in found.items()}


def _all_from(name: str, following: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """A name and all that follow from it."""
    found = {name: None}
    ahead = [name]
    while ahead:
        fresh = [each for each in following(ahead.pop()) if each not in found]
        found |= dict.fromkeys(fresh)
        ahead += fresh
    return tuple(found)


@dataclass(frozen=True)
class BeginFlow:
    """A peer begins to make a flow, and sends it if it is for a neighbour."""

    flow: Flow


@dataclass(frozen=True)
class ReplaceFlow:
    """A peer makes a flow in a new form; its dependants switch with it at the end of an epoch."""

    flow: Flow
    before: Flow
    dependants: tuple[str, ...]
    """The flows and subscriptions that read it, by name."""


@dataclass(frozen=True)
class AnswerQuery:
    """A subscription is answered from these flows from now on, and before from the flows `before`."""

    subscription: Subscription
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class CancelQuery:
    """A subscription ends."""

    subscription: Subscription


@dataclass(frozen=True)
class EndFlow:
    """A flow ends."""

    flow: Flow


Step: TypeAlias = BeginFlow | ReplaceFlow | AnswerQuery | CancelQuery | EndFlow


def steps(old: Catalogue, new: Catalogue) -> tuple[Step, ...]:
    """The steps from one catalogue to the next."""
    found: list[Step] = []
    for flow in new.downwards():
        known = old.flows.get(flow.name)
        if known is None:
            found.append(BeginFlow(flow))
        elif known != flow:
            dependants = [each.name for each in new.readers[flow.name] if each.name in old.flows]
            dependants += [each.name for each in new.answered[flow.name] if each.name in old.subscriptions]
            found.append(ReplaceFlow(flow, known, tuple(dependants)))
    for each in new.subscriptions.values():
        was = old.subscriptions.get(each.name)
        if was is None or was.reads != each.reads:
            found.append(AnswerQuery(each, was.reads if was else ()))
    found += [CancelQuery(each) for name, each in old.subscriptions.items() if name not in new.subscriptions]
    found += [EndFlow(each) for each in reversed(old.downwards()) if each.name not in new.flows]
    return tuple(found)


def step_text(step: Step) -> str:
    """A step in words."""
    match step:
        case BeginFlow(flow):
            return f"begin {_where(flow)}, made of {' and '.join(flow.inputs) or 'nothing'}"
        case ReplaceFlow(flow, before, dependants):
            told = f"; {', '.join(dependants)} switch at the end of an epoch" if dependants else ""
            moved = f", made of {' and '.join(flow.inputs)}" if flow.inputs != before.inputs else ""
            return f"replace {_where(flow)}{moved}{told}"
        case AnswerQuery(subscription):
            return f"answer {subscription.name} at {subscription.at} out of {' and '.join(subscription.reads)}"
        case CancelQuery(subscription):
            return f"cancel {subscription.name} at {subscription.at}"
        case EndFlow(flow):
            return f"end {_where(flow)}"


def _where(flow: Flow) -> str:
    goes = flow.before and not flow.is_kept
    return f"{flow.name} from {flow.before} to {flow.at}" if goes else f"{flow.name} at {flow.at}"
