"""Queries about the past of streams of items, answered as they come (LAWS 5.5)."""
