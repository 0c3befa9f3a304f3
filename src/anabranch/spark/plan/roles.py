"""Who answers what: which subscriptions a task answers item by item, and which go on as branches.

A query that needs one item at a time is answered where the item is read.
A *branch* remembers: windows and joins, answers that wait for the end, and the merge of partitions that are read side
by side and have a time (LAWS 1.2); and answers that are told with their moments.
What the builder made is a branch by itself, whatever its operators are (`branch/plans/plans.py`); so is a query over a
stream of updates, whose answer is a display (`branch/display/branch.py`), and one about the past of items
(`branch/past/`).
Where windows travel between trunks, who makes them counts them as any window query does, and who reads them has a
branch of its own (`branch/remote/`); tuples are sent by the branch of their join, and read as items.
Each stream of updates has a branch that keeps its document, whoever subscribes (`branch/document/keeper.py`).
A branch belongs to one shard, by its number, and serves one subscription or several (`membership.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from anabranch.algebra.plans.interpret import Plan as Operators
from anabranch.algebra.plans.written import is_plan, read_plan, streams_of
from anabranch.branch.display.branch import DisplayQuery
from anabranch.branch.family import twin_of
from anabranch.branch.panes.plan import PanePlan, pane_plan
from anabranch.branch.past.queries import RecalledQuery, recalled_query
from anabranch.branch.remote.making import sent_plan
from anabranch.branch.remote.queries import SentQuery, sent_query
from anabranch.branch.remote.written import is_sent, read_sent, stream_of
from anabranch.errors import UsageError
from anabranch.language import parse
from anabranch.law import Input, document_input
from anabranch.law.arrivals.past import named
from anabranch.law.calls import PythonFunction
from anabranch.runtime.shapes import Shapes
from anabranch.runtime.standing import Standing, standing
from anabranch.sharing.remote import MakeWindows, SendTuples
from anabranch.spark.plan.epoch_plan import Plan, StreamPlan, Subscription
from anabranch.spark.plan.files import PlanFile
from anabranch.stream.reading.parse import parse_document

MOST_STRANDS = 1 << 10
"""In so many strands a query is answered at most."""
_STRANDS = 1 << 60
"""Above the numbers of all subscriptions."""

Functions: TypeAlias = tuple[tuple[str, PythonFunction], ...]
"""What the user registered, by name."""


@dataclass(frozen=True, slots=True)
class Role:
    """A subscription with its query, taken apart or for a display, or with the operators that the builder gave it."""

    subscription: Subscription
    query: Standing | Operators | DisplayQuery | RecalledQuery | SentQuery
    is_branch: bool
    panes: PanePlan | None = None
    """How a branch is counted by panes, where it can be."""
    sends: bool = False
    """Whether its answer are tuples for another trunk."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        if isinstance(self.query, Standing | DisplayQuery | RecalledQuery | SentQuery):
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
    def edited(self) -> tuple[str, ...]:
        """The streams of updates beside items, where there are results that stand."""
        return self.query.edited if isinstance(self.query, RecalledQuery) else ()

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
    strands: int = 0
    """Into how many strands it is divided, if it is."""
    strand: int | None = None
    """Which of them it is; without one it is where they come together."""

    @property
    def is_braid(self) -> bool:
        """Whether it takes what strands have found, and no stream."""
        return self.strands > 0 and self.strand is None

    @property
    def roles(self) -> tuple[Role, ...]:
        """One for each query."""
        return tuple(each[0] for each in self.twins)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it takes."""
        if self.is_braid:
            return ()
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
        return shard_of(self.number, plan)


def shard_of(number: int, plan: Plan) -> int:
    """The shard that the branch with a number belongs to."""
    return number % plan.shards


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
    if is_sent(subscription.text):
        return _sent_role(subscription, streams)
    if is_plan(subscription.text):
        return Role(subscription, read_plan(subscription.text), is_branch=True)
    edited = edited_streams(streams.values())
    if found := past_of(subscription.text, functions, edited) or display_of(subscription.text, edited):
        return Role(subscription, found, is_branch=True)
    query = shapes_of(functions).of(subscription.text).shape.standing
    known = set(query.streams) <= streams.keys()
    remembered = known and (subscription.timed or remembers(query, streams))
    if remembered:
        query = _taken_apart(subscription.text, functions)
    counted = remembered and not subscription.timed  # panes know nothing of single elements
    panes = _panes(query, streams[query.streams[0]], functions) if counted else None
    return Role(subscription, query, remembered, panes)


def _sent_role(subscription: Subscription, streams: Mapping[str, StreamPlan]) -> Role:
    operator = read_sent(subscription.text)
    if isinstance(operator, SendTuples):
        return Role(subscription, _taken_apart(operator.text, ()), is_branch=True, sends=True)
    stream = streams.get(stream_of(operator))
    if stream is not None and stream.partitions > 1 and (stream.time or not isinstance(operator, MakeWindows)):
        raise UsageError(
            f"windows of stream '{stream.stream}' cannot be made or read on their way: it has several partitions",
            hint="send the items",
        )
    if not isinstance(operator, MakeWindows):
        return Role(subscription, sent_query(operator), is_branch=True)
    slack, origin = (stream.slack, stream.origin) if stream else ("0", "0")
    plan = sent_plan(operator.tree, Fraction(slack), Fraction(origin))
    return Role(subscription, plan.whole, is_branch=True, panes=plan)


def not_begun(name: str, text: str, streams: Mapping[str, StreamPlan], functions: Functions) -> Subscription:
    """A subscription that no epoch has seen."""
    role = role_of(Subscription(-1, name, text, 0), streams, functions)
    return replace(role.subscription, shows=role.shows, edited=role.edited)


def edited_streams(streams: Collection[StreamPlan]) -> tuple[str, ...]:
    """The streams of updates among some."""
    return tuple(each.stream for each in streams if each.updates)


@lru_cache(maxsize=1 << 14)
def display_of(text: str, edited: tuple[str, ...]) -> DisplayQuery | None:
    """A query that reads a stream of updates, which are given by name; None for another one."""
    if not _may_read(text, edited):
        return None
    query = parse(text)
    streams = named(query)
    return None if set(streams).isdisjoint(edited) else DisplayQuery(query, text, streams)


def _may_read(text: str, streams: Collection[str]) -> bool:
    """Whether a query may read one of some streams: where it does, the name is there, as it is."""
    return any(each in text or not each.isidentifier() for each in streams)


@lru_cache(maxsize=1 << 14)
def past_of(text: str, functions: Functions, edited: tuple[str, ...] = ()) -> RecalledQuery | None:
    """A query about the past of items that is answered as they come; None for another one."""
    if "#" not in text and "?" not in text and not _may_read(text, edited):
        return None
    return recalled_query(parse(text), dict(functions), text, edited)


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
    return (*keepers, *(each for number, roles in members.items() for each in _branches(number, roles)))


def _branches(number: int, roles: list[Role]) -> Iterator[BranchPlan]:
    """The branch of some subscriptions, and its strands."""
    branch = _branch(number, roles)
    first, *strands = numbers_of(roles[0].subscription)
    yield replace(branch, number=first, strands=len(strands))
    for count, each in enumerate(strands):
        yield replace(branch, number=each, strands=len(strands), strand=count)


def numbers_of(subscription: Subscription) -> tuple[int, ...]:
    """The numbers of the branch that serves a subscription, and of its strands."""
    number = subscription.branch
    return (number, *(_STRANDS + number * MOST_STRANDS + strand for strand in range(subscription.strands)))


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
    return pane_plan(query, Fraction(stream.slack), Fraction(stream.origin), dict(functions), stream.namespaces)


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
