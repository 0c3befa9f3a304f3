"""The state of a standing query about the past, and its answers as items arrive (LAWS 5.5)."""
