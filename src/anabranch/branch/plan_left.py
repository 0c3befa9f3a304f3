"""What a branch with a plan leaves in its process when its epoch is over, beside its state.

What operators know of evolution follows from what was said; to tell it all again takes time, so the process that had
the branch last keeps what it made of it, without the items, which are in the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.algebra.accents.sets import Domains
from anabranch.algebra.interpret import Plan, Query
from anabranch.algebra.signature import Policy
from anabranch.branch.backlog import Key
from anabranch.reference.evolving.vantage import Vantage
from anabranch.stream.path import Path

_MOST_LEFT = 64
_left: list[Left] = []


@dataclass(frozen=True, slots=True)
class Ground:
    """All that it follows from."""

    plan: Plan
    policy: Policy
    promises: Mapping[str, Domains]
    begun: list[Any]
    """Where late streams are seen from, as it is kept."""
    told: list[Any]
    """What was said since, as it is kept."""


@dataclass(frozen=True, slots=True)
class Left:
    """What was left."""

    ground: Ground
    query: Query
    vantages: Mapping[Key, Vantage]
    mistrusted: dict[Key, dict[Path, str]]


def leave(left: Left) -> None:
    """Keep it for whoever comes with the same ground."""
    _left.append(left)
    del _left[:-_MOST_LEFT]


def pick_up(ground: Ground) -> Left | None:
    """What was left behind just this, for nobody else any more."""
    for number, left in enumerate(_left):
        if left.ground == ground:
            return _left.pop(number)
    return None


def forget() -> None:
    """Keep nothing, as in a process that has just begun."""
    _left.clear()
