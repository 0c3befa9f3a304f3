"""Standing XQuery subscriptions over streams, on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.engine.live import Engine
    from anabranch.kafka import KafkaCluster
    from anabranch.spark.sinks import Console, Files, Kafka, Parquet

__all__ = ["Console", "Engine", "Files", "Kafka", "KafkaCluster", "Parquet"]


def __getattr__(name: str) -> Any:
    """`Engine` and the sinks on first use: importing any part of the package must not load Spark."""
    if name == "Engine":
        from anabranch.engine.live import Engine

        return Engine
    if name == "KafkaCluster":
        from anabranch.kafka import KafkaCluster

        return KafkaCluster
    if name in __all__:
        from anabranch.spark import sinks

        return getattr(sinks, name)
    raise AttributeError(f"module 'anabranch' has no attribute '{name}'")
