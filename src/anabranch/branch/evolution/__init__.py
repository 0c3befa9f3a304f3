"""How a branch follows the accents of its streams (LAWS 4)."""
