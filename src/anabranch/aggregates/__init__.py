"""Aggregates: one file per function, and the registry that everybody else asks.

A file says all there is to know of its function (`function.py` lists what): its law over values, its value from a
partial, how it is kept up to date while values come and go, how it is read from columns of panes, which letters of a
partial travel for it, and what becomes of it when the values change their unit.
`min` and `max` are one function in two directions, and so have one file.
To add a function is to write its file and name it here; the language, the builder, windows, displays, accents and the
network find it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.aggregates.avg import Avg
from anabranch.aggregates.count import Count
from anabranch.aggregates.extreme import Max, Min
from anabranch.aggregates.function import AggregateFunction
from anabranch.aggregates.median import Median
from anabranch.aggregates.stddev import Stddev
from anabranch.aggregates.sum import Sum

AGGREGATES: Mapping[str, AggregateFunction] = {
    each.name: each for each in (Min(), Max(), Sum(), Count(), Avg(), Median(), Stddev())
}
"""All functions by name."""
BY_PANES: Mapping[str, AggregateFunction] = {name: each for name, each in AGGREGATES.items() if each.is_by_panes}
"""Those that a window can have put together from the partials of its panes; for the others it holds its items."""
