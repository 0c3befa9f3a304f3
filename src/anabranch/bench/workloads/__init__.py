"""The streams and queries that benches run on."""
