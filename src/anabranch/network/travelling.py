"""What may travel of a stream, beyond what the planner knows of queries.

* A stream that may have accents travels in whole items: an accent may speak of any path, and what it says must hold for
  the items that others have waiting.
* A stream of updates travels as it is, and so does one of several partitions: to put them together would hide which
  item is late in its own (LAWS 3.2).
* A query that asks when something came needs its time (LAWS 1.2, 1.3, 5.5).
* A stream that may have accents is not made into windows on the way, and a join's tuples do not travel: they would
  depend on when the first who asked for them began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.network.description import RegisteredStream
from anabranch.network.needs import Need, alike, whole
from anabranch.predicate import implies
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sharing.settle import tree_of, unwindowed
from anabranch.sharing.tree import ITEM, Output, PropertyTree, Steps


def travelling(need: Need, streams: Mapping[str, RegisteredStream]) -> Need:
    """What a query is sent of its streams."""
    timed, places = asks_when(need), references(need)
    inputs: list[PropertyTree] = []
    for tree in need.inputs:
        stream = streams[tree.stream]
        time = stream.source.time
        if is_verbatim(stream) or places is None or (timed and time is None):
            inputs.append(whole(tree.stream, tree.schema))
            continue
        carried = in_whole_items(unwindowed(tree)) if stream.accents else tree
        if carried.window is None:
            told = [tuple(each.split("/")[1:]) for each in places.get(tree.stream, ())]
            told += [time.steps] if timed and time is not None else []
            if not all(tells(carried, each) for each in told):
                carried = alike(carried)
            if not all(tells(carried, each) for each in told):
                carried = whole(tree.stream, tree.schema)
        inputs.append(carried)
    return replace(need, inputs=tuple(inputs), join=None)


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


def is_verbatim(stream: RegisteredStream) -> bool:
    """Whether a stream travels as it is, always."""
    return stream.source.updates or len(stream.source.partitions) > 1


def in_whole_items(tree: PropertyTree) -> PropertyTree:
    """The same items, with all that they hold."""
    guards = tree.guards
    if any(each.whole and len(each.path) < ITEM for each in tree.outputs):
        return tree
    items = [Output(path, guard) for path, guard in guards.items() if len(path) == ITEM]
    return tree_of(tree.stream, items, None, (), tree.schema)


def asks_when(need: Need) -> bool:
    """Whether a query depends on the times of items: it reads several streams, or looks back."""
    return len(need.inputs) > 1 or any(isinstance(each, ast.Qualifier) for each in parts(need.query))


def references(need: Need) -> Mapping[str, frozenset[str]] | None:
    """By stream: the paths that place its items in the time windows of a query; None where these are not plain."""
    assert need.query is not None
    windows = sum(isinstance(each, ast.TimeWindow) for each in parts(need.query))
    found: dict[str, set[str]] = {}
    named = 0
    for tree in derive_forest(need.query).trees if windows else ():
        if tree.window and tree.window.reference:
            named += 1
            found.setdefault(tree.stream, set()).add("/".join(tree.window.reference[ITEM - 1 :]))
    return {name: frozenset(each) for name, each in found.items()} if named == windows else None
