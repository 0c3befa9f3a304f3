"""A plan over the partitions of its streams: a stream is the Union of them (LAWS 1.4)."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.algebra.operators.union import Union
from anabranch.algebra.plans.interpret import Apply, Plan, StreamSource


def source_of(stream: str, partition: int) -> str:
    """What a partition is called in a plan."""
    return f"{stream}/{partition}"


def partitioned(plan: Plan, partitions: Mapping[str, int]) -> Plan:
    """The plan over the partitions of its streams, so many of each; they are called `stream/0` and so on."""
    match plan:
        case StreamSource(name):
            found = tuple(StreamSource(source_of(name, number)) for number in range(partitions[name]))
            return found[0] if len(found) == 1 else Apply(Union(len(found)), found)
        case Apply(operator, below):
            return Apply(operator, tuple(partitioned(each, partitions) for each in below))
