"""Query text to tree."""
