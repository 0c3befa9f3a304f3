"""Streams: their elements, trees, paths and descriptions, and the reading of elements from files.

Everything else builds on this package; it knows neither queries nor Spark.
Readers are linear in bytes and bounded by `limits.py`, because input is hostile.
"""
