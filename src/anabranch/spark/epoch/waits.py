"""What a run waits for: input that cannot be read yet, inputs that hold others up, and an epoch that does not end.

The first is the business of each source (`spark/intake/sources/`), the second follows from `branch/intake/merge.py`.
None of it is an error; but a user cannot tell a run that waits from one that hangs.
These functions only read sources, order logs and the newest manifest, and no epoch waits for them.

An epoch that is at work for very long is told of and not ended, for no time is too long on every machine.
Who reads of it can kill the process that hangs: its task is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from threading import Event, Thread

from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.sources import connector_of
from anabranch.spark.intake.sources.connector import Connector
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.stream.reading.source import Source

OVERLONG_SECONDS = 60.0
"""After how long an epoch is told of; then after twice that time, and so on."""
_MOST_BRANCHES = 100
"""The number of branches whose missing inputs are looked up; more would only repeat them."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a stream waits for, or holds up, and a hint for the user."""

    stream: str
    message: str
    hint: str


class Lookout:
    """Looks at the streams of one trunk, repeatedly; its connectors cache what they have read."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._connectors: dict[str, Connector] = {}

    def waits(self, sources: Iterable[Source], last: Manifest | None, plan: Plan | None) -> list[Wait]:
        """All that the trunk waits for, after its newest epoch."""
        found: list[Wait] = []
        for stream in sources:
            connector = self._connectors.get(stream.name)
            if connector is None or connector.source != stream:
                log = OrderLog.of(self._checkpoint, stream.logged_as) if connector is None else connector.log
                connector = self._connectors[stream.name] = connector_of(stream, log)
            connector.log.refresh()
            found += (Wait(stream.name, *reason) for reason in connector.waits(last))
        if last is not None and plan is not None:
            found += dict.fromkeys(_of_branches(last, plan))
        return found


def _of_branches(last: Manifest, plan: Plan) -> Iterator[Wait]:
    """For joins and merges: the inputs without a next element, for which other inputs wait (LAWS 1.2)."""
    asked = {each.branch: each for each in plan.subscriptions}
    partitions = {each.name: len(each.source.partitions) for each in plan.streams}
    behind = ((number, kept) for number, kept in last.states.items() if kept.waiting and number in asked)
    for number, kept in islice(behind, _MOST_BRANCHES):
        for stream in asked[number].streams:
            for partition in range(partitions.get(stream, 0)):
                key = f"{stream}/{partition}"
                if key not in kept.waiting:
                    others = ", ".join(f"'{each}'" for each in sorted(kept.waiting))
                    yield Wait(
                        stream,
                        f"what has come in {others} waits for '{key}', which may still bring something earlier",
                        "an element with a later time lets it go on, or a heartbeat",
                    )


@contextmanager
def told_if_overlong(epoch: int, warn: Callable[[str], None]) -> Iterator[None]:
    """Warn while an epoch is at work for very long."""
    ended = Event()
    Thread(target=_watch, args=(epoch, warn, ended), name="watch of an epoch", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _watch(epoch: int, warn: Callable[[str], None], ended: Event) -> None:
    passed, due = 0.0, OVERLONG_SECONDS
    while not ended.wait(due - passed):
        warn(
            f"epoch {epoch} has been at work for {due:.0f} s: its tasks are slow, or one hangs; "
            "a worker of Spark that hangs can be killed, and its task is run again"
        )
        passed, due = due, 2 * due
