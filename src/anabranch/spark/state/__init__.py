"""Shards: branches that are restored from their state, fed, and saved again."""
