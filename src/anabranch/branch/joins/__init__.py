"""Joins of streams: step joins and interval joins."""
