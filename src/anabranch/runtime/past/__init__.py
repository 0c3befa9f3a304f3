"""What a standing query about the past has to remember, and what it answers as items arrive (LAWS 5.5)."""
