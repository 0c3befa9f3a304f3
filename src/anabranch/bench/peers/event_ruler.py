"""Event Ruler, the engine behind EventBridge: rules over events of JSON, compiled to one machine.

It reads JSON itself; items of XML are rewritten as JSON before.
Numbers are between -5e9 and 5e9 with six digits behind the point, which photons keep to.
"""

from __future__ import annotations

from anabranch.bench.peers.peer import PeerEngine

EVENT_RULER = PeerEngine(
    "ruler",
    "Event Ruler",
    "Apache-2.0",
    (("software.amazon.event.ruler", "event-ruler", "2.1.0"),),
    "EventRuler",
)
