"""Who answers what: which subscriptions a task answers item by item, and which go on as branches.

A query that needs one item at a time is answered where the item is read.
A *branch* remembers: windows and joins, answers that wait for the end, and the merge of partitions that are read side
by side and have a time (LAWS 1.2).
What the builder made is a branch by itself, whatever its operators are (`branch/plans.py`); so is a query over a stream
of updates, whose answer is a display (`branch/history/hosted.py`), and one about the past of items
(`branch/past/`).
Each stream of updates has a branch that keeps its document, whoever subscribes (`branch/history/keeper.py`).
A branch belongs to one shard, by its number, and serves one subscription or several (`membership.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from anabranch.algebra.interpret import Plan as Operators
from anabranch.algebra.written import is_plan, read_plan, streams_of
from anabranch.branch.family import twin_of
from anabranch.branch.history.hosted import DisplayQuery
from anabranch.branch.pane_plan import PanePlan, pane_plan
from anabranch.branch.past.queries import RecalledQuery, recalled_query
from anabranch.errors import UsageError
from anabranch.language import parse
from anabranch.reference import Input, document_input
from anabranch.reference.arrivals.past import named
from anabranch.reference.calls import PythonFunction
from anabranch.reference.shapes import Shapes
from anabranch.reference.standing import Standing, standing
from anabranch.spark.plan import Plan, StreamPlan, Subscription
from anabranch.spark.plans import PlanFile
from anabranch.stream.parse import parse_document

Functions: TypeAlias = tuple[tuple[str, PythonFunction], ...]
"""What the user registered, by name."""


@dataclass(frozen=True, slots=True)
class Role:
    """A subscription with its query, taken apart or for a display, or with the operators that the builder gave it."""

    subscription: Subscription
    query: Standing | Operators | DisplayQuery | RecalledQuery
    is_branch: bool
    panes: PanePlan | None = None
    """How a branch is counted by panes, where it can be."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        if isinstance(self.query, Standing | DisplayQuery | RecalledQuery):
            return self.query.streams
        return streams_of(self.query)

    @property
    def shows(self) -> bool:
        """Whether its answer is a display, which is corrected."""
        match self.query:
            case DisplayQuery():
                return True
            case RecalledQuery(standing=found):
                return found is None
            case _:
                return False

    @property
    def standing(self) -> Standing:
        """The query, where there is one."""
        assert isinstance(self.query, Standing), "others have a branch each"
        return self.query


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """The members of a branch; all see the same elements of the same streams. A keeper has none."""

    number: int
    twins: tuple[tuple[Role, ...], ...]
    """Those with the same query together; each has its own answer, and one computation serves them."""
    keys: tuple[str, ...]
    """What tells each of the queries from the others, in every epoch."""
    kept: str | None = None
    """The stream whose document it keeps."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """One for each query."""
        return tuple(each[0] for each in self.twins)

    @property
    def streams(self) -> tuple[str, ...]:
        return self.twins[0][0].streams if self.kept is None else (self.kept,)

    @property
    def late(self) -> tuple[str, ...]:
        """The streams that had begun before the branch did (LAWS 3.6)."""
        return self.twins[0][0].subscription.late if self.kept is None else ()

    @property
    def panes(self) -> bool:
        """Whether its windows are counted by panes."""
        return self.kept is None and self.twins[0][0].panes is not None

    def shard(self, plan: Plan) -> int:
        """The shard that it belongs to."""
        return self.number % plan.shards


@lru_cache(maxsize=4)
def roles_of(file: PlanFile, functions: Functions) -> tuple[Role, ...]:
    """The roles of all subscriptions of a plan, found once per process."""
    plan = file.load()
    streams = {stream.stream: stream for stream in plan.streams}
    found = (role_of(each, streams, functions) for each in plan.subscriptions if not each.aborted)
    return tuple(role for role in found if set(role.streams) <= streams.keys())


def role_of(subscription: Subscription, streams: Mapping[str, StreamPlan], functions: Functions) -> Role:
    """The role of a subscription; none where one of its streams is not there.

    Of a query that is answered item by item only its shape is looked at: its constants are not those of the text.
    """
    if is_plan(subscription.text):
        return Role(subscription, read_plan(subscription.text), is_branch=True)
    if display := display_of(subscription.text, edited_streams(streams.values())):
        return Role(subscription, display, is_branch=True)
    if past := past_of(subscription.text, functions):
        return Role(subscription, past, is_branch=True)
    query = shapes_of(functions).of(subscription.text).shape.standing
    remembered = set(query.streams) <= streams.keys() and remembers(query, streams)
    if remembered:
        query = _taken_apart(subscription.text, functions)
    panes = _panes(query, streams[query.streams[0]], functions) if remembered else None
    return Role(subscription, query, remembered, panes)


def edited_streams(streams: Collection[StreamPlan]) -> tuple[str, ...]:
    """The streams of updates among some."""
    return tuple(each.stream for each in streams if each.updates)


@lru_cache(maxsize=1 << 14)
def display_of(text: str, edited: tuple[str, ...]) -> DisplayQuery | None:
    """A query that reads a stream of updates, which are given by name; None for another one."""
    if not any(each in text or not each.isidentifier() for each in edited):
        return None  # the name would be there, as it is
    query = parse(text)
    streams = named(query)
    return None if set(streams).isdisjoint(edited) else DisplayQuery(query, text, streams)


@lru_cache(maxsize=1 << 14)
def past_of(text: str, functions: Functions) -> RecalledQuery | None:
    """A query about the past of items that is answered as they come; None for another one."""
    if "#" not in text and "?" not in text:
        return None
    return recalled_query(parse(text), dict(functions), text)


@lru_cache(maxsize=1 << 14)
def _taken_apart(text: str, functions: Functions) -> Standing:
    """A query that remembers; the plans of this process that have it have it together."""
    return standing(parse(text), dict(functions))


@lru_cache(maxsize=4)
def branches_of(file: PlanFile, functions: Functions) -> tuple[BranchPlan, ...]:
    """The branches of a plan, found once per process."""
    members: dict[int, list[Role]] = {}
    for role in roles_of(file, functions):
        if role.is_branch:
            members.setdefault(role.subscription.branch, []).append(role)
    keepers = (BranchPlan(keeper_of(each), (), (), each) for each in edited_streams(file.load().streams))
    return (*keepers, *(_branch(number, roles) for number, roles in members.items()))


def keeper_of(stream: str) -> int:
    """The number of the branch that keeps the document of a stream: no subscription has it, nor another stream."""
    return -2 - int.from_bytes(sha256(stream.encode()).digest()[:7])


def _branch(number: int, roles: list[Role]) -> BranchPlan:
    if roles[0].panes is not None or not isinstance(roles[0].query, Standing):
        return BranchPlan(number, (tuple(roles),), ("",))  # of those at most twins share a branch
    twins: dict[str, list[Role]] = {}
    for role in roles:
        twins.setdefault(twin_of(role.standing), []).append(role)
    return BranchPlan(number, tuple(map(tuple, twins.values())), tuple(twins))


def _panes(query: Standing, stream: StreamPlan, functions: Functions) -> PanePlan | None:
    """Panes are merged in the order in which ranges are read, which is not that of timed partitions."""
    if stream.partitions > 1 and stream.time is not None:
        return None
    return pane_plan(query, Fraction(stream.slack), Fraction(stream.origin), dict(functions))


@lru_cache(maxsize=4)
def shapes_of(functions: Functions) -> Shapes:
    """The shapes of queries that this process has met."""
    return Shapes(dict(functions))


def remembers(query: Standing, streams: Mapping[str, StreamPlan]) -> bool:
    """Whether an answer needs more than the item at hand."""
    if query.kind != "items" or not query.separate:
        return True
    return any(streams[name].partitions > 1 and streams[name].time is not None for name in query.streams)


@lru_cache(maxsize=4)
def documents_of(given: tuple[tuple[str, str], ...]) -> dict[str, Input]:
    """The documents behind `doc()`, read once per process."""
    found: dict[str, Input] = {}
    for name, path in given:
        try:
            found[name] = document_input(parse_document(Path(path).read_bytes()))
        except OSError as error:
            raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    return found
