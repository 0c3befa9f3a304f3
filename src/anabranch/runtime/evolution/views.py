"""Views: the evolution of a stream as seen by a subscription that started late (LAWS 3.6).

Accents in force for all items at its start only define its units: its canonical values are the raw ones of that moment,
without those changes.
Accents in force for a part of the items are shown to it first, as accents at its start.

Both follow from the layers in force (`Evolution.live`), path by path:

* A change for all items is taken out; unit changes before it, for parts, are expressed in its unit: g for a part, then
f for all, is f for all, then f^-1 g f for the part.
Parts that cover everything with the same change are one change for all ('divide and combine descriptions').
* A stream is the Union of its partitions (LAWS 1.4): a change is for all items if all partitions had it for all of
theirs, in the same order, so it is a common prefix; further changes of one partition are shown there.
* Layers are described by the values of the start, accents by those of their own place: an earlier one is rewritten for
the later ones that alter a path it names.

The view's own evolution goes on behind the start as accents come.
It gives the meaning of values for the subscription; bad elements are judged by the partition's own evolution.

Cost: linear in the layers in force, where no description names a path that evolves for a part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import takewhile
from typing import TypeAlias

from anabranch.algebra.accents.boxes import combined, divided, for_some, left_over, met
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.layers import Layer, LayerChange
from anabranch.algebra.accents.sets import and_above, below, description_of, names, rewritten
from anabranch.errors import StreamError
from anabranch.predicate import EVERYTHING, Predicate, and_, or_, terms
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.elements import Accent, Add, Alter, Doubt, Drop, Place
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, Name

Live: TypeAlias = Sequence[tuple[Path, Layer]]
_ANY = Element(Name("item"))
"""An item like all others, while no accent describes a part."""


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition as a subscription sees it at its start."""

    accents: tuple[Accent | Doubt, ...]
    """The accents shown first."""
    carried: Mapping[Path, bool]
    """Paths that were added for all items, or dropped for all."""
    evolution: Evolution
    """The meaning of values, from its start on."""
    units: Mapping[Path, Affine]
    """The units that hold for all items at its start, as maps from those of the beginning; equal for all partitions."""


def views(partitions: Sequence[Evolution], places: Sequence[Place]) -> tuple[PartitionView, ...]:
    """The views of a stream's partitions at this point; `places` are given to the accents shown."""
    live = [_joined(each.live()) for each in partitions]
    courses = [_courses(each) for each in live]
    common: dict[Path, int] = {}
    for path in set[Path]().union(*courses):
        steps = zip(*(course.get(path, []) for course in courses), strict=False)
        common[path] = sum(1 for _ in takewhile(_are_same, steps))
    return tuple(
        _view(evolution, each, common, place) for evolution, each, place in zip(partitions, live, places, strict=True)
    )


# --- changes for all items --------------------------------------------------------------------------------------


def _joined(live: Live) -> Live:
    """The same layers, with one for all items in place of equal ones that together cover all."""
    of: dict[Path, list[Layer]] = defaultdict(list)
    for path, layer in live:
        of[path].append(layer)
    whole: dict[int, Layer] = {}
    gone: set[int] = set()
    for layers in of.values():
        parts = list(takewhile(lambda layer: layer.box, reversed(layers)))
        if len(parts) > 1 and all(not layer.box for layer in layers[: -len(parts)]) and _are_one(parts):
            whole[id(parts[0])] = replace(parts[0], box=())
            gone.update(id(layer) for layer in parts[1:])
    return _lasting([(path, whole.get(id(layer), layer)) for path, layer in live if id(layer) not in gone])


def _lasting(live: Live) -> Live:
    """The layers without those that ended when a path, or one above it, was added or dropped for all items."""
    begun: dict[Path, int] = {}
    for path, layer in live:
        if not layer.box and not isinstance(layer.change, Affine):
            begun[path] = layer.number
    return [
        (path, layer)
        for path, layer in live
        if not begun or all(begun.get(each, 0) <= layer.number for each in and_above(path))
    ]


def _are_one(parts: Sequence[Layer]) -> bool:
    """Whether the newest layers of a path are one change, applied once to each item."""
    if any((each.change, each.steps) != (parts[0].change, parts[0].steps) for each in parts):
        return False
    if parts[0].change == "unknown":  # unknown changes may differ
        return False
    try:
        if left_over((), [each.box for each in parts]) is not None:
            return False
    except StreamError:  # too complex to decide: they are shown
        return False
    if not isinstance(parts[0].change, Affine):
        return True
    seen: Index[None] = Index()
    for each in parts:
        if any(met(each.box, other) is not None for _, other, _ in seen.near(each.box)):
            return False
        seen.add(each.box, None)
    return True


def _are_same(changes: Sequence[LayerChange]) -> bool:
    """Whether partitions had the same changes; an unknown change equals only itself."""
    return len(changes) == 1 or ("unknown" not in changes and len(set(changes)) == 1)


def _courses(live: Live) -> dict[Path, list[LayerChange]]:
    """By path: its changes for all items, in order."""
    found: dict[Path, list[LayerChange]] = defaultdict(list)
    for path, layer in live:
        if not layer.box:
            found[path] += layer.steps or [layer.change]
    return found


# --- one partition ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Shown:
    """A layer in force for a part, and the items it describes, by the values of its own place."""

    path: Path
    layer: Layer
    items: Predicate
    retold: bool = False


def _view(evolution: Evolution, live: Live, common: Mapping[Path, int], place: Place) -> PartitionView:
    kept, carried, units = _without(live, common)
    fresh = Evolution(evolution.declares, evolution.domains)
    for path, is_there in carried.items():
        fresh.lay(path, Layer(0, (), "add" if is_there else "drop"))
    there = {path for path, layer in kept if layer.change == "add" and fresh.state(path, _ANY).carried}
    announced: dict[Path, Index[None]] = defaultdict(Index)
    shown: list[tuple[Path, Layer]] = []
    for path, layer in kept:
        match layer.change:
            case "add":  # an add of a path that was there from the start and never evolved is no news
                is_shown = path not in there or _met(path, layer.box, announced)
            case "drop":
                is_shown = fresh.may_carry(path, layer.box)
            case _:
                is_shown = True
        fresh.lay(path, layer)
        if is_shown:
            announced[path].add(layer.box, None)
            shown.append((path, layer))
    accents = [accent for each in _described(shown) for accent in _accents(each, place)]
    return PartitionView(tuple(accents), carried, fresh, units)


def _met(path: Path, box: Box, announced: Mapping[Path, Index[None]]) -> bool:
    """Whether there was an accent on a path, or on one above it, for some items of a box."""
    near = (other for each in and_above(path) if each in announced for _, other, _ in announced[each].near(box))
    return any(met(box, other) is not None for other in near)


def _without(live: Live, common: Mapping[Path, int]) -> tuple[Live, dict[Path, bool], dict[Path, Affine]]:
    """The layers beyond what all items have in common, in its units; which common paths items have; these units."""
    kept: list[tuple[Path, Layer]] = []
    carried: dict[Path, bool] = {}
    left = {path: len(course) for path, course in _courses(live).items()}
    units: dict[Path, Affine] = {}
    """The composed changes from here to the end of the common ones."""
    for path, layer in reversed(live):
        if not layer.box:
            size = len(layer.steps or (layer.change,))
            left[path] -= size
            shared = min(max(common[path] - left[path], 0), size)
            if isinstance(layer.change, Affine):
                units[path] = _composed(layer.steps[:shared]).then(units.get(path, IDENTITY))
                layer = replace(layer, steps=layer.steps[shared:], change=_composed(layer.steps[shared:]))
            elif shared:
                carried[path] = layer.change != "drop"
            if shared == size:
                continue
        elif isinstance(layer.change, Affine) and path in units:
            unit = units[path]
            steps = tuple(unit.inverse().then(step).then(unit) for step in layer.steps)
            layer = replace(layer, steps=steps, change=_composed(steps))
        kept.append((path, layer))
    kept.reverse()
    return kept, dict(reversed(carried.items())), {path: unit for path, unit in units.items() if unit != IDENTITY}


def _composed(steps: Sequence[Affine]) -> Affine:
    return reduce(Affine.then, steps, IDENTITY)


def _described(kept: Live) -> list[_Shown]:
    """The layers with their items described by the values of their own place, the oldest first."""
    shown: list[_Shown] = []
    for path, layer in kept:
        last = shown[-1] if shown else None
        if last is not None and (last.path, last.layer.number, last.layer.change) == (path, layer.number, layer.change):
            last.items, last.retold = or_(last.items, and_(*layer.box)), True  # a description that was rewritten
        else:
            shown.append(_Shown(path, layer, and_(*layer.box)))
    naming: dict[Path, set[int]] = defaultdict(set)
    for number, each in enumerate(shown):
        for term in terms(each.items):
            naming[term.path].add(number)
    for number, later in reversed(list(enumerate(shown))):
        if names(later.items, later.path):
            hidden = [term.path for term in terms(later.items) if below(term.path, later.path)]
            with suppress(StreamError):  # too complex: then `divided` fails as well, and a doubt is shown
                later.items = for_some(later.items, hidden)
        if not isinstance(later.layer.change, Affine):
            continue
        for before in sorted(naming[later.path]):
            if before < number:
                earlier = shown[before]
                told = rewritten(earlier.items, later.path, later.items, later.layer.change.inverse())
                assert told is not None  # no unit changes under a description that compares text
                earlier.items, earlier.retold = told, True
                with suppress(StreamError):
                    earlier.items = combined(told)
                for term in terms(earlier.items):
                    naming[term.path].add(before)
    return shown


def _accents(shown: _Shown, place: Place) -> Iterator[Accent | Doubt]:
    try:
        parts = divided(shown.items) if shown.retold else (shown.items,)
    except StreamError:  # a description that is too complex counts as all items
        yield Doubt(shown.path, EVERYTHING)
        return
    for where in map(description_of, parts):
        match shown.layer.change:
            case "add":
                yield Accent(where, Add(shown.path, shown.layer.type), place)
            case "drop":
                yield Accent(where, Drop(shown.path), place)
            case "unknown":
                yield Doubt(shown.path, where)
            case _:
                yield from (Accent(where, Alter(shown.path, step), place) for step in shown.layer.steps)
