"""A stream of updates projected to one query: its entries, each reduced to what the query can see.

Elements are admitted by the rules of the law (`law/history/admission.py`), and applied as the law's own document
applies them (`law/history/document.py`); but nodes that no path of the query finds, regions that it cannot see, and
versions that it can never ask for, now or later (`sharing/retention.py`), are left out.
Known ids do not depend on that (`law/history/register.py`): an update of a region that is not kept is good, and
changes nothing.

Where the query asks only for the present of chains between items, they are *opened*: their content stands among the
other entries, between two marks, and a replacement removes some entries and adds others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

from anabranch.branch.document.entries import ChainPlace, DocumentEntries, DocumentEntry
from anabranch.branch.document.judging import PlainReplacement, Replacement
from anabranch.branch.document.shared_nodes import NO_NAMESPACES, shared_declarations, shared_node
from anabranch.branch.document.usual_content import UsualContents
from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.law.history.admission import Admitted, UpdateAdmission, is_layout
from anabranch.law.history.chains import Chain, Content, DocumentContents, Lived, Version
from anabranch.law.history.register import Act
from anabranch.sharing.retention import CURRENT, Needs, Visibility
from anabranch.stream.elements import Place, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Child, Element, JsonMark

C = TypeVar("C", Lived, Version)


class InsertionPoint(NamedTuple):
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
        self._usual = UsualContents()
        self._completed = False  # whether a node was completed since the last moment
        self._coming: list[Lived | Version] = []  # what has come since then, where moments are noted

    # --- elements -----------------------------------------------------------------------------------------

    def take(self, element: StreamElement, at: Fraction, partition: int = 0) -> Iterator[Fraction]:
        """Apply an element of a time; gives the times of its moments, and at each the document is that of the moment.

        A bad element has no moments.
        """
        admitted = self.admission.judge(element, at, partition)
        if admitted is None:
            return
        self._move(at)
        if isinstance(admitted, PlainReplacement):
            self._replace(admitted.chain, admitted.update, at)
        elif admitted.tree is not None:
            yield from self._see(InsertionPoint(self.sight), [admitted.tree], admitted, element.place, between=True)
        for chain in self.admission.take(admitted, partition):
            self._free(chain)
        yield self._reached()

    def take_judged(self, replacement: Replacement, partition: int) -> None:
        """Apply an update that was judged together with others; its moment is reached then."""
        chain, update, at = replacement
        self._move(at)
        self._replace(chain, update, at)
        self.admission.times[partition] = at
        self._reached()

    def _reached(self) -> Fraction:
        """A moment is reached; what has come at it notes its time, which is known now."""
        self._completed = False
        for each in self._coming:
            each.moment = self._noted
        self._coming.clear()
        if self.begun is None:
            self.begun = self._noted
        self.moment += 1
        return self.now

    def _came(self, each: C) -> C:
        """What comes, with its moment where the query needs moments."""
        if self._notes_moments:
            each.moment = self._noted
            self._coming.append(each)
        return each

    def _move(self, at: Fraction) -> None:
        self._at = at
        if at is not self.now:
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
                self._append(point, self._came(Lived(shared_node(child), NO_NAMESPACES, self._at, place)))

    def _put(
        self, point: InsertionPoint, element: Element, admitted: Admitted, place: Place, between: bool
    ) -> Iterator[Fraction]:
        sight = point.sight.into(element.name.local) if point.sight else None
        if point.sight is None or sight is None or (sight.blind and not sight.seen):
            if admitted.acts:  # it may contain updates of visible regions
                yield from self._see(NOWHERE, element.children, admitted, place, between=False)
            return
        lived = self._came(Lived(shared_node(element), shared_declarations(element, between), self._at, place))
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

    def _replace(self, chain: Chain, update: Update, at: Fraction) -> None:
        """Apply an update that only gives a region other content, which has no regions."""
        held, place = self.held.get(chain), update.place
        if isinstance(update, UsualUpdate) and held is not None and held.is_inner and not self._notes_moments:
            regions = self.changed.get(held.entry, ())
            number, self.next_version = self.next_version, self.next_version + 1
            chain.versions.append(Version(at, number, self._usual.lives(update, held.sight, at, place)))
            self._trim(chain, held)
            self._touch(held.entry, at)
            if regions is not None and held.entry in self.changed:
                self.changed[held.entry] = (*regions, chain)
            return
        regions = () if held is None else self.changed.get(held.entry, ())
        point = self._begin(chain, at, update.mark)
        if point.host is not None and point.sight is not None:
            if isinstance(update, UsualUpdate) and not chain.between:
                point.host.extend(self._usual.lives(update, point.sight, self._at, place))
            else:
                self._fill(point.host, point.sight, update.content, place, chain.between)
            if held is not None and regions is not None and held.entry in self.changed:
                self.changed[held.entry] = (*regions, chain)
        elif point.sight is not None:  # it stands among the entries
            nothing = Admitted(None, {}, at)
            assert not list(self._see(point, update.content, nothing, place, chain.between)), "it has no regions"

    def _fill(
        self, host: list[Content], sight: Visibility, children: Sequence[Child], place: Place, between: bool
    ) -> None:
        """Add the visible part of content without regions."""
        for child in children:
            if not isinstance(child, Element):
                if sight.finds(child) and not (between and is_layout(child)):
                    host.append(Lived(shared_node(child), NO_NAMESPACES, self._at, place))
                continue
            below = sight.into(child.name.local)
            if below.blind and not below.seen:
                continue
            lived = Lived(shared_node(child), shared_declarations(child, between), self._at, place)
            if child.children:
                self._fill(lived.content, below, child.children, place, between=False)
            if below.seen or lived.content:  # else it is kept only for a descendant, which is missing
                host.append(lived)

    # --- regions and updates ------------------------------------------------------------------------------

    def _do(
        self, act: Act, point: InsertionPoint, written: Element, admitted: Admitted, place: Place
    ) -> Iterator[Fraction]:
        """Apply a region or an update: a version begins at its place, and is filled."""
        if act.at > self._at and self._completed:
            yield self._reached()
        self._move(act.at)
        chain = act.chain
        match act.kind:
            case "close":
                return
            case "append":
                yield from self._add(chain, written, admitted, place)
                return
            case "mutable":
                self._hold(chain, point)
            case "before" | "after":
                self._hold_beside(act)
        yield from self._see(self._begin(chain, act.at, written.mark), written.children, admitted, place, chain.between)
        self._completed = True

    def _add(self, end: Chain, written: Element, admitted: Admitted, place: Place) -> Iterator[Fraction]:
        """Insert the content of a token before the open end of its element or region."""
        held = self.held.get(end)
        if held is None or not self._lives(held):
            yield from self._see(NOWHERE, written.children, admitted, place, end.between)
        elif held.top:
            point = InsertionPoint(held.sight, None, held.inside, held.entry)
            yield from self._see(point, written.children, admitted, place, end.between)
        else:
            host = end.host
            host.pop()  # the open end stands last
            point = InsertionPoint(held.sight, host, held.inside, held.entry)
            yield from self._see(point, written.children, admitted, place, end.between)
            host.append(end)

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
        version = self._came(Version(at, number, mark=mark))
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
        chains = {chain: copies.get(chain) or _alike(chain) for chain in register.known}
        register.copied_to(self.register, chains)
        self.admission.open = deepcopy(start.admission.open)
        for chain in [each for each in self.held if each not in self.register.known]:
            self._free(chain)
        self._reached()

    def _copy(self, point: InsertionPoint, content: Sequence[Content], copies: dict[Chain, Chain]) -> None:
        for each in content:
            match each:
                case Lived(Element() as element, namespaces, _, place, inside):
                    sight = point.sight.into(element.name.local) if point.sight else None
                    if sight is None or (sight.blind and not sight.seen):
                        continue
                    lived = Lived(shared_node(element), namespaces, self.now, place)
                    entry = self._append(point, lived)
                    self._copy(InsertionPoint(sight, lived.content, point.inside, entry), inside, copies)
                    if not sight.seen and not lived.content:
                        self._drop(point, lived, entry)
                case Lived(node, _, _, place):
                    if point.sight and point.sight.finds(node):
                        self._append(point, Lived(shared_node(node), NO_NAMESPACES, self.now, place))
                case Chain(versions=versions):
                    chain = copies[each] = _alike(each)
                    self._hold(chain, point)
                    self._copy(self._begin(chain, self.now, versions[-1].mark), versions[-1].content, copies)

    # --- when queries leave -------------------------------------------------------------------------------

    def narrow(self) -> None:
        """Drop what was kept for queries that are gone: all that the others cannot see, now or later."""
        now = self.now if self.clock is None else max(self.clock, self.now)
        for number in [*self.by_number]:
            entry = self.by_number[number]
            content = [] if entry.content is None else [entry.content]
            marks = [each for each in entry.marks if self._seconds and each + self._seconds[-1] > now]
            if self._narrowed(self.sight, content) or marks != entry.marks:
                entry.marks = marks
                self.unsaved.entries[number] = None
                if entry.content is not None and not content and number in self.by_number:
                    self._leave(number)

    def _narrowed(self, sight: Visibility, content: list[Content]) -> bool:
        """Narrow some content; gives whether something was dropped."""
        is_narrower = False
        for each in [*content]:
            match each:
                case Lived(Element() as element):
                    inner = sight.into(element.name.local)
                    is_narrower |= self._narrowed(inner, each.content)
                    is_seen = inner.seen or bool(each.content)
                case Lived(node):
                    is_seen = sight.finds(node)
                case Chain(versions=versions):
                    is_seen, before = bool(sight.chains), len(versions)
                    for version in versions if is_seen else ():
                        is_narrower |= self._narrowed(sight, version.content)
                    if is_seen:
                        self._trim(each, self.held[each])
                        is_narrower |= len(each.versions) < before
            if not is_seen:
                content.remove(each)
                self._forget([each])
                is_narrower = True
        return is_narrower


def _alike(chain: Chain) -> Chain:
    """A chain without versions at the same place."""
    return Chain(chain.depth, chain.between, inside=chain.inside, is_open_end=chain.is_open_end)


def seen_of(content: Sequence[Content], sight: Visibility) -> list[Content]:
    """What a query sees of some content, in all versions that are kept."""
    found: list[Content] = []
    for each in content:
        match each:
            case Lived(Element() as element):
                inner = sight.into(element.name.local)
                inside = seen_of(each.content, inner)
                if inner.seen or inside:
                    found.append(replace(each, content=inside))
            case Lived(node) if sight.finds(node):
                found.append(each)
            case Chain(versions=versions) if sight.chains:
                lives = [replace(version, content=seen_of(version.content, sight)) for version in versions]
                found.append(replace(each, versions=lives))
            case _:
                pass
    return found
