"""Answers: page by page, or as events as they come (docs/service.md).

A page of a kind with `before` or `last` has its results in the order of the answer, too; `more` says then whether there
are others in front of it.
A page of very long results may have fewer of them than asked for.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel
from starlette.responses import Response

from anabranch.errors import UsageError
from anabranch.service.access import Reader
from anabranch.service.answers.asked import AskedAnswer
from anabranch.service.answers.events import AnswerEvents
from anabranch.service.answers.positions import ResultPosition
from anabranch.service.context import Context, ServiceContext
from anabranch.service.settings import Client
from anabranch.site_work import NotReady

router = APIRouter(prefix="/api/subscriptions", tags=["answers"])

MOST = 1_000
"""Results on a page."""
_PAGE_CHARACTERS = 8 << 20
"""A page ends behind the result with which it has so many."""

PositionText = Annotated[str, Query(pattern=r"^[0-9]{1,18}-[0-9]{1,18}$", examples=["12-3"])]
"""A position as a parameter."""


class Result(BaseModel):
    """A result of an answer."""

    position: str
    text: str


class AnswerPage(BaseModel):
    """Some results of an answer, in order; `next` is what the following page lies behind."""

    name: str
    answer: Literal["xml", "json", "display"]
    opening: str
    closing: str
    answers: list[Result]
    next: str | None
    more: bool
    whole: bool


@router.get(
    "/{name:name}/answers",
    response_model=AnswerPage,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
def answers(
    context: Context,
    client: Reader,
    name: str,
    after: PositionText | None = None,
    before: PositionText | None = None,
    last: Annotated[int | None, Query(ge=1, le=MOST)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    begin: Annotated[Literal["now", "beginning"] | None, Query(alias="from")] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    last_event_id: Annotated[str | None, Header()] = None,
) -> AnswerPage | Response:
    """A page of an answer; with `Accept: text/event-stream`, its results as events, as they come."""
    if sum(each is not None for each in (after, before, last)) > 1:
        raise UsageError("a page lies behind a position, in front of one, or at the end", hint="give one of them")
    asked = context.asked.of(name)
    if _wants_events(accept):
        if before is not None or last is not None:
            raise UsageError("events only go on", hint="leave out 'before' and 'last'")
        return _events(context, client, asked, last_event_id or after, from_now=begin == "now")
    return _page(context, asked, ResultPosition.given(after), ResultPosition.given(before), last, limit)


def _wants_events(accept: str) -> bool:
    return any(each.partition(";")[0].strip().lower() == "text/event-stream" for each in accept.split(","))


def _events(
    context: ServiceContext, client: Client, asked: AskedAnswer, position: str | None, *, from_now: bool
) -> Response:
    after = ResultPosition.given(position)
    if context.hub.is_over:
        raise NotReady(f"the run is {context.work.state}", hint="try again in some seconds")
    if after is None and from_now:
        after = ResultPosition(context.feed.epochs.last, 1 << 62)
    return AnswerEvents(context, client, asked, after)


def _page(
    context: ServiceContext,
    asked: AskedAnswer,
    after: ResultPosition | None,
    before: ResultPosition | None,
    last: int | None,
    limit: int,
) -> AnswerPage:
    """A page, and whether there is more in its direction."""
    feed, is_backward = context.feed, before is not None or last is not None
    found: list[tuple[ResultPosition, str]] = []
    more = False
    if asked.has_begun:
        source = asked.source
        results = feed.backward(source, before) if is_backward else feed.forward(source, after)
        size = 0
        for position, text in islice(results, (last or limit) + 1):
            more = len(found) == (last or limit) or size > _PAGE_CHARACTERS
            if more:
                break
            found.append((position, text))
            size += len(text)
    if is_backward:
        found.reverse()
    kind = context.asked.kind(asked)
    frame = context.asked.told(asked)
    is_json = kind == "json" or frame.json
    following = found[-1][0] if found else after
    return AnswerPage(
        name=asked.name,
        answer=kind,
        opening="" if is_json else frame.opening,
        closing="" if is_json else frame.closing,
        answers=[Result(position=str(position), text=text) for position, text in found],
        next=None if following is None else str(following),
        more=more,
        whole=not asked.has_begun or feed.epochs.first <= asked.registration.first,
    )
