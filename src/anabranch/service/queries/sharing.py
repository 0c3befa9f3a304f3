"""What a query has in common with the subscriptions that run: the pass over its streams, its shape, its branch, twins.

The subscriptions of a plan are grouped once, by what the engine itself groups them by: the streams that are read, the
shape that is compiled once for all its constants (`runtime/shapes.py`), and the branch that holds items for several
(`spark/plan/membership.py`).
Groups are counted and a few of their members are named, so an answer costs the same beside ten subscriptions and beside
a hundred thousand.
A plan that only has further subscriptions is grouped by adding these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Set
from dataclasses import dataclass, field
from itertools import islice
from operator import is_
from threading import Lock
from typing import Literal, TypeAlias

from anabranch.runtime.shapes import Shape, Shaped
from anabranch.service.queries.checking import CheckedQuery
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds import KINDS
from anabranch.spark.plan.kinds.display import DisplayKind
from anabranch.spark.plan.kinds.growing import GrowingKind
from anabranch.spark.plan.kinds.kind import Functions, shapes_of
from anabranch.spark.plan.kinds.operators import PlanKind
from anabranch.spark.plan.kinds.past import PastKind

SharedPart: TypeAlias = Literal["pass", "shape", "branch", "twin"]

_ALONE = {each.name for each in (PlanKind, PastKind, DisplayKind, GrowingKind)}
"""The kinds of queries that have no shape."""
_NAMED = 6


@dataclass(frozen=True, slots=True)
class QueryShare:
    """One thing that a query has in common with others."""

    what: SharedPart
    message: str
    count: int
    """The number of the others."""
    names: tuple[str, ...]
    """A few of them."""


@dataclass(slots=True)
class _Crowd:
    """Some subscriptions: how many, and the names of the first."""

    count: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.names) < _NAMED:
            self.names.append(name)

    def without(self, name: str | None) -> tuple[int, tuple[str, ...]]:
        """How many there are beside one of them, and the names of a few."""
        return self.count - (name is not None), tuple(islice((each for each in self.names if each != name), _NAMED - 1))


class PlanGroups:
    """The subscriptions of one plan, in groups; only `SharedWork` adds to it."""

    def __init__(self, functions: Functions) -> None:
        self._shapes = shapes_of(functions)
        self._readers: dict[str, _Crowd] = {}
        self._shaped: dict[Shape, _Crowd] = {}
        self._asked: dict[Hashable, _Crowd] = {}
        """By query: the subscriptions that ask just this."""
        self._branches: dict[int, _Crowd] = {}
        self._families: dict[str, dict[int, _Crowd]] = {}
        """By family: its branches."""
        self._joined: dict[tuple[str, str], int] = {}
        """By family and policy: the branch that one who begins with its streams would join."""

    def add(self, each: Registration) -> None:
        """Add a subscription."""
        for stream in each.streams:
            self._readers.setdefault(stream, _Crowd()).add(each.name)
        query = self.query_of(each)
        self._asked.setdefault(query, _Crowd()).add(each.name)
        if isinstance(query, Shaped) and not KINDS[each.kind].is_branch:
            self._shaped.setdefault(query.shape, _Crowd()).add(each.name)
        if KINDS[each.kind].is_branch:
            members = self._branches.setdefault(each.branch, _Crowd())
            members.add(each.name)
            if each.family:
                self._families.setdefault(each.family, {})[each.branch] = members
                if not each.late:
                    self._joined[each.family, each.policy] = each.branch

    def query_of(self, each: Registration) -> Shaped | str:
        """What a subscription asks: equal for equal questions."""
        return each.text if each.kind in _ALONE else self._shapes.of(each.text)

    def readers(self, stream: str) -> int:
        """How many read a stream."""
        found = self._readers.get(stream)
        return found.count if found else 0

    @property
    def shapes(self) -> int:
        """The number of shapes that are matched together."""
        return len(self._shaped)

    # --- what is shared -----------------------------------------------------------------------------------------

    def of_running(self, each: Registration) -> Iterator[QueryShare]:
        """What a subscription that runs shares with others."""
        yield from self._pass(each.streams, each.name)
        yield from self._of_query(each, each.name)
        if KINDS[each.kind].is_branch:
            count, names = self._branches[each.branch].without(each.name)
            if count:
                yield QueryShare(
                    "branch", f"one branch orders, reads and holds items for {_others(count)}", count, names
                )

    def of_new(self, checked: CheckedQuery, begun: Set[str], policy: str) -> Iterator[QueryShare]:
        """What a query would share with those that run, if it were registered now."""
        asked, query = checked.registration, checked.query
        yield from self._pass(query.streams, None)
        yield from self._of_query(asked, None)
        family = query.family(checked.printed, 0) if query.is_branch else ""
        branches = self._families.get(family, {})
        if not branches:
            return
        joined = self._joined.get((family, policy)) if begun.isdisjoint(query.streams) else None
        if joined is not None:
            count, names = branches[joined].without(None)
            yield QueryShare("branch", f"the branch of {_others(count)} holds its items, too", count, names)
            return
        count = sum(each.count for each in branches.values())
        names = tuple(islice((name for each in branches.values() for name in each.names), _NAMED - 1))
        yield QueryShare(
            "branch",
            f"{_others(count)} read the same items into their windows; its own begin now, and theirs have seen more",
            count,
            names,
        )

    def _pass(self, streams: Collection[str], name: str | None) -> Iterator[QueryShare]:
        for stream in streams:
            found = self._readers.get(stream)
            count, names = found.without(name) if found else (0, ())
            if count:
                yield QueryShare("pass", f"the stream '{stream}' is read once, for {_others(count)}, too", count, names)

    def _of_query(self, asked: Registration, name: str | None) -> Iterator[QueryShare]:
        query = self.query_of(asked)
        same = self._asked.get(query)
        twins, names = same.without(name) if same else (0, ())
        if isinstance(query, Shaped) and (found := self._shaped.get(query.shape)) is not None:
            count, alike = found.without(name)
            if count:
                what = f"{_others(count)} differ from it in constants only: all are compiled and matched together"
                yield QueryShare("shape", what, count, alike)
        if twins:
            once = "it is answered once for all of them" if asked.kind == "items" else "under another name"
            yield QueryShare("twin", f"{_others(twins)} ask the same, and {once}", twins, names)


def _others(count: int) -> str:
    return "one other" if count == 1 else f"{count:,} others"


class SharedWork:
    """The groups of the plan at work; any thread may ask."""

    def __init__(self, functions: Callable[[], Functions]) -> None:
        self._functions = functions
        self._lock = Lock()
        self._seen: tuple[Registration, ...] = ()
        self._groups: PlanGroups | None = None
        self._plan: Plan | None = None

    def running(self, plan: Plan | None, each: Registration) -> tuple[QueryShare, ...]:
        """What a subscription of a plan shares with others."""
        with self._lock:
            return tuple(self._of(plan).of_running(each))

    def new(self, plan: Plan | None, checked: CheckedQuery, begun: Set[str], policy: str) -> tuple[QueryShare, ...]:
        """What a query would share with the subscriptions of a plan."""
        with self._lock:
            return tuple(self._of(plan).of_new(checked, begun, policy))

    def counts(self, plan: Plan | None, streams: Collection[str]) -> tuple[dict[str, int], int]:
        """By stream: how many read it; and the number of shapes of all."""
        with self._lock:
            found = self._of(plan)
            return {each: found.readers(each) for each in streams}, found.shapes

    def _of(self, plan: Plan | None) -> PlanGroups:
        """The groups of a plan; the lock is held."""
        if self._groups is None or plan is not self._plan:
            asked = plan.subscriptions if plan else ()
            before = len(self._seen)
            # numbers are never used again, and subscriptions stand in their order
            goes_on = len(asked) >= before and all(map(is_, self._seen, asked))
            if self._groups is None or not goes_on:
                self._groups, before = PlanGroups(self._functions()), 0
            for each in asked[before:]:
                if not each.aborted:
                    self._groups.add(each)
            self._seen, self._plan = asked, plan
        return self._groups
