"""Regions as plain data, and back: what a stage leaves to the next epoch.

Bodies are numbered as they are found, outer ones first, and each is a list of its parts: pieces, frames and chains,
with the numbers of the bodies in them.
Sums are not kept; they follow from the pieces, inner bodies first.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from anabranch.algebra.display.ordered import V
from models.pipeline.bodies import Body, Chain, Frame, P, Version
from models.pipeline.qualifier import Qualifier
from models.pipeline.regions import Regions


def encode(regions: Regions[P, V]) -> tuple[Any, dict[Body[P, V], int]]:
    """The data, of which JSON can hold all, and the numbers of the bodies."""
    bodies = [regions.root]
    numbers = {regions.root: 0}

    def number(body: Body[P, V]) -> int:
        numbers[body] = len(bodies)
        bodies.append(body)
        return numbers[body]

    rows: list[Any] = []
    for body in bodies:  # grows meanwhile
        row: list[Any] = []
        for handle in body.parts:
            match regions.part(handle):
                case Chain() as chain:
                    asked = None if chain.qualifier is None else str(chain.qualifier)
                    lives = [
                        [str(each.start), None if each.end is None else str(each.end), each.shows, number(each.body)]
                        for each in chain.versions
                    ]
                    row.append([handle, "chain", asked, chain.context, sorted(chain.ids), lives])
                case Frame() as frame:
                    row.append([handle, "frame", regions.scale.encode(frame.piece), number(frame.inside)])
                case piece:
                    row.append([handle, "piece", regions.scale.encode(piece)])
        rows.append(row)
    return [str(regions.now), regions.next, rows], numbers


def decode(regions: Regions[P, V], data: Any) -> list[Body[P, V]]:
    """Fill regions that are empty yet; gives the bodies by their numbers."""
    now, regions.next, rows = data
    regions.now = Decimal(now)
    bodies: list[Body[P, V]] = [regions.root]
    for number, row in enumerate(rows):
        body = bodies[number]
        for handle, kind, *told in row:
            match kind:
                case "chain":
                    asked, context, ids, lives = told
                    chain = Chain(body, handle, None if asked is None else Qualifier.parse(asked), context)
                    regions.restore(handle, chain)
                    for id in ids:
                        regions.name(id, chain)
                    for start, end, shows, _ in lives:
                        version = Version(chain, Decimal(start), regions.scale.zero)
                        version.end = None if end is None else Decimal(end)
                        version.shows = shows
                        chain.versions.append(version)
                        bodies.append(version.body)
                case "frame":
                    frame = Frame(body, handle, regions.scale.decode(told[0]), regions.scale.zero)
                    regions.restore(handle, frame)
                    bodies.append(frame.inside)
                case _:
                    regions.restore(handle, regions.scale.decode(told[0]))
    for body, row in zip(reversed(bodies), reversed(rows), strict=True):
        for handle, *_ in row:
            body.parts.append(handle, _measured(regions, handle))
    regions.look_ahead()
    return bodies


def _measured(regions: Regions[P, V], handle: int) -> V:
    match regions.part(handle):
        case Chain() as chain:
            value = regions.scale.zero
            for version in chain.versions:
                if version.shows:
                    value = value + version.body.parts.total
            return value
        case Frame() as frame:
            frame.is_empty = regions.scale.is_empty(frame.inside.parts.total)
            return regions.framed(frame)
        case piece:
            return regions.scale.measure(piece)
