"""Every kind of control element, in every kind of stream, at every place, beside queries that they do not concern.

LAWS 2.5: what is bad is set aside, once, with its place and reason; it stops nobody, and slips through to nobody.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from anabranch.algebra.plans.written import is_plan
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.stream.elements import DeadLetter
from control.elements import World
from control.queries import subscriptions
from mass import Mass
from spark.bare import BareTrunk


def answered(folder: Path, world: World, random: Random, *, finite: bool) -> BareTrunk:
    """A trunk that has answered all subscriptions over a world."""
    trunk = BareTrunk(folder, world.sources(), random, finite=finite)
    trunk.run(subscriptions(), (40_000, 1 << 20), (1, 2))
    return trunk


def ended(trunk: BareTrunk) -> dict[str, str]:
    """By name, why subscriptions have ended."""
    assert trunk.plan is not None
    aborted = list(trunk.log.manifests.since(0))[-1].aborted
    return {each.name: aborted[each.id] for each in trunk.plan.subscriptions if each.id in aborted}


def told(letters: list[DeadLetter]) -> Counter[tuple[str, str, int, str, str | None]]:
    """Dead letters by place and reason."""
    return Counter(
        (each.place.stream, each.place.partition, each.place.offset, each.reason, each.subscription) for each in letters
    )


def check(folder: Path, seed: int, *, finite: bool, everywhere: bool = False) -> tuple[World, BareTrunk]:
    """Compare a world with and without control elements; gives the one with them."""
    calm = World(folder / "calm", disturbed=False)
    wild = World(folder / "wild", disturbed=True, everywhere=everywhere, random=Random(seed))
    calm.write()
    wild.write()
    expected = answered(folder / "calm-state", calm, Random(seed), finite=finite)
    found = answered(folder / "wild-state", wild, Random(seed + 1), finite=finite)
    assert len(subscriptions()) >= 50
    assert ended(found) == {}
    for name in subscriptions():
        assert found.answer(name) == expected.answer(name), name
        assert any(each.isdigit() for each in expected.answer(name)) or name == "edited_json versions"
    return wild, found


@pytest.mark.mass
def test_nothing_ends_or_differs(tmp_path: Path) -> None:
    """Over inputs that end; and the reference answers the same and sets the same aside, once for each place."""
    wild, found = check(tmp_path, 1, finite=True)
    inputs = Inputs(wild.sources())
    asked = {name: text for name, text in subscriptions().items() if not is_plan(text)}
    prepared = [prepare(name, text, inputs, "reference") for name, text in asked.items()]
    with answering(prepared, inputs) as law:
        assert {name: "".join(answer) for name, answer in law.answers.items()} == {
            name: found.answer(name) for name in asked
        }
        assert law.aborted == {}
        due = told(list(law.dead))
    letters = [each for each in found.log.dead_letters() if not each.place.stream.startswith("alone")]
    assert told(letters).keys() == due.keys()
    # the files of two partitions have the same names; else each thing is told once
    assert {key for key, count in told(letters).items() if count > 1} <= {
        key for key in due if key[0] in ("partitions", "merged", "edited_merged")
    }
    alone = Counter(each.place.stream for each in found.log.dead_letters())
    assert min(alone["alone"], alone["alone_edited"]) > 30


@pytest.mark.mass
def test_nothing_ends_or_differs_in_a_run(tmp_path: Path) -> None:
    """Over streams that have no end."""
    check(tmp_path, 2, finite=False)


@pytest.mark.parametrize("finite", [True, False])
def test_everything_everywhere(tmp_path: Path, finite: bool, mass: Mass) -> None:
    """Each kind at all places of all streams at once, in other orders and epochs."""
    for number in mass.cases(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(folder, number, finite=finite, everywhere=True)
