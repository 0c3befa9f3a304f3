"""The same work over many items at a time: raw bytes in, answers as bytes out; it knows no Spark.

`columnar/scan/template.py` knows what most items of a stream look like, and `columnar/scan/shred.py` with the loops of
`columnar/scan/kernels.py` cuts such items out of raw bytes; `columnar/items/query.py` and
`columnar/match/condition.py` turn a query into tests on columns and fragments to copy; `columnar/scan/untemplated.py`
reads the numbers in items of any other look; `columnar/items/answering.py` brings them together.
Whatever is not made for this is answered by the reference evaluator, item by item.
"""
