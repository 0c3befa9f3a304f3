"""Plans of operators: built in Python, written down, interpreted."""
