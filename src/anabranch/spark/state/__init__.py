"""Shards: branches that are opened on their state, fed, and put away again."""
