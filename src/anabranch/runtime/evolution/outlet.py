"""Outlets: which accents come out of a query, and how they change later results.

A query's output is an accented stream like any other.
An accent of an input is passed to the shared reaction of signatures (`algebra/reactions/reaction.py`), with the
signature of the query's lineage; accents that come out are renamed to paths of the output, once for each place of the
path.
They stand at that place of the answer, and `forward` converts all later results into the units they announce.

The evaluator works in the units of query start: a piece comes in canonical values.
Each element at its top is an item of the output stream; it is in the set of an accent if its own values say so, and
then the accent's map applies to whatever stands at the path: copied, computed, or held since before the accent.
Canonisation of the answer undoes just that, which is why the square of LAWS 4.1, canonical(answer) =
query(canonical(input)), holds whatever the query does.
A value that returns to the unit it was written in leaves as its text, any other as the nearest double (LAWS 4.3).
Texts and values outside of elements have no path, so no accent can name them: they stay in the units of the start.

A dropped path is removed from later results (LAWS 4.2 c, g): a copied node is removed; a constructed one, which does
not depend on the input, stays and is empty.

An outlet depends on lineage, policy, domains, and its accents, not on the constants of a query; queries that agree in
these can share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from anabranch.algebra.accents.items import nodes, spelled
from anabranch.algebra.accents.sets import UNDECLARED, Domains, below, description_of, items_of
from anabranch.algebra.operators.union import Union
from anabranch.algebra.reactions.course import Change, Course, LetOut
from anabranch.algebra.reactions.reaction import Reaction
from anabranch.algebra.reactions.readings import Reading, holds
from anabranch.algebra.reactions.signature import AccentSignature, Chosen, Policy, renamed
from anabranch.errors import Aborted, StreamError
from anabranch.law.evolution.canonical import remeasured
from anabranch.predicate import EVERYTHING, Predicate
from anabranch.runtime.evolution.lineage import ANY, DEEP, Lineage
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.description import Description
from anabranch.stream.elements import Accent, Add, Alter, Doubt, Drop, Place
from anabranch.stream.path import Path
from anabranch.stream.reading.json_items import to_json
from anabranch.stream.reading.wire import write, write_doubt
from anabranch.stream.tree import Attribute, Element, Text, copy, descendants
from anabranch.values.sequences import Value, Values


class Written:
    """The accents that have come out, and how they change pieces."""

    def __init__(self, lineage: Lineage) -> None:
        self._constructed = {
            site.at for sites in lineage.items for site in sites if site.extent == "value" and site.origin is not None
        }
        self._course = Course()
        self._net: dict[Path, Affine] | None = {}
        """The unit of each path whose unit differs from that of the start, as long as it is the same for all items."""
        self._dropped: list[Path] = []
        """The paths that were dropped for some items, perhaps added again."""

    def see(self, where: Predicate, evolution: Add | Drop | Alter) -> None:
        """Record an accent that has come out."""
        self._course.see(where, evolution)
        path = evolution.path
        match evolution:
            case Alter(_, by) if self._net is not None:
                self._net = self._altered(self._net, path, by) if where == EVERYTHING else None
            case Add() if self._net is not None:
                left = {each: by for each, by in self._net.items() if not below(each, path)}
                self._net = left if where == EVERYTHING or left == self._net else None
            case Drop() if path not in self._dropped:
                self._dropped.append(path)
            case _:
                pass

    @staticmethod
    def _altered(net: Mapping[Path, Affine], path: Path, by: Affine) -> dict[Path, Affine]:
        now = net.get(path, IDENTITY).then(by)
        others = {each: unit for each, unit in net.items() if each != path}
        return others if now == IDENTITY else {**others, path: now}

    @property
    def changes_pieces(self) -> bool:
        """Whether pieces may have to change."""
        return self._net != {} or bool(self._dropped)

    def unit(self, path: Path) -> Affine | None:
        """The unit of a path that is the same for all items, as the map from that of the start; None if it is not."""
        return None if self._net is None else self._net.get(path, IDENTITY)

    @property
    def units(self) -> Mapping[Path, Affine] | None:
        """All units that differ from those of the start; None where more than units has to change."""
        return None if self._dropped else self._net

    def forward(self, values: Values) -> Values:
        """A piece in its present written form."""
        if not self.changes_pieces:
            return values
        return [each for value in values for each in self._forward(value)]

    def _forward(self, value: Value) -> Iterator[Value]:
        if not isinstance(value, Element):
            yield value
            return
        reading = Reading(exact(value)) if self._net is None or self._dropped else Reading(value)
        tree = remeasured(value, self._units(reading))
        gone = [path for path in self._dropped if holds(self._course.dropped(path), reading)]
        yield from [tree] if not gone else self._without(tree, gone)

    def _units(self, reading: Reading) -> Mapping[Path, Affine]:
        return self._course.current(reading).maps if self._net is None else self._net

    def _without(self, tree: Element, gone: list[Path]) -> Iterator[Element]:
        """An output item without the values at some paths; none where the item itself was dropped."""
        if not any(True for path in gone for _ in nodes(tree, path)):
            yield tree
            return
        fresh = copy(tree)
        for path in gone:
            for node in list(nodes(fresh, path)):
                if path in self._constructed:
                    _empty(node)
                elif node is fresh:
                    return
                else:
                    remove(node)
        yield fresh


def exact(tree: Element) -> Element:
    """A tree whose measured values are spelled exactly; itself where there are none."""
    if not any(each.measure is not None for each in _leaves(tree)):
        return tree
    fresh = copy(tree)
    for each in _leaves(fresh):
        if each.measure is not None:
            each.value = spelled(each.measure.number)
    return fresh


def _leaves(tree: Element) -> Iterator[Text | Attribute]:
    for node in (tree, *descendants(tree)):
        match node:
            case Element():
                yield from node.attributes
            case Text():
                yield node


def _empty(node: Element | Attribute) -> None:
    if isinstance(node, Attribute):
        node.value, node.measure = "", None
    else:
        node.children = []


def remove(node: Element | Attribute) -> None:
    """Remove a node from its tree."""
    assert isinstance(node.parent, Element)
    if isinstance(node, Attribute):
        node.parent.attributes.remove(node)
    else:
        node.parent.children.remove(node)


@dataclass(frozen=True, slots=True)
class Purge:
    """A path that was dropped: state forgets its values for these items of an input.

    The items are described by canonical values.
    """

    input: int
    path: Path
    items: Predicate


_CACHED_REACTIONS = 256
"""The number of accents for which the query's reaction is cached: the same ones come again and again."""


def accent_text(accent: Accent | Doubt, *, json: bool = False) -> str:
    """An accent, or a doubt, as it is written in an answer; in an answer of JSON an accent is a line."""
    if json and isinstance(accent, Accent):
        return f"{to_json(accent)}\n"
    return write(accent) if isinstance(accent, Accent) else write_doubt(accent)


class Outlet:
    """The output of a query, as it evolves; `accent`, `punctuation` and `doubt` change it."""

    def __init__(
        self,
        lineage: Lineage,
        *,
        policy: Policy = "accumulate",
        domains: Sequence[Domains] = (),
        partitions: Sequence[int] = (),
    ) -> None:
        """`domains` and `partitions` (their number) are those of each input's stream; by default none and one."""
        self.lineage = lineage
        self._policy = policy
        self.purges: list[Purge] = []
        """What state must drop because of the latest accent or punctuation."""
        self._names: dict[Path, Path | None] = {}
        self._targets = lru_cache(_CACHED_REACTIONS)(lineage.targets)
        self._shows = lru_cache(_CACHED_REACTIONS)(lineage.shows)
        self._reads = lru_cache(_CACHED_REACTIONS)(lineage.reads)
        inputs = range(len(lineage.streams))
        self._alone = len(inputs) == 1
        self._merging = {
            input: Reaction("the union of partitions", Union(many).signature, many, domains=_promised(domains, input))
            for input, many in enumerate(partitions)
            if many > 1
        }
        promised = {
            self._inner(input, path): each for input in inputs for path, each in _promised(domains, input).items()
        }
        self._reaction = Reaction(
            "the query",
            self._signature(),
            len(inputs),
            policy=policy,
            domains=promised,
            outside=lambda inner: self._outer(inner)[1],
            hidden="tells apart what a display shows in one unit" if lineage.is_display else "is not in its output",
        )
        self._written = Written(lineage)

    # --- input ------------------------------------------------------------------------------------------------

    def accent(self, input: int, accent: Accent, partition: int = 0) -> tuple[Accent, ...]:
        """Apply a valid accent of an input; gives the accents of the output; Aborted where the query cannot go on.

        Accents in force for a part of the items when the query starts are given first (LAWS 3.6).
        """
        self.purges = []
        change = Change(items_of(accent.where), accent.evolution)
        return self._followed(self._through(input, partition, change, accent.place))

    def punctuation(self, input: int, where: Description, place: Place, partition: int = 0) -> tuple[Accent, ...]:
        """The accents of the output that have waited for this punctuation: no item described follows (LAWS 4.8)."""
        self.purges = []
        return self._followed(self._closed(input, partition, items_of(where), place))

    def doubt(self, input: int, path: Path, reason: str) -> None:
        """The meaning of a path is unknown for some items (LAWS 4.5): Aborted if the query reads it."""
        if self._reads(input, path):
            need = self.lineage.need(input, path)
            what = f"'{need.word}' cannot do without '{need.path}'" if need else f"the query reads '{path}'"
            raise Aborted(f"{what}, which is unknown from here on: {reason}")

    def _followed(self, found: Iterator[Accent]) -> tuple[Accent, ...]:
        """The accents that come out; when the descriptions become too complex, the rest is absorbed, as by policy."""
        accents: list[Accent] = []
        try:
            accents += found
        except StreamError as error:
            if self._policy == "abort":
                raise Aborted(f"the query cannot follow this evolution: {error.message}", hint=error.hint) from error
        return tuple(accents)

    def _through(self, input: int, partition: int, change: Change, place: Place) -> Iterator[Accent]:
        changes = [change]
        if input in self._merging:
            changes = [each.change for each in self._merging[input].change(partition, change)]
        for each in changes:
            yield from self._released(self._changed(input, each), place)

    def _closed(self, input: int, partition: int, where: Predicate, place: Place) -> Iterator[Accent]:
        closings = [where]
        if input in self._merging:
            changes, closed = self._merging[input].close(partition, where)
            for each in changes:
                yield from self._released(self._changed(input, each.change), place)
            closings = [each.where for each in closed]
        for every in closings:
            found, _ = self._reaction.close(input, self._inner_items(input, every))
            yield from self._released(found, place)

    def _changed(self, input: int, change: Change) -> list[LetOut]:
        path = change.evolution.path
        need = self.lineage.need(input, path) if isinstance(change.evolution, Drop) else None
        if need is not None:
            told = f"the accent on '{path}' where {description_of(change.where)}"
            raise Aborted(f"'{need.word}' cannot do without '{need.path}': {told} drops it")
        inner = replace(change.evolution, path=self._inner(input, path))
        return self._reaction.change(input, Change(self._inner_items(input, change.where), inner))

    # --- output -----------------------------------------------------------------------------------------------

    def _released(self, found: Iterable[LetOut], place: Place) -> Iterator[Accent]:
        """The accents that were let out, renamed to paths of the output."""
        for each in found:
            input, path = self._outer(each.change.evolution.path)
            where = renamed(each.change.where, self._seen)
            if isinstance(each.change.evolution, Drop):
                self.purges.append(Purge(input, path, renamed(each.items, lambda inner: self._outer(inner)[1])))
            for target in self._targets(input, replace(each.change.evolution, path=path)):
                evolution = replace(each.change.evolution, path=target.at)
                if isinstance(evolution, Alter):
                    by = target.origin.follows(evolution.by)
                    assert by is not None, "a target follows"
                    if by == IDENTITY != evolution.by:
                        continue
                    evolution = replace(evolution, by=by)
                self._written.see(where, evolution)
                yield Accent(description_of(where), evolution, place)

    @property
    def changes_pieces(self) -> bool:
        """Whether pieces may have to change."""
        return self._written.changes_pieces

    def in_step(self, input: int, path: Path) -> bool:
        """Whether all accents on a path of an input have come out unchanged."""
        return input not in self._merging and not self._reaction.is_apart(self._inner(input, path))

    def unit(self, path: Path) -> Affine | None:
        """The unit of a path of the output, as the map from that of the start; None where it differs between items."""
        return self._written.unit(path)

    @property
    def units(self) -> Mapping[Path, Affine] | None:
        """The units of output paths that differ from those of the start; None where pieces change in other ways."""
        return self._written.units

    def forward(self, values: Values) -> Values:
        """A piece in the current units of the output; the same object where nothing changes."""
        return self._written.forward(values)

    # --- names ------------------------------------------------------------------------------------------------

    def _signature(self) -> AccentSignature:
        """The signature of the query over its inputs' paths; foundation is checked here, with the query's words."""
        lineage = self.lineage
        known = [[look for look in group if not {ANY, DEEP} & {*look[1].steps}] for group in lineage.pairs]
        return AccentSignature(
            accumulator=Chosen(lambda inner: self._seen(inner) is None),
            absent=Chosen(lambda inner: self._is_absent(*self._outer(inner))),
            ignored=Chosen(lambda inner: not self._reads(*self._outer(inner))),
            pairs=tuple(tuple((input, self._inner(input, path)) for input, path in group) for group in known if group),
            follows=lambda inner, by: by if self._lets(*self._outer(inner), by) else None,
        )

    def _is_absent(self, input: int, path: Path) -> bool:
        """Whether a path is in conditions only: not in the output, and never dropped (LAWS 4.6), so never purged."""
        return not self._shows(input, path) and self.lineage.need(input, path) is not None

    def _lets(self, input: int, path: Path, by: Affine) -> bool:
        return bool(self._targets(input, Alter(path, by)))

    def _seen(self, inner: Path) -> Path | None:
        if inner not in self._names:
            self._names[inner] = self.lineage.seen(*self._outer(inner))
        return self._names[inner]

    def _inner(self, input: int, path: Path) -> Path:
        """An input's path as it is called here, where several inputs may have the same."""
        return path if self._alone else Path((f"${input + 1}", *path.steps))

    def _outer(self, inner: Path) -> tuple[int, Path]:
        return (0, inner) if self._alone else (int(inner.steps[0][1:]) - 1, Path(inner.steps[1:]))

    def _inner_items(self, input: int, items: Predicate) -> Predicate:
        """Items of an input, described by their paths as they are called here."""
        return items if self._alone else renamed(items, lambda path: self._inner(input, path))


def _promised(domains: Sequence[Domains], input: int) -> Domains:
    return domains[input] if input < len(domains) else UNDECLARED
