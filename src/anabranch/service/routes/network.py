"""The network that a site is a peer of; a site by itself has none (`anabranch network run --serve` has one)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from anabranch.service.access import needs
from anabranch.service.network_map import PlannedMap

router = APIRouter(prefix="/api/network", tags=["network"], dependencies=[needs("read")])


class PeerAnswer(BaseModel):
    """A peer and its place on the map; one that is not `super` stands beside the peer that it is linked with."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    x: float | None
    y: float | None
    is_super: Annotated[bool, Field(alias="super")]


class FlowAnswer(BaseModel):
    """A stream on a link, and what it carries."""

    stream: str
    carries: str


class LinkAnswer(BaseModel):
    """A link: what the plan expects on it, and what was measured, in bytes a second."""

    model_config = ConfigDict(populate_by_name=True)

    source: Annotated[str, Field(alias="from")]
    target: Annotated[str, Field(alias="to")]
    planned: float
    measured: float | None
    flows: list[FlowAnswer]


class NetworkMap(BaseModel):
    """The map of a network."""

    peers: list[PeerAnswer]
    links: list[LinkAnswer]


class NetworkAnswer(BaseModel):
    """The network, null where there is none."""

    network: NetworkMap | None


def network_answer(found: PlannedMap) -> NetworkAnswer:
    """A map for clients."""
    peers = [
        PeerAnswer(
            name=each.name,
            x=each.place[0] if each.place else None,
            y=each.place[1] if each.place else None,
            is_super=each.is_super,
        )
        for each in found.peers
    ]
    links = [
        LinkAnswer(
            source=each.source,
            target=each.target,
            planned=round(each.planned, 1),
            measured=None if each.measured is None else round(each.measured, 1),
            flows=[FlowAnswer(stream=name, carries=what) for name, what in each.flows],
        )
        for each in found.links
    ]
    return NetworkAnswer(network=NetworkMap(peers=peers, links=links))


@router.get("")
def network() -> NetworkAnswer:
    """The map of the network; a site that runs by itself is in none."""
    return NetworkAnswer(network=None)
