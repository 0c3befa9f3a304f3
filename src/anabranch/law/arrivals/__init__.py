"""The past of streams of items (LAWS 5.5): versions are arrivals, and results stand or are corrected.

The law: `past.py` has the moments of a query, `recall.py` evaluates at one of them, `runtime/past/timeline.py` at all
of them, and `mixed.py` where streams of updates are read beside.
Production does not keep all arrivals: `runtime/past/recollection.py` says how far back a query asks, and keeps that
much.
"""
