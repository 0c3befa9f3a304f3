"""What readers of bytes must hold for any input, for inputs that are mutated from those of tests."""

from __future__ import annotations

from random import Random

import pytest

from fuzzing.mutation import mutated
from fuzzing.target import Hang, Target, bounded, try_input
from fuzzing.targets import TARGETS
from mass import Mass, some

every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


@every_target
def test_seeds(target: Target) -> None:
    """What inputs are made of holds by itself."""
    for each in some(target.seeds):
        target.check(each)


@every_target
def test_mutated_inputs(target: Target, mass: Mass) -> None:
    """No error but our own, no hang, the same in columns and by the law, and what is printed reads as the same."""
    for seed in target.seeds[:3]:
        target.check(seed)  # without a limit of time: loops are compiled
    for number in mass.cases(400):
        try_input(target, mutated(target, Random(f"{target.name} {mass.seed} {number}")))


def test_a_hang_is_found() -> None:
    """What takes more processor time than it may is no error that a reader could catch."""

    def forever(data: bytes) -> None:
        while data:
            try:
                sum(range(1_000))
            except Exception:
                continue

    with pytest.raises(Hang), bounded(0.05):
        forever(b"x")


def test_a_failure_names_its_input() -> None:
    """The note on an error has the target and the bytes, cut to what an input may have."""

    def refuse(data: bytes) -> None:
        assert data != b"ab"

    with pytest.raises(AssertionError) as caught:
        try_input(Target("refusing", refuse, []), b"ab")
    assert "target 'refusing', input b'ab'" in caught.value.__notes__
