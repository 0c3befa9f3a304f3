"""Which elements a stream of updates takes, and what each region and update in them acts on.

The law's document and those that production keeps have an `UpdateAdmission` each: the rules need no content, so all of
them judge the elements of a stream alike, whatever they keep of them.

An element is judged whole before any of it is applied, because what is bad must change nothing: a bad region inside an
item makes the item bad, as a malformed one does (`stream/reading/wire.py`).
The rules are LAWS 5.3, 5.8 and the history paper's section 2: an update names a region that is known; one is replaced,
or something put after it, when it is complete, and something put before it also while it is open; the id of an open
region, or of a `mutable`, is not taken again; times do not run backwards.
A token is judged as the regions that it stands for (`tokens.py`); a region is open until its last token.
A region that stands in what was replaced stays known for a while (`register.py`): an update of it is good, and never
seen.
Updates may nest regions ever deeper; a document is no deeper than an item may be.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from anabranch.algebra.accents.evolution import Evolution
from anabranch.errors import BadItem
from anabranch.law.history.chains import Chain, InsideItem
from anabranch.law.history.register import Act, Named, Register, Registered
from anabranch.law.history.tokens import OpenParts, is_open_end
from anabranch.law.history.units import canonised, inside_item
from anabranch.stream.elements import (
    LONGEST_RAW,
    Accent,
    DeadLetter,
    Item,
    Punctuation,
    StreamElement,
    StreamToken,
    Update,
)
from anabranch.stream.limits import Limits
from anabranch.stream.reading.wire import tree_of, write
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Element, Text, namespaces_in_scope

DEEPEST = 200
"""How deep a document is at most, regions counted, whatever an item may be: functions over it are recursive."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A good element: what was written, in the units of the start, what its regions and updates do in their order, and
    the time at its end.
    """

    tree: Element | None
    acts: dict[Element, Act]
    end: Fraction
    token: StreamToken | None = field(default=None, kw_only=True)


def is_control(element: Element) -> bool:
    """Whether an element is a region or an update."""
    return element.name.uri == STREAM_NAMESPACE


def is_layout(node: Child) -> bool:
    """Whether a node is white space that counts for nothing between items."""
    return isinstance(node, Text) and not node.value.strip()


def is_empty(written: Element, between: bool) -> bool:
    """Whether an update has no content of its own; updates written in it act elsewhere."""
    return all(
        child.name.local != "mutable"
        if isinstance(child, Element) and is_control(child)
        else between and is_layout(child)
        for child in written.children
    )


class UpdateAdmission:
    """Judges the elements of one stream, partition by partition, and knows the ids and the time reached in each."""

    def __init__(self, limits: Limits | None = None, register: Register | None = None) -> None:
        self.register = register or Register()
        self.times: dict[int, Fraction] = {}
        """By partition, the time of its latest element."""
        self.dead: list[DeadLetter] = []
        """The bad elements."""
        self.evolutions: dict[int, Evolution] = {}
        """By partition, what its accents say of values that come; the owner applies accents."""
        self.open: dict[int, OpenParts] = {}
        """By partition, what comes piece by piece and is not complete."""
        self._depth = min((limits or Limits()).depth, DEEPEST)
        self._next: dict[int, tuple[StreamElement, Fraction, Admitted]] = {}
        """By partition, the element that was judged last and is not taken yet."""

    def reached(self, partition: int = 0) -> Fraction:
        """The time that a partition has reached, which is that of an element with none of its own (LAWS 1.3)."""
        return self.times.get(partition, Fraction(0))

    def judge(self, element: StreamElement, at: Fraction, partition: int = 0) -> Admitted | None:
        """Judge the next element of a partition, which came at a time; a bad one is set aside and gives None.

        It may be called twice for an element: to know whether it is good, and again when it is applied.
        """
        known = self._next.get(partition)
        if known is not None and known[0] is element and known[1] == at:
            return known[2]
        names = ChainMap({}, self.register.of(partition))
        evolution = self.evolutions.get(partition)
        now = self.times.get(partition, at)
        parts = self.open.get(partition) or OpenParts()
        try:
            tree = parts.tree(element) if isinstance(element, StreamToken) else _tree(element)
            judging = _Judging(names, self.register.known, self._depth, now, tree, evolution, open_ids=set(parts.ids))
            judging.move(at)
            if tree is not None:
                judging.look(tree, 1, between=True)
            acts = judging.acts
            if isinstance(element, Update) and not acts:  # an upsert that deletes what is not there
                tree = None
            if tree is not None and evolution is not None and evolution.is_changed:
                tree, twins = canonised(tree, acts, evolution)
                acts = {twins[each]: act for each, act in acts.items()} if twins else acts
        except BadItem as error:
            self.dead.append(DeadLetter(element.place, error.message, write(element)[:LONGEST_RAW]))
            return None
        except RecursionError:  # where the cap on an item's depth is set higher than Python goes
            self.dead.append(DeadLetter(element.place, "nested too deep", ""))
            return None
        admitted = Admitted(tree, acts, judging.now, token=element if isinstance(element, StreamToken) else None)
        self._next[partition] = element, at, admitted
        return admitted

    def take(self, admitted: Admitted, partition: int = 0) -> list[Chain]:
        """Take the ids of an element that was applied; gives the regions that have no id left."""
        self._next.pop(partition, None)
        unnamed = [] if admitted.tree is None else self.register.take(partition, admitted.acts.values())
        if admitted.token is not None:
            self.open.setdefault(partition, OpenParts()).take(admitted.token)
        if unnamed and partition in self.open:
            self.open[partition].forget(self.register.of(partition))
        self.times[partition] = admitted.end
        return unnamed


def _tree(element: StreamElement) -> Element | None:
    """An element as it was written, except for an item's time; an accent or a punctuation has nothing to show."""
    match element:
        case Item(tree):
            return tree
        case Accent() | Punctuation():
            return None
        case _:
            return tree_of(element)


def declared_on(node: Child, between: bool) -> dict[str, str]:
    """The namespaces to declare on a node, also those declared around it where that does not enter the document."""
    if not isinstance(node, Element):
        return {}
    wrapped = between or (isinstance(node.parent, Element) and is_control(node.parent))
    return namespaces_in_scope(node) if wrapped else dict(node.namespaces)


@dataclass(slots=True)
class _Judging:
    """The judgement of one element: what its regions and updates do, and the ids that are open meanwhile."""

    names: ChainMap[str, Named]
    regions: Mapping[Chain, Registered]
    deepest: int
    now: Fraction
    top: Element | None
    evolution: Evolution | None
    acts: dict[Element, Act] = field(default_factory=dict)
    open_ids: set[str] = field(default_factory=set)
    open_chains: list[Chain] = field(default_factory=list)

    def move(self, at: Fraction) -> None:
        if at < self.now:
            raise BadItem(f"its time {_shown(at)} is before {_shown(self.now)}, the time of the element before it")
        self.now = at

    def look(self, node: Child, depth: int, between: bool) -> None:
        """Look at a node that will stand `depth` deep."""
        if not isinstance(node, Element):
            return
        if depth > self.deepest and not is_open_end(node):
            raise BadItem(f"nested more than {self.deepest} deep")
        if is_control(node):
            self.control(node, depth, between)
            return
        for child in node.children:
            self.look(child, depth + 1, between=False)

    def control(self, written: Element, depth: int, between: bool) -> None:
        own, target = written.get("id"), written.get("target")
        if (at := written.get("at")) is not None:
            self.move(Fraction(Decimal(at.strip())))
        if written.name.local == "upsert":
            self.upsert(written, depth)
            return
        if own is not None:
            self.check_free(own)
        match written.name.local:
            case "mutable":
                chain = Chain(depth, between, inside=self.inside(written, between), is_open_end=is_open_end(written))
                around = self.open_chains[-1] if self.open_chains else None
                act = Act("mutable", chain, chain, self.now, own, around)
            case "replace":
                chain = self.known(target, complete=True)
                if chain in self.open_chains:
                    raise BadItem(f"the region '{target}' is being replaced")
                act = Act("replace", chain, chain, self.now, own, is_empty=is_empty(written, chain.between))
            case "before" | "after" as kind:
                anchor = self.known(target, complete=kind == "after")
                chain = Chain(anchor.depth, anchor.between, inside=anchor.inside)
                act = Act(kind, chain, anchor, self.now, own)
            case "append" | "close" as kind:
                assert target is not None
                chain = self.names[target].chain
                act = Act(kind, chain, chain, self.now, target if kind == "close" else None)
            case other:
                raise AssertionError(other)  # the wire knows no other
        self.act(written, act)

    def inside(self, written: Element, between: bool) -> InsideItem | None:
        """Where a new region stands in its item."""
        assert self.top is not None
        return None if between else inside_item(written, self.top, self.acts, self.evolution)

    def upsert(self, written: Element, depth: int) -> None:
        """Replace the region of a name, or begin it; nothing, where there is none to be deleted (LAWS 5.9)."""
        name = written.get("id")
        assert name is not None  # the wire asks for it
        known = self.names.get(name)
        region = None if known is None else self.regions[known.chain]
        if known is not None and region is not None and not region.is_deleted and not region.is_over:
            chain = self.known(name, complete=True)
            self.act(written, Act("replace", chain, chain, self.now, is_empty=is_empty(written, chain.between)))
        elif not is_empty(written, between=True):
            chain = Chain(depth, between=True)
            self.act(written, Act("mutable", chain, chain, self.now, name, is_upsert=True))

    def act(self, written: Element, act: Act) -> None:
        """Note what a region or an update does, and look at its content."""
        self.acts[written] = act
        self.open_chains.append(act.chain)
        if act.own is not None and act.kind != "close":
            self.names[act.own] = Named(act.chain, act.keeps_id)
            self.open_ids.add(act.own)
        for child in written.children:
            self.look(child, act.chain.depth + (act.kind != "append"), act.chain.between)
        self.open_chains.pop()
        self.open_ids.discard(act.own or "")

    def check_free(self, name: str) -> None:
        if name in self.open_ids:
            raise BadItem(f"the id '{_short(name)}' is that of a region that is still open")
        if name in self.names and self.names[name].mutable:
            raise BadItem(f"the id '{_short(name)}' is that of a mutable region, which keeps it")

    def known(self, name: str | None, complete: bool) -> Chain:
        assert name is not None  # the wire asks for it
        if name not in self.names:
            raise BadItem(f"no region is called '{_short(name)}'")
        if complete and name in self.open_ids:
            raise BadItem(f"the region '{_short(name)}' is still open")
        return self.names[name].chain


def _shown(time: Fraction) -> str:
    return f"{Decimal(time.numerator) / Decimal(time.denominator):f}"


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."
