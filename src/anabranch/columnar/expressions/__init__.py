"""Expressions over columns: the language's expressions over one item, computed for thousands of items at once."""
