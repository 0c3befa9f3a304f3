"""The shared plan, group by group: which subscriptions are answered together, and how.

Queries of one item at a time are grouped by their shape, that is, those that differ in constants only
(`runtime/shapes.py`); those with a branch by its kind and by the text of its first member without its literals, so that
a branch and all its members are in one group.
Subscriptions that have ended are in none.

A plan is grouped once, when it is first asked for.
What a subscription belongs to is remembered by its number, so a plan that differs by a few costs a pass over numbers.
To find it out takes some tens of microseconds, so it is done ahead, a few subscriptions at a time (`prepare`): else the
first who asks would wait seconds with a hundred thousand.
The two hundred largest groups are shown, and the others of each kind together: a picture has no room for more, and only
groups that are shown are described.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from threading import Lock

import numpy as np

from anabranch.engine.reports.columns import columns_verdict
from anabranch.errors import AnabranchError
from anabranch.language import check, parse
from anabranch.language.printer import print_query
from anabranch.language.rewrite import with_plain_names
from anabranch.law.calls import PythonFunction
from anabranch.runtime.shapes import Shape, Shapes, SplitText, constants_in
from anabranch.runtime.standing import standing
from anabranch.service.watch.answered import Numbers, label_of, numbers_of
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds import KINDS
from anabranch.visible import visible

MOST_GROUPS = 200
_LONGEST_LABEL = 240
_NAMED = 3
_KNOWN = 1_000_000
_AT_ONCE = 2_000
"""The subscriptions that are looked at ahead in one go."""
_BY_ELEMENT = "it is answered element by element"
_IN_COLUMNS = ("items", "windows", "sessions", "step join", "interval join", "keyed join")
"""The kinds of queries that columns do something for."""


@dataclass(frozen=True, slots=True)
class SharingGroup:
    """Subscriptions that are answered together."""

    id: str
    kind: str
    label: str
    streams: tuple[str, ...]
    subscriptions: int
    queries: int
    """Different queries among them."""
    branches: int
    names: tuple[str, ...]
    """Some of its subscriptions."""
    in_columns: bool
    reason: str
    """Why it is not answered in columns."""


@dataclass(frozen=True)
class GroupedPlan:
    """A plan, group by group."""

    plan: Plan
    groups: tuple[SharingGroup, ...]
    """The largest first."""
    numbers: Numbers
    codes: Numbers
    """By subscription of the plan: its number, and its group, as a place in `groups`; behind them for none."""
    readers: Mapping[str, int]
    """By stream: the subscriptions that read it."""

    @cached_property
    def by_id(self) -> Mapping[str, int]:
        """By id of a group: its place."""
        return {each.id: place for place, each in enumerate(self.groups)}

    def members(self, group: int) -> list[Registration]:
        """The subscriptions of a group, by name."""
        found = [self.plan.subscriptions[each] for each in np.flatnonzero(self.codes == group).tolist()]
        return sorted(found, key=lambda each: each.name)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """What a subscription belongs to, and which query it asks, of those there."""

    key: Hashable
    query: Hashable


class PlanGrouping:
    """Groups the plans of a run; any thread may ask, one at a time is answered."""

    def __init__(self, functions: Mapping[str, PythonFunction]) -> None:
        self._functions = functions
        self._shapes = Shapes(functions)
        self._grouping = Lock()
        self._known: dict[int, _Grouped] = {}
        """By number of a subscription: its group."""
        self._ids: dict[Shape, str] = {}
        self._labels: dict[str, str] = {}
        """By id of a group: its label, without the stream's constants."""
        self._verdicts: dict[str, tuple[bool, str]] = {}
        self._last: GroupedPlan | None = None
        self._prepared: tuple[Plan | None, int] = None, 0
        """A plan, and how many of its subscriptions were looked at ahead."""

    def prepare(self, plan: Plan) -> None:
        """Find out what some more subscriptions of a plan belong to."""
        begin = self._prepared[1] if self._prepared[0] is plan else 0
        left = _AT_ONCE
        with self._grouping:
            while left and begin < len(plan.subscriptions):
                each = plan.subscriptions[begin]
                if each.id not in self._known and not each.aborted:
                    self._group(each)
                    left -= 1
                begin += 1
        self._prepared = plan, begin

    def of(self, plan: Plan, by_law: Mapping[str, int]) -> GroupedPlan:
        """A plan by groups; `by_law` has the streams for whose items some subscriptions are not answered in columns."""
        with self._grouping:
            if self._last is None or self._last.plan is not plan:
                self._last = self._grouped(plan)
            last = self._last
            groups = tuple(self._judged(each, last, by_law) for each in last.groups)
            return replace(last, groups=groups)

    def _grouped(self, plan: Plan) -> GroupedPlan:
        places: dict[Hashable, int] = {}
        counts: list[int] = []
        firsts: list[Registration] = []
        names: list[list[str]] = []
        queries: list[set[Hashable]] = []
        branches: list[set[int]] = []
        readers: Counter[str] = Counter()
        codes = np.full(len(plan.subscriptions), -1, np.int64)
        if len(self._known) > _KNOWN:
            self._known.clear()
        for number, each in enumerate(plan.subscriptions):
            if each.aborted:
                continue
            known = self._known.get(each.id) or self._group(each)
            place = places.setdefault(known.key, len(places))
            if place == len(counts):
                counts.append(0)
                firsts.append(each)
                names.append([])
                queries.append(set())
                branches.append(set())
            counts[place] += 1
            codes[number] = place
            queries[place].add(known.query)
            readers.update(each.streams)
            if len(names[place]) < _NAMED:
                names[place].append(each.name)
            if KINDS[each.kind].is_branch:
                branches[place].add(each.branch)
        order = sorted(range(len(counts)), key=lambda place: (-counts[place], place))
        groups: list[SharingGroup] = []
        moved = np.empty(len(counts) + 1, np.int64)
        others: dict[str, int] = {}
        for place in order:
            first = firsts[place]
            found = SharingGroup(
                "",
                label_of(first),
                "",
                first.streams,
                counts[place],
                len(queries[place]),
                len(branches[place]),
                tuple(names[place]),
                True,
                "",
            )
            if len(groups) - len(others) < MOST_GROUPS:
                moved[place] = len(groups)
                groups.append(self._described(found, first))
            elif found.kind in others:
                moved[place] = others[found.kind]
                groups[others[found.kind]] = _together(groups[others[found.kind]], found)
            else:
                moved[place] = others[found.kind] = len(groups)
                groups.append(replace(found, id=f"others-{_digest(found.kind)}", label=f"others of '{found.kind}'"))
        moved[-1] = len(groups)
        return GroupedPlan(plan, tuple(groups), numbers_of(plan), moved[codes], readers)

    def _group(self, each: Registration) -> _Grouped:
        """What a subscription belongs to; a member of another's branch belongs to what that belongs to."""
        kind = label_of(each)
        if not KINDS[each.kind].is_branch:
            shaped = self._shapes.of(each.text)
            found = _Grouped((kind, each.streams, shaped.shape), shaped)
        else:
            first = self._known.get(each.branch)
            key = first.key if first is not None else (kind, each.streams, skeleton(each))
            found = _Grouped(key, each.text)
        self._known[each.id] = found
        return found

    # --- descriptions ---------------------------------------------------------------------------------------

    def _described(self, group: SharingGroup, first: Registration) -> SharingGroup:
        """A group with its id and its label."""
        if KINDS[first.kind].is_branch:
            text = skeleton(first)
            return replace(group, id=_digest(group.kind, group.streams, text), label=_short(text))
        shape = self._shapes.of(first.text).shape
        if shape not in self._ids:
            if len(self._ids) > 10 * MOST_GROUPS:
                self._ids.clear()
                self._labels.clear()
                self._verdicts.clear()
            printed = print_query(with_plain_names(shape.standing.query))
            self._ids[shape] = _digest(group.kind, group.streams, printed)
        number = self._ids[shape]
        if number not in self._labels:
            self._labels[number] = _short(self._with_gaps(first.text, shape))
        return replace(group, id=number, label=self._labels[number])

    def _with_gaps(self, text: str, shape: Shape) -> str:
        """A query with `?` in place of its constants."""
        cut = SplitText.of(text)
        gaps = constants_in(cut, standing(parse(text), self._functions)) if shape.marks else ()
        return cut.with_literals(dict.fromkeys(gaps, "?"))

    def _judged(self, group: SharingGroup, plan: GroupedPlan, by_law: Mapping[str, int]) -> SharingGroup:
        """A group with the verdict whether it is answered in columns; where all items are, nobody has to look."""
        if group.kind == "items" and not group.branches and not any(by_law.get(each) for each in group.streams):
            return group
        if group.id not in self._verdicts:
            self._verdicts[group.id] = self._verdict(plan.plan.by_name[group.names[0]])
        in_columns, reason = self._verdicts[group.id]
        return replace(group, in_columns=in_columns, reason=reason)

    def _verdict(self, first: Registration) -> tuple[bool, str]:
        if label_of(first) not in _IN_COLUMNS:
            return False, _BY_ELEMENT
        try:
            query = check(parse(first.text), first.text, functions=self._functions, name=first.name).query
            found = columns_verdict(query, first.text, {}, self._functions)
        except AnabranchError as error:
            return False, visible(error.message)
        if found is None:
            return False, _BY_ELEMENT
        return found.construct is None, "" if found.construct is None else visible(found.construct)


def skeleton(subscription: Registration) -> str:
    """The text of a query with `?` in place of its literals, but for the names of streams and documents."""
    if KINDS[subscription.kind].name == "plan":
        return f"a plan of operators over {' and '.join(subscription.streams)}"
    cut = SplitText.of(subscription.text)
    pieces = zip(cut.key[::2], range(len(cut.literals)), strict=False)
    gaps = {number: "?" for piece, number in pieces if not piece.rstrip().endswith(("stream(", "doc("))}
    return cut.with_literals(gaps)


def _together(first: SharingGroup, second: SharingGroup) -> SharingGroup:
    """Two groups that are shown as one."""
    return replace(
        first,
        streams=tuple(dict.fromkeys((*first.streams, *second.streams))),
        subscriptions=first.subscriptions + second.subscriptions,
        queries=first.queries + second.queries,
        branches=first.branches + second.branches,
    )


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:12]


def _short(text: str) -> str:
    """A label on one line."""
    line = " ".join(text.split())
    return visible(line if len(line) <= _LONGEST_LABEL else f"{line[:_LONGEST_LABEL]}…")
