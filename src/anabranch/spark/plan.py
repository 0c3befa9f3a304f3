"""What a run does, in a file: the streams with their files, the subscriptions, the limits.

A plan travels to the tasks by its file's path and digest and is kept by the Python worker that has read it; in the
closure of each epoch it would be sent and unpacked again and again.
The digest is checked on reading, so a task works by the very plan it was given or not at all.
The file is JSON: what a user wrote is never unpickled.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from anabranch.errors import StreamError
from anabranch.spark.ranges import File, Partition
from anabranch.spark.storage import is_packed
from anabranch.stream.limits import Limits
from anabranch.stream.reader import Format
from anabranch.stream.schema import Declaration, Part, Schema
from anabranch.stream.serialize import serialize
from anabranch.stream.source import Source, read


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A stream as tasks need it: where it lies, how it is written, what its root and items are called."""

    partition: Partition
    format: Format
    root: str
    """The stream's root element as text, without the items."""
    item: str
    schema: Schema | None
    """The schema that items must keep to; None unless the stream is strict."""

    @staticmethod
    def of(source: Source, limits: Limits) -> StreamPlan:
        """Look at a stream's files and at the front of the first; `StreamError` where it cannot be read."""
        contents = read(source, limits)
        root = serialize(contents.root)
        files = [_file(path, contents.format) for path in source.files]
        partition = Partition(source.name, source.path.name, tuple(file for file in files if file.size))
        schema = source.schema if source.strict else None
        return StreamPlan(partition, contents.format, root, source.item or "item", schema)


def _file(path: Path, form: Format) -> File:
    where = str(path.absolute())
    if is_packed(where):
        return File(path.name, where, path.stat().st_size, "nowhere")
    return File(path.name, where, path.stat().st_size, "anywhere" if form == "document" else "after lines")


@dataclass(frozen=True, slots=True)
class Plan:
    """One run; subscriptions are numbered by their place here."""

    streams: tuple[StreamPlan, ...]
    subscriptions: tuple[tuple[str, str], ...]
    """Name and query text."""
    limits: Limits
    epoch_bytes: int
    cores: int


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan on disk; equal values hold equal plans."""

    path: Path
    digest: str

    @staticmethod
    def save(plan: Plan, folder: Path) -> PlanFile:
        data = json.dumps(asdict(plan)).encode()
        digest = hashlib.sha256(data).hexdigest()
        path = folder / f"plan-{digest[:16]}.json"
        path.write_bytes(data)
        return PlanFile(path, digest)

    def load(self) -> Plan:
        return _load(self)


@lru_cache(maxsize=4)
def _load(file: PlanFile) -> Plan:
    data = file.path.read_bytes()
    if hashlib.sha256(data).hexdigest() != file.digest:
        raise StreamError(f"the plan '{file.path}' was changed while it was in use")
    fields = json.loads(data)
    return Plan(
        tuple(_stream(each) for each in fields["streams"]),
        tuple((name, text) for name, text in fields["subscriptions"]),
        Limits(**fields["limits"]),
        fields["epoch_bytes"],
        fields["cores"],
    )


def _stream(fields: dict[str, Any]) -> StreamPlan:
    partition = fields["partition"]
    files = tuple(File(**each) for each in partition["files"])
    schema = fields["schema"]
    return StreamPlan(
        Partition(partition["stream"], partition["name"], files),
        fields["format"],
        fields["root"],
        fields["item"],
        None if schema is None else _schema(schema),
    )


def _schema(fields: dict[str, Any]) -> Schema:
    declarations = {
        key: Declaration(
            {name: Part(**part) for name, part in each["children"].items()}, tuple(each["attributes"]), each["text"]
        )
        for key, each in fields["declarations"].items()
    }
    return Schema(fields["root"], declarations)
