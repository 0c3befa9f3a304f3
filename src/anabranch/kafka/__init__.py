"""Kafka: clusters as users declare them, clients that are made for them, and what their errors mean.

    KafkaCluster     brokers and settings; secrets are references (`cluster.py`)
    clients          producers, consumers and administrators of a cluster (`clients.py`)
    faults           every error of Kafka as one of ours, and what to do about it (`faults.py`)

Only this package knows `confluent_kafka`, and loads it with the first client: a site without topics does not pay.
"""

from anabranch.kafka.cluster import KafkaCluster

__all__ = ["KafkaCluster"]
