"""Caps on the cost of one piece of input, all in one place.

Input is hostile until shown otherwise.
Every reader takes a `Limits` and sets larger input aside, so that the sender controls neither memory nor time; all
readers are linear in bytes, and these numbers bound the constants.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from anabranch.errors import UsageError

MEBIBYTE = 1 << 20
LEAST_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest item that is read, and the longest evaluation; what exceeds them becomes a dead letter."""

    item_bytes: int = 4 * MEBIBYTE
    depth: int = 100
    nodes: int = 100_000
    """Elements, attributes, texts, comments and instructions of one item together."""
    attributes: int = 256
    """Attributes of one element, namespace declarations among them."""
    steps: int = LEAST_STEPS
    """Steps of one evaluation, for each item in it (LAWS 2.6)."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 1:
                raise UsageError(f"the limit '{each.name}' must be at least 1")
        # With fewer, answers in columns, which count no steps, could differ (`columnar/items/query.py`).
        if self.steps < LEAST_STEPS:
            raise UsageError(f"the limit 'steps' must be at least {LEAST_STEPS:,}")
        # Arrow batches carry whole items, and 64 MiB is the most that one of their cells should hold.
        if self.item_bytes >= 64 * MEBIBYTE:
            raise UsageError("the limit 'item_bytes' must be below 64 MiB")


@dataclass(frozen=True, slots=True)
class CostCaps:
    """What one subscription of a run may take before it ends by name (LAWS 2.9); None: as much as it likes."""

    held: int | None = None
    """The nodes that it holds at a time, or what it keeps in their place."""
    overruns: int | None = None
    """Its evaluations that take more steps than they may."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if (found := getattr(self, each.name)) is not None and found < 1:
                raise UsageError(f"the cap '{each.name}' must be at least 1")

    def why_held(self, held: str) -> str | None:
        """Why a subscription ends that holds too much of something; None where it may hold as much as it likes."""
        if self.held is None:
            return None
        return f"it holds more than {self.held:,} {held}; 'max_held' allows more"

    def why_overrun(self, overruns: int) -> str | None:
        """Why a subscription ends that has had so many overruns; None where it goes on."""
        if self.overruns is None or overruns < self.overruns:
            return None
        times = f"{self.overruns:,} of its evaluations have" if self.overruns > 1 else "an evaluation has"
        return f"{times} taken too many steps; 'max_overruns' allows more"


NO_CAPS = CostCaps()
SITE_CAPS = CostCaps(1_000_000, 100)
"""What a subscription of a site may take where nobody says otherwise."""
DOCUMENT = Limits(item_bytes=64 * MEBIBYTE - 1, depth=200, nodes=5_000_000)
"""For the finite documents behind `doc()`, which are read completely."""
LONGEST_NAME = 1_000
"""The longest name of an element, attribute or namespace, in characters; names are cached, so they must be short.

That of a key of JSON is escaped, and may be longer than the key (LAWS 7.1).
"""
