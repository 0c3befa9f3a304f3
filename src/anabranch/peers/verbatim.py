"""A stream as it came: all elements of an epoch, read once more and written down again.

What is bad stays behind, where it was set aside; but accents that could not be read go along, for they leave paths in
doubt (LAWS 4.5), or where that cannot be, others that leave the same in doubt.
An element without a time of its own is given that of its first arrival (LAWS 1.3), if its stream declares none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

from anabranch.errors import BadItem
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.intake.order_logs import epoch_ranges
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.epoch_plan import Plan, StreamPlan
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item, StreamElement
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.reading.wire import write, write_came, write_doubt
from anabranch.stream.tree import STREAM_NAMESPACE

_MICROSECONDS = 1_000_000
_OPENING = re.compile(r"<(?:([^\s/>:]+):)?[^\s/>:]+")


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
        case DeadLetter(raw=raw, doubts=doubts):
            alone = _alone(raw) if doubts and came is None and len(raw) < LONGEST_RAW else None
            return alone or "".join(write_doubt(each, came) for each in doubts) or None
        case Item(at=at) if (time := came if at is None else at) is not None:
            return write_came(element, time)
        case _:
            return write(replace(element, at=came) if element.at is None else element)


def _alone(raw: str) -> str | None:
    """An accent that can be read without the root that was around it, which may have declared its prefix.

    None where there is none.
    """
    front = _OPENING.match(raw)
    if front is None:
        return None
    declaration = f' xmlns{":" if front[1] else ""}{front[1] or ""}="{STREAM_NAMESPACE}"'
    for text in (raw, f"{front[0]}{declaration}{raw[front.end() :]}"):
        with suppress(BadItem):
            if parse_item(text.encode(), DOCUMENT).name.uri == STREAM_NAMESPACE:
                return text
    return None
