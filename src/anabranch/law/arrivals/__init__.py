"""The past of streams of items (LAWS 5.5): versions are arrivals, and results stand or are corrected.

The law: `past.py` has the moments of a query, `recall.py` evaluates at one of them, `runtime/past/timeline.py` at all
of them, and `mixed.py` where streams of updates are read beside.
The same from a short memory: `runtime/past/recollection.py` says how far back a query asks, and
`runtime/past/recollection.py` keeps that much.
"""
