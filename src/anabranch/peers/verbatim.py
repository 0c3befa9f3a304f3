"""A stream as it came: all elements of an epoch, read once more and written down again.

What is bad stays behind, where it was set aside; accents that could not be read go along, for they leave paths in doubt
(LAWS 4.5).
An element without a time of its own is given that of its first arrival (LAWS 1.3), if its stream declares none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.manifest import Manifests
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.ranges import Range
from anabranch.spark.reading import RangeReader
from anabranch.spark.survey import epoch_ranges
from anabranch.stream.elements import Accent, DeadLetter, Punctuation, StreamElement
from anabranch.stream.parse import parse_root
from anabranch.stream.wire import write

_MICROSECONDS = 1_000_000


def verbatim(checkpoint: Checkpoint, epoch: int, plan: Plan, stream: StreamPlan) -> Iterator[tuple[int, str]]:
    """The elements of a stream in an epoch, as text, each with the number of its partition."""
    carries = Manifests(checkpoint.manifests).load(epoch - 1).carries if epoch else {}
    root = parse_root(stream.root.encode())
    for reach in epoch_ranges(checkpoint, epoch):
        if reach.mark is None and reach.stream == stream.stream:
            before = carries.get(reach.key)
            carry = before.carry if before and before.number == reach.number else None
            for element in RangeReader(stream, root, plan.limits, reach, carry):
                text = _text(element, stream, reach)
                if text is not None:
                    yield int(reach.partition), text


def _text(element: StreamElement | DeadLetter, stream: StreamPlan, reach: Range) -> str | None:
    match element:
        case DeadLetter(raw=raw):
            return raw if element.doubts else None
        case Accent() | Punctuation():
            return write(element)
    is_dated = element.at is not None or stream.time is not None or reach.arrived is None or stream.partitions > 1
    return write(element if is_dated else replace(element, at=Decimal(reach.arrived or 0) / _MICROSECONDS))
