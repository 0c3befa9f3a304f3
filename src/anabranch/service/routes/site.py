"""The site as a whole: who asks, and how far it is."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter
from pydantic import BaseModel

from anabranch.service.access import Reader
from anabranch.service.context import Context
from anabranch.site_work import RunState

router = APIRouter(prefix="/api", tags=["site"])


class SiteAnswer(BaseModel):
    """The site, and who asks."""

    site: str
    version: str
    role: str
    client: str
    run: int | None
    epoch: int
    started: str
    state: RunState
    streams: int
    subscriptions: int
    network: bool


@router.get("")
async def site(context: Context, client: Reader) -> SiteAnswer:
    """The site at work."""
    work = context.work
    return SiteAnswer(
        site=work.file.name,
        version=version("anabranch"),
        role=client.role,
        client=client.name,
        run=work.trunk.run if work.trunk else None,
        epoch=context.last,
        started=context.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        state=work.state,
        streams=len(work.site.streams),
        subscriptions=len(work.entries),
        network=False,
    )
