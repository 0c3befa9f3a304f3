"""Content in regions: what is written, what shows of it, and what it comes to.

What all stages share which have to adjust something when the past is edited (history paper, section 8): a tree
(`tree.py`) of which some shows.
A chain's qualifier says which of its versions show; a version that can never show again is forgotten at once.

The paper keeps for each region a state at its start and a list of states at its ends, and adjusts all regions behind
an update; but with `adjust(s1, s2, s3) = s1 - s2 + s3`, the only kind there is here, that is the same as to keep what
each version adds: the state at the start of a region is the sum of all that shows before it (`start`), that at the end
this and its own.
So a change costs one path to the root, however many regions stand behind it.

No region, and no version of one, begins in a version that was replaced: it would never have lived (LAWS 5.2).
One that had begun is written to its end.

A stage derives from `Regions`, says what pieces are by a `Scale`, and may follow what enters and leaves by the methods
that do nothing here (`entered`, `shown`, `leaving`, `left`, `flipped`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from anabranch.algebra.display.ordered import V
from models.pipeline.bodies import (
    Body,
    Chain,
    Frame,
    Lived,
    P,
    Scale,
    Version,
    ended,
    is_in_the_past,
    is_kept,
)
from models.pipeline.qualifier import Qualifier, effective, needed, next_change
from models.pipeline.tree import Tree


class Regions(Tree[P, V]):
    """A tree, and now."""

    def __init__(self, scale: Scale[P, V]) -> None:
        super().__init__(scale)
        self.now = Decimal(0)
        self._due: list[tuple[Decimal, int]] = []
        """When the chains with time qualifiers may show something else, by the handles; a heap."""

    # --- editing --------------------------------------------------------------------------------------------

    def append(self, body: Body[P, V], piece: P) -> None:
        """A piece at the end of a body."""
        if not is_kept(body):
            return
        last = body.parts.last
        if last is not None and not isinstance(held := self._parts[last], Chain | Frame):
            joined = self.scale.join(held, piece)
            if joined is not None:
                before, after = body.parts[last], self.scale.measure(joined)
                self._parts[last] = joined
                body.parts.set(last, after)
                self._carry(body, after - before)
                self.entered(body, last, before, piece)
                return
        value = self.scale.measure(piece)
        handle = self._place(body, piece, None, None, value)
        self._carry(body, value)
        self.entered(body, handle, self.scale.zero, piece)

    def frame(self, body: Body[P, V], piece: P) -> Frame[P, V]:
        """A frame at the end of a body."""
        frame = Frame(body, self.next, piece, self.scale.zero)
        if not is_kept(body):
            return frame
        value = self.scale.around(piece, self.scale.zero)
        handle = self._place(body, frame, None, None, value)
        self._carry(body, value)
        self.entered(body, handle, self.scale.zero, piece)
        return frame

    def chain(
        self,
        body: Body[P, V],
        qualifier: Qualifier | None = None,
        context: Any = None,
        *,
        before: Chain[P, V] | None = None,
        after: Chain[P, V] | None = None,
    ) -> Chain[P, V]:
        """A new region with an empty version: at the end of a body, or beside another region, nearest to it."""
        chain = Chain(body, self.next, qualifier, context)
        self._place(body, chain, before, after, self.scale.zero)
        chain.versions.append(Version(chain, self.now, self.scale.zero))
        self._refresh(chain)
        return chain

    def replace(self, chain: Chain[P, V], qualifier: Qualifier | None = None) -> Body[P, V] | None:
        """A new version, empty as yet, for a region that is not over; a qualifier takes the place of the one before."""
        if ended(chain.body) is not None:
            return None
        chain.qualifier = qualifier or chain.qualifier
        newest = chain.versions[0]
        newest.end = self.now
        chain.versions.insert(0, Version(chain, self.now, self.scale.zero))
        self._refresh(chain)
        if newest in chain.versions:
            self._reschedule(newest.body)
        return chain.versions[0].body

    def remove(self, chain: Chain[P, V]) -> None:
        """Take a region out, with its past: nobody will name it again."""
        for version in chain.versions:
            if version.shows:
                self._hide(version)
        chain.body.parts.remove(chain.handle)
        self._forget([chain])
        chain.versions = []

    def advance(self, now: Decimal) -> None:
        """Time moves: what expires by it leaves, what is old enough by it shows."""
        self.now = max(self.now, now)
        while self._due and self._due[0][0] <= self.now:
            _, handle = heapq.heappop(self._due)
            chain = self._parts.get(handle)
            if isinstance(chain, Chain):
                self._refresh(chain)

    def look_ahead(self) -> None:
        """Find out when the parts that were read back (`keeping.py`) will change by time alone."""
        for chain in self._chains(self.root):
            lives = [Lived(each, ended(each.body)) for each in chain.versions]
            self._schedule(chain, lives)

    # --- to be followed -------------------------------------------------------------------------------------

    def entered(self, body: Body[P, V], handle: int, offset: V, piece: P) -> None:
        """A piece (or an empty frame's) was put into a part, behind what the part was before; sums are up to date."""

    def shown(self, version: Version[P, V]) -> None:
        """A version has come to show; sums are up to date."""

    def leaving(self, version: Version[P, V]) -> None:
        """A version is about to be hidden; sums still count it."""

    def left(self, version: Version[P, V], at: V) -> None:
        """A version was hidden; `at` is what stood before it in its scope."""

    def framed(self, frame: Frame[P, V]) -> V:
        """What a frame comes to; something in it has changed."""
        return self.scale.around(frame.piece, frame.inside.parts.total)

    def flipped(self, frame: Frame[P, V]) -> None:
        """A frame has become one around nothing, or is none any more."""

    # --- what shows -----------------------------------------------------------------------------------------

    def _carry(self, body: Body[P, V], difference: V) -> None:
        """Tell all that a body stands in that it comes to something else now."""
        while (owner := body.owner) is not None:
            if isinstance(owner, Frame):
                parts, handle, value = owner.body.parts, owner.handle, self.framed(owner)
                difference = value - parts[handle]
                parts.set(handle, value)
                if owner.is_empty is not self.scale.is_empty(body.parts.total):
                    owner.is_empty = not owner.is_empty
                    self.flipped(owner)
                body = owner.body
            elif owner.shows:
                chain = owner.chain
                chain.body.parts.set(chain.handle, chain.body.parts[chain.handle] + difference)
                body = chain.body
            else:
                return

    def _refresh(self, chain: Chain[P, V]) -> None:
        """Show what the qualifier wants, forget what it cannot want any more."""
        lives = [Lived(each, ended(each.body)) for each in chain.versions]
        asked = None if is_in_the_past(chain) else chain.qualifier
        wanted = [each.version for each in effective(asked, lives, self.now)]
        for version in chain.versions:
            if version.shows and version not in wanted:
                self._hide(version)
        for version in wanted:
            if not version.shows:
                version.shows = True
                self._carry(version.body, version.body.parts.total)
                self.shown(version)
        kept = needed(asked, lives, self.now)
        if len(kept) < len(lives):
            chain.versions = [each.version for each in kept]
            for life in lives:
                if life.version not in chain.versions:
                    self._forget_body(life.version.body)
        self._schedule(chain, kept)

    def _schedule(self, chain: Chain[P, V], lives: Sequence[Lived[P, V]]) -> None:
        due = next_change(chain.qualifier, lives, self.now)
        if due is not None:
            heapq.heappush(self._due, (due, chain.handle))

    def _hide(self, version: Version[P, V]) -> None:
        at = self.scope(version.body)[1]
        self.leaving(version)
        difference = self.scale.zero - version.body.parts.total
        version.shows = False
        chain = version.chain
        chain.body.parts.set(chain.handle, chain.body.parts[chain.handle] + difference)
        self._carry(chain.body, difference)
        self.left(version, at)

    def _reschedule(self, body: Body[P, V]) -> None:
        """A version has ended: so have those in it, and what shows of them may be something else, now or in time."""
        for chain in list(self._chains(body)):
            asked = chain.qualifier
            is_known = self._parts.get(chain.handle) is chain  # an outer one may have forgotten it meanwhile
            if is_known and asked is not None and (asked.kind == "time" or asked.is_inner):
                self._refresh(chain)
