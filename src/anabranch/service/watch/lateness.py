"""Why a run is late: causes by name, worst first, with their numbers and with what one can do about them.

Each cause is a function of what is known at a moment (`Situation`), so it is tried without a run.
What is usual is no cause: an epoch that is at work, a few bytes that came a moment ago, a query by the law that keeps
up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from anabranch.service.watch.activity import PHASES, Figures, phases_of
from anabranch.service.watch.holdings import BranchHolding, Holdings
from anabranch.service.watch.lag import UNKNOWN, Lag, StreamLag
from anabranch.site_work import RunState
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.epoch.waits import Wait
from anabranch.spark.plan.epoch_plan import Plan

What: TypeAlias = Literal["stream", "partition", "branch", "sink", "epoch"]

MOST_CAUSES = 50
_LATE_SECONDS = 2.0
"""Data that waits no longer than this is not late."""
_SLOW_MS = 300
"""Epochs that take no longer are not slow, whatever they spend their time with."""
_STUCK_SECONDS = 10.0
_RECENT_SECONDS = 60.0
_MANY_WAITING = 1_000
_MUCH_HELD, _MUCH_BYTES = 1_000_000, 1 << 30
_PARSED_SHARE, _PARSED_ITEMS = 0.05, 1_000
_MOST_BRANCHES = 1_000


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something is late."""

    what: What
    name: str
    message: str
    hint: str
    numbers: Mapping[str, float]
    seconds: float
    """How late it makes the run, roughly, to rank it."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of a run at a moment."""

    state: RunState
    figures: Figures
    lags: Mapping[str, StreamLag]
    waits: Sequence[Wait]
    """What sources wait for, and have for a while."""
    holdings: Holdings
    plan: Plan | None
    epochs_behind: Mapping[str, int]
    """By kind of sink."""

    @property
    def recent(self) -> list[Metrics]:
        """The epochs of the last minute, the newest at least where it is not old."""
        now = self.figures.at
        return [each for each in self.figures.epochs if each.began + each.total_ms / 1_000 > now - _RECENT_SECONDS]

    def lag(self, stream: str) -> Lag:
        """The lag of a stream, where it is known."""
        return self.lags.get(stream, UNKNOWN).whole

    @property
    def waited(self) -> float:
        """The longest time for which data waits to be read."""
        return max((each.whole.seconds or 0.0 for each in self.lags.values() if each.whole.unread), default=0.0)


def lateness(now: Situation) -> list[Cause]:
    """All causes, worst first."""
    found = [cause for each in _CAUSES for cause in each(now)]
    return sorted(found, key=lambda cause: -cause.seconds)[:MOST_CAUSES]


# --- the trunk --------------------------------------------------------------------------------------------------------


def _run(now: Situation) -> Iterator[Cause]:
    """A run that is not at work."""
    match now.state:
        case "failed":
            hint = "the log says why; start it again when that is mended"
            yield Cause("epoch", "run", "the run has failed", hint, {}, 1e9)
        case "starting":
            yield Cause("epoch", "run", "the run is starting", "epochs begin when it is ready", {}, 1e6)
        case "stopping":
            yield Cause("epoch", "run", "the run is stopping", "what is left is read by the next run", {}, 1e6)


def _stuck(now: Situation) -> Iterator[Cause]:
    """Data waits, and no epoch has ended for long."""
    if now.state != "ready" or now.waited < _STUCK_SECONDS:
        return
    last = now.figures.epochs[-1] if now.figures.epochs else None
    ended = None if last is None else last.began + last.total_ms / 1_000
    quiet = now.waited if ended is None else min(now.waited, now.figures.at - ended)
    usual = sum(each.total_ms for each in now.figures.epochs) / 1_000 / max(1, len(now.figures.epochs))
    if quiet >= max(_STUCK_SECONDS, 3 * usual):
        yield Cause(
            "epoch",
            f"epoch {last.epoch + 1 if last else 0}",
            f"no epoch has ended for {quiet:.0f} s, and data waits",
            "one is at work for long, or waits for a source; the log tells of waits"
            if last
            else "the first of a run takes longer: Spark starts its workers, and queries are compiled",
            {"seconds": round(quiet, 1)} | ({"usual_seconds": round(usual, 3)} if last else {}),
            quiet,
        )


def _phases(now: Situation) -> Iterator[Cause]:
    """A phase that takes most of the time of slow epochs."""
    recent = now.recent
    total = sum(each.total_ms for each in recent)
    if not recent or total / len(recent) < _SLOW_MS:
        return
    spent: Counter[str] = Counter(dict.fromkeys(PHASES, 0))
    for each in recent:
        spent.update({phase.name: phase.ms for phase in phases_of(each)})
    name, ms = spent.most_common(1)[0]
    if ms < total / 2 or (name == "tasks" and now.waited < _LATE_SECONDS):
        return  # to work on items is what epochs are for
    mean = total / len(recent)
    yield Cause(
        "epoch",
        name,
        f"'{name}' takes {ms / total:.0%} of the time of epochs, which take {_milliseconds(mean)} each",
        _PHASE_HINTS[name],
        {"phase_ms": round(ms / len(recent)), "epoch_ms": round(mean), "epochs": len(recent)},
        mean / 1_000,
    )


_PHASE_HINTS = {
    "plan": "subscriptions that come and go make plans; register many at once",
    "tasks": "give Spark more cores, or see which queries leave the fast path",
    "publish": "the checkpoint's disk or store is slow",
    "deliver": "a sink is slow: its disk, or the size of its answers",
}


# --- streams ----------------------------------------------------------------------------------------------------------


def _streams(now: Situation) -> Iterator[Cause]:
    """Streams of which more waits than a moment's worth."""
    for name in now.lags:
        lag = now.lag(name)
        if not lag.unread or (lag.seconds or 0.0) < _LATE_SECONDS:
            continue
        unit = "bytes" if lag.bytes is not None else "messages"
        numbers = {unit: lag.unread, "seconds": round(lag.seconds or 0.0, 1)}
        waits = f"{lag.unread:,} {unit} of '{name}' wait to be read, the oldest for {lag.seconds or 0.0:.0f} s"
        if lag.growth > 0:
            numbers[f"grows_by_{unit}_per_second"] = round(lag.growth, 1)
            message = f"{waits}, and they become more: {lag.growth:,.0f} {unit} a second"
            hint = "it brings more than is read: give Spark more cores, or see which queries leave the fast path"
        elif lag.growth < 0:
            left = lag.unread / -lag.growth
            numbers["caught_up_in_seconds"] = round(left, 1)
            message, hint = f"{waits}; they become fewer", f"it will have caught up in about {left:,.0f} s"
        else:
            message, hint = (
                waits,
                "an epoch is at work on them, or the run waits for something else, which is told then",
            )
        yield Cause("stream", name, message, hint, numbers, (lag.seconds or 0.0) * (2 if lag.growth > 0 else 1))


def _sources(now: Situation) -> Iterator[Cause]:
    """Sources that cannot be read on: of topics always, of others where something is unread."""
    topics = {each.name for each in now.plan.streams if each.source.topic is not None} if now.plan else set()
    for each in now.waits:
        lag = now.lag(each.stream)
        if lag.unread or each.stream in topics:
            numbers = {"bytes": float(lag.bytes)} if lag.bytes else {}
            yield Cause("stream", each.stream, each.message, each.hint, numbers, lag.seconds or 1.0)


def _fast_path(now: Situation) -> Iterator[Cause]:
    """Streams whose items or subscriptions leave the fast path while epochs are slow."""
    tasks = [each.job_ms for each in now.recent]
    is_slow = bool(tasks) and sum(tasks) / len(tasks) >= _SLOW_MS
    if not is_slow and now.waited < _LATE_SECONDS:
        return
    cost = sum(tasks) / len(tasks) / 2_000 if tasks else 0.0
    for name in now.figures.streams:
        lately = now.figures.lately(name)
        if not lately.items:
            continue
        if lately.by_law:
            both = lately.by_law + lately.in_columns
            why = ", ".join(f"{reason} ({count:,})" for reason, count in islice(lately.reasons.items(), 3))
            yield Cause(
                "stream",
                name,
                f"{lately.by_law:,} of {both:,} subscriptions to items of '{name}' are answered by the law: {why}",
                "an item takes the law perhaps a hundred times as long; 'explain' tells how to write such a query",
                {"by_law": lately.by_law, "in_columns": lately.in_columns, "items": lately.items},
                cost,
            )
        parsed = lately.by_parser / lately.items
        if parsed > _PARSED_SHARE and lately.items > _PARSED_ITEMS:
            yield Cause(
                "stream",
                name,
                f"{parsed:.0%} of the items of '{name}' do not look like the others, and are parsed one by one",
                "comments, or parts that few items have; a schema of one kind of item is read in columns",
                {"parsed_items": lately.by_parser, "items": lately.items},
                cost * parsed,
            )


# --- branches and sinks -----------------------------------------------------------------------------------------------


def _partitions(now: Situation) -> Iterator[Cause]:
    """Partitions without a next element, for which others wait (LAWS 1.2)."""
    if now.plan is None:
        return
    counts = {each.name: len(each.source.partitions) for each in now.plan.streams}
    held: Counter[str] = Counter()
    branches: Counter[str] = Counter()
    others: dict[str, set[str]] = {}
    for each in islice(_waiting(now.holdings), _MOST_BRANCHES):
        for stream in now.plan.by_name[each.names[0]].streams if each.names[0] in now.plan.by_name else ():
            for number in range(counts.get(stream, 0)):
                key = f"{stream}/{number}"
                if key not in each.waiting:
                    held[key] += sum(each.waiting.values())
                    branches[key] += 1
                    others.setdefault(key, set()).update(each.waiting)
    for key, waiting in held.items():
        named = ", ".join(f"'{each}'" for each in sorted(others[key])[:3])
        many = "branch" if branches[key] == 1 else "branches"
        yield Cause(
            "partition",
            key,
            f"{waiting:,} items of {named} wait for '{key}', which may still bring something earlier",
            "an element with a later time lets them go on, or a heartbeat: heartbeat = SECONDS for the stream",
            {"waiting_items": waiting, many: branches[key]},
            60.0 + waiting / 1_000,
        )


def _waiting(holdings: Holdings) -> Iterator[BranchHolding]:
    return (each for each in holdings.branches if each.waiting and each.names)


def _branches(now: Situation) -> Iterator[Cause]:
    """Branches with very many items that wait, or that are held."""
    for each in now.holdings.branches:
        waiting = sum(each.waiting.values())
        if waiting >= _MANY_WAITING:
            message = f"{waiting:,} items wait in the {each.kind} branch of {_members(each)}, for another of its inputs"
            hint = "they lie on the disk until the input that is behind has caught up"
            yield Cause("branch", each.name, message, hint, {"waiting_items": waiting}, 50.0 + waiting / 1_000)
        elif each.held >= _MUCH_HELD or each.bytes >= _MUCH_BYTES:
            message = f"the {each.kind} branch of {_members(each)} holds {each.held:,} items and panes"
            hint = "smaller windows or fewer groups hold less; what grows without end, 'explain' tells"
            yield Cause("branch", each.name, message, hint, {"held": each.held, "bytes": each.bytes}, 0.5)


def _members(branch: BranchHolding) -> str:
    return f"'{branch.name}'" if branch.count <= 1 else f"'{branch.name}' and {branch.count - 1:,} more"


def _sinks(now: Situation) -> Iterator[Cause]:
    """Sinks that have not got what was committed."""
    for kind, behind in now.epochs_behind.items():
        if behind > 1:
            hint = "brokers do not answer, or are slow" if kind == "kafka" else "its disk or store is slow"
            message = f"a sink of the kind '{kind}' has not got the newest {behind:,} epochs"
            yield Cause("sink", kind, message, hint, {"epochs": behind}, float(behind))


def _milliseconds(amount: float) -> str:
    return f"{amount / 1_000:.1f} s" if amount >= 1_000 else f"{amount:.0f} ms"


_CAUSES: tuple[Callable[[Situation], Iterator[Cause]], ...] = (
    _run,
    _stuck,
    _streams,
    _sources,
    _partitions,
    _branches,
    _sinks,
    _phases,
    _fast_path,
)
