"""Expressions over columns: what the language computes with the values of one item, for thousands of items at once."""
