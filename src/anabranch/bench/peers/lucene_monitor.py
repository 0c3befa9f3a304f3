"""Lucene Monitor: queries of Lucene that are stored, and documents that are matched against them.

Its presearchers choose queries by the terms of a document, and ranges of points have no terms; so all queries are
searched for, in large batches of documents, which is what its documentation has batches for.
It takes documents of fields, so a streaming parser reads the items.
"""

from __future__ import annotations

from anabranch.bench.peers.peer import JACKSON, PeerEngine

LUCENE_MONITOR = PeerEngine(
    "lucene",
    "Lucene Monitor",
    "Apache-2.0",
    (("org.apache.lucene", "lucene-monitor", "10.3.0"), JACKSON),
    "LuceneMonitor",
    jdk=21,
    batch=5_000,
)
