"""A branch whose streams evolve (LAWS 4): the events of its streams, in the order of the merge, and what came of them.

Each event is told to the followers of the branch's queries (`runtime/evolution/follower.py`); the accents that come out
stand in the answers at that very place, and a query that cannot survive one is over, alone.
What a punctuation closes is answered before what it lets out.

As long as no event is about a path that a query looks at, the branch is *quiet*, and its columns go on as if streams
did not evolve.
Punctuations alone change nothing either, but count as cover later (LAWS 4.8), so they are remembered (`changelog.py`).

Cost: each follower hears an event once, and once more when the branch is opened by a process that did not have it last;
that one has kept what it left (`branch/cache.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from anabranch.algebra.accents.events import Announced
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch import cache
from anabranch.branch.evolution.changelog import Changelog, shown_at, starts_of
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Changed, Merge, StreamSignal
from anabranch.branch.members import Asker, BranchMember
from anabranch.branch.ports import InputStream, Start
from anabranch.language import ast
from anabranch.law.calls import PythonFunction
from anabranch.law.evolution.vantage import Vantage
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage, leads
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing, standing
from anabranch.stream.elements import Accent, Doubt, Punctuation
from anabranch.stream.path import Path


@dataclass(slots=True)
class Silence:
    """Where accents go that do not come out."""

    over: bool = False

    def announce(self, accents: Iterable[Accent | Doubt], *, json: bool = False) -> None:
        """Nothing is told of them."""


class Absorbed(Protocol):
    """A query whose answer stays in the units of its start, whatever becomes of its streams."""

    @property
    def query(self) -> ast.Query: ...

    @property
    def text(self) -> str: ...


@dataclass(slots=True)
class Absorbing:
    """Such a query, as far as it follows the evolution of its streams."""

    key: str
    standing: Standing
    policy: Policy
    registered: tuple[str, ...]
    sends: Literal[False] = False
    answers: Silence = field(default_factory=Silence)
    follower: Follower | None = None

    @staticmethod
    def of(member: BranchMember[Absorbed], functions: Mapping[str, PythonFunction]) -> Absorbing:
        asked = member.query
        return Absorbing(member.key, standing(asked.query, functions, asked.text), member.policy, tuple(functions))

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage:
        """What is known of its output."""
        return lineage_of(self.standing, self.registered, {name: each.root.namespaces for name, each in inputs.items()})


_Asker: TypeAlias = Asker | Absorbing


class Following:
    """What the queries of a branch know of their streams' evolution."""

    def __init__(self, askers: Sequence[_Asker], merge: Merge, taken: Callable[[], int]) -> None:
        """`taken` says how many items the branch has taken."""
        self.quiet = True
        """Whether no event was about a path that a query looks at."""
        self.aborted: dict[str, str] = {}
        """By key: why a query has ended, in this epoch."""
        self._askers = askers
        self._merge = merge
        self._streams = {source.stream.name: source.stream for source in merge.sources.values()}
        self._taken = taken
        self._log = Changelog()
        self._ended: dict[str, str] = {}
        self._followers: dict[tuple[Lineage, Policy, bool], Follower] = {}

    # --- events -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The branch begins: what is in force for a part of the items is shown to it first (LAWS 3.6)."""
        for shown in self._start(starts_of(self._streams.values())):
            self._give(self._tell(shown))

    def _start(self, starts: Mapping[Key, Start]) -> list[Announced]:
        """See late streams from where the branch began; gives what is shown there."""
        for key, start in starts.items():
            self._merge.sources[key].vantage = Vantage(start.evolution.copy())
            for path in start.evolution.altered():
                self._look(key[0], path)
        return shown_at(starts)

    def take(self, changed: Changed) -> None:
        """An accent, or what is left of a bad one."""
        self._hear(Announced(changed.stream.name, changed.partition, changed.change, self._taken()))

    def signal(self, signal: StreamSignal) -> None:
        """A punctuation, or a partition's end, of which nothing is said."""
        if signal.given is not None:
            self.punctuation(signal.stream.name, signal.partition, signal.given)

    def punctuation(self, stream: str, partition: int, given: Punctuation) -> None:
        """A punctuation as it was written; a heartbeat describes no items.

        How many items there were before it matters only where something may come of it.
        """
        if given.where is not None:
            self._hear(Announced(stream, partition, given, self._taken() if self._followers else 0))

    def _hear(self, announced: Announced) -> None:
        """Let an event have its consequences, and remember it."""
        came = self._tell(announced)
        self._give(came)
        if self._log.add(announced, came=any(came.values())):
            self._log.thin()

    def _give(self, came: Mapping[int, tuple[Accent | Doubt, ...]]) -> None:
        """Give everyone what comes out; who cannot go on is over."""
        for asker in self._askers:
            follower = asker.follower
            if follower is None or asker.answers.over:
                continue
            json = follower.lineage.gives_items and all(
                self._streams[each].is_json for each in follower.lineage.streams
            )
            asker.answers.announce(came.get(id(follower), ()), json=json)
            if follower.aborted is not None:
                self.aborted[asker.key] = self._ended[asker.key] = follower.aborted
                asker.answers.over = True

    def _tell(self, announced: Announced) -> Mapping[int, tuple[Accent | Doubt, ...]]:
        """Tell the followers; gives what comes out of each, by its identity."""
        if isinstance(announced.event, Punctuation) and not self._followers:
            return {}
        self._open()
        for path in announced.paths:
            self._look(announced.stream, path)
        return {id(each): each.hear(announced) for each in self._followers.values()}

    def _open(self) -> None:
        """Something changes for the first time: from now on there are followers."""
        if self._followers:
            return
        sources = {name: each.source for name, each in self._streams.items()}
        for asker in self._askers:
            lineage, policy, sends = kind = asker.lineage(self._streams), asker.policy, asker.sends
            if kind not in self._followers:
                self._followers[kind] = Follower(lineage, policy, sources, sends=sends)
            asker.follower = self._followers[kind]
        for entry in self._log.entries:
            assert isinstance(entry, Announced), "only plans are told what windows have reached"
            for each in self._followers.values():
                each.hear(entry)

    def _look(self, stream: str, path: Path) -> None:
        """An event is about a path; the times of items decide the order for all."""
        self._open()
        time, lineages = self._streams[stream].source.time, (each.lineage for each in self._followers.values())
        is_time = time is not None and leads(time, path)
        self.quiet = self.quiet and not is_time and not any(each.looks_at(stream, path) for each in lineages)

    # --- between epochs -----------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """What must be remembered; the epoch is over."""
        meta = {"log": self._log.to_json(), "ended": self._ended}
        if self._followers:
            vantages = {key: source.vantage for key, source in self._merge.sources.items()}
            followers = [asker.follower for asker in self._askers]
            cache.here.put(self._ground(meta), (self._log, self.quiet, vantages, followers))
        return meta

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave, of an earlier epoch; nothing is written again."""
        self._ended = dict(meta["ended"])
        for asker in self._askers:
            asker.answers.over = asker.key in self._ended
        if self._pick_up(meta):
            return
        for shown in self._start(starts_of(self._streams.values())):
            self._tell(shown)
        restored = Changelog.from_json(meta["log"])
        for each in restored.entries:
            assert isinstance(each, Announced), "only plans are told what windows have reached"
            self._merge.sources[each.stream, each.partition].vantage.take(each.event)
            self._tell(each)
            self._log.entries.append(each)
        self._log = restored

    def _pick_up(self, meta: dict[str, Any]) -> bool:
        """Go on with what was left in this process behind just this state, if it was."""
        left = cache.here.take(self._ground(meta))
        if left is None:
            return False
        self._log, self.quiet, vantages, followers = left
        for key, vantage in vantages.items():
            self._merge.sources[key].vantage = vantage
        for asker, follower in zip(self._askers, followers, strict=True):
            asker.follower = follower
            self._followers[follower.lineage, asker.policy, asker.sends] = follower
        return True

    def _ground(self, meta: dict[str, Any]) -> tuple[Any, ...]:
        """All that the followers and vantages follow from."""
        promises = {key: Evolution.of(source.stream.source).domains for key, source in self._merge.sources.items()}
        asked = [(each.key, each.standing.text, each.policy, each.registered) for each in self._askers]
        return asked, promises, starts_of(self._streams.values()), meta
