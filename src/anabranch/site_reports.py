"""A site seen from outside: the states of its branches, and how its streams have evolved.

Needs neither Spark nor the run's lock; it changes only streams, by accents that a user publishes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.engine.reports.evolution import StreamCourse
from anabranch.engine.reports.planned_accents import AccentPlan, SubscribedSite, planned_accent
from anabranch.engine.reports.reactions import Forecast
from anabranch.engine.reports.tables import aligned, named
from anabranch.errors import UsageError, did_you_mean
from anabranch.site import printed_of, read_site
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.checkpoint.registry import Registry
from anabranch.spark.plan.branches import keeper_of
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.kinds import KINDS
from anabranch.spark.plan.kinds.kind import edited_streams
from anabranch.stream.reading.source import KnownStream
from anabranch.visible import visible


@dataclass(frozen=True, slots=True)
class Holding:
    """The state of one branch in its shard."""

    subscriptions: tuple[str, ...]
    """Its members."""
    kind: str
    shard: int
    held: int
    """Items, or panes of windows."""
    size: int
    """Bytes on disk."""
    waiting: str
    """The waiting items by input, as text."""


def holdings(file: Path) -> list[Holding]:
    """The states of a site's branches after its newest epoch."""
    site = read_site(file)
    checkpoint = Checkpoint.open(site.checkpoint, site.owner)
    newest = Manifests(checkpoint.manifests).newest()
    if newest is None:
        raise UsageError(f"'{file}' has not committed an epoch yet")
    plan = Plans(checkpoint).ran(newest.epoch)
    members: dict[int, list[Registration]] = {}
    for each in plan.subscriptions:
        members.setdefault(each.branch, []).append(each)
    branches = {number: (tuple(each.name for each in served), _kind(served[0])) for number, served in members.items()}
    for served in members.values():
        names = tuple(each.name for each in served)
        branches |= dict.fromkeys(served[0].branches[1:], (names, "strand"))
    branches |= {keeper_of(name): ((f"stream {name}",), "document") for name in edited_streams(plan.streams)}
    found: list[Holding] = []
    for number, (names, kind) in branches.items():
        kept = newest.states.get(number)
        if kept is not None:
            waiting = ", ".join(f"{count:,} of {key}" for key, count in kept.waiting.items())
            found.append(Holding(names, kind, kept.shard, kept.held, kept.size, waiting))
    return found


def _kind(subscription: Registration) -> str:
    return "display" if subscription.shows else KINDS[subscription.kind].label


def exported(file: Path) -> Iterator[str]:
    """What was registered through the service of a site, as lines of TOML that a SITE.toml can take."""
    site = read_site(file)
    checkpoint = Checkpoint.at(site.checkpoint)
    for name, each in Registry(checkpoint).tables.items() if checkpoint.is_made() else ():
        yield f"[subscriptions.{_quoted(name)}]"
        yield from (f"{key} = {_toml(value)}" for key, value in each.table.items())
        yield ""


def _quoted(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON; what no terminal shows is escaped."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in written)


def _toml(value: Any) -> str:
    """A value of a table."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{_quoted(key)} = {_toml(each)}" for key, each in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case str() if "\n" in value and "'''" not in value and _is_literal(value):
            return f"'''\n{value}'''"
        case str():
            return _quoted(value)
        case _:
            return json.dumps(value)


def _is_literal(text: str) -> bool:
    """Whether a text can stand as it is, over several lines."""
    return not text.endswith("'") and all(each == "\n" or each.isprintable() for each in text)


def stream_course(file: Path, stream: str) -> StreamCourse:
    """A stream of a site, with its evolution, if the site has run."""
    site = read_site(file)
    if stream not in site.streams:
        hint = did_you_mean(stream, site.streams, f"it has {', '.join(site.streams) or 'none'}")
        raise UsageError(f"'{file}' has no stream '{stream}'", hint=hint)
    has_run = Checkpoint.at(site.checkpoint).is_made()
    return StreamCourse(site.streams[stream], Checkpoint.open(site.checkpoint, site.owner) if has_run else None)


def accent_plan(file: Path, stream: str, text: str, partition: str | None) -> AccentPlan:
    """An accent to be published into a stream of a site; raises where the stream cannot take it.

    All partitions are checked before anything is written.
    """
    course = stream_course(file, stream)
    site = partial(_subscribed, file, course)
    return planned_accent(course, text, partition, site, accents=read_site(file).settings.accents)


def _subscribed(file: Path, course: StreamCourse) -> SubscribedSite:
    """The present subscriptions of a site, including those that have not begun yet."""
    site = read_site(file)
    courses = [stream_course(file, name) for name in site.streams]
    checking = Checking(Inputs(tuple(site.streams.values()), site.documents, site.functions))
    asked = site.with_registered()
    texts = {name: printed_of(name, each, checking) for name, each in asked.items()}
    checkpoint, newest = course.checkpoint, course.newest
    return SubscribedSite(
        tuple(KnownStream.of(each.source, each.form) for each in courses),
        texts,
        {name: each.policy for name, each in asked.items()},
        tuple(site.functions.items()),
        checkpoint,
        newest,
        Plans(checkpoint).ran(newest.epoch) if checkpoint and newest else None,
    )


def forecast_lines(found: Forecast) -> Iterator[str]:
    """The lines that `anabranch accent --dry-run` prints: the subscriptions concerned, and how each would react."""
    for each in found.reactions:
        for name in each.subscriptions if each.deed == "ends" else ():
            yield f"ends: {visible(name)}: {visible(found.reasons[name])}"
        if each.deed != "ends":
            yield f"{each.deed}: {visible(', '.join(each.subscriptions))}"
    if found.others:
        yield f"not concerned: {visible(', '.join(found.others))}"
    if not found.reactions and not found.others:
        yield "nobody subscribes to the stream"


def table(found: list[Holding]) -> Iterator[str]:
    """The lines that `anabranch state` prints."""
    rows = [("branch", "kind", "shard", "held", "bytes", "waiting")]
    rows += [
        (named(each.subscriptions), each.kind, str(each.shard), f"{each.held:,}", f"{each.size:,}", each.waiting)
        for each in found
    ]
    yield from aligned(rows, right=(2, 3, 4))
    by_shard: dict[int, int] = {}
    for each in found:
        by_shard[each.shard] = by_shard.get(each.shard, 0) + each.size
    for shard, size in sorted(by_shard.items()):
        yield f"shard {shard}: {size:,} bytes"
