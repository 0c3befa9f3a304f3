"""Queries that are answered item by item, in columns."""
