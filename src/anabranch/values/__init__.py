"""Atomic values and sequences: LAWS section 2, for whoever computes with them."""
