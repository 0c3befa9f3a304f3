"""Answers into topics of Kafka: each result a message, exactly once.

keys.py        the key of a message, by a path in the result
messages.py    the messages of an epoch for one subscription
upserts.py     the entries of a display as messages with keys, and tombstones
record.py      what a checkpoint knows of its topics
delivery.py    the thread that writes epoch after epoch, one transaction each
"""
