"""A site looked at from outside: what its branches remember. Needs neither Spark nor the run's leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import UsageError
from anabranch.language import parse
from anabranch.reference.standing import standing
from anabranch.site import read_site
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.manifest import Manifests
from anabranch.spark.plan import Subscription
from anabranch.spark.plans import Plans

_SHOWN = 4
"""How many members of a branch are named."""


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
    members: dict[int, list[Subscription]] = {}
    for each in plan.load().subscriptions:
        members.setdefault(each.branch, []).append(each)
    found: list[Holding] = []
    for number, served in members.items():
        kept = newest.states.get(number)
        if kept is not None:
            names = tuple(each.name for each in served)
            kind = standing(parse(served[0].text)).kind
            waiting = ", ".join(f"{count:,} of {key}" for key, count in kept.waiting.items())
            found.append(Holding(names, kind, kept.shard, kept.held, kept.size, waiting))
    return found


def table(found: list[Holding]) -> Iterator[str]:
    """The lines that `anabranch state` prints."""
    rows = [("branch", "kind", "shard", "held", "bytes", "waiting")]
    rows += [
        (_short(each.subscriptions), each.kind, str(each.shard), f"{each.held:,}", f"{each.size:,}", each.waiting)
        for each in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if 2 <= number <= 4 else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
    by_shard: dict[int, int] = {}
    for each in found:
        by_shard[each.shard] = by_shard.get(each.shard, 0) + each.size
    for shard, size in sorted(by_shard.items()):
        yield f"shard {shard}: {size:,} bytes"


def _short(names: tuple[str, ...]) -> str:
    """The members of a branch, as far as they fit into a table."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"
