"""Spark on several machines: how it is reached, what its workers are sent, and what they must be able to see."""
