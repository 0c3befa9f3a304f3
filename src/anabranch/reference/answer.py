"""What a query answers over finite inputs: the one door to the law.

A query that asks for the past is evaluated at the latest element of its streams (`arrivals/`), every other one needs no
moments (`evaluate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from anabranch.language import ast
from anabranch.reference.arrivals.past import Past
from anabranch.reference.arrivals.recall import Recalling, asks
from anabranch.reference.calls import PythonFunction
from anabranch.reference.construct import content_text
from anabranch.reference.env import Env
from anabranch.reference.evaluate import Evaluator
from anabranch.reference.inputs import Input
from anabranch.reference.sequences import Values
from anabranch.stream.elements import DeadLetter, Place


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's answer, and what was set aside while it was found."""

    values: Values
    dead: list[DeadLetter]
    late: list[Place]
    """Items that came too late for a time window (LAWS 3.2)."""

    @property
    def text(self) -> str:
        """The answer as XML content: serialised nodes, values with a space between them."""
        return content_text(self.values)


@dataclass(frozen=True, slots=True)
class Shown:
    """What is on display from a moment on."""

    at: Fraction
    text: str


def evaluate(
    query: ast.Query,
    inputs: Mapping[str, Input],
    *,
    functions: Mapping[str, PythonFunction] | None = None,
    name: str | None = None,
    text: str | None = None,
) -> Answer:
    """Answer a checked query over finite inputs; `name` is the subscription's, for its dead letters."""
    if not asks(query):
        evaluator = Evaluator(query, inputs, functions or {}, name, text)
        values = evaluator.top(query.body, Env.of(query))
        return Answer(values, evaluator.dead, [arrival.place for arrival in evaluator.late])
    past = Past(query, inputs)
    recalling = Recalling(query, past, inputs, functions or {}, name, text)
    with recalling.at(past.last):
        values = recalling.top(query.body, Env.of(query))
    return Answer(values, list(dict.fromkeys(recalling.dead)), [])  # what fails in several rounds is set aside once
