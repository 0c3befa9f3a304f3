"""The displays of queries, moment by moment, over finite inputs: `anabranch query --timeline`.

On a trunk a display is logged as the update stream that produces it, and its timeline is replayed from there; the
pieces of an answer that only grows are logged with their moments (`branch/timeline.py`).
The reference computes every display from scratch; it also has timelines of answers that wait for the end of a stream.
Of streams of items that evolve it has those that stay in the units of the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from anabranch.algebra.reactions.signature import Policy
from anabranch.engine.converting import converted
from anabranch.engine.finite import (
    FiniteRun,
    Letters,
    ReadInputs,
    answered_evolving,
    both,
    on_trunk,
    read_inputs,
    run_of,
    updating,
)
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Prepared
from anabranch.engine.reading import Updating
from anabranch.language.checks.outputs import AnswerForm
from anabranch.law.answer import NoAnswer, ShownAnswer, reason_of
from anabranch.law.arrivals.recall import asks
from anabranch.law.steps import allow
from anabranch.predicate.writing import number_text
from anabranch.runtime.past.timeline import Timeline
from anabranch.runtime.standing import standing
from anabranch.storage.scratch import ScratchFolder
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.settings import Settings
from anabranch.visible import visible_in_json, visible_json

_LINE_END = "\n"


@contextmanager
def timelines(
    queries: Sequence[Prepared],
    inputs: Inputs,
    limits: Limits | None = None,
    convert: AnswerForm | None = None,
    policy: Policy = "accumulate",
) -> Iterator[FiniteRun]:
    """The timelines of queries, as lines of JSON; they can be read while inside.

    With `convert`, the answers in them are of this form; `policy` says what queries do with accents (LAWS 4.7).
    Dead letters are known once the timelines were read to their end.
    """
    caps = limits or Limits()
    allow(caps.steps)
    shared = [query for query in queries if query.engine != "reference"]
    others = [query for query in queries if query.engine == "reference"]
    with ScratchFolder() as folder:
        runs = []
        if shared:
            outcome = on_trunk(shared, inputs, Settings(limits=caps, timed=True), Path(folder), policy)
            moments = {query.name: outcome.answers[query.name].moments() for query in shared}
            lines = {each.name: _line_of(each, inputs, convert) for each in shared}
            runs.append(run_of(outcome, {name: map(lines[name], each) for name, each in moments.items()}))
        if others:
            runs.append(_by_reference(others, inputs, caps, convert, policy))
        yield both(queries, runs)


def _by_reference(
    queries: Sequence[Prepared], inputs: Inputs, limits: Limits, convert: AnswerForm | None, policy: Policy
) -> FiniteRun:
    read = read_inputs(queries, inputs, limits)
    found: dict[str, Timeline | Updating] = {}
    aborted: dict[str, str] = {}
    for query in queries:
        if query.updates:
            found[query.name] = updating(query, read, inputs, limits, policy)
            continue
        law = query.checked.query
        if any(read.streams[name].input.changes for name in query.checked.streams):
            reason = _without_timeline(query, read, inputs, policy)
            if reason is not None:
                aborted[query.name] = reason
                continue
        found[query.name] = Timeline(law, read.given, functions=inputs.functions, name=query.name)
    answers: dict[str, Iterable[str]] = {query.name: () for query in queries}
    lines = {each.name: _line_of(each, inputs, convert) for each in queries}
    answers |= {name: _lines(name, timeline, lines[name], aborted) for name, timeline in found.items()}
    return FiniteRun(answers, Letters([read.dead, _Dead(tuple(found.values()))]), read.items, 0, aborted)


def _without_timeline(query: Prepared, read: ReadInputs, inputs: Inputs, policy: Policy) -> str | None:
    """Why a query over streams of items that evolve has no timeline here; None where it has one.

    What is corrected, or looks back, stays in the units of the start, in which the law reads its streams (LAWS 3.11).
    """
    law = query.checked.query
    whole = standing(law, inputs.functions, query.text)
    if whole.reason is None and not asks(law):
        return "the reference has no timeline yet of results that stand where a stream evolves: use another engine"
    try:
        ended = answered_evolving(query, whole, read, inputs, policy).aborted
    except NoAnswer:
        return None  # it fails at the end, and perhaps not before
    if ended is None:
        return None
    return f"the reference has no timeline yet of a query that fails or ends where a stream evolves: {ended}"


def _lines(
    name: str, timeline: Timeline | Updating, line: Callable[[ShownAnswer], str], aborted: dict[str, str]
) -> Iterator[str]:
    """A timeline; a failure as a whole, or an early end, is recorded at its end."""
    yield from map(line, timeline)
    if timeline.failure is not None:
        aborted[name] = reason_of(timeline.failure)
    if isinstance(timeline, Updating) and timeline.aborted is not None:
        aborted[name] = timeline.aborted


class _Dead:
    """The dead letters of queries, so far."""

    def __init__(self, timelines: Iterable[Timeline | Updating]) -> None:
        self._timelines = timelines

    def __iter__(self) -> Iterator[DeadLetter]:
        return (letter for each in self._timelines for letter in each.dead)


def _line_of(query: Prepared, inputs: Inputs, convert: AnswerForm | None) -> Callable[[ShownAnswer], str]:
    json = inputs.gives_json(query.checked)

    return partial(converted_line, to=convert) if convert else lambda shown: line(replace(shown, json=json))


def converted_line(shown: ShownAnswer, to: AnswerForm) -> str:
    """The line of an answer in another form."""
    return line(replace(shown, text="".join(converted((shown.text,), to)), json=to == "json"))


def line(shown: ShownAnswer) -> str:
    """`{"at": 12.5, "answer": "<b>Y</b>"}`, the time as an exact decimal.

    An answer in JSON is the array of its results, `{"at": 12.5, "answer": [{"b": "Y"}]}` (LAWS 7.4).
    """
    if shown.json:
        answer = f"[{visible_in_json(', '.join(shown.text.split(_LINE_END)[:-1]))}]"
    else:
        answer = visible_json(shown.text)
    return f'{{"at": {number_text(shown.at)}, "answer": {answer}}}\n'
