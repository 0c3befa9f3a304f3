"""A stream as it came: all elements of an epoch, read once more and written down again.

What is bad stays behind, where it was set aside; but accents that could not be read go along, for they leave paths in
doubt (LAWS 4.5), or where that cannot be, others that leave the same in doubt.
An element without a time of its own is given that of its first arrival (LAWS 1.3), if its stream declares none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.manifest import Manifests
from anabranch.spark.offsets import epoch_ranges
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.ranges import Range
from anabranch.spark.reading import RangeReader
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item, StreamElement
from anabranch.stream.parse import parse_root
from anabranch.stream.tree import STREAM_NAMESPACE, namespaces_in_scope
from anabranch.stream.wire import write, write_came, write_doubt

_MICROSECONDS = 1_000_000


def verbatim(checkpoint: Checkpoint, epoch: int, plan: Plan, stream: StreamPlan) -> Iterator[tuple[int, str]]:
    """The elements of a stream in an epoch, as text, each with the number of its partition."""
    carries = Manifests(checkpoint.manifests).load(epoch - 1).carries if epoch else {}
    root = parse_root(stream.root.encode())
    for reach in epoch_ranges(checkpoint, epoch):
        if reach.mark is None and reach.stream == stream.stream:
            before = carries.get(reach.key)
            carry = before.carry if before and before.number == reach.number else None
            for element in RangeReader(stream, root, plan.limits, reach, carry, accents=plan.accents):
                text = _text(element, stream, reach)
                if text is not None:
                    yield int(reach.partition), text


def _text(element: StreamElement | DeadLetter, stream: StreamPlan, reach: Range) -> str | None:
    has_none = stream.time is None and reach.arrived is not None and stream.partitions == 1
    came = Decimal(reach.arrived or 0) / _MICROSECONDS if has_none else None
    match element:
        case DeadLetter(raw=raw, doubts=doubts) if doubts and came is None and len(raw) < LONGEST_RAW:
            return raw
        case DeadLetter(doubts=doubts):
            return "".join(write_doubt(each, came) for each in doubts) if doubts else None
        case Item(at=None) if came is not None:
            return write_came(element, came)
        case Item(tree, at=Decimal() as at) if STREAM_NAMESPACE not in namespaces_in_scope(tree).values():
            return write_came(replace(element, at=None), at)  # it was told on its way here
        case _:
            return write(replace(element, at=came) if element.at is None else element)
