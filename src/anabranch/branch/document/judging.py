"""The law's judgement of updates, with a short way for the usual one.

The usual update replaces what a region holds by content that has no regions, where the region never was anything else
than a `mutable` with one name, and has none inside.
Then no id is taken, given or forgotten (`law/history/register.py`), so there is nothing to judge but its name, its
time and its depth.
So many such updates in a row are judged together, before any of them is applied: none changes what the next one needs.
Where its stream has evolved, its values have units, and the law judges it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.law.history.admission import Admitted, UpdateAdmission, is_control
from anabranch.law.history.chains import Chain
from anabranch.stream.elements import StreamElement, Update
from anabranch.stream.tree import Child, Element


@dataclass(frozen=True, slots=True)
class PlainReplacement(Admitted):
    """A good update that gives a region other content, and does nothing else."""

    chain: Chain
    update: Update


class Replacement(NamedTuple):
    """A good update that gives a region other content, and does nothing else, judged with others."""

    chain: Chain
    update: Update
    at: Fraction


class KeptAdmission(UpdateAdmission):
    """Judges as the law does."""

    def together(self, updates: Sequence[UsualUpdate], first: int, partition: int) -> list[Replacement]:
        """The good plain replacements, with times of their own, that come next from number `first` on; perhaps none.

        They are to be applied before another element of the partition is judged.
        """
        found: list[Replacement] = []
        evolution, reached = self.evolutions.get(partition), self.times.get(partition)
        if reached is None or (evolution is not None and evolution.is_changed):
            return found
        names, known, deepest = self.register.of(partition), self.register.known, self._depth
        written: Decimal | None = None
        at = reached
        for number in range(first, len(updates)):
            update = updates[number]
            named = names.get(update.target)
            if named is None or update.kind != "replace" or update.id is not None or update.at is None:
                break
            chain = named.chain
            region = known[chain]
            if region.inner or region.inserted or region.is_over or len(region.ids) != 1:
                break
            if update.at is not written:
                written, before = update.at, at
                at = exact_time(update.at)
                if at < before:
                    break
            if update.look.height > deepest - chain.depth:
                break
            found.append(Replacement(chain, update, at))
        return found

    def judge(self, element: StreamElement, at: Fraction, partition: int = 0) -> Admitted | None:
        if isinstance(element, Update) and element.kind == "replace" and element.id is None:
            known = self._next.get(partition)
            if known is not None and known[0] is element and (known[1] is at or known[1] == at):
                return known[2]
            chain = self._plainly_replaced(element, at, partition)
            if chain is not None:
                admitted = PlainReplacement(None, {}, at, chain, element)
                self._next[partition] = element, at, admitted
                return admitted
        return super().judge(element, at, partition)

    def _plainly_replaced(self, update: Update, at: Fraction, partition: int) -> Chain | None:
        """The region that an update replaces; None where that is for the law to judge."""
        evolution = self.evolutions.get(partition)
        if evolution is not None and evolution.is_changed:
            return None
        named = self.register.of(partition).get(update.target)
        if named is None:
            return None
        region = self.register.known[named.chain]
        if region.inner or region.inserted or region.is_over or len(region.ids) != 1:
            return None
        reached = self.times.get(partition)
        if reached is not None and reached is not at and at < reached:
            return None
        own = at if update.at is None else exact_time(update.at)
        if own is not at and own != at:
            return None
        depth = self._depth - named.chain.depth
        fits = update.look.height <= depth if isinstance(update, UsualUpdate) else _fits(update.content, depth)
        return named.chain if fits else None

    def take(self, admitted: Admitted, partition: int = 0) -> list[Chain]:
        if not isinstance(admitted, PlainReplacement):
            return super().take(admitted, partition)
        self._next.pop(partition, None)
        self.times[partition] = admitted.end
        return []


def _fits(content: Sequence[Child], depth: int) -> bool:
    """Whether content has no regions, and is at most so deep."""
    for child in content:
        if isinstance(child, Element) and (depth <= 0 or is_control(child) or not _fits(child.children, depth - 1)):
            return False
    return True


@lru_cache(maxsize=1_024)
def exact_time(at: Decimal) -> Fraction:
    """The time that an element says; many have the same."""
    return Fraction(at)
