"""What an epoch runs with, in files: the streams, the subscriptions, the limits.

A plan travels to the tasks by its file's path and digest and is kept by the Python worker that has read it; in the
closure of each epoch it would be sent and unpacked again and again.
The file is called after its digest, so epochs with the same plan share it, and a task works by the very plan it was
given or not at all.
Which plan an epoch has is written down before the epoch runs (`Plans`), so that one that is run again does the same.
The files are JSON: what a user wrote is never unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from anabranch.errors import StateError
from anabranch.spark import durable
from anabranch.spark.order import Form
from anabranch.stream.limits import Limits
from anabranch.stream.parse import implied_root
from anabranch.stream.reader import Format
from anabranch.stream.schema import Declaration, Part, Schema
from anabranch.stream.serialize import serialize
from anabranch.stream.source import Source


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A stream as tasks need it: how it is written, what its root and items are called."""

    stream: str
    format: Format
    root: str
    """The stream's root element as text, without the items."""
    item: str
    schema: Schema | None
    """The schema that items must keep to; None unless the stream is strict."""
    partitions: int = 1
    time: str | None = None
    """The path of its items' time (LAWS 1.3)."""
    slack: str = "0"
    origin: str = "0"

    @staticmethod
    def of(source: Source, form: Form | None) -> StreamPlan:
        """A stream as it was registered and, once it has bytes, as it is written."""
        schema = source.schema if source.strict else None
        known = form or Form("lines", serialize(implied_root(source.implied_root)))
        return StreamPlan(
            source.name,
            known.format,
            known.root,
            source.item or "item",
            schema,
            len(source.partitions),
            None if source.time is None else str(source.time),
            str(source.slack),
            str(source.origin),
        )


@dataclass(frozen=True, slots=True)
class Subscription:
    """A query as registered; a changed one is another subscription under the same name."""

    id: int
    """Its number in the checkpoint, which no other ever has."""
    name: str
    text: str
    first: int
    """The epoch it begins with."""
    late: tuple[str, ...] = ()
    """The streams of which an element was committed before it began (LAWS 3.6)."""
    joined: int | None = None
    """The number of an earlier subscription whose branch serves this one too; None for a branch of its own."""
    family: str = ""
    """Whom its branch can serve too (`membership.py`); empty for nobody."""

    @property
    def branch(self) -> int:
        """The number of the branch that serves it, if it is one that remembers."""
        return self.id if self.joined is None else self.joined


_FIELDS = attrgetter(*(each.name for each in fields(Subscription)))
"""A subscription as it stands in a plan's file: ten thousand names of fields would take longer than the rest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an epoch runs with."""

    streams: tuple[StreamPlan, ...]
    subscriptions: tuple[Subscription, ...]
    limits: Limits
    next_id: int
    """The number that the next subscription gets."""
    shards: int = 1
    """How many tasks share the branches; another number next time changes no answer."""
    documents: tuple[tuple[str, str], ...] = ()
    """The files behind `doc()`, by name."""
    finite: bool = False
    """Whether the streams have an end."""
    sharing: bool = True
    """Whether what subscriptions have in common is done once; no answer depends on it (LAWS 3.7)."""


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan on disk; equal values hold equal plans."""

    path: Path
    digest: str

    @staticmethod
    def save(plan: Plan, folder: Path) -> PlanFile:
        fields: dict[str, Any] = asdict(replace(plan, subscriptions=()))
        fields["subscriptions"] = list(map(_FIELDS, plan.subscriptions))
        data = json.dumps(fields).encode()
        digest = durable.digest(data)
        path = folder / f"{digest[:32]}.plan"
        if not path.exists():
            durable.replace(path, data)
        return PlanFile(path, digest)

    def load(self) -> Plan:
        return _load(self)


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of all epochs that are kept."""

    folder: Path

    def of(self, epoch: int) -> PlanFile | None:
        """The plan that an epoch was begun with, None if it was not begun."""
        path = self._pointer(epoch)
        if not path.exists():
            return None
        found = durable.unsealed(path)["plan"]
        return PlanFile(self.folder / f"{found[:32]}.plan", found)

    def begin(self, epoch: int, plan: Plan) -> PlanFile:
        """Write down that an epoch runs with a plan."""
        file = PlanFile.save(plan, self.folder)
        self.again(epoch, file)
        return file

    def again(self, epoch: int, file: PlanFile) -> None:
        """Write down that an epoch runs with a plan that is there."""
        durable.publish(self._pointer(epoch), durable.sealed({"plan": file.digest}))

    def epochs(self) -> list[int]:
        """The epochs that were begun and are kept, in order."""
        return sorted(int(each.stem) for each in self.folder.glob("[0-9]*.json"))

    def newest(self) -> Plan | None:
        """The plan of the newest epoch that was begun."""
        epochs = self.epochs()
        file = self.of(epochs[-1]) if epochs else None
        return None if file is None else file.load()

    def newest_first(self, until: int) -> Iterator[Plan]:
        """All plans that differ from their neighbours, from that of epoch `until` back."""
        before: PlanFile | None = None
        for epoch in reversed(self.epochs()):
            file = self.of(epoch) if epoch <= until else None
            if file is not None and file != before:
                yield file.load()
            before = file

    def drop(self, until: int) -> None:
        """Forget the plans of the epochs before `until`, as far as no later one has them."""
        for epoch in self.epochs():
            if epoch < until:
                self._pointer(epoch).unlink()
        kept = {file.path for epoch in self.epochs() if (file := self.of(epoch))}
        for path in self.folder.glob("*.plan"):
            if path not in kept:
                path.unlink()

    def _pointer(self, epoch: int) -> Path:
        return self.folder / f"{epoch:08}.json"


@lru_cache(maxsize=8)
def _load(file: PlanFile) -> Plan:
    try:
        data = file.path.read_bytes()
    except OSError as error:
        raise StateError(f"cannot read '{file.path}': {error.strerror}") from None
    if durable.digest(data) != file.digest:
        raise StateError(f"the plan '{file.path}' is damaged")
    found = json.loads(data)
    return Plan(
        tuple(_stream(each) for each in found["streams"]),
        tuple(Subscription(*_with_tuples(each)) for each in found["subscriptions"]),
        Limits(**found["limits"]),
        found["next_id"],
        found["shards"],
        tuple((name, path) for name, path in found["documents"]),
        found["finite"],
        found["sharing"],
    )


def _with_tuples(fields: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in fields)


def _stream(fields: dict[str, Any]) -> StreamPlan:
    schema = fields.pop("schema")
    return StreamPlan(**fields, schema=None if schema is None else _schema(schema))


def _schema(fields: dict[str, Any]) -> Schema:
    declarations = {
        key: Declaration(
            {name: Part(**part) for name, part in each["children"].items()}, tuple(each["attributes"]), each["text"]
        )
        for key, each in fields["declarations"].items()
    }
    return Schema(fields["root"], declarations)
