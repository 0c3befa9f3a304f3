"""Dead letters and late items: what was set aside, page by page, with its text as it was read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from anabranch.service.access import needs
from anabranch.service.answers.aside import AsidePage
from anabranch.service.answers.positions import ResultPosition
from anabranch.service.context import Context
from anabranch.service.routes.answers import MOST, PositionText
from anabranch.stream.elements import DeadLetter, Place

router = APIRouter(prefix="/api", tags=["set aside"], dependencies=[needs("read")])


class ItemAside(BaseModel):
    """An item in a source; one in a message has the byte within it besides."""

    stream: str
    partition: str
    offset: int
    byte: int | None
    raw: str | None
    """None where it cannot be had."""


class LetterAside(ItemAside):
    """What was set aside, and why; `others` are further items that it failed with."""

    position: str
    reason: str
    code: str | None
    subscription: str | None
    others: list[ItemAside]


class LetterPage(BaseModel):
    """Some letters, in order; `next` is what the following page lies behind."""

    letters: list[LetterAside]
    next: str | None
    more: bool


@router.get("/dead-letters")
def dead_letters(
    context: Context,
    after: PositionText | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    stream: str | None = None,
    subscription: str | None = None,
) -> LetterPage:
    """A page of dead letters; one that filters may be short and still have a next one."""
    context.check_begun()
    return _page(context.aside.dead(ResultPosition.given(after), limit, stream, subscription))


@router.get("/late")
def late(
    context: Context,
    after: PositionText | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    stream: str | None = None,
) -> LetterPage:
    """A page of items that were too late; one that filters by stream may be short and still have a next one."""
    context.check_begun()
    return _page(context.aside.late(ResultPosition.given(after), limit, stream, context.work.site.streams))


def _page(found: AsidePage) -> LetterPage:
    letters = [_letter(position, letter) for position, letter in found.letters]
    return LetterPage(letters=letters, next=None if found.next is None else str(found.next), more=found.more)


def _letter(position: ResultPosition, letter: DeadLetter) -> LetterAside:
    return LetterAside(
        **_item(letter.place, letter.raw).model_dump(),
        position=str(position),
        reason=letter.reason,
        code=letter.code,
        subscription=letter.subscription,
        others=[_item(place, raw) for place, raw in letter.others],
    )


def _item(place: Place, raw: str) -> ItemAside:
    shown = place.shown()
    byte = shown.get("byte")
    return ItemAside(
        stream=place.stream,
        partition=str(shown["partition"]),
        offset=int(shown["offset"]),
        byte=None if byte is None else int(byte),
        raw=raw or None,
    )
