"""Property trees line by line: every line is an element, with its annotations behind it.

A bullet marks what is sent whole, a ring what is sent as an element only; the paper's letters stand for the kinds of
annotation: sigma for a selection, omega for a window, gamma for an aggregate.
A selection is pulled up to the first element below which it holds for every output (3.2.2), and holds for an output if
no other selection is named in between.
The bowtie of a join stands where a condition names other inputs, whose names stand before their paths.
So the lines say all there is to know of a tree: tests read them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.predicate import EVERYTHING, Predicate, and_, equivalent, terms
from anabranch.predicate.writing import number_text
from anabranch.sharing.forest import PropertyForest, labels
from anabranch.sharing.render import window_text
from anabranch.sharing.tree import ITEM, PropertyTree, Steps, aggregate_label, conjuncts, is_value, joined_text

SELECT, WINDOW, AGGREGATE, JOIN = (
    "\N{GREEK SMALL LETTER SIGMA}",
    "\N{GREEK SMALL LETTER OMEGA}",
    "\N{GREEK SMALL LETTER GAMMA}",
    "\N{BOWTIE}",
)

Inputs: TypeAlias = Mapping[str, tuple[Steps, str]]
"""For each input, the path that its paths in conditions begin with, and the label that is printed in its place."""


@dataclass(frozen=True, slots=True)
class TreeLine:
    """An element: its path, its name, whether it is sent, and its annotations, each a sign and a text."""

    path: Steps
    name: str
    marks: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        notes = ", ".join(f"{sign} {text}" for sign, text in self.notes)
        head = " ".join((self.name, *self.marks))
        return f"{'  ' * (len(self.path) - 1)}{head}{f'  {notes}' if notes else ''}"


def lines(tree: PropertyTree) -> list[TreeLine]:
    """A tree that stands alone."""
    return _lines(tree, _alone(tree))


def joined_lines(forest: PropertyForest) -> Iterator[tuple[str, list[TreeLine]]]:
    """The trees of a join with the names of their inputs."""
    inputs = _joined(forest)
    for tree in forest.trees:
        yield inputs[tree.input][1], _lines(tree, inputs)


def tree_lines(tree: PropertyTree) -> list[str]:
    """A tree that stands alone as text."""
    return list(map(str, lines(tree)))


def forest_lines(forest: PropertyForest) -> list[str]:
    """The trees of a join as text, under the names of their inputs."""
    found: list[str] = []
    for name, each in joined_lines(forest):
        found += [name, *indented(list(map(str, each)))]
    return found


def tree_json(tree: PropertyTree) -> dict[str, Any]:
    """A tree that stands alone as data."""
    return _json(tree, _alone(tree))


def forest_json(forest: PropertyForest) -> dict[str, Any]:
    """The trees of a join as data."""
    inputs = _joined(forest)
    trees = [{"input": inputs[tree.input][1], **_json(tree, inputs)} for tree in forest.trees]
    smaller = [[number_text(size) for size in sizes] for sizes in forest.smaller]
    return {
        "kind": forest.kind,
        "condition": joined_text(forest.guard, inputs),
        "trees": trees,
        "smaller windows": smaller,
    }


def indented(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    """Lines two columns further in."""
    for line in lines:
        yield f"  {line}"


def _alone(tree: PropertyTree) -> Inputs:
    """Paths are printed from the item down, where the tree has one kind of item only."""
    items = {path[:ITEM] for path in tree.paths if len(path) >= ITEM}
    return {"": (next(iter(items)) if len(items) == 1 else (), "")}


def _joined(forest: PropertyForest) -> Inputs:
    names = labels(forest.trees)
    return {tree.input: (tree.item, name) for tree, name in zip(forest.trees, names, strict=True)}


def _lines(tree: PropertyTree, inputs: Inputs) -> list[TreeLine]:
    if any(each.path == () for each in tree.outputs):
        return [TreeLine((), "everything", ("•",))]
    if not tree.paths:
        return [TreeLine((), "nothing")]
    notes = _Notes(tree, inputs)
    return [TreeLine(path, path[-1], notes.marks(path), tuple(notes.of(path))) for path in tree.paths]


class _Notes:
    """The marks and annotations of each element of a tree."""

    def __init__(self, tree: PropertyTree, inputs: Inputs) -> None:
        self.tree = tree
        self.inputs = inputs
        self.conditions: dict[Steps, Predicate] = {}
        for path in dict.fromkeys(each.path[:ITEM] for each in tree.outputs):
            self.pull_up(path, named=False)

    def pull_up(self, path: Steps, *, named: bool) -> None:
        """Find the elements at which conditions are named, from `path` down; `named`: one was named above."""
        below = [each for each in self.tree.outputs if each.path[: len(path)] == path]
        own = next((each.condition for each in below if each.path == path), None)
        children = list(dict.fromkeys(each.path[: len(path) + 1] for each in below if each.path != path))
        if all(equivalent(each.condition, below[0].condition) for each in below):
            if own is None and len(children) == 1:
                self.pull_up(children[0], named=named)
            elif named or below[0].condition != EVERYTHING:
                self.conditions[path] = below[0].condition
            return
        if own is not None and (named or own != EVERYTHING):
            self.conditions[path] = own
        for child in children:
            self.pull_up(child, named=named or own is not None)

    def marks(self, path: Steps) -> tuple[str, ...]:
        return tuple("•" if each.whole else "◦" for each in self.tree.outputs if each.path == path)

    def of(self, path: Steps) -> list[tuple[str, str]]:
        notes = self.selection(self.conditions[path]) if path in self.conditions else []
        window = self.tree.window
        if window and window.path == path:
            notes.append((WINDOW, window_text(window)))
            notes += [(f"pre-{SELECT}", self.text(window.pre))] if window.pre != EVERYTHING else []
            notes += [(f"post-{SELECT}", self.text(window.post))] if window.post != EVERYTHING else []
        for each in self.tree.aggregates:
            if each.path == path:
                notes.append((AGGREGATE, f"{aggregate_label(each)} •"))
                notes += [(SELECT, self.text(each.selection))] if each.selection != EVERYTHING else []
        return notes

    def selection(self, condition: Predicate) -> list[tuple[str, str]]:
        """The selection annotation, and the join annotation where the condition names other inputs."""
        name = self.tree.input
        own = [c for c in conjuncts(condition) if all(is_value(term) or term.input == name for term in terms(c))]
        others = [each for each in conjuncts(condition) if each not in own]
        found = [(SELECT, self.text(and_(*own)))] if own or not others else []
        return found + ([(JOIN, _text(self.tree, and_(*others), self.inputs))] if others else [])

    def text(self, condition: Predicate) -> str:
        """A condition on the tree's own paths, without the label of its input."""
        base, _ = self.inputs[self.tree.input]
        return _text(self.tree, condition, {self.tree.input: (base, "")})


def _text(tree: PropertyTree, condition: Predicate, inputs: Inputs) -> str:
    return joined_text(condition, inputs, {each.term.input: aggregate_label(each) for each in tree.aggregates})


def _json(tree: PropertyTree, inputs: Inputs) -> dict[str, Any]:
    found: dict[str, Any] = {
        "stream": tree.stream,
        "paths": ["/".join(path) for path in tree.paths],
        "outputs": [
            {"path": "/".join(each.path), "whole": each.whole, "condition": _text(tree, each.condition, inputs)}
            for each in tree.outputs
        ],
        "aggregates": [
            {
                "value": aggregate_label(each),
                "path": "/".join(each.path),
                "selection": _text(tree, each.selection, inputs),
            }
            for each in tree.aggregates
        ],
        "window": None,
    }
    if tree.window:
        found["window"] = {
            "path": "/".join(tree.window.path),
            "extent": window_text(tree.window),
            "pre": _text(tree, tree.window.pre, inputs),
            "post": _text(tree, tree.window.post, inputs),
        }
    return found
