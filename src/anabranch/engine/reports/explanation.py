"""What an engine's subscriptions have in common, and the work of its trunk.

Ten thousand subscriptions are counted, and a few of each stream are shown: one of every shape first, so that a picture
does not show ten thousand times the same.
Nothing is derived for the others, so they cost no more than counting.
A plan of the builder shares nothing; it is shown as its operators.
A query about the past is shown with its lookback at regions or items; over one stream of updates it may share that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from anabranch.engine.reports.columns import SupposedLook, columns_verdict
from anabranch.engine.reports.html import explanation_html
from anabranch.engine.reports.retention import growth_explained, past_explained
from anabranch.errors import Unsupported
from anabranch.language import ast, check, parse
from anabranch.law.calls import PythonFunction
from anabranch.runtime.shapes import Shape, Shaped
from anabranch.sharing.explain.drawing import draw
from anabranch.sharing.explain.scene import Room
from anabranch.sharing.explain.text import Explained, explain_json, explain_text
from anabranch.sharing.rules.derive import derive_forest
from anabranch.spark.epoch.metrics import MOST_NAMED
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.kinds import KINDS, alone_as
from anabranch.spark.plan.kinds.display import DisplayKind
from anabranch.spark.plan.kinds.growing import GrowingKind
from anabranch.spark.plan.kinds.kind import QueryContext, QueryKind, shapes_of
from anabranch.spark.plan.kinds.operators import PlanKind
from anabranch.spark.plan.kinds.past import PastKind
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from anabranch.visible import visible_json


@dataclass(frozen=True, slots=True)
class StreamUse:
    """The use of a stream: its subscriptions, different queries, and their shapes."""

    stream: str
    subscriptions: int
    queries: int
    shapes: int
    branches: int


@dataclass(frozen=True, slots=True)
class BranchUse:
    """A running branch: its kind, streams and members; not all members are named."""

    number: int
    kind: str
    streams: tuple[str, ...]
    members: int
    queries: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """As text it is what `anabranch explain` prints, in a notebook a picture, after the work of the trunk."""

    streams: tuple[StreamUse, ...]
    branches: tuple[BranchUse, ...]
    waiting: int
    """The number of subscriptions that begin with the next epoch."""
    sharing: bool
    queries: tuple[Explained, ...]
    """The queries that are shown."""
    more: Mapping[str, int] = field(repr=False)
    """By stream: the number of subscriptions that are not shown."""

    def __str__(self) -> str:
        return "\n".join((*self._summary(), "", *explain_text(self.queries)))

    @cached_property
    def svg(self) -> str:
        """The picture."""
        return draw(self.queries, self.more)

    def to_json(self) -> str:
        """All of it as data."""
        trunk = {
            "sharing": self.sharing,
            "streams": [asdict(each) for each in self.streams],
            "branches": [asdict(each) for each in self.branches],
            "waiting": self.waiting,
            "not shown": dict(self.more),
        }
        found: dict[str, Any] = {"trunk": trunk, **explain_json(self.queries)}
        return visible_json(found, 2)

    def _repr_html_(self) -> str:
        """The work of the trunk, and the picture, for a notebook."""
        streams = [(each.stream, each.subscriptions, each.queries, each.shapes, each.branches) for each in self.streams]
        branches = [(each.number, *_words(each), each.queries) for each in self.branches[:MOST_NAMED]]
        return explanation_html(streams, branches, list(self._remarks()), self.svg)

    def _summary(self) -> Iterator[str]:
        for each in self.streams:
            counts = _count(each.subscriptions, "subscription"), _count(each.queries, "different query")
            shapes = _count(each.shapes, "shape")
            yield f'stream "{each.stream}": {counts[0]}, {counts[1]} of {shapes}, {_count(each.branches, "branch")}'
        for branch in self.branches[:MOST_NAMED]:
            kind, members = _words(branch)
            yield f"branch {branch.number}: {kind} for {members}"
        yield from self._remarks()

    def _remarks(self) -> Iterator[str]:
        if (left := len(self.branches) - MOST_NAMED) > 0:
            yield f"and {_count(left, 'more branch')}"
        if self.waiting:
            yield f"{_count(self.waiting, 'subscription')} not begun yet"
        if not self.sharing:
            yield "sharing is turned off: every subscription is answered by itself"


def _words(branch: BranchUse) -> tuple[str, str]:
    """The work of a branch, and its members."""
    left = branch.members - len(branch.names)
    more = f" and {left:,} more" if left else ""
    return f"{branch.kind} of {' and '.join(branch.streams)}", f"{', '.join(branch.names)}{more}"


def _count(number: int, what: str) -> str:
    """`1 query`, `2 queries`, `3 branches`."""
    if number != 1:
        what = f"{what[:-1]}ies" if what.endswith("y") else f"{what}{'es' if what.endswith('ch') else 's'}"
    return f"{number:,} {what}"


# --- counting and choosing ----------------------------------------------------------------------------------

_NAMED = 4


@dataclass(slots=True)
class _Members:
    """The subscriptions in a branch; only `explanation` adds to it."""

    kind: str
    streams: tuple[str, ...]
    names: list[str] = field(default_factory=list)
    queries: set[Shaped | str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Alone:
    """A query that is answered by itself, and its subscriptions."""

    query: QueryKind
    names: list[str]


def explanation(
    sources: Mapping[str, Source], texts: Mapping[str, str], plan: Plan | None, functions: Mapping[str, PythonFunction]
) -> Explanation:
    """Explain subscriptions, given by name and printed query; `plan` is that of the newest epoch."""
    known = plan.by_name if plan else {}
    given = QueryContext.of(sources.values(), functions)
    shapes = shapes_of(given.functions)
    asked: dict[Shaped, list[str]] = {}
    branches: dict[int, _Members] = {}
    alone: dict[str, _Alone] = {}
    waiting = 0
    for name, text in texts.items():
        registered = known.get(name)
        at_work = registered if registered is not None and registered.text == text else None
        waiting += at_work is None
        query: Shaped | str = text
        if (found := alone_as(name, text, given)) is not None:
            alone.setdefault(text, _Alone(found, [])).names.append(name)
        else:
            query = shapes.of(text)
            asked.setdefault(query, []).append(name)
        if at_work is not None and KINDS[at_work.kind].is_branch:
            strands = f" in {at_work.strands} strands" if at_work.strands else ""
            kind = f"{KINDS[at_work.kind].label}{strands}"
            members = branches.setdefault(at_work.branch, _Members(kind, at_work.streams))
            members.names.append(name)
            members.queries.add(query)
    chosen, more = _chosen(asked)
    schemas = {name: source.schema for name, source in sources.items() if source.schema}
    read = {name for query in chosen for name in query.shape.standing.streams}
    supposed = {name: SupposedLook.of(source, source.schema) for name, source in sources.items() if name in read}
    looks = {name: look for name, look in supposed.items() if look is not None}
    shown = [_explained(asked[query], texts, schemas, looks, functions) for query in chosen]
    shown += [explained_alone(each.names, each.query, given) for each in list(alone.values())[:MOST_NAMED]]
    for each in list(alone.values())[MOST_NAMED:]:
        more.update({name: more.get(name, 0) + len(each.names) for name in each.query.streams})
    return Explanation(
        tuple(_stream_use(name, asked, alone.values(), branches.values()) for name in sources),
        tuple(
            BranchUse(number, each.kind, each.streams, len(each.names), len(each.queries), tuple(each.names[:_NAMED]))
            for number, each in sorted(branches.items())
        ),
        waiting,
        plan.sharing if plan else True,
        tuple(shown),
        more,
    )


def _stream_use(
    name: str, asked: Mapping[Shaped, Sequence[str]], alone: Iterable[_Alone], branches: Iterable[_Members]
) -> StreamUse:
    queries = [query for query in asked if name in query.shape.standing.streams]
    made = [each for each in alone if name in each.query.streams]
    return StreamUse(
        name,
        sum(len(asked[query]) for query in queries) + sum(len(each.names) for each in made),
        len(queries) + len(made),
        len({query.shape for query in queries}) + len(made),
        sum(name in each.streams for each in branches),
    )


def _chosen(asked: Mapping[Shaped, Sequence[str]]) -> tuple[list[Shaped], dict[str, int]]:
    """A few queries of each stream, of as many shapes as possible, and the number of other subscriptions."""
    before: Counter[Shape] = Counter()
    ranks: dict[Shaped, int] = {}
    for query in asked:
        ranks[query] = before[query.shape]
        before[query.shape] += 1
    room = Room()
    more: Counter[str] = Counter()
    chosen: set[Shaped] = set()
    for query in sorted(asked, key=lambda each: ranks[each]):
        streams = query.shape.standing.streams
        if room.take(streams):
            chosen.add(query)
        else:
            more.update(dict.fromkeys(streams, len(asked[query])))
    return [query for query in asked if query in chosen], dict(more)


def explained_alone(names: Sequence[str], query: QueryKind, given: QueryContext) -> Explained:
    """The explanation of a query without a property tree, which has these subscriptions."""
    name, *alike = names
    if isinstance(query, PlanKind):
        operators = "; ".join(line.strip() for line in str(query.operators).splitlines())
        return Explained(name, None, f"a plan, answered by itself: {operators}", tuple(alike))
    if isinstance(query, GrowingKind):
        return growth_explained(name, query.query.query, query.functions, tuple(alike))
    assert isinstance(query, PastKind | DisplayKind)
    roots = {name: stream.root().name.local for name, stream in given.streams.items()}
    found = past_explained(name, query.query.query, given.edited, tuple(alike), roots)
    assert found is not None, "others have property trees"
    return found


def _explained(
    names: Sequence[str],
    texts: Mapping[str, str],
    schemas: Mapping[str, Schema],
    looks: Mapping[str, SupposedLook],
    functions: Mapping[str, PythonFunction],
) -> Explained:
    """The explanation of the first of some equal queries, with the names of the others."""
    name, *alike = names
    checked = check(parse(texts[name], name), texts[name], functions=functions, name=name)
    found = explained_query(name, checked.query, texts[name], schemas, looks, functions)
    return replace(found, alike=tuple(alike))


def explained_query(
    name: str,
    query: ast.Query,
    text: str,
    schemas: Mapping[str, Schema],
    looks: Mapping[str, SupposedLook],
    functions: Mapping[str, PythonFunction],
) -> Explained:
    """The explanation of a checked query that was read from a text."""
    columns = columns_verdict(query, text, looks, functions)
    try:
        return Explained(name, derive_forest(query, schemas, text), columns=columns)
    except Unsupported as error:
        return Explained(name, None, error.message, columns=columns)
