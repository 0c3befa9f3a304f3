"""Streams and subscriptions: `finite` answers queries over inputs that have an end, `live` is the Python API.

Nothing is loaded here: whoever asks for help, or has a query refused, need not wait for an engine.
"""
