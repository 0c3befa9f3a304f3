"""One who asks about the past of streams that evolve: its answer stays in the units of its start (LAWS 4.7).

It hears what was said as others do (`branch/evolution/following.py`), for a path that it needs may go.
Of what has changed nothing comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.past.queries import RecalledMember
from anabranch.branch.ports import InputStream
from anabranch.law.calls import PythonFunction
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing, standing
from anabranch.stream.elements import Accent, Doubt


@dataclass(slots=True)
class Silence:
    """Where accents go that do not come out."""

    over: bool = False

    def announce(self, accents: Iterable[Accent | Doubt]) -> None:
        """Nothing is told of them."""


@dataclass(slots=True)
class Absorbing:
    """A query about the past, as far as it follows the evolution of its streams."""

    key: str
    standing: Standing
    policy: Policy
    registered: tuple[str, ...]
    sends: Literal[False] = False
    answers: Silence = field(default_factory=Silence)
    follower: Follower | None = None

    @staticmethod
    def of(member: RecalledMember, functions: Mapping[str, PythonFunction]) -> Absorbing:
        asked = member.query
        return Absorbing(member.key, standing(asked.query, functions, asked.text), member.policy, tuple(functions))

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage:
        """What is known of its output."""
        return lineage_of(self.standing, self.registered, {name: each.root.namespaces for name, each in inputs.items()})
