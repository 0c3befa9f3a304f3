"""The evolution of a partition as batches meet it: where it changes, and which items may be bad there.

Accents, and punctuations that describe items, say something of the items behind them (LAWS 4).
An accent ends a batch: what lies between two of them is answered in one state.
A punctuation does not, since there may be many; the items behind it that it may exclude are looked at one by one, and
so are those that may carry a dropped path.
Which these are is found in columns: items that fit a template have its paths and no others, and what was dropped or
closed is held against the values there.

A stream without any of this pays nothing: what fits is no control element, and the rest is read anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from anabranch.algebra.accents.boxes import boxes
from anabranch.algebra.accents.events import is_change
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.sets import items_of
from anabranch.columnar.items.units import Followed
from anabranch.columnar.match.boxed import MOST_BOXES, BoxColumns, carries, covers
from anabranch.columnar.scan.kernels import Flags
from anabranch.columnar.scan.shred import Shredded
from anabranch.errors import StreamError
from anabranch.stream.description import Description
from anabranch.stream.elements import DeadLetter, Item, Punctuation, StreamElement
from anabranch.stream.reading.lines import Cut

WORDS = (b"accent", b"punctuation")
"""What stands in elements that say something of the items behind them."""
ESCAPE = b"\\u"


class Follows(Protocol):
    """The queries of a stream that evolves, by their numbers."""

    @property
    def silent(self) -> frozenset[int]:
        """Those that are over."""

    @property
    def groups(self) -> Sequence[Followed]:
        """Those that evolve alike together, in the order of their numbers; the same until something changes."""

    def piece(self, number: int, item: Item) -> str:
        """What an item adds to an answer."""


class Course(Protocol):
    """One partition where its reading stands; reading an element takes it in."""

    @property
    def follows(self) -> Follows | None:
        """The queries; None where nothing was said yet."""

    def added(self) -> Iterable[tuple[int, str]]:
        """What the element that was read last adds to whose answer, though it is no item."""

    @property
    def parted(self) -> bool:
        """Whether a punctuation, too, parts the items before it from those behind it."""

    @property
    def evolution(self) -> Evolution:
        """The state; not to be changed by whoever looks at it."""

    def peek(self, cut: Cut) -> StreamElement | DeadLetter:
        """What an entry is, without any consequence."""


def changes(course: Course, shredded: Shredded, unknown: Flags) -> dict[int, StreamElement | DeadLetter]:
    """The entries of a batch that say something of those behind them, among those that may be anything."""
    found: dict[int, StreamElement | DeadLetter] = {}
    for entry in map(int, np.flatnonzero(unknown)):
        cut = shredded.cut(entry)
        if any(may_hold(word, cut.raw) for word in WORDS):
            element = course.peek(cut)
            if is_change(element):
                found[entry] = element
    return found


def suspects(
    course: Course, shredded: Shredded, known: Flags, said: Mapping[int, StreamElement | DeadLetter]
) -> Flags | None:
    """The known entries of a stretch without accents that may be bad items after all; None if there are none."""
    forbidden = list(course.evolution.forbidden())
    closings = {entry: _closed(each.where) for entry, each in said.items() if isinstance(each, Punctuation)}
    if not forbidden and not closings:
        return None
    template = shredded.wanted.template if shredded.wanted else None
    live = [
        box
        for path, held in forbidden
        if path is None or (template is not None and carries(template, path))
        for box in held
    ]
    if len(live) > MOST_BOXES:
        live = [()]
    columns = BoxColumns.of(shredded, known, [*live, *(box for each in closings.values() for box in each)])
    found = np.zeros(len(known), np.bool_)
    begin, begun = 0, bool(forbidden)
    for entry, fresh in (*closings.items(), (len(known), ())):
        if begun:
            found[begin:entry] = columns.may_be_in(live, begin, entry)
        live = [*(each for each in live if not any(covers(box, each) for box in fresh)), *fresh]
        begin, begun = entry, True
    return found if found.any() else None


def may_hold(word: bytes, raw: bytes) -> bool:
    """Whether a control element of this name may stand in some bytes; JSON may spell it with escapes."""
    return word in raw or ESCAPE in raw


def _closed(where: Description | None) -> Sequence[Box]:
    try:
        return [] if where is None else boxes(items_of(where))
    except StreamError:  # as in `Evolution.close`
        return []
