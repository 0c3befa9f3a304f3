"""Flink: a statement of SQL for each conjunction, all of them in one job over one source, as many as it can hold.

The cluster runs in the program's process, and its job stays at work from round to round.
A sink of the program's own gets the matches, which costs less than any of its connectors.
Windows are those of its streams, because windows of its SQL must have sizes that are multiples of their steps;
so are interval joins.
"""

from __future__ import annotations

from anabranch.bench.peers.peer import JACKSON, PeerEngine

_VERSION = "2.1.0"
_ARTIFACTS = (
    *("flink-clients", "flink-table-api-java-bridge", "flink-table-runtime", "flink-table-planner-loader"),
    "flink-connector-datagen",
)
FLINK = PeerEngine(
    "flink",
    "Flink SQL",
    "Apache-2.0",
    (*(("org.apache.flink", each, _VERSION) for each in _ARTIFACTS), JACKSON),
    "FlinkSql",
    windows="FlinkWindows",
    joins="FlinkJoins",
    options=("--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"),
)
