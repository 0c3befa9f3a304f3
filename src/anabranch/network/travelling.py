"""What may travel of a stream, beyond what the planner knows of queries.

* A stream that may have accents travels in whole items: an accent may speak of any path, and what it says must hold for
  the items that others have waiting.
* A stream of updates travels as it is, and so does one of several partitions: to put them together would hide which
  item is late in its own (LAWS 3.2).
* A query that asks when something came needs its time (LAWS 1.2, 1.3, 5.5); an interval join needs that of all items
  of its streams, for each lets it answer for those that lie far enough before it.
* A stream that may have accents is not made into windows on the way, nor into tuples: they would depend on when the
  first who asked for them began.
  Nor are streams that travel as they are; and a join that has to wait for the end of its streams waits where it is
  asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from anabranch.branch.remote.tuples import waits
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.network.description import RegisteredStream
from anabranch.network.needs import Need, alike, inputs_of, whole
from anabranch.predicate import EVERYTHING, Predicate, implies
from anabranch.sharing.forest import JoinKind, PropertyForest
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sharing.settle import tree_of, unwindowed
from anabranch.sharing.tree import ITEM, OutputAnnotation, PropertyTree, Steps


def travelling(need: Need, streams: Mapping[str, RegisteredStream]) -> Need:
    """What a query is sent of its streams."""
    inputs = _told(need.inputs, references(need), streams, need.kind, timed=asks_when(need))
    stays = need.stays or (_stays(need, need.join, streams) if need.join else None)
    return replace(need, inputs=inputs, join=None if stays else need.join, stays=stays)


def feeding(join: PropertyForest, streams: Mapping[str, RegisteredStream]) -> tuple[PropertyTree, ...]:
    """What a join that is made on the way is sent of its streams."""
    return _told(inputs_of(join), _references(join.trees), streams, join.kind, timed=len(set(join.streams)) > 1)


def _stays(need: Need, join: PropertyForest, streams: Mapping[str, RegisteredStream]) -> str | None:
    """Why a join is not made on the way."""
    assert need.query is not None
    for name in need.streams:
        stream = streams[name]
        if stream.source.updates:
            return f"stream '{name}' is edited"
        if len(stream.source.partitions) > 1:
            return f"stream '{name}' has several partitions"
        if stream.accents:
            return f"stream '{name}' may have accents"
    if waits(need.query, join, {name: streams[name].source.time for name in need.streams}):
        return "it has to wait for the end of its streams"
    return None


def _told(
    trees: Iterable[PropertyTree],
    places: Mapping[str, frozenset[str]] | None,
    streams: Mapping[str, RegisteredStream],
    kind: JoinKind,
    *,
    timed: bool,
) -> tuple[PropertyTree, ...]:
    """What is sent of streams, with what tells how far they are: where windows place items, and their times."""
    inputs: list[PropertyTree] = []
    for tree in trees:
        stream = streams[tree.stream]
        time = stream.source.time
        if is_verbatim(stream) or places is None or (timed and time is None):
            inputs.append(whole(tree.stream, tree.schema))
            continue
        carried = in_whole_items(unwindowed(tree)) if stream.accents else tree
        if carried.window is None:
            told = [tuple(each.split("/")[1:]) for each in places.get(tree.stream, ())]
            if timed and time is not None:
                told.append(time.steps)
                if kind == "interval":
                    carried = telling(carried, [time.steps], EVERYTHING)
            if not all(tells(carried, each) for each in told):
                carried = telling(alike(carried), told)
            if not all(tells(carried, each) for each in told):
                carried = whole(tree.stream, tree.schema)
        inputs.append(carried)
    return tuple(inputs)


def tells(tree: PropertyTree, path: Steps) -> bool:
    """Whether every item that is sent has what it holds at a path."""
    guards = tree.guards
    if any(each.whole and len(each.path) < ITEM for each in tree.outputs):
        return True
    return all(
        any(
            each.whole and (*item, *path)[: len(each.path)] == each.path and implies(guards[item], each.condition)
            for each in tree.outputs
        )
        for item in guards
        if len(item) == ITEM
    )


def telling(tree: PropertyTree, paths: Iterable[Steps], condition: Predicate | None = None) -> PropertyTree:
    """The same items, each also with what it holds at some paths; and under a condition others with nothing else."""
    items = [(path, guard) for path, guard in tree.guards.items() if len(path) == ITEM]
    more = [OutputAnnotation((*item, *path), condition or guard) for path in paths for item, guard in items]
    return tree_of(tree.stream, (*tree.outputs, *more), None, (), tree.schema)


def is_verbatim(stream: RegisteredStream) -> bool:
    """Whether a stream travels as it is, always."""
    return stream.source.updates or len(stream.source.partitions) > 1


def in_whole_items(tree: PropertyTree) -> PropertyTree:
    """The same items, with all that they hold."""
    guards = tree.guards
    if any(each.whole and len(each.path) < ITEM for each in tree.outputs):
        return tree
    items = [OutputAnnotation(path, guard) for path, guard in guards.items() if len(path) == ITEM]
    return tree_of(tree.stream, items, None, (), tree.schema)


def asks_when(need: Need) -> bool:
    """Whether a query depends on the times of items: it reads several streams, or looks back."""
    return len(need.inputs) > 1 or any(isinstance(each, ast.Qualifier) for each in parts(need.query))


def references(need: Need) -> Mapping[str, frozenset[str]] | None:
    """By stream: the paths that place its items in the time windows of a query; None where these are not plain."""
    assert need.query is not None
    windows = sum(isinstance(each, ast.TimeWindow) for each in parts(need.query))
    trees = derive_forest(need.query).trees if windows else ()
    named = sum(tree.window is not None and tree.window.reference is not None for tree in trees)
    return _references(trees) if named == windows else None


def _references(trees: Iterable[PropertyTree]) -> dict[str, frozenset[str]]:
    """By stream: the paths by which time windows are measured."""
    found: dict[str, set[str]] = {}
    for tree in trees:
        if tree.window and tree.window.reference:
            found.setdefault(tree.stream, set()).add("/".join(tree.window.reference[ITEM - 1 :]))
    return {name: frozenset(each) for name, each in found.items()}
