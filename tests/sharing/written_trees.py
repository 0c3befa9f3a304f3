"""Property trees and forests as text, and back: the lines that `explain` prints, read again.

So tests of matching, merging and subtracting are text in, text out, and need no query.
An output's condition is the one that is named at it or at the nearest element around it; a bullet sends the element
whole, a ring the element itself.
Lines of elements that conditions only look at say nothing of their own.
Conditions are read by the rules that read them in queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from anabranch.algebra.window import Extent
from anabranch.language import ast, parse
from anabranch.language.rewrite import rebuild
from anabranch.predicate import EVERYTHING, Predicate, and_
from anabranch.predicate.writing import number_text
from anabranch.sharing.explain.trees import AGGREGATE, JOIN, SELECT, WINDOW, forest_lines, indented, tree_lines
from anabranch.sharing.forest import JoinKind, PropertyForest
from anabranch.sharing.rules.clauses import input_name
from anabranch.sharing.rules.conditions import CONTEXT, Names, StreamNodes, understand
from anabranch.sharing.rules.findings import Findings
from anabranch.sharing.tree import (
    ITEM,
    AggregateAnnotation,
    OutputAnnotation,
    PropertyTree,
    Steps,
    WindowAnnotation,
    aggregate_label,
)

_STREAM = re.compile(r'stream "(.*)"')
_JOIN = re.compile(r'(step|interval) join of "(.*)"')
_ALSO = "  also fires for windows of "
_LINE = re.compile(r"( *)(\S+)(?: ([•◦]))?(?:  (\S.*))?")
_NOTE = re.compile(rf"(?:^|, )((?:pre-|post-)?{SELECT}|{WINDOW}|{AGGREGATE}|{JOIN}) ")
_EXTENT = re.compile(r"\|(?:count|(\S+) diff) (\S+) step (\S+)\|")


def print_tree(tree: PropertyTree) -> str:
    """A tree with the name of its stream."""
    return "\n".join((f'stream "{tree.stream}"', *indented(tree_lines(tree))))


def print_forest(forest: PropertyForest) -> str:
    """A join's forest, with the windows for which it fires before its own are full."""
    streams = " and ".join(f'"{each}"' for each in forest.streams)
    also = (f"{_ALSO}{' and '.join(map(number_text, sizes))}" for sizes in forest.smaller)
    return "\n".join((f"{forest.kind} join of {streams}", *indented(forest_lines(forest)), *also))


def parse_tree(text: str) -> PropertyTree:
    """The tree that was printed."""
    head, *lines = text.strip("\n").splitlines()
    found = _STREAM.fullmatch(head)
    if found is None:
        raise ValueError(f"no tree begins with '{head}'")
    return _Reader(list(_elements(lines))).tree(found[1])


def parse_forest(text: str) -> PropertyForest:
    """The forest that was printed."""
    head, *lines = text.strip("\n").splitlines()
    found = _JOIN.fullmatch(head)
    if found is None:
        raise ValueError(f"no forest begins with '{head}'")
    also = [line.removeprefix(_ALSO).split(" and ") for line in lines if line.startswith(_ALSO)]
    inputs: dict[str, list[str]] = {}
    for line in (each.removeprefix("  ") for each in lines if not each.startswith(_ALSO)):
        if line.startswith("  "):
            inputs[next(reversed(inputs))].append(line)
        else:
            inputs[line] = []
    elements = {label: list(_elements(each)) for label, each in inputs.items()}
    items = {label: next(each.path for each in found if len(each.path) == ITEM) for label, found in elements.items()}
    labels = {label: StreamNodes(item, input=input_name(number)) for number, (label, item) in enumerate(items.items())}
    trees = [
        _Reader(elements[label], labels[label].input, labels).tree(stream)
        for label, stream in zip(inputs, found[2].split('" and "'), strict=True)
    ]
    return PropertyForest(cast(JoinKind, found[1]), tuple(trees), tuple(tuple(map(Fraction, sizes)) for sizes in also))


@dataclass(frozen=True)
class _Element:
    path: Steps
    mark: str
    notes: list[tuple[str, str]]


def _elements(lines: list[str]) -> Iterator[_Element]:
    above: list[str] = []
    for line in lines:
        found = _LINE.fullmatch(line[2:])
        if found is None or len(found[1]) % 2 or len(found[1]) // 2 > len(above):
            raise ValueError(f"no line of a tree: '{line}'")
        above = [*above[: len(found[1]) // 2], found[2]]
        yield _Element(tuple(above), found[3] or "", list(_notes(found[4] or "")))


def _notes(text: str) -> Iterator[tuple[str, str]]:
    """Signs with what stands behind them; a sign in a quoted text is none."""
    masked = re.sub(r"'[^']*'", lambda quoted: "'" * len(quoted[0]), text)
    found = list(_NOTE.finditer(masked))
    for place, each in enumerate(found, 1):
        yield each[1], text[each.end() : found[place].start() if place < len(found) else len(text)]


class _Reader:
    """The lines of one tree; in a forest, `labels` are what the paths of a join annotation begin with."""

    def __init__(
        self, elements: list[_Element], input: str = "", labels: Mapping[str, StreamNodes] | None = None
    ) -> None:
        self.elements = elements
        self.input = input
        self.labels = labels or {}
        self.findings = Findings()
        items = [each.path for each in elements if len(each.path) == ITEM]
        self.item = items[0] if items else ()
        self.several = len(items) > 1
        """Whether conditions name paths from the root on."""

    def tree(self, stream: str) -> PropertyTree:
        if [each.path for each in self.elements] in ([("everything",)], [("nothing",)]):
            return PropertyTree(stream, (OutputAnnotation(()),) if self.elements[0].mark else ())
        aggregates = tuple(value for each in self.elements for value in self.aggregates(each))
        names = [aggregate_label(each) for each in aggregates]
        if len(set(names)) < len(names):
            raise ValueError(f"several aggregates have the name {names}")
        window = next((found for each in self.elements if (found := self.window(each))), None)
        item = self.item if self.labels else ()
        return PropertyTree(stream, tuple(self.outputs()), window, aggregates, input=self.input, item=item)

    def outputs(self) -> Iterator[OutputAnnotation]:
        conditions: dict[Steps, Predicate] = {}
        for each in self.elements:
            own = [self.condition(*note) for note in _before_others(each.notes)]
            conditions[each.path] = and_(*own) if own else conditions.get(each.path[:-1], EVERYTHING)
            if each.mark:
                yield OutputAnnotation(each.path, conditions[each.path], each.mark == "•")

    def window(self, element: _Element) -> WindowAnnotation | None:
        notes = dict(element.notes)
        if WINDOW not in notes:
            return None
        found = _EXTENT.fullmatch(notes[WINDOW])
        if found is None:
            raise ValueError(f"no window: '{notes[WINDOW]}'")
        reference = None if found[1] is None else (*element.path, *(found[1].split("/") if found[1] != "." else ()))
        pre, post = (
            self.condition(sign, notes[sign]) if sign in notes else EVERYTHING
            for sign in (f"pre-{SELECT}", f"post-{SELECT}")
        )
        return WindowAnnotation(element.path, Extent(Fraction(found[2]), Fraction(found[3])), reference, pre, post)

    def aggregates(self, element: _Element) -> Iterator[AggregateAnnotation]:
        for place, (sign, text) in enumerate(element.notes):
            if sign == AGGREGATE:
                nodes = StreamNodes(element.path[:ITEM], window=True)
                found = self.findings.aggregate(parse(text.removesuffix(" •")).body, {CONTEXT: nodes})
                assert found is not None, text
                behind = element.notes[place + 1 : place + 2]
                selection = self.condition(*behind[0]) if behind and behind[0][0] == SELECT else EVERYTHING
                self.findings.values.clear()
                yield AggregateAnnotation(found.function, found.path, found.pre, selection)

    def condition(self, sign: str, text: str) -> Predicate:
        names: Names = {CONTEXT: StreamNodes(self.item, window=True, input=self.input)}
        expression: ast.Expression = parse(text).body
        if sign == JOIN:
            names = self.labels
            expression = _with_variables(expression, names)
        elif self.several:
            names = {each.path[0]: StreamNodes(each.path[:1]) for each in self.elements}
            expression = _with_variables(expression, names)
        found = understand(expression, names, self.findings.aggregate)
        if not found.exact or found.rest:
            raise ValueError(f"no condition of a tree: '{text}'")
        return found.predicate


def _before_others(notes: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The selection and the join annotation of an element; what stands behind another sign belongs to that."""
    for sign, text in notes:
        if sign not in (SELECT, JOIN):
            return
        yield sign, text


def _with_variables(node: Any, names: Names) -> Any:
    """An expression whose paths begin with a name that stands for nodes."""
    match node:
        case ast.Path(None, (ast.Step("child", ast.NameTest(name)), *rest)) if name in names:
            return ast.Path(ast.Variable(name), tuple(rest)) if rest else ast.Variable(name)
        case _:
            return rebuild(node, lambda part: _with_variables(part, names))
