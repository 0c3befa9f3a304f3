"""The normal form in which property trees are made and compared.

* An output that is contained in another is dropped (the special case of 4.1 of the sharing paper): an element that is
  sent whole is sent wherever a part of it is needed. An element is an output by itself only where no output below it
  already brings it along (`settled`).
* The elements that a tree's conditions look at are outputs wherever the conditions are evaluated, so that every tree is
  the tree of a query: of the one that is rendered from it (`tree_of`).
* All items of a join's tuple are sent together (`forest_of`).
* Windows and aggregates can be removed, and what they need becomes outputs (`unwindowed`, 4.2); so can a join, and the
  trees of its inputs are left (`unjoined`, 5.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from anabranch.aggregates import AGGREGATES
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, Term, implies
from anabranch.sharing.forest import JoinKind, PropertyForest, alone
from anabranch.sharing.tree import (
    ITEM,
    AggregateAnnotation,
    OutputAnnotation,
    PropertyTree,
    Steps,
    WindowAnnotation,
    aggregate_label,
    both,
    is_value,
    looked_at,
    paths_of,
    place,
    union,
    union_of,
)
from anabranch.stream.schema import Schema


def tree_of(
    stream: str,
    outputs: Iterable[OutputAnnotation],
    window: WindowAnnotation | None,
    aggregates: Iterable[AggregateAnnotation],
    schema: Schema | None,
) -> PropertyTree:
    """The tree of these annotations, with all that its conditions look at."""
    [tree] = _closed((PropertyTree(stream, tuple(outputs), window, tuple(aggregates), schema),))
    return tree


def forest_of(
    kind: JoinKind, trees: Iterable[PropertyTree], smaller: tuple[tuple[Fraction, ...], ...] = ()
) -> PropertyForest:
    """The forest of a join: each tuple has all its items, with all that conditions of any tree look at."""
    forest = PropertyForest(kind, tuple(trees), smaller)
    while True:
        guard = forest.guard
        marked = [
            replace(tree, outputs=(*tree.outputs, OutputAnnotation(tree.item, guard, whole=False)))
            for tree in forest.trees
        ]
        forest = replace(forest, trees=_closed(marked))
        if implies(forest.guard, guard):
            return forest


def _closed(trees: Iterable[PropertyTree]) -> tuple[PropertyTree, ...]:
    """The trees, each with the elements that conditions of any of them look at."""
    found = tuple(map(tidy, trees))
    while True:
        seen = [pair for tree in found for condition in _conditions(tree) for pair in looked_at(condition)]
        wider = tuple(tidy(_with_seen(tree, seen)) for tree in found)
        if all(map(_is_within, wider, found)):
            return found
        found = wider


def _with_seen(tree: PropertyTree, seen: Sequence[tuple[Term, Predicate]]) -> PropertyTree:
    """The tree with those terms as outputs, or as selected values, that are its own."""
    post = tree.window.post if tree.window else EVERYTHING
    own = [(term, when) for term, when in seen if term.input == tree.input and not is_value(term)]
    own += [(term, EVERYTHING) for term, _ in looked_at(post)]
    values = {each.term: each for each in tree.aggregates}
    for term, when in seen:
        if term in values:
            values[term] = replace(values[term], selection=union(values[term].selection, when))
    more = (OutputAnnotation(term.path.steps, when) for term, when in own)
    return replace(tree, outputs=(*tree.outputs, *more), aggregates=tuple(values.values()))


def _conditions(tree: PropertyTree) -> list[Predicate]:
    """All conditions that the tree's query evaluates: on outputs, on the elements around them, on values, on all."""
    found = [each.condition for each in tree.outputs] + [each.selection for each in tree.aggregates]
    if tree.window or tree.aggregates:
        found.append(union_of(found))
    found += [guard for path, guard in tree.guards.items() if len(path) >= ITEM]
    return list(dict.fromkeys(found))


def _is_within(wider: PropertyTree, tree: PropertyTree) -> bool:
    """Whether a tree that was widened has nothing that it did not have before."""
    outputs = {(each.path, each.whole): each.condition for each in tree.outputs}
    values = {each.term: each.selection for each in tree.aggregates}
    pairs = [(each.condition, outputs.get((each.path, each.whole), NOTHING)) for each in wider.outputs]
    pairs += [(each.selection, values[each.term]) for each in wider.aggregates]
    return all(implies(new, old) for new, old in pairs)


def tidy(tree: PropertyTree) -> PropertyTree:
    """The tree with settled outputs, and aggregates in the order of the schema; values bring their item along."""
    given = union_of(each.selection for each in tree.aggregates)
    outputs = [
        each
        for each in settled(tree.outputs, tree.schema)
        if each.whole or len(each.path) > ITEM or not implies(each.condition, given)
    ]
    values = sorted(tree.aggregates, key=lambda each: (place(each.path, tree.schema), aggregate_label(each)))
    return replace(tree, outputs=tuple(outputs), aggregates=tuple(values))


def settled(outputs: Sequence[OutputAnnotation], schema: Schema | None = None) -> tuple[OutputAnnotation, ...]:
    """The outputs without those that others bring along, in the order of the schema."""
    joined: dict[tuple[Steps, bool], Predicate] = {}
    needed = [each for each in outputs if each.condition != NOTHING]
    wholes = {each.path for each in needed if each.whole}
    for each in needed:
        around = (each.path[:length] for length in range(len(each.path) + 1))
        top = next((path for path in around if path in wholes), None)
        key = (each.path, False) if top is None else (top, True)
        joined[key] = union(joined.get(key, NOTHING), each.condition)
    found = [
        OutputAnnotation(path, condition, whole) for (path, whole), condition in joined.items() if condition != NOTHING
    ]
    kept = [each for each in found if each.whole or not _is_brought(each, found)]
    return tuple(sorted(kept, key=lambda each: place(each.path, schema)))


def _is_brought(element: OutputAnnotation, outputs: Iterable[OutputAnnotation]) -> bool:
    """Whether an element is sent along with what stands below it."""
    depth = len(element.path)
    below = (each.condition for each in outputs if len(each.path) > depth and each.path[:depth] == element.path)
    return implies(element.condition, union_of(below))


def unwindowed(tree: PropertyTree) -> PropertyTree:
    """The tree without window and aggregates, whatever they need turned into outputs (sharing paper, 4.2)."""
    if tree.window is None and not tree.aggregates:
        return tree
    pre = tree.window.pre if tree.window else EVERYTHING
    found = [OutputAnnotation(term.path.steps, when) for term, when in looked_at(pre)]
    found += [replace(each, condition=pre) for each in tree.outputs]
    if tree.window:
        found.append(OutputAnnotation(tree.window.path, pre, whole=False))
        if tree.window.reference:
            found.append(OutputAnnotation(tree.window.reference, pre))
    for each in tree.aggregates:
        found.append(OutputAnnotation(each.path, pre, whole=AGGREGATES[each.function].takes_numbers))
        found += [OutputAnnotation(steps, pre) for _, condition in each.pre for steps in paths_of(condition)]
    return tree_of(tree.stream, found, None, (), tree.schema)


def unjoined(forest: PropertyForest) -> tuple[PropertyTree, ...]:
    """The inputs of a join without it, one tree for each loop (sharing paper, 5.3.1).

    All items that enter a window have to be sent, and of all others the reference element: whether selected or not, an
    item advances the windows of its stream (LAWS 3.2), which decides what the items of the other streams meet.
    The time by which streams are merged travels with an item, whatever its tree says (LAWS 1.3).
    """
    if forest.kind == "apart":
        return tuple(map(unwindowed, forest.trees))
    return tuple(_unjoined(alone(tree), tree.item) for tree in forest.trees)


def _unjoined(tree: PropertyTree, item: Steps) -> PropertyTree:
    window = tree.window
    if window is None:
        return tree_of(tree.stream, tree.outputs, None, (), tree.schema)
    found = [OutputAnnotation(term.path.steps, when) for term, when in looked_at(window.pre)]
    found += [replace(each, condition=both(window.pre, each.condition)) for each in tree.outputs]
    found.append(OutputAnnotation(item, window.pre, whole=False))
    if window.reference:
        found.append(OutputAnnotation(window.reference))
    return tree_of(tree.stream, found, None, (), tree.schema)
