"""Lookups, objects and arrays over columns (LAWS 7)."""
