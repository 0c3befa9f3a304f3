"""Bytes to elements: splitting, parsing, and the wire formats."""
