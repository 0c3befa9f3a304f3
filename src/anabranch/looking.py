"""A site looked at from outside: what its branches remember, and how its streams have evolved.

Needs neither Spark nor the run's leave; the one thing that is changed is a stream, by an accent that a user publishes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.algebra.written import is_plan
from anabranch.engine.history import History, StreamCourse
from anabranch.engine.publishing import partitions_of, publish
from anabranch.engine.tables import aligned, named
from anabranch.errors import UsageError
from anabranch.language import parse
from anabranch.reference.standing import standing
from anabranch.site import read_site
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.manifest import Manifests
from anabranch.spark.plan import Subscription
from anabranch.spark.plans import Plans
from anabranch.spark.roles import Functions, edited_streams, keeper_of, numbers_of, past_of


@dataclass(frozen=True, slots=True)
class Holding:
    """What one branch makes its shard remember."""

    subscriptions: tuple[str, ...]
    """Its members."""
    kind: str
    shard: int
    held: int
    """Items, or panes of windows."""
    size: int
    """Bytes on disk."""
    waiting: str
    """What waits for which input, as text."""


def holdings(file: Path) -> list[Holding]:
    """What the branches of a site remember after its newest epoch."""
    site = read_site(file)
    checkpoint = Checkpoint.open(site.checkpoint, site.owner)
    manifests = Manifests(checkpoint.manifests)
    epochs = manifests.epochs()
    if not epochs:
        raise UsageError(f"'{file}' has not committed an epoch yet")
    newest = manifests.load(epochs[-1])
    plan = Plans(checkpoint.plans).of(newest.epoch)
    assert plan is not None, "an epoch with a manifest has a plan"
    functions = tuple(site.functions.items())
    members: dict[int, list[Subscription]] = {}
    for each in plan.load().subscriptions:
        members.setdefault(each.branch, []).append(each)
    branches = {
        number: (tuple(each.name for each in served), _kind(served[0], functions)) for number, served in members.items()
    }
    for served in members.values():
        names = tuple(each.name for each in served)
        branches |= dict.fromkeys(numbers_of(served[0])[1:], (names, "strand"))
    branches |= {keeper_of(name): ((f"stream {name}",), "document") for name in edited_streams(plan.load().streams)}
    found: list[Holding] = []
    for number, (names, kind) in branches.items():
        kept = newest.states.get(number)
        if kept is not None:
            waiting = ", ".join(f"{count:,} of {key}" for key, count in kept.waiting.items())
            found.append(Holding(names, kind, kept.shard, kept.held, kept.size, waiting))
    return found


def _kind(subscription: Subscription, functions: Functions) -> str:
    if subscription.shows:
        return "display"
    if past_of(subscription.text, functions, subscription.edited):
        return "past"
    return "plan" if is_plan(subscription.text) else standing(parse(subscription.text), dict(functions)).kind


def stream_course(file: Path, stream: str) -> StreamCourse:
    """A stream of a site, with what is known of its evolution, if the site has run."""
    site = read_site(file)
    if stream not in site.streams:
        raise UsageError(f"'{file}' has no stream '{stream}'", hint=f"it has {', '.join(site.streams) or 'none'}")
    has_run = (site.checkpoint / "format.json").exists()
    return StreamCourse(site.streams[stream], Checkpoint.open(site.checkpoint, site.owner) if has_run else None)


def history(file: Path, stream: str) -> History:
    """What has happened to a stream of a site."""
    return stream_course(file, stream).history()


def publish_accent(file: Path, stream: str, text: str, partition: str | None) -> list[Path]:
    """Publish an accent into a stream of a site; gives the files that it stands in."""
    course = stream_course(file, stream)
    return [publish(course, text, each) for each in partitions_of(course.source, partition)]


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
