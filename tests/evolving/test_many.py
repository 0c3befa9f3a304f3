"""Very many descriptions in a trunk: what an accent costs does not depend on how many hold, so nothing is quadratic.

Work is counted in calls of Anabranch's functions, which neither a clock nor what other tests left to be freed disturbs.
What was measured by hand stands in the design note.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType

import pytest

import anabranch
from anabranch.algebra.accents import evolution as states
from anabranch.algebra.accents.layers import Layers
from anabranch.stream.reading.source import Source
from evolving.windowed import alter, item
from spark.bare import BareTrunk

QUERIES = {
    "item": 'for $p in stream("a")/r/i where $p/t > 5 return <o>{$p/s}{$p/t}</o>',
    "pane": 'for $w in stream("a")/r/i |n diff 10| return <w>{avg($w/t)}</w>',
    "fed": 'for $w in stream("a")/r/i |n diff 10| return <w>{for $i in $w where $i/t > 5 return $i/s}</w>',
}
ITEMS = 10
FEW, MANY, MORE = 4, 12, 24
NEW = 1_000_000
"""Sensors from here on are in no other test, so nothing is remembered of descriptions that speak of them."""


class Steady(Random):
    """Chance that makes all epochs alike."""

    def random(self) -> float:
        return 0.9


def work(what: Callable[[], None]) -> int:
    """How many of our functions are called for something, and how many layers copied, which takes no calls."""
    done = 0
    copying = Layers.copy.__code__
    ours = str(Path(anabranch.__file__).parent)

    def note(frame: FrameType, event: str, argument: object) -> None:
        """A call; who gives nothing back here is not told of the lines."""
        nonlocal done
        if frame.f_code.co_filename.startswith(ours):
            done += len(frame.f_locals["self"]) if frame.f_code is copying else 1

    gc.collect()
    gc.disable()
    tracing = sys.gettrace()
    sys.settrace(note)
    try:
        what()
    finally:
        sys.settrace(tracing)
        gc.enable()
    return done


@pytest.mark.mass
def test_an_accent_costs_the_same_however_many_descriptions_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 24 more, 8 accents more in an epoch are not 192 steps more; an epoch as such may grow with what holds.

    What is measured is the share of the work that is the product of both, which would make a stream quadratic.
    """
    monkeypatch.setattr(states, "MOST_CHANGES", FEW)  # few descriptions are judged otherwise, in columns
    folders = [tmp_path / each for each in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    source = Source("a", folders[0], "lines", root="r", more=(folders[1],))
    trunk = BareTrunk(tmp_path / "state", [source], Steady(), finite=False)
    sensors, times = count(NEW), count()

    def epoch(accents: int) -> Callable[[], None]:
        """The next epoch, with as many items whatever it says."""
        lines: list[str] = []
        for number, now in zip(range(ITEMS), times, strict=False):
            said = range(number * accents // ITEMS, (number + 1) * accents // ITEMS)
            lines += (alter("t", ". * 3 + 1", f"s = {next(sensors)}") for _ in said)
            lines.append(item(now, s=now % 7, t=9))
        for folder in folders:
            (folder / f"{next(times):06}").write_text("".join(f"{line}\n" for line in lines))
        return lambda: trunk.run(QUERIES, [1 << 20], [1])

    def more() -> int:
        """What accents more cost here."""
        for warm in (MANY, FEW):
            epoch(warm)()
        return work(epoch(MANY)) - work(epoch(FEW))

    epoch(MORE)()
    early = more()
    epoch(MORE)()
    late = more()
    assert next(sensors) > NEW + 2 * MORE
    assert trunk.plan is not None
    assert not any(each.aborted for each in trunk.plan.subscriptions)
    assert late - early < (MANY - FEW) * MORE // 4, f"{early:,} steps become {late:,}"
