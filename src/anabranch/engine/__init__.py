"""Streams and subscriptions: `finite` answers queries over inputs that have an end, `live` is the Python API.

Nothing is imported here, so that help and refused queries need not wait for an engine.
"""
