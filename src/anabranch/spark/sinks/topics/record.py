"""What a checkpoint knows of the topics that its site writes to.

The brokers have the truth: how far each topic is, in the marks of committed transactions (`kafka/transactions.py`).
They forget a mark that nobody has renewed for a week (`offsets.retention.minutes`), so the checkpoint has it, too:
what was `reached` for certain, and what the last transaction was `attempting`.
Where brokers have forgotten and it is not known whether that transaction was committed, delivery stops and says so.

A topic has one position for all subscriptions that write to it.
A subscription that begins has answered nothing before; one whose *sink* is added later has, and is `late`: it gets
epochs from its first to that at which it joined, before anything else is written.
One whose sink is taken away is noted where it left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.sinks.topics.upserts import ShownKeys
from anabranch.storage import Location


@dataclass(frozen=True, slots=True)
class LateSink:
    """Epochs that a subscription is to write to a topic that is ahead of it: from `next` up to `until`."""

    name: str
    topic: str
    next: int
    until: int


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """The topics of one cluster."""

    reached: dict[str, int] = field(default_factory=dict)
    """By topic: the next epoch, as it is known to be committed."""
    attempting: dict[str, int] = field(default_factory=dict)
    """By topic: the next epoch, if the last transaction was committed."""
    members: dict[str, dict[str, int | None]] = field(default_factory=dict)
    """By topic, the subscriptions that write to it; for those that have left, the next epoch then."""
    late: tuple[LateSink, ...] = ()

    def known(self, positions: Mapping[str, int], attempting: Mapping[str, int] | None = None) -> TopicRecord:
        """The record when it is known how far these topics are, and what a transaction is about to make of it."""
        others = {topic: next for topic, next in self.attempting.items() if topic not in positions}
        return replace(self, reached={**self.reached, **positions}, attempting={**others, **(attempting or {})})

    def caught_up(self) -> TopicRecord:
        """The record when the first late sink has got all."""
        return replace(self, late=self.late[1:])

    def joined(self, topic: str, wanted: Mapping[str, int], position: int) -> TopicRecord:
        """Let these subscriptions, by name with their first epochs, be those that write to a topic from a position."""
        before = self.members.get(topic, {})
        behind = {each.name: each.next for each in self.late if each.topic == topic}
        late = [each for each in self.late if each.topic != topic or each.name in wanted]
        members: dict[str, int | None] = {
            name: behind.get(name, position) if left is None else left for name, left in before.items()
        }
        for name, first in wanted.items():
            begun = before.get(name, first)
            members[name] = None
            if begun is not None and begun < position:
                late.append(LateSink(name, topic, max(begun, first), position))
        return replace(self, members={**self.members, topic: members}, late=tuple(late))


@dataclass(frozen=True, slots=True)
class UpsertSnapshot:
    """What a display that is told in upserts showed before an epoch, of one subscription by its number."""

    owner: int
    next: int
    shown: ShownKeys


def identity_of(checkpoint: Checkpoint) -> str:
    """The name by which brokers know a site: it is made once, and is that of its checkpoint for good."""
    path = checkpoint.topics()
    if not durable.exists(path):
        durable.replace(path, durable.sealed({"identity": uuid4().hex}))
    return f"anabranch-{durable.unsealed(path)['identity']}"


def read_record(path: Location) -> TopicRecord:
    """The record of a cluster's topics; an empty one where there is none."""
    return durable.read_record(TopicRecord, path) if durable.exists(path) else TopicRecord()
