"""What queries have in common (sharing paper).

A query's property tree (`tree.py`), or forest if it joins (`forest.py`), is derived from its text (`rules/`), rendered
back as an abstract query (`render.py`), and matched and merged with those of others (`match.py` and `match_joins.py`,
with `relax.py` for windows); what a query lacks beside a stream, and what a stream need no longer send, is a difference
of trees (`subtract.py`).
In the optimised form a subscriber is left with what was not done on the way (`restructuring/`).
`explain/` shows all of it.
"""
