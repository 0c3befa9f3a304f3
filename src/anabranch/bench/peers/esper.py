"""Esper: statements over events, with an index of their filters.

Its licence is the GPL: it is fetched when the bench runs, and never shipped.
As its documentation advises, events are arrays, what is asked stands in the filter of the stream, and a text is
compiled once, with parameters, and deployed as often as it is asked for.
Windows that hop are overlapping contexts; an interval join is one of windows of time.
"""

from __future__ import annotations

from anabranch.bench.peers.peer import JACKSON, PeerEngine

_VERSION = "9.0.0"
ESPER = PeerEngine(
    "esper",
    "Esper",
    "GPL-2.0",
    (("com.espertech", "esper-runtime", _VERSION), ("com.espertech", "esper-compiler", _VERSION), JACKSON),
    "Esper",
    windows="EsperWindows",
    joins="EsperJoins",
)
