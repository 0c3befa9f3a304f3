"""The optimised rules: what a query can leave to the stream, and the query that is left for the subscriber."""
