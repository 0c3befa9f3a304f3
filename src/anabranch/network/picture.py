"""The map: super-peers with what they do, links, and the streams on them (figure 1 of the sharing paper, alive).

A flow is an arrow, as wide as its rate asks for (by its root, so that ten times as much still fits in), in the colour
of what it carries: a stream that is handed on keeps its colour, and has another where something was made of it.
The legend says what each colour carries; more is told where one points at it.
"""

from __future__ import annotations

import math

from anabranch.network.explanation import carries
from anabranch.network.layout import COLOURS, LINE, MARGIN, SMALL, Arrow, Box, Map, kinds, layout
from anabranch.network.planner import Planner
from anabranch.sharing.explain.svg import document, element, shortened, text, titled

_INK, _PALE, _LINK = "#2b2b2b", "#77736b", "#d8d2c6"
_LEGEND = 92
"""So many characters of what a flow carries are shown."""


def draw(planner: Planner) -> str:
    """The picture of a network as it is planned."""
    found = layout(planner)
    parts = [_link(found, *link) for link in planner.topology.links]
    parts += [_arrow(planner, each) for each in found.arrows]
    parts += [_label(each) for each in found.arrows if each.label]
    parts += [_peer(planner, name, box, found.lines[name]) for name, box in found.boxes.items()]
    parts += _legend(planner, found)
    across = max(found.size[0], 760.0)
    down = found.size[1] + 30 + LINE * (len(kinds(planner.catalogue)) + 1)
    return document((across, down), "the network and its streams", parts)


def _link(found: Map, first: str, second: str) -> str:
    one, two = found.boxes[first], found.boxes[second]
    (x1, y1), (x2, y2) = one.border(two.middle, 0), two.border(one.middle, 0)
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=_LINK, stroke_width=2)


def _arrow(planner: Planner, arrow: Arrow) -> str:
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
    shaft = element(
        "line",
        x1=x1,
        y1=y1,
        x2=neck[0],
        y2=neck[1],
        stroke=arrow.colour,
        stroke_width=arrow.across,
        stroke_opacity=0.85,
    )
    flow = arrow.flow
    rate = planner.estimates.rate(flow.form)
    said = f"{flow.name}, {flow.before} to {flow.at}, {rate:,.0f} bytes per second: {carries(flow.form)}"
    return titled(shaft + element("polygon", points=points, fill=arrow.colour), said)


def _label(arrow: Arrow) -> str:
    box = arrow.label
    assert box is not None
    ground = element(
        "rect", x=box.x, y=box.y, width=box.across, height=box.down, rx=3, fill="#faf8f4", fill_opacity=0.9
    )
    return ground + text(box.middle[0], box.y + 10, arrow.flow.name, size=10, fill=arrow.colour, anchor="middle")


def _peer(planner: Planner, name: str, box: Box, lines: tuple[str, ...]) -> str:
    busy = bool(lines)
    frame = element(
        "rect",
        x=box.x,
        y=box.y,
        width=box.across,
        height=box.down,
        rx=9,
        fill="#ffffff" if busy else "#f3f0e9",
        stroke=_INK if busy else _PALE,
        stroke_width=1.2,
    )
    load = planner.catalogue.load(planner.estimates).get(name, 0.0)
    parts = [frame, text(box.x + 12, box.y + 19, name, size=13, fill=_INK if busy else _PALE, bold=True)]
    for number, line in enumerate(lines):
        parts.append(text(box.x + 12, box.y + 35 + LINE * number, line, size=SMALL, fill=_PALE))
    return titled("".join(parts), f"{name}: {load:,.0f} bytes per second read")


def _legend(planner: Planner, found: Map) -> list[str]:
    """What the colours mean, one line each."""
    parts: list[str] = []
    y = found.size[1] + 8
    for number, (form, flows) in enumerate(kinds(planner.catalogue).items()):
        colour = COLOURS[number % len(COLOURS)]
        rate = planner.estimates.rate(form)
        names = shortened(", ".join(flow.name for flow in flows), 34)
        said = shortened(carries(form), _LEGEND)
        parts.append(element("rect", x=MARGIN, y=y - 8, width=22, height=6, rx=3, fill=colour))
        parts.append(text(MARGIN + 32, y, f"{names}: {rate:,.0f} bytes/s, {said}", size=SMALL, fill=_INK))
        y += LINE
    return parts
