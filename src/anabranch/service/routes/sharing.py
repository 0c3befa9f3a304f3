"""What subscriptions share: the groups of the plan, and who is in each (docs/service.md).

`without` is what an engine that reads a stream once for each query would read, and `with` what is read.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from anabranch.service.access import Reader
from anabranch.service.context import Context, ServiceContext
from anabranch.service.refusals import NotFound
from anabranch.service.watch.sharing import GroupedPlan, SharingGroup

router = APIRouter(prefix="/api/sharing", tags=["sharing"])

MOST = 1_000
"""Subscriptions on a page."""


class GroupAnswer(BaseModel):
    """Subscriptions that are answered together; `label` has `?` for what differs, and some of them are named."""

    id: str
    kind: str
    label: str
    streams: list[str]
    subscriptions: int
    queries: int
    branches: int
    answers_per_second: float
    in_columns: bool
    reason: str
    names: list[str]


class SharedStream(BaseModel):
    """A stream and the groups that read it."""

    name: str
    items_per_second: float
    bytes_per_second: float
    subscriptions: int
    groups: list[str]


class ReadVolume(BaseModel):
    """What is read: the bytes of a second, and how often streams are gone through."""

    bytes_per_second: float
    passes: int


class SharingAnswer(BaseModel):
    """The shared plan; where there are very many groups, the smaller ones of a kind are one."""

    streams: list[SharedStream]
    groups: list[GroupAnswer]
    without: ReadVolume
    shared: Annotated[ReadVolume, Field(alias="with")]


class GroupMember(BaseModel):
    """A subscription of a group."""

    name: str
    answers: int
    query: str


class GroupPage(BaseModel):
    """A page of a group's subscriptions, by name."""

    group: GroupAnswer
    subscriptions: list[GroupMember]
    next: str | None


@router.get("", response_model_by_alias=True)
def sharing(context: Context, client: Reader) -> SharingAnswer:
    """The groups of the plan, the largest first."""
    figures, plan = context.watch.activity.figures(), _plan(context)
    rates = {name: figures.rate("bytes", name) for name in context.work.site.streams}
    readers = {} if plan is None else {name: plan.readers.get(name, 0) for name in rates}
    without = sum(rates[name] * count for name, count in readers.items())
    read = [name for name, count in readers.items() if count]
    groups = [] if plan is None else _groups(context, plan)
    return SharingAnswer.model_validate(
        {
            "streams": [
                SharedStream(
                    name=name,
                    items_per_second=round(figures.rate("items", name), 1),
                    bytes_per_second=round(rates[name], 1),
                    subscriptions=readers.get(name, 0),
                    groups=[each.id for each in groups if name in each.streams],
                )
                for name in rates
            ],
            "groups": groups,
            "without": ReadVolume(bytes_per_second=round(without, 1), passes=sum(readers.values())),
            "with": ReadVolume(bytes_per_second=round(sum(rates[name] for name in read), 1), passes=len(read)),
        }
    )


@router.get("/{group:name}")
def members(
    context: Context,
    client: Reader,
    group: str,
    after: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> GroupPage:
    """The subscriptions of a group, by name, page by page; `after` is the last name of the page before."""
    plan = _plan(context)
    if plan is None or group not in plan.by_id:
        raise NotFound(f"there is no group '{group}'", hint="groups change with subscriptions: ask /api/sharing")
    place = plan.by_id[group]
    found = plan.members(place)
    begin = 0 if after is None else bisect_right(found, after, key=lambda each: each.name)
    page = found[begin : begin + limit]
    entries = context.work.entries
    return GroupPage(
        group=_groups(context, plan)[place],
        subscriptions=[
            GroupMember(
                name=each.name,
                answers=context.answers(each),
                query=entries[each.name].declared.text if each.name in entries else each.text,
            )
            for each in page
        ],
        next=page[-1].name if page and begin + limit < len(found) else None,
    )


def _plan(context: ServiceContext) -> GroupedPlan | None:
    """The newest plan by groups, None before the first."""
    plan, figures = context.plan, context.watch.activity.figures()
    if plan is None:
        return None
    return context.watch.groups.of(plan, {name: each.by_law for name, each in figures.streams.items()})


def _groups(context: ServiceContext, plan: GroupedPlan) -> list[GroupAnswer]:
    count = len(plan.groups) + 1  # one more for subscriptions in no group
    rates = context.watch.activity.answers_per_second(plan.numbers, plan.codes, count)
    return [_group(each, rate) for each, rate in zip(plan.groups, rates, strict=False)]


def _group(group: SharingGroup, rate: float) -> GroupAnswer:
    return GroupAnswer(
        id=group.id,
        kind=group.kind,
        label=group.label,
        streams=list(group.streams),
        subscriptions=group.subscriptions,
        queries=group.queries,
        branches=group.branches,
        answers_per_second=round(rate, 1),
        in_columns=group.in_columns,
        reason=group.reason,
        names=list(group.names),
    )
