"""A stream of updates as one document that forgets nothing.

The document is a tree whose children are nodes or *chains*; a chain is the versions of one region, the newest last,
each with the moment at which it came (LAWS 5.3).
What is inserted beside a region is a chain of its own, next to it in the same list: so the latest of several at one
anchor stands nearest, and whatever version the anchor shows, they stay where they are.
An update that is written inside an item or another region acts at its own place in time, and nothing of it stays where
it was written.

Versions and nodes carry the time at which they came, and versions also a number that grows with each: times of several
updates may be equal, and still each replaces the one before (LAWS, case 31).
Lives follow from that and from where things stand (`view.py`); here nothing is ever ended.

*Moments* are where the display is defined: after each element, also after one inside another whose end is still to
come; elements inside one another that complete at the same time are one moment.

A bad element is set aside whole, with the reason and its place, and changes nothing (LAWS 2.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from anabranch.errors import BadItem
from anabranch.law.history.admission import Judged, is_control, is_layout, judge
from anabranch.law.history.chains import Chain, Content, Lived, Version
from anabranch.law.history.register import Act, Register
from anabranch.stream.elements import LONGEST_RAW, Accent, DeadLetter, Item, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.wire import tree_of, write
from anabranch.stream.tree import Child, Element, copy, namespaces_in_scope

DEEPEST = 200
"""How deep a document is at most, regions counted, whatever an item may be: who looks into it goes down by calls."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of the stream at which the display is defined, and the time then."""

    at: Fraction


class Document:
    """One stream of updates, all its partitions together; ids belong to a partition (LAWS 5.3)."""

    def __init__(self, root: Element, limits: Limits | None = None) -> None:
        bare = copy(root)
        assert isinstance(bare, Element)
        bare.children.clear()
        self.root = bare
        """The root element, without what stands in it."""
        self.entries: list[Content] = []
        """What stands below the root."""
        self.now = Fraction(0)
        """The time of the latest element."""
        self.dead: list[DeadLetter] = []
        self._limits = limits or Limits()
        self._numbers = count()
        self.register = Register()
        self._times: dict[int, Fraction] = {}
        self._at = Fraction(0)  # the time of what is being taken; `now` may be later, by another partition
        self._news = False  # whether something has completed since the last moment

    def take(self, element: StreamElement, at: Fraction, partition: int = 0) -> Iterator[Moment]:
        """Apply an element that came at a time; after each yield the document is as of that moment.

        A bad element yields nothing.
        """
        judged = self._judged(element, at, partition)
        if judged is None:
            return
        self._move(at)
        if judged.tree is not None:
            yield from self._fill(self.entries, [judged.tree], judged, element, between=True)
            self._take_names(partition, judged)
        self._times[partition] = judged.end
        self._news = False
        yield Moment(self.now)

    def reached(self, partition: int = 0) -> Fraction:
        """How far a partition is: the time of an element that has none of its own (LAWS 1.3)."""
        return self._times.get(partition, Fraction(0))

    def accepts(self, element: StreamElement, at: Fraction, partition: int = 0) -> bool:
        """Whether an element is good at its place; a bad one is set aside."""
        return self._judged(element, at, partition) is not None

    def _judged(self, element: StreamElement, at: Fraction, partition: int) -> Judged | None:
        try:
            deepest = min(self._limits.depth, DEEPEST)
            return judge(_tree(element), at, self._times.get(partition, at), self.register.of(partition), deepest)
        except BadItem as error:
            self.dead.append(DeadLetter(element.place, error.message, write(element)[:LONGEST_RAW]))
        except RecursionError:  # where the cap on an item's depth is set higher than Python goes
            self.dead.append(DeadLetter(element.place, "nested too deep", ""))
        return None

    def _fill(
        self, host: list[Content], children: Sequence[Child], judged: Judged, source: StreamElement, between: bool
    ) -> Iterator[Moment]:
        """Put what was written into the place where it belongs, in the order in which it came."""
        for child in children:
            act = judged.acts.get(child) if isinstance(child, Element) else None
            if act is not None:
                yield from self._act(act, host, child, judged, source)
                continue
            if between and is_layout(child):
                continue
            lived = Lived(child, declared_on(child, between), self._at, source.place)
            host.append(lived)
            if isinstance(child, Element):
                yield from self._fill(lived.content, child.children, judged, source, between=False)

    def _act(
        self, act: Act, host: list[Content], written: Child, judged: Judged, source: StreamElement
    ) -> Iterator[Moment]:
        """A region or an update: a version begins where it belongs, and is filled."""
        assert isinstance(written, Element)
        if act.at > self._at and self._news:
            self._news = False
            yield Moment(self.now)
        self._move(act.at)
        chain = act.chain
        match act.kind:
            case "mutable":
                chain.host = host
                host.append(chain)
            case "before" | "after":
                chain.host = act.anchor.host
                chain.host.insert(chain.host.index(act.anchor) + (act.kind == "after"), chain)
        version = Version(act.at, next(self._numbers))
        chain.versions.append(version)
        yield from self._fill(version.content, written.children, judged, source, chain.between)
        self._news = True

    def _take_names(self, partition: int, judged: Judged) -> None:
        """Ids are taken, some of them from regions that have others, and some are forgotten."""
        self.register.take(partition, judged.acts.values())

    def _move(self, at: Fraction) -> None:
        self._at = at
        self.now = max(self.now, at) if self._times else at  # a time path may begin below 0

    # --- who comes late -----------------------------------------------------------------------------------

    def begun_at(self, now: Fraction) -> Document:
        """The document as it stands, for a subscription that begins now: lives begin there (LAWS 3.6)."""
        fresh = Document(self.root, self._limits)
        fresh.now = now
        fresh._times = dict.fromkeys(self._times, now)
        chains: dict[Chain, Chain] = {}
        fresh.entries = fresh._begun(self.entries, chains)
        for chain in self.register.known:
            if chain not in chains:
                chains[chain] = _gone(chain, now)
        self.register.copied_to(fresh.register, chains)
        return fresh

    def _begun(self, content: Sequence[Content], chains: dict[Chain, Chain]) -> list[Content]:
        """What shows of some content, as if it came now."""
        host: list[Content] = []
        for each in content:
            match each:
                case Lived(node, namespaces, _, place, inner):
                    host.append(Lived(node, namespaces, self.now, place, self._begun(inner, chains)))
                case Chain(depth, between, _, versions):
                    chain = chains[each] = Chain(depth, between, host)
                    host.append(chain)
                    shown = self._begun(versions[-1].content, chains)
                    chain.versions.append(Version(self.now, next(self._numbers), shown))
        return host


def _tree(element: StreamElement) -> Element | None:
    """An element as it was written, except for an item's time; an accent or a punctuation has nothing to show."""
    match element:
        case Item(tree):
            return tree
        case Accent() | Punctuation():
            return None
        case _:
            return tree_of(element)


def _gone(chain: Chain, now: Fraction) -> Chain:
    """A region that stands in what was replaced: still known, never to be seen."""
    gone = Chain(chain.depth, chain.between, [], [Version(now, 0)])
    gone.host.append(gone)
    return gone


def declared_on(node: Child, between: bool) -> dict[str, str]:
    """What must be declared on a node because what declared it is a wrapper, or elsewhere."""
    if not isinstance(node, Element):
        return {}
    wrapped = between or (isinstance(node.parent, Element) and is_control(node.parent))
    return namespaces_in_scope(node) if wrapped else dict(node.namespaces)
