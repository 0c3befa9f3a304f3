"""Futures: digests of all that the future answers of a query depend on, however long ago its branch began.

Two members of different branches whose futures are equal answer alike from here on, so one state is enough for both:
the later one joins the branch of the earlier one (`spark/plan/joining.py`).
A subscription that comes late to a window or join has less behind it than an earlier one (LAWS 3.6); once the windows
are closed, or the items forgotten, that only the earlier one had, their futures are equal.

A future counts from the present: an item is known by how many items were taken since, a window of numbered items by
how many windows were answered.
What has no effect any more is left out: the first value that a late subscription saw, when no window that it leaves
out can still come, and items that no window holds.
How far a branch has followed accents is no part of it; the logs of streams tell.
Nor is what is computed from windows or tuples: only futures of twins are compared.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

from anabranch.branch.held_items import HeldNode, write_units, write_value

NEVER = ""
"""The future of a member that cannot be compared, or not yet."""


def digest(*parts: Any) -> str:
    """The digest of some JSON values."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def node_since(held: HeldNode, taken: int, base: Fraction = Fraction(0)) -> list[Any]:
    """A held node, counted back from the `taken` items of its branch; its value counts from `base` on."""
    kept = held.kept
    units = write_units(kept.units) if kept.units else None
    return [
        held.clause,
        held.index,
        write_value(held.value if not base else held.value - base),
        taken - kept.number,
        kept.place_since,
        units,
    ]
