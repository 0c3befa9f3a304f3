"""Queries that clients of the service ask about, most of them before they register them.

`checking.py` gives the verdict that registering would give, `sharing.py` what a query has in common with those that
run, `explaining.py` both in words, `preview.py` the answer over the newest items, and `spelling.py` another spelling.
"""
