"""Loops over entries that are compiled: the usual forms of a query, answered from what is kept of an entry."""
