"""Plans in words and as data: the flows, the decisions and their reasons, and the prices of other plans.

Rates are as measured where a network has run, else as planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch.network.catalogue import Catalogue, Flow, step_text
from anabranch.network.estimates import Form, sent_outputs
from anabranch.network.operators import answering, operator, operator_text
from anabranch.network.options import Option
from anabranch.network.planner import Decision, Planner
from anabranch.predicate import EVERYTHING
from anabranch.sharing.forest import PropertyForest, labels
from anabranch.sharing.render import window_text
from anabranch.sharing.tree import ITEM, PropertyTree, aggregate_label, condition_text, joined_text, union_of
from anabranch.values.objects.by_type import shown


@dataclass(frozen=True)
class Rates:
    """Rates of flows by name, and the share of each peer in all the work."""

    flows: Mapping[str, float]
    works: Mapping[str, float]
    measured: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    """By stream: who registered it."""

    def of(self, flow: Flow) -> float:
        """Bytes per second of a flow; one that has not begun yet has none."""
        return self.flows.get(flow.name, 0.0)


def planned(planner: Planner, sources: Mapping[str, str] | None = None) -> Rates:
    """The rates that the samples predict."""
    catalogue, estimates = planner.catalogue, planner.estimates
    flows = {name: estimates.rate(flow.form) for name, flow in catalogue.flows.items()}
    return Rates(flows, parts(catalogue.load(estimates)), sources=sources or {})


def parts(amounts: Mapping[str, float]) -> dict[str, float]:
    """Each amount as a share of all."""
    whole = sum(amounts.values()) or 1.0
    return {name: amount / whole for name, amount in amounts.items()}


def rate_text(rate: float) -> str:
    """`237 B/s`, `1.2 kB/s`, `34 MB/s`"""
    for unit in ("B", "kB", "MB", "GB"):
        if rate < 999.5 or unit == "GB":
            break
        rate /= 1_000
    return f"{rate:.1f} {unit}/s" if unit != "B" and rate < 9.95 else f"{rate:,.0f} {unit}/s"


MOST_OTHERS = 5
"""The most rejected plans that are shown."""


def carries(form: Form) -> str:
    """The content of a flow, in one line.

    `ra, dec, en where en >= 1.3`, `avg(en) |det_time diff 20 step 10|`,
    `tuples of photon1 (en) |count 20| and photon2 (phc) |count 10| where photon1/en >= photon2/en`
    """
    if isinstance(form, PropertyForest):
        called = labels(form.trees)
        inputs = {tree.input: (tree.item, name) for tree, name in zip(form.trees, called, strict=True)}
        met = " and ".join(_met(tree, name) for tree, name in zip(form.trees, called, strict=True))
        return f"tuples of {met}{_where(joined_text(form.guard, inputs), form.guard == EVERYTHING)}"
    if any(len(each.path) < ITEM for each in form.outputs):
        return f"all of {form.stream}"
    if form.window or form.aggregates:
        values = ", ".join(map(aggregate_label, form.aggregates))
        window = form.window
        if window is None:
            return f"{values} of {form.stream}"
        pre = condition_text(window.pre, window.path)
        return f"{values} {window_text(window)}{_where(pre, window.pre == EVERYTHING)}"
    names = ", ".join("/".join(each.path[ITEM:]) or each.path[-1] for each in sent_outputs(form))
    guard = union_of(each.condition for each in form.outputs)
    items = {each.path[:ITEM] for each in form.outputs}
    item = next(iter(items)) if len(items) == 1 else ()
    return f"{names}{_where(shown(condition_text(guard, item)), guard == EVERYTHING)}"


def _met(tree: PropertyTree, name: str) -> str:
    """One input of a join: what is sent of its items, and its window."""
    paths = ["/".join(each.path[ITEM:]) for each in tree.outputs if each.whole]
    parts = f" ({', '.join(paths)})" if paths and all(paths) else ""
    return f"{name}{parts}{f' {window_text(tree.window)}' if tree.window else ''}"


def _where(text: str, always: bool) -> str:
    return "" if always else f" where {text}"


# --- a decision -------------------------------------------------------------------------------------------


def decision_text(decision: Decision) -> Iterator[str]:
    """A decision, line by line."""
    chosen = decision.chosen
    if chosen is None:
        yield decision.about
    else:
        late = "" if decision.complete else ", then time was up"
        yield f"{decision.about}: {counted(decision.looked_at, 'plan')} priced in {decision.seconds:.3f} s{late}"
        yield f"  chosen, {_price_text(chosen)}"
        for option in decision.others[:MOST_OTHERS]:
            yield f"  not, {_price_text(option)}"
        left = decision.looked_at - 1 - len(decision.others[:MOST_OTHERS])
        if left > 0:
            yield f"  nor {counted(left, 'other')}, which cost more"
    if decision.narrowed:
        yield f"  narrowed: {', '.join(decision.narrowed)}"
    if decision.moved:
        yield f"  planned again, which makes all cheaper: {', '.join(decision.moved)}"
    for number, step in enumerate(decision.steps, 1):
        yield f"  {number}. {step_text(step)}"


def _price_text(option: Option) -> str:
    price = option.price
    short = f", {price.short:,.0f} too much for links" if price.short else ""
    return f"price {price.total:,.0f} ({price.traffic:,.0f} on links, {price.load:,.0f} read{short}): {option.words}"


def decision_json(decision: Decision) -> dict[str, Any]:
    """The same as data."""
    return {
        "about": decision.about,
        "chosen": _option_json(decision.chosen) if decision.chosen else None,
        "others": [_option_json(each) for each in decision.others],
        "plans priced": decision.looked_at,
        "seconds": round(decision.seconds, 6),
        "complete": decision.complete,
        "narrowed": list(decision.narrowed),
        "moved": list(decision.moved),
        "steps": [{"step": words.partition(" ")[0], "words": words} for words in map(step_text, decision.steps)],
    }


def _option_json(option: Option) -> dict[str, Any]:
    price = option.price
    return {
        "plan": option.words,
        "price": round(price.total, 1),
        "bytes per second on links": round(price.traffic, 1),
        "bytes per second read": round(price.load, 1),
        "too much for links": round(price.short, 1),
        "begins at": list(option.anchors),
        "widened": list(option.changes),
        "shares": option.shares,
    }


# --- the network as it is planned -------------------------------------------------------------------------


def plan_text(planner: Planner, rates: Rates | None = None) -> Iterator[str]:
    """All flows and subscriptions, peer by peer, and what each link carries."""
    catalogue = planner.catalogue
    rates = rates or planned(planner)
    hops = list(catalogue.hops)
    yield (
        f"{planner.strategy}: {counted(len(catalogue.subscriptions), 'subscription')}, "
        f"{counted(len(hops), 'flow')} on links, {sum(map(rates.of, hops)):,.0f} bytes per second, "
        f"{'measured' if rates.measured else 'estimated'}"
    )
    for peer in planner.topology.peers:
        works = list(peer_works(catalogue, peer))
        if works:
            yield f"{peer}, {100 * rates.works.get(peer, 0.0):.0f} % of the work"
            yield from (f"  {each}" for each in works)
    told: dict[Form, str] = {}
    for flow in hops:
        same = told.setdefault(flow.form, flow.name)
        said = carries(flow.form) if same == flow.name else f"the same as {same}"
        yield f"{flow.before} - {flow.at}: {flow.name}, {rates.of(flow):,.0f} bytes per second: {said}"


def peer_works(catalogue: Catalogue, peer: str) -> Iterator[str]:
    """The work of a super-peer."""
    for flow in catalogue.flows.values():
        if flow.made_at != peer:
            continue
        if not flow.inputs:
            yield f"has {flow.name}"
        elif catalogue.is_copy(flow):
            verb, on = ("reads", "") if flow.is_kept else ("hands", " on")
            yield f"{verb} {flow.inputs[0]}{on} as {flow.name}"
        else:
            yield f"{'joins' if catalogue.is_join(flow) else 'makes'} {flow.name} of {' and '.join(flow.inputs)}"
    for each in catalogue.subscriptions.values():
        if each.at == peer:
            yield f"answers {each.name} out of {' and '.join(each.reads)}"


def plan_json(planner: Planner) -> dict[str, Any]:
    """The same as data."""
    catalogue, estimates = planner.catalogue, planner.estimates
    load = catalogue.load(estimates)
    return {
        "strategy": planner.strategy,
        "peers": [
            {
                "name": peer,
                "bytes per second read": round(load.get(peer, 0.0), 1),
                "works": [*peer_works(catalogue, peer)],
            }
            for peer in planner.topology.peers
        ],
        "links": [
            {"from": one, "to": two, "bytes per second": round(rate, 1)}
            for (one, two), rate in catalogue.traffic(estimates).items()
        ],
        "flows": [
            {
                "name": flow.name,
                "from": flow.before,
                "at": flow.at,
                "made of": list(flow.inputs),
                "bytes per second": round(estimates.rate(flow.form), 1),
                "carries": carries(flow.form),
                "for": list(catalogue.behind(flow.name)),
                "operator": operator_text(operator(catalogue, flow)) if flow.inputs else None,
                "query": flow.abstract if flow.inputs else None,
            }
            for flow in catalogue.flows.values()
        ],
        "subscriptions": [
            {
                "name": each.name,
                "at": each.at,
                "by": each.by,
                "reads": list(each.reads),
                "operator": operator_text(answering(catalogue, each)),
            }
            for each in catalogue.subscriptions.values()
        ],
    }


def counted(number: int, what: str) -> str:
    """`1 flow`, `2 flows`"""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
