"""Late subscriptions join the branches of earlier ones, as soon as one state is enough for both.

A subscription that comes late to a window or join has less behind it than an earlier one with the same query (LAWS
3.6), so it begins with a branch of its own.
When the windows have closed, or the items were forgotten, that only the earlier one had, both would answer alike for
ever: then the next plan lets the later one join the earlier branch, and its own ends.

Each shard gives the *futures* of queries that several branches answer (`branch/futures.py`), and the manifest keeps
them: so who joins whom follows from the last epoch, and an epoch that is run again after a crash finds the same.
What a branch has followed of the evolution of its streams is compared here, by their logs.

Not compared are displays, which show what was there when they began; answers that are recorded with their moments; and
queries that wait for the end.
What is made of windows or tuples that come from other peers is not compared either; whoever makes these here is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.evolution.views import KnownLog, known_log
from anabranch.spark.plan.branches import twins_like
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.kinds import read_query
from anabranch.spark.plan.kinds.kind import Functions, QueryContext
from anabranch.storage import Location


def joined(plan: Plan, last: Manifest, evolution: Location, functions: Functions) -> Plan:
    """The plan of the last epoch, after which some subscriptions join earlier branches; often the same plan.

    The logs of streams are in the folder `evolution`.
    """
    equal = _equal_futures(plan, last)
    moved = {each.id: each for each in _moved(plan, last, equal, evolution, functions)} if equal else {}
    if not moved:
        return plan
    return replace(plan, subscriptions=tuple(moved.get(each.id, each) for each in plan.subscriptions))


def served_alike(checkpoint: Checkpoint, names: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Some subscriptions, by what they are called here, in groups that answer alike behind the newest epoch."""
    last, plan = Manifests(checkpoint.manifests).newest(), Plans(checkpoint).newest()
    if last is None or plan is None:
        return []
    over = plan.ended.keys() | last.aborted.keys()
    asked = [each for each in plan.subscriptions if each.name in names and each.id not in over]
    found: dict[int, list[str]] = {}
    for each in joined(replace(plan, subscriptions=tuple(asked)), last, checkpoint.evolution, ()).subscriptions:
        found.setdefault(each.branch, []).append(names[each.name])
    return [tuple(each) for each in found.values()]


def _equal_futures(plan: Plan, last: Manifest) -> dict[str, list[int]]:
    """The branches with equal futures, by these, the earliest first."""
    found: dict[str, list[int]] = {}
    for number in sorted(last.states):
        if number in plan.served:
            for future in last.states[number].futures.values():
                found.setdefault(future, []).append(number)
    return {future: numbers for future, numbers in found.items() if len(numbers) > 1}


def _moved(
    plan: Plan, last: Manifest, equal: Mapping[str, list[int]], evolution: Location, functions: Functions
) -> Iterator[Registration]:
    """The subscriptions that join earlier branches, as they are from then on."""
    known = QueryContext({stream.name: stream for stream in plan.streams}, functions, not plan.finite)
    logs: dict[str, KnownLog] = {}
    for stream in plan.streams:
        logs[stream.name] = known_log(evolution, stream, last.evolution.get(stream.name))
    for future, numbers in equal.items():
        earlier: list[Registration] = []
        for number in numbers:
            served = [each for id in plan.served[number] if not (each := plan.by_id[id]).aborted]
            mine = [each for each in served if last.states[number].futures.get(read_query(each, known).key) == future]
            host = next((each for each in earlier if mine and _are_alike(each, mine[0], logs)), None)
            if host is None:
                earlier += mine[:1]
                continue
            for each in mine:
                yield replace(each, joined=host.branch, begins=host.opened, begins_late=host.missed)


def _are_alike(one: Registration, other: Registration, logs: Mapping[str, KnownLog]) -> bool:
    """Whether the streams' evolution means the same to the branches of two subscriptions."""
    if not one.family or twins_like(one) != twins_like(other) or one.timed or other.timed:
        return False
    return all(logs[name].sees_alike(_begin(one, name), _begin(other, name)) for name in one.streams)


def _begin(asked: Registration, stream: str) -> int:
    """The epoch from which on a branch has seen the accents of a stream; -1 for the beginning."""
    return asked.opened if stream in asked.missed else -1
