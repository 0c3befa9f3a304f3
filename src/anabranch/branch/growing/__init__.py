"""Answers at once over streams that only grow: displays that are corrected as items come (LAWS 3.11)."""
