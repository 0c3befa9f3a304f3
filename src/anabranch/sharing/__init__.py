"""What queries can have in common, and how one stream is made to serve several.

A query's property tree (`tree.py`) is derived from its text (`derive.py`), rendered back as an abstract query
(`render.py`), and matched and merged with those of others (`match.py`, with `relax.py` for windows); `explain.py` shows
all of it.
"""
