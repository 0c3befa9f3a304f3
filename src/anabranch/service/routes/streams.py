"""Streams: what a site reads."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from anabranch.service.access import needs
from anabranch.service.context import Context, ServiceContext
from anabranch.service.routes.now import LagAnswer
from anabranch.service.watch.lag import UNKNOWN
from anabranch.service.watch.snapshot import lag_plain
from anabranch.stream.reading.source import Source

router = APIRouter(prefix="/api/streams", tags=["streams"], dependencies=[needs("read")])


class StreamSummary(BaseModel):
    """A stream as it is declared, and how many read it."""

    name: str
    source: str
    where: str
    format: str
    partitions: int
    root: str | None
    item: str | None
    time: str | None
    time_unit: str | None
    updates: bool
    strict: bool
    url: str | None
    """Where it is pushed, if it is."""
    subscriptions: int
    items: int
    """Since the service has started."""
    items_per_second: float
    bytes_per_second: float
    lag: LagAnswer


class StreamPath(BaseModel):
    """The state of a path, for some items of a partition."""

    partition: int
    path: str
    items: str
    state: str
    unit: str


class LearnedValues(BaseModel):
    """A path of the newest items, and a few of its values."""

    path: str
    values: list[str]


class StreamAnswer(StreamSummary):
    """A stream by itself, with what is known of its items."""

    paths: list[StreamPath]
    learned: list[LearnedValues]


class StreamList(BaseModel):
    """All streams."""

    streams: list[StreamSummary]


@router.get("")
def streams(context: Context) -> StreamList:
    """The streams of the site."""
    return StreamList(streams=[summary(context, each) for each in context.work.site.streams.values()])


@router.get("/{name:name}")
def stream(context: Context, name: str) -> StreamAnswer:
    """A stream, with its paths now and those of its newest items."""
    context.check_begun()
    source = context.stream(name)
    schema = context.evolutions.course(source).schema()
    return StreamAnswer(
        **summary(context, source).model_dump(by_alias=True),
        paths=[
            StreamPath(partition=each.partition, path=each.path, items=each.items, state=each.state, unit=each.unit)
            for each in schema
        ],
        learned=[
            LearnedValues(path=each.path, values=list(each.values)) for each in context.evolutions.learned(source)
        ],
    )


def summary(context: ServiceContext, source: Source) -> StreamSummary:
    """A stream for clients."""
    figures = context.watch.activity.figures()
    lag = context.watch.look.lags.get(source.name, UNKNOWN).whole
    return StreamSummary(
        name=source.name,
        source=kind_of(source),
        where=", ".join(str(each) for each in source.partitions),
        format=source.format,
        partitions=len(source.partitions),
        root=source.root,
        item=source.item,
        time=None if source.time is None else str(source.time),
        time_unit=source.time_unit,
        updates=source.updates,
        strict=source.strict,
        url=context.work.addresses.get(source.name),
        subscriptions=context.watch.readers()[source.name],
        items=figures.items(source.name),
        items_per_second=round(figures.rate("items", source.name), 1),
        bytes_per_second=round(figures.rate("bytes", source.name), 1),
        lag=LagAnswer.model_validate(lag_plain(lag)),
    )


def kind_of(source: Source) -> str:
    """What a stream is read from, as in SITE.toml."""
    if source.topic is not None:
        return "kafka"
    if source.http is not None:
        return "http"
    return "answer" if source.answer else "files"
