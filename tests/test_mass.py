"""Tests with very many cases run all of them, or what a budget allows: always some of the same cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mass import BUDGET, Mass

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


def run(folder: Path, *options: str, **environment: str) -> str:
    """What pytest prints over the tests above, with what all our tests share."""
    (folder / "test_some.py").write_text(SOME)
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


def test_a_seed_is_drawn_for_each_run(tmp_path: Path) -> None:
    """Two runs do not take the same cases."""
    told = [run(tmp_path, "-k", "much") for _ in range(2)]
    seeds = [re.search(r"mass: 20 of 2,000 cases, ANABRANCH_SEED=(\d+)\n", each) for each in told]
    assert None not in seeds, told
    assert len({seed[1] for seed in seeds if seed}) == 2


def test_tests_share_the_budget(tmp_path: Path) -> None:
    """Each function has the same share, divided among its parameters."""
    (tmp_path / "test_shares.py").write_text(
        "import pytest\n\n"
        "def test_one(mass):\n    assert mass.seconds == BUDGET / 2\n\n"
        "@pytest.mark.parametrize('each', range(4))\n"
        "def test_other(mass, each):\n    assert mass.seconds == BUDGET / 8\n".replace("BUDGET", str(BUDGET))
    )
    assert "5 passed, 3 deselected" in run(tmp_path, "-k", "one or other")
