"""Tests with very many cases run all of them, or what a budget allows: always some of the same cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mass import BUDGET, KILLS, Mass

TESTS = Path(__file__).parent
SOME = """
import pytest

def test_many(mass):
    for number in mass.cases(1_000_000):
        assert number != 250_000

@pytest.mark.parametrize("each", range(2))
def test_much(mass, each):
    assert mass.amount(1_000, budget=10) == 10
"""
FAST = """
import time

import costs
import mass
import numba
import numpy
import pytest
from hypothesis import given, strategies

costs.LIMIT = 0.5
examples = set()

def work():
    began = time.process_time()
    while time.process_time() < began + 0.6:
        pass

@pytest.mark.parametrize("number", mass.some(range(21)))
def test_some(number):
    assert len(mass.some("abc")) in (1, 3)

@given(strategies.integers())
def test_examples(number):
    examples.add(number)

def test_how_many_examples():
    assert len(examples) <= 20

def test_work():
    work()

@numba.njit
def inner(number):
    return number + 1

@numba.njit(parallel=True)
def outer(numbers):
    for each in numba.prange(len(numbers)):
        numbers[each] = inner(numbers[each])
    return numbers.sum()

def test_compiling():
    began = time.process_time()
    assert outer(numpy.ones(3)) == 6
    assert time.process_time() - began > costs.LIMIT, "this test is none"

@pytest.mark.mass
def test_work_of_a_mass_test():
    work()
"""
OPTIONS = ("-c", os.devnull, "-o", "markers=mass", "-p", "no:cacheprovider")


def test_all_cases_in_their_order() -> None:
    """Where there is no bound, and nothing is drawn."""
    mass = Mass(seed=7, seconds=None)
    assert list(mass.cases(100)) == list(range(100))
    assert mass.amount(1_000, budget=10) == 1_000
    assert (mass.done, mass.total) == (1_100, 1_100)


def test_some_cases_by_the_seed() -> None:
    """With no time at all it is one of them, and which depends on the seed; with time enough, each once."""
    runs = [list(Mass(seed, 0).cases(100)) for seed in range(50)]
    assert runs == [list(Mass(seed, 0).cases(100)) for seed in range(50)]
    assert {len(cases) for cases in runs} == {1}
    assert len({case for cases in runs for case in cases}) > 20
    assert sorted(Mass(1, 1_000).cases(100)) == list(range(100))


def run(folder: Path, *options: str, tests: str = SOME, **environment: str) -> str:
    """What pytest prints over some tests, with what all our tests share."""
    (folder / "test_some.py").write_text(tests)
    given = {name: each for name, each in os.environ.items() if not name.startswith(("ANABRANCH_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", *OPTIONS, *options, f"--rootdir={folder}", folder],
        env={**given, "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)]), **environment},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two processes"])
@pytest.mark.mass
def test_a_run_tells_its_seed_and_its_cases(tmp_path: Path, processes: tuple[str, ...]) -> None:
    """The tests are marked; behind the results stands how many cases there were; what fails says which case it is."""
    told = run(tmp_path, *processes, "-m", "mass", ANABRANCH_SEED="5")
    failed = re.search(r"case 250000, ANABRANCH_SEED=5\n", told)
    found = re.search(r"mass: ([\d,]+) of 1,002,000 cases, ANABRANCH_SEED=5\n", told)
    assert found is not None, told
    assert 20 < int(found[1].replace(",", "")) < 1_000_020
    assert failed is not None, told
    assert "1 failed, 2 passed" in told


@pytest.mark.mass
def test_a_seed_is_drawn_for_each_run(tmp_path: Path) -> None:
    """Two runs do not take the same cases."""
    told = [run(tmp_path, "-k", "much") for _ in range(2)]
    seeds = [re.search(r"mass: 20 of 2,000 cases, ANABRANCH_SEED=(\d+)\n", each) for each in told]
    assert None not in seeds, told
    assert len({seed[1] for seed in seeds if seed}) == 2


@pytest.mark.mass
def test_tests_share_the_budget(tmp_path: Path) -> None:
    """Each function has the same share, divided among its parameters."""
    (tmp_path / "test_shares.py").write_text(
        "import pytest\n\n"
        "def test_one(mass):\n    assert mass.seconds == BUDGET / 2\n\n"
        "@pytest.mark.parametrize('each', range(4))\n"
        "def test_other(mass, each):\n    assert mass.seconds == BUDGET / 8\n".replace("BUDGET", str(BUDGET))
    )
    assert "5 passed, 3 deselected" in run(tmp_path, "-k", "one or other")


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two processes"])
@pytest.mark.mass
def test_of_the_tests_that_kill_some_are_drawn(tmp_path: Path, processes: tuple[str, ...]) -> None:
    """The seed says which; those that are not run are named, and a run of all cases runs all of them."""
    kill = "@pytest.mark.kills\n@pytest.mark.parametrize('each', range(5))\ndef test_kill(each):\n    pass\n"
    tests = f"import pytest\n\n{kill}"
    told = [run(tmp_path, *processes, "-v", tests=tests, ANABRANCH_SEED=seed) for seed in "56"]
    left = [re.search(r"kills: not drawn by this seed, but run by make mass: (.+)\n", each) for each in told]
    names = [sorted(re.findall(r"test_kill\[\d\]", each[1])) for each in left if each]
    assert all(f"{KILLS} passed" in each for each in told), told
    assert [len(each) for each in names] == [5 - KILLS] * 2
    assert names[0] != names[1]
    assert "5 passed" in run(tmp_path, *processes, tests=tests, ANABRANCH_MASS="whole")


@pytest.mark.mass
def test_a_fast_run_takes_a_part_of_the_cases(tmp_path: Path) -> None:
    """One without mass tests takes a tenth of the cases and of hypothesis' examples; in it no test may cost much."""
    told = run(tmp_path, "-m", "not mass", tests=FAST)
    assert "1 failed, 6 passed, 1 deselected" in told, told
    assert re.search(r"_ test_work _+\ntook 0\.\d seconds of processor time", told), told


@pytest.mark.mass
def test_every_other_run_takes_all_cases(tmp_path: Path) -> None:
    """All of them where the mass tests run too, and nothing is said about cost, unless it is asked for a fast run."""
    told = run(tmp_path, tests=FAST)
    assert "1 failed, 25 passed" in told, told
    assert re.search(r"^FAILED .*test_some\.py::test_how_many_examples\b", told, re.MULTILINE), told
    assert "1 failed, 7 passed" in run(tmp_path, tests=FAST, ANABRANCH_MASS="few")
    assert "'budget' or 'few', not 'less'" in run(tmp_path, tests=FAST, ANABRANCH_MASS="less")
