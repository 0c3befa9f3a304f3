"""Queries over inputs that have an end: a trunk in a folder of its own, run until everything is read.

It is the trunk of an endless run (`trunk.py`), started once over files that are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.algebra.plans.written import is_plan, read_plan, streams_of
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.past.queries import recalled_query, refuse_unfollowed
from anabranch.language import check, parse, print_query
from anabranch.law.arrivals.past import named
from anabranch.law.calls import PythonFunction
from anabranch.spark.answers.log import AnswerLog, CommittedAnswer
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.host import Host
from anabranch.spark.plan.kinds import not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.storage import Where
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings

_SAMPLE_LENGTH = 400
_MOST_SAMPLED = 20
"""With more subscriptions than this, an epoch shows no samples."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run, reported after each epoch; answers and samples by subscription."""

    epochs: int
    bytes_read: int
    bytes_total: int
    items: int
    dead_letters: int
    late: int
    answers: Mapping[str, int]
    samples: Mapping[str, str]
    """The beginning of one answer of the latest epoch that had any."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run; answers and dead letters are read from the run's folder, which must still be there."""

    answers: Mapping[str, CommittedAnswer]
    progress: RunProgress
    aborted: Mapping[str, str]
    """By subscription: why it ended before its streams did (LAWS 4.6)."""
    _log: AnswerLog

    def dead_letters(self) -> Iterator[DeadLetter]:
        """All dead letters, in stream order within each epoch."""
        return self._log.dead_letters()


def run_queries(
    host: Host,
    sources: Sequence[Source],
    queries: Mapping[str, str],
    work: Where,
    settings: Settings | None = None,
    *,
    documents: Mapping[str, DocumentSource] | None = None,
    functions: Mapping[str, PythonFunction] | None = None,
    policy: Policy = "accumulate",
    on_progress: Callable[[RunProgress], None] | None = None,
) -> Outcome:
    """Answer the queries, given by name, over the streams to their end; `work` is an empty folder for this run.

    A plan of the builder is given in its text form (`algebra/plans/written.py`).

    Raises `QueryError` for a wrong query, `Unsupported` for a query over items and updates whose need of items is not
    known, and `StreamError` for a stream that cannot be read; there are no partial answers.
    With `timed` settings, only the moments of an answer can be read.
    `on_progress` is called on another thread.
    """
    inputs = {**{source.name: source.schema for source in sources}, **dict.fromkeys(documents or {})}
    registered = dict(functions or {})
    edited = {source.name for source in sources if source.updates}
    plans = {name: read_plan(text) for name, text in queries.items() if is_plan(text)}
    checked = {
        name: check(
            parse(text, name), text, inputs=inputs, functions=registered, name=name, edited=edited, finite=True
        ).query
        for name, text in queries.items()
        if name not in plans
    }
    for name, query in checked.items():
        past = recalled_query(query, registered, queries[name], edited)
        refuse_unfollowed(query, past, edited, queries[name], name)
    needed = {each for query in checked.values() for each in named(query)}
    needed |= {each for plan in plans.values() for each in streams_of(plan)}
    texts = {name: queries[name] if name in plans else print_query(checked[name]) for name in queries}
    streams = {source.name: source for source in sources if source.name in needed}
    total = sum(source.size for source in streams.values())
    start = RunProgress(0, 0, total, 0, 0, 0, dict.fromkeys(texts, 0), {})
    display = _Display(AnswerLog(Checkpoint.at(work)), start)

    def show(epoch: Epoch) -> None:
        display.add(epoch, samples=on_progress is not None)
        if on_progress is not None:
            on_progress(display.progress)

    chosen = replace(settings or Settings(), finite=True)
    with Trunk(host, work, chosen, registered, Listener(show)) as trunk:
        trunk.want(Workload(streams, texts, documents=documents or {}, policies=dict.fromkeys(texts, policy)))
        trunk.start(once=True)
        trunk.wait()
        plan = trunk.plan
    # An empty stream has no epoch and no plan, but its subscriptions still have an answer.
    known = plan.by_name if plan else {}
    unread = QueryContext.of(streams.values(), registered, endless=False)
    found = {name: known.get(name) or not_begun(name, text, unread) for name, text in texts.items()}
    answers = {name: display.log.answer(each, registered) for name, each in found.items()}
    return Outcome(answers, display.progress, display.aborted, display.log)


class _Display:
    """Sums epochs up for a display; only the trunk's thread changes it."""

    def __init__(self, log: AnswerLog, start: RunProgress) -> None:
        self.log = log
        self.progress = start
        self.aborted: dict[str, str] = {}

    def add(self, epoch: Epoch, *, samples: bool) -> None:
        before, manifest = self.progress, epoch.manifest
        known = epoch.plan.by_id
        self.aborted |= {known[number].name: reason for number, reason in manifest.aborted.items() if number in known}
        answers, latest = dict(before.answers), dict[str, str]()
        index = self.log.index(manifest)
        for number, entries in index.entries().by_subscription().items():
            if number in known:
                name = known[number].name
                answers[name] += entries
                if samples and len(latest) < _MOST_SAMPLED:
                    chunk = index.of(number)[0]
                    latest[name] = self.log.text(chunk, min(chunk.first, _SAMPLE_LENGTH))
        self.progress = RunProgress(
            before.epochs + 1,
            before.bytes_read + manifest.bytes_read,
            before.bytes_total,
            before.items + manifest.items,
            before.dead_letters + manifest.dead_letters,
            before.late + manifest.late,
            answers,
            {**before.samples, **latest},
        )
