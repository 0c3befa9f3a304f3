"""Atomic values and sequences: LAWS section 2."""
