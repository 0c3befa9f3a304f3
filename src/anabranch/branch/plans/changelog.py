"""What a plan was told of its streams, as a branch remembers it: accents, punctuations, and what windows have reached.

What operators know of evolution follows from these, told again in their order (`algebra/plans/interpret.py`).
A punctuation that a later one outdoes can be left out, unless an accent came between the two, or out of one of them:
so a stream that closes window after window for years leaves a short log.

The log is thinned when it has doubled, and never otherwise.
Whoever keeps a plan takes it up anew from the thinned log at that very moment, so what it knows follows from the
elements alone, and not from when its state was saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from anabranch.branch.evolution.changelog import Said, is_superfluous
from anabranch.branch.evolution.following import COMPARED
from anabranch.branch.plans.pace import Reached
from anabranch.stream.elements import Punctuation

Told: TypeAlias = Said | Reached
_SHORT = 64


@dataclass(slots=True)
class PlanLog:
    """All that has to be told again, in order."""

    told: list[Told] = field(default_factory=list)
    lasting: list[bool] = field(default_factory=list)
    """Of each, whether it is there for good."""
    full: int = _SHORT
    """How long the log may be until it is thinned."""

    def add(self, told: Told, *, came: bool) -> bool:
        """Remember what was said; `came` says that an accent came of it. Gives whether the log is to be thinned now."""
        self.told.append(told)
        self.lasting.append(came or not _closes(told))
        return len(self.told) >= self.full

    def thin(self) -> None:
        """Leave out what says nothing any more."""
        kept: list[tuple[Told, bool]] = []
        later: list[Told] = []
        for told, lasting in zip(reversed(self.told), reversed(self.lasting), strict=True):
            if lasting:
                later.clear()
            elif any(_outdoes(each, told) for each in later[-COMPARED:]):
                continue
            else:
                later.append(told)
            kept.append((told, lasting))
        self.told = [told for told, _ in reversed(kept)]
        self.lasting = [lasting for _, lasting in reversed(kept)]
        self.full = max(_SHORT, 2 * len(kept))

    def to_json(self) -> dict[str, Any]:
        """What is written down of it."""
        rows = [each.json if isinstance(each, Said) else each.to_json() for each in self.told]
        return {"told": rows, "lasting": self.lasting, "full": self.full}

    @staticmethod
    def from_json(value: dict[str, Any]) -> PlanLog:
        """The log that was written so."""
        told = [Reached.from_json(each) if len(each) == 3 else Said.from_json(each) for each in value["told"]]
        return PlanLog(told, list(value["lasting"]), value["full"])


def _closes(told: Told) -> bool:
    return isinstance(told, Reached) or isinstance(told.event, Punctuation)


def _outdoes(later: Told, told: Told) -> bool:
    match later, told:
        case Reached(), Reached():
            return later.outdoes(told)
        case Said(), Said():
            return is_superfluous(told, later)
        case _:
            return False
