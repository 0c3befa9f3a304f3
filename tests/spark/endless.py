"""A trunk that does not wait for the end of its streams, over streams that end all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anabranch.language import check, parse, print_query
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.host import Host
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What came of the queries, by their names."""

    answers: Mapping[str, str]
    aborted: Mapping[str, str]
    dead: Sequence[DeadLetter]
    branches: int
    """How many branches there were."""


def run_ended(
    host: Host, sources: Sequence[Source], queries: Mapping[str, str], work: Path, settings: Settings
) -> EndedRun:
    """Answer queries as elements come."""
    assert all(each.ended for each in sources)
    inputs = {source.name: source.schema for source in sources}
    texts = {
        name: print_query(check(parse(text, name), text, inputs=inputs, name=name).query)
        for name, text in queries.items()
    }
    log = AnswerLog(Checkpoint.at(work))
    aborted: dict[str, str] = {}

    def note(epoch: Epoch) -> None:
        known = epoch.plan.by_id
        aborted.update({known[number].name: reason for number, reason in epoch.manifest.aborted.items()})

    with Trunk(host, work, replace(settings, finite=False), {}, Listener(note)) as trunk:
        trunk.want(Workload({each.name: each for each in sources}, texts))
        trunk.start(once=True)
        trunk.wait()
        plan = trunk.plan
    assert plan is not None
    answers = {name: log.answer(plan.by_name[name], {}).text() for name in texts}
    branches = len({each.branch for each in plan.by_name.values() if each.family})
    return EndedRun(answers, aborted, list(log.dead_letters()), branches)
