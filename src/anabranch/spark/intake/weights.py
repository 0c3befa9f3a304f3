"""The sizes of messages, which the driver writes down behind each epoch for the survey.

How large an epoch may be is said in bytes, and a topic tells only how many messages it has.
So tasks report the bytes of the messages that they have read, and the survey reckons with their mean in later epochs.
No answer depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint

_NOTABLE = 0.2
"""The share by which a mean changes before it is written down again."""


def read_weights(checkpoint: Checkpoint) -> dict[str, float]:
    """By stream of messages: the mean bytes of a message, where some were read."""
    if not checkpoint.weights.exists():
        return {}
    found: dict[str, float] = durable.unsealed(checkpoint.weights)
    return found


def write_weights(checkpoint: Checkpoint, read: Iterable[Mapping[str, tuple[int, int]]]) -> None:
    """Write down the means behind an epoch; `read` has for some tasks, by stream, its messages and their bytes."""
    totals: dict[str, tuple[int, int]] = {}
    for each in read:
        for stream, (messages, size) in each.items():
            before = totals.get(stream, (0, 0))
            totals[stream] = before[0] + messages, before[1] + size
    fresh = {stream: size / messages for stream, (messages, size) in totals.items() if messages}
    if not fresh:
        return
    known = read_weights(checkpoint)
    if any(abs(mean - known.get(stream, 0.0)) > _NOTABLE * mean for stream, mean in fresh.items()):
        durable.replace(checkpoint.weights, durable.sealed(known | fresh))
