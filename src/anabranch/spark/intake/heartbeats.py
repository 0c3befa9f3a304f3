"""Heartbeats that a run sends into idle streams (LAWS 1.3).

The survey sends them, where a stream declares `heartbeat`, into each partition that was idle for so long.
The time of a heartbeat is part of its epoch's offset, which is durable before the epoch runs; from then on it is an
element of the partition, and an epoch that is run again reads the same one.
Clocks decide when a heartbeat is sent, and never what was sent.

In a stream without a declared time, a heartbeat has the moment at which it is sent, like any element that arrives then.
In a stream with a declared time, or with the timestamps of messages, it continues from the latest time of the stream,
of an item or an earlier heartbeat, by the seconds since then; so an idle partition follows the others, and an idle
stream its own clock.
Tasks report the largest times of items (`spark/evolution/progress.py`); the driver writes them down for the survey,
which reads no items (`reached.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from time import monotonic

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake.ranges import MICROSECONDS, Offset
from anabranch.stream.path import per_second
from anabranch.stream.reading.source import Source

_BEAT = ":beat/"
"""The prefix before the key of a partition: `position` is the time of its latest heartbeat in microseconds, `file` the
number of heartbeats before it."""


def beat_of(offset: Offset, key: str) -> int | None:
    """The time of the latest heartbeat of a partition, in microseconds."""
    found = offset.get(_BEAT + key)
    return None if found is None else found["position"]


class Pulse:
    """Decides when a partition needs a heartbeat; only the survey has one."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._came: dict[str, float] = {}
        """By partition: when new bytes were last seen there, or a heartbeat was sent."""

    def beats(
        self,
        stream: Source,
        keys: Collection[str],
        start: Offset,
        fresh: Collection[str],
        moment: int,
        reached: Callable[[], Mapping[str, float]],
    ) -> Offset:
        """The heartbeats of a stream, with partitions of these keys, in an epoch from `start` on.

        The epoch reads the `fresh` partitions at a moment.
        """
        if stream.heartbeat is None:
            return {}
        now = self._clock()
        for key in keys:
            if key in fresh or key not in self._came:
                self._came[key] = now
        due = [key for key in keys if now - self._came[key] >= float(stream.heartbeat)]
        if not due:
            return {}
        since = now - max(self._came[key] for key in keys)
        time = _latest(stream, keys, start, reached(), since) if stream.is_timed else moment
        found: Offset = {}
        if time is None:
            return found
        for key in due:
            before = start.get(_BEAT + key)
            if before is None or before["position"] < time:
                found[_BEAT + key] = {"file": before["file"] + 1 if before else 0, "position": time}
                self._came[key] = now
        return found


def _latest(
    stream: Source, keys: Collection[str], start: Offset, reached: Mapping[str, float], since: float
) -> int | None:
    """The latest time in a stream plus the seconds since; None where no element has had a time."""
    times = [time for key in keys if (time := beat_of(start, key)) is not None]
    if stream.name in reached:
        times.append(round(reached[stream.name] * MICROSECONDS / per_second(stream.time)))
    return max(times) + round(since * MICROSECONDS) if times else None


def read_reached(checkpoint: Checkpoint) -> dict[str, float]:
    """By stream: the largest time of its items, in its own unit, where it was written down."""
    if not checkpoint.reached.exists():
        return {}
    found: dict[str, float] = durable.unsealed(checkpoint.reached)
    return found
