"""The picture of a soak: a panel for each thing that must stay flat, over the minutes of the run.

What was not judged, since all was still warming up, is pale; a dotted line is a restart, by a word or by kill -9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anabranch.network.picture import COLOURS
from anabranch.sharing.explain.svg import document, element, text, width

_INK, _PALE, _LINE, _GROUND = "#2b2b2b", "#77736b", "#d8d2c6", "#ffffff"
_ACROSS, _DOWN, _MARGIN, _HEAD, _GAP_X, _GAP_Y = 400.0, 120.0, 64.0, 74.0, 84.0, 62.0
_COLUMNS = 2


@dataclass(frozen=True)
class Panel:
    """Curves that share an axis."""

    title: str
    unit: str
    curves: Mapping[str, Sequence[float]]
    verdict: str = ""
    """What was found of them."""


def draw(
    title: str, subtitle: str, minutes: Sequence[float], panels: Sequence[Panel], warm: float, restarts: Sequence[float]
) -> str:
    """The picture: a moment of `minutes` for each sample, judged from `warm` on."""
    rows = -(-len(panels) // _COLUMNS)
    size = (
        2 * _MARGIN + _COLUMNS * _ACROSS + (_COLUMNS - 1) * _GAP_X,
        _HEAD + rows * (_DOWN + _GAP_Y) + 14,
    )
    parts = [text(_MARGIN, 30, title, size=15, bold=True), text(_MARGIN, 48, subtitle, size=11, fill=_PALE)]
    for number, panel in enumerate(panels):
        left = _MARGIN + number % _COLUMNS * (_ACROSS + _GAP_X)
        top = _HEAD + 20 + number // _COLUMNS * (_DOWN + _GAP_Y)
        parts += _panel(panel, left, top, minutes, warm, restarts)
    return document(size, title, parts)


def _panel(
    panel: Panel, left: float, top: float, minutes: Sequence[float], warm: float, restarts: Sequence[float]
) -> Iterable[str]:
    end = minutes[-1]
    most = _round_up(max(value for curve in panel.curves.values() for value in curve))

    def x(minute: float) -> float:
        return left + _ACROSS * minute / end

    def y(value: float) -> float:
        return top + _DOWN * (1 - value / most)

    yield element("rect", x=left, y=top, width=_ACROSS, height=_DOWN, fill=_GROUND, stroke=_LINE)
    yield element("rect", x=left, y=top, width=x(warm) - left, height=_DOWN, fill="#f0ece3")
    yield text(left, top - 8, panel.title, size=12, bold=True)
    yield text(left + width(panel.title, 12) + 14, top - 8, panel.verdict, size=10, fill=_PALE)
    for share in (0.0, 0.5, 1.0):
        value = most * share
        yield element("line", x1=left, y1=y(value), x2=left + _ACROSS, y2=y(value), stroke=_LINE, stroke_width=0.6)
        yield text(left - 6, y(value) + 4, f"{value:,.6g} {panel.unit}".strip(), size=9, fill=_PALE, anchor="end")
    for minute in restarts:
        line: dict[str, str | float] = {"x1": x(minute), "y1": top, "x2": x(minute), "y2": top + _DOWN}
        yield element("line", **line, stroke=_PALE, stroke_dasharray="2 3")
    place = left
    for number, (name, curve) in enumerate(panel.curves.items()):
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in zip(minutes, curve, strict=True))
        colour = COLOURS[number % len(COLOURS)]
        yield element("polyline", points=points, fill="none", stroke=colour, stroke_width=1.4)
        yield element("rect", x=place, y=top + _DOWN + 17, width=14, height=4, rx=2, fill=colour)
        yield text(place + 18, top + _DOWN + 22, name, size=10, fill=_INK)
        place += 30 + width(name, 10)
    yield text(left + _ACROSS, top + _DOWN + 13, f"{end:.0f} minutes", size=9, fill=_PALE, anchor="end")


def _round_up(value: float) -> float:
    """The next number that is good at the end of an axis."""
    unit = 1.0
    while unit * 10 <= value:
        unit *= 10
    while unit > value > 0:
        unit /= 10
    return next(unit * each for each in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if unit * each >= value)
