"""The inputs of a branch: entries, their backlog, and the merge that orders them (LAWS 1.2)."""
