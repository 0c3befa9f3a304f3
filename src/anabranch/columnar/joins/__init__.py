"""Step joins in columns."""
