"""The common parts of queries (sharing paper).

A query's property tree (`tree.py`), or forest if it joins (`forest.py`), is derived from its text by inference rules
(`rules/`) and brought into one form (`normalize.py`).
It is rendered back as an abstract query (`render.py`), and matched and merged with the trees of other queries
(`match.py` and `match_joins.py`); what a query lacks beside a stream is a difference of trees (`subtract.py`).
A subscriber runs its query over items, or the rest of its query over windows (`restructure.py`) and tuples (`loops.py`)
that were made already (`remote.py`).
`retention.py` says how much of the past a query can need, and `explain/` shows all of it.
"""
