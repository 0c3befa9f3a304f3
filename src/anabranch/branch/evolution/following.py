"""A branch whose streams evolve (LAWS 4): the events of its streams, in merge order, and the accents of its answers.

Each event goes to the followers of the branch's queries (`runtime/evolution/follower.py`); accents that come out stand
in the answers at that place, and a query that cannot survive one ends, alone.
Windows that a punctuation closes are answered before the accents that it lets out.

As long as no event is about a path that a query reads, the branch is *quiet*, and its columns work as if streams did
not evolve.
Punctuations alone change nothing, but count as cover later (LAWS 4.8), so they are logged (`changelog.py`).

Cost: each follower gets an event once, and once more when the branch is opened in another process than last time; the
same process has cached the followers (`branch/cache.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from anabranch.algebra.accents.events import Announced
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch import cache
from anabranch.branch.evolution.changelog import Changelog, Entry, shown_at, starts_of
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Changed, Merge, StreamSignal
from anabranch.branch.members import Asker, BranchMember
from anabranch.branch.ports import InputStream, Start, json_items
from anabranch.branch.remote.lines import EventMark, mark_text
from anabranch.language import ast
from anabranch.law.calls import PythonFunction
from anabranch.law.evolution.vantage import Vantage
from anabranch.law.history.display_units import alters_in
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage, leads
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing, standing
from anabranch.runtime.units import AnswerPiece
from anabranch.stream.elements import Accent, Alter, Doubt, Punctuation
from anabranch.stream.path import Path


@dataclass(slots=True)
class CollectedAlters:
    """Takes the accents of a display, which tells alters and no others."""

    over: bool = False
    alters: list[Alter] = field(default_factory=list)

    def announce(self, accents: Iterable[Accent | Doubt], *, json: bool = False) -> None:
        """Collect the alters among some accents."""
        self.alters += alters_in(accents)

    def take(self) -> tuple[Alter, ...]:
        """The alters since the last call."""
        found, self.alters = tuple(self.alters), []
        return found


@dataclass(slots=True)
class IgnoredAccents:
    """Takes the accents of a query that lets none out."""

    over: bool = False

    def announce(self, accents: Iterable[Accent | Doubt], *, json: bool = False) -> None:
        """Write nothing."""


class Absorbed(Protocol):
    """A query whose answer stays in the units of its start, however its streams evolve."""

    @property
    def query(self) -> ast.Query: ...

    @property
    def text(self) -> str: ...


@dataclass(slots=True)
class Absorbing:
    """Such a query, as it follows the evolution of its streams."""

    key: str
    standing: Standing
    policy: Policy
    registered: tuple[str, ...]
    sends: Literal[False] = False
    passes: Literal[False] = False
    answers: IgnoredAccents = field(default_factory=IgnoredAccents)
    follower: Follower | None = None

    @staticmethod
    def of(member: BranchMember[Absorbed], functions: Mapping[str, PythonFunction]) -> Absorbing:
        asked = member.query
        return Absorbing(member.key, standing(asked.query, functions, asked.text), member.policy, tuple(functions))

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage:
        """The lineage of its results."""
        return lineage_of(self.standing, self.registered, {name: each.root.namespaces for name, each in inputs.items()})


@dataclass(slots=True)
class Showing:
    """A query over edited streams, whose display changes its units as a whole (LAWS 4.9 e)."""

    key: str
    standing: Standing
    policy: Policy
    registered: tuple[str, ...]
    sends: Literal[False] = False
    passes: Literal[False] = False
    answers: CollectedAlters = field(default_factory=CollectedAlters)
    follower: Follower | None = None

    @staticmethod
    def of(member: BranchMember[Absorbed], functions: Mapping[str, PythonFunction]) -> Showing:
        asked = member.query
        return Showing(member.key, standing(asked.query, functions, asked.text), member.policy, tuple(functions))

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage:
        """The lineage of its display."""
        roots = {name: each.root.namespaces for name, each in inputs.items()}
        return lineage_of(self.standing, self.registered, roots, is_display=True)


_Asker: TypeAlias = Asker | Absorbing | Showing
_FollowerKey: TypeAlias = tuple[Lineage, Policy, bool, bool]
"""What tells followers apart: also whether tuples are sent, and events passed on between them."""


class Following:
    """The evolution of a branch's streams, for its queries."""

    def __init__(self, askers: Sequence[_Asker], merge: Merge, taken: Callable[[], int]) -> None:
        """`taken` gives the number of items that the branch has taken."""
        self.quiet = True
        """Whether no event was about a path that a query reads."""
        self.aborted: dict[str, str] = {}
        """By key: why a query ended, in this epoch."""
        self._askers = askers
        self._merge = merge
        self._streams = {source.stream.name: source.stream for source in merge.sources.values()}
        self._taken = taken
        self._log = Changelog()
        self._ended: dict[str, str] = {}
        self._followers: dict[_FollowerKey, Follower] = {}

    # --- events -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the branch: accents in force for a part of the items are shown first (LAWS 3.6)."""
        for shown in self._start(starts_of(self._streams.values())):
            self._give(self._tell(shown))

    def _start(self, starts: Mapping[Key, Start]) -> list[Announced]:
        """Start late streams where the branch began; gives the accents shown there."""
        for key, start in starts.items():
            self._merge.sources[key].vantage = Vantage(start.evolution.copy())
            for path in start.evolution.altered():
                self._note_path(key[0], path)
        return shown_at(starts)

    def take(self, changed: Changed) -> None:
        """Apply an accent, or the doubts of a bad one."""
        self._apply(Announced(changed.stream.name, changed.partition, changed.change, self._taken()))

    def signal(self, signal: StreamSignal) -> None:
        """Apply a punctuation; the end of a partition changes nothing."""
        if signal.given is not None:
            self.punctuation(signal.stream.name, signal.partition, signal.given)

    def punctuation(self, stream: str, partition: int, given: Punctuation) -> None:
        """Apply a punctuation as written; a heartbeat describes no items.

        The number of items before it matters only where an accent may come out.
        """
        if given.where is not None:
            self._apply(Announced(stream, partition, given, self._taken() if self._followers else 0))

    def _apply(self, announced: Announced) -> None:
        """Apply an event, and log it."""
        was_quiet = self.quiet
        came = self._tell(announced)
        self._give(came)
        self._pass_on([*(self._log.entries if was_quiet else ()), announced])
        if self._log.add(announced, let_out=any(came.values())):
            self._log.thin()

    def _pass_on(self, events: Iterable[Entry]) -> None:
        """Write events between the tuples that are sent, from the first on that is about a path that they need."""
        for asker in self._askers:
            if isinstance(asker, Asker) and asker.passes and not self.quiet:
                assert asker.follower is not None, "an event that matters is heard by a follower"
                inputs = asker.follower.lineage.streams
                for each in events:
                    assert isinstance(each, Announced), "only plans are told what windows have reached"
                    input = next(number for number, names in enumerate(inputs) if each.stream in names)
                    text = mark_text(EventMark(replace(each, stream=str(input))))
                    asker.answers.write(AnswerPiece(text, begins=False, ends=False))
                asker.latest = self._taken()

    def _give(self, came: Mapping[int, tuple[Accent | Doubt, ...]]) -> None:
        """Write the accents that come out; a query that cannot go on ends."""
        for asker in self._askers:
            follower = asker.follower
            if follower is None or asker.answers.over:
                continue
            form = follower.lineage.outputs.form(json_items(self._streams.values()))
            asker.answers.announce(came.get(id(follower), ()), json=form == "json")
            if follower.aborted is not None:
                self.aborted[asker.key] = self._ended[asker.key] = follower.aborted
                asker.answers.over = True

    def _tell(self, announced: Announced) -> Mapping[int, tuple[Accent | Doubt, ...]]:
        """Pass an event to the followers; gives the accents of each, by its identity."""
        if isinstance(announced.event, Punctuation) and not self._followers:
            return {}
        self._open()
        for path in announced.paths:
            self._note_path(announced.stream, path)
        return {id(each): each.hear(announced) for each in self._followers.values()}

    def _open(self) -> None:
        """Create the followers, at the first change."""
        if self._followers:
            return
        sources = {name: each.source for name, each in self._streams.items()}
        for asker in self._askers:
            lineage, policy, sends, passes = kind = (
                asker.lineage(self._streams),
                asker.policy,
                asker.sends,
                asker.passes,
            )
            if kind not in self._followers:
                self._followers[kind] = Follower(lineage, policy, sources, sends=sends, passes=passes)
            asker.follower = self._followers[kind]
        for entry in self._log.entries:
            assert isinstance(entry, Announced), "only plans are told what windows have reached"
            for each in self._followers.values():
                each.hear(entry)

    def _note_path(self, stream: str, path: Path) -> None:
        """Note that an event is about a path; a time path concerns all queries, for it decides the order."""
        self._open()
        time, lineages = self._streams[stream].source.time, (each.lineage for each in self._followers.values())
        is_time = time is not None and leads(time, path)
        self.quiet = self.quiet and not is_time and not any(each.looks_at(stream, path) for each in lineages)

    # --- between epochs -----------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """The state at the end of the epoch."""
        meta = {"log": self._log.to_json(), "ended": self._ended}
        if self._followers:
            vantages = {key: source.vantage for key, source in self._merge.sources.items()}
            followers = [asker.follower for asker in self._askers]
            cache.here.put(self._cache_key(meta), (self._log, self.quiet, vantages, followers))
        return meta

    def restore(self, meta: dict[str, Any]) -> None:
        """Restore from `save` of an earlier epoch; nothing is written again."""
        self._ended = dict(meta["ended"])
        for asker in self._askers:
            asker.answers.over = asker.answers.over or asker.key in self._ended
        if not self._take_cached(meta):
            self._replay(meta)
        for asker in self._askers:
            if isinstance(asker, Asker):
                asker.latest = self._latest() if asker.passes and not self.quiet else None

    def _latest(self) -> int:
        """The number of items that had been taken at the latest event."""
        return max(each.taken for each in self._log.entries if isinstance(each, Announced))

    def _replay(self, meta: dict[str, Any]) -> None:
        """Hear all events again."""
        for shown in self._start(starts_of(self._streams.values())):
            self._tell(shown)
        restored = Changelog.from_json(meta["log"])
        for each in restored.entries:
            assert isinstance(each, Announced), "only plans are told what windows have reached"
            self._merge.sources[each.stream, each.partition].vantage.take(each.event)
            self._tell(each)
            self._log.entries.append(each)
        self._log = restored

    def _take_cached(self, meta: dict[str, Any]) -> bool:
        """Take the cached followers of exactly this state, if there are any."""
        left = cache.here.take(self._cache_key(meta))
        if left is None:
            return False
        self._log, self.quiet, vantages, followers = left
        for key, vantage in vantages.items():
            self._merge.sources[key].vantage = vantage
        for asker, follower in zip(self._askers, followers, strict=True):
            asker.follower = follower
            self._followers[follower.lineage, asker.policy, asker.sends, asker.passes] = follower
        return True

    def _cache_key(self, meta: dict[str, Any]) -> tuple[Any, ...]:
        """All that followers and vantages follow from."""
        promises = {key: Evolution.of(source.stream.source).domains for key, source in self._merge.sources.items()}
        asked = [(each.key, each.standing.text, each.policy, each.registered) for each in self._askers]
        return asked, promises, starts_of(self._streams.values()), meta
