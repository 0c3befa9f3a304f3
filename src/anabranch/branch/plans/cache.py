"""What a branch with a plan leaves in its process when its epoch is over, beside its state.

What operators know of evolution follows from what was said; to tell it all again takes time, so the process that had
the branch last keeps what it made of it (`branch/cache.py`), without the items, which are in the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.algebra.accents.sets import Domains
from anabranch.algebra.plans.interpret import Plan, Query
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.intake.backlog import Key
from anabranch.law.evolution.vantage import Vantage
from anabranch.stream.path import Path


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
class Followed:
    """What was made of it."""

    query: Query
    vantages: Mapping[Key, Vantage]
    mistrusted: dict[Key, dict[Path, str]]
