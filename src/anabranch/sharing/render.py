"""From a property tree back to a query: the abstraction of what the tree stands for (sharing paper, 3.3).

The query gives each item back as it was, without what nobody asked for (figure 5), or one element for each window with
its aggregates under generic names (figure 6); so do count windows, windows without aggregates, and aggregates of the
whole stream.
Deriving from the rendered query gives the tree again.

Two things differ from the printed templates:

* an element between the item and an output is made once for each that is there, by a `for`; the paper's direct
  constructors would make one `cel` out of two, and `ra` and `dec` of different stars would meet (LAWS, case 4);
* two aggregates of one name (`avg($w/en)` and `avg($w/en[. > 1])`) are numbered, so that they cannot be taken for one
  another (LAWS, case 10).

A condition stands where it is first needed: an element asks only for what the one around it has not asked for already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from anabranch.predicate import EVERYTHING, NOTHING, Predicate, equivalent
from anabranch.sharing.tree import ITEM, Aggregate, PropertyTree, Steps, Window, union
from anabranch.sharing.writing import condition_text

_INDENT = "  "


def render(tree: PropertyTree) -> str:
    """The text of the abstract query, over several lines."""
    return "\n".join(_Template(tree).query())


class _Template:
    def __init__(self, tree: PropertyTree) -> None:
        self.tree = tree
        self.guards = tree.guards
        self.wholes = {each.path for each in tree.outputs if each.whole}
        self.children: dict[Steps, list[Steps]] = {}
        for path in tree.paths:
            if path in self.guards:
                self.children.setdefault(path[:-1], []).append(path)
        self.source = f'stream("{_quoted(tree.stream)}")'
        self.names: Mapping[str, str] = {
            each.term.input: f"$a{number}" for number, each in enumerate(tree.aggregates, 1)
        }
        self.item: Steps = ()

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
        """What is sent of a stream with a root element of this name."""
        if path in self.wholes:
            return [f"for $item in {self.source}/{path[0]}/*", "return $item"]
        return _element(path[0], [line for item in self.children[path] for line in _enclosed(self.items(item))])

    def items(self, path: Steps) -> list[str]:
        """The loop over the items at a path (figure 5)."""
        self.item = path
        lines = [f"for $p in {'/'.join((self.source, *path))}", "return"]
        return lines + _indented(self.under(self.guards[path], EVERYTHING, self.content(path, "$p")))

    def content(self, path: Steps, variable: str) -> list[str]:
        """An element as far as it is asked for."""
        return [variable] if path in self.wholes else _element(path[-1], self.parts(path, variable))

    def parts(self, path: Steps, variable: str) -> list[str]:
        """What is asked for below an element."""
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
        variable = "$w" if self.tree.window else "$p"
        return condition_text(condition, self.item, variable, self.names)

    # --- windows and aggregates ---------------------------------------------------------------------------

    def windows(self, window: Window) -> list[str]:
        """The loop over the windows (figure 6)."""
        self.item = window.path
        pre = "" if window.pre == EVERYTHING else f"[{condition_text(window.pre, window.path)}]"
        source = "/".join((self.source, *window.path))
        lines = [f"for $w in {source}{pre}", f"{_INDENT}{window_text(window)}"]
        lines += self.lets(lambda each: "$w" + "".join(_path(each, ITEM)))
        if window.post != EVERYTHING:
            lines.append(f"where {self.condition(window.post)}")
        beside = self.guards.get(window.path, NOTHING)
        guard = beside
        for each in self.tree.aggregates:
            guard = union(guard, each.selection)
        content = self.generic(guard)
        if beside != NOTHING:
            inside = ["for $p in $w return", *self.content(window.path, "$p")]
            around = _element(f"win_{window.path[-1]}", _enclosed(inside))
            content += _enclosed(self.under(beside, guard, around))
        return [*lines, "return", *_indented(self.under(guard, EVERYTHING, _element(window.path[-1], content)))]

    def values(self) -> list[str]:
        """Aggregates of the whole stream: figure 6 without its loop."""
        lines = self.lets(lambda each: f"{self.source}/{'/'.join(each.path[:ITEM])}" + "".join(_path(each, ITEM)))
        guard: Predicate = NOTHING
        for each in self.tree.aggregates:
            guard = union(guard, each.selection)
        path = self.tree.aggregates[0].path
        body = self.under(guard, EVERYTHING, _element(path[1], self.generic(guard)))
        return _element(path[0], _enclosed([*lines, "return", *_indented(body)]))

    def lets(self, argument: Callable[[Aggregate], str]) -> list[str]:
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


def generic_names(aggregates: tuple[Aggregate, ...]) -> list[str]:
    """The names of the elements that carry the aggregates: function and element, numbered where that is taken."""
    names: list[str] = []
    for each in aggregates:
        name = f"{each.function}_{each.path[-1]}"
        count = sum(1 for other in aggregates[: len(names)] if f"{other.function}_{other.path[-1]}" == name)
        names.append(f"{name}_{count + 1}" if count else name)
    return names


def window_text(window: Window) -> str:
    """`|det_time diff 60 step 40|`"""
    sizes = f"{_number(window.extent.size)} step {_number(window.extent.step)}"
    if window.reference is None:
        return f"|count {sizes}|"
    return f"|{'/'.join(window.reference[len(window.path) :]) or '.'} diff {sizes}|"


def _path(aggregate: Aggregate, start: int) -> list[str]:
    """The steps of an aggregated path behind the first ones, with the conditions in their places."""
    conditions = dict(aggregate.pre)
    found = []
    for depth in range(start, len(aggregate.path) + 1):
        step = f"/{aggregate.path[depth - 1]}" if depth > start else ""
        test = f"[{condition_text(conditions[depth], aggregate.path[:depth])}]" if depth in conditions else ""
        found.append(step + test)
    return found


def _number(value: Fraction) -> str:
    """Sizes and steps are decimals, and divisors of decimals are decimals."""
    return format(Decimal(value.numerator) / Decimal(value.denominator), "f")


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', '""')


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
