"""Where everything on the map is: boxes for super-peers, arrows for flows, and the names on them.

Boxes never overlap: they stand on a grid that is wide enough for the largest.
Several flows on one link run beside each other, and become thinner where there are too many.
A name stands on its arrow where nothing else does, or nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anabranch.network.catalogue import Catalogue, Flow
from anabranch.network.estimates import Form
from anabranch.network.planner import Planner
from anabranch.network.topology import Topology
from anabranch.sharing.explain.svg import shortened, width

COLOURS = ("#3b6ea5", "#c2703d", "#4d8f5b", "#8b5a9f", "#b24a57", "#2f8f95", "#9a7b2f", "#5f6fb8", "#a8558a", "#6b7a3a")
MARGIN, _GAP_X, _GAP_Y = 36.0, 90.0, 76.0
LINE, SMALL = 15.0, 11.0
_APART = 5.0
"""Between the arrows of one link, if there is room."""
_ROWS = 5
"""So many lines of what a peer does are shown."""
_WORDS = 26


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, by its upper left corner."""

    x: float
    y: float
    across: float
    down: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.across / 2, self.y + self.down / 2

    def overlaps(self, other: Box, room: float = 0.0) -> bool:
        """Whether two have anything in common, or are nearer than some room."""
        apart_x = self.x + self.across + room <= other.x or other.x + other.across + room <= self.x
        apart_y = self.y + self.down + room <= other.y or other.y + other.down + room <= self.y
        return not (apart_x or apart_y)

    def border(self, towards: tuple[float, float], room: float = 3.0) -> tuple[float, float]:
        """Where the way from its middle to a point leaves it."""
        (x, y), (to_x, to_y) = self.middle, towards
        dx, dy = to_x - x, to_y - y
        shares = [(self.across / 2 + room) / abs(dx)] if dx else []
        shares += [(self.down / 2 + room) / abs(dy)] if dy else []
        share = min([*shares, 1.0])
        return x + dx * share, y + dy * share


@dataclass(frozen=True)
class Arrow:
    """A flow on its link."""

    flow: Flow
    start: tuple[float, float]
    end: tuple[float, float]
    across: float
    colour: str
    label: Box | None
    """Where its name stands; None where there is no room."""


@dataclass(frozen=True)
class Map:
    """Where everything is."""

    boxes: Mapping[str, Box]
    lines: Mapping[str, tuple[str, ...]]
    arrows: tuple[Arrow, ...]
    size: tuple[float, float]


def layout(planner: Planner) -> Map:
    """Boxes on a grid that is wide enough for all of them, and arrows between."""
    topology, catalogue = planner.topology, planner.catalogue
    lines = {peer: tuple(_peer_lines(catalogue, peer)) for peer in topology.peers}
    across = max(max(width(each, SMALL) for each in (f"{peer}  ", *lines[peer])) for peer in topology.peers) + 24
    across = max(across, 92.0)
    down = 30 + LINE * max(1, max(map(len, lines.values())))
    boxes: dict[str, Box] = {}
    for peer, (x, y) in _places(topology).items():
        boxes[peer] = Box(MARGIN + x * (across + _GAP_X), MARGIN + y * (down + _GAP_Y), across, down)
    right = max(each.x + each.across for each in boxes.values()) + MARGIN
    bottom = max(each.y + each.down for each in boxes.values()) + MARGIN
    return Map(boxes, lines, _arrows(planner, boxes), (right, bottom))


def _places(topology: Topology) -> dict[str, tuple[float, float]]:
    """For each peer a column and a row, at least one apart from all others in one of them."""
    count = len(topology.peers)
    if topology.shape == "hypercube" and count <= 16:
        # bit by bit to the right, down, to the back as in figure 1, and a fourth time to a cube below
        directions = ((1.35, 0.0), (0.0, 1.35), (0.62, -0.62), (0.4, 2.4))
        placed = {
            peer: tuple(sum(directions[bit][axis] for bit in range(4) if number >> bit & 1) for axis in (0, 1))
            for number, peer in enumerate(topology.peers)
        }
        top = min(y for _, y in placed.values())
        spread = 1.9 if count > 4 else 1.0
        return {peer: (x * spread, (y - top) * spread) for peer, (x, y) in placed.items()}
    if topology.shape.startswith("grid of"):
        columns = int(topology.shape.split()[-1])
        return {peer: (float(number % columns), float(number // columns)) for number, peer in enumerate(topology.peers)}
    if topology.shape == "line":
        return {peer: (float(number), 0.0) for number, peer in enumerate(topology.peers)}
    if topology.shape == "star" and count > 1:
        around = _circle(topology.peers[1:])
        middle = max(x for x, _ in around.values()) / 2, max(y for _, y in around.values()) / 2
        return {topology.peers[0]: middle, **around}
    return _circle(topology.peers)


def _circle(peers: Iterable[str]) -> dict[str, tuple[float, float]]:
    names = tuple(peers)
    radius = max(1.2, len(names) / 3.6)
    return {
        peer: (
            radius * (1 - math.cos(2 * math.pi * number / len(names))),
            radius * (1 - math.sin(2 * math.pi * number / len(names))),
        )
        for number, peer in enumerate(names)
    }


def _peer_lines(catalogue: Catalogue, peer: str) -> list[str]:
    """What a peer does, in a few words."""
    found = [f"source of {name}" for name, flow in catalogue.flows.items() if not flow.inputs and flow.at == peer]
    joins = [each.name for each in catalogue.flows.values() if each.made_at == peer and len(each.inputs) > 1]
    made = [
        each.name
        for each in catalogue.flows.values()
        if each.made_at == peer and len(each.inputs) == 1 and not catalogue.is_copy(each)
    ]
    handed = [each for each in catalogue.hops if each.before == peer and catalogue.is_copy(each)]
    answers = [
        each.name if each.by == peer else f"{each.name} ({each.by})"
        for each in catalogue.subscriptions.values()
        if each.at == peer
    ]
    for verb, names in (("joins", joins), ("makes", made), ("answers", answers)):
        if names:
            found.append(shortened(f"{verb} {', '.join(names)}", _WORDS))
    if handed:
        found.append(f"hands on {len(handed)}")
    return found[:_ROWS]


def kinds(catalogue: Catalogue) -> dict[Form, list[Flow]]:
    """The flows on links, by what they carry."""
    found: dict[Form, list[Flow]] = {}
    for flow in catalogue.hops:
        found.setdefault(flow.form, []).append(flow)
    return found


def _arrows(planner: Planner, boxes: Mapping[str, Box]) -> tuple[Arrow, ...]:
    catalogue, estimates = planner.catalogue, planner.estimates
    colours = {form: COLOURS[number % len(COLOURS)] for number, form in enumerate(kinds(catalogue))}
    rates = [estimates.rate(flow.form) for flow in catalogue.hops]
    most = max(rates, default=1.0)
    by_link: dict[tuple[str, str], list[Flow]] = {}
    for flow in catalogue.hops:
        assert flow.before is not None
        by_link.setdefault(planner.topology.link(flow.before, flow.at), []).append(flow)
    found: list[Arrow] = []
    labels: list[Box] = []
    for flows in by_link.values():
        widths = [1.6 + 7.0 * math.sqrt(estimates.rate(flow.form) / most) for flow in flows]
        room = 0.7 * min(min(each.across, each.down) for each in boxes.values())
        fits = min(1.0, room / (sum(widths) + _APART * (len(flows) - 1)))
        widths = [each * fits for each in widths]
        shift = -(sum(widths) + _APART * fits * (len(flows) - 1)) / 2
        for flow, across in zip(flows, widths, strict=True):
            assert flow.before is not None
            one, two = boxes[flow.before], boxes[flow.at]
            side = _beside(boxes, planner.topology.link(flow.before, flow.at), shift + across / 2)
            shift += across + _APART * fits
            start, end = one.border(two.middle), two.border(one.middle)
            start = (start[0] + side[0], start[1] + side[1])
            end = (end[0] + side[0], end[1] + side[1])
            label = _room(flow.name, start, end, [*boxes.values(), *labels])
            labels += [label] if label else []
            found.append(Arrow(flow, start, end, across, colours[flow.form], label))
    return tuple(found)


def _beside(boxes: Mapping[str, Box], link: tuple[str, str], by: float) -> tuple[float, float]:
    """A shift across a link, the same way for both directions."""
    (x1, y1), (x2, y2) = boxes[link[0]].middle, boxes[link[1]].middle
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    return -(y2 - y1) / length * by, (x2 - x1) / length * by


def _room(name: str, start: tuple[float, float], end: tuple[float, float], taken: list[Box]) -> Box | None:
    """A place for a name on its arrow, where nothing else stands."""
    across, down = width(name, 10) + 4, 13.0
    for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78):
        x, y = start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
        box = Box(x - across / 2, y - down / 2, across, down)
        if not any(box.overlaps(each, 1.0) for each in taken):
            return box
    return None
