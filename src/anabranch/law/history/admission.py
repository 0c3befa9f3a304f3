"""Which elements a stream of updates takes, and what each region and update in them acts on.

The law's document and those that production keeps have an `UpdateAdmission` each: the rules need no content, so all of
them judge the elements of a stream alike, whatever they keep of them.

An element is judged whole before any of it is applied, because what is bad must change nothing: a bad region inside an
item makes the item bad, as a malformed one does (`stream/reading/wire.py`).
The rules are LAWS 5.3, 5.8 and the history paper's section 2: an update names a region that is known; one is replaced,
or something put after it, when it is complete, and something put before it also while it is open; the id of an open
region, or of a `mutable`, is not taken again; times do not run backwards.
A region that stands in what was replaced stays known for a while (`Register`): an update of it is good, and never
seen.
Updates may nest regions ever deeper; a document is no deeper than an item may be.

The `Register` knows the ids of a stream, what they name, and which of them are forgotten (LAWS 5.8).
An id is *past* when it need not name its region any more: the region has newer ids, is an insertion that was deleted,
or stands in a version that was replaced.
A past id still names its region, until `MOST_PAST` others have become past behind it; then it is forgotten, and a
region that has no id left is *unnamed*: nothing can happen to it any more but that what it stands in is replaced.
So there are never many more ids than regions to be seen, however long a stream runs.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Literal

from anabranch.algebra.accents.evolution import Evolution
from anabranch.errors import BadItem
from anabranch.law.history.chains import Chain, InsideItem
from anabranch.law.history.units import canonised, inside_item
from anabranch.stream.elements import LONGEST_RAW, Accent, DeadLetter, Item, Punctuation, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.wire import tree_of, write
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Element, Text, namespaces_in_scope

MOST_PAST = 1_000
"""How many past ids stay known in each partition: the latest."""


@dataclass(frozen=True, slots=True)
class Named:
    """The region that an id names."""

    chain: Chain
    mutable: bool
    """Whether it is the id of a `mutable`, which no other region may take over."""


@dataclass(frozen=True, slots=True)
class Act:
    """What one region or update does: it adds a version to a chain, which is new except where one is replaced."""

    kind: Literal["mutable", "replace", "before", "after"]
    chain: Chain
    anchor: Chain
    """The region that an insertion stands beside; else the chain itself."""
    at: Fraction
    own: str | None = None
    """The id that it takes."""
    around: Chain | None = None
    """The region that a `mutable` is written in."""
    is_empty: bool = False
    """Whether the version has no content."""
    is_upsert: bool = False
    """Whether it is a `mutable` that an upsert has made, which is deleted for good (LAWS 5.9)."""

    @property
    def keeps_id(self) -> bool:
        """Whether no other region may take over its id."""
        return self.kind == "mutable" and not self.is_upsert


@dataclass(eq=False, slots=True)
class Registered:
    """What is known of a region beside its versions."""

    partition: int
    number: int
    """Regions are numbered as they come."""
    inserted: bool
    """Whether it stands beside another region, or came by an upsert; else it is a `mutable`."""
    around: Chain | None = None
    """The region in whose newest version it stands."""
    inner: dict[Chain, None] = field(default_factory=dict)
    """The regions that stand in its own."""
    ids: dict[str, None] = field(default_factory=dict)
    first: str | None = None
    newest: str | None = None
    is_deleted: bool = False
    """Whether it is an insertion whose newest version is a deletion."""
    is_over: bool = False
    """Whether it stands in a version that was replaced."""

    def needs(self, name: str) -> bool:
        """Whether one of its ids is not past."""
        return not self.is_over and not self.is_deleted and name in (self.first, self.newest)


class Register:
    """The ids of all partitions; `take` changes them."""

    def __init__(self) -> None:
        self.names: dict[int, dict[str, Named]] = {}
        """By partition, what each id means."""
        self.past: dict[int, dict[str, int]] = {}
        """By partition the past ids, the oldest first, each with a number that grows."""
        self.known: dict[Chain, Registered] = {}
        """The regions that have an id."""
        self.next_number = 0
        self.next_past = 0

    def of(self, partition: int) -> dict[str, Named]:
        """The ids that are known in a partition."""
        return self.names.setdefault(partition, {})

    def take(self, partition: int, acts: Iterable[Act]) -> list[Chain]:
        """Take what the regions and updates of one element do, in their order; gives the regions unnamed by that."""
        names = self.of(partition)
        past = self.past.setdefault(partition, {})
        concerned: dict[Chain, None] = {}
        for act in acts:
            concerned[act.chain] = None
            region = self._replaced(act) if act.kind == "replace" else self._added(act, partition)
            needed = region.first, region.newest
            if act.own is not None:
                if act.own in names and (before := names[act.own].chain) is not act.chain:
                    concerned[before] = None
                    self._lose(partition, act.own)
                self._name(act.own, act, region)
            self._settle(region, *needed, region.newest)
        for name in list(islice(past, max(0, len(past) - MOST_PAST))):
            concerned[names[name].chain] = None
            self._lose(partition, name)
        unnamed = [chain for chain in concerned if not self.known[chain].ids]
        for chain in unnamed:
            self._unname(chain)
        return unnamed

    def _replaced(self, act: Act) -> Registered:
        region = self.known[act.chain]
        self._end(region)
        was_deleted = region.is_deleted
        region.is_deleted = region.inserted and act.is_empty and (act.own is None or act.own not in region.ids)
        if region.is_deleted is not was_deleted:
            self.changed(act.chain, region)
        return region

    def _end(self, region: Registered) -> None:
        """Mark all regions inside a version that is replaced as over."""
        for chain in sorted(region.inner, key=lambda inner: self.known[inner].number):
            inner = self.known[chain]
            self._end(inner)
            inner.is_over, inner.around = True, None
            self.changed(chain, inner)
            self._settle(inner, inner.first, inner.newest)
        region.inner.clear()

    def _added(self, act: Act, partition: int) -> Registered:
        if act.kind == "mutable":
            around, is_over = act.around, act.around is not None and self.known[act.around].is_over
        else:
            anchor = self.known[act.anchor]
            around, is_over = anchor.around, anchor.is_over
        region = Registered(partition, self.next_number, not act.keeps_id, is_over=is_over, first=act.own)
        self.next_number += 1
        self.known[act.chain] = region
        if around is not None and not is_over:
            region.around = around
            self.known[around].inner[act.chain] = None
        return region

    def _name(self, name: str, act: Act, region: Registered) -> None:
        """Give a region an id that no other region has; it may be its own already."""
        self.names[region.partition][name] = Named(act.chain, act.keeps_id)
        region.newest = name
        region.ids[name] = None
        self.changed(act.chain, region)

    def _settle(self, region: Registered, *names: str | None) -> None:
        """Bring the table of past ids up to date for some ids of a region."""
        past = self.past[region.partition]
        for name in names:
            if name is None:
                continue
            if region.needs(name):
                if name in past:
                    self.past_changed(region.partition, name, past.pop(name))
            elif name not in past:
                past[name] = self.next_past
                self.past_changed(region.partition, name, self.next_past)
                self.next_past += 1

    def _lose(self, partition: int, name: str) -> None:
        """Take an id from its region."""
        chain = self.names[partition].pop(name).chain
        region = self.known[chain]
        del region.ids[name]
        if name in self.past[partition]:
            self.past_changed(partition, name, self.past[partition].pop(name))
        if name in (region.first, region.newest):
            region.first = None if region.first == name else region.first
            region.newest = None if region.newest == name else region.newest
            self.changed(chain, region)

    def _unname(self, chain: Chain) -> None:
        """Drop a region without ids; the regions inside it now belong to the region around it."""
        region = self.known.pop(chain)
        around = None if region.around is None else self.known[region.around]
        if around is not None:
            del around.inner[chain]
        for inner in region.inner:
            self.known[inner].around = region.around
            self.changed(inner, self.known[inner])
            if around is not None:
                around.inner[inner] = None
        self.changed(chain, region)

    # --- late subscriptions -------------------------------------------------------------------------------

    def copied_to(self, other: Register, chains: Mapping[Chain, Chain]) -> None:
        """Fill another register, which is empty yet, with the same; `chains` gives its chains for those here."""
        for chain, region in self.known.items():
            other.known[chains[chain]] = copy = replace(
                region,
                around=None if region.around is None else chains[region.around],
                inner={chains[inner]: None for inner in region.inner},
                ids=dict(region.ids),
            )
            other.changed(chains[chain], copy)
        for partition, names in self.names.items():
            other.names[partition] = {name: Named(chains[each.chain], each.mutable) for name, each in names.items()}
        for partition, past in self.past.items():
            other.past[partition] = dict(past)
            for name, number in past.items():
                other.past_changed(partition, name, number)
        other.next_number, other.next_past = self.next_number, self.next_past

    # --- hooks for a register that is written to disk -----------------------------------------------------

    def changed(self, chain: Chain, region: Registered) -> None:
        """Called when the record of a region has changed, or was dropped because the region is unnamed."""

    def past_changed(self, partition: int, name: str, number: int) -> None:
        """Called when an id has become past, or is so no longer; `number` is its place among past ids."""


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
        try:
            tree = _tree(element)
            judging = _Judging(names, self.register.known, self._depth, now, tree, evolution)
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
        admitted = Admitted(tree, acts, judging.now)
        self._next[partition] = element, at, admitted
        return admitted

    def take(self, admitted: Admitted, partition: int = 0) -> list[Chain]:
        """Take the ids of an element that was applied; gives the regions that have no id left."""
        self._next.pop(partition, None)
        unnamed = [] if admitted.tree is None else self.register.take(partition, admitted.acts.values())
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
        if depth > self.deepest:
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
                chain = Chain(depth, between, inside=self.inside(written, between))
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
            chain = known.chain
            self.act(written, Act("replace", chain, chain, self.now, is_empty=is_empty(written, chain.between)))
        elif not is_empty(written, between=True):
            chain = Chain(depth, between=True)
            self.act(written, Act("mutable", chain, chain, self.now, name, is_upsert=True))

    def act(self, written: Element, act: Act) -> None:
        """Note what a region or an update does, and look at its content."""
        self.acts[written] = act
        self.open_chains.append(act.chain)
        if act.own is not None:
            self.names[act.own] = Named(act.chain, act.keeps_id)
            self.open_ids.add(act.own)
        for child in written.children:
            self.look(child, act.chain.depth + 1, act.chain.between)
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
