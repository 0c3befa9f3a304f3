"""A stream of updates projected to one query: its entries, each reduced to what the query can see.

Elements are admitted by the rules of the law (`law/history/admission.py`), and applied as the law's own document
applies them (`law/history/document.py`); but nodes that no path of the query finds, regions that it cannot see, and
versions that it can never ask for, now or later (`sharing/retention.py`), are left out.
Known ids do not depend on that (`law/history/admission.py`): an update of a region that is not kept is good, and
changes nothing.

Where the query asks only for the present of chains between items, they are *opened*: their content stands among the
other entries, between two marks, and a replacement removes some entries and adds others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.branch.document.entries import ChainPlace, DocumentEntries, DocumentEntry
from anabranch.law.history.admission import Act, Admitted, UpdateAdmission, declared_on, is_layout
from anabranch.law.history.chains import Chain, Content, DocumentContents, Lived, Version, bare
from anabranch.sharing.retention import CURRENT, Needs, Visibility
from anabranch.stream.elements import Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Child, Element, JsonMark


@dataclass(frozen=True, slots=True)
class InsertionPoint:
    """Where content is added: at the end of other content, among the entries, or, without a sight, nowhere."""

    sight: Visibility | None = None
    host: list[Content] | None = None
    """None stands for the entries."""
    inside: tuple[Chain, Version] | None = None
    entry: int | None = None
    """The entry of the host; among entries the one to stand before, None for the end."""


NOWHERE = InsertionPoint()
"""The insertion point of content that is not kept."""


@dataclass(frozen=True, slots=True)
class LateStart:
    """The present document for a late subscription: its versions, whose lives begin now (LAWS 3.6)."""

    contents: DocumentContents
    admission: UpdateAdmission
    now: Fraction


class KeptDocument(DocumentEntries):
    """The part of one stream that one query keeps; only `take` and `moved` change it."""

    def __init__(self, root: Element, stream: str, needs: Needs, limits: Limits | None = None) -> None:
        super().__init__(root, stream, needs, limits)
        self._opens = self.sight.chains == {CURRENT}
        self._completed = False  # whether a node was completed since the last moment

    # --- elements -----------------------------------------------------------------------------------------

    def take(self, element: StreamElement, at: Fraction, partition: int = 0) -> Iterator[Fraction]:
        """Apply an element of a time; gives the times of its moments, and at each the document is that of the moment.

        A bad element has no moments.
        """
        admitted = self.admission.judge(element, at, partition)
        if admitted is None:
            return
        self._move(at)
        if admitted.tree is not None:
            yield from self._see(InsertionPoint(self.sight), [admitted.tree], admitted, element.place, between=True)
        for chain in self.admission.take(admitted, partition):
            self._free(chain)
        self._completed = False
        yield self.now

    def _move(self, at: Fraction) -> None:
        self._at = at
        self.now = max(self.now, at) if self.admission.times else at  # a time path may begin below 0

    def _see(
        self, point: InsertionPoint, children: Sequence[Child], admitted: Admitted, place: Place, between: bool
    ) -> Iterator[Fraction]:
        """Insert the visible part of some content, in the order in which it came."""
        for child in children:
            if admitted.acts and not self._has(point):
                point = NOWHERE  # the open region was replaced by an update inside it
            if isinstance(child, Element) and (act := admitted.acts.get(child)):
                yield from self._do(act, point, child, admitted, place)
            elif isinstance(child, Element):
                yield from self._put(point, child, admitted, place, between)
            elif point.sight and point.sight.finds(child) and not (between and is_layout(child)):
                self._append(point, Lived(bare(child), {}, self._at, place))

    def _put(
        self, point: InsertionPoint, element: Element, admitted: Admitted, place: Place, between: bool
    ) -> Iterator[Fraction]:
        sight = point.sight.into(element.name.local) if point.sight else None
        if point.sight is None or sight is None or (sight.blind and not sight.seen):
            if admitted.acts:  # it may contain updates of visible regions
                yield from self._see(NOWHERE, element.children, admitted, place, between=False)
            return
        lived = Lived(bare(element), declared_on(element, between), self._at, place)
        entry = self._append(point, lived)
        below = InsertionPoint(sight, lived.content, point.inside, entry) if entry in self.by_number else NOWHERE
        yield from self._see(below, element.children, admitted, place, between=False)
        if not sight.seen and not lived.content and self._has(point):
            self._drop(point, lived, entry)  # it was kept only for a descendant, which is missing

    def _append(self, point: InsertionPoint, lived: Lived) -> int:
        """Insert a node; gives its entry."""
        if point.host is None:
            return self._enter(DocumentEntry(lived), before=point.entry)
        point.host.append(lived)
        assert point.entry is not None
        self._touch(point.entry, self._at)
        return point.entry

    def _has(self, point: InsertionPoint) -> bool:
        """Whether an insertion point is still kept."""
        if point.entry is not None and point.entry not in self.by_number:
            return False
        return point.inside is None or (point.inside[0] in self.held and point.inside[1] in point.inside[0].versions)

    def _drop(self, point: InsertionPoint, lived: Lived, entry: int) -> None:
        if point.host is not None:
            point.host.remove(lived)
        elif entry in self.by_number:
            self._leave(entry)

    # --- regions and updates ------------------------------------------------------------------------------

    def _do(
        self, act: Act, point: InsertionPoint, written: Element, admitted: Admitted, place: Place
    ) -> Iterator[Fraction]:
        """Apply a region or an update: a version begins at its place, and is filled."""
        if act.at > self._at and self._completed:
            self._completed = False
            yield self.now
        self._move(act.at)
        chain = act.chain
        match act.kind:
            case "mutable":
                self._hold(chain, point)
            case "before" | "after":
                self._hold_beside(act)
        yield from self._see(self._begin(chain, act.at, written.mark), written.children, admitted, place, chain.between)
        self._completed = True

    def _hold(self, chain: Chain, point: InsertionPoint) -> None:
        """Add a new chain at the end of some content."""
        if point.sight is None or not point.sight.chains or not self._has(point):
            return
        if point.host is None:
            self._hold_entry(chain, before=point.entry)
        else:
            assert point.entry is not None
            chain.host = point.host
            chain.host.append(chain)
            self.held[chain] = ChainPlace(point.sight, point.entry, point.inside)

    def _hold_beside(self, act: Act) -> None:
        """Add a new chain before or after another."""
        anchor = self.held.get(act.anchor)
        if anchor is None or not self._lives(anchor):
            return
        if anchor.top and act.kind == "before":
            self._hold_entry(act.chain, before=anchor.entry)
            return
        if anchor.top:
            self._hold_entry(act.chain, after=anchor.entry if anchor.end is None else anchor.end)
            return
        host = act.chain.host = act.anchor.host
        host.insert(host.index(act.anchor) + (act.kind == "after"), act.chain)
        self.held[act.chain] = ChainPlace(anchor.sight, anchor.entry, anchor.inside)

    def _hold_entry(self, chain: Chain, *, before: int | None = None, after: int | None = None) -> None:
        """Add a new chain among the entries, before or after one of them, or at the end."""
        if not self._opens:
            self.held[chain] = ChainPlace(
                self.sight, self._enter(DocumentEntry(chain), before=before, after=after), top=True
            )
            return
        start = self._enter(DocumentEntry(None, chain), before=before, after=after)
        self.held[chain] = ChainPlace(
            self.sight, start, top=True, end=self._enter(DocumentEntry(None, chain), after=start)
        )

    def _begin(self, chain: Chain, at: Fraction, mark: JsonMark | None = None) -> InsertionPoint:
        """Begin a version of a chain; gives the insertion point of its content."""
        held = self.held.get(chain)
        number = self.next_version
        self.next_version += 1
        if held is None or not self._lives(held):
            return NOWHERE
        if held.end is not None:
            while (inner := self.order.next(held.entry)) != held.end:
                assert inner is not None
                self._leave(inner)
            return InsertionPoint(held.sight, None, None, held.end)
        version = Version(at, number, mark=mark)
        chain.versions.append(version)
        self._trim(chain, held)
        self._touch(held.entry, at)
        return InsertionPoint(held.sight, version.content, (chain, version), held.entry)

    def _lives(self, held: ChainPlace) -> bool:
        """Whether nothing around a chain was replaced; what arrives in a replaced version never lived (LAWS 5.2)."""
        return self._end(held) is None

    # --- late subscriptions -------------------------------------------------------------------------------

    def begin(self, start: LateStart) -> None:
        """Start from a present document."""
        self.now = self._at = start.now
        self.admission.times.update(dict.fromkeys(start.admission.times, start.now))
        copies: dict[Chain, Chain] = {}
        self._copy(InsertionPoint(self.sight), start.contents.entries, copies)
        register = start.admission.register
        chains = {chain: copies.get(chain) or Chain(chain.depth, chain.between) for chain in register.known}
        register.copied_to(self.register, chains)
        for chain in [each for each in self.held if each not in self.register.known]:
            self._free(chain)

    def _copy(self, point: InsertionPoint, content: Sequence[Content], copies: dict[Chain, Chain]) -> None:
        for each in content:
            match each:
                case Lived(Element() as element, namespaces, _, place, inside):
                    sight = point.sight.into(element.name.local) if point.sight else None
                    if sight is None or (sight.blind and not sight.seen):
                        continue
                    lived = Lived(bare(element), namespaces, self.now, place)
                    entry = self._append(point, lived)
                    self._copy(InsertionPoint(sight, lived.content, point.inside, entry), inside, copies)
                    if not sight.seen and not lived.content:
                        self._drop(point, lived, entry)
                case Lived(node, _, _, place):
                    if point.sight and point.sight.finds(node):
                        self._append(point, Lived(bare(node), {}, self.now, place))
                case Chain(depth, between, _, versions):
                    chain = copies[each] = Chain(depth, between)
                    self._hold(chain, point)
                    self._copy(self._begin(chain, self.now, versions[-1].mark), versions[-1].content, copies)
