"""The look of a stream's items while it is learned: from a first sample, and then from items that do not fit.

Streams mix kinds of items, and a first sample hardly shows all of them.
So where more than one in `_FEW` items of a batch does not fit, a sample of these is learned, too, and the look grows.
Items that fit are part of that sample, as many as there are in proportion, so that what is usual can be told from what
is not: a part is repeated, say, only if it is so in many of all items that have it (`look.py`).

Not everything can be learned (items with comments, texts that must be unescaped, names that are values), so learning
that did not help is tried again only behind a pause, and the pause doubles each time.
A look of which whoever reads the items can make less than of the one before is not taken; then only those items are
learned that leave alone what is known.
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
"""How many items are learned at once that do not fit, or at first."""
_FITTING = 3
"""By so much at most the others in a sample outnumber these: enough to see what stands several times in few items."""
_FEW = 50
_BETTER = 0.75
"""Learning has helped where only so much of the share is left that did not fit."""
_LONGEST_PAUSE = 256

Use: TypeAlias = Callable[[Look], bool]
"""Compiles for a look; False where one goes on with the look before."""


class GrowingLook:
    """What is known of the items of a stream by one who reads them, and who alone changes it."""

    def __init__(self, *, is_json: bool, lines: bool = False, scope: Declarations = ()) -> None:
        """`lines` say that each item is one, so that none holds a line end; `scope` is declared around items."""
        self.look: Look | None = None
        self._is_json = is_json
        self._lines = lines
        self._scope = scope
        self._share = inf
        self._pause = 0
        """How many batches the last pause took."""
        self._waiting = 0

    def is_due(self, entries: int, off: int) -> bool:
        """Whether to learn from a batch, of whose entries so many do not fit."""
        if _FEW * off <= entries:
            return False
        self._waiting -= 1
        return self._waiting < 0

    def learn(self, items: Sequence[tuple[bytes, Element]], share: float, use: Use) -> bool:
        """Learn a sample, given as bytes and trees, where such a share of all items did not fit.

        Whether there is a new look, of which use is made.
        """
        found = self._grown(items, share, use)
        helped = found is not None and share <= _BETTER * self._share
        self._pause = 0 if helped else min(max(1, 2 * self._pause), _LONGEST_PAUSE)
        self._waiting = self._pause
        self._share = share
        self.look = found or self.look
        return found is not None

    def _grown(self, items: Sequence[tuple[bytes, Element]], share: float, use: Use) -> Look | None:
        """A new look that is of use."""
        known = self.look
        learn = partial(Look.learn, is_json=self._is_json, scope=self._scope)
        found = learn(items, known)
        if found is None and 2 * share > 1:  # there is no room for more, and what is known is of no use
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
            template = None  # it was written `&#10;`; no line looks like that
        return look.with_template(template)


def chosen(fits: Flags) -> Indices:
    """The entries of a batch to learn from: some of those that do not fit, and others in proportion."""
    off, fitting = np.flatnonzero(~fits), np.flatnonzero(fits)
    some = _spread(off, SAMPLE)
    others = min(_FITTING * len(some), len(fitting) * len(some) // len(off)) if len(off) else 0
    return np.sort(np.concatenate([some, _spread(fitting, others)]))


def _spread(entries: Indices, most: int) -> Indices:
    """So many of some entries at most, from all over them."""
    count = min(most, len(entries))
    return entries[np.arange(count) * len(entries) // max(count, 1)]
