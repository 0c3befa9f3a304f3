"""Thousands of conditions matched together over columns."""
