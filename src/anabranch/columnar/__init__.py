"""Queries answered over many items at a time, in columns: raw bytes in, answers as bytes out; it knows no Spark.

Items of a stream's look (`scan/look.py`) are cut out of raw bytes into columns (`scan/shred.py`); queries are compiled
to conditions and fragments over them (`items/query.py`), and what they compute to expressions
(`expressions/compiling.py`); conditions are matched together (`match/index.py`), and `items/answering.py` brings it all
together.
A query that does not compile, and an item that columns cannot represent, is answered by the reference evaluator, item
by item.
"""
