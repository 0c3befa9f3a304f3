"""Functions and operators of XPath Functions 3.1, by what they work on; `law/functions.py` has the table of all."""
