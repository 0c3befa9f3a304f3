"""The files that sinks write: no sink may write to a stream, to another sink's file, or into the checkpoint.

An answer may be read again as a stream of the same run, from the file that a sink writes (LAWS 5.7), or from its topic,
unless the answer depends on that stream.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from anabranch.algebra.plans.written import is_plan, read_plan, streams_of
from anabranch.errors import AnabranchError, UsageError
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.spark.sinks import Files, Kafka, Parquet, Sink, file_of, path_of
from anabranch.sql import read_query
from anabranch.storage import Location, Where
from anabranch.stream.files import Claim, check_claims, stream_claims, stream_use
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.topic import Topic


def check_sinks(
    streams: Mapping[str, Source],
    subscriptions: Mapping[str, str],
    sinks: Mapping[str, Sink],
    *,
    checkpoint: Where,
    files: Mapping[str, Where | None],
    read: Collection[Claim] = (),
) -> None:
    """Refuse sinks, and other `files` by their uses, that conflict with anything; `read` is read besides streams.

    Subscriptions are given by their texts.
    """
    written = [
        Claim(path, sink_use(name), whole=isinstance(sink, Parquet) or path.path is None)
        for name, sink in sinks.items()
        if (path := path_of(sink)) is not None
    ]
    written += [
        Claim(path, use, whole=Location.of(path).path is None) for use, path in files.items() if path is not None
    ]
    reading = stream_claims(streams.values())
    _refuse_cycles(streams, subscriptions, sinks)
    fed = _fed(reading, subscriptions, [each for each in written if not each.whole], sinks)
    check_claims([*reading, *read], written, state=Claim(checkpoint, "the checkpoint", whole=True), fed=fed)


def sink_use(name: str) -> str:
    """How messages name the file or folder of a sink."""
    return f"the sink of '{name}'"


def _fed(
    reading: Collection[Claim],
    subscriptions: Mapping[str, str],
    written: Collection[Claim],
    sinks: Mapping[str, Sink],
) -> set[tuple[str, str]]:
    """The sinks and streams, by their uses, that may share a file: the answer does not depend on the stream."""
    writers = {each.identity: each.use for each in written}
    shared = {(writers[each.identity], each.use) for each in reading if not each.whole and each.identity in writers}
    if not shared:
        return set()
    reads = {sink_use(name): _streams_of(subscriptions[name]) for name in sinks if name in subscriptions}
    return {(sink, stream) for sink, stream in shared if sink in reads and stream not in _needed(sink, reads, shared)}


def _refuse_cycles(streams: Mapping[str, Source], subscriptions: Mapping[str, str], sinks: Mapping[str, Sink]) -> None:
    """Refuse a stream that is the answer of a subscription that depends on it, or whose topic that one writes to."""
    fed = [(each.answer, name) for name, each in streams.items() if each.answer and each.answer in subscriptions]
    for name, sink in sinks.items():
        if isinstance(sink, Kafka) and name in subscriptions:
            fed += ((name, stream) for stream, each in streams.items() if each.topic and _is_topic(sink, each.topic))
    if not fed:
        return
    reads = {sink_use(name): _streams_of(text) for name, text in subscriptions.items()}
    shared = [(sink_use(subscription), stream_use(stream)) for subscription, stream in fed]
    for subscription, stream in fed:
        if stream_use(stream) in _needed(sink_use(subscription), reads, shared):
            raise UsageError(
                f"the stream '{stream}' is the answer of '{subscription}', which depends on '{stream}'",
                hint="no answer can be known before itself",
            )


def _is_topic(sink: Kafka, read: Topic) -> bool:
    """Whether a sink writes to a topic that is read, as far as their brokers tell."""
    brokers = (set(each.cluster.brokers.split(",")) for each in (sink, read))
    return sink.topic == read.name and not set.isdisjoint(*brokers)


def _needed(sink: str, reads: Mapping[str, set[str]], shared: Collection[tuple[str, str]]) -> set[str]:
    """The streams that a sink's answer depends on, also through other sinks."""
    needed: set[str] = set()
    pending = set(reads[sink])
    while pending:
        stream = pending.pop()
        needed.add(stream)
        for feeder in (each for each, fed in shared if fed == stream and each in reads):
            pending |= reads[feeder] - needed
    return needed


def _streams_of(text: str) -> set[str]:
    """The streams that a subscription reads, as claims name them; none for a wrong text, which is refused later."""
    try:
        if is_plan(text):
            names = set(streams_of(read_plan(text)))
        else:
            names = {
                each.name for each in parts(read_query(text)) if isinstance(each, ast.Source) and each.kind == "stream"
            }
    except AnabranchError:
        return set()
    return set(map(stream_use, names))


def settled(sink: Where | Sink | None, name: str, *, json: bool = False) -> Sink | None:
    """A sink as requested, with its path resolved: a path is a file, or a folder for one.

    `json` says that the answer is JSON.
    """
    match sink:
        case str() | Path() | Location():
            return Files(file_of(sink, name, json=json))
        case Files(path):
            return Files(file_of(path, name, json=json))
        case _:
            return sink
