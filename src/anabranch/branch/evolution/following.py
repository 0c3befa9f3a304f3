"""A branch whose streams evolve (LAWS 4): what was said of items, in the order of the merge, and what came of it.

Each saying is told to the followers of the branch's queries; the accents that come out stand in the answers at that
very place, and a query that cannot survive one is over, alone.
What a punctuation closes is answered before what it lets out.

As long as nothing was said of a path that a query looks at, the branch is *quiet*, and its columns go on as if streams
did not evolve.
Punctuations alone change nothing either, but count as cover later (LAWS 4.8), so they are remembered; one that says
more makes those before it superfluous, as long as nothing came of them.

Cost: each follower hears a saying once, and once more when the branch is opened by a process that did not have it last;
that one has kept what it left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from anabranch.algebra.accents.sets import Domains
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.evolution.changelog import Event, Key, Said, begun, begun_to_json, is_superfluous
from anabranch.branch.evolution.follower import Follower
from anabranch.branch.intake.merge import Changed, Merge, StreamSignal
from anabranch.branch.ports import InputStream, Start
from anabranch.law.evolution.vantage import Vantage
from anabranch.runtime.evolution.lineage import Lineage, leads
from anabranch.runtime.standing import Standing
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Punctuation
from anabranch.stream.path import Path


class Told(Protocol):
    """Takes the accents of an answer."""

    over: bool

    def announce(self, accents: Iterable[Accent | Doubt]) -> None: ...


class Hearer(Protocol):
    """One who asks, as far as it follows what was said."""

    follower: Follower | None

    @property
    def key(self) -> str: ...

    @property
    def standing(self) -> Standing: ...

    @property
    def policy(self) -> Policy: ...

    @property
    def registered(self) -> tuple[str, ...]: ...

    @property
    def sends(self) -> bool: ...

    @property
    def answers(self) -> Told: ...

    def lineage(self, inputs: Mapping[str, InputStream]) -> Lineage: ...


class Taken(Protocol):
    """Knows how many items a branch took."""

    @property
    def taken(self) -> int: ...


COMPARED = 64
"""The punctuations before a new one that it is compared with."""


class Following:
    """What the queries of a branch know of their streams' evolution."""

    def __init__(self, askers: Sequence[Hearer], merge: Merge, shelf: Taken) -> None:
        self.quiet = True
        """Whether nothing was said of a path that a query looks at."""
        self.aborted: dict[str, str] = {}
        """By key: why a query has ended, in this epoch."""
        self._askers = askers
        self._merge = merge
        self._shelf = shelf
        self._said: list[Said] = []
        self._settled = 0
        """So many of the sayings are there for good."""
        self._begun: list[Any] = []
        """Where late streams are seen from, as it is kept."""
        self._ended: dict[str, str] = {}
        self._followers: dict[tuple[Lineage, Policy, bool], Follower] = {}

    # --- what is said -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The branch begins: what is in force for a part of the items is shown to it first (LAWS 3.6)."""
        starts = begun((source.stream for source in self._merge.sources.values()), None)
        self._begun = begun_to_json(starts)
        for shown in self._start(starts):
            self._give(self._told(shown))

    def _start(self, starts: Mapping[Key, Start]) -> list[Said]:
        """See late streams from where the branch began; gives what is shown there."""
        shown: list[Said] = []
        for key, start in starts.items():
            self._merge.sources[key].vantage = Vantage(start.evolution)
            for path in start.evolution.altered():
                self._look(key[0], path)
            shown += (Said(*key, 0, each) for each in start.shown)
        return shown

    def take(self, changed: Changed) -> None:
        """An accent, or what is left of a bad one."""
        self._hear(Said(changed.stream.name, changed.partition, self._shelf.taken, changed.change))

    def signal(self, signal: StreamSignal) -> None:
        """A punctuation, or a partition's end, of which nothing is said."""
        if signal.given is not None:
            self.punctuation(signal.stream.name, signal.partition, signal.given)

    def punctuation(self, stream: str, partition: int, given: Punctuation) -> None:
        """A punctuation as it was written; a heartbeat describes no items.

        How many items there were before it matters only where something may come of it.
        """
        if given.where is not None:
            self._hear(Said(stream, partition, self._shelf.taken if self._followers else 0, given))

    def _hear(self, said: Said) -> None:
        """Let a saying have its consequences."""
        came = self._told(said)
        self._give(came)
        self._remember(said, lasting=any(came.values()) or not isinstance(said.event, Punctuation))

    def _give(self, came: Mapping[int, tuple[Accent | Doubt, ...]]) -> None:
        """Give everyone what comes out; who cannot go on is over."""
        for asker in self._askers:
            follower = asker.follower
            if follower is None or asker.answers.over:
                continue
            asker.answers.announce(came.get(id(follower), ()))
            if follower.aborted is not None:
                self.aborted[asker.key] = self._ended[asker.key] = follower.aborted
                asker.answers.over = True

    def _told(self, said: Said) -> Mapping[int, tuple[Accent | Doubt, ...]]:
        """Tell the followers; gives what comes out of each, by its identity."""
        if isinstance(said.event, Punctuation) and not self._followers:
            return {}
        self._open()
        for path in _paths(said.event):
            self._look(said.stream, path)
        return {id(each): each.hear(said) for each in self._followers.values()}

    def _open(self) -> None:
        """Something changes for the first time: from now on there are followers."""
        if self._followers:
            return
        inputs = {source.stream.name: source.stream for source in self._merge.sources.values()}
        for asker in self._askers:
            lineage, policy, sends = kind = asker.lineage(inputs), asker.policy, asker.sends
            if kind not in self._followers:
                self._followers[kind] = Follower(lineage, policy, inputs, sends=sends)
            asker.follower = self._followers[kind]
        for said in self._said:
            for each in self._followers.values():
                each.hear(said)

    def _look(self, stream: str, path: Path) -> None:
        """Something is said of a path; the times of items decide the order for all."""
        self._open()
        times = (source.stream.time for (name, _), source in self._merge.sources.items() if name == stream)
        timed = any(time is not None and leads(time, path) for time in times)
        if timed or any(each.reads(stream, path) for each in self._followers.values()):
            self.quiet = False

    # --- what is remembered -----------------------------------------------------------------------------------

    def _remember(self, said: Said, *, lasting: bool) -> None:
        first = max(self._settled, len(self._said) - COMPARED)
        if lasting:
            self._settled = len(self._said) + 1
        else:
            self._said[first:] = [each for each in self._said[first:] if not is_superfluous(each, said)]
        self._said.append(said)

    def save(self) -> dict[str, Any]:
        meta = {
            "said": [each.json for each in self._said],
            "settled": self._settled,
            "begun": self._begun,
            "ended": self._ended,
        }
        if self._followers:
            followers = {_asked(asker): asker.follower for asker in self._askers if asker.follower is not None}
            vantages = {key: source.vantage for key, source in self._merge.sources.items()}
            _leave(_Left(meta, self._promises(), self._said, followers, vantages, self.quiet))
        return meta

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave, of an earlier epoch; nothing is written again."""
        self._begun, self._settled, self._ended = meta["begun"], meta["settled"], dict(meta["ended"])
        for asker in self._askers:
            asker.answers.over = asker.key in self._ended
        left = _pick_up(meta, self._promises(), list(map(_asked, self._askers)))
        if left is not None:
            self._go_on(left)
            return
        streams = (source.stream for source in self._merge.sources.values())
        for shown in self._start(begun(streams, self._begun)):
            self._told(shown)
        for each in map(Said.from_json, meta["said"]):
            self._merge.sources[each.stream, each.partition].vantage.take(each.event)
            self._told(each)
            self._said.append(each)

    def _promises(self) -> dict[Key, Domains]:
        """What the streams are and promise, as far as followers go by it."""
        return {key: source.stream.evolution().domains for key, source in self._merge.sources.items()}

    def _go_on(self, left: _Left) -> None:
        self._said, self.quiet = left.said, left.quiet
        for key, vantage in left.vantages.items():
            self._merge.sources[key].vantage = vantage
        for asker in self._askers:
            asker.follower = follower = left.followers[_asked(asker)]
            self._followers[follower.lineage, asker.policy, asker.sends] = follower


_Asked: TypeAlias = tuple[str, str, Policy, tuple[str, ...]]
"""What a follower depends on beside the streams."""


@dataclass(frozen=True, slots=True)
class _Left:
    """What a branch left in this process when its epoch was over, beside its state."""

    meta: dict[str, Any]
    promises: Mapping[Key, Domains]
    said: list[Said]
    followers: Mapping[_Asked, Follower]
    vantages: Mapping[Key, Vantage]
    quiet: bool


_left: list[_Left] = []
_MOST_LEFT = 64


def _leave(left: _Left) -> None:
    _left.append(left)
    del _left[:-_MOST_LEFT]


def _pick_up(meta: dict[str, Any], promises: Mapping[Key, Domains], asked: Collection[_Asked]) -> _Left | None:
    """What a branch left with just this state, for nobody else any more."""
    for number, left in enumerate(_left):
        if left.followers.keys() >= set(asked) and left.promises == promises and left.meta == meta:
            return _left.pop(number)
    return None


def _asked(asker: Hearer) -> _Asked:
    return asker.key, asker.standing.text, asker.policy, asker.registered


def _paths(event: Event) -> list[Path]:
    """The paths of which something is said."""
    match event:
        case Accent(_, evolution):
            return [evolution.path]
        case DeadLetter(doubts=doubts):
            return [each.path for each in doubts]
        case _:
            return []
