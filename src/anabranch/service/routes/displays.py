"""Displays: what a subscription shows now, what it has shown, and the moments at which that changed."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from anabranch.service.access import needs
from anabranch.service.context import Context

router = APIRouter(prefix="/api/subscriptions", tags=["displays"], dependencies=[needs("read")])

MOST = 1_000
"""Moments on a page."""
_LARGEST = 1 << 53


class ShownChange(BaseModel):
    """Text that came or went; the position is that in the text as it is then."""

    kind: Literal["insert", "remove"]
    position: int
    length: int
    text: str


class DisplayText(BaseModel):
    """What a display shows, or has shown at a moment, and what had changed with that."""

    at: str | None
    text: str
    changes: list[ShownChange]


class MomentAnswer(BaseModel):
    """A moment that has changed a display."""

    number: int
    at: str
    epoch: int
    edits: int


class MomentPage(BaseModel):
    """Some moments, in order; `next` is what the following page lies behind, null where there is none yet."""

    total: int
    moments: list[MomentAnswer]
    next: int | None


@router.get("/{name:name}/display")
def display(context: Context, name: str, moment: Annotated[int | None, Query(ge=0, le=_LARGEST)] = None) -> DisplayText:
    """What a display shows now, or has shown at a moment."""
    asked = context.asked.of(name)
    views = context.displays
    shown = views.now(asked, context.work.functions) if moment is None else views.at(asked, moment)
    changes = [
        ShownChange(kind=each.kind, position=each.position, length=len(each.text), text=each.text)
        for each in shown.changes
    ]
    return DisplayText(at=shown.at, text=shown.text, changes=changes)


@router.get("/{name:name}/moments")
def moments(
    context: Context,
    name: str,
    after: Annotated[int, Query(ge=-1, le=_LARGEST)] = -1,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 500,
) -> MomentPage:
    """A page of the moments at which a display has changed; the newest 100,000 are kept."""
    total, found = context.displays.moments(context.asked.of(name), after, limit)
    given = [MomentAnswer(number=each.number, at=each.at, epoch=each.epoch, edits=each.edits) for each in found]
    is_last = not found or found[-1].number == total - 1
    return MomentPage(total=total, moments=given, next=None if is_last else found[-1].number)
