"""A late subscription joins the branch of an earlier one while the run dies again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Engine
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch import trunk as epochs
from anabranch.spark.plan.files import Plans
from faults.small import Killed
from mass import some

POINTS = ("manifest-published", "plan-written", "epoch-begun", "job-done", "changes-logged", "states-swept")
SUMS = 'for $w in stream("s")/r/i|t diff 10 step 5| return <w>{ sum($w/n) }</w>'
ITEMS = 'for $w in stream("s")/r/i|t diff 10| return <w>{ $w/n }</w>'
PHASES, LATE = 9, 3


@pytest.mark.mass
@pytest.mark.parametrize("point", some(POINTS))
def test_whoever_dies_when(tmp_path: Path, point: str) -> None:
    """Each epoch is ended there and begun anew; twins that come late answer as the law says, and have joined."""
    (tmp_path / "in").mkdir()
    for phase in range(PHASES):
        lines = (f"<i><t>{time}</t><n>{time % 7}</n></i>\n" for time in range(6 * phase, 6 * phase + 6))
        (tmp_path / f"in/{phase}").write_text("".join(lines))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(epochs, "point", lambda found, number: _die(found == point))
            with pytest.raises(Killed):
                run(tmp_path, late=phase >= LATE)
        answers = run(tmp_path, late=phase >= LATE)

    end, first = 6 * PHASES - 1, 6 * LATE
    sums = [sum(time % 7 for time in range(start, start + 10)) for start in range(0, end - 9, 5)]
    items = [[time % 7 for time in range(start, start + 10)] for start in range(0, end - 9, 10)]
    texts = [f"<w>{''.join(f'<n>{each}</n>' for each in window)}</w>" for window in items]
    assert answers == {
        "sums": "".join(f"<w>{each}</w>" for each in sums),
        "items": "".join(texts),
        "late sums": "".join(f"<w>{each}</w>" for each in sums[-(-first // 5) :]),
        "late items": "".join(texts[-(-first // 10) :]),
    }
    plan = Plans(Checkpoint.at(tmp_path / "state")).newest()
    assert plan is not None
    branches = {each.name: each.branch for each in plan.subscriptions}
    assert branches["late sums"] == branches["sums"] != branches["items"] == branches["late items"]


def _die(now: bool) -> None:
    if now:
        raise Killed


def run(folder: Path, *, late: bool) -> dict[str, str]:
    """Read what is there; gives the answers."""
    with Engine(local=True, checkpoint=folder / "state", once=True) as engine:
        engine.stream("s", folder / "in", format="lines", root="r", time="t")
        texts = {"sums": SUMS, "items": ITEMS} | ({"late sums": SUMS, "late items": ITEMS} if late else {})
        found = [engine.subscribe(text, name) for name, text in texts.items()]
        engine.wait()
        return {each.name: each.answer() for each in found}
