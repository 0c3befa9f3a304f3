"""Rewritings that keep a query's meaning and spare all later code a case; and walks over a query's tree.

`with_items` lets a loop over a stream run over its items; `with_input` names the input that a query's own `.` and `/`
mean; `flatten` turns loops that are directly nested into the clauses of one expression, which is how joins are written
(sharing paper, 5.1.2); `apart` gives a name of its own to each clause, so that the clauses of a join may be bound in
any order; `with_plain_names` makes two queries equal that differ in the names of their variables only;
`with_expanded_names` makes names independent of declared namespaces.

`parts` gives all nodes of a tree, `children` those directly below one, `rebuild` and `with_part` the tree with others
in their places; `bindings_in` and `conjuncts` answer common questions about a part of a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, replace
from operator import attrgetter, is_
from types import MappingProxyType
from typing import Any

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.objects import LOOKUP
from anabranch.stream.tree import Name


def with_input(query: ast.Query, source: ast.Source) -> ast.Query:
    """Replace the context item at the query's top by an input.

    `./a/b` and `/a/b` become `stream("s")/a/b`.
    """

    def visit(node: Any) -> Any:
        match node:
            case ast.Predicate() | ast.Positional():
                return node  # inside a predicate `.` is the node looked at
            case ast.TimeWindow() | ast.SessionWindow():
                return node
            case ast.ContextItem() | ast.Root():
                return replace(source, span=node.span)
            case ast.Path(None):
                return replace(rebuild(node, visit), start=replace(source, span=node.span))
            case _:
                return rebuild(node, visit)

    return replace(query, body=visit(query.body))


_ANY = ast.NameTest("*")


def with_items(query: ast.Query, names: Mapping[str, tuple[str, str]]) -> ast.Query:
    """`for $o in stream("s")` runs over the items: the loop's source becomes `stream("s")/*/*` (LAWS 1.5).

    Predicates behind the stream are those of the items.
    `names` are those of root and items, by stream, where all items are called alike: then the names stand there.
    """

    def items(source: ast.Expression) -> ast.Expression:
        match source:
            case ast.Source("stream", name):
                stream, tail = source, ()
            case ast.Filter(ast.Source("stream", name) as stream, tail):
                pass
            case _:
                return source
        tests = tuple(ast.NameTest(each) for each in names[name]) if name in names else (_ANY, _ANY)
        steps = (ast.Step("child", tests[0], span=source.span), ast.Step("child", tests[1], tail, span=source.span))
        return ast.Path(stream, steps, span=source.span)

    def visit(node: Any) -> Any:
        node = rebuild(node, visit)
        match node:
            case ast.For(_, source) | ast.PositionalFor(_, _, source):
                found = items(source)
                return node if found is source else replace(node, source=found)
            case _:
                return node

    return visit(query)  # type: ignore[no-any-return]  # a query remains one


def flatten(query: ast.Query) -> ast.Query:
    """`for $x in a return for $y in b return c` becomes `for $x in a for $y in b return c`."""

    def visit(node: Any) -> Any:
        node = rebuild(node, visit)
        match node:
            case ast.Flwor(clauses, where, (), ast.Flwor(order=()) as inner):  # an inner order holds per outer round
                names = {clause.variable for clause in clauses}
                if any(clause.variable in names for clause in inner.clauses) or (where and not _flat(inner)):
                    return node
                joined = ast.And((where, inner.where)) if where and inner.where else where or inner.where
                return ast.Flwor((*clauses, *inner.clauses), joined, (), inner.result, span=node.span)
            case _:
                return node

    return replace(query, body=visit(query.body))


def _flat(inner: ast.Flwor) -> bool:
    """Whether the outer condition may move behind these clauses without a change of which round an error belongs to."""
    return all(isinstance(clause, ast.For) for clause in inner.clauses)


def apart(query: ast.Query) -> ast.Query:
    """Rename a clause whose name a later one takes again, as in `let $x := 1 let $x := $x + 1`."""
    taken = {each.name for each in parts(query) if isinstance(each, ast.Variable)}
    taken |= {*bindings_in(query)}

    def fresh(name: str) -> str:
        number = 1
        while f"{name}.{number}" in taken:
            number += 1
        taken.add(f"{name}.{number}")
        return f"{name}.{number}"

    def visit(node: Any) -> Any:
        node = rebuild(node, visit)
        if not isinstance(node, ast.Flwor):
            return node
        clauses = list(node.clauses)
        for place, clause in enumerate(clauses):
            names = [each.variable for each in clauses[place + 1 :]]
            if clause.variable in names:
                last = place + 1 + names.index(clause.variable)
                other = fresh(clause.variable)
                clauses[place] = replace(clause, variable=other)
                for each in range(place + 1, last + 1):  # the one that takes the name may still mean the first
                    clauses[each] = _renamed(clauses[each], clause.variable, other)
        return node if clauses == list(node.clauses) else replace(node, clauses=tuple(clauses))

    return replace(query, body=visit(query.body))


def _renamed(node: Any, name: str, other: str) -> Any:
    """A part of a query in which a variable that is bound outside of it has another name."""
    return substituted(node, name, ast.Variable(other))


def substituted(node: Any, name: str, value: ast.Expression) -> Any:
    """A part of a query with `value` in the place of a variable that is bound outside of it."""

    def up_to(node: Any, clauses: tuple[Any, ...], place: int) -> Any:
        mine = rebuild(clauses[: place + 1], visit)
        return node if all(map(is_, mine, clauses)) else replace(node, clauses=(*mine, *clauses[place + 1 :]))

    def visit(node: Any) -> Any:
        match node:
            case ast.Variable(found) if found == name:
                return replace(value, span=node.span)
            case ast.InlineFunction(parameters) if name in parameters:
                return node
            case ast.Flwor(clauses):
                place = next((place for place, each in enumerate(clauses) if each.variable == name), None)
                if place is None:
                    return rebuild(node, visit)
                return up_to(node, clauses, place)  # from there on it is another variable
            case ast.Pipeline(clauses):
                place = next((place for place, each in enumerate(clauses) if name in bound_by(each)), None)
                return rebuild(node, visit) if place is None else up_to(node, clauses, place)
            case ast.Quantified(_, bindings):
                names = [each for each, _ in bindings]
                if name not in names:
                    return rebuild(node, visit)
                mine = rebuild(bindings[: names.index(name) + 1], visit)
                same = all(map(is_, mine, bindings))
                return node if same else replace(node, bindings=(*mine, *bindings[len(mine) :]))
            case _:
                return rebuild(node, visit)

    return visit(node)


def free_variables(node: Any) -> frozenset[str]:
    """The free variables of a part of a query: those that it uses and does not bind itself."""
    named = {part.name for part in parts(node) if isinstance(part, ast.Variable)}
    named |= {part.variable for part in parts(node) if isinstance(part, ast.GroupKey) and part.value is None}
    mark = ast.ContextItem()
    return frozenset(name for name in named if substituted(node, name, mark) is not node)


def with_plain_names(query: ast.Query) -> ast.Query:
    """The query with its variables called `v0`, `v1`, ... in the order in which their names first occur.

    Different names stay different, so neither bindings nor shadowing change.
    """
    names: dict[str, str] = {}
    return _with_names(query, lambda name: names.setdefault(name, f"v{len(names)}"))


def with_clear_names(query: ast.Query) -> ast.Query:
    """Rename `$a.b` where `$a` is bound, too, because the printed query could not tell it from a lookup."""
    if not any(isinstance(each, ast.Call) and each.name == LOOKUP for each in parts(query)):
        return query
    bound = {*bindings_in(query), *(each for function in query.functions for each in function.parameters)}
    names = {each: each for each in bound}
    for name in sorted(each for each in bound if any(_begins(each, other) for other in bound)):
        fresh = name.replace(".", "_")
        while fresh in names.values():
            fresh += "_"
        names[name] = fresh
    return query if all(name == each for name, each in names.items()) else _with_names(query, lambda n: names.get(n, n))


def _begins(name: str, other: str) -> bool:
    """Whether a name could be that of another variable with a key behind it."""
    return name.startswith(f"{other}.") and not name[len(other) + 1].isdigit()


def _with_names(query: ast.Query, plain: Callable[[str], str]) -> ast.Query:
    """The query with other names for its variables."""

    def visit(node: Any) -> Any:
        match node:
            case ast.Variable(name):
                return replace(node, name=plain(name))
            case ast.For(name) | ast.Let(name) | ast.Count(name) | ast.GroupKey(name):
                return rebuild(replace(node, variable=plain(name)), visit)
            case ast.PositionalFor(name, position):
                place = None if position is None else plain(position)
                return rebuild(replace(node, variable=plain(name), position=place), visit)
            case ast.Quantified(_, bindings):
                found = tuple((plain(name), visit(value)) for name, value in bindings)
                return replace(node, bindings=found, condition=visit(node.condition))
            case ast.Function(_, parameters) | ast.InlineFunction(parameters):
                return rebuild(replace(node, parameters=tuple(map(plain, parameters))), visit)
            case _:
                return rebuild(node, visit)

    return visit(query)  # type: ignore[no-any-return]  # a query remains one


def with_expanded_names(node: Any, namespaces: Mapping[str, str]) -> Any:
    """The node with names that do not depend on declarations around it: `Q{uri}local` in the place of `p:local`.

    In the same way `Q{uri}*` stands for `p:*`; `*` and `*:local` mean the same everywhere.
    A constructor declares whatever its own names need.
    """
    match node:
        case ast.ElementConstructor():
            inner = {**namespaces, **dict(node.namespaces)}
            used = {name.rpartition(":")[0] for name in (node.name, *(each.name for each in node.attributes))}
            without = node.name.rpartition(":")[0] == ""  # an attribute without a prefix is in no namespace
            needed = {each: inner[each] for each in used if inner.get(each) and (each or without) and each != "xml"}
            declared = tuple({**dict(node.namespaces), **needed}.items())
            element = node if declared == node.namespaces else replace(node, namespaces=declared)
            return rebuild(element, lambda part: with_expanded_names(part, inner))
        case ast.Step(axis, ast.NameTest(local, prefix)) if prefix != "*" and (prefix or local != "*"):
            uri = namespaces[prefix] if prefix else "" if axis == "attribute" else namespaces.get("", "")
            step = replace(node, test=ast.NameTest(Name(local, uri).expanded)) if uri else node
            return rebuild(step, lambda part: with_expanded_names(part, namespaces))
        case _:
            return rebuild(node, lambda part: with_expanded_names(part, namespaces))


def rebuild(node: Any, visit: Callable[[Any], Any]) -> Any:
    """The node with each part replaced by `visit(part)`; a node whose parts stay is itself."""
    if isinstance(node, tuple):
        parts = tuple([visit(each) for each in node])
        return node if all(map(is_, parts, node)) else parts
    changed = {}
    for name in _PARTS[type(node)] or ():
        old = getattr(node, name)
        new = visit(old)
        if new is not old:
            changed[name] = new
    return replace(node, **changed) if changed else node


def children(node: Any) -> tuple[Any, ...]:
    """The direct parts of a node, or of a tuple of nodes; empty for what is no node."""
    return node if isinstance(node, tuple) else tuple([getattr(node, name) for name in _PARTS[type(node)] or ()])


def with_part(query: ast.Query, old: ast.Expression, new: ast.Expression) -> ast.Query:
    """The query with one expression in the place of another, which is a part of its body."""

    def visit(node: Any) -> Any:
        return new if node is old else rebuild(node, visit)

    return replace(query, body=visit(query.body))


class _PartNames(dict[type, tuple[str, ...] | None]):
    """The names of the fields that hold parts of a node, by its class; None for what is no node. Each is found once."""

    def __missing__(self, kind: type) -> tuple[str, ...] | None:
        names = getattr(kind, "__dataclass_fields__", None)
        self[kind] = None if names is None else tuple(name for name in names if name != "span")
        return self[kind]


_PARTS = _PartNames()
_LOOPS = (ast.Flwor, ast.Pipeline)


def bound_by(clause: ast.Clause) -> tuple[str, ...]:
    """The variables that a clause binds."""
    match clause:
        case ast.For(name) | ast.Let(name) | ast.Count(name):
            return (name,)
        case ast.PositionalFor(name, position):
            return (name,) if position is None else (name, position)
        case ast.GroupBy(keys):
            return tuple(key.variable for key in keys)
        case ast.Where() | ast.OrderBy():
            return ()


def bindings_in(node: Any) -> Counter[str]:
    """How often names are bound in a part of a query."""
    found: Counter[str] = Counter()
    for part in parts(node):
        match part:
            case ast.For() | ast.Let() | ast.PositionalFor() | ast.Count() | ast.GroupBy():
                found.update(bound_by(part))
            case ast.Quantified(_, bindings):
                found.update(name for name, _ in bindings)
            case ast.InlineFunction(parameters):
                found.update(parameters)
    return found


def conjuncts(condition: ast.Expression | None) -> Iterator[ast.Expression]:
    """The conditions that must all hold for one to hold; without a condition, none."""
    match condition:
        case None:
            return
        case ast.And(operands):
            for each in operands:
                yield from conjuncts(each)
        case _:
            yield condition


class _Inside(dict[type, Callable[[Any], tuple[Any, ...]] | None]):
    """What takes those parts out of a node that may be nodes or hold some, by its class; None for what is no node."""

    def __missing__(self, kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
        fields = getattr(kind, "__dataclass_fields__", None)
        self[kind] = None if fields is None else _taking([name for name in fields if not _is_plain(fields[name])])
        return self[kind]


def _is_plain(field: Field[Any]) -> bool:
    return field.name == "span" or field.type in ("str", "str | None", "bool", "int", "int | None", "Decimal", "float")


def _taking(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    match names:
        case []:
            return lambda _: ()
        case [name]:
            only = attrgetter(name)
            return lambda node: (only(node),)
        case _:
            return attrgetter(*names)


_INSIDE = _Inside()


def parts(node: Any) -> Iterator[Any]:
    """A node and everything in it that is a node of the tree, from the outside in."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, tuple):
            pending += each[::-1]
        elif (inside := _INSIDE[type(each)]) is not None:
            yield each
            pending += inside(each)[::-1]


def deepest(node: Any, calls: Mapping[str, int] = MappingProxyType({})) -> tuple[int, Span]:
    """How many constructs stand inside one another, and the place where they are most.

    Each clause of a FLWR expression counts, for it holds those behind it; `calls` says how deep functions go.
    This does not recurse, because it guards what does.
    """
    most, place = 0, ast.NOWHERE
    pending: list[tuple[tuple[Any, ...], int, Span]] = [((node,), 0, place)]
    while pending:
        together, above, around = pending.pop()
        for each in together:
            if isinstance(each, tuple):
                pending.append((each, above, around))
            elif (inside := _INSIDE[type(each)]) is not None:
                depth, span = above + 1, getattr(each, "span", around)
                if isinstance(each, _LOOPS):
                    depth += len(each.clauses)
                elif isinstance(each, ast.Quantified):
                    depth += len(each.bindings)
                elif calls and isinstance(each, ast.Call):
                    depth += calls.get(each.name, 0)
                if depth > most:
                    most, place = depth, span
                if below := inside(each):
                    pending.append((below, depth, span))
    return most, place
