"""What can be told without reckoning is what the reckoning tells."""

from __future__ import annotations

from random import Random

import pytest

from algebra.accented import CELSIUS, alter, answer, path, shown
from algebra.evolving import stream
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.operator import Operator
from anabranch.algebra.operators.project import Project
from anabranch.algebra.plans.interpret import Apply, StreamSource
from anabranch.algebra.reactions.origins import Untouched
from anabranch.predicate import Finite

SENSORS = {path("s"): Finite(frozenset(map(str, range(1, 4))))}
OPERATORS: tuple[Operator, ...] = (
    Project(frozenset((path("t"), path("p")))),
    Project(frozenset((path("t"), path("x")))),
    Aggregate("avg", (path("x"),)),
    Aggregate("sum", ()),
)


@pytest.mark.parametrize("domains", [{}, SENSORS], ids=["undeclared", "declared"])
def test_shortcuts_change_nothing(monkeypatch: pytest.MonkeyPatch, domains: dict[object, object]) -> None:
    """Random streams through operators that hide paths, with the short way and without."""
    came = 0
    for seed in range(24):
        elements = stream(Random(seed), ["s", "t", "x"], 14, comes=True, goes=True)
        plan = Apply(OPERATORS[seed % len(OPERATORS)], (StreamSource("a"),))
        fed = [("a", each) for each in elements]
        short = shown(plan, fed, domains=domains)  # type: ignore[arg-type]
        with monkeypatch.context() as patched:
            patched.setattr(Untouched, "closed", lambda *_: False)
            assert shown(plan, fed, domains=domains) == short, seed  # type: ignore[arg-type]
        came += sum("=" not in each.split(" where ")[0] for each in short)
    assert came > 10


@pytest.mark.parametrize("function", ["avg", "max"])
def test_many_sensors_change_one_by_one(function: FunctionName) -> None:
    """The change comes out with the last of them, where their numbers are declared, and never where they are not."""
    many = 60
    accents = [alter("t", CELSIUS, f"s = {each}") for each in range(1, many + 1)]
    declared = {path("s"): Finite(frozenset(map(str, range(1, many + 1))))}
    operator = Aggregate(function, ())
    assert answer(operator, *accents) == []
    assert answer(operator, *accents[:-1], domains=declared) == []
    assert len(answer(operator, *accents, domains=declared)) == 1
    assert len(answer(operator, *accents, *accents, domains=declared)) == 2
