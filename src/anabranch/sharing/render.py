"""From a property tree or forest back to a query: the abstraction of what it stands for (sharing paper, 3.3 and B).

The query returns each item without the elements that are not needed (figure 5), or one element for each window, with
its aggregates under generic names (figure 6); so it does for count windows, windows without aggregates, and aggregates
of the whole stream.
For a join it returns one element for each tuple, named after all its items, and in it one element for each input, named
after its stream (figure 15), and numbered where streams have the same name.
Deriving from the rendered query gives the tree or forest again.

Three things differ from the printed templates:

* an element between the item and an output is made once for each that is there, by a `for`; the paper's direct
  constructors would make one `cel` out of two, and `ra` and `dec` of different stars would meet (LAWS, case 4);
* two aggregates of one name (`avg($w/en)` and `avg($w/en[. > 1])`) are numbered, so that they cannot be taken for one
  another (LAWS, case 10);
* all conditions on a tuple stand in its `where`, not only those that join: evaluated one after the other, the first
  would need its elements also where the second does not hold.

A condition stands where it is first needed: an element is under those conditions only that do not hold around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anabranch.language import ast
from anabranch.language.printer import print_expression
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, equivalent
from anabranch.predicate.writing import number_text
from anabranch.sharing.forest import PropertyForest, interval, labels, numbered
from anabranch.sharing.tree import (
    ITEM,
    AggregateAnnotation,
    PropertyTree,
    Steps,
    WindowAnnotation,
    condition_text,
    joined_text,
    union_of,
)

_INDENT = "  "


def render(tree: PropertyTree) -> str:
    """The text of the abstract query, over several lines."""
    return "\n".join(_Template(tree).query())


def render_join(forest: PropertyForest) -> str:
    """The text of the abstract query of a join (figure 15); inputs that are apart have a query each.

    No query can say that a join also fires for smaller windows; the operator that runs the join has to know it.
    """
    assert forest.kind != "apart"
    trees, guard = forest.trees, forest.guard
    variables = [f"$p{number}" for number, _ in enumerate(trees, 1)]
    inputs = {tree.input: (tree.item, variable) for tree, variable in zip(trees, variables, strict=True)}
    lines: list[str] = []
    content: list[str] = []
    for tree, variable, label in zip(trees, variables, labels(trees), strict=True):
        template = _Template(tree)
        template.inputs = inputs
        lines += template.loop(variable, tree.item)
        whole = tree.item in template.wholes
        own = _element(label, _enclosed([variable]) if whole else template.parts(tree.item, variable))
        inside = template.under(template.guards[tree.item], guard, own)
        content += own if inside is own else _enclosed(inside)
    if forest.kind == "interval":
        guard = and_(interval(guard), guard)
    if guard != EVERYTHING:
        lines.append(f"where {joined_text(guard, inputs)}")
    root, item = forest.tuple_path
    lines += ["return", *_indented(_element(item, content))]
    return "\n".join(_element(root, _enclosed(lines)))


class _Template:
    def __init__(self, tree: PropertyTree) -> None:
        self.tree = tree
        self.guards = tree.guards
        self.wholes = {each.path for each in tree.outputs if each.whole}
        self.children: dict[Steps, list[Steps]] = {}
        for path in tree.paths:
            if path in self.guards:
                self.children.setdefault(path[:-1], []).append(path)
        self.source = print_expression(ast.Source("stream", tree.stream))
        self.names: Mapping[str, str] = {
            each.term.input: f"$a{number}" for number, each in enumerate(tree.aggregates, 1)
        }
        self.inputs: Mapping[str, tuple[Steps, str]] = {}
        """The inputs that conditions name, each with its path and the variable that stands for it."""

    def query(self) -> list[str]:
        tree = self.tree
        if tree.window:
            return _element(tree.window.path[0], _enclosed(self.windows(tree.window)))
        if tree.aggregates:
            return self.values()
        if () in self.wholes:
            return [f"for $item in {self.source}/*/*", "return $item"]
        blocks = [self.root(path) for path in self.children.get((), [])]
        return blocks[0] if len(blocks) == 1 else ["(", *_indented(_listed(blocks)), ")"]

    def root(self, path: Steps) -> list[str]:
        """The query for the items under a root element of this name."""
        if path in self.wholes:
            return [f"for $item in {self.source}/{path[0]}/*", "return $item"]
        return _element(path[0], [line for item in self.children[path] for line in _enclosed(self.items(item))])

    def items(self, path: Steps) -> list[str]:
        """The loop over the items at a path (figure 5)."""
        self.inputs = {"": (path, "$p")}
        lines = [f"for $p in {'/'.join((self.source, *path))}", "return"]
        return lines + _indented(self.under(self.guards[path], EVERYTHING, self.content(path, "$p")))

    def content(self, path: Steps, variable: str) -> list[str]:
        """An element with the parts that are needed."""
        return [variable] if path in self.wholes else _element(path[-1], self.parts(path, variable))

    def parts(self, path: Steps, variable: str) -> list[str]:
        """The needed parts of an element."""
        lines: list[str] = []
        for child in self.children.get(path, []):
            inside = [f"{variable}/{child[-1]}"]
            if child not in self.wholes:
                inner = f"$e{len(child)}"
                inside = [f"for {inner} in {inside[0]} return", *self.content(child, inner)]
            lines += _enclosed(self.under(self.guards[child], self.guards[path], inside))
        return lines

    def under(self, condition: Predicate, known: Predicate, lines: list[str]) -> list[str]:
        """Lines under a condition, unless it is known to hold."""
        if equivalent(condition, known):
            return lines
        head = f"if ({self.condition(condition)}) then"
        return [f"{head} {lines[0]} else ()"] if len(lines) == 1 else [head, *_indented(lines), "else ()"]

    def condition(self, condition: Predicate) -> str:
        return joined_text(condition, self.inputs, self.names)

    # --- windows and aggregates ---------------------------------------------------------------------------

    def windows(self, window: WindowAnnotation) -> list[str]:
        """The loop over the windows (figure 6)."""
        self.inputs = {"": (window.path, "$w")}
        lines = self.loop("$w", window.path)
        lines += self.lets(lambda each: "$w" + "".join(_path(each, ITEM)))
        if window.post != EVERYTHING:
            lines.append(f"where {self.condition(window.post)}")
        beside = self.guards.get(window.path, NOTHING)
        guard = union_of((beside, *(each.selection for each in self.tree.aggregates)))
        content = self.generic(guard)
        if beside != NOTHING:
            inside = ["for $p in $w return", *self.content(window.path, "$p")]
            around = _element(window_name(window.path), _enclosed(inside))
            content += _enclosed(self.under(beside, guard, around))
        return [*lines, "return", *_indented(self.under(guard, EVERYTHING, _element(window.path[-1], content)))]

    def loop(self, variable: str, path: Steps) -> list[str]:
        """The head of a loop, with its window."""
        window = self.tree.window
        pre = EVERYTHING if window is None else window.pre
        test = "" if pre == EVERYTHING else f"[{joined_text(pre, {self.tree.input: (path, '')})}]"
        head = f"for {variable} in {'/'.join((self.source, *path))}{test}"
        return [head] if window is None else [head, f"{_INDENT}{window_text(window)}"]

    def values(self) -> list[str]:
        """Aggregates of the whole stream: figure 6 without its loop."""
        lines = self.lets(lambda each: f"{self.source}/{'/'.join(each.path[:ITEM])}" + "".join(_path(each, ITEM)))
        guard = union_of(each.selection for each in self.tree.aggregates)
        path = self.tree.aggregates[0].path
        body = self.under(guard, EVERYTHING, _element(path[1], self.generic(guard)))
        return _element(path[0], _enclosed([*lines, "return", *_indented(body)]))

    def lets(self, argument: Callable[[AggregateAnnotation], str]) -> list[str]:
        return [
            f"let {self.names[each.term.input]} := {each.function}({argument(each)})" for each in self.tree.aggregates
        ]

    def generic(self, guard: Predicate) -> list[str]:
        """The elements for the aggregates."""
        lines: list[str] = []
        for name, each in zip(generic_names(self.tree.aggregates), self.tree.aggregates, strict=True):
            element = [f"<{name}>{{ {self.names[each.term.input]} }}</{name}>"]
            lines += _enclosed(self.under(each.selection, guard, element)) if each.selection != guard else element
        return lines


def generic_names(aggregates: tuple[AggregateAnnotation, ...]) -> list[str]:
    """The names of the elements that carry the aggregates: function and element, numbered where that is taken."""
    return numbered(f"{each.function}_{each.path[-1]}" for each in aggregates)


def window_name(path: Steps) -> str:
    """The name of the element around a window's items."""
    return f"win_{path[-1]}"


def window_text(window: WindowAnnotation) -> str:
    """`|det_time diff 60 step 40|`"""
    sizes = f"{number_text(window.extent.size)} step {number_text(window.extent.step)}"
    if window.reference is None:
        return f"|count {sizes}|"
    return f"|{'/'.join(window.reference[len(window.path) :]) or '.'} diff {sizes}|"


def _path(aggregate: AggregateAnnotation, start: int) -> list[str]:
    """The steps of an aggregated path behind the first ones, with the conditions in their places."""
    conditions = dict(aggregate.pre)
    found = []
    for depth in range(start, len(aggregate.path) + 1):
        step = f"/{aggregate.path[depth - 1]}" if depth > start else ""
        test = f"[{condition_text(conditions[depth], aggregate.path[:depth])}]" if depth in conditions else ""
        found.append(step + test)
    return found


def _element(name: str, content: list[str]) -> list[str]:
    return [f"<{name}>", *_indented(content), f"</{name}>"] if content else [f"<{name}/>"]


def _enclosed(lines: list[str]) -> list[str]:
    if len(lines) == 1:
        return [f"{{ {lines[0]} }}"]
    return [f"{{ {lines[0]}", *(f"{_INDENT}{each}" for each in lines[1:-1]), f"{_INDENT}{lines[-1]} }}"]


def _indented(lines: list[str]) -> list[str]:
    return [f"{_INDENT}{each}" for each in lines]


def _listed(blocks: list[list[str]]) -> list[str]:
    """Blocks of lines with commas between them; of none, none."""
    return [line for block in blocks[:-1] for line in (*block[:-1], f"{block[-1]},")] + [
        line for block in blocks[-1:] for line in block
    ]
