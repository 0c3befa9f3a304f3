"""Window queries over windows that were made already: the optimised form of the sharing paper (3.2.3) for windows.

In the plain form a subscriber runs its query over what it is sent, so it is sent all that the query looks at.
In the optimised form conditions and aggregates that were evaluated on the way are not evaluated again: the
*restructuring query* is the original without them, and the tree has as outputs only what that query looks at.

A window is sent as one element with its aggregates and, where elements are needed, its items (figure 6): `render.py`
writes `<photon><avg_en>1.5</avg_en><win_photon>...</win_photon></photon>`.
The restructuring query runs over these elements: an aggregate becomes the value that was sent, the window becomes the
items that were sent, and conditions that were evaluated on the way are left out.
A value is read back by `max`: of one number it is that number, and of none, where a value was not sent or is empty,
nothing; a double that was printed is the same double again.
A count is an integer, which prints otherwise than a double, so it stays the text as which it was sent, and may only be
returned, or compared with a number.

At the end it is checked that every path of the restructuring query leads to something that is sent; for a query that
does not fit, or has no loop over windows, the items are sent.
Over items production keeps the plain form, because what is sent is shared with other queries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anabranch.aggregates import AGGREGATES, BY_PANES
from anabranch.language import ast
from anabranch.language.rewrite import bindings_in, children, rebuild
from anabranch.predicate import Predicate, and_, equivalent, implies, terms
from anabranch.sharing.loops import Loop, child, conjunction, loop_of, names_of, split, with_predicates
from anabranch.sharing.normalize import tidy, unwindowed
from anabranch.sharing.render import generic_names, window_name
from anabranch.sharing.rules.conditions import Names, StreamNodes, conditions_at_nodes, locate
from anabranch.sharing.rules.derive import derive
from anabranch.sharing.tree import (
    AggregateAnnotation,
    PropertyTree,
    Steps,
    WindowAnnotation,
    both,
    conjuncts,
    is_value,
    union_of,
)
from anabranch.stream.schema import Schema


def sent_windows(query: ast.Query, schema: Schema | None = None) -> PropertyTree:
    """The windows that a checked query over one stream can be sent; a tree of items where it has to be sent these."""
    plain = derive(query, schema)
    read = over_windows(query, plain)
    return read[0] if read else unwindowed(plain)


def over_windows(query: ast.Query, plain: PropertyTree) -> tuple[PropertyTree, ast.Query] | None:
    """The optimised tree of a query over windows, and the restructuring query; None where it does not fit."""
    loop = loop_of(query)
    if loop is None or plain.window is None or not _has_names_once(query):
        return None
    reading = _WindowReader(loop, plain, plain.window)
    rest = reading.query()
    fits = reading.prints(rest.body) and _is_given(rest, reading.tree, plain.window.path)
    return (reading.tree, rest) if fits else None


class _WindowReader:
    """Turns a window query into one over windows that are sent as elements."""

    def __init__(self, loop: Loop, plain: PropertyTree, window: WindowAnnotation) -> None:
        self.loop = loop
        self.plain = plain
        self.names: Names = {loop.first.variable: StreamNodes(window.path, window=True)}
        for clause in loop.flwor.clauses[1:]:
            value = self.aggregate(clause.value, self.names) if isinstance(clause, ast.Let) else None
            self.names = names_of([clause], self.names, {clause.variable: value} if value else {})
        settled, self.kept = split(loop.where(), self.names, self.aggregate)
        self.tree = self.without(settled)
        sent = [each.condition for each in self.tree.outputs] + [each.selection for each in self.tree.aggregates]
        if not implies(and_(union_of(sent), window.post), settled):
            self.tree, self.kept = plain, loop.where()
        names = generic_names(self.tree.aggregates)
        self.elements = {each.term: name for each, name in zip(self.tree.aggregates, names, strict=True)}
        self.items = (child(window_name(window.path)), child(window.path[-1]))
        """The steps from a window's element to its items."""

    def aggregate(self, expression: ast.Expression, names: Names) -> AggregateAnnotation | None:
        """The aggregate of the plain tree that an expression is, if any."""
        match expression:
            case ast.Variable(name):
                meaning = names.get(name)
                return meaning if isinstance(meaning, AggregateAnnotation) else None
            case ast.Call(name, (argument,)) if name.removeprefix("fn:") in BY_PANES:
                found = locate(argument, names)
                if found is None or not found.complete or not (found.base.window and found.base.exact):
                    return None
                pre = conditions_at_nodes(found, {}, self.aggregate)
                alike = (each for each in self.plain.aggregates if each.function == name.removeprefix("fn:"))
                return next((each for each in alike if each.path == found.path and _same(each.pre, pre)), None)
            case _:
                return None

    def without(self, settled: Predicate) -> PropertyTree:
        """The tree without the elements that only the conditions evaluated on the way look at."""
        rest = self.loop.replaced(replace(self.loop.flwor, where=conjunction(self.kept)))
        needed = derive(rest, self.plain.schema)
        about_values = and_(*(each for each in conjuncts(settled) if any(map(is_value, terms(each)))))
        outputs = tuple(replace(each, condition=both(about_values, each.condition)) for each in needed.outputs)
        known = {each.term: each for each in needed.aggregates}
        values = (known.get(each.term, each) for each in self.plain.aggregates)  # those only asked about come along
        aggregates = tuple(replace(each, selection=both(about_values, each.selection)) for each in values)
        return tidy(replace(needed, outputs=outputs, aggregates=aggregates, window=self.plain.window))

    def query(self) -> ast.Query:
        """The restructuring query, over what the tree sends."""
        flwor = self.loop.flwor
        first = replace(self.loop.first, source=with_predicates(self.loop.source, ()), window=None)
        clauses, order, result = self.read((flwor.clauses[1:], flwor.order, flwor.result))
        where = conjunction(map(self.read, self.kept))
        return self.loop.replaced(ast.Flwor((first, *clauses), where, order, result, span=flwor.span))

    def read(self, node: Any) -> Any:
        """An expression over windows as one over what was sent of them."""
        window = ast.Variable(self.loop.first.variable)
        match node:
            case ast.Call() if (value := self.aggregate(node, self.names)) and value.term in self.elements:
                sent = ast.Path(window, (child(self.elements[value.term]),))
                if AGGREGATES[value.function].kind == "integer":
                    return ast.Call("data", (sent,))
                return ast.Call("max", (replace(sent, steps=(*sent.steps, _TEXT)),))
            case ast.Variable() if node == window:
                return ast.Path(window, self.items)
            case ast.Path(start, steps) if start == window:
                return replace(node, steps=(*self.items, *self.read(steps)))
            case _:
                return rebuild(node, self.read)

    def prints(self, node: Any, *, returned: bool = True) -> bool:
        """Whether counts, which are texts now, are only returned, or compared with numbers."""
        match node:
            case ast.Call("data") | ast.Variable() if self.is_count(node):
                return returned
            case ast.Comparison(_, left, right) if self.is_count(left) or self.is_count(right):
                return isinstance(left, ast.Number) or isinstance(right, ast.Number)
            case ast.Flwor(clauses, where, order, result):
                inside = (self.prints(each, returned=False) for each in (*clauses, where, order))
                return all(inside) and self.prints(result, returned=returned)
            case ast.Let(name, value):
                return self.prints(value, returned=self.is_count(value) and self.is_count(ast.Variable(name)))
            case ast.If(condition, then, otherwise):
                branches = (self.prints(each, returned=returned) for each in (then, otherwise))
                return self.prints(condition, returned=False) and all(branches)
            case ast.ElementConstructor() | ast.AttributeConstructor() | ast.Enclosed() | ast.Sequence() | tuple():
                return all(self.prints(each, returned=returned) for each in children(node))
            case _:
                return all(self.prints(each, returned=False) for each in children(node))

    def is_count(self, node: ast.Expression) -> bool:
        """Whether an expression of the restructuring query is a count."""
        match node:
            case ast.Variable(name):
                meaning = self.names.get(name)
                return isinstance(meaning, AggregateAnnotation) and AGGREGATES[meaning.function].kind == "integer"
            case ast.Call("data", (ast.Path(ast.Variable(name), (ast.Step(test=ast.NameTest(local)),)),)):
                return name == self.loop.first.variable and local in self.elements.values()
            case _:
                return False


def _has_names_once(query: ast.Query) -> bool:
    """Whether no variable is bound twice."""
    return all(times == 1 for times in bindings_in(query).values())


_TEXT = ast.Step("child", ast.KindTest("text"))


def _same(first: tuple[tuple[int, Predicate], ...], second: tuple[tuple[int, Predicate], ...] | None) -> bool:
    """Whether conditions on the way to an aggregated element mean the same."""
    if second is None or len(first) != len(second):
        return False
    pairs = zip(first, second, strict=True)
    return all(depth == other and equivalent(one, two) for (depth, one), (other, two) in pairs)


def _is_given(query: ast.Query, tree: PropertyTree, path: Steps) -> bool:
    """Whether all that a query over windows looks at is sent with them."""
    inside = (*path, window_name(path), path[-1])
    sent = [((*path, name), True) for name in generic_names(tree.aggregates)]
    sent += [((*inside, *each.path[len(path) :]), each.whole) for each in tree.outputs]
    for needed in unwindowed(derive(query)).outputs:
        whole = any(is_whole and needed.path[: len(given)] == given for given, is_whole in sent)
        brought = not needed.whole and (
            needed.path == path or any(g[: len(needed.path)] == needed.path for g, _ in sent)
        )
        if not whole and not brought:
            return False
    return True
