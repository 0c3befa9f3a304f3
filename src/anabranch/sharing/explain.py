"""What sharing makes of queries, for people and for programs.

Each query is shown with its property tree, what it finds in each query before it, and its abstract query; at the end
each stream with the merge of all that read it.

In the picture of a tree every line is an element.
A bullet marks what is sent whole, a ring what is sent as an element only; the paper's letters stand for the kinds of
annotation: sigma for a selection, pulled up to the first element that has all it holds for below it (3.2.2), omega for
a window, gamma for an aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.predicate import EVERYTHING, Predicate, equivalent
from anabranch.sharing.match import Difference, differences, merge, merge_all
from anabranch.sharing.render import render, window_text
from anabranch.sharing.tree import ITEM, PropertyTree, Steps, aggregate_label
from anabranch.sharing.writing import condition_text

_SELECT, _WINDOW, _AGGREGATE = (
    "\N{GREEK SMALL LETTER SIGMA}",
    "\N{GREEK SMALL LETTER OMEGA}",
    "\N{GREEK SMALL LETTER GAMMA}",
)


@dataclass(frozen=True, slots=True)
class Explained:
    """A query with its tree, or with the reason why it has none."""

    name: str
    tree: PropertyTree | None
    reason: str | None = None


def explain_text(queries: Sequence[Explained]) -> Iterator[str]:
    """Lines for a person."""
    for number, query in enumerate(queries):
        if number:
            yield ""
        if query.tree is None:
            yield f"{query.name}: {query.reason}"
            continue
        yield f'{query.name}: stream "{query.tree.stream}"'
        yield from _indented(tree_lines(query.tree))
        for other, found in _against(query.tree, queries[:number]):
            yield f"  against {other.name}: {_verdict(other.tree, query.tree, found)}"
        yield "  abstract query:"
        yield from _indented(_indented(render(query.tree).splitlines()))
    for serves, tree in _streams(queries):
        yield ""
        yield f'one stream "{tree.stream}" for {", ".join(serves)}:'
        yield from _indented(tree_lines(tree))
        yield "  abstract query:"
        yield from _indented(_indented(render(tree).splitlines()))


def explain_json(queries: Sequence[Explained]) -> dict[str, Any]:
    """The same as data."""
    found: list[dict[str, Any]] = []
    for number, query in enumerate(queries):
        if query.tree is None:
            found.append({"name": query.name, "tree": None, "reason": query.reason})
            continue
        against = [
            {"query": other.name, "matches": not lacks, "lacks": [{"kind": k, "of": what} for k, what in lacks]}
            for other, lacks in _against(query.tree, queries[:number])
        ]
        abstract = render(query.tree)
        found.append({"name": query.name, "tree": _tree_json(query.tree), "against": against, "abstract": abstract})
    streams = [
        {"serves": list(serves), "tree": _tree_json(tree), "abstract": render(tree)}
        for serves, tree in _streams(queries)
    ]
    return {"queries": found, "streams": streams}


def _against(tree: PropertyTree, before: Sequence[Explained]) -> Iterator[tuple[Explained, list[Difference]]]:
    for other in before:
        if other.tree is not None and other.tree.stream == tree.stream:
            yield other, list(differences(other.tree, tree))


def _streams(queries: Sequence[Explained]) -> Iterator[tuple[Sequence[str], PropertyTree]]:
    """For each stream that several queries read, these and the merge of their trees."""
    trees = [(each.name, each.tree) for each in queries if each.tree is not None]
    for stream in dict.fromkeys(tree.stream for _, tree in trees):
        readers = [(name, tree) for name, tree in trees if tree.stream == stream]
        if len(readers) > 1:
            yield [name for name, _ in readers], merge_all([tree for _, tree in readers])


def _verdict(stream: PropertyTree | None, query: PropertyTree, lacks: list[Difference]) -> str:
    if not lacks:
        return "matches, nothing is added"
    assert stream is not None
    merged = merge(stream, query)
    window = f" to {window_text(merged.window)}" if merged.window else ""
    words: dict[str, list[str]] = {}
    for kind, what in lacks:
        words.setdefault(kind, []).append(what)
    said = {kind: ", ".join(what) for kind, what in words.items()}
    return "; ".join(_WORDS[kind].format(what=what, window=window) for kind, what in said.items())


_WORDS = {
    "path": "adds {what}",
    "selection": "widens the selection of {what}",
    "postselection": "widens the postselection of the windows of {what}",
    "aggregate": "adds {what}",
    "window": "relaxes the windows of {what}{window}",
    "no window": "removes the windows and aggregates of {what}, and sends the elements they need",
}


# --- the picture of a tree --------------------------------------------------------------------------------


def tree_lines(tree: PropertyTree) -> list[str]:
    """A line for each element, with its annotations behind it."""
    if any(each.path == () for each in tree.outputs):
        return ["everything •"]
    if not tree.paths:
        return ["nothing"]
    notes = _Notes(tree)
    return [f"{'  ' * (len(path) - 1)}{path[-1]}{notes.of(path)}" for path in tree.paths]


class _Notes:
    """What stands behind each element."""

    def __init__(self, tree: PropertyTree) -> None:
        self.tree = tree
        self.conditions: dict[Steps, Predicate] = {}
        for path in dict.fromkeys(each.path[:ITEM] for each in tree.outputs):
            self.pull_up(path, named=False)

    def pull_up(self, path: Steps, *, named: bool) -> None:
        """Find the elements at which conditions are named, from `path` down; `named`: one above has been."""
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

    def of(self, path: Steps) -> str:
        marks = "".join(" •" if each.whole else " ◦" for each in self.tree.outputs if each.path == path)
        notes = [f"{_SELECT} {self.text(self.conditions[path])}"] if path in self.conditions else []
        window = self.tree.window
        if window and window.path == path:
            notes.append(f"{_WINDOW} {window_text(window)}")
            notes += [f"pre-{_SELECT} {self.text(window.pre)}"] if window.pre != EVERYTHING else []
            notes += [f"post-{_SELECT} {self.text(window.post)}"] if window.post != EVERYTHING else []
        for each in self.tree.aggregates:
            if each.path == path:
                notes.append(f"{_AGGREGATE} {aggregate_label(each)} •")
                notes += [f"{_SELECT} {self.text(each.selection)}"] if each.selection != EVERYTHING else []
        return marks + (f"  {', '.join(notes)}" if notes else "")

    def text(self, condition: Predicate) -> str:
        return _relative(self.tree, condition)


def _relative(tree: PropertyTree, condition: Predicate) -> str:
    """A condition as text, its paths from the item down where they are all of one item."""
    items = {path[:ITEM] for path in tree.paths if len(path) >= ITEM}
    names = {each.term.input: aggregate_label(each) for each in tree.aggregates}
    return condition_text(condition, next(iter(items)) if len(items) == 1 else (), names=names)


def _tree_json(tree: PropertyTree) -> dict[str, Any]:
    found: dict[str, Any] = {
        "stream": tree.stream,
        "paths": ["/".join(path) for path in tree.paths],
        "outputs": [
            {"path": "/".join(each.path), "whole": each.whole, "condition": _relative(tree, each.condition)}
            for each in tree.outputs
        ],
        "aggregates": [
            {"value": aggregate_label(each), "path": "/".join(each.path), "selection": _relative(tree, each.selection)}
            for each in tree.aggregates
        ],
        "window": None,
    }
    if tree.window:
        found["window"] = {
            "path": "/".join(tree.window.path),
            "extent": window_text(tree.window),
            "pre": _relative(tree, tree.window.pre),
            "post": _relative(tree, tree.window.post),
        }
    return found


def _indented(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
