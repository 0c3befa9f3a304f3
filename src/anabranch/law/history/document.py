"""A stream of updates as one document that forgets nothing.

The document is a tree whose children are nodes or *chains*; a chain is the versions of one region, the newest last,
each with the moment at which it came (LAWS 5.3).
What is inserted beside a region is a chain of its own, next to it in the same list: so the latest of several at one
anchor stands nearest, and whatever version the anchor shows, they stay where they are.
An update that is written inside an item or another region acts at its own place in time, and nothing of it stays where
it was written.
What a token brings stands before the open end of its element or region (`tokens.py`); in a version that was replaced it
never was.

Versions and nodes carry the time at which they came, and versions also a number that grows with each: times of several
updates may be equal, and still each replaces the one before (LAWS, case 31).
Lives follow from that and from where things stand (`view.py`); here nothing is ever ended.

*Moments* are where the display is defined: after each element, also after one inside another whose end is still to
come; elements inside one another that complete at the same time are one moment.

A bad element is set aside whole, with the reason and its place, and changes nothing (LAWS 2.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count

from anabranch.law.history.admission import Admitted, UpdateAdmission, declared_on, is_layout
from anabranch.law.history.chains import Content, DocumentContents, DocumentMoment, Lived, Version, bare_element
from anabranch.law.history.register import Act
from anabranch.stream.elements import Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.tree import Child, Element

_MOMENTS = count(1)
"""Numbers moments as they come, also those of several documents, whose elements are taken in their merged order."""


class EditedDocument:
    """One stream of updates, all its partitions together; ids belong to a partition (LAWS 5.3)."""

    def __init__(self, root: Element, limits: Limits | None = None) -> None:
        self.root = bare_element(root, dict(root.namespaces))
        """The root element, without what stands in it."""
        self.entries: list[Content] = []
        """The entries: the content below the root."""
        self.now = Fraction(0)
        """The time of the latest element."""
        self.admission = UpdateAdmission(limits)
        self._numbers = count()
        self._at = Fraction(0)  # the time of what is being taken; `now` may be later, by another partition
        self._news = False  # whether something has completed since the last moment
        self.moments: list[DocumentMoment] = []
        """All moments so far."""
        self._number = 0  # that of the moment that comes next

    @property
    def contents(self) -> DocumentContents:
        """The document as it stands."""
        return DocumentContents(self.root, self.entries, self.moments)

    def take(self, element: StreamElement, at: Fraction, partition: int = 0) -> Iterator[Fraction]:
        """Apply an element that came at a time; gives the times of its moments, and at each the document is as of it.

        A bad element has none.
        """
        admitted = self.admission.judge(element, at, partition)
        if admitted is None:
            return
        self._number = next(_MOMENTS)
        self._move(at)
        if admitted.tree is not None:
            yield from self._fill(self.entries, [admitted.tree], admitted, element.place, between=True)
        self.admission.take(admitted, partition)
        yield self._reached()

    def _reached(self) -> Fraction:
        """A moment is reached."""
        self._news = False
        self.moments.append(DocumentMoment(self._number, self.now))
        self._number = next(_MOMENTS)
        return self.now

    @property
    def _moment(self) -> DocumentMoment:
        """The moment that comes next."""
        return DocumentMoment(self._number, self.now)

    def _fill(
        self, host: list[Content], children: Sequence[Child], admitted: Admitted, place: Place, between: bool
    ) -> Iterator[Fraction]:
        """Put what was written into the place where it belongs, in the order in which it came."""
        for child in children:
            if isinstance(child, Element) and (act := admitted.acts.get(child)) is not None:
                yield from self._act(act, host, child, admitted, place)
                continue
            if between and is_layout(child):
                continue
            lived = Lived(child, declared_on(child, between), self._at, place, moment=self._moment)
            host.append(lived)
            if isinstance(child, Element):
                yield from self._fill(lived.content, child.children, admitted, place, between=False)

    def _act(
        self, act: Act, host: list[Content], written: Element, admitted: Admitted, place: Place
    ) -> Iterator[Fraction]:
        """A region or an update: a version begins where it belongs, and is filled."""
        if act.at > self._at and self._news:
            yield self._reached()
        self._move(act.at)
        chain = act.chain
        match act.kind:
            case "close":
                return
            case "append":
                open_host: list[Content] = [chain] if self.admission.register.known[chain].is_over else chain.host
                open_host.pop()  # the open end stands last
                yield from self._fill(open_host, written.children, admitted, place, chain.between)
                open_host.append(chain)
                return
            case "mutable":
                chain.host = host
                host.append(chain)
            case "before" | "after":
                chain.host = act.anchor.host
                chain.host.insert(chain.host.index(act.anchor) + (act.kind == "after"), chain)
        version = Version(act.at, next(self._numbers), mark=written.mark, moment=self._moment)
        chain.versions.append(version)
        yield from self._fill(version.content, written.children, admitted, place, chain.between)
        self._news = True

    def _move(self, at: Fraction) -> None:
        self._at = at
        self.now = max(self.now, at) if self.admission.times else at  # a time path may begin below 0
