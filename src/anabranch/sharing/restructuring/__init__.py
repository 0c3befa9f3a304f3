"""The optimised form: what a query can leave to the stream, and the restructuring query that its subscriber runs."""
