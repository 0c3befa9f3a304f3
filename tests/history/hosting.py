"""Queries over update streams on a trunk, beside the law: many cases on one trunk, each with streams of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

from anabranch.algebra.display.replay import Replay
from anabranch.errors import AnabranchError, DynamicError
from anabranch.language import check, parse
from anabranch.law.arrivals.past import named
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import answer, arrivals
from anabranch.spark.answers.log import AnswerLog
from anabranch.stream.elements import DeadLetter, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Contents, Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.asking import timeline
from history.editing import apply
from history.following import Asking
from history.writing import Writer

WHEN = ItemPath.parse("when")


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and its streams by name: the content of their roots, partition by partition."""

    query: str
    streams: dict[str, list[str]]
    timed: bool = False
    """Whether the streams have a time path, as those of several partitions must."""

    def sources(self, folder: Path) -> list[Source]:
        """The streams as files."""
        found: list[Source] = []
        for name, partitions in self.streams.items():
            files = [folder / f"{name}-{number}.xml" for number in range(len(partitions))]
            for file, content in zip(files, partitions, strict=True):
                file.write_text(f'<root xmlns:s="{STREAM_NAMESPACE}">{content}</root>')
            more = tuple(files[1:])
            found.append(Source(name, files[0], more=more, time=WHEN if self.timed else None, updates=True))
        return found


@dataclass(slots=True)
class Law:
    """What the law says of a case."""

    shown: list[tuple[Fraction, str]] = field(default_factory=list)
    answer: str | None = None
    """None where the query fails at the end."""
    bad: list[DeadLetter] = field(default_factory=list)
    """What is bad in the streams."""

    @staticmethod
    def of(case: Case, sources: list[Source]) -> Law:
        law = Law()
        query = check(
            parse(case.query), case.query, inputs=dict.fromkeys(case.streams), edited=tuple(case.streams)
        ).query
        documents: dict[str, EditedDocument] = {}
        partitions: dict[str, list[list[StreamElement]]] = {}
        for source in sources:
            contents = Contents(source, Limits())
            documents[source.name] = EditedDocument(contents.root)
            read = [list(each) for each in contents.partitions]
            partitions[source.name] = [[e for e in each if not isinstance(e, DeadLetter)] for each in read]
        times = {each.name: each.time for each in sources}
        coming = arrivals(documents, partitions, times)
        law.shown = [(each.at, each.text) for each in timeline(query, documents, coming, [])]
        law.bad = [letter for each in documents.values() for letter in each.admission.dead]
        try:
            law.answer = answer(query, documents).text
        except DynamicError:
            law.answer = None
        return law


def random_case(number: int, share: int = 1) -> Case | None:
    """A case as a function of its number; None where its query is refused. Each `share` of them have streams alike."""
    world, random = number // share, Random(number // share)
    names = [f"s{world}", *([f"t{world}"] if random.random() < 0.3 else [])]
    several = random.random() < 0.2
    streams = {
        name: [Writer(random).stream(random.choice((3, 5, 8))) for _ in range(2 if several else 1)] for name in names
    }
    query = Asking(Random(f"{share} {number}")).any_query(*names)
    try:
        read = named(check(parse(query), query, inputs=dict.fromkeys(streams), edited=tuple(streams)).query)
    except AnabranchError:
        return None
    return Case(query, {name: streams[name] for name in read}, timed=several)


def replayed(log: AnswerLog, name: str) -> list[tuple[Fraction, str]]:
    """What the log of a subscription shows, moment by moment; the edits must lead there."""
    subscription = log.subscription(name)
    assert subscription is not None
    assert subscription.shows
    replay, found, text = Replay(), list[tuple[Fraction, str]](), ""
    for manifest in log.manifests.since(subscription.first):
        for chunk in log.chunks(manifest, subscription.id):
            for moment in replay.feed(log.text(chunk)):
                before, text = text, apply(moment.edits, text)
                if text != before:
                    found.append((Fraction(moment.at), text))
            assert text == replay.text
    return found
