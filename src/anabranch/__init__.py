"""Standing XQuery subscriptions over streams, on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.client import RemoteSite, connect
    from anabranch.engine.live import Engine
    from anabranch.kafka import KafkaCluster
    from anabranch.spark.sinks import Console, Files, Kafka, Parquet
    from anabranch.stream.limits import CostCaps
    from anabranch.stream.reading.source import Http
    from anabranch.stream.reading.topic import Topic

__all__ = [
    "Console",
    "CostCaps",
    "Engine",
    "Files",
    "Http",
    "Kafka",
    "KafkaCluster",
    "Parquet",
    "RemoteSite",
    "Topic",
    "connect",
]


def __getattr__(name: str) -> Any:
    """`Engine`, `connect`, topics and sinks on first use: importing any part of the package must not load Spark."""
    if name == "Engine":
        from anabranch.engine.live import Engine

        return Engine
    if name in ("connect", "RemoteSite"):
        from anabranch import client

        return getattr(client, name)
    if name in ("KafkaCluster", "Topic"):
        from anabranch.kafka import KafkaCluster
        from anabranch.stream.reading.topic import Topic

        return Topic if name == "Topic" else KafkaCluster
    if name == "CostCaps":
        from anabranch.stream.limits import CostCaps

        return CostCaps
    if name == "Http":
        from anabranch.stream.reading.source import Http

        return Http
    if name in __all__:
        from anabranch.spark import sinks

        return getattr(sinks, name)
    raise AttributeError(f"module 'anabranch' has no attribute '{name}'")
