"""The program of each peer, which follows from the catalogue.

A peer reads the streams that are registered at it, and the flows that reach it if it needs them.
It answers its subscriptions, and makes the flows that it sends: copies are handed on without being read, the others are
subscriptions of its trunk, too; so is a join whose tuples it sends.
Where a plan makes one flow of a stream at a peer for several directions, each is made from what has reached the peer;
equal queries are answered once there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from anabranch.algebra.plans.written import renamed, write_plan
from anabranch.branch.remote.written import write_reading, write_sent, write_tuples
from anabranch.errors import UsageError
from anabranch.language import ast, check, parse, print_query
from anabranch.language.rewrite import rebuild
from anabranch.network.catalogue import Catalogue, Flow, Subscription
from anabranch.network.description import RegisteredStream
from anabranch.network.needs import (
    QueryNeeds,
    depends_on_time,
    is_sent_verbatim,
    plan_in,
    window_references,
    with_paths,
)
from anabranch.network.operators import Ask, HandOn, answering, arriving, operator
from anabranch.peers.links import Link
from anabranch.predicate import EVERYTHING
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.normalize import tree_of
from anabranch.sharing.remote import CombineWindows, MakeWindows, ReadTuples, ReadWindows
from anabranch.sharing.render import render
from anabranch.sharing.tree import ITEM, PropertyTree, Steps
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source


def axes(stream: str, registered: RegisteredStream, needs: Iterable[QueryNeeds]) -> tuple[ProgressAxis, ...]:
    """The paths by which the progress of a stream is measured, for the subscriptions that need it.

    Where streams, or the partitions of one, are merged by time, no item may be below those before it.
    """
    source = registered.source
    asking = [each for each in needs if stream in each.streams]
    is_merged = source.is_divided or any(map(depends_on_time, asking))
    found = {path for need in asking for path in (window_references(need) or {}).get(stream, ())}
    if is_merged and source.time is not None:
        found.add(f"*/{source.time}")
    scales = [(path, source.scale(ItemPath(tuple(path.split("/")[1:])))) for path in sorted(found)]
    return tuple(
        ProgressAxis(path, "0" if is_merged else str(at.slack), at.per_second, every=is_merged and path[0] == "*")
        for path, at in scales
    )


FLOW_PREFIX = "flow "
"""The prefix of the names of subscriptions that make flows."""
WINDOWS = "<windows/>"
"""The root of a document of windows."""


@dataclass(frozen=True)
class MadeFlow:
    """A flow that a peer makes: selected items of one of its streams, in several partitions as `parts`, or as lines of
    JSON, all of it, or windows or tuples."""

    flow: str
    stream: str
    """The name of its input at the peer; of tuples the first."""
    text: str
    kind: Literal["selection", "parts", "lines", "whole", "results"]
    root: str = ""
    """The root of the documents with its results."""
    form: PropertyTree | None = None
    """The items of a selection, and the parts of them that are sent."""
    behind: tuple[str, ...] = ()
    """The subscriptions that depend on it (`identity`)."""

    @property
    def is_answered(self) -> bool:
        """Whether its query is a subscription of the peer; for others items are read again."""
        return self.kind in ("selection", "results")

    @property
    def is_part(self) -> bool:
        """Whether it carries less than all of its stream."""
        return self.form is not None and all(len(each.path) >= ITEM for each in self.form.outputs)

    def projection(self, paths: Iterable[Steps]) -> str:
        """The query for the parts of every item that are sent of some, and what it has at further paths."""
        assert self.form is not None
        outputs = [replace(each, condition=EVERYTHING) for each in self.form.outputs]
        every = tree_of(self.stream, outputs, None, (), self.form.schema)
        return render(with_paths(every, paths))


@dataclass
class PeerProgram:
    """The program of a peer; only `programs` fills it in."""

    streams: dict[str, Source] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    """By subscription: a query over its streams."""
    made: list[MadeFlow] = field(default_factory=list)
    handed_on: list[tuple[str, str]] = field(default_factory=list)
    """Flows that are handed on, each with its original."""
    kept: set[str] = field(default_factory=set)
    """Those of them that stay where they are."""
    courses: dict[str, tuple[ProgressAxis, ...]] = field(default_factory=dict)
    in_turn: bool = False
    """Whether times of arrival at this peer matter: a stream without declared time comes in, or is queried, here."""

    @property
    def subscriptions(self) -> dict[str, str]:
        """All subscriptions of its trunk."""
        return {**self.answers, **{FLOW_PREFIX + each.flow: each.text for each in self.made if each.is_answered}}

    def reading(self, more: Mapping[str, Source]) -> PeerProgram:
        """The same, with further streams that no query reads yet."""
        return replace(self, streams={**self.streams, **more})


@dataclass(frozen=True)
class Sources:
    """The registered streams, and the folder of the links."""

    registered: Mapping[str, RegisteredStream]
    links: Path
    ended: frozenset[str] = frozenset()
    """The flows that have ended."""
    functions: Collection[str] = ()
    """The functions of modules that queries may call."""

    def origin(self, flow: Flow) -> RegisteredStream:
        """The stream that a flow of items or windows comes from."""
        (stream,) = flow.streams
        return self.registered[stream]

    def may_evolve(self, flow: Flow) -> bool:
        """Whether one of the streams that a flow comes from may have accents."""
        return any(self.registered[name].accents for name in flow.streams)

    def link(self, flow: Flow) -> Link:
        """The log of a flow."""
        return Link.of(self.links, flow.name, len(self.origin(flow).source.partitions) if is_items(flow) else 1)

    def source(self, flow: Flow) -> Source:
        """A flow as a stream for its reader."""
        ended = flow.name in self.ended
        if not is_items(flow):
            return Source(flow.name, self.link(flow).paths[0], "document", ended=ended)
        origin = self.origin(flow)
        source = replace(origin.source, ended=ended, evolves=origin.accents)
        if flow.before is None:
            return source
        first, *more = self.link(flow).paths
        if source.format == "json":
            return replace(source, name=flow.name, path=first, more=tuple(more), strict=False)
        return replace(
            source, name=flow.name, path=first, more=tuple(more), format="document", strict=False, item=None, root=None
        )


def programs(catalogue: Catalogue, sources: Sources, peers: tuple[str, ...]) -> dict[str, PeerProgram]:
    """The programs of all peers."""
    needs = [each.need for each in catalogue.subscriptions.values()]
    edited = {name for name, each in sources.registered.items() if each.source.updates}
    dated = {stream for need in needs if depends_on_time(need) for stream in need.streams}
    made = {peer: PeerProgram() for peer in peers}

    def reads(peer: str, names: tuple[str, ...]) -> None:
        for name in names:
            made[peer].streams.setdefault(name, sources.source(catalogue.flows[name]))

    for flow in catalogue.flows.values():
        if not flow.inputs:
            reads(flow.at, (flow.name,))
    for flow in catalogue.logged:
        peer, given = flow.made_at, arriving(catalogue, flow)
        match operator(catalogue, flow, given):
            case HandOn() if catalogue.flows[given[0]].before is not None:
                made[peer].handed_on.append((flow.name, given[0]))
                made[peer].kept |= {flow.name} if flow.is_kept else set()
                continue
            case HandOn():
                found = MadeFlow(flow.name, given[0], over(flow.abstract, {flow.streams[0]: given[0]}), "selection")
            case Ask() if (tuples := _tuples(catalogue, given)) is not None and sources.may_evolve(flow):
                assert isinstance(flow.form, PropertyForest), "tuples are made into tuples"
                read = ReadTuples(flow.abstract, tuples, given[0], sends=True)
                found = MadeFlow(flow.name, given[0], write_reading(read), "results", f"<{flow.form.tuple_path[0]}/>")
            case Ask(asked, names, sends):
                text = over(asked, dict(zip(names, given, strict=True)))
                found = MadeFlow(flow.name, given[0], text, "selection")
                if sends:
                    assert isinstance(flow.form, PropertyForest)
                    root = f"<{flow.form.tuple_path[0]}/>"
                    found = MadeFlow(
                        flow.name, given[0], write_tuples(text, evolving=sources.may_evolve(flow)), "results", root
                    )
            case MakeWindows() | CombineWindows() as windows:
                found = MadeFlow(flow.name, given[0], write_sent(windows, given[0]), "results", WINDOWS)
        reads(peer, given)
        if found.kind == "selection":
            origin = sources.origin(flow)
            if is_sent_verbatim(origin) or (origin.source.time is None and flow.streams[0] in dated):
                found = replace(found, kind="whole")
            elif origin.source.format == "json":
                found = replace(found, kind="lines")
            elif origin.source.is_divided:
                found = replace(found, kind="parts")
            assert isinstance(flow.form, PropertyTree)
            behind = (catalogue.subscriptions[name] for name in catalogue.behind(flow.name))
            found = replace(found, form=flow.form, behind=tuple(map(identity, behind)))
            made[peer].courses[found.stream] = axes(flow.streams[0], origin, needs)
        made[peer].made.append(found)
    for each in catalogue.subscriptions.values():
        given = arriving(catalogue, each)
        reads(each.at, given)
        match answering(catalogue, each, given):
            case Ask() if (tuples := _tuples(catalogue, given)) and sources.may_evolve(catalogue.flows[given[0]]):
                text = write_reading(ReadTuples(each.text, tuples, given[0]))
            case Ask(asked, names):
                text = over(asked, dict(zip(names, given, strict=True)), edited, sources.functions)
            case ReadWindows() as windows_read:
                text = write_sent(windows_read, given[0])
        made[each.at].answers[each.name] = text
    clocked = merged_by_arrival(needs, sources.registered)
    for program in made.values():
        program.in_turn = any(not clocked.isdisjoint(catalogue.flows[each].streams) for each in program.streams)
    return made


def _tuples(catalogue: Catalogue, given: tuple[str, ...]) -> PropertyForest | None:
    """The tuples that a reader gets; None where it gets items."""
    form = catalogue.flows[given[0]].form
    return form if isinstance(form, PropertyForest) else None


def identity(subscription: Subscription) -> str:
    """What tells a subscription from others, also from one that had its name before."""
    return f"{subscription.name} {subscription.text}"


def merged_by_arrival(needs: Iterable[QueryNeeds], streams: Mapping[str, RegisteredStream]) -> set[str]:
    """The streams that are merged with others, or asked when something came, and do not say their times."""
    dated = {stream for need in needs if depends_on_time(need) for stream in need.streams}
    return {each for each in dated if streams[each].source.time is None}


def check_declared_times(needs: Iterable[QueryNeeds], streams: Mapping[str, RegisteredStream]) -> None:
    """Refuse what a network that runs in parts cannot answer."""
    if merged_by_arrival(needs, streams):
        raise UsageError(
            "streams that declare no time are merged by their arrival, which parts of a network cannot compare",
            hint="declare their 'time', or run all super-peers in one process",
        )


def is_items(flow: Flow) -> bool:
    """Whether a flow carries items of its stream, and neither windows nor tuples."""
    return isinstance(flow.form, PropertyTree) and flow.form.window is None


def over(text: str, names: Mapping[str, str], edited: Collection[str] = (), functions: Collection[str] = ()) -> str:
    """A query over streams under other names, checked and printed, or a plan of operators.

    `edited` are streams of updates, and `functions` are registered.
    """
    plan = plan_in(text)
    if plan is not None:
        return write_plan(renamed(plan, names))

    def visit(node: Any) -> Any:
        if isinstance(node, ast.Source) and node.kind == "stream":
            return replace(node, name=names[node.name])
        return rebuild(node, visit)

    query = check(parse(text), text, edited=edited, functions=functions).query
    return print_query(rebuild(query, visit))
