"""Canonical streams: additions first, then the items in the units of the start, then alters, then drops (accents 5).

This is the oracle that operators over accented streams are tested against; it is meant to be obviously right, and it is
never fast: every element walks alone past all that it has to pass, one rule of `rules.py` at a time.

* An item walks back over the accents before it: each unit change that describes it, as it is there, is undone.
* An addition walks back to the front: its description is told by the values before each unit change.
* A drop walks on to the end: its description is told by the values after each unit change.
* Unit changes stay in their order, and their descriptions are told by values at their place as before.
* A punctuation stands among the items, and its description walks back as an item's value does.

A path that is added is new (LAWS 4.2 f): once an item or description has passed the addition of a path on its way back,
what happened before to that name concerns another path.
Paper 5.2 is the proof that these walks are all there is: its six cases are the pairs that stand in the wrong order.

The input is a valid stream: what `Evolution` refuses, and items that carry what was dropped, are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from anabranch.algebra.accents.sets import (
    UNDECLARED,
    Domains,
    below,
    description_of,
    fulfils,
    items_of,
    lacking,
    lasting,
    names,
    parted,
    replaced,
    rewritten,
)
from anabranch.errors import StreamError
from anabranch.predicate import Compare, Predicate, and_, not_, or_
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item, Punctuation, StreamElement
from anabranch.stream.path import Path
from models.items import altered
from models.rules import parts


def canonical(elements: Iterable[StreamElement], domains: Domains = UNDECLARED) -> list[StreamElement]:
    """A finite valid stream in canonical form."""
    given = tuple(elements)
    domains = _promised(domains, given)
    adds: list[Accent] = []
    items: list[StreamElement] = []
    alters: list[Accent] = []
    drops: list[Accent] = []
    for index, element in enumerate(given):
        before = [each for each in given[:index] if isinstance(each, Accent)]
        match element:
            case Item():
                items.append(_item(element, before, domains))
            case Punctuation(where) if where is not None:
                items.append(replace(element, where=description_of(_back(items_of(where, domains), before, domains))))
            case Accent(where, Add()):
                told = _back(items_of(where, domains), before, domains)
                adds += _parts(element, items_of(where, domains), told)
            case Accent(_, Alter()):
                alters.append(element)
            case Accent(where, Drop()):
                after = [each for each in given[index + 1 :] if isinstance(each, Accent)]
                told = _on(items_of(where, domains), after, domains)
                drops += _parts(element, items_of(where, domains), told)
            case _:
                items.append(element)
    return [*adds, *items, *alters, *drops]


def _promised(domains: Domains, given: Iterable[StreamElement]) -> Domains:
    return lasting(domains, [each.evolution.path for each in given if isinstance(each, Accent)])


def _parts(accent: Accent, items: Predicate, told: Predicate) -> Sequence[Accent]:
    return (accent,) if told == items else parts(accent, told)


def _item(item: Item, before: Sequence[Accent], domains: Domains) -> Item:
    """An item in the units of the start; its texts are copied where these are the same (LAWS 4.3)."""
    tree = item.tree
    new: list[Path] = []
    undone: dict[Path, Affine] = {}
    for accent in reversed(before):
        described = items_of(accent.where, domains)
        for path in new:
            described = lacking(described, path)
        if not fulfils(tree, described):
            continue
        match accent.evolution:
            case Add(path):
                new.append(path)
            case Alter(path, by) if not any(below(path, each) for each in new):
                undone[path] = undone[path].then(by.inverse()) if path in undone else by.inverse()
                tree = altered(tree, path, by.inverse())
    net = item.tree
    for path, by in undone.items():
        net = altered(net, path, by)
    return replace(item, tree=net)


def _back(items: Predicate, before: Sequence[Accent], domains: Domains) -> Predicate:
    """A set told by the values of the start."""
    for number, accent in reversed(list(enumerate(before))):
        described = items_of(accent.where, domains)
        match accent.evolution:
            case Alter(path, by):
                items = _told(items, path, described, by.inverse())
            case Add(path) if names(items, path):
                items = or_(and_(described, _marked(items, path, f"#{number}")), and_(not_(described), items))
            case _:
                pass
    return replaced(items, lambda each: _of(each, ""))


def _on(items: Predicate, after: Sequence[Accent], domains: Domains) -> Predicate:
    """A set told by the values at the end."""
    for accent in after:
        described = items_of(accent.where, domains)
        match accent.evolution:
            case Alter(path, by):
                items = _told(items, path, described, by)
            case Add(path):
                items = parted(items, path, described)
            case Drop():
                pass
    return items


def _told(items: Predicate, path: Path, where: Predicate, by: Affine) -> Predicate:
    found = rewritten(items, path, where, by)
    if found is None:
        raise StreamError(f"a description compares '{path}' as text, and its unit changes")
    return found


def _marked(items: Predicate, path: Path, mark: str) -> Predicate:
    """The set with a path's comparisons set apart, so that what concerned the name before does not reach them."""
    return replaced(items, lambda each: _of(each, mark) if names(each, path) else each)


def _of(comparison: Compare, mark: str) -> Compare:
    return replace(comparison, term=replace(comparison.term, input=mark))
