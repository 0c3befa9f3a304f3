"""Vantages: what the values of one partition mean to a query, at the place that it has reached.

The view of a query's start (`runtime/evolution/views.py`) goes on behind the start as accents come.
An item of the place is read in the units of the start, and so is what a punctuation says of items to come (LAWS 4.8).
Which elements are bad is not for a vantage to say: that is judged once, by the partition's own evolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.passing import judged
from anabranch.law.evolution.described import Units, told, units_at
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, DeadLetter, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

Change: TypeAlias = Accent | DeadLetter
"""What changes the state of paths: a valid accent, or one that was set aside and leaves paths in doubt (LAWS 4.5)."""


class Vantage:
    """One partition as a query sees it; whoever takes the evolution on says so (`take`, `passed_by`)."""

    def __init__(self, evolution: Evolution) -> None:
        self.evolution = evolution
        self._known: dict[Path, Units] = {}
        self._has_changed = bool(evolution.live())

    def take(self, event: Change | Punctuation) -> None:
        """Go on behind a change, or a punctuation, which says something of changes before it only."""
        if self._has_changed or not isinstance(event, Punctuation):
            judged(event, self.evolution)
            self._has_changed = True
            self.passed_by()

    def passed_by(self) -> None:
        """The evolution has gone on."""
        self._known.clear()

    def units(self, tree: Element) -> Mapping[Path, Affine]:
        """The maps that lead from an item's values to those in the units of the start, where these are others."""
        units = self.evolution.units(tree)
        return {path: unit.inverse() for path, unit in units.items()} if units else units

    def told(self, punctuation: Punctuation) -> Punctuation:
        """A punctuation that was taken, as one that speaks of values in the units of the start."""
        if punctuation.where is None:
            return punctuation
        return replace(punctuation, where=told(punctuation.where, self._units))

    def _units(self, path: Path) -> Units:
        if path not in self._known:
            self._known[path] = units_at(path, self.evolution)
        return self._known[path]
