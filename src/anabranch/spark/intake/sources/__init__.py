"""The sources of streams, one connector each: the planning of epochs, and the reading of ranges in tasks.

`connector.py` is the interface; `docs/sources.md` says how to add a source.
"""

from __future__ import annotations

from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.sources.connector import Connector, Weights
from anabranch.spark.intake.sources.files import FilesConnector
from anabranch.spark.intake.sources.http import HttpConnector
from anabranch.spark.intake.sources.kafka import KafkaConnector
from anabranch.stream.reading.source import Source


def connector_of(source: Source, log: OrderLog, weights: Weights = dict) -> Connector:
    """The connector of a stream, with the stream's order log, and the weights of messages where epochs are planned."""
    if source.topic is not None:
        return KafkaConnector(source, log, weights)
    return FilesConnector(source, log) if source.http is None else HttpConnector(source, log)
