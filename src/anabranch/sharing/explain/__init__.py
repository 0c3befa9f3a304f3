"""Explanations of sharing: as text, as data and as a picture."""
