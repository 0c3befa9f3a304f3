"""Answering queries over inputs that have an end, on a trunk or by the reference evaluator.

All queries of a run are subscriptions of one trunk, so each stream is read once, whatever their number; its host is
this process or Spark (`spark/hosts/`).
A query that a trunk cannot answer, or that has to wait for the end of its streams anyway, goes to the reference
evaluator unless the caller insists; all give the same answer, at different speeds.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.algebra.reactions.signature import Policy
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Prepared
from anabranch.engine.reading import Read, Updating, WrittenStream, read_documents, read_stream, read_written
from anabranch.errors import DynamicError
from anabranch.language import print_query
from anabranch.law import Input, evaluate
from anabranch.law.answer import NoAnswer, reason_of
from anabranch.law.steps import allow
from anabranch.runtime.standing import Standing, standing
from anabranch.storage.scratch import ScratchFolder
from anabranch.stream.culprits import letter_of
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from anabranch.spark.epoch.finite import Outcome, RunProgress


@dataclass(frozen=True, slots=True)
class FiniteRun:
    """The answers of a run, as pieces of text, and the dead letters; valid inside `answering` only."""

    answers: Mapping[str, Iterable[str]]
    dead: Iterable[DeadLetter]
    items: int
    late: int
    aborted: MutableMapping[str, str] = field(default_factory=dict)
    """Why queries ended before their streams did (LAWS 4.6), keeping their answers so far; or why they have no answer,
    because they failed as a whole (LAWS 2.4). For timelines it is known once they were read to their end."""


@contextmanager
def answering(
    queries: Sequence[Prepared],
    inputs: Inputs,
    settings: Settings | None = None,
    *,
    policy: Policy = "accumulate",
    on_progress: Callable[[RunProgress], None] | None = None,
) -> Iterator[FiniteRun]:
    """Answer the queries to the end of their inputs; the answers can be read while inside.

    The size of an epoch bounds what a trunk reads between two calls of `on_progress`.
    `policy` says what queries do with accents that their answers cannot express (LAWS 4.7).
    """
    chosen = settings or Settings()
    allow(chosen.limits.steps)
    shared = [query for query in queries if query.engine != "reference"]
    others = [query for query in queries if query.engine == "reference"]
    with ScratchFolder() as folder:
        runs = []
        if shared:
            outcome = on_trunk(shared, inputs, chosen, Path(folder), policy, on_progress)
            runs.append(run_of(outcome, outcome.answers))
        if others:
            runs.append(_by_reference(others, inputs, chosen.limits, policy))
        yield both(queries, runs)


def both(queries: Sequence[Prepared], runs: Sequence[FiniteRun]) -> FiniteRun:
    """The results of both engines, for the queries in their order; both saw the same bad input."""
    found = {name: answer for run in runs for name, answer in run.answers.items()}
    # some are only known after the answers were read
    aborted = ChainMap(*(run.aborted for run in runs))
    return FiniteRun(
        {query.name: found[query.name] for query in queries},
        Letters([run.dead for run in runs]),
        max((run.items for run in runs), default=0),
        sum(run.late for run in runs),
        aborted,
    )


def failing(run: FiniteRun, failed: Mapping[str, DynamicError]) -> FiniteRun:
    """The same with queries that failed before their streams began, and have no answer; they come last."""
    letters = [letter_of(error, (), 0, name) for name, error in failed.items()]
    return replace(
        run,
        answers={**run.answers, **dict.fromkeys(failed, ())},
        dead=Letters([run.dead, letters]),
        aborted=ChainMap(run.aborted, {name: reason_of(error) for name, error in failed.items()}),
    )


@dataclass(frozen=True, slots=True)
class Letters:
    """Dead letters from several places, each once; collected lazily."""

    several: Sequence[Iterable[DeadLetter]]

    def __iter__(self) -> Iterator[DeadLetter]:
        return iter(dict.fromkeys(letter for each in self.several for letter in each))


def on_trunk(
    queries: Sequence[Prepared],
    inputs: Inputs,
    settings: Settings,
    folder: Path,
    policy: Policy = "accumulate",
    on_progress: Callable[[RunProgress], None] | None = None,
) -> Outcome:
    """Answer queries on a trunk, in a folder; with `timed` settings, their moments are kept."""
    # Imported here, so that the reference alone need not wait for it.
    from anabranch.spark.epoch.finite import run_queries
    from anabranch.spark.hosts.host import host_of

    texts = {query.name: print_query(query.checked.query) for query in queries}
    return run_queries(
        host_of(local=all(query.engine == "local" for query in queries)),
        inputs.streams,
        texts,
        folder,
        settings,
        documents=inputs.documents,
        functions=inputs.functions,
        policy=policy,
        on_progress=on_progress,
    )


def run_of(outcome: Outcome, answers: Mapping[str, Iterable[str]]) -> FiniteRun:
    """The results of a trunk, with these answers."""
    progress = outcome.progress
    return FiniteRun(
        answers, Letters([list(outcome.dead_letters())]), progress.items, progress.late, dict(outcome.aborted)
    )


@dataclass(frozen=True, slots=True)
class ReadInputs:
    """Finite inputs, read to their end."""

    streams: Mapping[str, Read]
    """The streams that are read as streams of items."""
    written: Mapping[str, WrittenStream]
    """The streams that are edited, or read beside edited ones."""
    documents: Mapping[str, Input]

    @property
    def given(self) -> dict[str, Input]:
        """The inputs for the law."""
        return {**self.documents, **{name: each.input for name, each in self.streams.items()}}

    @property
    def dead(self) -> dict[DeadLetter, None]:
        """The dead letters of reading."""
        found = [letter for each in self.streams.values() for letter in each.dead]
        found += [letter for each in self.written.values() for letter in each.dead]
        return dict.fromkeys(found)

    @property
    def items(self) -> int:
        items = {name: each.items for name, each in self.written.items()}
        items |= {name: len(each.input.arrivals) for name, each in self.streams.items()}
        return sum(items.values())


def read_inputs(queries: Sequence[Prepared], inputs: Inputs, limits: Limits) -> ReadInputs:
    """Read the inputs of queries."""
    edited = {name for query in queries if query.updates for name in query.checked.streams}
    others = {name for query in queries if not query.updates for name in query.checked.streams}
    streams = {each.name: read_stream(each, limits) for each in inputs.streams if each.name in others}
    written = {each.name: read_written(each, limits) for each in inputs.streams if each.name in edited}
    needed = {name for query in queries for name in query.checked.documents}
    named = (inputs.documents or {}).items()
    return ReadInputs(streams, written, read_documents({name: path for name, path in named if name in needed}))


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """The answer to one query."""

    text: str
    dead: Sequence[DeadLetter]
    late: Sequence[Place] = ()
    aborted: str | None = None
    """Why it ended before its streams did, or has no answer."""


def _by_reference(queries: Sequence[Prepared], inputs: Inputs, limits: Limits, policy: Policy) -> FiniteRun:
    read = read_inputs(queries, inputs, limits)
    found = {query.name: _answered(query, read, inputs, limits, policy) for query in queries}
    dead = dict.fromkeys((*read.dead, *(letter for each in found.values() for letter in each.dead)))
    return FiniteRun(
        {name: (each.text,) for name, each in found.items()},
        list(dead),
        read.items,
        len({place for each in found.values() for place in each.late}),
        {name: each.aborted for name, each in found.items() if each.aborted is not None},
    )


def _answered(query: Prepared, read: ReadInputs, inputs: Inputs, limits: Limits, policy: Policy) -> AnsweredQuery:
    """Answer one query; where it fails as a whole, it has no answer, and others are not affected (LAWS 2.4)."""
    law = query.checked.query
    edited = updating(query, read, inputs, limits, policy) if query.updates else None
    try:
        if edited is not None:
            text = edited.answer()
            return AnsweredQuery(text, edited.dead, (), edited.aborted)
        if any(read.streams[name].input.changes for name in query.checked.streams):
            return answered_evolving(query, standing(law, inputs.functions, query.text), read, inputs, policy)
        answer = evaluate(law, read.given, functions=inputs.functions, name=query.name)
        return AnsweredQuery(answer.text, answer.dead, answer.late)
    except NoAnswer as failure:
        return AnsweredQuery("", [*(edited.dead if edited else ()), *failure.dead], (), failure.reason)


def answered_evolving(
    query: Prepared, whole: Standing, read: ReadInputs, inputs: Inputs, policy: Policy
) -> AnsweredQuery:
    """Answer a query over streams of items that evolve."""
    # Imported here: it loads more than the law needs.
    from anabranch.engine.evolved import answer_evolving, fed, text_of

    given = {name: fed(read.streams[name]) for name in whole.streams}
    found = answer_evolving(whole, query.name, given, inputs.functions, read.documents, policy)
    return AnsweredQuery(text_of(whole, found), found.dead, found.places, found.aborted)


def updating(
    query: Prepared, read: ReadInputs, inputs: Inputs, limits: Limits, policy: Policy = "accumulate"
) -> Updating:
    """A query over streams of updates, ready to be answered."""
    return Updating(
        query.checked.query,
        read.written,
        read.documents,
        functions=inputs.functions,
        name=query.name,
        text=query.text,
        limits=limits,
        policy=policy,
    )
