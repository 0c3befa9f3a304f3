"""Rows of documents behind `doc()` as columns, looked up by their keys for many items at once."""
