"""The map: super-peers with what they do, links, and the streams on them (figure 1 of the sharing paper, alive).

A flow is an arrow along which something moves, the faster the more it is; it is as wide as its rate asks for (by its
root, so that ten times as much still fits in), in the colour of what it carries: a stream that is handed on keeps its
colour, and has another where something was made of it.
The bar at the foot of a peer is its part of all the work.
The legend says what each colour carries; more is told where one points at it.
"""

from __future__ import annotations

import math

from anabranch.network.map.explanation import carries, counted
from anabranch.network.map.layout import COLOURS, HEAD, LINE, MARGIN, SMALL, Arrow, Box, Line, Map, kinds, layout
from anabranch.network.planner import Planner
from anabranch.network.rates import Rates, planned, rate_text
from anabranch.sharing.explain.svg import SANS, document, element, plain, shortened, text, titled, width, wrapped

_INK, _PALE, _LINK, _GROUND, _WORK = "#2b2b2b", "#77736b", "#d8d2c6", "#faf8f4", "#d9a441"
_ROWS = 3
"""So many lines of what a flow carries are shown."""
_DOTS = 14.0
"""From one thing that moves along an arrow to the next."""


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


def _peer(name: str, box: Box, lines: tuple[Line, ...], part: float, of_busiest: float) -> str:
    place: dict[str, str | float] = {"x": box.x, "y": box.y, "width": box.across, "height": box.down, "rx": 9}
    busy = bool(lines)
    frame = element(
        "rect", **place, fill="#ffffff" if busy else "#f3f0e9", stroke=_INK if busy else "#b9b3a6", stroke_width=1.2
    )
    parts = [frame, text(box.x + 13, box.y + 20, name, size=13, fill=_INK if busy else _PALE, bold=True)]
    for number, line in enumerate(lines):
        y = box.y + 37 + LINE * number
        verb = element("tspan", plain(f"{line.verb} "), fill=_PALE)
        names = element("tspan", plain(line.names), fill=_INK)
        parts.append(element("text", verb, names, x=box.x + 13, y=y, font_family=SANS, font_size=SMALL))
    if part:
        across = max(2.0, (box.across - 26) * of_busiest)
        parts.append(
            element("rect", x=box.x + 13, y=box.y + box.down - 6, width=across, height=2.5, rx=1.2, fill=_WORK)
        )
    return titled("".join(parts), f"{name}: {100 * part:.0f} % of the work")


def _legend(planner: Planner, rates: Rates, found: Map, across: float) -> tuple[list[str], float]:
    """What the colours mean, and where the picture ends."""
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
