"""Parts of benches that are a subject of their own."""
