"""A stream of updates as far as one query needs it: its entries, each cut down to what the query can see of it.

The tree is that of the law (`law/history/document.py`), judged by the same judge; what differs is what is left
out: nodes that no path of the query finds, regions that it cannot see, and versions that it can never ask for, now or
later (`sharing/retention.py`).
Which ids are known does not depend on that (`law/history/register.py`): an update of a region that is not kept is
good, and changes nothing.

Where the query asks for nothing but the present of chains that stand between items, they are *opened*: their content
stands among the other entries, between two marks that hold the place, and a replacement takes some entries away and
brings others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anabranch.branch.document.entries import Entries, Entry, Held
from anabranch.law.history.admission import Judged, is_layout
from anabranch.law.history.chains import Chain, Content, Lived, Version
from anabranch.law.history.document import Document, Moment, declared_on
from anabranch.law.history.register import Act
from anabranch.sharing.retention import CURRENT, Needs, Visibility
from anabranch.stream.elements import Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Child, Comment, Element, Instruction, Text


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something is to be put: at the end of some content, among the entries, or, without a sight, nowhere."""

    sight: Visibility | None = None
    host: list[Content] | None = None
    """None is among the entries."""
    inside: tuple[Chain, Version] | None = None
    entry: int | None = None
    """The entry that the host is in; among entries the one to stand before, None for the end."""


NOWHERE = Spot()
"""Where nothing is kept."""


class Kept(Entries):
    """What one query keeps of one stream; `take` changes it, and `moved`, others read."""

    def __init__(self, root: Element, stream: str, needs: Needs, limits: Limits | None = None) -> None:
        super().__init__(root, stream, needs, limits)
        self._opens = self.sight.chains == {CURRENT}

    # --- elements -----------------------------------------------------------------------------------------

    def _fill(
        self, host: list[Content], children: Sequence[Child], judged: Judged, source: StreamElement, between: bool
    ) -> Iterator[Moment]:
        yield from self._see(Spot(self.sight), children, judged, source.place, between)

    def _see(
        self, spot: Spot, children: Sequence[Child], judged: Judged, place: Place, between: bool
    ) -> Iterator[Moment]:
        """Put what of the content of something the query can see into its place, in the order in which it came."""
        for child in children:
            if judged.acts and not self._has(spot):
                spot = NOWHERE  # what is open was replaced by what stands in it
            if isinstance(child, Element) and (act := judged.acts.get(child)):
                yield from self._do(act, spot, child, judged, place)
            elif isinstance(child, Element):
                yield from self._put(spot, child, judged, place, between)
            elif spot.sight and spot.sight.finds(child) and not (between and is_layout(child)):
                self._append(spot, Lived(_fresh(child), {}, self._at, place))

    def _put(self, spot: Spot, element: Element, judged: Judged, place: Place, between: bool) -> Iterator[Moment]:
        sight = spot.sight.into(element.name.local) if spot.sight else None
        if spot.sight is None or sight is None or (sight.blind and not sight.seen):
            if judged.acts:  # there may be updates in it, of what is seen
                yield from self._see(NOWHERE, element.children, judged, place, between=False)
            return
        lived = Lived(_fresh(element), declared_on(element, between), self._at, place)
        entry = self._append(spot, lived)
        below = Spot(sight, lived.content, spot.inside, entry) if entry in self.by_number else NOWHERE
        yield from self._see(below, element.children, judged, place, between=False)
        if not sight.seen and not lived.content and self._has(spot):
            self._drop(spot, lived, entry)  # it was only the way to something that is not there

    def _append(self, spot: Spot, lived: Lived) -> int:
        """Put a node into its place; gives the entry that it is in."""
        if spot.host is None:
            return self._enter(Entry(lived), before=spot.entry)
        spot.host.append(lived)
        assert spot.entry is not None
        self._touch(spot.entry, self._at)
        return spot.entry

    def _has(self, spot: Spot) -> bool:
        """Whether a place where something was to be put is still kept."""
        if spot.entry is not None and spot.entry not in self.by_number:
            return False
        return spot.inside is None or (spot.inside[0] in self.held and spot.inside[1] in spot.inside[0].versions)

    def _drop(self, spot: Spot, lived: Lived, entry: int) -> None:
        if spot.host is not None:
            spot.host.remove(lived)
        elif entry in self.by_number:
            self._leave(entry)

    # --- regions and updates ------------------------------------------------------------------------------

    def _do(self, act: Act, spot: Spot, written: Element, judged: Judged, place: Place) -> Iterator[Moment]:
        """A region or an update: a version begins where it belongs, and is filled."""
        if act.at > self._at and self._news:
            self._news = False
            yield Moment(self.now)
        self._move(act.at)
        chain = act.chain
        match act.kind:
            case "mutable":
                self._hold(chain, spot)
            case "before" | "after":
                self._hold_beside(act)
        yield from self._see(self._begin(chain, act.at), written.children, judged, place, chain.between)
        self._news = True

    def _hold(self, chain: Chain, spot: Spot) -> None:
        """A new chain at the end of something."""
        if spot.sight is None or not spot.sight.chains or not self._has(spot):
            return
        if spot.host is None:
            self._hold_entry(chain, before=spot.entry)
        else:
            assert spot.entry is not None
            chain.host = spot.host
            chain.host.append(chain)
            self.held[chain] = Held(spot.sight, spot.entry, spot.inside)

    def _hold_beside(self, act: Act) -> None:
        """A new chain before or after another."""
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
        self.held[act.chain] = Held(anchor.sight, anchor.entry, anchor.inside)

    def _hold_entry(self, chain: Chain, *, before: int | None = None, after: int | None = None) -> None:
        """A new chain among the entries, before or after one of them, or at the end."""
        if not self._opens:
            self.held[chain] = Held(self.sight, self._enter(Entry(chain), before=before, after=after), top=True)
            return
        start = self._enter(Entry(None, chain), before=before, after=after)
        self.held[chain] = Held(self.sight, start, top=True, end=self._enter(Entry(None, chain), after=start))

    def _begin(self, chain: Chain, at: Fraction) -> Spot:
        """A new version of a chain; gives where its content belongs."""
        held = self.held.get(chain)
        number = next(self._numbers)
        if held is None or not self._lives(held):
            return NOWHERE
        if held.end is not None:
            while (inner := self.order.next(held.entry)) != held.end:
                assert inner is not None
                self._leave(inner)
            return Spot(held.sight, None, None, held.end)
        version = Version(at, number)
        chain.versions.append(version)
        self._trim(chain, held)
        self._touch(held.entry, at)
        return Spot(held.sight, version.content, (chain, version), held.entry)

    def _lives(self, held: Held) -> bool:
        """Whether nothing around a chain was replaced; what arrives in what was never lived (LAWS 5.2)."""
        return self._end(held) is None

    # --- who comes late -----------------------------------------------------------------------------------

    def begin(self, document: Document) -> None:
        """Start from a document as it stands, in which every region has one version (`Document.begun_at`)."""
        self.now = self._at = document.now
        self.times.update(document._times)
        chains: dict[Chain, Chain] = {}
        self._copy(Spot(self.sight), document.entries, chains)
        known = document.register.known
        chains = {chain: chains.get(chain) or Chain(chain.depth, chain.between) for chain in known}
        document.register.copied_to(self.register, chains)
        for chain in [each for each in self.held if each not in self.register.known]:
            self._free(chain)

    def _copy(self, spot: Spot, content: Sequence[Content], chains: dict[Chain, Chain]) -> None:
        for each in content:
            match each:
                case Lived(Element() as element, namespaces, start, place, inside):
                    sight = spot.sight.into(element.name.local) if spot.sight else None
                    if sight is None or (sight.blind and not sight.seen):
                        continue
                    lived = Lived(_fresh(element), namespaces, start, place)
                    entry = self._append(spot, lived)
                    self._copy(Spot(sight, lived.content, spot.inside, entry), inside, chains)
                    if not sight.seen and not lived.content:
                        self._drop(spot, lived, entry)
                case Lived(node, _, start, place):
                    assert not isinstance(node, Element)
                    if spot.sight and spot.sight.finds(node):
                        self._append(spot, Lived(_fresh(node), {}, start, place))
                case Chain(depth, between, _, versions):
                    chain = chains[each] = Chain(depth, between)
                    self._hold(chain, spot)
                    for version in versions:
                        self._copy(self._begin(chain, version.start), version.content, chains)


def _fresh(node: Child) -> Child:
    """A node by itself: without what stands in it, and holding on to nothing that was around it."""
    match node:
        case Element():
            fresh = Element(node.name)
            for attribute in node.attributes:
                fresh.set(attribute.name, attribute.value)
            return fresh
        case Text():
            return Text(node.value)
        case Comment():
            return Comment(node.value)
        case Instruction():
            return Instruction(node.target, node.value)
