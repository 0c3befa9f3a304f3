"""From a query to its property tree, if it reads one stream, or to its property forest.

The rules (`rules.py`) find what the query needs, and it is brought into one form (`normalize.py`).
Trees and forests are in plain form: whatever a query looks at is an output, because the subscriber runs the query
itself over what it is sent.

A construct without a rule (`findings.touch`) adds everything that it may look at as outputs, and no condition.
So does a window or an aggregate that does not fit into the tree, such as a second one; the query is then translated
once more, without windows.
A join that is not the only reader of streams in its query, or whose preselections are not understood, has no forest of
a join, and neither has one by keys: its inputs are sent *apart*, each with the conditions that are about it alone.
So are those of an interval join with preselections, where dead letters have to be the same, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from anabranch.errors import Unsupported
from anabranch.language import ast, print_query
from anabranch.language.checks.unbounded import flowing_fors
from anabranch.language.rewrite import parts
from anabranch.predicate import EVERYTHING, NOTHING
from anabranch.sharing.forest import PropertyForest, alone, is_bounded
from anabranch.sharing.normalize import forest_of, tree_of
from anabranch.sharing.rules.clauses import input_name
from anabranch.sharing.rules.conditions import StreamNodes, stream_name
from anabranch.sharing.rules.findings import Environment, Findings
from anabranch.sharing.rules.rules import translate
from anabranch.sharing.tree import OutputAnnotation, PropertyTree
from anabranch.stream.schema import Schema


def derive(
    query: ast.Query, schema: Schema | None = None, text: str | None = None, *, letters: bool = False
) -> PropertyTree:
    """The property tree of a checked query over one stream; `Unsupported` where it joins inputs, or has none.

    With `letters`, its windows have the dead letters of the query, and not only its answer.
    """
    match _streams(query, text):
        case [stream] if not _joins(query):
            pass
        case _:
            raise _no_tree("a query over several inputs has a property forest, not a tree", query, text)
    if _looks_out(query):
        return tree_of(stream, (OutputAnnotation(()),), None, (), schema)
    found = Findings(letters=letters)
    translate(query.body, Environment(), found)
    if not found.fits or (found.aggregates and found.outputs and not found.window):  # no tree has all of these
        found = Findings(windows=False)
        translate(query.body, Environment(), found)
    # a value that is only named is computed all the same, and may fail
    values = [replace(each, selection=EVERYTHING) if each.selection == NOTHING else each for each in found.aggregates]
    return tree_of(stream, found.outputs[""], found.window, values, schema)


def derive_forest(
    query: ast.Query,
    schemas: Mapping[str, Schema] = MappingProxyType({}),
    text: str | None = None,
    *,
    letters: bool = False,
) -> PropertyForest:
    """The property forest of any checked query that reads streams; one that joins nothing has its inputs apart.

    With `letters`, its windows and tuples have the dead letters of the query, and not only its answer.
    """
    streams = _streams(query, text)
    if len(streams) == 1 and not _joins(query):
        return PropertyForest("apart", (derive(query, schemas.get(streams[0]), text, letters=letters),))
    if _looks_out(query):
        wholes = (tree_of(each, (OutputAnnotation(()),), None, (), schemas.get(each)) for each in streams)
        return PropertyForest("apart", tuple(wholes))
    joined = None if _has_results(query) else _joined(query, streams, schemas, letters)
    if joined is not None:
        return joined
    return PropertyForest("apart", tuple(_apart(query, streams, schemas)))


def _apart(query: ast.Query, streams: list[str], schemas: Mapping[str, Schema]) -> Iterator[PropertyTree]:
    """What is needed of each stream, whatever of the others its items meet: a loop over it has conditions of its own,
    and the tree has what any of its loops needs."""
    found = Findings(windows=False)
    names = {stream_name(each): each for each in streams}
    translate(query.body, Environment({name: StreamNodes((), input=name) for name in names}, apart=True), found)
    inputs = names | {name: names[stream] for name, stream in found.apart.items()}
    trees = [alone(PropertyTree(each, tuple(found.outputs[name]), input=name)) for name, each in inputs.items()]
    for stream in streams:
        outputs = [output for tree in trees if tree.stream == stream for output in tree.outputs]
        yield tree_of(stream, outputs, None, (), schemas.get(stream))


def _joined(
    query: ast.Query, streams: list[str], schemas: Mapping[str, Schema], letters: bool
) -> PropertyForest | None:
    """The forest of a query that is a join and reads its streams nowhere else; None where there is no rule for it."""
    joins = _joins(query)
    sources = [part.name for part in parts(query) if isinstance(part, ast.Source)]
    if [count for _, count in joins] != [len(sources)]:
        return None
    found = Findings(windows=False, letters=letters)
    translate(query.body, Environment(join=joins[0][0]), found)
    if not found.fits or len(found.inputs) != len(sources):
        return None
    trees: list[PropertyTree] = []
    for number, (stream, (path, window)) in enumerate(zip(sources, found.inputs, strict=True)):
        name = input_name(number)
        outputs = tuple(found.outputs[name])
        trees.append(PropertyTree(stream, outputs, window, (), schemas.get(stream), input=name, item=path))
    forest = forest_of("step" if trees[0].window else "interval", trees)
    if forest.guard == NOTHING:  # no tuple of the join is needed
        return PropertyForest("apart", tuple(tree_of(each, (), None, (), schemas.get(each)) for each in streams))
    if forest.kind == "interval" and not is_bounded(forest):  # the bound is in a condition that is not understood
        return None
    return forest


def _streams(query: ast.Query, text: str | None) -> list[str]:
    """The streams that a query reads, in the order of first mention."""
    sources = [part for part in parts(query) if isinstance(part, ast.Source) and part.kind == "stream"]
    if not sources:
        raise _no_tree("a query that reads no stream has no property tree", query, text)
    return list(dict.fromkeys(each.name for each in sources))


def _joins(query: ast.Query) -> list[tuple[ast.Flwor, int]]:
    """The expressions that loop over streams more than once, with the number of these loops."""
    functions = {each.name: each for each in query.functions}
    flwors = [part for part in parts(query) if isinstance(part, ast.Flwor)]
    found = [(each, len(flowing_fors(each, functions=functions))) for each in flwors]
    return [(each, count) for each, count in found if count > 1]


def _no_tree(message: str, query: ast.Query, text: str | None) -> Unsupported:
    return Unsupported(
        message,
        text=text if text is not None else print_query(query),
        span=query.body.span if text is not None else ast.NOWHERE,
        hint="selections, windows and aggregates over one stream have trees",
    )


def _has_results(query: ast.Query) -> bool:
    """Whether windows are over the results of a loop (LAWS 3.13), so that a join in it is only a part of the query."""
    return any(isinstance(part, ast.For) and isinstance(part.source, ast.Flwor) for part in parts(query))


def _looks_out(query: ast.Query) -> bool:
    """Whether paths may lead out of their items: upwards, into the past, into another namespace, into a document.

    A document may change, so a condition on a stream that depends on one does not stay true.
    """
    everything = list(parts(query))
    if any(isinstance(part, ast.Source) and part.kind == "doc" for part in everything):
        return True
    windows = [part for part in everything if isinstance(part, ast.TimeWindow | ast.SessionWindow)]
    absolute = sum(isinstance(each.reference.start, ast.Root) for each in windows)
    if sum(isinstance(part, ast.Root) for part in everything) > absolute:
        return True
    if any(isinstance(part, ast.Source) for part in parts(query.functions)):
        return True
    return any(map(_leads_out, everything))


def _leads_out(part: Any) -> bool:
    match part:
        case ast.Step("parent") | ast.Qualifier():
            return True
        case ast.PositionalFor() | ast.Count() | ast.Positional():  # siblings of a node count, so all are needed
            return True
        case ast.ElementConstructor(namespaces=namespaces) | ast.Query(namespaces=namespaces):
            return "" in dict(namespaces)
        case _:
            return False
