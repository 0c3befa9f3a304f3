"""A run in numbers: what it does now, why it is late, what its subscriptions share, metrics and traces.

The trunk hands over its epochs and goes on (`activity.py`); everything else is done by threads of this package or by
requests, so an epoch does not become slower for being watched.
"""
