"""What queries can have in common, and how one stream is made to serve several.

A query's property tree (`tree.py`), or forest if it joins (`forest.py`), is derived from its text (`derive.py`, by the
rules of `rules.py`), rendered back as an abstract query (`render.py`), and matched and merged with those of others
(`match.py` and `match_joins.py`, with `relax.py` for windows); what a query lacks beside a stream, and what a stream
need no longer send, is a difference of trees (`subtract.py`).
In the optimised form a subscriber is left with what was not done on the way (`restructure.py`, with `generic.py` for
windows and `tuples.py` for joins).
`explain.py` shows all of it in words and as data, `drawing.py` as a picture (of what `scene.py` has to show).
"""
