"""How much flows, in bytes per second, and who works how much: as measured where a network has run, else as planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch.network.catalogue import Flow
from anabranch.network.planner import Planner


@dataclass(frozen=True)
class Rates:
    """Of flows by name, and of peers their part of all the work."""

    flows: Mapping[str, float]
    works: Mapping[str, float]
    measured: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    """For streams, who registered them."""

    def of(self, flow: Flow) -> float:
        """Bytes per second of a flow; one that has not begun yet has none."""
        return self.flows.get(flow.name, 0.0)


def planned(planner: Planner, sources: Mapping[str, str] | None = None) -> Rates:
    """What the samples say."""
    catalogue, estimates = planner.catalogue, planner.estimates
    flows = {name: estimates.rate(flow.form) for name, flow in catalogue.flows.items()}
    return Rates(flows, parts(catalogue.load(estimates)), sources=sources or {})


def parts(amounts: Mapping[str, float]) -> dict[str, float]:
    """Each as a part of all."""
    whole = sum(amounts.values()) or 1.0
    return {name: amount / whole for name, amount in amounts.items()}


def rate_text(rate: float) -> str:
    """`237 B/s`, `1.2 kB/s`, `34 MB/s`"""
    for unit in ("B", "kB", "MB", "GB"):
        if rate < 999.5 or unit == "GB":
            break
        rate /= 1_000
    return f"{rate:.1f} {unit}/s" if unit != "B" and rate < 9.95 else f"{rate:,.0f} {unit}/s"
