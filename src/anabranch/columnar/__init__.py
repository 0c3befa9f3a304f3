"""The same work over many items at a time: raw bytes in, answers as bytes out; it knows no Spark.

`template.py` knows what most items of a stream look like, and `shred.py` with the loops of `kernels.py` cuts such items
out of raw bytes; `query.py` and `condition.py` turn a query into tests on columns and fragments to copy; `guided.py`
and `scan.py` read the numbers in items of any other look; `answering.py` brings them together.
Whatever is not made for this is answered by the reference evaluator, item by item.
"""
