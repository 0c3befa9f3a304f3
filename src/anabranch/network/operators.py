"""The operators of peers: those that make a flow from others, and those that make an answer.

All except windows are queries, as text, over the flows that are read, each under a name: a peer only runs queries.

* A flow that equals its input is handed on.
* Items are made from items, and tuples from items, by the abstract query of the flow; tuples from tuples with more
content by the same query over tuples (`branch/remote/queries.py`).
* Windows are made from items, or combined from smaller ones (SELECTWINDOWS).
A window is sent as its number and for each aggregate a partial that can be merged: for an average a sum and a count
(LAWS 2.2 and case 8), exactly, and where a value has failed, the failure (`branch/remote/lines.py`).
* A subscription runs its own query over items, and over tuples with its loops inside them; over windows it runs it with
their values in place of its aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.language import check, parse, print_query
from anabranch.network.catalogue import Catalogue, Flow, Subscription
from anabranch.network.estimates import Form
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.loops import over_tuples
from anabranch.sharing.remote import CombineWindows, MakeWindows, ReadWindows
from anabranch.sharing.restructure import sent_windows
from anabranch.sharing.tree import PropertyTree

TUPLES = "tuples"
"""The name under which a flow of tuples is read."""


@dataclass(frozen=True, slots=True)
class HandOn:
    """Hand the flow on unchanged."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A query over the flows that are read, under these names in their order."""

    text: str
    names: tuple[str, ...]
    sends: bool = False
    """Whether its results are tuples for another peer: those for which it fails are sent, too."""


Operator: TypeAlias = HandOn | Ask | MakeWindows | CombineWindows
Answering: TypeAlias = Ask | ReadWindows


def arriving(catalogue: Catalogue, reader: Flow | Subscription) -> tuple[str, ...]:
    """The flows that the reader depends on and that reach its peer from elsewhere, or are registered there.

    A plan may make one flow from another that the same peer makes; to avoid reading what it has just written, the peer
    makes it from these, which have all that is needed, too.
    A flow that is kept is read as it stands.
    """
    place = reader.made_at if isinstance(reader, Flow) else reader.at

    def behind(names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            flow = catalogue.flows[name]
            if flow.inputs and flow.made_at == place and not flow.is_kept:
                yield from behind(flow.inputs)
            else:
                yield name

    return tuple(dict.fromkeys(behind(reader.inputs if isinstance(reader, Flow) else reader.reads)))


def operator(catalogue: Catalogue, flow: Flow, given: Sequence[str] | None = None) -> Operator:
    """The operator that makes a flow from its inputs, or from others that are given; a registered stream has none."""
    assert flow.inputs
    forms = [catalogue.flows[name].form for name in (flow.inputs if given is None else given)]
    if forms == [flow.form]:
        return HandOn()
    match flow.form, forms[0]:
        case PropertyForest(), PropertyForest() as tuples:
            return replace(_over_tuples(flow.abstract, tuples), sends=True)
        case PropertyForest(), _:
            return Ask(flow.abstract, _streams(forms), sends=True)
        case PropertyTree() as tree, PropertyTree() as source if tree.window is not None:
            return MakeWindows(tree) if source.window is None else CombineWindows(tree, source)
        case _:
            return Ask(flow.abstract, _streams(forms))


def answering(catalogue: Catalogue, subscription: Subscription, given: Sequence[str] | None = None) -> Answering:
    """The operator that makes the answer of a subscription, from the flows it reads, or from others that are given."""
    forms = [catalogue.flows[name].form for name in (subscription.reads if given is None else given)]
    match forms[0]:
        case PropertyForest() as tuples:
            return _over_tuples(subscription.text, tuples)
        case PropertyTree(window=None):
            return Ask(subscription.text, _streams(forms))
        case PropertyTree() as source:
            query = check(parse(subscription.text), subscription.text).query
            return ReadWindows(CombineWindows(sent_windows(query, source.schema), source), subscription.text)


def _over_tuples(text: str, tuples: PropertyForest) -> Ask:
    query = check(parse(text), text).query
    return Ask(print_query(over_tuples(query, tuples, TUPLES)), (TUPLES,))


def _streams(forms: Sequence[Form]) -> tuple[str, ...]:
    return tuple(each.stream for each in forms if isinstance(each, PropertyTree))


def operator_text(made: Operator | Answering) -> str:
    """An operator in a few words."""
    match made:
        case HandOn():
            return "hand on"
        case Ask(_, names, sends):
            verb = "query" if not sends else "join" if names != (TUPLES,) else "select"
            return f"{verb} over {' and '.join(names)}"
        case MakeWindows():
            return "make windows"
        case CombineWindows():
            found = made.selection
            return f"SELECTWINDOWS({found.count}, {found.every}, {found.step})" if found else "select windows"
        case ReadWindows(windows):
            return f"{operator_text(windows)}, then the rest of the query"
