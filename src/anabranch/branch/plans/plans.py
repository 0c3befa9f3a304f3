"""Plans of the algebra as branches: a plan of the builder as a subscription.

The elements of all streams come in the order of LAWS 1.2 (`branch/intake/merge.py`) and pass the operators one by one,
by the law itself (`algebra/plans/interpret.py`): there is no second implementation.
A stream of several partitions is the Union of its partitions (LAWS 1.4).
Items leave as XML and accents as in all answers; an answer has no punctuations.

Elements were judged by the trunk, so none is bad here; an accent that was set aside leaves paths in doubt, and a plan
that needs such a path ends (LAWS 4.5).
The states of operators are plain values, and their knowledge of evolution is the events of the changelog
(`branch/evolution/changelog.py`).

The plan restarts from a changelog when that is compacted, so its knowledge follows from the elements alone, and not
from when its state was saved.

Cost: a plan gets an event once, and once more when the branch is opened in another process than last time; the same
process has cached the plan (`branch/cache.py`), without the items, which are in the state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from anabranch.algebra.accents.events import Announced, Event
from anabranch.algebra.accents.sets import description_of, items_of, term
from anabranch.algebra.operators.operator import Flowing, Heartbeat
from anabranch.algebra.operators.union import Union
from anabranch.algebra.plans.interpret import Apply, Plan, RunningPlan, StreamSource
from anabranch.algebra.reactions.course import Change, Closing
from anabranch.algebra.reactions.readings import Reading
from anabranch.branch import cache
from anabranch.branch.evolution.changelog import Changelog, Entry, WindowsReached, shown_at, starts_of
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Changed, Merged, Released, StreamSignal
from anabranch.branch.members import BranchMember
from anabranch.branch.plans.pace import Pace, with_origins
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import BranchState
from anabranch.errors import Aborted, StateError, StreamError
from anabranch.law.evolution.vantage import Vantage
from anabranch.predicate import compare
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.stream.elements import LONGEST_RAW, Accent, DeadLetter, Place, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.reading.json_items import item_text
from anabranch.stream.reading.wire import write
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, copy

_ROWS = pa.schema([("operator", pa.string()), ("row", pa.string())])


class PlanBranch(Merged):
    """A branch that runs a plan."""

    def __init__(
        self, member: BranchMember[Plan], inputs: Mapping[str, InputStream], state: BranchState | None, spill: Spill
    ) -> None:
        self._member = member
        self._inputs = inputs
        super().__init__(inputs.values(), spill)
        self._pace = Pace(member.query, inputs)
        self._log = Changelog()
        self._mistrusted: dict[Key, dict[Path, str]] = {key: {} for key in self._merge.sources}
        """By input: the paths that were unknown for some items, with the last reason."""
        self._place = Place(next(iter(inputs)), "", 0)
        """The place of the latest element."""
        self._ended: str | None = None
        self.aborted: dict[str, str] = {}
        self.held = 0
        """The number of items and groups in its state, once it is saved."""
        self._starts = starts_of(inputs.values())
        """The starts of late streams (LAWS 3.6)."""
        for key, start in self._starts.items():
            self._merge.sources[key].vantage = Vantage(start.evolution.copy())
        self._promises = {source_of(*key): each.vantage.evolution.domains for key, each in self._merge.sources.items()}
        """By partition: the accents declared for its items when the plan began."""
        self._query = self._fresh()
        if state is not None:
            self._restore(state)
            return
        for each in shown_at(self._starts):
            self._give(self._consequences(each))

    def _fresh(self) -> RunningPlan:
        """The plan at its beginning, over the partitions of its streams."""
        partitions = {name: len(each.source.partitions) for name, each in self._inputs.items()}
        plan = partitioned(with_origins(self._member.query, self._inputs), partitions)
        return RunningPlan(plan, policy=self._member.policy, promises=self._promises)

    # --- what comes in ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        for each in self._merge.released():
            if self._ended is not None:
                continue
            match each:
                case Released():
                    self._item(each)
                case Changed(stream, partition, change):
                    self._place = change.place
                    self._apply(Announced(stream.name, partition, change))
                case StreamSignal():
                    self._signal(each)

    def _finish(self) -> None:
        """Emit what was kept to the end."""
        self._give(self._query.end())

    def _item(self, released: Released) -> None:
        origin, tree = released.entry.origin, released.given
        key = origin.stream, origin.partition
        self._place = released.item.place
        if self._pace.is_late(*key, Reading(tree, released.units)):
            self._member.out.late(self._place)
        else:
            for way, first in self._pace.first_windows().items():
                self._query.begin_windows(way, first)
            reading = Reading(copy(tree))
            evolution = self._merge.sources[key].vantage.evolution
            for path, reason in self._mistrusted[key].items():
                if evolution.state(path, tree).unit is None:
                    reading = reading.mistrusted(path, reason)
            self._give(self._query.take(source_of(*key), reading), tree)
        self._reach(origin.stream)

    def _signal(self, signal: StreamSignal) -> None:
        stream, given = signal.stream.name, signal.given
        if given is not None:
            self._place = given.place
            if given.where is not None:
                self._apply(Announced(stream, signal.partition, given))
            elif given.at is not None:
                self._give(self._query.take(source_of(stream, signal.partition), Heartbeat(given.at)), given)
        self._pace.signal(stream, signal.partition, signal.punctuation)
        self._reach(stream)

    def _reach(self, stream: str) -> None:
        """Pass the progress of a stream to the plan, if its windows need it."""
        for each in self._pace.reached(stream):
            self._apply(each)

    def _apply(self, told: Entry) -> None:
        """Apply an event, and log it."""
        before = self._query.changes
        self._give(self._consequences(told), told.event if isinstance(told, Announced) else None)
        if self._ended is None and self._log.add(told, let_out=self._query.changes > before):
            self._log.thin()
            remembered = self._query.save()
            self._replay()
            self._query.restore(remembered)

    def _replay(self) -> None:
        """Restart behind all events, as if no item had come."""
        self._query = self._fresh()
        for each in (*shown_at(self._starts), *self._log.entries):
            for _ in self._consequences(each):
                pass

    def _consequences(self, told: Entry) -> Iterator[Flowing]:
        match told:
            case WindowsReached(stream, path, value):
                for number in range(len(self._inputs[stream].source.partitions)):
                    yield from self._query.close(source_of(stream, number), compare(term(path), "<", value))
            case Announced(stream, partition, Accent(where, evolution)):
                yield from self._query.take(source_of(stream, partition), Change(items_of(where), evolution))
            case Announced(stream, partition, Punctuation(where)) if where is not None:
                yield from self._query.take(source_of(stream, partition), Closing(items_of(where)))
            case Announced(stream, partition, DeadLetter(doubts=doubts, reason=reason)):
                self._mistrusted[stream, partition].update({each.path: reason for each in doubts})

    # --- what goes out ----------------------------------------------------------------------------------------

    def _give(self, flowing: Iterable[Flowing], cause: Element | Event | None = None) -> None:
        """Write the output of the plan, caused by an element or by the end."""
        if self._ended is not None:
            return
        out = self._member.out
        try:
            for each in flowing:
                match each:
                    case Reading():
                        out.piece(serialize(each.written()))
                    case Change(where, evolution):
                        out.piece(accent_text(Accent(description_of(where), evolution, self._place)))
        except (Aborted, StreamError) as error:
            self._ended = self.aborted[self._member.key] = error.message
        for failure in self._query.drained():
            out.bury(DeadLetter(self._place, failure.message, _raw(cause), failure.code, self._member.name))

    # --- between epochs -----------------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """The state at the end of the epoch."""
        merge, waiting = self._merge.save()
        meta = {
            "operator": "plan",
            "merge": merge,
            "log": self._log.to_json(),
            "pace": self._pace.save(),
            "ended": self._ended,
            "place": [self._place.stream, self._place.partition, self._place.offset],
        }
        saved = self._query.save()
        self.held = sum(len(rows) - 1 for rows in saved.values())
        kept = [(way, json.dumps(row)) for way, rows in saved.items() for row in rows]
        columns = [[way for way, _ in kept], [row for _, row in kept]]
        self._put_cached(meta)
        return BranchState(meta, {"waiting": waiting, "kept": pa.table(columns, schema=_ROWS)})

    def _restore(self, state: BranchState) -> None:
        if state.meta["operator"] != "plan":
            raise StateError(f"the state of '{self._member.name}' is that of another kind of branch")
        self._merge.restore(state.meta["merge"], state.tables["waiting"])
        self._pace.restore(state.meta["pace"])
        self._ended, self._place = state.meta["ended"], Place(*state.meta["place"])
        self._log = Changelog.from_json(state.meta["log"])
        if not self._take_cached(state.meta):
            for each in self._log.entries:
                if isinstance(each, Announced):
                    self._merge.sources[each.stream, each.partition].vantage.take(each.event)
            self._replay()
        rows: dict[str, list[Any]] = {}
        for row in state.tables["kept"].to_pylist():
            rows.setdefault(row["operator"], []).append(json.loads(row["row"]))
        self._query.restore(rows)

    def _put_cached(self, meta: dict[str, Any]) -> None:
        """Cache the evolution of the plan for the next epoch in this process."""
        self._query.forget()
        vantages = {key: source.vantage for key, source in self._merge.sources.items()}
        cache.here.put(self._cache_key(meta), (self._query, self._mistrusted, vantages))

    def _take_cached(self, meta: dict[str, Any]) -> bool:
        """Take the cached plan of exactly these events, if there is one."""
        found = cache.here.take(self._cache_key(meta))
        if found is None:
            return False
        self._query, self._mistrusted, vantages = found
        for key, vantage in vantages.items():
            self._merge.sources[key].vantage = vantage
        return True

    def _cache_key(self, meta: dict[str, Any]) -> tuple[Any, ...]:
        """All that the operators' knowledge of evolution follows from."""
        return self._member.query, self._member.policy, self._promises, self._starts, meta["log"]["entries"]


def source_of(stream: str, partition: int) -> str:
    """The name of a partition in a plan."""
    return f"{stream}/{partition}"


def partitioned(plan: Plan, partitions: Mapping[str, int]) -> Plan:
    """The plan over the partitions of its streams, by their numbers; a stream is the Union of them (LAWS 1.4)."""
    match plan:
        case StreamSource(name):
            found = tuple(StreamSource(source_of(name, number)) for number in range(partitions[name]))
            return found[0] if len(found) == 1 else Apply(Union(len(found)), found)
        case Apply(operator, below):
            return Apply(operator, tuple(partitioned(each, partitions) for each in below))


def _raw(cause: Element | Event | None) -> str:
    match cause:
        case Element():
            return item_text(cause)
        case Accent() | Punctuation():
            return write(cause)[:LONGEST_RAW]
        case _:
            return ""
