"""The look of a stream's items while it is learned: from a first sample, and then from items that do not fit.

Streams mix kinds of items, and a first sample hardly shows all of them.
So where more than one in `_FEW` items of a batch does not fit, a sample of these is learned, too, and the look grows.
Items that fit are part of that sample, in proportion, so that usual and unusual parts can be told apart: a part counts
as repeated, say, only if it is repeated in many of the items that have it (`scan/look.py`).

Not everything can be learned (items with comments, texts that must be unescaped, names that are values), so learning
that did not help is tried again only after a pause, and the pause doubles each time.
A look that serves the reader's queries less well than the one before is not used; then only those items are learned
that leave the known parts as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import TypeAlias

import numpy as np

from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.template import Declarations
from anabranch.stream.tree import Element

SAMPLE = 20
"""The number of items in a sample that do not fit, or in the first sample."""
_FITTING = 3
"""The number of fitting items in a sample for each other one, at most."""
_FEW = 50
_BETTER = 0.75
"""Learning has helped where the share of items that do not fit has fallen to this part of the least share before."""
_LONGEST_PAUSE = 256

Use: TypeAlias = Callable[[Look], bool]
"""Compiles for a look; False where the look before stays in use."""


class GrowingLook:
    """The look of a stream's items as one reader knows it; only this reader changes it."""

    def __init__(self, *, is_json: bool, lines: bool = False, scope: Declarations = ()) -> None:
        """`lines` says that each item is one line, so that none holds a line end; `scope` is declared around items."""
        self.look: Look | None = None
        self._is_json = is_json
        self._lines = lines
        self._scope = scope
        self._least = inf
        """The least share of items that did not fit, of all times that the look grew."""
        self._pause = 0
        """The length of the last pause, in batches."""
        self._waiting = 0

    def is_due(self, entries: int, off: int) -> bool:
        """Whether to learn from a batch of `entries`, of which `off` do not fit."""
        if _FEW * off <= entries:
            return False
        self._waiting -= 1
        return self._waiting < 0

    def learn(self, items: Sequence[tuple[bytes, Element]], share: float, use: Use) -> bool:
        """Learn a sample, given as bytes and trees; `share` is the share of all items that did not fit.

        Returns whether there is a new look in use.
        """
        found = self._grown(items, share, use)
        helped = found is not None and share <= _BETTER * self._least
        self._pause = 0 if helped else min(max(1, 2 * self._pause), _LONGEST_PAUSE)
        self._waiting = self._pause
        self._least = min(share, self._least)
        self.look = found or self.look
        return found is not None

    def _grown(self, items: Sequence[tuple[bytes, Element]], share: float, use: Use) -> Look | None:
        """A new look that is used; None where there is none."""
        known = self.look
        learn = partial(Look.learn, is_json=self._is_json, scope=self._scope)
        found = learn(items, known)
        if found is None and 2 * share > 1:  # the look is full, and most items do not have it
            found = learn(items)
        found = self._with_template(found, share)
        if found is None or found == known:
            return None
        if use(found):
            return found
        if known is None:
            return None
        careful = known
        for each in items:
            one = learn([each], careful)
            careful = one if one is not None and one.keeps(careful) else careful
        careful = replace(careful, template=known.template)
        return careful if careful not in (known, found) and use(careful) else None

    def _with_template(self, look: Look | None, share: float) -> Look | None:
        """A look with the template of the most usual items: it stays as long as most items fit."""
        if look is None:
            return None
        known = self.look.template if self.look and 2 * share <= 1 else None
        template = known or look.template
        if template and self._lines and any(b"\n" in piece for piece in template.pieces):
            template = None  # a line end that was written `&#10;`; no line has it
        return look.with_template(template)


def chosen(fits: Flags) -> Indices:
    """The entries of a batch to learn from: some of those that do not fit, and others in proportion."""
    off, fitting = np.flatnonzero(~fits), np.flatnonzero(fits)
    some = _spread(off, SAMPLE)
    others = min(_FITTING * len(some), len(fitting) * len(some) // len(off)) if len(off) else 0
    return np.sort(np.concatenate([some, _spread(fitting, others)]))


def _spread(entries: Indices, most: int) -> Indices:
    """At most `most` of some entries, evenly spread."""
    count = min(most, len(entries))
    return entries[np.arange(count) * len(entries) // max(count, 1)]
