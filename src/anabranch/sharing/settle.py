"""The one form in which property trees are made and compared.

* What is implicit in another output goes (the special case of 4.1 of the sharing paper): an element that is sent whole
  is sent wherever a part of it is needed. An element is marked by itself only where nothing below it already brings it
  (`settled`).
* What the conditions of a tree look at is there wherever they are asked, so that a tree is always that of a query: of
  the one that is rendered from it (`tree_of`).
* Windows and aggregates can be taken away, and what they need becomes outputs (`unwindowed`, 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from anabranch.predicate import EVERYTHING, NOTHING, Predicate, implies
from anabranch.sharing.tree import (
    ITEM,
    Aggregate,
    Output,
    PropertyTree,
    Steps,
    Window,
    aggregate_label,
    looked_at,
    paths_of,
    place,
    union,
)
from anabranch.stream.schema import Schema


def tree_of(
    stream: str,
    outputs: Iterable[Output],
    window: Window | None,
    aggregates: Iterable[Aggregate],
    schema: Schema | None,
) -> PropertyTree:
    """The tree of what was found, with all that its conditions look at."""
    tree = _tidy(PropertyTree(stream, tuple(outputs), window, tuple(aggregates), schema))
    while True:
        seen = [pair for condition in _conditions(tree) for pair in looked_at(condition)]
        seen += [(term, EVERYTHING) for term, _ in looked_at(window.post if window else EVERYTHING)]
        more = [Output(term.path.steps, when) for term, when in seen if not term.input]
        values = {each.term: each for each in tree.aggregates}
        for term, when in seen:
            if term in values:
                values[term] = replace(values[term], selection=union(values[term].selection, when))
        wider = _tidy(replace(tree, outputs=(*tree.outputs, *more), aggregates=tuple(values.values())))
        if _is_within(wider, tree):
            return tree
        tree = wider


def _conditions(tree: PropertyTree) -> list[Predicate]:
    """All conditions that the tree's query asks: of outputs, of the elements around them, of values, of the whole."""
    found = [each.condition for each in tree.outputs] + [each.selection for each in tree.aggregates]
    if tree.window or tree.aggregates:
        guard: Predicate = NOTHING
        for condition in found:
            guard = union(guard, condition)
        found.append(guard)
    found += [guard for path, guard in tree.guards.items() if len(path) >= ITEM]
    return list(dict.fromkeys(found))


def _is_within(wider: PropertyTree, tree: PropertyTree) -> bool:
    """Whether a tree that was widened is still what it was."""
    outputs = {(each.path, each.whole): each.condition for each in tree.outputs}
    values = {each.term: each.selection for each in tree.aggregates}
    pairs = [(each.condition, outputs.get((each.path, each.whole), NOTHING)) for each in wider.outputs]
    pairs += [(each.selection, values[each.term]) for each in wider.aggregates]
    return all(implies(new, old) for new, old in pairs)


def _tidy(tree: PropertyTree) -> PropertyTree:
    """Settled outputs, and aggregates in the order of the schema; an item comes along with its values."""
    given: Predicate = NOTHING
    for each in tree.aggregates:
        given = union(given, each.selection)
    outputs = [
        each
        for each in settled(tree.outputs, tree.schema)
        if each.whole or len(each.path) > ITEM or not implies(each.condition, given)
    ]
    values = sorted(tree.aggregates, key=lambda each: (place(each.path, tree.schema), aggregate_label(each)))
    return replace(tree, outputs=tuple(outputs), aggregates=tuple(values))


def settled(outputs: Sequence[Output], schema: Schema | None = None) -> tuple[Output, ...]:
    """The outputs without those that others bring, in the order of the schema."""
    joined: dict[tuple[Steps, bool], Predicate] = {}
    needed = [each for each in outputs if each.condition != NOTHING]
    wholes = {each.path for each in needed if each.whole}
    for each in needed:
        around = (each.path[:length] for length in range(len(each.path) + 1))
        top = next((path for path in around if path in wholes), None)
        key = (each.path, False) if top is None else (top, True)
        joined[key] = union(joined.get(key, NOTHING), each.condition)
    found = [Output(path, condition, whole) for (path, whole), condition in joined.items()]
    kept = [each for each in found if each.whole or not _is_brought(each, found)]
    return tuple(sorted(kept, key=lambda each: place(each.path, schema)))


def _is_brought(element: Output, outputs: Iterable[Output]) -> bool:
    """Whether an element comes along with what stands below it."""
    guard: Predicate = NOTHING
    for each in outputs:
        if len(each.path) > len(element.path) and each.path[: len(element.path)] == element.path:
            guard = union(guard, each.condition)
    return implies(element.condition, guard)


def unwindowed(tree: PropertyTree) -> PropertyTree:
    """The tree without window and aggregates, whatever they need turned into outputs (sharing paper, 4.2)."""
    if tree.window is None and not tree.aggregates:
        return tree
    pre = tree.window.pre if tree.window else EVERYTHING
    found = [Output(term.path.steps, when) for term, when in looked_at(pre)]
    found += [replace(each, condition=pre) for each in tree.outputs]
    if tree.window:
        found.append(Output(tree.window.path, pre, whole=False))
        if tree.window.reference:
            found.append(Output(tree.window.reference, pre))
    for each in tree.aggregates:
        found.append(Output(each.path, pre, whole=each.function != "count"))
        found += [Output(steps, pre) for _, condition in each.pre for steps in paths_of(condition)]
    return tree_of(tree.stream, found, None, (), tree.schema)
