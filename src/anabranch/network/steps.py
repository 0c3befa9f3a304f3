"""From one plan to the next: what has to be done in a network that runs, and in which order.

The steps follow from the two catalogues alone, whatever led from one to the other: a subscription that came or went,
flows that were widened or narrowed.

1. New flows and new forms *begin*, from the streams downwards, so that whoever makes one has what it is made of.
2. A flow that is *replaced* has its new form from the next epoch of its maker on.
   By then its dependants have read all that was sent in the old one, and go over with it (`peers/team.py`); so
   nothing is lost, and nothing comes twice.
3. What nobody reads any more *ends*, from the subscribers upwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from anabranch.network.catalogue import Catalogue, Flow, Subscription


@dataclass(frozen=True)
class Begin:
    """A peer begins to make a flow, and sends it if it is for a neighbour."""

    flow: Flow


@dataclass(frozen=True)
class Replace:
    """A peer makes a flow in a new form; its dependants switch with it at the end of an epoch."""

    flow: Flow
    before: Flow
    dependants: tuple[str, ...]
    """The flows and subscriptions that read it, by name."""


@dataclass(frozen=True)
class Answer:
    """A subscription is answered out of these flows from now on; `before` are those it was answered out of."""

    subscription: Subscription
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cancel:
    """A subscription is answered no more."""

    subscription: Subscription


@dataclass(frozen=True)
class End:
    """A flow is made no more."""

    flow: Flow


Step: TypeAlias = Begin | Replace | Answer | Cancel | End


def steps(old: Catalogue, new: Catalogue) -> tuple[Step, ...]:
    """What leads from one catalogue to the next."""
    found: list[Step] = []
    for flow in new.downwards():
        known = old.flows.get(flow.name)
        if known is None:
            found.append(Begin(flow))
        elif known != flow:
            dependants = [each.name for each in new.readers[flow.name] if each.name in old.flows]
            dependants += [each.name for each in new.answered[flow.name] if each.name in old.subscriptions]
            found.append(Replace(flow, known, tuple(dependants)))
    for each in new.subscriptions.values():
        was = old.subscriptions.get(each.name)
        if was is None or was.reads != each.reads:
            found.append(Answer(each, was.reads if was else ()))
    found += [Cancel(each) for name, each in old.subscriptions.items() if name not in new.subscriptions]
    found += [End(each) for each in reversed(old.downwards()) if each.name not in new.flows]
    return tuple(found)


def step_text(step: Step) -> str:
    """A step in words."""
    match step:
        case Begin(flow):
            return f"begin {_where(flow)}, made of {' and '.join(flow.inputs) or 'nothing'}"
        case Replace(flow, before, dependants):
            told = f"; {', '.join(dependants)} switch at the end of an epoch" if dependants else ""
            moved = f", made of {' and '.join(flow.inputs)}" if flow.inputs != before.inputs else ""
            return f"replace {_where(flow)}{moved}{told}"
        case Answer(subscription):
            return f"answer {subscription.name} at {subscription.at} out of {' and '.join(subscription.reads)}"
        case Cancel(subscription):
            return f"cancel {subscription.name} at {subscription.at}"
        case End(flow):
            return f"end {_where(flow)}"


def _where(flow: Flow) -> str:
    return f"{flow.name} from {flow.before} to {flow.at}" if flow.before else f"{flow.name} at {flow.at}"
