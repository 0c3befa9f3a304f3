"""Windows over a document that is edited, on display: corrected at the cost of the windows that an update concerns.

An entry that changes is evaluated by itself: which nodes of it are in windows, and what each adds to their aggregates
(`WindowMember`); `window_members.py` finds the windows that lose or gain one.
Where a query sees its windows, or the groups in them, through aggregates only, an aggregate is a fold: the old share of
a node is taken out, and its new one put in (`aggregates/folds.py`).
Any other window is evaluated with its content by the law's own evaluator, and so is one in which something fails, for
the dead letter that names the entries at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.folds import Fold
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.parts import EditedWindowPart
from anabranch.branch.display.stages import EachStage, Finding
from anabranch.branch.display.window_members import (
    CountMembers,
    HeldWindow,
    MemberId,
    SessionMembers,
    TimeMembers,
    WindowMember,
    WindowMembers,
)
from anabranch.branch.document.projection import KeptDocument
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.windows.aggregates import BOUND_VARIABLES
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator, Known, ResultRow
from anabranch.law.functions import BUILTINS
from anabranch.law.history.evaluate import HistoryEvaluator
from anabranch.law.history.windows import PlacedNode
from anabranch.law.rounds.windows import WindowContent, amount_on, extent_of
from anabranch.stream.path import TimeScale
from anabranch.values.atomic import group_identity
from anabranch.values.sequences import Values, key_of, truth
from anabranch.values.written import read_atom, write_atom


@dataclass(slots=True)
class _MemberGroup:
    """The members of one group of a window, or of all of it, and their aggregates."""

    keys: tuple[Any, ...]
    folds: list[Fold]
    members: dict[MemberId, int] = field(default_factory=dict)
    """With the numbers by which folds know them."""
    first: MemberId | None = None
    """The first of them in the document; None where it has to be found."""


@dataclass(slots=True)
class _WindowTotals:
    """The aggregates of a window."""

    groups: dict[tuple[object, ...], _MemberGroup] = field(default_factory=dict)
    unsplit: int = 0
    """The number of its members that have no shares."""


class _Totals:
    """The aggregates of all windows, as members come and go."""

    def __init__(self, part: EditedWindowPart) -> None:
        self._part = part
        self.of: dict[int, _WindowTotals] = {}
        self.members: WindowMembers
        self._ids: dict[int, MemberId] = {}
        self._next = 0

    def precedes(self, one: int, other: int) -> bool:
        """The order of members by the numbers by which folds know them."""
        return self.members.member_precedes(self._ids[one], self._ids[other])

    def add(self, window: HeldWindow, id: MemberId, member: WindowMember) -> None:
        """Take a member that has come into a window."""
        if not member.is_grouped:
            return
        totals = self.of.setdefault(window.number, _WindowTotals())
        if member.shares is None:
            totals.unsplit += 1
            return
        identity = _identity(member)
        group = totals.groups.get(identity)
        if group is None:
            folds = [AGGREGATES[each.function].fold(self) for each in self._part.calls]
            group = totals.groups[identity] = _MemberGroup(member.group, folds, first=id)
        self._ids[self._next] = id
        for each, share in zip(group.folds, member.shares, strict=True):
            if share is not None:
                each.put(self._next, share)
        group.members[id] = self._next
        if group.first is not None and self.members.member_precedes(id, group.first):
            group.first, group.keys = id, member.group
        self._next += 1

    def drop(self, window: HeldWindow, id: MemberId, member: WindowMember) -> None:
        """Forget a member that has left a window."""
        if not member.is_grouped:
            return
        totals = self.of[window.number]
        if member.shares is None:
            totals.unsplit -= 1
        else:
            identity = _identity(member)
            group = totals.groups[identity]
            number = group.members.pop(id)
            for each, share in zip(group.folds, member.shares, strict=True):
                if share is not None:
                    each.remove(number, share)
            del self._ids[number]
            if group.first == id:
                group.first = None
            if not group.members:
                del totals.groups[identity]
        if not totals.groups and not totals.unsplit:
            del self.of[window.number]

    def groups(self, window: HeldWindow) -> list[_MemberGroup]:
        """The groups of a window, in the order of their first members."""
        totals = self.of.get(window.number)
        found: dict[MemberId, _MemberGroup] = {}
        for each in totals.groups.values() if totals else ():
            if each.first is None:
                each.first = self.members.first(each.members)
                each.keys = window.members[each.first].group
            found[each.first] = each
        return [found[each] for each in self.members.in_order(found)]


def _identity(member: WindowMember) -> tuple[object, ...]:
    return tuple(group_identity(None if each is None else read_atom(each)) for each in member.group)


class WindowPlaces:
    """The order of windows, as they are on display."""

    def __init__(self, members: WindowMembers) -> None:
        self._members = members
        self.places: dict[int, tuple[Any, ...]] = {}

    def precedes(self, one: int, other: int) -> bool:
        return self._members.place_precedes(self.places[one], self.places[other])

    def in_order(self, some: Collection[int]) -> list[int]:
        """Some windows, in this order."""
        raise AssertionError("windows are put on display one by one")


class EditedWindows:
    """The windows of one part of a query; `id` identifies it."""

    is_lasting = may_forget = False

    def __init__(
        self, id: str, site: QuerySite, scope: AnswerScope, part: EditedWindowPart, kept: KeptDocument
    ) -> None:
        self.part = part
        self._id, self._site, self._scope, self._kept = id, site, scope, kept
        self._totals = _Totals(part)
        evaluator = self._evaluator(())
        self._scale: TimeScale = evaluator.scale(part.clause, scope.env, ())
        self.members = self._totals.members = self._windows()
        self.places = WindowPlaces(self.members)

    @property
    def stream(self) -> str:
        return self.part.stream

    def _windows(self) -> WindowMembers:
        order, totals = self._kept.order, self._totals
        match self.part.clause.window:
            case ast.CountWindow() as window:
                return CountMembers(order, totals, extent_of(window, self._scale))
            case ast.SessionWindow(gap=gap):
                return SessionMembers(order, totals, amount_on(gap, self._scale))
            case ast.TimeWindow() as window:
                return TimeMembers(order, totals, extent_of(window, self._scale))
            case None:
                raise AssertionError("it has a window")

    def _evaluator(self, entries: Collection[int], known: Known | None = None) -> HistoryEvaluator:
        found = self._site.evaluation.over({self.part.stream: self._kept.some(entries)}, known or {})
        assert isinstance(found, HistoryEvaluator), "its streams are documents"
        return found

    # --- members ------------------------------------------------------------------------------------------

    def again(self, changed: Changed) -> Collection[int]:
        """The entries to be evaluated again."""
        return changed[self.part.stream]

    def found(self, entry: int) -> tuple[WindowMember, ...]:
        """The members that an entry has now; none where it is gone, or makes the whole answer fail."""
        site = self._site
        site.failing.pop((self._id, entry), None)
        if entry not in self._kept.by_number:
            site.told.pop((self._id, entry), None)
            return ()
        evaluator = self._evaluator((entry,))
        try:
            env = evaluator.bound(self.part.before, self._scope.env)
            nodes = evaluator.apart(lambda: evaluator.placed_nodes(self.part.clause, env))
        except DynamicError as error:
            site.failing[self._id, entry] = error
            return ()
        site.evaluation.aside = list(dict.fromkeys(evaluator.dead))
        site.tell(self._id, entry)
        return tuple(self._member(evaluator, each, env) for each in nodes)

    def _member(self, evaluator: Evaluator, node: PlacedNode, env: Env) -> WindowMember:
        part = self.part
        plain = WindowMember(node.value, node.key)
        if not part.is_folded:
            return plain
        env = env.bind(part.variable, [node.node])
        try:
            return evaluator.apart(lambda: [self._shared(evaluator, plain, env)])[0]
        except DynamicError:
            return plain  # its windows have to be evaluated with their content

    def _shared(self, evaluator: Evaluator, plain: WindowMember, env: Env) -> WindowMember:
        """A member with its shares in the aggregates of its windows."""
        part = self.part
        if part.where is not None and not truth(evaluator.value(part.where, env)):
            return replace(plain, shares=(), is_grouped=False)
        keys = [key_of(evaluator.value(each, env), "a key") for each in part.keys]
        group = tuple(None if each is None else tuple(write_atom(each)) for each in keys)
        values: list[Values] = [evaluator.aggregated_values(each, env) for each in part.paths]
        shares = (
            AGGREGATES[each.function].fold(self._totals).share(values[each.path]) if values[each.path] else None
            for each in part.calls
        )
        return replace(plain, group=group, shares=tuple(shares))

    def replace(self, entry: int, members: tuple[WindowMember, ...]) -> None:
        """Replace the members of an entry."""
        self.members.replace(entry, members, again=any(each.shares is None for each in members))

    # --- results ------------------------------------------------------------------------------------------

    def rows(self, number: int) -> Sequence[ResultRow]:
        """The results of a window; none where it fails, and a dead letter says why."""
        site, key = self._site, self._id + _WINDOWS
        site.failing.pop((key, number), None)
        window = self.members.windows.get(number)
        if window is None:
            site.told.pop((key, number), None)
            return ()
        rows = self._folded(window)
        if rows is None:
            rows = self._evaluated(window)
        site.tell(key, number)
        return rows

    tried = shown = rows

    def fails(self, number: int, error: DynamicError) -> None:
        """Let the whole answer fail because of a window."""
        self._site.failing[self._id + _WINDOWS, number] = error

    def _folded(self, window: HeldWindow) -> list[ResultRow] | None:
        """The results of a window from its aggregates; None where it has to be evaluated with its content."""
        part, totals = self.part, self._totals.of.get(window.number)
        if not part.is_folded or (totals is not None and totals.unsplit):
            return None
        bounds = self._bounds(window)
        known: dict[str, Callable[[], Values]] = {
            variable: partial(BUILTINS[function], WindowValues((), bounds))
            for variable, function in BOUND_VARIABLES.items()
        }
        groups = self._totals.groups(window)
        if not part.keys:
            known |= self._aggregates(groups[0])
        evaluator = self._evaluator((), known)
        try:
            env = evaluator.bound(part.before, self._scope.env).bind(part.variable, [])
            if not part.keys:
                return evaluator.round_rows(part.seen, part.behind, env, 1)
            tuples = [self._group(each, env) for each in groups]
            pipeline = part.seen.result
            assert isinstance(pipeline, ast.Pipeline), "groups are made by one"
            found = evaluator.apart(lambda: evaluator.piped(pipeline, tuples), max(1, len(tuples)))
            return [ResultRow((), found)]
        except DynamicError:
            return None

    def _group(self, group: _MemberGroup, env: Env) -> Env:
        for name, written in zip(self.part.names, group.keys, strict=True):
            env = env.bind(name, [] if written is None else [read_atom(written)])
        return replace(env, found=self._aggregates(group))

    def _aggregates(self, group: _MemberGroup) -> Mapping[str, Callable[[], Values]]:
        return {call.variable: fold.value for call, fold in zip(self.part.calls, group.folds, strict=True)}

    def _evaluated(self, window: HeldWindow) -> list[ResultRow]:
        """The results of a window with this content, by the law."""
        members = self.members
        evaluator = self._evaluator({entry for entry, _ in window.members})
        env = evaluator.bound(self.part.before, self._scope.env)
        nodes = iter(evaluator.placed_nodes(self.part.clause, env))
        evaluator.dead.clear()  # what is in no window was told with its entry
        content: list[PlacedNode] = []
        for entry in self._kept.order.in_order({entry for entry, _ in window.members}):
            for at in range(len(members.by_entry[entry])):
                node = next(nodes)
                content += [node] if (entry, at) in window.members else []
        held = WindowContent(window.number, window.start, window.end, window.times > 0, tuple(content))
        rows = evaluator.window_rows(self.part.flwor, self.part.clause, held, env)
        self._site.evaluation.aside = list(dict.fromkeys(evaluator.dead))
        return rows

    def _bounds(self, window: HeldWindow) -> WindowBounds:
        return WindowBounds(window.start, window.end, self._scale, window.times > 0)

    # --- state --------------------------------------------------------------------------------------------

    def remembered(self, stream: str, entry: int) -> Any:
        """Digests of the dead letters of an entry, as plain data; None for nothing."""
        return self._site.told.get((self._id, entry)) if stream == self.stream else None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """Restore what was kept of an entry; None for nothing."""
        if stream == self.stream:
            if data:
                self._site.told[self._id, entry] = data
            else:
                self._site.told.pop((self._id, entry), None)


_WINDOWS = ".windows"
"""Behind the id of a part: the id under which windows note their errors, where entries have the id itself."""


class EditedWindowStage(EachStage):
    """A part that is a loop over windows: a region of the display for each result of each window."""

    def __init__(self, id: str, site: QuerySite, scope: AnswerScope, source: EditedWindows) -> None:
        super().__init__(id, site, scope, source, source.places, source.part.flwor.order)
        self._source = source
        self._found: dict[int, tuple[WindowMember, ...]] = {}
        """The members that were restored and are not in windows yet."""

    def find(self, changed: Changed) -> Iterator[Finding]:
        for entry in self._source.again(changed):
            yield Finding(self.id, entry, self._source.found(entry))

    def take(self, finding: Finding) -> None:
        self._source.replace(finding.entry, finding.value)

    def settle(self) -> None:
        """Show the windows that were touched: those that are gone, or have moved, first leave the display."""
        source = self._source
        touched, windows, places = source.members.settle(), source.members.windows, source.places.places
        for number in touched:
            if number not in windows or windows[number].place != places.get(number):
                self._show(number, ())
                places.pop(number, None)
        places.update((number, windows[number].place) for number in touched if number in windows)
        for number in touched:
            results = tuple(self._results_of(number, source.rows(number)))
            if number in windows:
                self._show(number, results)

    def reshow(self) -> None:
        self._source.members.touch_all()

    def write(self, value: Any) -> Any:
        return [each.write() for each in value]

    def read(self, data: Any) -> Any:
        return tuple(WindowMember.read(each) for each in data)

    def keeps(self, stream: str, entry: int) -> bool:
        return stream == self._source.stream and entry in self._source.members.by_entry

    def remembered(self, stream: str, entry: int) -> Any:
        if stream != self._source.stream:
            return None
        told = self._source.remembered(stream, entry)
        members = self._source.members.by_entry.get(entry, ())
        return [told, self.write(members)] if told or members else None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        if stream == self._source.stream:
            told, written = data or (None, ())
            self._source.recall(stream, entry, told)
            self._found[entry] = self.read(written)

    def recalled(self) -> None:
        found, self._found = self._found, {}
        for entry, members in sorted(found.items(), key=lambda each: bool(each[1])):  # removals first
            self._source.replace(entry, members)
        self.settle()
