"""Aggregates: one file per function, and the registry that all other modules use.

A file has everything about its function (`function.py` lists what): its law over values, its value from a partial, how
it is maintained while values come and go, how it is read from columns of panes, which letters of a partial it needs,
and how it changes when the values change their unit.
`min` and `max` are one function in two directions, and so have one file.
A new function needs its file and its name here; the language, the builder, windows, displays, accents and the network
find it in the registry.
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
"""The functions that can be computed from the partials of panes; for the others a window holds its items."""
