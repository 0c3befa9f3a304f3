"""Conditions taken apart so that thousands of them can be judged together (`index.py`).

Conditions that differ in their constants only have one *form*.
A form has stages, one behind the other (`Then`); a stage is a disjunction of clauses, a clause a conjunction of tests.
Kleene's three-valued logic is a distributive lattice with De Morgan's laws, so a stage in this normal form has the same
outcome as the condition it came from, unclear ones too.

A form is not made of a condition that is always unclear, that asks of the template what may be otherwise in other items
before it goes on, or whose normal form is too large; such a condition is judged by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeAlias

from anabranch.columnar.match.condition import (
    NO,
    UNCLEAR,
    YES,
    Both,
    Condition,
    Either,
    Not,
    NumberTest,
    Settled,
    TextTest,
    Then,
)
from anabranch.values.operators import ComparisonOperator

MOST_CLAUSES = 64
Constant: TypeAlias = float | bytes


class Axis(NamedTuple):
    """What a test looks at: the number or the text of a leaf."""

    leaf: int
    is_text: bool


class Test(NamedTuple):
    """An axis against a constant, which is given by its number."""

    axis: Axis
    operator: ComparisonOperator
    constant: int


class Fixed(NamedTuple):
    """The same for all items that fit the template, and unclear for others."""

    holds: bool


Clause: TypeAlias = tuple[Test | Fixed, ...]
Stage: TypeAlias = tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """What conditions have in common that differ in constants only."""

    stages: tuple[Stage, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What it looks at."""
        tests = (test for stage in self.stages for clause in stage for test in clause if isinstance(test, Test))
        return tuple(dict.fromkeys(test.axis for test in tests))

    @property
    def is_settled(self) -> bool:
        """Whether the template has a say in it."""
        return any(isinstance(test, Fixed) for stage in self.stages for clause in stage for test in clause)


def formed(condition: Condition) -> tuple[Form, tuple[Constant, ...]] | None:
    """The form of a condition and its constants; None where it must be judged by itself."""
    constants: list[Constant] = []
    try:
        stages = tuple(_clauses(each, constants) for each in _stages(condition))
    except _TooLarge:
        return None
    form = Form(stages)
    large = 1
    for stage in stages:
        large *= len(stage)
    hasty = any(isinstance(test, Fixed) for stage in stages[:-1] for clause in stage for test in clause)
    return None if hasty or large > MOST_CLAUSES else (form, tuple(constants))


def substituted(condition: Condition, values: Mapping[Constant, Constant]) -> Condition:
    """A condition with other constants; a number may stand there with the other sign."""
    match condition:
        case NumberTest(leaf, operator, number):
            turned = -1.0 if number not in values and -number in values else 1.0
            return NumberTest(leaf, operator, turned * float(values.get(turned * number, turned * number)))
        case TextTest(leaf, operator, text):
            other = values.get(text, text)
            assert isinstance(other, bytes), "a text is replaced by a text"
            return TextTest(leaf, operator, other)
        case Both(operands):
            return Both(tuple(substituted(each, values) for each in operands))
        case Either(operands):
            return Either(tuple(substituted(each, values) for each in operands))
        case Not(operand):
            return Not(substituted(operand, values))
        case Then(first, second):
            return Then(substituted(first, values), substituted(second, values))
        case Settled():
            return condition


class _TooLarge(Exception):
    pass


def _stages(condition: Condition) -> list[Condition]:
    match condition:
        case Then(first, second):
            return [*_stages(first), *_stages(second)] if not isinstance(second, Then) else _refuse()
        case _:
            return [condition]


def _refuse() -> list[Condition]:
    raise _TooLarge


def _clauses(condition: Condition, constants: list[Constant], *, negated: bool = False) -> Stage:
    """The normal form of one stage."""
    match condition:
        case Settled(verdict):
            if verdict == UNCLEAR:
                raise _TooLarge
            assert verdict in (YES, NO)
            return ((Fixed((verdict == YES) != negated),),)
        case NumberTest(leaf, operator, constant) | TextTest(leaf, operator, constant):
            constants.append(constant)
            axis = Axis(leaf, isinstance(condition, TextTest))
            return ((Test(axis, _OPPOSITE[operator] if negated else operator, len(constants) - 1),),)
        case Not(operand):
            return _clauses(operand, constants, negated=not negated)
        case Both(operands) | Either(operands):
            stages = [_clauses(each, constants, negated=negated) for each in operands]
            found = _all(stages) if isinstance(condition, Both) != negated else _any(stages)
            if len(found) > MOST_CLAUSES:
                raise _TooLarge
            return found
        case _:
            raise _TooLarge


def _any(stages: Sequence[Stage]) -> Stage:
    return tuple(clause for stage in stages for clause in stage)


def _all(stages: Sequence[Stage]) -> Stage:
    found: Stage = ((),)
    for stage in stages:
        if len(found) * len(stage) > MOST_CLAUSES:
            raise _TooLarge
        found = tuple((*before, *clause) for before, clause in product(found, stage))
    return found


_OPPOSITE: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip
