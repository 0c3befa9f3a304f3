"""Queries about the past of streams of items, answered incrementally (LAWS 5.5)."""
