"""The map: super-peers with their work, links, and the streams on them (figure 1 of the sharing paper, alive).

A flow is an animated arrow, the faster the more it carries; its width is the root of its rate, so that ten times as
much still fits in; its colour is that of its content: a stream that is handed on keeps its colour, and changes it where
something was made from it.
The bar at the foot of a peer is its share of all the work.
The legend explains the colours; tooltips show more.

Boxes never overlap: they stand on a grid that is wide enough for the largest, each as high as its text.
Several flows on one link run in parallel, and become thinner where there are too many.
A name is placed on its arrow where there is room, or left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anabranch.network.catalogue import Catalogue, Flow
from anabranch.network.estimates import Form
from anabranch.network.explanation import Rates, carries, counted, planned, rate_text
from anabranch.network.planner import Planner
from anabranch.network.topology import Topology
from anabranch.sharing.explain.svg import SANS, document, element, plain, shortened, text, titled, width, wrapped

COLOURS = ("#3b6ea5", "#c2703d", "#4d8f5b", "#8b5a9f", "#b24a57", "#2f8f95", "#9a7b2f", "#5f6fb8", "#a8558a", "#6b7a3a")
MARGIN, HEAD, _GAP_X, _GAP_Y = 36.0, 34.0, 128.0, 56.0
LINE, SMALL = 16.0, 11.0
_APART = 5.0
"""The distance between the arrows of one link, if there is room."""
_MOST_NAMES = 3
"""The most arrows of one link with names of their own."""
_MOST_CHARACTERS = 30


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
        """Whether two overlap, or are nearer than some distance."""
        apart_x = self.x + self.across + room <= other.x or other.x + other.across + room <= self.x
        apart_y = self.y + self.down + room <= other.y or other.y + other.down + room <= self.y
        return not (apart_x or apart_y)

    def border(self, towards: tuple[float, float], room: float = 3.0) -> tuple[float, float]:
        """Where the line from its middle to a point leaves it."""
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
    words: str
    label: Box | None
    """The place of its name and rate; None where there is no room."""


@dataclass(frozen=True)
class Map:
    """The layout of a picture."""

    boxes: Mapping[str, Box]
    lines: Mapping[str, tuple[tuple[str, str], ...]]
    """By peer, its work: a verb and names."""
    arrows: tuple[Arrow, ...]
    size: tuple[float, float]


def layout(planner: Planner, rates: Rates) -> Map:
    """Boxes on a grid that is wide enough for all of them, and arrows between."""
    topology = planner.topology
    lines = {peer: tuple(_peer_lines(planner.catalogue, peer, rates)) for peer in topology.peers}
    words = [" ".join(each) for peer in topology.peers for each in lines[peer]]
    across = max(92.0, *(width(each, SMALL) + 28 for each in (*words, *topology.peers)))
    down = {peer: 34 + LINE * len(lines[peer]) for peer in topology.peers}
    most = max(down.values())
    boxes: dict[str, Box] = {}
    for peer, (x, y) in _places(topology).items():
        top = HEAD + MARGIN + y * (most + _GAP_Y) + (most - down[peer]) / 2
        boxes[peer] = Box(MARGIN + x * (across + _GAP_X), top, across, down[peer])
    right = max(each.x + each.across for each in boxes.values()) + MARGIN
    bottom = max(each.y + each.down for each in boxes.values()) + MARGIN
    return Map(boxes, lines, _arrows(planner, rates, boxes), (right, bottom))


def _places(topology: Topology) -> dict[str, tuple[float, float]]:
    """For each peer a column and a row, at least one apart from all others in one of them."""
    count = len(topology.peers)
    if topology.shape == "hypercube" and count <= 16:
        # bit by bit to the right, down, to the back as in figure 1, and the fourth to a cube below
        directions = ((1.35, 0.0), (0.0, 1.35), (0.62, -0.62), (0.4, 2.4))
        placed = {
            peer: tuple(sum(directions[bit][axis] for bit in range(4) if number >> bit & 1) for axis in (0, 1))
            for number, peer in enumerate(topology.peers)
        }
        top = min(y for _, y in placed.values())
        spread = 1.75 if count > 4 else 1.0
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


def _peer_lines(catalogue: Catalogue, peer: str, rates: Rates) -> list[tuple[str, str]]:
    """The work of a peer, in a few words."""
    flows = catalogue.flows.values()
    here = [each.name for each in flows if not each.inputs and each.at == peer]
    sources = [_said(name, rates.sources.get(name, peer), peer) for name in here]
    own = [each for each in flows if each.inputs and each.made_at == peer and not catalogue.is_copy(each)]
    joins = [each.name for each in own if catalogue.is_join(each)]
    made = [each.name for each in own if not catalogue.is_join(each)]
    handed = [each.name for each in catalogue.hops if each.before == peer and catalogue.is_copy(each)]
    answers = [_said(each.name, each.by, peer) for each in catalogue.subscriptions.values() if each.at == peer]
    found = [("source of", sources), ("joins", joins), ("makes", made), ("hands on", handed), ("answers", answers)]
    return [(verb, shortened(", ".join(names), _MOST_CHARACTERS - len(verb))) for verb, names in found if names]


def _said(name: str, by: str, peer: str) -> str:
    """A name, and its thin peer."""
    return name if by == peer else f"{name} ({by})"


def kinds(catalogue: Catalogue) -> dict[Form, list[Flow]]:
    """The flows on links, by content."""
    found: dict[Form, list[Flow]] = {}
    for flow in catalogue.hops:
        found.setdefault(flow.form, []).append(flow)
    return found


def _arrows(planner: Planner, rates: Rates, boxes: Mapping[str, Box]) -> tuple[Arrow, ...]:
    catalogue = planner.catalogue
    colours = {form: COLOURS[number % len(COLOURS)] for number, form in enumerate(kinds(catalogue))}
    most = max((rates.of(flow) for flow in catalogue.hops), default=0.0) or 1.0
    by_link: dict[tuple[str, str], list[Flow]] = {}
    for flow in catalogue.hops:
        assert flow.before is not None
        by_link.setdefault(planner.topology.link(flow.before, flow.at), []).append(flow)
    found: list[Arrow] = []
    labels: list[Box] = []
    for flows in by_link.values():
        widths = [1.8 + 8.2 * math.sqrt(rates.of(flow) / most) for flow in flows]
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
            words = f"{flow.name} · {rate_text(rates.of(flow))}"
            if len(flows) > _MOST_NAMES:  # one label for all, on the one in the middle
                together = rate_text(sum(map(rates.of, flows)))
                words = f"{len(flows)} flows · {together}" if flow is flows[len(flows) // 2] else ""
            label = _room(words, start, end, [*boxes.values(), *labels]) if words else None
            labels += [label] if label else []
            found.append(Arrow(flow, start, end, across, colours[flow.form], words, label))
    return tuple(found)


def _beside(boxes: Mapping[str, Box], link: tuple[str, str], by: float) -> tuple[float, float]:
    """A shift across a link, the same way for both directions."""
    (x1, y1), (x2, y2) = boxes[link[0]].middle, boxes[link[1]].middle
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    return -(y2 - y1) / length * by, (x2 - x1) / length * by


def _room(words: str, start: tuple[float, float], end: tuple[float, float], taken: list[Box]) -> Box | None:
    """A place for a few words on an arrow, where there is room."""
    across, down = width(words, 10) + 4, 15.0
    for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78):
        x, y = start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
        box = Box(x - across / 2, y - down / 2, across, down)
        if not any(box.overlaps(each, 1.0) for each in taken):
            return box
    return None


_INK, _PALE, _LINK, _GROUND, _WORK = "#2b2b2b", "#77736b", "#d8d2c6", "#faf8f4", "#d9a441"
_ROWS = 3
"""The most lines for the content of a flow."""
_DOTS = 14.0
"""The distance between two moving dots on an arrow."""


def draw(planner: Planner, rates: Rates | None = None) -> str:
    """The picture of a network, as it is planned or as it runs."""
    rates = rates or planned(planner)
    found = layout(planner, rates)
    across = max(found.size[0], 720.0)
    legend, down = _legend(planner, rates, found, across)
    parts = [_title(planner, rates)]
    parts += [_link(found, *link) for link in planner.topology.links]
    most = max(map(rates.of, planner.catalogue.hops), default=0.0) or 1.0
    parts += [_arrow(each, rates.of(each.flow), most) for each in found.arrows]
    parts += [_label(each) for each in found.arrows if each.label]
    busiest = max(rates.works.values(), default=0.0) or 1.0
    for name, box in found.boxes.items():
        part = rates.works.get(name, 0.0)
        parts.append(_peer(name, box, found.lines[name], part, part / busiest))
    return document((across, down), "the network and its streams", [*parts, *legend])


def _title(planner: Planner, rates: Rates) -> str:
    hops = list(planner.catalogue.hops)
    asked, flows = counted(len(planner.catalogue.subscriptions), "subscription"), counted(len(hops), "flow")
    said = f"{asked}, {flows} on links, {rate_text(sum(map(rates.of, hops)))}"
    shown = text(MARGIN, HEAD, planner.strategy, size=15, fill=_INK, bold=True)
    shown += text(MARGIN + width(planner.strategy, 15) + 10, HEAD, said, size=12, fill=_PALE)
    return shown + text(
        MARGIN, HEAD + 17, "as measured" if rates.measured else "as estimated from samples", size=SMALL, fill=_PALE
    )


def _link(found: Map, first: str, second: str) -> str:
    one, two = found.boxes[first], found.boxes[second]
    (x1, y1), (x2, y2) = one.border(two.middle, 0), two.border(one.middle, 0)
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=_LINK, stroke_width=2)


def _arrow(arrow: Arrow, rate: float, most: float) -> str:
    (x1, y1), (x2, y2) = arrow.start, arrow.end
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    along = (x2 - x1) / length, (y2 - y1) / length
    head = min(length / 2, 7 + arrow.across)
    neck = x2 - along[0] * head, y2 - along[1] * head
    half = 3.5 + arrow.across * 0.75
    corners = [
        (x2, y2),
        (neck[0] - along[1] * half, neck[1] + along[0] * half),
        (neck[0] + along[1] * half, neck[1] - along[0] * half),
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    line: dict[str, str | float] = {"x1": x1, "y1": y1, "x2": neck[0], "y2": neck[1]}
    shaft = element("line", **line, stroke=arrow.colour, stroke_width=arrow.across)
    moving = element(
        "line",
        element(
            "animate",
            attributeName="stroke-dashoffset",
            values=f"{_DOTS:g};0",
            dur=f"{0.7 + 1.8 * (1 - math.sqrt(rate / most)):.2f}s",
            repeatCount="indefinite",
        ),
        **line,
        stroke="#ffffff",
        stroke_opacity=0.55,
        stroke_width=max(0.8, arrow.across * 0.36),
        stroke_linecap="round",
        stroke_dasharray=f"0.1 {_DOTS - 0.1:g}",
    )
    flow = arrow.flow
    said = f"{flow.name}, {flow.before} to {flow.at}, {rate_text(rate)}: {carries(flow.form)}"
    return titled(shaft + element("polygon", points=points, fill=arrow.colour) + (moving if rate else ""), said)


def _label(arrow: Arrow) -> str:
    box = arrow.label
    assert box is not None
    ground = element("rect", x=box.x, y=box.y, width=box.across, height=box.down, rx=7, fill=_GROUND)
    colour = arrow.colour if arrow.words.startswith(arrow.flow.name) else _INK
    return ground + text(box.middle[0], box.y + 11, arrow.words, size=10, fill=colour, anchor="middle")


def _peer(name: str, box: Box, lines: tuple[tuple[str, str], ...], part: float, of_busiest: float) -> str:
    place: dict[str, str | float] = {"x": box.x, "y": box.y, "width": box.across, "height": box.down, "rx": 9}
    busy = bool(lines)
    frame = element(
        "rect", **place, fill="#ffffff" if busy else "#f3f0e9", stroke=_INK if busy else "#b9b3a6", stroke_width=1.2
    )
    parts = [frame, text(box.x + 13, box.y + 20, name, size=13, fill=_INK if busy else _PALE, bold=True)]
    for number, (verb, names) in enumerate(lines):
        y = box.y + 37 + LINE * number
        spans = element("tspan", plain(f"{verb} "), fill=_PALE), element("tspan", plain(names), fill=_INK)
        parts.append(element("text", *spans, x=box.x + 13, y=y, font_family=SANS, font_size=SMALL))
    if part:
        across = max(2.0, (box.across - 26) * of_busiest)
        parts.append(
            element("rect", x=box.x + 13, y=box.y + box.down - 6, width=across, height=2.5, rx=1.2, fill=_WORK)
        )
    return titled("".join(parts), f"{name}: {100 * part:.0f} % of the work")


def _legend(planner: Planner, rates: Rates, found: Map, across: float) -> tuple[list[str], float]:
    """The legend of the colours, and the height of the picture."""
    parts: list[str] = []
    y = found.size[1] + 6
    most = int((across - 2 * MARGIN - 32) / width("n", SMALL))
    for number, (form, flows) in enumerate(kinds(planner.catalogue).items()):
        names = shortened(", ".join(flow.name for flow in flows), 60)
        rate = max(map(rates.of, flows))
        parts.append(
            element("rect", x=MARGIN, y=y - 8, width=22, height=7, rx=3.5, fill=COLOURS[number % len(COLOURS)])
        )
        parts.append(text(MARGIN + 32, y, f"{names}, {rate_text(rate)}", size=SMALL, fill=_INK, bold=True))
        for row in wrapped(carries(form), most, _ROWS):
            y += LINE - 1
            parts.append(text(MARGIN + 32, y, row, size=SMALL, fill=_PALE))
        y += LINE + 5
    return parts, y + 8
