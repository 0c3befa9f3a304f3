"""How many cases a test runs, and which: all of them, as many as a budget of seconds allows, or a few.

A test that has very many cases, kills processes or works for minutes asks for the fixture `mass`, which marks it:

    def test_random_cases(mass: Mass) -> None:
        for number in mass.cases(100_000):
            check(random_case(number))

`make mass` runs such tests whole (ANABRANCH_MASS=whole).
Everywhere else all of them together have a budget of four minutes: each test function has the same share of it, divided
among its parameters.
Within its share a test takes cases in an order drawn from the seed, so what `make test` runs is always part of what
`make mass` runs, and what fails is known by its number.
The seed is drawn for each run and printed behind the results; ANABRANCH_SEED sets it.

A test that starts runs on Spark again and again takes a minute for its first case, so it is marked `kills`, and of
these `make test` runs some, drawn from the seed as cases are.

A test with a few dozen cases is not marked, and says that a part of them will do among the fast tests:

    def test_some_random_cases() -> None:
        for number in some(range(40)):
            check(random_case(number))

A fast run, one without the mass tests (`-m 'not mass'`, as in `make test-fast`), takes the first tenth of these, and
every other run all of them; ANABRANCH_MASS=few makes any run a fast one, and ANABRANCH_MASS=budget none.
`sized(80, fast=40)` says how large something is, where less of it has to do.
What a test counts to show that its cases are not trivial is compared with `enough(20)`, which a fast run always has.
The same holds of the examples of hypothesis: `examples(150)` says how many there are where the usual 100 are not right.
What a test may cost in a fast run is bounded, too (`costs.py`).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom
from time import perf_counter
from typing import TypeVar

import pytest
from hypothesis import settings

Case = TypeVar("Case")

AMOUNTS = ("whole", "budget", "few")
"""How much a run may do."""
BUDGET = 240
"""Seconds for all mass tests of a run together, of all its processes."""
KILLS = 1
"""So many of the tests marked `kills` are run where not all cases are."""
PART = 10
"""A fast run takes one of so many cases."""

_amount = "budget"  # settled once, before tests are imported


def settle_amount(config: pytest.Config) -> None:
    """Settle how much this run does: what was asked for, or few where it leaves the mass tests out."""
    global _amount
    usual = "few" if "not mass" in config.option.markexpr else "budget"
    _amount = os.environ.get("ANABRANCH_MASS", usual)
    if _amount not in AMOUNTS:
        raise pytest.UsageError(f"ANABRANCH_MASS is 'whole', 'budget' or 'few', not '{_amount}'")


def is_fast() -> bool:
    """Whether this run is a fast one: it takes a part of the cases of each test, and bounds what a test may cost."""
    return _amount == "few"


def some(cases: Sequence[Case]) -> Sequence[Case]:
    """Those of some dozen cases that this run takes: all of them, or in a fast run the first, at least one."""
    return cases[: -(-len(cases) // PART)] if is_fast() else cases


def sized(count: int, *, fast: int) -> int:
    """How large something is where cases are not counted: the items of a stream, the queries about it."""
    return fast if is_fast() else count


def enough(count: int) -> int:
    """What a test has to meet more often, to be sure that its cases are not trivial; of a few, nothing is certain."""
    return -1 if is_fast() else count


def examples(count: int) -> settings:
    """How many examples hypothesis makes for a test; the first of them are trivial."""
    few = max(len(some(range(count))), min(count, 10))
    return settings(max_examples=few, deadline=None)  # a busy machine is no fault of the code


@dataclass
class Mass:
    """What one test may do."""

    seed: int
    """For whatever else the test draws at random."""
    seconds: float | None
    """Its share of the budget; None: there is no bound."""
    total: int = 0
    """How many cases it has."""
    done: int = 0
    """How many of them it has run."""
    case: int | None = None
    """The number of the one at work."""

    @property
    def whole(self) -> bool:
        """Whether all cases are run."""
        return self.seconds is None

    def cases(self, count: int) -> Iterator[int]:
        """Numbers of cases below a count: each of them in order, or some at random, at least one."""
        began = perf_counter()
        self.total += count
        for number in range(count) if self.whole else Random(self.seed).sample(range(count), count):
            self.case = number
            yield number
            self.done += 1
            if self.seconds is not None and perf_counter() - began >= self.seconds:
                break

    def amount(self, whole: int, *, budget: int) -> int:
        """How much of something to do where it cannot be stopped halfway: kills in a chain, updates of one stream."""
        self.total += whole
        self.done += whole if self.whole else budget
        return whole if self.whole else budget


def seed_of(config: pytest.Config) -> int:
    """The seed of this run: the one that was set, that of the process that has started this one, or a new one."""
    if given := os.environ.get("ANABRANCH_SEED"):
        return int(given)
    handed: int | None = getattr(config, "workerinput", {}).get("seed")
    return SystemRandom().randrange(1_000_000) if handed is None else handed


def not_drawn(items: Sequence[pytest.Item], seed: int) -> list[pytest.Item]:
    """The tests marked `kills` that this run leaves out."""
    if _amount == "whole":
        return []
    found = [item for item in items if item.get_closest_marker("kills") is not None]
    return Random(seed).sample(found, max(0, len(found) - KILLS))


def shares(items: list[pytest.Item]) -> dict[str, float]:
    """The seconds for each parameter of each mass test that is to be run, by the name of the test function."""
    functions = Counter(_function(item) for item in items if "mass" in getattr(item, "fixturenames", ()))
    return {name: BUDGET / len(functions) / parameters for name, parameters in functions.items()}


def share_of(item: pytest.Item, shared: dict[str, float]) -> float | None:
    """The seconds of one test, or None where all cases are run."""
    match _amount:
        case "whole":
            return None
        case "budget":
            return shared[_function(item)]
        case _:
            return 0  # one case


def _function(item: pytest.Item) -> str:
    """A test without its parameters."""
    return re.sub(r"\[.*", "", item.nodeid, flags=re.DOTALL)
