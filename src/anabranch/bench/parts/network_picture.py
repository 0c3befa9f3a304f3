"""The picture of the bench on networks: the paper's Table 1 and figure 14, and the cost by the number of queries.

Each row is drawn if its part was measured.
Bars of several seeds are as high as their mean, and a thin line goes from the least to the most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

from anabranch.network.description import STRATEGIES
from anabranch.sharing.explain.svg import document, element, text, width

_INK, _PALE, _RULE = "#2b2b2b", "#77736b", "#e4dfd4"
_PAPER, _SPREADS = "#c9c2b3", ("#3b6ea5", "#5d8fc2", "#93b7dc")
_BY_STRATEGY = {"shipping": "#c9c2b3", "sharing": "#2f8f95", "widening": "#3b6ea5"}
_WIDE, _SIDE, _ROW, _HIGH, _BETWEEN = 996.0, 44.0, 300.0, 170.0, 64.0
_PANEL = (_WIDE - 2 * _SIDE - _BETWEEN) / 2


@dataclass(frozen=True, slots=True)
class _Bar:
    value: float
    colour: str
    least: float
    most: float
    label: str = ""

    @staticmethod
    def of(found: float | Mapping[str, float], colour: str) -> _Bar:
        """The bar of a figure, or of those of several seeds."""
        value, least, most = (
            (found["mean"], found["least"], found["most"]) if isinstance(found, Mapping) else (found, found, found)
        )
        return _Bar(value, colour, least, most, "100" if value == 100 else f"{value:.1f}")


_Group = tuple[str, Sequence[_Bar]]
"""Bars side by side, and what stands below them."""


def picture(figures: Any) -> str:
    """All rows that were measured, one below the other."""
    rows: list[Iterable[str]] = []
    if "seeds" in figures:
        rows.append(_table(figures, 64 + _ROW * len(rows)))
    if "figure_14" in figures:
        rows.append(_figure_14(figures["figure_14"], 64 + _ROW * len(rows)))
    if "queries" in figures:
        rows.append(_curves(figures["queries"], 64 + _ROW * len(rows)))
    head = text(_SIDE, 36, "Data shipping, stream sharing, stream widening", size=15, fill=_INK, bold=True)
    size = (_WIDE, 64 + _ROW * len(rows))
    return document(size, "traffic and CPU of the three strategies", [head, *(each for row in rows for each in row)])


# --- rows -------------------------------------------------------------------------------------------------------


def _table(figures: Any, top: float) -> Iterator[str]:
    """Table 1: what the strategies cost in all, ours of several seeds for each spread of constants."""
    ours = list(figures["seeds"].items())
    words = ["the paper", *(f"constants {name.removeprefix('spread_')} times as wide" for name, _ in ours)]
    yield from _legend(top, zip(words, (_PAPER, *_SPREADS), strict=True))
    for number, (key, title) in enumerate((("traffic_percent", "network traffic"), ("cpu_percent", "CPU"))):
        groups: list[_Group] = [("shipping", [_Bar.of(100.0, colour) for colour in (_PAPER, *_SPREADS)])]
        for strategy in STRATEGIES[1:]:
            series = [figures["paper"], *(each for _, each in ours)]
            bars = zip(series, (_PAPER, *_SPREADS), strict=True)
            groups.append((strategy, [_Bar.of(each[key][strategy], colour) for each, colour in bars]))
        yield from _bars(number, top, f"{title}, % of shipping (table 1)", groups, 100.0)


def _figure_14(found: Any, top: float) -> Iterator[str]:
    """Figure 14: what each peer has to do, and each link to carry."""
    yield from _legend(top, _BY_STRATEGY.items())
    peers = sorted(found["peers"]["shipping"], key=lambda each: (len(each), each))
    links = sorted({_link(each) for strategy in STRATEGIES for each in found["links"][strategy]})
    carried = {
        strategy: {link: sum(n for way, n in found["links"][strategy].items() if _link(way) == link) for link in links}
        for strategy in STRATEGIES
    }
    work: list[_Group] = [
        (each, [_plain(found["peers"][strategy].get(each, 0.0), strategy) for strategy in STRATEGIES]) for each in peers
    ]
    traffic: list[_Group] = [
        (each, [_plain(carried[strategy][each] / 1e6, strategy) for strategy in STRATEGIES]) for each in links
    ]
    yield from _bars(0, top, "traffic of each link, MB (figure 14)", traffic)
    yield from _bars(1, top, "CPU of each peer, seconds (figure 14)", work)


def _link(way: str) -> str:
    """A link without its direction, by the numbers of its peers."""
    return "-".join(sorted(each.removeprefix("SP") for each in way.split("-")))


def _plain(value: float, strategy: str) -> _Bar:
    return _Bar(value, _BY_STRATEGY[strategy], value, value)


def _curves(found: Mapping[str, Any], top: float) -> Iterator[str]:
    """What the strategies cost by the number of queries; a band goes from the least to the most of the seeds."""
    yield from _legend(top, list(_BY_STRATEGY.items())[1:])
    counts = [int(each.removeprefix("n")) for each in found]
    for number, (key, title) in enumerate((("traffic_percent", "network traffic"), ("cpu_percent", "CPU"))):
        left, high = _left(number), max(each[key]["sharing"]["most"] for each in found.values())
        yield text(left, top + 40, f"{title}, % of shipping, by number of queries", size=12, fill=_PALE)
        yield from _levels(left, top, high)
        across = [left + 12 + (_PANEL - 24) * _share(each, counts) for each in counts]
        for x, count in zip(across, counts, strict=True):
            yield text(x, top + 78 + _HIGH, str(count), size=11, fill=_INK, anchor="middle")
        for strategy in STRATEGIES[1:]:
            colour = _BY_STRATEGY[strategy]
            figures = [each[key][strategy] for each in found.values()]
            low, most, mean = (
                [(x, _level(top, each[name], high)) for x, each in zip(across, figures, strict=True)]
                for name in ("least", "most", "mean")
            )
            yield element("polygon", points=_points([*low, *reversed(most)]), fill=colour, opacity=0.2)
            yield element("polyline", points=_points(mean), fill="none", stroke=colour, stroke_width=2)


def _share(count: int, counts: Sequence[int]) -> float:
    """The place of a number on a logarithmic axis."""
    least, most = log2(min(counts)), log2(max(counts))
    return (log2(count) - least) / (most - least) if most > least else 0.5


def _points(found: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in found)


# --- panels -----------------------------------------------------------------------------------------------------


def _bars(number: int, top: float, title: str, groups: Sequence[_Group], high: float | None = None) -> Iterator[str]:
    left = _left(number)
    most = high or max(bar.most for _, bars in groups for bar in bars) or 1.0
    yield text(left, top + 40, title, size=12, fill=_PALE)
    yield from _levels(left, top, most)
    room = _PANEL / len(groups)
    wide = room * 0.8 / max(len(bars) for _, bars in groups)
    for place, (label, bars) in enumerate(groups):
        x = left + place * room + room * 0.1
        for at, bar in enumerate(bars):
            y, middle = _level(top, bar.value, most), x + (at + 0.5) * wide
            high_of = max(_level(top, 0, most) - y, 1.0)
            yield element("rect", x=x + at * wide, y=y, width=wide * 0.86, height=high_of, rx=2, fill=bar.colour)
            if bar.most > bar.least:
                ends = {"y1": _level(top, bar.most, most), "y2": _level(top, bar.least, most)}
                yield element("line", x1=middle, x2=middle, **ends, stroke=_INK, stroke_width=1)
            if bar.label:
                y = _level(top, bar.most, most) - 4
                yield text(middle, y, bar.label, size=10, fill=_INK, anchor="middle")
        yield text(x + room * 0.4, top + 78 + _HIGH, label, size=11, fill=_INK, anchor="middle")


def _levels(left: float, top: float, high: float) -> Iterator[str]:
    """Horizontal lines, with the figure of the highest."""
    for part in (0, 0.25, 0.5, 0.75, 1):
        y = _level(top, part * high, high)
        yield element("line", x1=left, y1=y, x2=left + _PANEL, y2=y, stroke=_RULE, stroke_width=1)
    yield text(left - 4, _level(top, high, high) + 4, f"{high:.3g}", size=10, fill=_PALE, anchor="end")


def _left(number: int) -> float:
    return _SIDE + number * (_PANEL + _BETWEEN)


def _level(top: float, value: float, high: float) -> float:
    return top + 62 + _HIGH * (1 - min(value, high) / high)


def _legend(top: float, entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    x = _SIDE
    for label, colour in entries:
        yield element("rect", x=x, y=top + 3, width=14, height=10, rx=3, fill=colour)
        yield text(x + 20, top + 12, label, size=12, fill=_INK)
        x += 20 + width(label, 12) + 18
