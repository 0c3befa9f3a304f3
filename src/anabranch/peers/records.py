"""Plans on disk: flows by their abstract queries, from which their forms are derived again (sharing paper, 3.3).

The registered streams are saved, too: a later start without one of them must know what has to end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from anabranch.errors import StateError
from anabranch.language import check, parse
from anabranch.network.catalogue import Catalogue, Flow, Subscription
from anabranch.network.description import RegisteredStream
from anabranch.network.estimates import Form
from anabranch.network.needs import QueryNeeds, whole
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.rules.derive import derive_forest
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location
from anabranch.stream.plain import from_plain, to_plain
from anabranch.stream.schema import Schema

_VERSION = 2
"""Version 1 described streams in another way."""

NeedOf: TypeAlias = Callable[[str, str], QueryNeeds]
"""The needs of a subscription, by its text and name."""


@dataclass(frozen=True)
class SavedPlan:
    """The plan in force, and the one before as long as not all peers have switched."""

    number: int
    flows: int
    """The largest flow number so far, which is never reused."""
    now: Catalogue
    before: Catalogue | None = None
    streams: Mapping[str, RegisteredStream] = field(default_factory=dict)
    """All streams that are read in one of the two."""

    def save(self, path: Path) -> None:
        durable.replace(path, durable.sealed(self.written(path.parent)))

    def written(self, folder: Path) -> dict[str, Any]:
        """The plan as JSON, with paths that are relative to the folder of the network."""
        return {
            "version": _VERSION,
            "plan": self.number,
            "flows": self.flows,
            "now": _written(self.now),
            "before": None if self.before is None else _written(self.before),
            "streams": [_written_stream(each, folder) for each in self.streams.values()],
        }

    @staticmethod
    def load(path: Path, places: Mapping[str, str], schemas: Mapping[str, Schema], need: NeedOf) -> SavedPlan:
        """Load a plan; `places` are the super-peers of streams."""
        return SavedPlan.read(_fields(path), streams_of(path), places, schemas, need)

    @staticmethod
    def read(
        written: Mapping[str, Any],
        streams: Mapping[str, RegisteredStream],
        places: Mapping[str, str],
        schemas: Mapping[str, Schema],
        need: NeedOf,
    ) -> SavedPlan:
        """A plan that was written, with its streams as they are known here."""
        before = written["before"]
        return SavedPlan(
            written["plan"],
            written["flows"],
            _read(written["now"], places, schemas, need),
            None if before is None else _read(before, places, schemas, need),
            streams,
        )


def streams_of(path: Path) -> dict[str, RegisteredStream]:
    """The streams of a saved plan."""
    return written_streams(_fields(path), path.parent)


def written_streams(written: Mapping[str, Any], folder: Path) -> dict[str, RegisteredStream]:
    """The streams of a plan that was written in the folder of a network, perhaps by another part."""
    _check_version(written, "the plan of the network", "run all its parts with releases that read the same version")
    found = (_read_stream(each, folder) for each in written["streams"])
    return {each.source.name: each for each in found}


def with_own_paths(
    streams: Mapping[str, RegisteredStream], here: Collection[str], own: Mapping[str, RegisteredStream]
) -> tuple[dict[str, RegisteredStream], str | None]:
    """Streams of a plan that was made elsewhere; those that come in `here` have the paths that they have among `own`.

    Also gives the name of one that comes in here and is not there.
    """
    found = dict(streams)
    for name, each in streams.items():
        if each.at in here:
            mine = own.get(name)
            if mine is None or mine.at != each.at or len(mine.source.partitions) != len(each.source.partitions):
                return found, name
            found[name] = replace(each, source=replace(each.source, path=mine.source.path, more=mine.source.more))
    return found, None


def _fields(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = durable.unsealed(path)
    _check_version(found, f"the plan '{path}'", "use the release that wrote it, or begin with a new checkpoint")
    return found


def _check_version(written: Mapping[str, Any], what: str, hint: str) -> None:
    version = written.get("version", 1)
    if version != _VERSION:
        raise StateError(f"{what} is of version {version}, and this release reads version {_VERSION}", hint=hint)


def _written_stream(stream: RegisteredStream, folder: Path) -> dict[str, Any]:
    """A stream; its path is relative to the folder of the network, so that both may move together."""
    fields: dict[str, Any] = to_plain(stream)
    first, *more = (_seen_from(folder, each) for each in stream.source.partitions)
    fields["source"] |= {"path": first, "more": more}
    return fields


def _read_stream(fields: dict[str, Any], folder: Path) -> RegisteredStream:
    source = fields["source"]
    first, *more = (_resolved(folder, each) for each in (source["path"], *source["more"]))
    return from_plain(RegisteredStream, {**fields, "source": {**source, "path": first, "more": more}})


def _resolved(folder: Path, text: str) -> str:
    return text if "://" in text else os.path.normpath(folder / text)


def _seen_from(folder: Path, at: Location) -> str:
    return str(at) if at.path is None else os.path.relpath(at.path, folder)


def _written(catalogue: Catalogue) -> dict[str, Any]:
    flows = [
        [each.name, each.abstract, each.form == whole(each.streams[0]), each.streams, each.at, each.before, each.inputs]
        for each in catalogue.flows.values()
    ]
    asked = [[each.name, each.at, each.by, each.text, each.reads] for each in catalogue.subscriptions.values()]
    return {"flows": flows, "subscriptions": asked}


def _read(fields: dict[str, Any], places: Mapping[str, str], schemas: Mapping[str, Schema], need: NeedOf) -> Catalogue:
    """A catalogue, without streams that are no longer registered, and their subscriptions."""
    flows: dict[str, Flow] = {}
    for name, text, is_whole, streams, at, before, inputs in fields["flows"]:
        if any(each not in places for each in streams) or (not inputs and places[name] != at):
            continue
        if all(each in flows for each in inputs):
            form = whole(streams[0], schemas.get(streams[0])) if is_whole else _form(text, schemas)
            flows[name] = Flow(name, form, at, before, tuple(inputs))
    subscriptions = {
        name: Subscription(name, at, by, text, need(text, name), tuple(reads))
        for name, at, by, text, reads in fields["subscriptions"]
        if all(each in flows for each in reads)
    }
    return Catalogue(flows, subscriptions).without(())


def _form(text: str, schemas: Mapping[str, Schema]) -> Form:
    forest: PropertyForest = derive_forest(check(parse(text), text).query, schemas)
    return forest.trees[0] if forest.kind == "apart" and len(forest.trees) == 1 else forest
