"""What a subscription needs of each stream, in the forms that flows carry.

A query over items needs the items of its property tree, and runs over them as it is.
A query over windows that only asks for values needs those values: the windows are made on the way, and the
restructuring query (`sharing/restructure.py`) runs over them, combined from smaller windows where these are shared.
Count windows are made on the way as others: those who read them have begun together, so they count the same items from
the same start (LAWS 3.3).
Windows that return their items make a stream no smaller (sharing paper, 3.3.2): they are made where the answer is.
A join needs its inputs, or its tuples (5.3.1), where they can be sent (`branch/remote/queries.py`) and the same fails
for them.
Joins by keys, several streams as one, windows over the results of a loop, groups and sessions need of each stream what
they read, under the conditions that are about one item alone (`sharing/rules/derive.py`).

What is sent of a stream also depends on its declaration (`sent_needs`, `fed_inputs`):

* The items of a stream that may have accents are sent in parts as any others: what an accent says of a path is sent
  with the paths that it names (`peers/narrowing.py`). It is made into windows and tuples unless it has evolved already,
  and a reader would have to know how; or it has declared domains; or the query reads a path that whoever makes them
  does not; or, for windows, a path is aggregated under conditions of its own, which are foundation (LAWS 4.6) for some
  readers and not for others.
* A stream of updates is sent unchanged.
* The items of a stream of several partitions are sent in parts, each in its own partition, with their times, by which
readers merge them (LAWS 1.2); without declared times the stream is sent unchanged. A partition has come as far as those
of its items that are merged, so windows over time need the times of all items. Windows and joins are made where they
are answered: merging partitions on the way would hide which item is late in its own (LAWS 3.2).
* The items of a stream of JSON are sent in parts, too, as lines that keep their types (LAWS 7.1); what a query needs
of them is told by paths that hold what it looks up (`json_needs.py`). Windows and joins over them are made where they
are answered.
* A query that asks for times of arrival needs the time of items (LAWS 1.2, 1.3, 5.5); an interval join needs that of
all items of its streams, since each lets it answer for those far enough before it.
* A join that has to wait for the end of its streams is made where it is answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from anabranch.algebra.plans.interpret import Plan
from anabranch.algebra.plans.written import is_plan, read_plan, streams_of
from anabranch.branch.remote.queries import can_travel, reads_alike, reads_the_same, waits, why_not_sent
from anabranch.errors import AnabranchError, StateError, UsageError
from anabranch.language import ast, check, parse, print_query
from anabranch.language.checks.outputs import outputs_of
from anabranch.language.checks.unbounded import flowing_fors
from anabranch.language.equalities import tied_by_keys
from anabranch.language.intervals import bounded
from anabranch.language.objects import JSON
from anabranch.language.rewrite import parts, rebuild
from anabranch.network.description import RegisteredStream
from anabranch.network.estimates import Form
from anabranch.network.json_needs import with_members
from anabranch.predicate import EVERYTHING, Predicate, implies
from anabranch.sharing.forest import JoinKind, PropertyForest
from anabranch.sharing.match import matches, merge
from anabranch.sharing.match_joins import FullResults, join_matches, level, merge_inputs, merge_joins
from anabranch.sharing.normalize import tree_of, unjoined, unwindowed
from anabranch.sharing.render import render_join
from anabranch.sharing.restructure import sent_windows
from anabranch.sharing.rules.conditions import StreamNodes, locate, stream_name
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sharing.rules.windows import reference_path
from anabranch.sharing.tree import ITEM, OutputAnnotation, PropertyTree, Steps, paths_of
from anabranch.stream.reading.source import first_format
from anabranch.stream.schema import Schema


@dataclass(frozen=True)
class QueryNeeds:
    """The needs of a query: one tree for each stream, and for a join its tuples."""

    inputs: tuple[PropertyTree, ...]
    join: PropertyForest | None = None
    stays: str | None = None
    """Why a join can only be made where it is answered."""
    query: ast.Query | None = field(default=None, compare=False, repr=False)
    """None for a plan of operators."""
    kind: JoinKind = "apart"
    """How its inputs meet."""
    gathered: str | None = None
    """Why its windows are made where it is answered, though their values would be enough."""
    forgets: bool = False
    """Whether it joins items that are forgotten with time, as their streams say (`retain`)."""

    @property
    def parts(self) -> Iterator[Any]:
        """The parts of the query; a plan of operators has none."""
        return iter(()) if self.query is None else parts(self.query)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return tuple(each.stream for each in self.inputs)

    def of(self, form: Form) -> Form:
        """The part of it that a flow of some form can serve."""
        if isinstance(form, PropertyForest):
            return self.join or form
        return next(each for each in self.inputs if each.stream == form.stream)


def need_of(
    text: str,
    schemas: Mapping[str, Schema],
    name: str | None = None,
    edited: Collection[str] = (),
    functions: Collection[str] = (),
) -> QueryNeeds:
    """The needs of a query; `QueryError` where it cannot be answered, or reads something other than streams.

    `edited` are streams of updates, and `functions` are registered.
    A plan of operators needs all of its streams.
    """
    plan = plan_in(text)
    if plan is not None:
        stays = "it is a plan of operators"
        return QueryNeeds(tuple(whole(each, schemas.get(each)) for each in streams_of(plan)), stays=stays)
    query = check(parse(text, name), text, name=name, edited=edited, functions=functions).query
    return _derived(query, schemas, text, functions)


def plan_in(text: str) -> Plan | None:
    """The plan of operators that a text is; None for a query, which may begin like one."""
    try:
        return read_plan(text) if is_plan(text) else None
    except StateError:
        return None


def _derived(query: ast.Query, schemas: Mapping[str, Schema], text: str, functions: Collection[str] = ()) -> QueryNeeds:
    forest = derive_forest(query, schemas, text, letters=True)
    if any(isinstance(each, ast.Call) and each.name in functions for each in parts(query)):
        return QueryNeeds(inputs_of(forest), None, "it calls functions of modules", query, forest.kind)
    if forest.kind != "apart":
        join = alike_tuples(forest)
        stays = why_not_sent(query, join) if join else "its tuples cannot be written down"
        return QueryNeeds(inputs_of(forest), None if stays else join, stays, query, forest.kind)
    if len(forest.trees) > 1:
        stays = "nothing is known of how its inputs meet"
        return QueryNeeds(merge_inputs(tuple(map(unwindowed, forest.trees))), None, stays, query)
    [tree] = forest.trees
    travels = tree.window is not None and not tree.outputs
    if travels and (sent_windows(query, tree.schema).window is None or not can_travel(text, tree)):
        travels = False  # the values would not be enough
    return QueryNeeds((tree if travels else unwindowed(tree),), query=query)


def whole(stream: str, schema: Schema | None = None) -> PropertyTree:
    """The tree of a whole stream."""
    return PropertyTree(stream, (OutputAnnotation(()),), schema=schema)


def provides(flow: Form, need: Form) -> bool:
    """Whether a flow provides what is needed."""
    match flow, need:
        case PropertyTree(), PropertyTree():
            return flow.stream == need.stream and _need_the_same(flow, need) and matches(flow, need)
        case PropertyForest(), PropertyForest():
            return _tuples_need_the_same(flow, need) and join_matches(flow, need)
        case _:
            return False


def widened(flow: Form, need: Form) -> Form | None:
    """A flow that provides what it did, and the need as well; None where one flow cannot.

    All its items have the same paths, also where one subscription needs fewer: items of one look are parsed many times
    faster, and are hardly larger.

    Joins widen where one join gives the tuples of both; the paper's further sharing of joins (5.3.2) needs operators
    that know each other's windows, and is left to a single peer.
    """
    match flow, need:
        case PropertyTree(), PropertyTree() if flow.stream == need.stream:
            return alike(merge(flow if _need_the_same(flow, need) else unwindowed(flow), need))
        case PropertyForest(), PropertyForest() if _tuples_need_the_same(flow, need):
            merged = merge_joins(flow, need)
            return alike_tuples(merged) if merged else None
        case _:
            return None


def _need_the_same(flow: PropertyTree, need: PropertyTree) -> bool:
    """Whether windows need the same paths, so that whoever makes them hears of all that a reader needs (LAWS 4.6)."""
    if flow.window is None or need.window is None:
        return True
    return paths_of(flow.window.pre) == paths_of(need.window.pre)


def _tuples_need_the_same(flow: PropertyForest, need: PropertyForest) -> bool:
    """Whether one join gives the tuples of both, and its windows need the same paths."""
    pairs = zip(flow.trees, need.trees, strict=False)
    return isinstance(level(flow, need), FullResults) and all(_need_the_same(*each) for each in pairs)


def alike(tree: PropertyTree) -> PropertyTree:
    """Items that all have every path that is sent of any of them."""
    if tree.window or tree.aggregates:
        return tree
    guards = tree.guards
    outputs = [replace(each, condition=guards[each.path[:ITEM]]) for each in tree.outputs]
    return tree_of(tree.stream, outputs, None, (), tree.schema)


def alike_tuples(forest: PropertyForest) -> PropertyForest | None:
    """Tuples that all have everything that is sent of any of them, so that only the condition of the whole can fail.

    They are given by their abstract query, which is all that a network stores of them; None where there is none.
    """
    guard = forest.guard
    trees = tuple(
        replace(tree, outputs=tuple(replace(each, condition=guard) for each in tree.outputs)) for tree in forest.trees
    )
    text = render_join(replace(forest, trees=trees))
    schemas = {tree.stream: tree.schema for tree in trees if tree.schema is not None}
    try:
        found = derive_forest(check(parse(text), text).query, schemas)
    except AnabranchError:
        return None
    return found if join_matches(found, forest) else None


def inputs_of(form: PropertyForest) -> tuple[PropertyTree, ...]:
    """The inputs that a join needs to make its tuples: one tree for each stream."""
    return merge_inputs(unjoined(form))


def sent_needs(
    need: QueryNeeds,
    streams: Mapping[str, RegisteredStream],
    evolved: Collection[str] = (),
    functions: Collection[str] = (),
) -> QueryNeeds:
    """What a query receives of its streams, of which some have `evolved` by now; `functions` are registered."""
    _check_formats(need, streams)
    need = _of_members(need, streams, functions)
    are_retained = any(streams[name].source.retain is not None for name in need.streams)
    need = replace(need, forgets=are_retained and (need.query is None or any(True for _ in _joining(need))))
    gathered = next(filter(None, (_why_gathered(need, each, streams, evolved) for each in need.inputs)), None)
    trees = need.inputs if gathered is None else map(unwindowed, need.inputs)
    timed, every_time = depends_on_time(need), _joins_by_time(need)
    inputs = _sent_inputs(trees, window_references(need), streams, timed=timed, every_time=every_time)
    stays = need.stays or (_stays(need, need.join, streams, evolved) if need.join else None)
    return replace(need, inputs=inputs, join=None if stays else need.join, stays=stays, gathered=gathered)


def _of_members(need: QueryNeeds, streams: Mapping[str, RegisteredStream], functions: Collection[str]) -> QueryNeeds:
    """The needs of a query whose streams are JSON, told by paths.

    Beside a stream of XML lookups need all of their items: an element without types that cannot be an object fails.
    """
    sources = [streams[name].source for name in need.streams]
    if need.query is None or not all(each.format == "json" for each in sources):
        return need
    query = with_members(need.query, {each.name: (each.implied_root, each.item_name) for each in sources})
    schemas = {each.stream: each.schema for each in need.inputs if each.schema is not None}
    return _derived(query, schemas, print_query(query), functions)


def _check_formats(need: QueryNeeds, streams: Mapping[str, RegisteredStream]) -> None:
    """Refuse a query whose answer depends on the types of a stream that does not say that it is JSON.

    Links would carry its items as XML; the format is declared, since a stream may begin after its flows.
    """
    looks = any(isinstance(each, ast.Call) and each.name in JSON for each in need.parts)
    given = set(need.streams)  # a plan may give any of its items
    if need.query is not None:
        given = {source for source, _ in outputs_of(need.query).given_items()}
    for name in need.streams:
        source = streams[name].source
        if source.format == "auto" and (looks or name in given):
            known = first_format(source)
            if known == "json" or (known is None and looks):
                raise UsageError(
                    f"types of the stream '{name}' are asked for, and its format is not declared",
                    hint='set it, as in format = "json"',
                )


def fed_inputs(join: PropertyForest, streams: Mapping[str, RegisteredStream]) -> tuple[PropertyTree, ...]:
    """What a join made on the way receives of its streams."""
    every_time = join.kind == "interval"
    timed = every_time or len(set(join.streams)) > 1
    return _sent_inputs(inputs_of(join), _tree_references(join.trees), streams, timed=timed, every_time=every_time)


def _stays(
    need: QueryNeeds, join: PropertyForest, streams: Mapping[str, RegisteredStream], evolved: Collection[str]
) -> str | None:
    """Why a join cannot be made on the way."""
    assert need.query is not None
    for name in need.streams:
        stream = streams[name]
        if stream.source.updates:
            return f"stream '{name}' is edited"
        if len(stream.source.partitions) > 1:
            return f"stream '{name}' has several partitions"
        if stream.source.format == "json":
            return f"stream '{name}' is JSON"
        if stream.accents and name in evolved:
            return f"stream '{name}' has evolved"
        if stream.accents and stream.source.domains:
            return f"stream '{name}' may have accents, and has declared domains"
    if any(streams[name].accents for name in need.streams) and not reads_the_same(need.query, join):
        return "its streams may have accents, and the query reads more than its tuples"
    if waits(need.query, join, {name: streams[name].source.time for name in need.streams}):
        return "it has to wait for the end of its streams"
    return None


def _sent_inputs(
    trees: Iterable[PropertyTree],
    places: Mapping[str, frozenset[str]] | None,
    streams: Mapping[str, RegisteredStream],
    *,
    timed: bool,
    every_time: bool,
) -> tuple[PropertyTree, ...]:
    """What is sent of streams, with what shows their progress: reference paths of windows, and times."""
    inputs: list[PropertyTree] = []
    for tree in trees:
        stream = streams[tree.stream]
        time = stream.source.time
        if is_sent_verbatim(stream) or places is None or (timed and time is None):
            inputs.append(whole(tree.stream, tree.schema))
            continue
        carried = tree
        is_merged = timed or stream.source.is_divided
        if stream.source.format == "json":
            carried = alike(unwindowed(carried))
        if carried.window is None:
            told = [tuple(each.split("/")[1:]) for each in places.get(tree.stream, ())]
            is_shown = bool(told) and stream.source.is_divided  # each item may let windows close, once it is merged
            if is_merged and time is not None:
                told.append(time.steps)
                if is_shown or (timed and every_time):
                    carried = with_paths(carried, told if is_shown else [time.steps], EVERYTHING)
            if not all(carries_path(carried, each) for each in told):
                carried = with_paths(alike(carried), told)
            if not all(carries_path(carried, each) for each in told):
                carried = whole(tree.stream, tree.schema)
        inputs.append(carried)
    return tuple(inputs)


def _why_gathered(
    need: QueryNeeds, tree: PropertyTree, streams: Mapping[str, RegisteredStream], evolved: Collection[str]
) -> str | None:
    """Why windows of JSON, of several partitions, or with accents between them, cannot be made on the way; None where
    they can."""
    stream = streams[tree.stream]
    if tree.window is None:
        return None
    if stream.source.format == "json":
        return f"stream '{tree.stream}' is JSON"
    if stream.source.is_divided:
        return f"stream '{tree.stream}' has several partitions"
    if not stream.accents:
        return None
    if tree.stream in evolved:
        return f"stream '{tree.stream}' has evolved"
    if stream.source.domains:
        return f"stream '{tree.stream}' has declared domains"
    if any(each.pre for each in tree.aggregates):
        return f"stream '{tree.stream}' may have accents, and values are aggregated under conditions of their own"
    assert need.query is not None
    if not reads_alike(print_query(need.query), tree):
        return f"stream '{tree.stream}' may have accents, and the query reads more than its windows"
    return None


def carries_path(tree: PropertyTree, path: Steps) -> bool:
    """Whether every item that is sent has its content at a path."""
    guards = tree.guards
    if any(each.whole and len(each.path) < ITEM for each in tree.outputs):
        return True
    return all(
        any(
            each.whole and (*item, *path)[: len(each.path)] == each.path and implies(guards[item], each.condition)
            for each in tree.outputs
        )
        for item in guards
        if len(item) == ITEM
    )


def with_paths(tree: PropertyTree, paths: Iterable[Steps], condition: Predicate | None = None) -> PropertyTree:
    """The same items, each also with its content at some paths; and under a condition other items with only that."""
    items = [(path, guard) for path, guard in tree.guards.items() if len(path) == ITEM]
    more = [OutputAnnotation((*item, *path), condition or guard) for path in paths for item, guard in items]
    return tree_of(tree.stream, (*tree.outputs, *more), None, (), tree.schema)


def is_sent_verbatim(stream: RegisteredStream) -> bool:
    """Whether a stream is always sent unchanged."""
    return stream.source.updates or (stream.source.is_divided and stream.source.time is None)


def depends_on_time(need: QueryNeeds) -> bool:
    """Whether a query depends on the times of items: it reads several streams, joins by time, also one stream with
    itself, forgets, or asks for the past."""
    if len(need.inputs) > 1 or need.forgets or _joins_by_time(need):
        return True
    return any(isinstance(each, ast.Qualifier) for each in need.parts)


def _joins_by_time(need: QueryNeeds) -> bool:
    """Whether a query has an interval join."""
    return need.kind == "interval" or any(
        bounded(each.where, loops) or not tied_by_keys(_of_nodes(each), loops) for each, loops in _joining(need)
    )


def _of_nodes(node: Any) -> Any:
    """An expression with nodes in the place of their values: keys of JSON are told by paths (`json_needs.py`)."""
    match rebuild(node, _of_nodes):
        case ast.Call("data", (operand,)):
            return operand
        case found:
            return found


def window_references(need: QueryNeeds) -> Mapping[str, frozenset[str]] | None:
    """By stream: the reference paths of a query's time windows; None where these are not plain."""
    names: dict[str, StreamNodes] = {stream_name(each): StreamNodes((), input=each) for each in need.streams}
    found: dict[str, set[str]] = {}
    for each in need.parts:
        window = each.window if isinstance(each, ast.For) else None
        if window is None or isinstance(window, ast.CountWindow) or isinstance(each.source, ast.Flwor):
            continue  # windows over the results of a loop are measured by these
        source = locate(each.source, names)
        is_plain = source is not None and source.complete and source.from_stream and len(source.path) == ITEM
        reference = reference_path(window.reference, source.path) if source is not None and is_plain else None
        if source is None or reference is None:
            return None
        found.setdefault(source.base.input, set()).add("/".join(reference[ITEM - 1 :]))
    return {name: frozenset(paths) for name, paths in found.items()}


def _joining(need: QueryNeeds) -> Iterator[tuple[ast.Flwor, list[str]]]:
    """The expressions that loop over several streams, or twice over one, without windows; with their variables."""
    functions = {each.name: each for each in need.query.functions} if need.query else {}
    for each in need.parts:
        if isinstance(each, ast.Flwor):
            clauses = [each.clauses[place] for place in flowing_fors(each, functions=functions)]
            loops = [clause.variable for clause in clauses if isinstance(clause, ast.For) and clause.window is None]
            if len(loops) > 1:
                yield each, loops


def _tree_references(trees: Iterable[PropertyTree]) -> dict[str, frozenset[str]]:
    """By stream: the reference paths of time windows."""
    found: dict[str, set[str]] = {}
    for tree in trees:
        if tree.window and tree.window.reference:
            found.setdefault(tree.stream, set()).add("/".join(tree.window.reference[ITEM - 1 :]))
    return {name: frozenset(each) for name, each in found.items()}
