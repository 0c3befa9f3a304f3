"""What a query answers over finite inputs: the one door to the law.

A query that asks for the past is evaluated at the latest element of its streams (`arrivals/`), every other one needs no
moments (`evaluate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.checks.outputs import AnswerForm, outputs_of
from anabranch.language.json_results import with_json_results
from anabranch.law.arrivals.past import Past
from anabranch.law.arrivals.recall import Recalling, asks
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import answer_text
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.inputs import Input
from anabranch.law.paths import shown
from anabranch.stream.culprits import letter_for, letter_of
from anabranch.stream.elements import DeadLetter, Place
from anabranch.values.sequences import Values


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's answer, and what was set aside while it was found."""

    values: Values
    dead: list[DeadLetter]
    late: list[Place]
    """Items that came too late for a time window (LAWS 3.2)."""
    name: str | None = None
    """The subscription's."""
    json: bool = False
    """Whether it is lines of JSON (LAWS 7.3)."""

    @property
    def text(self) -> str:
        """The answer as XML content, serialised nodes and values with a space between them, or as lines of JSON.

        `NoAnswer` where it cannot be written, as an attribute that belongs to no element.
        """
        try:
            return answer_text(self.values, json=self.json)
        except DynamicError as error:
            raise NoAnswer(error, [*self.dead, letter_of(error, (), 0, self.name)]) from error


class NoAnswer(DynamicError):
    """A query fails as a whole, as a sum over all of a stream does where a value in it is no number (LAWS 2.4)."""

    def __init__(self, error: DynamicError, dead: list[DeadLetter]) -> None:
        """`dead` is what was set aside; the last of it says where the query failed."""
        super().__init__(error.message, code=error.code, hint=error.hint)
        self.dead = dead

    @property
    def reason(self) -> str:
        """The message with its code and the first item at fault, as a user gets to see it."""
        place = self.dead[-1].place
        return f"{reason_of(self)} ({place})" if place.stream else reason_of(self)


def reason_of(error: DynamicError) -> str:
    """Why a query has no answer, as a user gets to see it: the message with its code."""
    return f"{error.message} [{error.code}]" if error.code else error.message


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """What is on display from a moment on."""

    at: Fraction
    text: str
    error: DynamicError | None = field(default=None, compare=False)
    """Why the display is empty, where the query fails as a whole."""
    json: bool = False
    """Whether it is known to be lines of JSON (LAWS 7.4)."""


def evaluate(
    query: ast.Query,
    inputs: Mapping[str, Input],
    *,
    functions: Mapping[str, PythonFunction] | None = None,
    name: str | None = None,
) -> Answer:
    """Answer a checked query over finite inputs; `name` is the subscription's, for its dead letters.

    `NoAnswer` where the query fails as a whole.
    """
    form = form_of(query, inputs)
    query, json = with_json_results(query, form), form == "json"
    if not asks(query):
        evaluator = Evaluator(query, inputs, functions or {}, name)
        try:
            values = evaluator.top(query.body, Env.of(query))
        except DynamicError as error:
            raise _no_answer(error, evaluator.dead, inputs, name) from error
        return Answer(values, evaluator.dead, [arrival.place for arrival in evaluator.late], name, json)
    past = Past(query, inputs)
    recalling = Recalling(query, past, inputs, functions or {}, name)
    try:
        with recalling.at(past.last):
            values = recalling.top(query.body, Env.of(query))
    except DynamicError as error:
        raise _no_answer(error, recalling.dead, inputs, name) from error
    # what fails in several rounds is set aside once
    late = [arrival.place for arrival in recalling.late]
    return Answer(values, list(dict.fromkeys(recalling.dead)), late, name, json)


def form_of(query: ast.Query, inputs: Mapping[str, Input]) -> AnswerForm:
    """What an answer is, as the query and its inputs tell (LAWS 7.3)."""
    return outputs_of(query).form({name: own for name, each in inputs.items() if (own := each.json_item) is not None})


def _no_answer(error: DynamicError, dead: list[DeadLetter], inputs: Mapping[str, Input], name: str | None) -> NoAnswer:
    held = ((arrival, arrival.item) for each in inputs.values() for arrival in each.arrivals)
    return NoAnswer(error, [*dict.fromkeys(dead), letter_for(error, held, shown, name)])
