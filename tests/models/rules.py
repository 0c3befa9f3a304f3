"""The replacement rules of accents 5.1, one step each: two neighbours change places, and the stream says the same.

The rules as repaired:

* An item passes an accent unchanged if it is not described, or if it lacks the path that is added or dropped; it passes
  a unit change with its value mapped.
* 'Commute accents with non-overlapping primitive attributes' must also ask that neither description names the path of
  the other, or that no item is described by both.
* 'Commute alter data with accent' prints d'' = d with its constant mapped; it is d' that is mapped.
  It asks for d' -> d; here a description that lies across d is divided first, so nothing has to be asked.
  A description that the other accent's unit change concerns is told by the values on its new side, in both directions.
* The annihilation of a drop by an add is not used: what is added is a new path (LAWS 4.2 f).
* Unit changes of one path compose; where the result is the identity they annihilate.

What no rule allows is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch.algebra.accents.boxes import divided, within
from anabranch.algebra.accents.items import values
from anabranch.algebra.accents.sets import UNDECLARED, Domains, description_of, fulfils, items_of, names, rewritten
from anabranch.predicate import Predicate
from anabranch.stream.affine import IDENTITY
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item
from models.items import altered, overlap


def commuted(
    first: Item | Accent, second: Item | Accent, domains: Domains = UNDECLARED
) -> tuple[Item | Accent, ...] | None:
    """Two neighbours the other way round, the second perhaps in several parts; None if they cannot change places."""
    match first, second:
        case Item(), Item():
            return None  # the order of items is theirs
        case Accent(), Item():
            moved = _passed(second, first, domains, back=True)
            return None if moved is None else (moved, first)
        case Item(), Accent():
            moved = _passed(first, second, domains, back=False)
            return None if moved is None else (second, moved)
        case Accent(), Accent():
            return _accents(first, second, domains)
    raise AssertionError(first, second)


def parts(accent: Accent, items: Predicate) -> tuple[Accent, ...]:
    """An accent for another set of items, as accents with disjoint conjunctive descriptions ('divide descriptions')."""
    return tuple(replace(accent, where=description_of(part)) for part in divided(items))


def composed(first: Accent, second: Accent, domains: Domains = UNDECLARED) -> tuple[Accent, ...] | None:
    """Two unit changes of one path for the same items as one, or as none where the second undoes the first."""
    match first.evolution, second.evolution:
        case Alter(path, by), Alter(other, then) if path == other and _same(first, second, domains):
            net = by.then(then)
            return () if net == IDENTITY else (replace(first, evolution=Alter(path, net)),)
        case _:
            return None


def _same(first: Accent, second: Accent, domains: Domains) -> bool:
    one, other = items_of(first.where, domains), items_of(second.where, domains)
    return within(one, other) and within(other, one)


def _passed(item: Item, accent: Accent, domains: Domains, back: bool) -> Item | None:
    """The item on the other side of an accent."""
    if not fulfils(item.tree, items_of(accent.where, domains)):
        return item
    match accent.evolution:
        case Add(path) | Drop(path):
            return None if values(item.tree, path) else item
        case Alter(path, by):
            return replace(item, tree=altered(item.tree, path, by.inverse() if back else by))


def _accents(first: Accent, second: Accent, domains: Domains) -> tuple[Accent, ...] | None:
    here, there = items_of(first.where, domains), items_of(second.where, domains)
    one, other = first.evolution, second.evolution
    if not overlap(here, there) and not _mapped(one, there) and not _mapped(other, here):
        return second, first
    if one.path == other.path:
        return None
    entangled = names(there, one.path) and names(here, other.path)
    if entangled or any(
        names(items, evolution.path) and not isinstance(evolution, Alter)
        for items, evolution in ((there, one), (here, other))
    ):
        return None
    before = rewritten(there, one.path, here, one.by.inverse()) if isinstance(one, Alter) else there
    after = rewritten(here, other.path, there, other.by) if isinstance(other, Alter) else here
    if before is None or after is None:
        return None
    return *_told(second, there, before), *_told(first, here, after)


def _mapped(evolution: Add | Drop | Alter, items: Predicate) -> bool:
    """Whether descriptions read otherwise on the other side of an accent, also where no item is described by both."""
    return isinstance(evolution, Alter) and names(items, evolution.path)


def _told(accent: Accent, items: Predicate, now: Predicate) -> Sequence[Accent]:
    return (accent,) if now == items else parts(accent, now)
