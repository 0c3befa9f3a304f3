"""Answering queries over inputs that have an end, on Spark or by the reference evaluator.

All queries of a run are subscriptions of one trunk, so each stream is read once, whatever their number.
A query that Spark cannot answer yet goes to the reference evaluator unless the caller insists on Spark; both give the
same answer, so nothing but the speed tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, TypeAlias

from anabranch.algebra.signature import Policy
from anabranch.engine.reading import read_stream
from anabranch.errors import Unsupported, UsageError
from anabranch.language import Checked, check, parse, print_query
from anabranch.reference import document_input, evaluate
from anabranch.reference.calls import PythonFunction
from anabranch.reference.standing import ordered_by_time, standing
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.parse import parse_document
from anabranch.stream.schema import Schema
from anabranch.stream.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from anabranch.spark.trunk import Progress

EngineName: TypeAlias = Literal["spark", "reference"]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What queries may read: streams, and documents by name."""

    streams: Sequence[Source] = ()
    documents: Mapping[str, Path] | None = None
    functions: Mapping[str, PythonFunction] | None = None

    def schemas(self) -> dict[str, Schema | None]:
        """The known inputs; a document has no schema."""
        documents: dict[str, Schema | None] = dict.fromkeys(self.documents or {})
        return {source.name: source.schema for source in self.streams} | documents


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that was checked, with the engine that will answer it."""

    name: str
    label: str
    text: str
    checked: Checked
    engine: EngineName
    note: str | None
    """Why it is not answered on Spark, where the caller left the choice open."""

    @property
    def warnings(self) -> Iterator[str]:
        for warning in self.checked.warnings:
            line = self.text.count("\n", 0, warning.span.start) + 1
            yield f"{self.label}:{line}: {warning.message}"


@dataclass(frozen=True, slots=True)
class Run:
    """The answers of a run, as pieces of text, and what was set aside; valid inside `answering` only."""

    answers: Mapping[str, Iterable[str]]
    dead: Iterable[DeadLetter]
    items: int
    late: int
    aborted: Mapping[str, str] = field(default_factory=dict)
    """Why queries ended before their streams did (LAWS 4.6); their answers up to there stay."""


def prepare(
    name: str, text: str, inputs: Inputs, engine: EngineName | None = None, *, label: str | None = None
) -> Prepared:
    """Parse and check a query and choose its engine; `engine` of None means Spark where it can.

    `label` is what errors call the query, a file's name say.
    """
    label = label or name
    checked = check(
        parse(text, label),
        text,
        inputs=inputs.schemas(),
        functions=tuple(inputs.functions or ()),
        name=label,
    )
    if engine == "reference":
        return Prepared(name, label, text, checked, "reference", None)
    try:
        reason = standing(checked.query, inputs.functions, text).reason
    except Unsupported as error:
        error.name = label
        raise
    if reason is not None and engine is None:
        # Spark would only gather the input first, and starting it takes its time.
        return Prepared(
            name, label, text, checked, "reference", f"{reason.message}: the reference engine answers '{name}'"
        )
    return Prepared(name, label, text, checked, "spark", None)


def refuse_endless(prepared: Prepared, inputs: Inputs) -> None:
    """Refuse a query that has no answer before its streams end, for streams that have no end."""
    query = standing(prepared.checked.query, inputs.functions, prepared.text)
    reason = query.reason
    if query.kind == "interval join" and not ordered_by_time(query, {each.name: each.time for each in inputs.streams}):
        reason = Unsupported(
            "an interval join needs streams whose declared times are what it compares",
            text=prepared.text,
            span=query.flwor.span,
            hint='declare them, as in time = "det_time", or use windows',
        )
    if reason is not None:
        reason.name = prepared.label
        raise reason


@contextmanager
def answering(
    queries: Sequence[Prepared],
    inputs: Inputs,
    *,
    limits: Limits | None = None,
    epoch_bytes: int = 16 << 20,
    sharing: bool = True,
    policy: Policy = "accumulate",
    on_progress: Callable[[Progress], None] | None = None,
) -> Iterator[Run]:
    """Answer the queries to the end of their inputs; the answers can be read while inside.

    `epoch_bytes` bounds what Spark reads between two calls of `on_progress`; without `sharing` nothing is done once
    for several queries but reading.
    `policy` says what queries do with accents that their answers cannot express (LAWS 4.7).
    """
    caps = limits or Limits()
    on_spark = [query for query in queries if query.engine == "spark"]
    others = [query for query in queries if query.engine == "reference"]
    with TemporaryDirectory(prefix="anabranch-") as folder:
        runs = []
        if on_spark:
            runs.append(_on_spark(on_spark, inputs, caps, Path(folder), epoch_bytes, sharing, policy, on_progress))
        if others:
            runs.append(_by_reference(others, inputs, caps, policy))
        found = {name: answer for run in runs for name, answer in run.answers.items()}
        answers = {query.name: found[query.name] for query in queries}
        dead = dict.fromkeys(letter for run in runs for letter in run.dead)  # both engines saw the same bad input
        aborted = {name: reason for run in runs for name, reason in run.aborted.items()}
        yield Run(answers, list(dead), max(run.items for run in runs), sum(run.late for run in runs), aborted)


def _on_spark(
    queries: Sequence[Prepared],
    inputs: Inputs,
    limits: Limits,
    folder: Path,
    epoch_bytes: int,
    sharing: bool,
    policy: Policy,
    on_progress: Callable[[Progress], None] | None,
) -> Run:
    # Imported here: whoever only wants the reference need not wait for Spark, nor have Java.
    from anabranch.spark.session import local_session
    from anabranch.spark.trunk import run_queries

    texts = {query.name: print_query(query.checked.query) for query in queries}
    spark = local_session()
    outcome = run_queries(
        spark,
        inputs.streams,
        texts,
        folder,
        limits,
        epoch_bytes=epoch_bytes,
        documents=inputs.documents,
        functions=inputs.functions,
        sharing=sharing,
        policy=policy,
        on_progress=on_progress,
    )
    progress = outcome.progress
    return Run(outcome.answers, outcome.dead_letters(), progress.items, progress.late, outcome.aborted)


def _by_reference(queries: Sequence[Prepared], inputs: Inputs, limits: Limits, policy: Policy) -> Run:
    needed = {name for query in queries for name in (*query.checked.streams, *query.checked.documents)}
    streams = {each.name: read_stream(each, limits) for each in inputs.streams if each.name in needed}
    named = (inputs.documents or {}).items()
    documents = {name: document_input(parse_document(_bytes_of(path))) for name, path in named if name in needed}
    dead = [letter for each in streams.values() for letter in each.dead]
    answers: dict[str, Iterable[str]] = {}
    aborted: dict[str, str] = {}
    late: set[Place] = set()
    for query in queries:
        law = query.checked.query
        if any(streams[name].input.changes for name in query.checked.streams):
            # Imported here: it loads what the law can do without.
            from anabranch.engine.evolved import answer_evolving, fed, text_of

            whole = standing(law, inputs.functions, query.text)
            given = {name: fed(streams[name]) for name in whole.streams}
            found = answer_evolving(whole, query.name, given, inputs.functions, documents, policy)
            answers[query.name] = (text_of(whole, found),)
            aborted |= {} if found.aborted is None else {query.name: found.aborted}
            dead += found.dead
            late |= set(found.places)
        else:
            read = {**documents, **{name: each.input for name, each in streams.items()}}
            answer = evaluate(law, read, functions=inputs.functions, name=query.name, text=query.text)
            answers[query.name] = (answer.text,)
            dead += answer.dead
            late |= set(answer.late)
    items = sum(len(each.input.arrivals) for each in streams.values())
    return Run(answers, dead, items, len(late), aborted)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
