"""Queries over update streams, kept up to date: exact after every moment, at the cost of what has changed."""
