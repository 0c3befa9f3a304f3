"""What one query makes of items that lie in columns, in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anabranch.branch.held_items import Kept
from anabranch.branch.members import Asker
from anabranch.columnar.items.layout import Laid, laid_out
from anabranch.columnar.scan.kernels import Indices
from anabranch.columnar.scan.shred import Shredded
from anabranch.errors import DynamicError

_SLOW = 64
"""How many items are answered one by one before their answers are laid out with the others."""


def answer_in_columns(
    asker: Asker,
    laid: Laid,
    shredded: Shredded,
    arrivals: Indices,
    chosen: Indices,
    unclear: Indices,
    kept: Mapping[int, Kept],
) -> None:
    """Answer a query; `arrivals` are entries in their order, `chosen` and `unclear` places in it.

    What is chosen is laid out in columns, what is unclear asked of the law, and `kept` has those entries as items.
    """
    if not laid.query.fragments:
        chosen = chosen[:0]
    for first in range(0, max(len(unclear), 1), _SLOW):
        slow = unclear[first : first + _SLOW]
        end = int(unclear[first + _SLOW]) if first + _SLOW < len(unclear) else len(arrivals)
        fast, chosen = np.split(chosen, [np.searchsorted(chosen, end)])
        pieces = [_by_law(asker, kept[entry]) for entry in arrivals[slow].tolist()]
        given = np.fromiter(map(bool, pieces), np.bool_, len(pieces))
        order = np.argsort(np.concatenate([fast, slow[given]]))
        picks = np.concatenate([arrivals[fast], ~np.flatnonzero(given)])[order]
        if len(picks):
            data, offsets = laid_out(shredded, laid.fragments, picks, pieces)
            asker.answers.extend(bytes(data), len(offsets) - 1, int(offsets[1]))


def _by_law(asker: Asker, kept: Kept) -> bytes:
    """What an item adds to an answer; nothing where it fails and is set aside."""
    try:
        return asker.item(kept).text.encode()
    except DynamicError as error:
        asker.answers.bury(kept, error)
        return b""
