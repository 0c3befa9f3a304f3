"""The two tables of section 6 as a picture: traffic and CPU of the three strategies, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anabranch.bench.harness.timing import Figures
from anabranch.sharing.explain.svg import document, element, text, width

_INK, _PALE, _RULE = "#2b2b2b", "#77736b", "#e4dfd4"
_SERIES = (("paper", "#c9c2b3"), ("ours", "#3b6ea5"), ("large", "#2f8f95"))
_STRATEGIES = ("shipping", "sharing", "widening")
_PANELS = (("traffic_percent", "network traffic"), ("cpu_percent", "CPU"))
_SIDE, _TOP, _HIGH, _BAR, _BETWEEN, _GROUP = 44.0, 110.0, 190.0, 34.0, 6.0, 34.0
_ACROSS = 3 * (3 * _BAR + 2 * _BETWEEN) + 2 * _GROUP
_SIZE = (2 * _ACROSS + 4 * _SIDE, _TOP + _HIGH + 86)


def plot(figures: Figures) -> str:
    """The picture."""
    parts = [text(_SIDE, 36, "Data shipping, stream sharing, stream widening", size=15, fill=_INK, bold=True)]
    parts += _legend(figures)
    for number, (key, title) in enumerate(_PANELS):
        left = _SIDE + number * (_ACROSS + 2 * _SIDE)
        parts += _panel(left, title, {name: _bars(figures, name, key) for name, _ in _SERIES})
    parts += _footer(figures)
    return document(_SIZE, "traffic and CPU of the three strategies", parts)


def _bars(figures: Figures, series: str, key: str) -> Mapping[str, float]:
    found = figures if series == "ours" else _at(figures, series)
    return {"shipping": 100.0, **{name: _number(value) for name, value in _at(found, key).items()}}


def _panel(left: float, title: str, series: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    yield text(left, _TOP - 16, f"{title}, % of shipping", size=12, fill=_PALE)
    for level in (0, 25, 50, 75, 100):
        y = _TOP + _HIGH * (1 - level / 100) + 12
        yield element("line", x1=left, y1=y, x2=left + _ACROSS, y2=y, stroke=_RULE, stroke_width=1)
    for place, strategy in enumerate(_STRATEGIES):
        x = left + place * (3 * _BAR + 2 * _BETWEEN + _GROUP)
        for number, (name, colour) in enumerate(_SERIES):
            value = series[name][strategy]
            yield from _bar(x + number * (_BAR + _BETWEEN), value, colour)
        middle = x + (3 * _BAR + 2 * _BETWEEN) / 2
        yield text(middle, _TOP + _HIGH + 32, strategy, size=12, fill=_INK, anchor="middle")


def _bar(x: float, value: float, colour: str) -> Iterator[str]:
    high = _HIGH * min(value, 100.0) / 100
    top = _TOP + _HIGH - high + 12
    yield element("rect", x=x, y=top, width=_BAR, height=max(high, 1.0), rx=3, fill=colour)
    said = "100" if value == 100 else f"{value:.1f}"
    yield text(x + _BAR / 2, top - 5, said, size=11, fill=_INK, anchor="middle")


def _legend(figures: Figures) -> Iterator[str]:
    large = _at(figures, "large")
    words = (
        "the paper, 32 queries",
        f"Anabranch, {_number(figures['queries']):.0f} queries",
        f"Anabranch, {_number(large['queries']):.0f} queries",
    )
    x = _SIDE
    for said, (_, colour) in zip(words, _SERIES, strict=True):
        yield element("rect", x=x, y=51, width=14, height=10, rx=3, fill=colour)
        yield text(x + 20, 60, said, size=12, fill=_INK)
        x += 20 + width(said, 12) + 18


def _footer(figures: Figures) -> Iterator[str]:
    shared, paper = _at(figures, "shared_queries"), _at(_at(figures, "paper"), "shared_queries")
    planning = _number(_at(figures, "planning_s")["max"])
    ours, theirs = (f"{_number(each['sharing']):.0f} and {_number(each['widening']):.0f}" for each in (shared, paper))
    said = (
        f"queries that share, without and with widening: {ours} (paper: {theirs}); "
        f"one is planned in {planning:.2f} s at most (paper: 45 s)"
    )
    yield text(_SIDE, _SIZE[1] - 20, said, size=12, fill=_PALE)


def _at(figures: Figures, key: str) -> Figures:
    found = figures[key]
    assert isinstance(found, Mapping)
    return found


def _number(value: float | Figures) -> float:
    assert not isinstance(value, Mapping)
    return value
