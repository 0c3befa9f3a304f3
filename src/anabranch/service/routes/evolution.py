"""The evolution of a stream: its schema over time, its accents and what was done about them, and new accents.

Of thousands of subscriptions that did the same, a hundred are named; the others come page by page.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from anabranch.engine.publishing import Publication
from anabranch.engine.reports.evolution import AccentKind, Event
from anabranch.engine.reports.planned_accents import AccentPlan
from anabranch.engine.reports.reactions import DEEDS, Deed, SubscriptionReaction
from anabranch.errors import UsageError
from anabranch.service.access import Administrator, needs
from anabranch.service.context import Context, ServiceContext
from anabranch.service.evolving.accents import AccentObject, accent_text
from anabranch.service.refusals import NotFound
from anabranch.stream.reading.source import Source

router = APIRouter(prefix="/api/streams", tags=["evolution"], dependencies=[needs("read")])

MOST_NAMES = 100
"""Subscriptions that are named for one reaction."""
_MOST_ACCENTS = 1_000
"""The newest accents that are listed."""


class StretchAnswer(BaseModel):
    """A state of a path for some items; `to_epoch` is null while it holds."""

    from_epoch: int
    to_epoch: int | None
    items: str
    state: str
    unit: str


class LaneAnswer(BaseModel):
    """A path of a partition over time."""

    path: str
    partition: int
    stretches: list[StretchAnswer]


class ReactionAnswer(BaseModel):
    """What some subscriptions do about an accent: how many, and at most a hundred of their names."""

    deed: Deed
    count: int
    subscriptions: list[str]


class AccentAnswer(BaseModel):
    """An accent that was read, and the reactions to it."""

    number: int
    epoch: int
    partition: int
    file: str
    offset: int
    change: str
    path: str
    kind: AccentKind
    items: str
    refused: str
    reactions: list[ReactionAnswer]


class EpochSpan(BaseModel):
    """The epochs that a history spans; the last is -1 where there is none yet."""

    first: int
    last: int


class EvolutionAnswer(BaseModel):
    """The evolution of a stream; the newest thousand accents are listed, each by its number."""

    stream: str
    partitions: int
    epochs: EpochSpan
    lanes: list[LaneAnswer]
    accents: list[AccentAnswer]


class ReactingNames(BaseModel):
    """A page of the subscriptions that reacted in one way."""

    subscriptions: list[str]
    count: int
    next: str | None


class AccentBody(BaseModel):
    """An accent that is to be published: as it would stand in the stream, or as an object."""

    model_config = ConfigDict(extra="forbid")

    accent: Annotated[str, Field(max_length=100_000)] | AccentObject
    partition: Annotated[int, Field(ge=0)] | Literal["all"] | None = None
    preview: bool = False


class AccentPlanAnswer(BaseModel):
    """What an accent does, or would do: its places, and whom it concerns; `others` counts whom it does not."""

    preview: bool
    places: list[str]
    warnings: list[str]
    reactions: list[ReactionAnswer]
    reasons: dict[str, str]
    others: int


@router.get("/{name:name}/evolution")
def evolution(context: Context, name: str) -> EvolutionAnswer:
    """The schema of a stream over time, and its accents."""
    context.check_begun()
    source = context.stream(name)
    found = context.evolutions.of(source)
    events = list(enumerate(found.history.events))[-_MOST_ACCENTS:]
    return EvolutionAnswer(
        stream=name,
        partitions=len(source.partitions),
        epochs=EpochSpan(first=0, last=context.last),
        lanes=[
            LaneAnswer(
                path=each.path,
                partition=each.partition,
                stretches=[
                    StretchAnswer(
                        from_epoch=one.from_epoch,
                        to_epoch=one.to_epoch,
                        items=one.items,
                        state=one.state,
                        unit=one.unit,
                    )
                    for one in each.stretches
                ],
            )
            for each in found.lanes
        ],
        accents=[_accent(number, each) for number, each in events],
    )


@router.get("/{name:name}/evolution/{number}/{deed}")
def reacting(
    context: Context,
    name: str,
    number: Annotated[int, Path(ge=0)],
    deed: str,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> ReactingNames:
    """The subscriptions that reacted to an accent in one way, by name and page by page."""
    context.check_begun()
    events = context.evolutions.of(context.stream(name)).history.events
    if number >= len(events):
        raise NotFound(f"the stream '{name}' has had no accent {number}")
    if deed not in DEEDS:
        raise NotFound(f"there is no reaction '{deed}'", hint=f"use {', '.join(DEEDS)}")
    found = sorted({each for one in events[number].reactions if one.deed == deed for each in one.subscriptions})
    behind = [each for each in found if after is None or each > after]
    page = behind[:limit]
    return ReactingNames(subscriptions=page, count=len(found), next=page[-1] if len(behind) > limit else None)


@router.post("/{name:name}/accents", status_code=201, responses={200: {"model": AccentPlanAnswer}})
def accent(
    context: Context, name: str, body: AccentBody, client: Administrator, response: Response
) -> AccentPlanAnswer:
    """Publish an accent (201), or with `preview` say what it would do (200)."""
    context.check_begun()
    plan, places = planned(context, context.stream(name), body)
    forecast = plan.forecast()
    if body.preview:
        response.status_code = 200
    else:
        plan.publish()
        context.work.log.event("accent published", stream=name, client=client.name, places=places[:MOST_NAMES])
    reasons = {each: forecast.reasons[each] for each in list(forecast.reasons)[:MOST_NAMES]}
    return AccentPlanAnswer(
        preview=body.preview,
        places=places,
        warnings=list(plan.warnings),
        reactions=list(map(_reaction, forecast.reactions)),
        reasons=reasons,
        others=len(forecast.others),
    )


def planned(context: ServiceContext, source: Source, body: AccentBody) -> tuple[AccentPlan, list[str]]:
    """An accent for a stream, and the places where it would stand, as the site names them."""
    partition = None if body.partition is None else str(body.partition)
    if partition is None and len(source.partitions) > 1 and source.topic is None:
        hint = f"'partition' is 0 to {len(source.partitions) - 1}, or \"all\""
        raise UsageError(f"the stream '{source.name}' has {len(source.partitions)} partitions", hint=hint)
    text = body.accent if isinstance(body.accent, str) else accent_text(body.accent)
    plan = context.evolutions.plan_accent(source, text, partition)
    folder = f"{context.work.file.absolute().parent}/"
    return plan, [_place(each, folder) for each in plan.publications]


def _place(publication: Any, folder: str) -> str:
    found = str(publication.file) if isinstance(publication, Publication) else str(publication)
    return found.removeprefix(folder)


def _accent(number: int, event: Event) -> AccentAnswer:
    return AccentAnswer(
        number=number,
        epoch=event.epoch,
        partition=event.partition,
        file=event.file,
        offset=event.offset,
        change=event.change,
        path=event.path,
        kind=event.kind,
        items=event.items,
        refused=event.refused,
        reactions=list(map(_reaction, event.reactions)),
    )


def _reaction(given: SubscriptionReaction) -> ReactionAnswer:
    names = given.subscriptions
    return ReactionAnswer(deed=given.deed, count=len(names), subscriptions=list(names[:MOST_NAMES]))
